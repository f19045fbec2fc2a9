#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::testing::Value;
use proptest::prelude::*;

const TIME: u64 = 1_700_000_000;

fn record(number: u64) -> Value {
    Value::map([("message", Value::text("hello")), ("number", Value::Unsigned(number))])
}

fn entry(number: u64) -> Value {
    Value::Array(vec![Value::Unsigned(TIME + number), record(number)])
}

fn packed(count: u64) -> Vec<u8> {
    (0..count).flat_map(|number| entry(number).encoded()).collect()
}

fn read(message: &Value) -> Result<Option<(Vec<Entry<'static>>, Message<'static>)>, MessageError> {
    let bytes: &'static [u8] = message.encoded().leak();
    let Some(message) = Message::read(bytes)? else { return Ok(None) };
    let (mut entries, mut all) = (Entries::new(message.entries, message.packing), Vec::new());
    while message.packing != Packing::Gzip
        && let Some(entry) = entries.read_next()?
    {
        all.push(entry);
    }
    Ok(Some((all, message)))
}

/// A tag is copied to each record, so its length is bounded.
#[test]
fn a_long_tag_is_refused() {
    let message = |len| Value::Array(vec![Value::Text(vec![b't'; len]), Value::Bytes(packed(1))]);
    assert_eq!(read(&message(1024)).unwrap().unwrap().1.tag.len(), 1024);
    assert_eq!(read(&message(1025)).map(|_| ()), Err(MessageError::Tag));
}

#[test]
fn every_mode_is_read() {
    let options = Value::map([("chunk", Value::text("abc")), ("size", Value::Unsigned(3))]);
    let entries = (0..3).map(entry).collect();
    for (members, packing) in [
        (vec![Value::Array(entries)], Packing::Entries),
        (vec![Value::Bytes(packed(3))], Packing::Entries),
        // Old clients pack into a string.
        (vec![Value::Text(packed(3))], Packing::Entries),
    ] {
        for options in [None, Some(options.clone()), Some(Value::Nil)] {
            let has_options = matches!(options, Some(Value::Map(_)));
            let members = [vec![Value::text("app")], members.clone(), options.into_iter().collect()].concat();
            let (entries, message) = read(&Value::Array(members)).unwrap().unwrap();
            assert_eq!((message.tag, message.packing), (&b"app"[..], packing));
            assert_eq!(message.chunk, has_options.then_some(&b"abc"[..]));
            assert_eq!(message.size, has_options.then_some(3));
            assert_eq!(entries.len(), 3);
            for (number, read) in (0..).zip(&entries) {
                assert_eq!(
                    (read.time_ns, read.record),
                    ((TIME + number) * 1_000_000_000, &record(number).encoded()[..])
                );
            }
            assert_eq!(entries.iter().map(|entry| entry.len).sum::<usize>(), message.entries.len());
        }
    }
    let single = vec![Value::text("app"), Value::Unsigned(TIME), record(7), options];
    let (entries, message) = read(&Value::Array(single)).unwrap().unwrap();
    assert_eq!((message.packing, message.chunk, entries.len()), (Packing::Single, Some(&b"abc"[..]), 1));
    assert_eq!(entries[0].record, record(7).encoded());
}

#[test]
fn compressed_records_are_known() {
    let compressed = |how: &str| {
        let options = Value::map([("compressed", Value::text(how))]);
        read(&Value::Array(vec![Value::text("app"), Value::Bytes(vec![0x1f, 0x8b]), options]))
    };
    assert_eq!(compressed("gzip").unwrap().unwrap().1.packing, Packing::Gzip);
    assert_eq!(compressed("zstd").unwrap_err(), MessageError::Compression);
}

#[test]
fn times_are_read_with_nanoseconds() {
    let event_time = [[0x65, 0x53, 0xf1, 0x00], [0, 0, 1, 2]].concat();
    let of = |time| {
        let (entries, _) = read(&Value::Array(vec![Value::text("a"), time, record(0)])).unwrap().unwrap();
        (entries[0].time_ns, entries[0].record.is_empty())
    };
    assert_eq!(of(Value::Extension(0, event_time.clone())), (1_700_000_000_000_000_258, false));
    assert_eq!(of(Value::Double(1.5)), (1_500_000_000, false));
    assert_eq!(of(Value::Int(-5)), (0, false));
    assert_eq!(of(Value::Unsigned(u64::MAX)), (u64::MAX, false));
    // Neither of them is a time.
    assert_eq!(of(Value::Extension(1, event_time)), (0, true));
    assert_eq!(of(Value::Extension(0, vec![1, 2, 3])), (0, true));
    // Fluent Bit sends metadata beside the time.
    let with_metadata = Value::Array(vec![Value::Unsigned(2), Value::map([])]);
    let entry = Value::Array(vec![with_metadata, record(0)]);
    let (entries, _) =
        read(&Value::Array(vec![Value::text("a"), Value::Array(vec![entry])])).unwrap().unwrap();
    assert_eq!(entries[0].time_ns, 2_000_000_000);
}

/// An entry that is none does not cost the others.
#[test]
fn malformed_entries_are_passed_over() {
    let entries = vec![Value::Nil, Value::Array(vec![Value::Unsigned(1)]), entry(5), Value::text("x")];
    let (entries, _) = read(&Value::Array(vec![Value::text("a"), Value::Array(entries)])).unwrap().unwrap();
    let are_empty: Vec<bool> = entries.iter().map(|entry| entry.record.is_empty()).collect();
    assert_eq!(are_empty, [true, true, false, true]);
}

#[test]
fn what_is_no_message_is_refused() {
    assert_eq!(read(&Value::Nil).unwrap(), None);
    for (value, error) in [
        (Value::text("x"), MessageError::Msgpack(MsgpackError::WrongType)),
        (Value::Array(vec![]), MessageError::Members),
        (Value::Array(vec![Value::text("a"), Value::Unsigned(1)]), MessageError::Members),
        (
            Value::Array(vec![Value::Nil, Value::Array(vec![])]),
            MessageError::Msgpack(MsgpackError::WrongType),
        ),
        (
            Value::Array(vec![Value::text("a"), Value::Array(vec![]), Value::Nil, Value::Nil]),
            MessageError::Members,
        ),
    ] {
        assert_eq!(read(&value).unwrap_err(), error, "{value:?}");
    }
    let long = Value::map([("chunk", Value::text(&"x".repeat(300)))]);
    let message = Value::Array(vec![Value::text("a"), Value::Array(vec![]), long]);
    assert_eq!(read(&message).unwrap_err(), MessageError::Chunk);
}

proptest! {
    #[test]
    fn any_value_is_a_message_or_is_refused(value in crate::testing::value()) {
        let message = Value::Array(vec![Value::text("a"), value.clone()]);
        let _read = read(&message);
        let bytes = value.encoded();
        let mut entries = Entries::new(&bytes, Packing::Entries);
        prop_assert!(matches!(entries.read_next(), Ok(Some(_))));
        prop_assert!(matches!(entries.read_next(), Ok(None)));
    }
}
