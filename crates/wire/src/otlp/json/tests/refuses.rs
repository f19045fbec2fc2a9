//! Everything else is refused, and the answer says which field, which byte, and why.

use super::*;

#[track_caller]
fn refused(signal: Signal, json: &str) -> String {
    match translated(signal, json) {
        Ok(found) => panic!("{json} became {found:02x?}"),
        Err(error) => error.to_string(),
    }
}

/// A span's fields are judged one by one.
#[test]
fn fields_that_break_a_rule_are_named() {
    let cases = [
        (
            r#""traceId":"5b8efff798038103d269b633813fc60""#,
            "traceId: 31 hexadecimal digits instead of 32, at byte 55",
        ),
        (r#""spanId":"eee19b7ec3c1b17x""#, "spanId: `eee19b7ec3c1b17x` is not hexadecimal, at byte 54"),
        (r#""spanId":"W+4ZtT8m""#, "spanId: 8 hexadecimal digits instead of 16, at byte 54"),
        (
            r#""kind":"SPAN_KIND_SERVER""#,
            "kind: `SPAN_KIND_SERVER` is a name: enums are integers in OTLP/JSON, at byte 52",
        ),
        (r#""kind":1.5"#, "kind: `1.5` is not an enum's number, at byte 51"),
        (r#""kind":2147483648"#, "kind: `2147483648` is not an enum's number, at byte 51"),
        (r#""name":5"#, "name: there is a number instead of a string, at byte 51"),
        (
            r#""name":"a","name":"b""#,
            "name: this was given before, or something that excludes it, at byte 62",
        ),
        (
            r#""startTimeUnixNano":"-1""#,
            "startTimeUnixNano: `-1` is not a whole number from 0 to 18446744073709551615, at byte 65",
        ),
        (
            r#""startTimeUnixNano":18446744073709551616"#,
            "startTimeUnixNano: `18446744073709551616` is not a whole number from 0 to 18446744073709551615, at byte 64",
        ),
        (
            r#""startTimeUnixNano":"""#,
            "startTimeUnixNano: `` is not a whole number from 0 to 18446744073709551615, at byte 65",
        ),
        (
            r#""droppedEventsCount":4294967296"#,
            "droppedEventsCount: `4294967296` is not a whole number from 0 to 4294967295, at byte 65",
        ),
        (r#""flags":01"#, "flags: `01` is not a number as JSON has it, at byte 52"),
        (r#""events":{}"#, "events[0]: there is `{` instead of an array, at byte 53"),
        (r#""events":[{},null]"#, "events[1]: there is `n` instead of an object, at byte 57"),
        (r#""status":[]"#, "status: there is `[` instead of an object, at byte 53"),
        (
            r#""attributes":[{"key":"a","value":{"intValue":1,"boolValue":true}}]"#,
            "attributes[0].value.boolValue: this was given before, or something that excludes it, at byte 103",
        ),
        (
            r#""attributes":[{"key":"a","value":{"bytesValue":"a"}}]"#,
            "attributes[0].value.bytesValue: `a` is not base64, at byte 92",
        ),
        (
            r#""attributes":[{"value":{"boolValue":"true"}}]"#,
            "attributes[0].value.boolValue: there is a string instead of `true` or `false`, at byte 80",
        ),
    ];
    for (member, expected) in cases {
        let json = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{member}}}]}}]}}]}}"#);
        assert_eq!(
            refused(Signal::Traces, &json),
            format!("resourceSpans[0].scopeSpans[0].spans[0].{expected}"),
            "{json}"
        );
    }
}

