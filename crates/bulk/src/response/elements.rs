//! Where the elements of an array begin and end, in bytes that come in pieces.

use memchr::memchr2;

/// A part of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementChunk<'a> {
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
pub struct ElementScanner {
    key: &'static str,
    state: ScanState,
    /// Open brackets: within the object, or within the element.
    depth: u32,
    string: StringState,
    /// How many bytes of the key at hand are those of `key`; `None` when it is another.
    matched: Option<usize>,
    /// The last key was `key`, and its value comes next.
    wanted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// Before the object.
    Start,
    /// In the object, outside the array.
    InObject,
    /// In the array, between elements.
    BetweenElements,
    /// In an element that is an object or an array, or a text.
    InElement,
    /// In an element that is a number or a word.
    Scalar,
    /// Behind the object.
    End,
    /// This is no such object.
    Invalid,
}

/// Whether a byte is part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringState {
    Outside,
    Inside,
    Escaped,
}

impl ElementScanner {
    /// For the array under `key`.
    pub fn new(key: &'static str) -> ElementScanner {
        let (place, text) = (ScanState::Start, StringState::Outside);
        ElementScanner { key, state: place, depth: 0, string: text, matched: None, wanted: false }
    }

    /// Whether the object is complete.
    pub fn is_complete(&self) -> bool {
        self.state == ScanState::End
    }

    /// Reads on, and hands each part of an element to `found`.
    pub fn feed<'a>(&mut self, mut bytes: &'a [u8], mut found: impl FnMut(ElementChunk<'a>)) {
        let whole = bytes.len();
        while let Some(first) = bytes.first() {
            let used = match self.state {
                ScanState::Start => self.start(*first),
                ScanState::InObject => self.object(*first),
                ScanState::BetweenElements => self.between(*first),
                ScanState::InElement | ScanState::Scalar => {
                    // `between` took no byte, so this is where a part begins.
                    let begins = self.matched.take().is_some();
                    let (used, last) =
                        if self.state == ScanState::Scalar { scalar_end(bytes) } else { self.inside(bytes) };
                    let part = bytes.get(..used).unwrap_or_default();
                    if last {
                        self.state = ScanState::BetweenElements;
                    }
                    found(ElementChunk { bytes: part, at: whole - bytes.len(), first: begins, last });
                    used
                }
                ScanState::End | ScanState::Invalid => return,
            };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    fn start(&mut self, byte: u8) -> usize {
        match byte {
            b'{' => (self.state, self.depth) = (ScanState::InObject, 1),
            byte if byte.is_ascii_whitespace() => {}
            _ => self.state = ScanState::Invalid,
        }
        1
    }

    fn object(&mut self, byte: u8) -> usize {
        match (self.string, byte) {
            (StringState::Escaped, _) => self.string = StringState::Inside,
            (StringState::Inside, b'"') => {
                self.string = StringState::Outside;
                self.wanted = self.matched == Some(self.key.len());
            }
            (StringState::Inside, byte) => {
                let expected = self.matched.and_then(|matched| self.key.as_bytes().get(matched));
                self.matched = self.matched.filter(|_| expected == Some(&byte)).map(|matched| matched + 1);
                if byte == b'\\' {
                    self.string = StringState::Escaped;
                }
            }
            (StringState::Outside, b'"') => {
                self.string = StringState::Inside;
                // Only what stands in the object itself can be its key. A text that is a value matches too, but
                // no array follows it at once.
                self.matched = (self.depth == 1).then_some(0);
                self.wanted = false;
            }
            (StringState::Outside, b'[') if self.wanted && self.depth == 1 => {
                (self.state, self.depth, self.matched) = (ScanState::BetweenElements, 0, None);
            }
            (StringState::Outside, b'{' | b'[') => {
                self.depth = self.depth.saturating_add(1);
                self.wanted = false;
            }
            (StringState::Outside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = ScanState::End;
                }
            }
            (StringState::Outside, b',') => self.wanted = false,
            (StringState::Outside, _) => {}
        }
        1
    }

    fn between(&mut self, byte: u8) -> usize {
        match byte {
            b']' => {
                (self.state, self.depth, self.wanted) = (ScanState::InObject, 1, false);
                1
            }
            b',' => 1,
            byte if byte.is_ascii_whitespace() => 1,
            byte => {
                let word = !matches!(byte, b'{' | b'[' | b'"');
                self.state = if word { ScanState::Scalar } else { ScanState::InElement };
                (self.depth, self.matched) = (0, Some(0));
                0
            }
        }
    }

    /// How many of `bytes` belong to the element, and whether it ends with them.
    fn inside(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.string {
                StringState::Escaped => {
                    self.string = StringState::Inside;
                    at += 1;
                    continue;
                }
                StringState::Inside => {
                    let Some(end) = memchr2(b'"', b'\\', rest) else { return (bytes.len(), false) };
                    at += end + 1;
                    if rest.get(end) == Some(&b'\\') {
                        self.string = StringState::Escaped;
                        continue;
                    }
                    self.string = StringState::Outside;
                    if self.depth == 0 {
                        return (at, true);
                    }
                    continue;
                }
                StringState::Outside => {}
            }
            for byte in rest {
                at += 1;
                match byte {
                    b'"' => {
                        self.string = StringState::Inside;
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
fn scalar_end(bytes: &[u8]) -> (usize, bool) {
    let ends = |byte: &u8| matches!(byte, b',' | b']') || byte.is_ascii_whitespace();
    match bytes.iter().position(ends) {
        Some(end) => (end, true),
        None => (bytes.len(), false),
    }
}
