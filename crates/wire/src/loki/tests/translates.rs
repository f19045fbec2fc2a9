//! Promise: each stream is a resource and each entry a record, in both encodings, as `prost` and `serde_json` read them;
//! and the room that is measured is the room that is needed.

use super::model::{Model, NOW, json, protobuf, records, streams, text, texts, translated};
use crate::loki::Format;
use crate::loki::names::attribute_of;
use proptest::prelude::*;

/// Names with their values.
type Texts = Vec<(String, String)>;

/// For each record its resource, and its time, line and attributes.
fn expected(streams: &[Model]) -> Vec<(Texts, (u64, String, Texts))> {
    let resource = |stream: &Model| {
        let labels = stream.labels.iter();
        labels
            .map(|(name, value)| {
                let name = attribute_of(name.as_bytes());
                (String::from_utf8_lossy(name).into_owned(), value.clone())
            })
            .collect::<Vec<_>>()
    };
    let record = |(time, line, metadata): &(u64, String, std::collections::BTreeMap<String, String>)| {
        (*time, line.clone(), metadata.clone().into_iter().collect())
    };
    let of = |stream: &Model| {
        stream.entries.iter().map(|entry| (resource(stream), record(entry))).collect::<Vec<_>>()
    };
    streams.iter().flat_map(of).collect()
}

proptest! {
    #[test]
    fn both_encodings_become_the_same_records(streams in streams()) {
        let from_json = translated(Format::Json, &json(&streams)).unwrap();
        let from_protobuf = translated(Format::Protobuf, &protobuf(&streams)).unwrap();
        prop_assert_eq!(&from_json, &from_protobuf);
        let found: Vec<_> = records(&from_json)
            .into_iter()
            .map(|(resource, record)| {
                assert_eq!(record.observed_time_unix_nano, NOW);
                let line = text(record.body.as_ref());
                (resource, (record.time_unix_nano, line, texts(&record.attributes)))
            })
            .collect();
        prop_assert_eq!(found, expected(&streams));
    }

    /// Whatever the bytes are, nothing panics, and what is accepted is OTLP.
    #[test]
    fn nonsense_is_harmless(
        streams in streams(),
        cut in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        at in any::<prop::sample::Index>(),
    ) {
        for (format, mut body) in
            [(Format::Json, json(&streams)), (Format::Protobuf, protobuf(&streams))]
        {
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = byte;
                _ = translated(format, &body);
                _ = translated(format, &body[..cut.index(body.len())]);
            }
        }
    }
}

#[test]
fn levels_and_trace_ids_are_fields_too() {
    let body = br#"{"streams":[{"values":[
        ["1","a",{"level":"WARN","trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"0102030405060708"}],
        ["2","b"],
        ["3","c",{"trace_id":"00000000000000000000000000000000","severity_number":"17"}, 5]
        ],"stream":{"detected_level":"info"}}]}"#;
    let found = records(&translated(Format::Json, body).unwrap());
    let fields: Vec<_> = found
        .iter()
        .map(|(_, record)| (record.severity_number, record.severity_text.as_str(), record.trace_id.len()))
        .collect();
    assert_eq!(fields, [(13, "WARN", 16), (9, "info", 0), (17, "", 0)]);
    assert_eq!(found[0].1.span_id, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(texts(&found[0].1.attributes).len(), 3, "they stay attributes");
}

#[test]
fn text_that_is_not_utf8_gets_replacement_characters() {
    let line = b"caf\xe9 \xff";
    let mut entry = vec![0x12, line.len() as u8];
    entry.extend(line);
    let labels = br#"{a="\xff\u00e9"}"#;
    let mut stream = vec![0x0a, labels.len() as u8];
    stream.extend(labels);
    stream.extend([0x12, entry.len() as u8]);
    stream.extend(entry);
    let mut body = vec![0x0a, stream.len() as u8];
    body.extend(stream);
    let found = records(&translated(Format::Protobuf, &body).unwrap());
    assert_eq!(text(found[0].1.body.as_ref()), "caf\u{fffd} \u{fffd}");
    assert_eq!(found[0].0, [("a".to_owned(), "\u{fffd}é".to_owned())]);
    let body = b"{\"streams\":[{\"stream\":{},\"values\":[[\"1\",\"caf\xe9 \xff\"]]}]}";
    let found = records(&translated(Format::Json, body).unwrap());
    assert_eq!(text(found[0].1.body.as_ref()), "caf\u{fffd} \u{fffd}");
}

#[test]
fn the_form_of_the_first_versions_is_read() {
    let body = br#"{"streams":[{"labels":"{job=\"it's \\\"a\\\"\", b=`c\\n`,}",
        "entries":[{"ts":"1970-01-01T01:00:01.5+01:00","line":"x","other":[1]}]}]}"#;
    let found = records(&translated(Format::Json, body).unwrap());
    assert_eq!(found[0].0, [("job".into(), "it's \"a\"".into()), ("b".into(), "c\\n".into())]);
    assert_eq!(found[0].1.time_unix_nano, 1_500_000_000);
}

#[test]
fn nothing_is_a_request() {
    for body in [&b"{}"[..], br#"{"streams":null}"#, br#"{"streams":[{"stream":{"a":"b"},"values":[]},{}]}"#]
    {
        assert_eq!(translated(Format::Json, body).unwrap().resource_logs, []);
    }
    assert_eq!(translated(Format::Protobuf, b"").unwrap().resource_logs, []);
    let empty = protobuf(&[Model { labels: [].into(), entries: vec![] }]);
    assert_eq!(translated(Format::Protobuf, &empty).unwrap().resource_logs, []);
}
