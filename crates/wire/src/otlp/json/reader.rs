//! The tokens of JSON, over a text that is known to be UTF-8, with the words of OTLP/JSON for what is wrong.

use super::error::{ErrorAtOffset, FoundToken, OtlpJsonErrorKind, ReadResult};
use super::text::Text;
use crate::json::{Cursor, Expected, RawString, SyntaxError};
use crate::remote_write::Excerpt;

/// A cursor over the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(Cursor<'a>);

/// Expectation in the error about a member without a name.
const NAME: &str = "a field's name in quotes";
/// How many arrays and objects may be in each other in what nobody reads: as many as there are in what is read.
const MAX_DEPTH: usize = 4096;
/// Words with a bit for each of them.
const NESTING_WORDS: usize = MAX_DEPTH / 64;

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self(Cursor::new(body))
    }

    /// Where the cursor stands.
    pub(crate) fn offset(&self) -> usize {
        self.0.offset()
    }

    /// The byte after white space, which the cursor steps over.
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.0.peek()
    }

    /// Steps over `byte`, if it comes next.
    #[inline(always)]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.0.take(byte)
    }

    /// Steps over `byte`, which must come next and is called `expected`.
    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> ReadResult<()> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// That something else than `expected` comes next.
    #[cold]
    pub(crate) fn unexpected(mut self, expected: &'static str) -> ErrorAtOffset {
        let found = self.peek().map_or(FoundToken::End, FoundToken::Byte);
        ErrorAtOffset::new(self.offset(), OtlpJsonErrorKind::Unexpected { found, expected })
    }

    /// Steps over the string `name` and the colon behind it, if they come next.
    #[inline(always)]
    pub(crate) fn take_name(&mut self, name: &str) -> bool {
        let Some((b'"', rest)) = self.0.rest().split_first() else { return false };
        match rest.split_at_checked(name.len()) {
            Some((found, [b'"', b':', ..])) if found == name.as_bytes() => {
                self.0 = self.0.at_offset(self.offset() + name.len() + 3);
                true
            }
            _ => false,
        }
    }

    /// The string that must come next.
    #[inline]
    pub(crate) fn string(&mut self, expected: &'static str) -> ReadResult<Text<'a>> {
        let RawString { raw, is_escaped } =
            self.0.loose_string().map_err(|error| self.of(error, expected))?;
        Ok(Text { raw, at: self.offset() - raw.len() - 1, is_escaped })
    }

    /// The name of a member and the colon behind it.
    #[inline]
    pub(crate) fn name(&mut self) -> ReadResult<Text<'a>> {
        let name = self.string(NAME)?;
        self.expect(b':', "`:`")?;
        Ok(name)
    }

    /// The number that must come next.
    #[inline]
    pub(crate) fn number(&mut self, expected: &'static str) -> ReadResult<&'a [u8]> {
        let Some(b'0'..=b'9' | b'-') = self.peek() else { return Err(self.unexpected(expected)) };
        let from = *self;
        match self.0.number() {
            Ok(token) if !self.0.rest().first().is_some_and(is_of_number) => Ok(token),
            _ => Err(from.no_number()),
        }
    }

    /// That a number which begins here is none as JSON has them.
    #[cold]
    fn no_number(self) -> ErrorAtOffset {
        let rest = self.0.rest();
        let token = rest.get(..rest.iter().take_while(|byte| is_of_number(byte)).count()).unwrap_or_default();
        let (found, expected) = (Excerpt::new(token), "a number as JSON has it");
        ErrorAtOffset::new(self.offset(), OtlpJsonErrorKind::Number { found, expected })
    }

    /// Whether `word` (`true`, `false`, `null`) comes next; steps over it then.
    #[inline]
    pub(crate) fn literal(&mut self, word: &str) -> bool {
        self.0.take_bytes(word.as_bytes())
    }

    /// The same text from another place on.
    pub(crate) fn from(&self, at: usize) -> Self {
        Self(self.0.at_offset(at))
    }

    /// Steps over a value that nobody reads, and checks that it is one.
    pub(crate) fn skip(&mut self) -> ReadResult<()> {
        self.0.skip::<NESTING_WORDS>(MAX_DEPTH).map_err(|error| self.of(error, NAME))
    }

    /// Steps over a value, whatever is wrong with it that does not hide where it ends.
    pub(crate) fn skip_bad(&mut self) -> ReadResult<()> {
        self.0.loose_skip::<NESTING_WORDS>(MAX_DEPTH).map_err(|error| self.of(error, NAME))
    }

    /// The error in the words of OTLP/JSON. `string` is what is said where no string comes.
    #[cold]
    fn of(&self, SyntaxError { at, found, expected }: SyntaxError, string: &'static str) -> ErrorAtOffset {
        let expected = match (expected, found) {
            (Expected::LessDepth, _) => return ErrorAtOffset::new(at, OtlpJsonErrorKind::Depth),
            (Expected::Escape, _) => return ErrorAtOffset::new(at, OtlpJsonErrorKind::Escape),
            (Expected::RestOfString, Some(byte)) => {
                return ErrorAtOffset::new(at, OtlpJsonErrorKind::Control(byte));
            }
            (Expected::RestOfString, None) => "the end of a string",
            (Expected::String, _) => string,
            (Expected::Value, _) => "a value",
            (Expected::Digit, _) => {
                let before = self.0.at_offset(0).rest().get(..at).unwrap_or_default();
                let digits = before.iter().rev().take_while(|byte| is_of_number(byte)).count();
                return self.from(at - digits).no_number();
            }
            (Expected::Byte(b':'), _) => "`:`",
            (Expected::CommaOr(b'}'), _) => "`,` or `}`",
            (Expected::CommaOr(_), _) => "`,` or `]`",
            (Expected::Byte(_) | Expected::End, _) => "the end of the body",
        };
        let found = found.map_or(FoundToken::End, FoundToken::Byte);
        ErrorAtOffset::new(at, OtlpJsonErrorKind::Unexpected { found, expected })
    }
}

/// A byte that may be in a number.
fn is_of_number(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}
