//! The fields of a message as they stand in it.

use super::{Key, Malformed, Reader};

/// One field of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) key: Key,
    /// Key and value, encoded.
    pub(crate) whole: &'a [u8],
    /// At the value.
    value: Reader<'a>,
}

impl<'a> Field<'a> {
    /// The message that it holds.
    #[inline]
    pub(crate) fn message(&self) -> Result<Reader<'a>, Malformed> {
        { self.value }.message(self.key)
    }

    /// Its payload; empty when it has no length.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        { self.value }.bytes(self.key).unwrap_or_default()
    }

    /// The number that it holds; 0 when it holds none.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        { self.value }.varint(self.key).unwrap_or_default()
    }
}

/// The fields of a message in order. The first malformed one is the last.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    /// The fields that `message` stands before.
    pub(crate) fn new(message: Reader<'a>) -> Self {
        Self(message)
    }

    /// The fields of a message that was checked before; over one that was not they end at the first malformed one.
    #[inline]
    pub(crate) fn checked(message: &'a [u8]) -> impl Iterator<Item = Field<'a>> + Clone + use<'a> {
        Self(Reader::new(message)).map_while(Result::ok)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let before = self.0;
        let field = self.0.key().and_then(|key| {
            let Some(key) = key else { return Ok(None) };
            let value = self.0;
            self.0.skip(key)?;
            Ok(Some(Field { key, whole: before.until(&self.0), value }))
        });
        if field.is_err() {
            self.0 = Reader::new(&[]);
        }
        field.transpose()
    }
}
