//! Which lines are refused, and what is said about them.

use super::*;

/// A line's error, or nothing.
fn error(line: &str) -> Option<String> {
    let mut found = errors(&format!("{METADATA}\n{line}\n"));
    assert!(found.len() <= 1);
    found.pop()
}

#[track_caller]
fn refused(line: &str, words: &str) {
    assert_eq!(error(line).as_deref(), Some(words), "{line}");
}

#[track_caller]
fn accepted(line: &str) {
    assert_eq!(error(line), None, "{line}");
}

const TRANSACTION: &str = r#""id":"1","trace_id":"2","type":"t","duration":1.5,"span_count":{"started":0}"#;
const SPAN: &str = r#""id":"1","trace_id":"2","parent_id":"3","name":"n","type":"t","duration":1"#;

/// Required fields must be present, with a value.
#[test]
fn required_fields_are_required() {
    accepted(&format!(r#"{{"transaction":{{{TRANSACTION}}}}}"#));
    for field in ["id", "trace_id", "type", "duration", "span_count"] {
        let without = TRANSACTION.replace(&format!("\"{field}\""), "\"other\"");
        let words = format!("validation error: transaction: '{field}' required");
        refused(&format!(r#"{{"transaction":{{{without}}}}}"#), &words);
    }
    let line = format!(r#"{{"transaction":{{{}}}}}"#, TRANSACTION.replace(r#""1""#, "null"));
    refused(&line, "validation error: transaction: 'id' required");
    let line = format!(r#"{{"transaction":{{{}}}}}"#, TRANSACTION.replace("started", "dropped"));
    refused(&line, "validation error: transaction: 'started' required");
    refused(
        &format!(r#"{{"span":{{{SPAN}}}}}"#),
        "validation error: span: requires at least one of 'start';'timestamp'",
    );
    accepted(&format!(r#"{{"span":{{{SPAN},"start":2.5}}}}"#));
    accepted(&format!(r#"{{"span":{{{SPAN},"timestamp":2}}}}"#));
    refused(r#"{"error":{"id":"1"}}"#, "validation error: error: requires at least one of 'exception';'log'");
    refused(
        r#"{"error":{"id":"1","exception":{"handled":true}}}"#,
        "validation error: error: requires at least one of 'message';'type'",
    );
    accepted(r#"{"error":{"id":"1","log":{"message":""}}}"#);
    let line = r#"{"error":{"id":"1","log":{"message":""},"transaction_id":"2"}}"#;
    refused(line, "validation error: error: 'trace_id' required");
    let line = r#"{"error":{"id":"1","log":{"message":""},"trace_id":"2"}}"#;
    refused(line, "validation error: error: 'parent_id' required");
    accepted(r#"{"log":{}}"#);
}

/// An object in which nothing is said is as good as none.
#[test]
fn empty_objects_say_nothing() {
    accepted(&format!(r#"{{"transaction":{{{TRANSACTION},"context":{{"request":{{}},"service":{{}}}}}}}}"#));
    let line = format!(r#"{{"transaction":{{{TRANSACTION},"context":{{"request":{{"url":{{}}}}}}}}}}"#);
    accepted(&line);
    refused(
        r#"{"error":{"id":"1","exception":{}}}"#,
        "validation error: error: requires at least one of 'exception';'log'",
    );
}

/// Known fields have a type, and lengths are counted in characters.
#[test]
fn known_fields_have_a_type() {
    let with = |field: &str| format!(r#"{{"transaction":{{{TRANSACTION},{field}}}}}"#);
    for field in [
        r#""name":null"#,
        r#""outcome":"success""#,
        r#""sampled":false"#,
        r#""unknown":[{"a":[]}]"#,
        r#""context":{"user":{"id":7},"tags":{"a":1,"b":"c","d":true,"e":null},"custom":{"cart":[1,2]}}"#,
        r#""sample_rate":1.6e-09"#,
    ] {
        accepted(&with(field));
    }
    for (field, words) in [
        (r#""name":1"#, "decode error: transaction: 'name' has a value of another type"),
        (r#""sampled":1"#, "decode error: transaction: 'sampled' has a value of another type"),
        (r#""timestamp":1.5"#, "decode error: transaction: 'timestamp' has a value of another type"),
        (r#""timestamp":"2024""#, "decode error: transaction: 'timestamp' has a value of another type"),
        (r#""outcome":"perhaps""#, "validation error: transaction: 'outcome' has no permitted value"),
        (r#""context":[]"#, "decode error: transaction: 'context' has a value of another type"),
        (r#""context":{"tags":{"a":{}}}"#, "decode error: transaction: 'tags' has a value of another type"),
    ] {
        refused(&with(field), words);
    }
    let negative = TRANSACTION.replace("1.5", "-1.5");
    let words = "validation error: transaction: 'duration' has no permitted value";
    refused(&format!(r#"{{"transaction":{{{negative}}}}}"#), words);
    accepted(&with(&format!(r#""name":"{}""#, "é".repeat(1024))));
    accepted(&with(&format!(r#""name":"{}""#, "\\u00e9".repeat(1024))));
    let words = "validation error: transaction: 'name' is longer than 1024 characters";
    refused(&with(&format!(r#""name":"{}""#, "é".repeat(1025))), words);
    refused(&with(&format!(r#""name":"{}""#, "\\u00e9".repeat(1025))), words);
}

/// Of a field that is given twice the last value counts, and `null` is none.
#[test]
fn the_last_of_a_field_counts() {
    let with = |field: &str| format!(r#"{{"transaction":{{{TRANSACTION},{field}}}}}"#);
    accepted(&with(r#""id":"3","id":null"#));
    let line = with(r#""id":"3","id":null,"name":"a","name":"b""#);
    let body = format!("{METADATA}\n{line}\n");
    let event = events(body.as_bytes()).nth(1).unwrap().fields();
    let text = |name: &[u8]| event.find(name).and_then(Value::text).and_then(Text::plain);
    assert_eq!((text(b"id"), text(b"name")), (Some(&b"3"[..]), Some(&b"b"[..])));
    refused(&with(r#""id":1"#), "decode error: transaction: 'id' has a value of another type");
}

/// Additional properties can be appended to the metadata.
#[test]
fn the_metadata_end_at_their_brace() {
    let body = format!("\n {} \n{{\"log\":{{}}}}\n", METADATA.replace("}}}}", "}},\"x\":{}} ,\"y\":{}}"));
    let end = metadata_end(body.as_bytes()).unwrap();
    let (before, after) = body.split_at(end);
    assert_eq!(&after[..2], "} ");
    let longer = format!("{before},\"more\":{{\"a\":1}}{after}");
    check(longer.as_bytes(), LONGEST_LINE, |_, error| panic!("{error}")).unwrap();
    let metadata = events(longer.as_bytes()).next().unwrap().fields();
    assert!(metadata.at(&[b"more", b"a"]).is_some() && metadata.at(&[b"service", b"name"]).is_some());
}

/// A metric has a value, or values and counts.
#[test]
fn samples_have_values() {
    let with = |sample: &str| format!(r#"{{"metricset":{{"samples":{{{sample}}}}}}}"#);
    accepted(&with(""));
    accepted(&with(r#""a.b":{"value":1.6e+09}"#));
    accepted(&with(r#""a.b":{"values":[1,2],"counts":[3,4],"type":"histogram"}"#));
    refused(&with(r#""a":{}"#), "validation error: metricset: requires at least one of 'value';'values'");
    refused(&with(r#""a":{"values":[1]}"#), "validation error: metricset: 'counts' required");
    refused(&with(r#""a*":{"value":1}"#), "validation error: metricset: 'samples' has no permitted value");
    refused(&with(r#""a":1"#), "decode error: metricset: 'samples' has a value of another type");
    refused(r#"{"metricset":{}}"#, "validation error: metricset: 'samples' required");
}

/// Lines that are not events are refused one by one.
#[test]
fn lines_are_events() {
    refused("[]", "decode error: a line must be an object with one member");
    refused("{}", "decode error: a line must be an object with one member");
    refused("{", "decode error: line: no valid JSON at byte 1");
    refused(r#"{"other":{}}"#, "did not recognize object type");
    refused(r#"{"x":tru}"#, "decode error: line: no valid JSON at byte 5");
    refused(r#"{"log":[]}"#, "decode error: log: 'log' has a value of another type");
    refused(r#"{"log":{}"#, "decode error: log: no valid JSON at byte 9");
    refused(r#"{"log":{}} x"#, "decode error: log: no valid JSON at byte 11");
    refused(r#"{"log":{"a":"\x"}}"#, "decode error: log: no valid JSON at byte 13");
    refused("{\"log\":{\"a\":\"\u{1}\"}}", "decode error: log: no valid JSON at byte 13");
    refused(METADATA, "did not recognize object type: metadata belong in the first line alone");
    let deep = |depth: usize| format!(r#"{{"log":{{"a":{}{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
    accepted(&deep(MAX_DEPTH - 2));
    refused(&deep(MAX_DEPTH - 1), "decode error: log: values nest too deep at byte 138");
    let long = format!(r#"{{"log":{{"message":"{}"}}}}"#, "x".repeat(LONGEST_LINE));
    refused(&long, "event exceeded the permitted size");
}

/// Lines that are not UTF-8 are refused; those around them are not.
#[test]
fn lines_are_utf8() {
    let mut body = format!("{METADATA}\n{{\"log\":{{\"message\":\"é\"}}}}\n").into_bytes();
    let good = body.len();
    body.extend_from_slice(b"{\"log\":{\"message\":\"\xff\"}}\n");
    let bad = body.len();
    body.extend_from_slice(b"{\"log\":{}}");
    let mut refused = Vec::new();
    let counts = check(&body, LONGEST_LINE, |range, error| refused.push((range, error.kind)));
    let largest_item = METADATA.len() + 1 + "{\"log\":{\"message\":\"é\"}}\n".len();
    assert_eq!(counts, Ok(Counts { events: 2, logs: 2, refused: 1, largest_item, ..Counts::default() }));
    assert_eq!(refused, [(good..bad, EventErrorKind::Utf8)]);
}

/// Nothing can be used of a body without metadata; blank lines are none.
#[test]
fn the_metadata_come_first() {
    let refused = |body: &str| check(body.as_bytes(), LONGEST_LINE, |_, _| panic!("of the body"));
    assert_eq!(refused(""), Ok(Counts::default()));
    assert_eq!(refused("\n \r\n"), Ok(Counts::default()));
    assert_eq!(
        refused(&format!("\r\n{METADATA}\r\n\r\n{{\"log\":{{}}}}\r\n")),
        Ok(Counts { events: 1, logs: 1, largest_item: METADATA.len() + 2 + 12, ..Counts::default() })
    );
    let said = |body: &str| refused(body).unwrap_err().error.to_string();
    assert_eq!(said("{\"log\":{}}"), "validation error: 'metadata' required before the first log");
    assert_eq!(said("{\"metadata\":{}}"), "validation error: metadata: 'service' required");
    let line = METADATA.replace("shop", "a/b");
    assert_eq!(said(&line), "validation error: metadata: 'name' has no permitted value");
    let line = METADATA.replace("\"agent\"", "\"language\":{},\"agent\"");
    assert_eq!(refused(&line), Ok(Counts::default()));
}
