//! Promise: one wrong entry refuses the whole request, with its place.

use super::model::{Entry, PushRequest, Stream, Timestamp, otlp};
use crate::loki::Format;
use prost::Message as _;

#[test]
fn json_is_refused_with_the_place_of_the_error() {
    let table = [
        ("", "there is the end of the body instead of an object, at byte 0"),
        ("[]", "there is `[` instead of an object, at byte 0"),
        (r#"{"streams":{}}"#, "there is `{` instead of an array, at byte 11"),
        (r#"{"streams":[]} x"#, "the request ends before this"),
        (
            r#"{"streams":[{"values":[[1,"a"]]}]}"#,
            "streams[0].values[0]: there is a number instead of the time as",
        ),
        (
            r#"{"streams":[{"values":[["1","a"],["-1","a"]]}]}"#,
            "streams[0].values[1]: `-1` is not a whole number",
        ),
        (r#"{"streams":[{},{"values":[["1"]]}]}"#, "streams[1].values[0]: there is `]` instead of `,`"),
        (
            r#"{"streams":[{"values":[["1",2]]}]}"#,
            "streams[0].values[0]: there is a number instead of the line",
        ),
        (
            r#"{"streams":[{"values":[["1","a",{"b":1}]]}]}"#,
            "streams[0].values[0]: there is a number instead of a",
        ),
        (
            r#"{"streams":[{"values":[["1","a",["b"]]]}]}"#,
            "streams[0].values[0]: there is `[` instead of an object",
        ),
        (
            r#"{"streams":[{"values":[["1","\x"]]}]}"#,
            "streams[0]: a string has an escape that JSON does not know",
        ),
        (
            r#"{"streams":[{"values":[["1","a"]],"stream":{"a":1}}]}"#,
            "streams[0]: there is a number instead of a",
        ),
        (
            r#"{"streams":[{"values":[["1","a"]],"stream":{"a-b":"c"}}]}"#,
            "couldn't parse labels: stream 0: `a-b` is not a label name",
        ),
        (
            r#"{"streams":[{"values":[["1","a"]],"stream":{"a":"b","a":"c"}}]}"#,
            "couldn't parse labels: stream 0: the label `a` is given twice",
        ),
        (
            r#"{"streams":[{"labels":"{a=b}","entries":[{"ts":"1970-01-01T00:00:00Z","line":""}]}]}"#,
            "couldn't parse labels: stream 0: there should be a value in quotes at byte 3 of `{a=b}`",
        ),
        (r#"{"streams":[{"entries":[{"line":"a"}]}]}"#, "stream 0, entry 0: the timestamp is not between"),
    ];
    for (body, words) in table {
        let error = otlp(Format::Json, body.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(words), "{body}: {error}");
    }
}

fn push(labels: &str, seconds: i64) -> Vec<u8> {
    let timestamp = Some(Timestamp { seconds, nanos: 0 });
    let entry = Entry { timestamp, line: "a".into(), metadata: vec![], parsed: vec![] };
    PushRequest { streams: vec![Stream { labels: labels.into(), entries: vec![entry], hash: 0 }] }
        .encode_to_vec()
}

#[test]
fn bad_labels_are_refused() {
    for labels in [
        "",
        "a",
        "{",
        "{a}",
        "{a=}",
        "{a=\"}",
        "{a=\"b\"",
        "{a=\"b\"}x",
        "{a=\"b\" c=\"d\"}",
        "{1a=\"b\"}",
        "{,}",
        "{a=\"\\q\"}",
        "{a=\"\\x1\"}",
        "{a=\"\\ud800\"}",
        "{a=\"\\400\"}",
        "{a=\"b\n\"}",
        "{a=~\"b\"}",
        "{a=\"b\",a=\"c\"}",
    ] {
        let error = otlp(Format::Protobuf, &push(labels, 1)).unwrap_err().to_string();
        assert!(error.starts_with("couldn't parse labels: stream 0: "), "{labels}: {error}");
    }
    for labels in
        ["{}", " { } ", "{a='b',}", "{ a = \"b\" , c=`\n` }", "{a=\"\\101\\x41\\u0041\\U00000041\\a\"}"]
    {
        otlp(Format::Protobuf, &push(labels, 1)).unwrap();
    }
    let many: Vec<_> = (0..129).map(|n| format!("a{n}=\"\"")).collect();
    let error = otlp(Format::Protobuf, &push(&format!("{{{}}}", many.join(",")), 1)).unwrap_err();
    assert!(error.to_string().contains("a stream may have 128 labels"), "{error}");
}

#[test]
fn times_that_otlp_cannot_say_are_refused() {
    for seconds in [-1, i64::MAX, i64::MIN, 18_446_744_074] {
        let error = otlp(Format::Protobuf, &push("{}", seconds)).unwrap_err().to_string();
        assert!(error.starts_with("stream 0, entry 0: the timestamp"), "{error}");
    }
}

#[test]
fn damaged_protobuf_is_refused() {
    let body = push("{a=\"b\"}", 1);
    for len in 1..body.len() {
        otlp(Format::Protobuf, &body[..len]).unwrap_err();
    }
}
