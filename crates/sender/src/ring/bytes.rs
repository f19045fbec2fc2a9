//! The output of encoders.

use std::fmt;

/// Takes the bytes of one event, in order.
pub(crate) trait EventOutput {
    fn put(&mut self, bytes: &[u8]);
}

impl EventOutput for &mut dyn EventOutput {
    fn put(&mut self, bytes: &[u8]) {
        (**self).put(bytes);
    }
}

/// An event that knows its length before it writes itself. It is asked to write at most once.
pub(crate) trait Payload {
    fn len(&self) -> usize;
    fn write<O: EventOutput>(&self, out: &mut O);
}

/// Bytes that were encoded before.
impl Payload for [u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn write<O: EventOutput>(&self, out: &mut O) {
        out.put(self);
    }
}

/// Counts instead of writing.
#[derive(Default)]
pub(crate) struct Counted(pub(crate) usize);

impl EventOutput for Counted {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

impl fmt::Write for Counted {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// Writes to a slice; what does not fit is counted, and left out.
pub(crate) struct Slice<'a> {
    room: &'a mut [u8],
    pub(crate) wanted: usize,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(room: &'a mut [u8]) -> Slice<'a> {
        Slice { room, wanted: 0 }
    }
}

impl EventOutput for Slice<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.wanted + bytes.len();
        if let Some(room) = self.room.get_mut(self.wanted..end) {
            room.copy_from_slice(bytes);
        }
        self.wanted = end;
    }
}
