//! An item with something wrong in it is left out, and the others are as if it had never been there.

use super::{translate_valid, translated};
use crate::otlp::Signal;

const SPAN: &str =
    r#"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"good"}"#;

fn traces(spans: &[&str]) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}],"schemaUrl":"x"}}]}}]}}"#, spans.join(" , "))
}

#[test]
fn one_bad_span_does_not_cost_the_others() {
    let expected = translated(Signal::Traces, &traces(&[SPAN, SPAN])).unwrap();
    for (bad, error) in [
        (r#"{"name":"a","traceId":"5b8e"}"#, "traceId: 4 hexadecimal digits instead of 32"),
        (r#"{"name":"a","traceId":"zb8efff798038103d269b633813fc60c"}"#, "traceId: `zb8e"),
        (
            r#"{"attributes":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"x"}]}}}],"name":"n"}"#,
            "attributes[0].value.arrayValue.values[0].intValue: `x`",
        ),
        (r#"{"name":7,"other":{"a":["\ud800"]}}"#, "name: there is a number instead of a string"),
        (r#"{"name":"\ud800"}"#, "name: a string has one half of a surrogate pair"),
        (r#"{"kind":"SPAN_KIND_SERVER"}"#, "kind: `SPAN_KIND_SERVER` is a name"),
        (r#"{"name":"a","name":"b"}"#, "name: this was given before"),
        ("null", ": there is `n` instead of an object"),
        ("[{}]", ": there is `[` instead of an object"),
    ] {
        for spans in [
            &[SPAN, bad, SPAN][..],
            &[bad, SPAN, SPAN],
            &[SPAN, SPAN, bad],
            &[SPAN, bad, bad, SPAN, bad, bad],
        ] {
            let (found, done) = translate_valid(Signal::Traces, &traces(spans)).unwrap();
            assert_eq!(found, expected, "{bad}");
            let refused = spans.iter().filter(|span| **span == bad).count();
            assert_eq!((done.refused, done.errors.len()), (refused as u64, refused.min(3)));
            let at = spans.iter().position(|span| *span == bad).unwrap();
            let text = done.errors[0].to_string();
            let place = format!("resourceSpans[0].scopeSpans[0].spans[{at}]");
            assert!(
                text.strip_prefix(&place).is_some_and(|rest| rest.trim_start_matches('.').starts_with(error)),
                "{text}"
            );
        }
    }
}

#[test]
fn one_bad_point_does_not_cost_the_others() {
    let metrics = |points: &str| {
        format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"m","sum":{{"dataPoints":[{points}],"isMonotonic":true}}}}]}}]}}]}}"#
        )
    };
    let expected = translated(Signal::Metrics, &metrics(r#"{"asInt":1},{"asInt":3}"#)).unwrap();
    let (found, done) =
        translate_valid(Signal::Metrics, &metrics(r#"{"asInt":1},{"asInt":1.5},{"asInt":3}"#)).unwrap();
    assert_eq!((found, done.refused), (expected, 1));
}

/// Errors outside of items leave no item to remove, and invalid JSON has no end.
#[test]
fn errors_that_hide_the_end_of_an_item_refuse_the_request() {
    for bad in [r#"{"name":"a"#, r#"{"name":a}"#, r#"{"name":"a"]"#, "{\"name\":\"a\u{1}\"}"] {
        assert!(translate_valid(Signal::Traces, &traces(&[SPAN, bad, SPAN])).is_err(), "{bad}");
    }
    for bad in [
        r#"{"resourceSpans":[{"resource":7}]}"#,
        r#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":1},"spans":[{}]}]}]}"#,
    ] {
        assert!(translate_valid(Signal::Traces, bad).is_err(), "{bad}");
    }
}
