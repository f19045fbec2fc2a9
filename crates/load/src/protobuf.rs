//! Protobuf by hand: what the generators write requests with, and tests messages that no encoder makes.

/// A length-delimited field: a text, bytes or a message.
#[must_use]
pub fn field(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(&mut out, payload.len() as u64);
    out.extend_from_slice(payload);
    out
}

/// Appends a number as it stands behind a tag or in a packed field.
pub fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
