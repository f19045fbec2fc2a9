//! Protobuf into memory that is paid for, in one pass: a message is measured when it is closed.

use std::ops::Range;
use tidegate_wire::intake::{Text, Value};
use tidegate_wire::proto::write::{Varint, varint_len};

/// Writes fields one after the other. Once there is no room, nothing more is written, and [`end`](Self::end) says so.
pub(crate) struct MessageWriter<'o> {
    space: &'o mut [u8],
    len: usize,
    /// Up to where there is room. What is behind it is kept free for messages to be ended.
    most: usize,
    is_full: bool,
}

/// The part of a piece that is for items in any case, however long what encloses them is.
const FOR_ITEMS: usize = 8;

/// How long a piece may become that is to have `most` bytes, and has `enclosing` before its first item: before the
/// messages around its items are ended.
pub(crate) fn limit(most: usize, enclosing: usize) -> usize {
    most.saturating_sub(ENDING).max(enclosing.saturating_add(most / FOR_ITEMS))
}

/// Space reserved to close the messages around an item: the lengths of groups, scopes, and metrics.
const ENDING: usize = 32;

/// A message that is being written: where its first field is.
#[derive(Debug, Clone, Copy)]
#[must_use = "a message that is not closed has no length"]
pub(crate) struct OpenMessage(usize);

/// An attribute's name: a fixed part, and names from the event set off by dots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttributeName<'n, 'a> {
    pub(crate) prefix: &'static str,
    pub(crate) path: &'n [Text<'a>],
}

impl AttributeName<'_, '_> {
    pub(crate) const fn fixed(name: &'static str) -> AttributeName<'static, 'static> {
        AttributeName { prefix: name, path: &[] }
    }

    fn put(self, out: &mut MessageWriter<'_>) {
        out.bytes(self.prefix.as_bytes());
        for (at, text) in self.path.iter().enumerate() {
            if at > 0 {
                out.bytes(b".");
            }
            out.text(*text);
        }
    }
}

impl<'o> MessageWriter<'o> {
    /// A writer that fills its space as far as there is room for whole items, and ends what encloses them.
    pub(crate) fn new(space: &'o mut [u8]) -> Self {
        let most = space.len().saturating_sub(ENDING);
        MessageWriter { space, len: 0, most, is_full: false }
    }

    /// A writer for all that there is, or nothing.
    pub(crate) fn whole(space: &'o mut [u8]) -> Self {
        let most = space.len();
        MessageWriter { space, len: 0, most, is_full: false }
    }

    /// How much was written.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes back what was written since it was so long, because there was no room for all of it.
    pub(crate) fn reset_to(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.is_full = false;
    }

    /// As [`reset_to`](Self::reset_to), but there is still no room: nothing more is to be begun.
    pub(crate) fn take_back(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.is_full = true;
    }

