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

    /// The results of `read`, up to the first message that it cannot read.
    #[inline]
    pub fn read<T, F: FnMut(&'a [u8]) -> Option<T>>(self, read: F) -> ReadMessages<'a, F> {
        ReadMessages { messages: self, read }
    }
}

/// Messages as they are read. Those that are skipped or only counted are not.
#[derive(Debug, Clone)]
pub struct ReadMessages<'a, F> {
    messages: Messages<'a>,
    read: F,
}

impl<'a, T, F: FnMut(&'a [u8]) -> Option<T>> Iterator for ReadMessages<'a, F> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        (self.read)(self.messages.next()?)
    }

    #[inline]
    fn nth(&mut self, skipped: usize) -> Option<T> {
        (self.read)(self.messages.nth(skipped)?)
    }

    #[inline]
    fn count(self) -> usize {
        self.messages.count()
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
