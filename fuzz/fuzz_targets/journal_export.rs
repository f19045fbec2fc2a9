//! The journal's export format: chunks make no difference, an entry keeps within its limits, and a record can be made of
//! it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_journald::{Decoder, EntryLimits, FieldSet, Fields, Malformed, record_of, resource_of};

const LIMITS: EntryLimits =
    EntryLimits { message_bytes: 200, field_bytes: 50, fields_bytes: 500, fields: 10 };

type Pairs = Vec<(String, Vec<u8>, bool)>;

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, text) = input;
    let whole = read(text, usize::MAX);
    assert_eq!(read(text, usize::from(chunk).max(1)), whole);
    for entry in whole.0 {
        assert!(!entry.is_empty() && entry.len() <= LIMITS.fields);
        let bytes: usize = entry.iter().map(|(name, value, _)| name.len() + value.len()).sum();
        assert!(bytes <= LIMITS.bytes());
    }
});

fn read(text: &[u8], chunk: usize) -> (Vec<Pairs>, Option<Malformed>) {
    let fields = Fields { set: FieldSet::All, names: Vec::new() };
    let (mut decoder, mut entries) = (Decoder::new(LIMITS, fields.clone()), Vec::new());
    for mut chunk in text.chunks(chunk) {
        while !chunk.is_empty() {
            let progress = match decoder.feed(chunk) {
                Ok(progress) => progress,
                Err(malformed) => return (entries, Some(malformed)),
            };
            assert!(progress.consumed > 0);
            chunk = &chunk[progress.consumed..];
            if progress.is_complete {
                let entry = decoder.entry();
                entries.push(entry.fields().map(|f| (f.name.into(), f.value.into(), f.is_cut)).collect());
                let _ = resource_of(entry);
                let record = record_of(entry, &fields, |_| Ok::<_, ()>(())).unwrap();
                assert!(record.severity <= 24 && record.body.len() <= LIMITS.message_bytes);
            }
        }
    }
    (entries, None)
}
