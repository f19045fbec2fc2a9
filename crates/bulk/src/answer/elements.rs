//! Where the elements of an array begin and end, in bytes that come in pieces.

use memchr::memchr2;

/// A part of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where they begin in the piece that was handed over.
    pub at: usize,
    /// Whether the element begins with it.
    pub first: bool,
    /// Whether the element ends with it.
    pub last: bool,
}

/// Finds the elements of the array under one key of an object: `{"took":3,"items":[…, …]}`.
#[derive(Debug, Clone)]
pub struct Elements {
    key: &'static str,
    place: Place,
    /// Open brackets: within the object, or within the element.
    depth: u32,
    text: Text,
    /// How many bytes of the key at hand are those of `key`; `None` when it is another.
    matched: Option<usize>,
    /// The last key was `key`, and its value comes next.
    wanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the object.
    Start,
    /// In the object, outside the array.
    Object,
    /// In the array, between elements.
    Between,
    /// In an element that is an object or an array, or a text.
    Inside,
    /// In an element that is a number or a word.
    Word,
    /// Behind the object.
    End,
    /// This is no such object.
    Lost,
}

/// Whether a byte is part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escaped,
}

impl Elements {
    /// For the array under `key`.
    pub fn of(key: &'static str) -> Elements {
        let (place, text) = (Place::Start, Text::Outside);
        Elements { key, place, depth: 0, text, matched: None, wanted: false }
    }

    /// Whether the object is complete.
    pub fn is_complete(&self) -> bool {
        self.place == Place::End
    }

    /// Reads on, and hands each part of an element to `found`.
    pub fn feed<'a>(&mut self, mut bytes: &'a [u8], mut found: impl FnMut(Part<'a>)) {
        let whole = bytes.len();
        while let Some(first) = bytes.first() {
            let used = match self.place {
                Place::Start => self.start(*first),
                Place::Object => self.object(*first),
                Place::Between => self.between(*first),
                Place::Inside | Place::Word => {
                    // `between` took no byte, so this is where a part begins.
                    let begins = self.matched.take().is_some();
                    let (used, last) =
                        if self.place == Place::Word { word(bytes) } else { self.inside(bytes) };
                    let part = bytes.get(..used).unwrap_or_default();
                    if last {
                        self.place = Place::Between;
                    }
                    found(Part { bytes: part, at: whole - bytes.len(), first: begins, last });
                    used
                }
                Place::End | Place::Lost => return,
            };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    fn start(&mut self, byte: u8) -> usize {
        match byte {
            b'{' => (self.place, self.depth) = (Place::Object, 1),
            byte if byte.is_ascii_whitespace() => {}
            _ => self.place = Place::Lost,
        }
        1
    }

    fn object(&mut self, byte: u8) -> usize {
        match (self.text, byte) {
            (Text::Escaped, _) => self.text = Text::Inside,
            (Text::Inside, b'"') => {
                self.text = Text::Outside;
                self.wanted = self.matched == Some(self.key.len());
            }
            (Text::Inside, byte) => {
                let expected = self.matched.and_then(|matched| self.key.as_bytes().get(matched));
                self.matched = self.matched.filter(|_| expected == Some(&byte)).map(|matched| matched + 1);
                if byte == b'\\' {
                    self.text = Text::Escaped;
                }
            }
            (Text::Outside, b'"') => {
                self.text = Text::Inside;
                // Only what stands in the object itself can be its key. A text that is a value matches too, but
                // no array follows it at once.
                self.matched = (self.depth == 1).then_some(0);
                self.wanted = false;
            }
            (Text::Outside, b'[') if self.wanted && self.depth == 1 => {
                (self.place, self.depth, self.matched) = (Place::Between, 0, None);
            }
            (Text::Outside, b'{' | b'[') => {
                self.depth = self.depth.saturating_add(1);
                self.wanted = false;
            }
            (Text::Outside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.place = Place::End;
                }
            }
            (Text::Outside, b',') => self.wanted = false,
            (Text::Outside, _) => {}
        }
        1
    }

    fn between(&mut self, byte: u8) -> usize {
        match byte {
            b']' => {
                (self.place, self.depth, self.wanted) = (Place::Object, 1, false);
                1
            }
            b',' => 1,
            byte if byte.is_ascii_whitespace() => 1,
            byte => {
                let word = !matches!(byte, b'{' | b'[' | b'"');
                self.place = if word { Place::Word } else { Place::Inside };
                (self.depth, self.matched) = (0, Some(0));
                0
            }
        }
    }

    /// How many of `bytes` belong to the element, and whether it ends with them.
    fn inside(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.text {
                Text::Escaped => {
                    self.text = Text::Inside;
                    at += 1;
                    continue;
                }
                Text::Inside => {
                    let Some(end) = memchr2(b'"', b'\\', rest) else { return (bytes.len(), false) };
                    at += end + 1;
                    if rest.get(end) == Some(&b'\\') {
                        self.text = Text::Escaped;
                        continue;
                    }
                    self.text = Text::Outside;
                    if self.depth == 0 {
                        return (at, true);
                    }
                    continue;
                }
                Text::Outside => {}
            }
            for byte in rest {
                at += 1;
                match byte {
                    b'"' => {
                        self.text = Text::Inside;
                        break;
                    }
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return (at, true);
                        }
                    }
                    _ => {}
                }
            }
        }
        (bytes.len(), false)
    }
}

/// How many of `bytes` belong to a number or a word, and whether it ends with them.
fn word(bytes: &[u8]) -> (usize, bool) {
    let ends = |byte: &u8| matches!(byte, b',' | b']') || byte.is_ascii_whitespace();
    match bytes.iter().position(ends) {
        Some(end) => (end, true),
        None => (bytes.len(), false),
    }
}
