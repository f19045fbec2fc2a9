use super::*;
use crate::fields::FieldSet;
use proptest::prelude::*;

const LIMITS: EntryLimits =
    EntryLimits { message_bytes: 1000, field_bytes: 200, fields_bytes: 2000, fields: 20 };

type Pairs = Vec<(String, Vec<u8>)>;

fn all() -> Fields {
    Fields { set: FieldSet::All, names: Vec::new() }
}

/// Writes entries as `journalctl` does: values with newlines or other control characters by their length.
fn write(entries: &[Pairs], always_binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        for (name, value) in entry {
            out.extend_from_slice(name.as_bytes());
            if always_binary || value.iter().any(|byte| *byte < b' ') {
                out.push(b'\n');
                out.extend_from_slice(&(value.len() as u64).to_le_bytes());
            } else {
                out.push(b'=');
            }
            out.extend_from_slice(value);
            out.push(b'\n');
        }
        out.push(b'\n');
    }
    out
}

fn read(decoder: &mut Decoder, text: &[u8], chunk: usize) -> Result<Vec<Pairs>, Malformed> {
    let mut entries = Vec::new();
    for mut chunk in text.chunks(chunk) {
        while !chunk.is_empty() {
            let progress = decoder.feed(chunk)?;
            chunk = &chunk[progress.consumed..];
            if progress.is_complete {
                let pairs = decoder.entry().fields().map(|field| (field.name.into(), field.value.into()));
                entries.push(pairs.collect());
            }
        }
    }
    Ok(entries)
}

fn pair(name: &str, value: &[u8]) -> (String, Vec<u8>) {
    (name.into(), value.into())
}

#[test]
fn reads_what_journalctl_writes() {
    let text = b"__CURSOR=s=1;i=2\n_PID=7\nMESSAGE\n\x0d\0\0\0\0\0\0\0line 3\nsecond\n\n__CURSOR=s=1;i=3\nMESSAGE=a=b\n\n";
    let expected = [
        vec![pair("__CURSOR", b"s=1;i=2"), pair("_PID", b"7"), pair("MESSAGE", b"line 3\nsecond")],
        vec![pair("__CURSOR", b"s=1;i=3"), pair("MESSAGE", b"a=b")],
    ];
    assert_eq!(read(&mut Decoder::new(LIMITS, all()), text, 5).unwrap(), expected);
}

#[test]
fn keeps_what_is_wanted() {
    let text = b"MESSAGE=m\n_SECRET\n\x02\0\0\0\0\0\0\0\n\n\n_PID=7\nOTHER=x\n\n";
    let mapped = Fields { set: FieldSet::Mapped, names: Vec::new() };
    let expected = [vec![pair("MESSAGE", b"m"), pair("_PID", b"7")]];
    assert_eq!(read(&mut Decoder::new(LIMITS, mapped), text, 4).unwrap(), expected);
}

#[test]
fn large_fields_are_cut_and_the_message_has_memory_of_its_own() {
    let mut entry = vec![pair("COREDUMP", &[0; 5000])];
    entry.extend((0..30).map(|number| pair(&format!("F{number}"), &[b'x'; 150])));
    entry.push(pair("MESSAGE", &[b'm'; 1500]));
    let mut decoder = Decoder::new(EntryLimits { fields: 18, ..LIMITS }, all());
    let text = write(&[entry], false);
    let progress = decoder.feed(&text).unwrap();
    assert!(progress.is_complete && progress.consumed == text.len());
    let found = decoder.entry();
    let (first, last) = (found.fields().next().unwrap(), found.fields().last().unwrap());
    assert_eq!((first.value.len(), first.is_cut), (200, true));
    assert_eq!((last.name, last.value.len(), last.is_cut), ("MESSAGE", 1000, true));
    assert!(found.left_out > 10, "{}", found.left_out);
    assert!(found.bytes.len() <= LIMITS.bytes());
}

#[test]
fn odd_lines_are_passed_over() {
    let text = format!("\n\nlower=x\n{}=y\nMESSAGE=m\n\n", "N".repeat(300));
    assert_eq!(
        read(&mut Decoder::new(LIMITS, all()), text.as_bytes(), 3).unwrap(),
        [vec![pair("MESSAGE", b"m")]]
    );
    let claim = b"MESSAGE\n\xff\xff\xff\xff\xff\xff\xff\x7f";
    assert_eq!(read(&mut Decoder::new(LIMITS, all()), claim, 3), Err(Malformed(i64::MAX as u64)));
}

fn entries() -> impl Strategy<Value = Vec<Pairs>> {
    let value = prop_oneof![
        "[ -~é]{0,30}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..30)
    ];
    let field = ("[A-Z][A-Z0-9_]{0,15}", value);
    proptest::collection::vec(proptest::collection::vec(field, 1..8), 0..6)
}

proptest! {
    /// Entries come back as they were written, whatever is in them and wherever the chunks end.
    #[test]
    fn entries_come_back(entries in entries(), chunk in 1usize..50, always_binary: bool) {
        let text = write(&entries, always_binary);
        prop_assert_eq!(read(&mut Decoder::new(LIMITS, all()), &text, chunk).unwrap(), entries);
    }

    /// Whatever comes, an entry keeps within its limits, and every byte is used up.
    #[test]
    fn any_bytes_keep_within_the_limits(
        text in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'='), Just(b'A'), Just(0)], 0..400),
        chunk in 1usize..50,
    ) {
        let limits = EntryLimits { message_bytes: 20, field_bytes: 8, fields_bytes: 40, fields: 3 };
        let mut decoder = Decoder::new(limits, all());
        if let Ok(found) = read(&mut decoder, &text, chunk) {
            prop_assert!(found.iter().all(|entry| entry.len() <= 3 && !entry.is_empty()));
            prop_assert!(decoder.entry.bytes.len() <= limits.bytes() + LONGEST_NAME);
            prop_assert_eq!(Ok(found), read(&mut Decoder::new(limits, all()), &text, usize::MAX));
        }
    }
}
