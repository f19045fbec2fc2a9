//! Tags, varints and fields. Fields with their default value are the callers' to leave out.

use crate::ring::EventOutput;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

pub(super) const fn varint_len(value: u64) -> usize {
    // Seven bits to a byte, and one byte for 0.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

pub(super) fn varint<O: EventOutput>(out: &mut O, mut value: u64) {
    if value < 0x80 {
        return out.put(&[value as u8]);
    }
    let mut bytes = [0_u8; 10];
    let mut len = 0;
    for byte in &mut bytes {
        len += 1;
        *byte = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            break;
        }
        *byte |= 0x80;
    }
    out.put(bytes.get(..len).unwrap_or_default());
}

pub(super) const fn bytes_field_len(field: u32, len: usize) -> usize {
    varint_len((field << 3) as u64) + varint_len(len as u64) + len
}

pub(super) fn message_head<O: EventOutput>(out: &mut O, field: u32, len: usize) {
    if field < 16 && len < 0x80 {
        return out.put(&[(field << 3 | BYTES) as u8, len as u8]);
    }
    varint(out, u64::from(field << 3 | BYTES));
    varint(out, len as u64);
}

pub(super) fn bytes_field<O: EventOutput>(out: &mut O, field: u32, bytes: &[u8]) {
    message_head(out, field, bytes.len());
    out.put(bytes);
}

/// Left out when empty.
pub(super) fn text_field<O: EventOutput>(out: &mut O, field: u32, text: &str) {
    if !text.is_empty() {
        bytes_field(out, field, text.as_bytes());
    }
}

/// Left out when 0.
pub(super) fn varint_field<O: EventOutput>(out: &mut O, field: u32, value: u64) {
    if value != 0 {
        varint(out, u64::from(field << 3 | VARINT));
        varint(out, value);
    }
}

/// Written even when 0, as members of a `oneof` and `optional` fields are.
pub(super) fn fixed64_field<O: EventOutput>(out: &mut O, field: u32, value: u64) {
    if field < 16 {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        return out.put(&[(field << 3 | FIXED64) as u8, a, b, c, d, e, f, g, h]);
    }
    varint(out, u64::from(field << 3 | FIXED64));
    out.put(&value.to_le_bytes());
}

/// Left out when 0.
pub(super) fn time_field<O: EventOutput>(out: &mut O, field: u32, nanos: u64) {
    if nanos != 0 {
        fixed64_field(out, field, nanos);
    }
}

/// Left out when unknown.
pub(super) fn double_field<O: EventOutput>(out: &mut O, field: u32, value: Option<f64>) {
    if let Some(value) = value {
        fixed64_field(out, field, value.to_bits());
    }
}

/// Left out when 0.
pub(super) fn fixed32_field<O: EventOutput>(out: &mut O, field: u32, value: u32) {
    if value != 0 {
        varint(out, u64::from(field << 3 | FIXED32));
        out.put(&value.to_le_bytes());
    }
}

pub(super) const fn zigzag(value: i32) -> u64 {
    ((value << 1) ^ (value >> 31)) as u32 as u64
}
