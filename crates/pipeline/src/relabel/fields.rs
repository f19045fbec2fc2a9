//! The fields of a checked body, by their places.

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u32,
    /// Whether it has a length.
    pub(super) has_length: bool,
    /// The begin of its tag.
    pub(super) start: usize,
    /// The begin of its length or value.
    pub(super) length: usize,
    /// The begin of its payload; of its value where it has no length.
    pub(super) payload: usize,
    pub(super) end: usize,
}

/// The field at byte `at` of `body`, which ends at `end` at the latest. `None` at the end, or before something malformed.
#[inline(always)]
pub(super) fn field(body: &[u8], at: usize, end: usize) -> Option<Field> {
    let bytes = body.get(at..end)?;
    if bytes.is_empty() {
        return None;
    }
    if let &[tag @ 8..0x80, len @ 0..0x80, ..] = bytes
        && tag & 7 == 2
    {
        let (payload, number) = (at + 2, u32::from(tag) >> 3);
        let end = payload + usize::from(len);
        return (end <= at + bytes.len()).then_some(Field {
            number,
            has_length: true,
            start: at,
            length: at + 1,
            payload,
            end,
        });
    }
    any_field(bytes, at)
}

fn any_field(bytes: &[u8], at: usize) -> Option<Field> {
    let (key, key_len) = varint(bytes)?;
    let value = bytes.get(key_len..)?;
    let (skipped, len) = match key & 7 {
        0 => (0, varint(value)?.1),
        1 => (0, 8),
        2 => {
            let (len, len_len) = varint(value)?;
            (len_len, len_len.checked_add(usize::try_from(len).ok()?)?)
        }
        5 => (0, 4),
        _ => return None,
    };
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    let length = at + key_len;
    (len <= value.len()).then_some(Field {
        number,
        has_length: key & 7 == 2,
        start: at,
        length,
        payload: length + skipped,
        end: length + len,
    })
}

/// The number that `bytes` begin with, and its length.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}