    /// Has nothing more written beyond so many bytes, but for what ends the messages that are begun.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = self.most.min(most);
    }

    /// How much was written; nothing when there was no room for all of it.
    pub(crate) fn end(self) -> Option<usize> {
        (!self.is_full).then_some(self.len)
    }

    /// Whether there is no room any more, so that there is no use in going on.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Where the next field will be.
    pub(crate) fn mark(&self) -> OpenMessage {
        OpenMessage(self.len)
    }

    /// Takes back what was written since.
    pub(crate) fn back_to(&mut self, OpenMessage(len): OpenMessage) {
        self.len = self.len.min(len);
    }

    /// Ends a message around items, for which room was kept free.
    pub(crate) fn close_enclosing(&mut self, mark: OpenMessage) {
        let most = std::mem::replace(&mut self.most, self.space.len());
        self.close(mark);
        self.most = most;
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        match self.space.get_mut(self.len..end) {
            Some(space) if !self.is_full && end <= self.most => {
                space.copy_from_slice(bytes);
                self.len = end;
            }
            _ => self.is_full = true,
        }
    }

    /// Writes once more what is at this place. Nothing around it may have been closed since.
    pub(crate) fn again(&mut self, written: Range<usize>) {
        let end = self.len.saturating_add(written.len());
        if self.is_full || end > self.most || written.end > self.len {
            self.is_full = true;
            return;
        }
        self.space.copy_within(written, self.len);
        self.len = end;
    }

    /// A text without its escapes.
    #[inline]
    pub(crate) fn text(&mut self, text: Text<'_>) {
        match text.plain() {
            Some(plain) => self.bytes(plain),
            None => text.pieces(|piece| self.bytes(piece)),
        }
    }

    /// The key of a field below 16.
    #[inline]
    fn key(&mut self, field: u8, wire: u8) {
        self.bytes(&[field << 3 | wire]);
    }

    pub(crate) fn varint(&mut self, field: u8, value: u64) {
        self.key(field, 0);
        self.bytes(Varint::new(value).as_bytes());
    }

    pub(crate) fn fixed64(&mut self, field: u8, bits: u64) {
        self.key(field, 1);
        self.bytes(&bits.to_le_bytes());
    }

    /// A string or bytes, even of none.
    pub(crate) fn field(&mut self, field: u8, bytes: &[u8]) {
        self.key(field, 2);
        self.bytes(Varint::new(bytes.len() as u64).as_bytes());
        self.bytes(bytes);
    }

    /// A string without its escapes.
    pub(crate) fn text_field(&mut self, field: u8, text: Text<'_>) {
        match text.plain() {
            Some(plain) => self.field(field, plain),
            None => {
                let mark = self.open(field);
                self.text(text);
                self.close(mark);
            }
        }
    }

    /// Begins a nested message.
    #[inline]
    pub(crate) fn open(&mut self, field: u8) -> OpenMessage {
        // Most messages are short: their length takes one byte.
        self.bytes(&[field << 3 | 2, 0]);
        OpenMessage(self.len)
    }

    /// Ends it: what was written since is moved where its length takes more room than was left.
    #[inline]
    pub(crate) fn close(&mut self, OpenMessage(start): OpenMessage) {
        if self.is_full {
            // It may never have been begun: what is at its place is somebody else's.
            return;
        }
        let len = self.len.saturating_sub(start);
        if len < 0x80 {
            if let Some(byte) = start.checked_sub(1).and_then(|at| self.space.get_mut(at)) {
                *byte = len.to_le_bytes()[0];
            }
            return;
        }
        self.close_long(start, len);
    }

    fn close_long(&mut self, start: usize, len: usize) {
        let more = usize::try_from(varint_len(len as u64)).unwrap_or(10).saturating_sub(1);
        let end = self.len.saturating_add(more);
        if self.is_full || end > self.most {
            self.is_full = true;
            return;
        }
        self.space.copy_within(start..self.len, start + more);
        self.len = end;
        let at = start.saturating_sub(1);
        for (to, from) in self.space.iter_mut().skip(at).zip(Varint::new(len as u64).as_bytes()) {
            *to = *from;
        }
    }

    /// An attribute: a plain value as what it is, anything else as its JSON. What says nothing is left out.
    pub(crate) fn attribute(&mut self, field: u8, name: AttributeName<'_, '_>, value: Value<'_>) {
        let says_nothing = match value {
            Value::Null => true,
            Value::Object(object) => object.is_empty(),
            Value::Array(array) => array.values().next().is_none(),
            _ => false,
        };
        if says_nothing {
            return;
        }
        self.with_value(field, name, |out| out.plain(value));
    }

    /// An attribute whose `AnyValue` is what `put` writes.
    pub(crate) fn with_value(&mut self, field: u8, name: AttributeName<'_, '_>, put: impl FnOnce(&mut Self)) {
        let pair = self.open(field);
        let key = self.open(1);
        name.put(self);
        self.close(key);
        let any = self.open(2);
        put(self);
        self.close(any);
        self.close(pair);
    }

    /// The fields of an `AnyValue`.
    pub(crate) fn plain(&mut self, value: Value<'_>) {
        match value {
            Value::Null => {}
            Value::Bool(value) => self.varint(2, u64::from(value)),
            Value::Number(number) => match number.integer() {
                Some(integer) => self.varint(3, integer.cast_unsigned()),
                None => self.fixed64(4, number.double().to_bits()),
            },
            Value::Text(text) => self.text_field(1, text),
            Value::Array(array) => self.field(1, array.raw()),
            Value::Object(object) => self.field(1, object.raw()),
        }
    }
}
