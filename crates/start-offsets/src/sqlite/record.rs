//! Records of SQLite: a header of types, then the values.

/// A value of a column. Floating-point numbers and blobs are not told apart from nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Integer(i64),
    Text(String),
    Other,
}

impl Value {
    pub(crate) fn integer(&self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The values of a record; `None` if it is damaged.
pub(super) fn values(record: &[u8]) -> Option<Vec<Value>> {
    let (header, types) = varint(record)?;
    let header = usize::try_from(header).ok()?;
    let mut types = types.get(..header.checked_sub(record.len() - types.len())?)?;
    let mut content = record.get(header..)?;
    let mut values = Vec::new();
    while !types.is_empty() {
        let (kind, rest) = varint(types)?;
        types = rest;
        let (value, rest) = value(kind, content)?;
        content = rest;
        values.push(value);
    }
    Some(values)
}

fn value(kind: u64, content: &[u8]) -> Option<(Value, &[u8])> {
    let len = match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => (kind - 12) / 2,
    };
    let (bytes, rest) = content.split_at_checked(usize::try_from(len).ok()?)?;
    let value = match kind {
        8 => Value::Integer(0),
        9 => Value::Integer(1),
        1..=6 => Value::Integer(signed(bytes)),
        13.. if kind % 2 == 1 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::Other,
    };
    Some((value, rest))
}

/// A big-endian integer of at most eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    bytes.iter().fold(if is_negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte))
}

/// A variable-length integer, and what is behind it.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        let rest = bytes.get(at + 1..)?;
        if at == 8 {
            return Some((value << 8 | u64::from(*byte), rest));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_lengths() {
        let record = [&[7, 0, 1, 2, 3, 9, 17][..], &[0xff, 0x01, 0x02, 0x80, 0, 0], b"ab"].concat();
        let expected = [
            Value::Other,
            Value::Integer(-1),
            Value::Integer(258),
            Value::Integer(-8_388_608),
            Value::Integer(1),
            Value::Text("ab".to_owned()),
        ];
        assert_eq!(values(&record).unwrap(), expected);
        assert_eq!(values(&[7, 0, 1]), None);
        assert_eq!(varint(&[0x81, 0x00]), Some((128, &[][..])));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, &[][..])));
        assert_eq!(varint(&[0xff; 8]), None);
    }
}