/// Invalid JSON is refused, in ignored fields as well.
#[test]
fn invalid_json_is_refused() {
    let cases = [
        ("", "there is the end of the body instead of an object, at byte 0"),
        ("[]", "there is `[` instead of an object, at byte 0"),
        ("{", "there is the end of the body instead of a field's name in quotes, at byte 1"),
        ("{}{}", "the request ends before this, and `{` follows, at byte 2"),
        ("{a:1}", "there is `a` instead of a field's name in quotes, at byte 1"),
        (r#"{"a" 1}"#, "there is a number instead of `:`, at byte 5"),
        (r#"{"a":1,}"#, "there is `}` instead of a field's name in quotes, at byte 7"),
        (r#"{"a":[1,]}"#, "there is `]` instead of a value, at byte 8"),
        (r#"{"a":[1}"#, "there is `}` instead of `,` or `]`, at byte 7"),
        (r#"{"a":{"b":1]"#, "there is `]` instead of `,` or `}`, at byte 11"),
        (r#"{"a":nul}"#, "there is `n` instead of a value, at byte 5"),
        (r#"{"a":.5}"#, "there is `.` instead of a value, at byte 5"),
        (r#"{"a":-}"#, "`-` is not a number as JSON has it, at byte 5"),
        (r#"{"a":1e}"#, "`1e` is not a number as JSON has it, at byte 5"),
        (r#"{"a":"b}"#, "there is the end of the body instead of the end of a string, at byte 8"),
        ("{\"a\":\"\n\"}", "a string has the control character 0x0a, which must be escaped, at byte 6"),
        (r#"{"a":"\x"}"#, "a string has an escape that JSON does not know, at byte 6"),
        (r#"{"a":"\u12g4"}"#, "a string has an escape that JSON does not know, at byte 6"),
        (
            r#"{"resourceSpans":[{"schemaUrl":"x\ud83e"}]}"#,
            "resourceSpans[0].schemaUrl: a string has one half of a surrogate pair, at byte 33",
        ),
        (
            r#"{"resourceSpans":[{"schemaUrl":"\udd80\ud83e"}]}"#,
            "resourceSpans[0].schemaUrl: a string has one half of a surrogate pair, at byte 32",
        ),
        (
            r#"{"resourceSpans":[{"schemaUrl":"\ud83e\u0041"}]}"#,
            "resourceSpans[0].schemaUrl: a string has one half of a surrogate pair, at byte 32",
        ),
        (r#"{"\q":1}"#, "a string has an escape that JSON does not know, at byte 2"),
        (r#"{"resourceSpans":[}"#, "resourceSpans[0]: there is `}` instead of an object, at byte 18"),
        (r#"{"resourceSpans":[{},]}"#, "resourceSpans[1]: there is `]` instead of an object, at byte 21"),
        (r#"{"resourceSpans":[]"#, "there is the end of the body instead of `,` or `}`, at byte 19"),
        (r#"{"resourceSpans":[],"resourceSpans":null}"#, ""),
    ];
    for (json, expected) in cases {
        if expected.is_empty() {
            assert!(translated(Signal::Traces, json).is_ok());
        } else {
            assert_eq!(refused(Signal::Traces, json), expected, "{json}");
        }
    }
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(4097), "]".repeat(4097));
    assert_eq!(refused(Signal::Traces, &deep), "this nests too deeply, at byte 4101");
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(4096), "]".repeat(4096));
    assert!(translated(Signal::Traces, &deep).is_ok());
}

/// Text that is not UTF-8 is refused wherever it is.
#[test]
fn text_that_is_not_utf8_is_refused() {
    let error = translate(Signal::Logs, b"{\"a\":\"\xc3\"}", &mut [0; 600]).unwrap_err();
    assert_eq!(error.to_string(), "the text is not valid UTF-8, at byte 6");
}

/// Profiles are refused in words, and a room that is too small is an error like any other.
#[test]
fn profiles_and_a_full_output_are_errors() {
    assert_eq!(
        refused(Signal::Profiles, "{}"),
        "profiles are read as protobuf only: their schema is still in development"
    );
    let json = br#"{"resourceLogs":[{"schemaUrl":"https://example.com"}]}"#;
    for room in 0..23 {
        let error = translate(Signal::Logs, json, &mut vec![0; room]).unwrap_err();
        assert_eq!(*error.kind(), OtlpJsonErrorKind::Full, "{room}");
    }
}

/// Long paths are cut.
#[test]
fn paths_are_bounded() {
    let open = r#"{"arrayValue":{"values":["#.repeat(40);
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{open}"#);
    let error = translated(Signal::Logs, &json).unwrap_err();
    assert!(error.path().len() < 300 && error.path().ends_with('…'), "{error}");
}
