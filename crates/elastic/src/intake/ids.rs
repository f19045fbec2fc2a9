//! Ids: bytes where an agent sent hexadecimal digits, and else bytes that are the same for the same text.

use super::writer::{AttributeName, MessageWriter};
use tidegate_wire::intake::{Text, Value};
use xxhash_rust::xxh3::Xxh3;

/// Writes an id of `N` bytes in field `field`, and as the attribute `name` in `attributes` what it was where that cannot
/// be seen from the bytes. An empty one is none if there `may_be_none`.
pub(super) fn id<const N: usize>(
    out: &mut MessageWriter<'_>,
    field: u8,
    value: Option<Value<'_>>,
    may_be_none: bool,
    attributes: u8,
    name: &'static str,
) {
    let Some(Value::Text(text)) = value else { return };
    let (bytes, is_exact) = bytes::<N>(text);
    if !text.is_empty() || !may_be_none {
        out.field(field, &bytes);
    }
    if !is_exact {
        out.attribute(attributes, AttributeName::fixed(name), Value::Text(text));
    }
}

/// The bytes of an id, and whether it can be written again from them.
pub(super) fn bytes<const N: usize>(text: Text<'_>) -> ([u8; N], bool) {
    let mut bytes = [0; N];
    let plain = text.plain().unwrap_or_default();
    if !plain.is_empty() && plain.len() <= 2 * N && plain.iter().all(u8::is_ascii_hexdigit) {
        // Shorter ones are the end of longer ones, as 64 bits of a trace's id are.
        for (at, digit) in plain.iter().rev().enumerate() {
            let value = char::from(*digit).to_digit(16).unwrap_or_default().to_le_bytes()[0];
            if let Some(byte) = bytes.iter_mut().rev().nth(at / 2) {
                *byte |= value << (at % 2 * 4);
            }
        }
        let is_exact = plain.len() == 2 * N && !plain.iter().any(u8::is_ascii_uppercase);
        return (bytes, is_exact);
    }
    let mut hash = Xxh3::new();
    text.pieces(|piece| hash.update(piece));
    for (to, from) in bytes.iter_mut().zip(hash.digest128().to_le_bytes()) {
        *to = from;
    }
    (bytes, false)
}
