//! Protobuf messages in memory, of which the lengths are put in behind.

use tidegate_wire::proto::write::Varint;

/// A message under construction, and the messages that are open in it.
///
/// A nested message gets one byte for its length when it begins. One that became longer than 127 bytes is moved for the
/// others when it ends: that is once for each level, of which telemetry has few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

/// Where an open message begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open(usize);

impl Message {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Fields that are encoded already, or the content of a string.
    pub(super) fn put(&mut self, encoded: &[u8]) {
        self.0.extend_from_slice(encoded);
    }

    /// A number without a field's key, as packed fields have them.
    pub(super) fn raw_varint(&mut self, value: u64) {
        self.put(Varint::new(value).as_bytes());
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.raw_varint(u64::from(field << 3 | wire));
    }

    pub(super) fn varint(&mut self, field: u32, value: u64) {
        self.key(field, 0);
        self.raw_varint(value);
    }

    /// A number where it is not 0, which is what a missing one is.
    pub(super) fn varint_unless_0(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(field, value);
        }
    }

    /// An enumeration or `int32` where it is not 0.
    pub(super) fn int32_unless_0(&mut self, field: u32, value: i32) {
        self.varint_unless_0(field, i64::from(value).cast_unsigned());
    }

    /// `sint32`, where it is not 0.
    pub(super) fn sint32_unless_0(&mut self, field: u32, value: i32) {
        self.varint_unless_0(field, zigzag(i64::from(value)));
    }

    pub(super) fn fixed64(&mut self, field: u32, bits: u64) {
        self.key(field, 1);
        self.put(&bits.to_le_bytes());
    }

    pub(super) fn fixed64_unless_0(&mut self, field: u32, bits: u64) {
        if bits != 0 {
            self.fixed64(field, bits);
        }
    }

    pub(super) fn fixed64_if(&mut self, field: u32, bits: Option<u64>) {
        if let Some(bits) = bits {
            self.fixed64(field, bits);
        }
    }

    pub(super) fn fixed32_unless_0(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.key(field, 5);
            self.put(&value.to_le_bytes());
        }
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.raw_varint(bytes.len() as u64);
        self.put(bytes);
    }

    pub(super) fn bytes_unless_empty(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes(field, bytes);
        }
    }

    /// A text of a column, where there is one and it is not empty.
    pub(super) fn text(&mut self, field: u32, text: Option<&str>) {
        self.bytes_unless_empty(field, text.unwrap_or_default().as_bytes());
    }

    /// Begins a nested message, string or packed field.
    pub(super) fn begin(&mut self, field: u32) -> Open {
        self.key(field, 2);
        self.0.push(0);
        Open(self.0.len())
    }

    /// Ends it. Those that began later have ended.
    pub(super) fn end(&mut self, Open(start): Open) {
        let content = self.0.len().saturating_sub(start);
        let length = Varint::new(content as u64);
        let length = length.as_bytes();
        let more = length.len().saturating_sub(1);
        if more > 0 {
            self.0.resize(start + content + more, 0);
            self.0.copy_within(start..start + content, start + more);
        }
        if let Some(space) = start.checked_sub(1).and_then(|from| self.0.get_mut(from..=from + more)) {
            space.copy_from_slice(length);
        }
    }
}

/// How `sint32` and `sint64` are encoded.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_wire::proto::Messages;

    /// A length has as many bytes as it needs, whatever it was when the message began.
    #[test]
    fn nested_messages_have_their_lengths() {
        for len in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let text = vec![b'x'; len];
            let mut message = Message::default();
            message.put(b"\x08\x01");
            let outer = message.begin(2);
            let inner = message.begin(300);
            message.put(&text);
            message.end(inner);
            message.end(outer);
            message.varint(3, 7);
            let bytes = message.into_bytes();
            let outer = Messages::new(&bytes, 2).next().unwrap();
            assert_eq!(Messages::new(outer, 300).next(), Some(&text[..]), "{len}");
            assert!(bytes.ends_with(b"\x18\x07"));
        }
    }
}
