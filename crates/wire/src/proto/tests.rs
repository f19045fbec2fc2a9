//! The walker agrees with prost's on every number, and its errors say where and what.

use proptest::prelude::*;

use super::write::{self, Varint};
use super::*;

proptest! {
    /// A varint reads back as written, byte for byte as prost writes it.
    #[test]
    fn varints_round_trip_as_prost_writes_them(value in any::<u64>(), shift in 0u32..64) {
        let value = value >> shift;
        let ours = Varint::new(value);
        let mut theirs = Vec::new();
        prost::encoding::encode_varint(value, &mut theirs);
        prop_assert_eq!(ours.as_bytes(), &theirs);
        prop_assert_eq!(write::varint_len(value), theirs.len() as u64);
        prop_assert_eq!(Reader::new(&theirs).raw_varint(1).unwrap(), value);
    }

    /// On arbitrary bytes the walker reads a varint exactly when prost does, and the same one.
    #[test]
    fn varints_are_judged_as_prost_judges_them(bytes in proptest::collection::vec(
        prop_oneof![Just(0x80u8), Just(0xffu8), any::<u8>()], 0..12)) {
        let ours = Reader::new(&bytes).raw_varint(1);
        let theirs = prost::encoding::decode_varint(&mut &bytes[..]);
        prop_assert_eq!(ours.ok(), theirs.ok());
    }

    /// Walking arbitrary bytes ends, without a panic and without leaving the input.
    #[test]
    fn walking_anything_ends(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        while let Ok(Some(key)) = reader.key() {
            if reader.skip(key).is_err() {
                break;
            }
            prop_assert!(reader.offset() <= bytes.len());
        }
    }
}

/// Each error names the byte and the field.
#[test]
fn errors_say_where_and_what() {
    let cases: [(&[u8], &str); 8] = [
        (&[0x08], "byte 1, field 1: the message ends inside a value"),
        (&[0x08, 0x80], "byte 1, field 1: the message ends inside a value"),
        (&[0x12, 0x05, 1], "byte 1, field 2: a length reaches past the end of the message"),
        (&[0x00], "byte 0: a field key is invalid"),
        (&[0x0b], "byte 0, field 1: a group was found, which no proto3 message has"),
        (&[0x0e], "byte 0, field 1: a field key is invalid"),
        (&[0x09, 1, 2], "byte 1, field 1: the message ends inside a value"),
        (&[0x80; 11], "byte 0: a number has more than 64 bits"),
    ];
    for (bytes, expected) in cases {
        let mut reader = Reader::new(bytes);
        let error = loop {
            match reader.key().and_then(|key| key.map(|key| reader.skip(key)).transpose()) {
                Ok(Some(())) => {}
                Ok(None) => panic!("{bytes:?} was read whole"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.to_string(), expected, "{bytes:?}");
    }
}

/// A nested reader counts offsets in the outermost message.
#[test]
fn nested_offsets_are_absolute() {
    let mut outer = Reader::new(&[0x0a, 0x03, 0x12, 0x05, 0x00]);
    let key = outer.key().unwrap().unwrap();
    let mut inner = outer.message(key).unwrap();
    let key = inner.key().unwrap().unwrap();
    assert_eq!(inner.bytes(key).unwrap_err(), Malformed::new(3, 2, Problem::Length));
}

/// A known field in another encoding is an error, not a misreading.
#[test]
fn a_wrong_wire_type_is_refused() {
    let mut reader = Reader::new(&[0x08, 0x01]);
    let key = reader.key().unwrap().unwrap();
    assert_eq!(reader.bytes(key).unwrap_err().problem, Problem::Wire);
}

/// Zigzag covers both ends of the range.
#[test]
fn zigzag_is_undone() {
    for (encoded, value) in [(0, 0), (1, -1), (2, 1), (u64::MAX, i64::MIN), (u64::MAX - 1, i64::MAX)] {
        assert_eq!(zigzag(encoded), value);
    }
}
