#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::testing::{Value, value};
use proptest::prelude::*;

/// Reads all of a value, as a second implementation wrote it.
fn read_back(cursor: &mut Cursor<'_>) -> Value {
    match cursor.token().unwrap() {
        Token::Nil => Value::Nil,
        Token::Bool(value) => Value::Bool(value),
        Token::Int(value) => Value::Int(value),
        Token::Unsigned(value) => Value::Unsigned(value),
        Token::Double(value) => Value::Double(value),
        Token::Text(text) => Value::Text(text.to_vec()),
        Token::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Token::Extension(kind, bytes) => Value::Extension(kind, bytes.to_vec()),
        Token::Array(len) => Value::Array((0..len).map(|_| read_back(cursor)).collect()),
        Token::Map(len) => Value::Map((0..len).map(|_| (read_back(cursor), read_back(cursor))).collect()),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in value()) {
        let bytes = value.encoded();
        let mut cursor = Cursor::new(&bytes);
        prop_assert_eq!(read_back(&mut cursor), value);
        prop_assert!(cursor.rest().is_empty());
    }

    /// However the bytes arrive, the scan ends where the value does, and never expects more than there is.
    #[test]
    fn the_end_of_a_value_is_found(value in value(), behind in any::<[u8; 3]>(), steps in prop::collection::vec(1..9usize, 1..20)) {
        let bytes = value.encoded();
        let all = [&bytes[..], &behind].concat();
        let (mut scan, mut seen) = (Scan::default(), 0);
        for step in steps.iter().cycle() {
            let found = scan.advance(&all[..seen]).unwrap();
            prop_assert!(scan.least() <= bytes.len() as u64, "{} of {}", scan.least(), bytes.len());
            if let Some(end) = found {
                prop_assert_eq!(end, bytes.len());
                break;
            }
            prop_assert!(seen < bytes.len());
            seen = (seen + step).min(all.len());
        }
        prop_assert_eq!(Cursor::new(&all).value().unwrap(), &bytes[..]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut cursor = Cursor::new(&bytes);
        while cursor.token().is_ok() {}
        if let Ok(value) = Cursor::new(&bytes).value() {
            prop_assert!(!value.is_empty() && value.len() <= bytes.len());
        }
    }
}

#[test]
fn depth_is_bounded() {
    let deep = |levels: usize| [vec![0x91; levels], vec![0xc0]].concat();
    assert_eq!(Cursor::new(&deep(MAX_DEPTH)).value().unwrap().len(), MAX_DEPTH + 1);
    assert_eq!(Cursor::new(&deep(MAX_DEPTH + 1)).value(), Err(MsgpackError::TooDeep));
}

/// A length of 4 GiB is known before its bytes come.
#[test]
fn a_declared_length_is_known_at_once() {
    for head in
        [&[0xdb, 0xff, 0xff, 0xff, 0xff][..], &[0xdd, 0xff, 0xff, 0xff, 0xff], &[0x91, 0xdf, 0x80, 0, 0, 0]]
    {
        let mut scan = Scan::default();
        assert_eq!(scan.advance(head).unwrap(), None);
        assert!(scan.least() >= u64::from(u32::MAX), "{}", scan.least());
    }
    assert_eq!(Scan::default().advance(&[0xc1]), Err(MsgpackError::Unassigned));
}
