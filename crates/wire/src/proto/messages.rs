//! The occurrences of one message field.

use super::Reader;

/// The payloads of one length-delimited field of a message, in order, up to the first malformed byte.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    reader: Reader<'a>,
    field: u32,
    /// The field's tag where that has one byte; otherwise 0, which is no tag.
    tag: u8,
}

impl<'a> Messages<'a> {
    /// The occurrences of `field` in `message`.
    #[must_use]
    pub fn new(message: &'a [u8], field: u32) -> Self {
        let [tag, ..] = (field << 3 | 2).to_le_bytes();
        Self { reader: Reader::new(message), field, tag: if field < 16 { tag } else { 0 } }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(message) = self.reader.take_short(self.tag) {
                return Some(message);
            }
            if !self.reader.skip_short() {
                break;
            }
        }
        while let Some(key) = self.reader.key().ok()? {
            if key.field == self.field {
                return self.reader.bytes(key).ok();
            }
            self.reader.skip(key).ok()?;
        }
        None
    }
}
