//! The members of one element, one after another. What nobody asks for is passed over.

use tidegate_wire::json::{self, Cursor, ValueType};

/// The most objects and arrays in each other: more than a document may have.
const MAX_DEPTH: usize = 1024;
/// Words with a bit for each of them.
const NESTING_WORDS: usize = MAX_DEPTH / 64;

/// Where reading is. Whatever is not as expected ends it: all methods return `None` then. Escapes may be wrong.
#[derive(Clone, Copy)]
pub(super) struct ElementReader<'a>(Cursor<'a>);

impl<'a> ElementReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> ElementReader<'a> {
        ElementReader(Cursor::new(bytes))
    }

    /// Where it is in the element.
    pub(super) fn offset(&self) -> usize {
        self.0.offset()
    }

    /// Enters an object.
    pub(super) fn open(&mut self) -> Option<()> {
        self.0.take(b'{').then_some(())
    }

    /// The next key of the object it is in, with its quotes taken off and its escapes left in. Its value is next.
    /// `None` at the object's end, which is passed.
    pub(super) fn key(&mut self) -> Option<&'a [u8]> {
        self.0.take(b',');
        if self.0.take(b'}') {
            return None;
        }
        let key = self.text()?;
        self.0.expect(b':').ok()?;
        Some(key)
    }

    /// A text, with its quotes taken off and its escapes left in.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        self.0.loose_string().ok().map(|text| text.raw)
    }

    /// A whole number. Of a fraction the whole part.
    pub(super) fn number(&mut self) -> Option<u64> {
        if self.0.value_type() != Ok(ValueType::Number) {
            self.skip()?;
            return None;
        }
        let number = self.0.number().ok()?;
        let whole = number.split(|byte| !byte.is_ascii_digit()).next().filter(|digits| !digits.is_empty())?;
        let digit = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        Some(whole.iter().fold(0, digit))
    }

    /// Whether the next value is `true`.
    pub(super) fn is_true(&mut self) -> Option<bool> {
        let is = self.peek()? == b't';
        self.skip()?;
        Some(is)
    }

    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.0.peek()
    }

    /// Passes a value.
    pub(super) fn skip(&mut self) -> Option<()> {
        self.0.loose_skip::<NESTING_WORDS>(MAX_DEPTH).ok()
    }
}

/// A text without its escapes, at most about `most` bytes of it. What is not UTF-8, half a pair or no escape is replaced.
pub(super) fn unescaped(text: &[u8], most: usize) -> String {
    let mut bytes = Vec::with_capacity(text.len().min(most + 4));
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first()
        && bytes.len() < most
    {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let (character, behind) = json::decode_escape(behind).unwrap_or_else(|bad| {
            let behind = if let json::BadEscape::Half(behind) = bad {
                behind
            } else {
                behind.get(1..).unwrap_or_default()
            };
            (char::REPLACEMENT_CHARACTER, behind)
        });
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = behind;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
