//! Promise: every line is JSON, on one line and with an end, whatever is in the record.

use super::{arena, lines, meta, open, request};
use crate::{Tap, TapPoint};
use proptest::prelude::*;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_load::otlp;
use tidegate_load::protobuf::field;

const SIGNALS: [(Signal, otlp::Signal); 3] = [
    (Signal::Traces, otlp::Signal::Traces),
    (Signal::Metrics, otlp::Signal::Metrics),
    (Signal::Logs, otlp::Signal::Logs),
];

fn shown(meta: &Meta, body: &[u8]) -> Vec<serde_json::Value> {
    let tap = Tap::new(arena());
    let reading = open(&tap, "").unwrap();
    tap.offer(TapPoint::Source("otlp"), meta, Some(body));
    lines(&reading)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A record that is damaged is shown as far as it goes.
    #[test]
    fn damage_makes_no_bad_line(
        which in 0usize..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        codes in (0u8..7, 0u8..4),
    ) {
        let (signal, kind) = SIGNALS[which];
        let mut body = request(kind, 12);
        let length = body.len();
        for (at, byte) in damage {
            body[at.index(length)] = byte;
        }
        shown(&meta(signal, 12, &body), &body);
        // Nor does one that is not what it says.
        let (protocol, encoding) = (Protocol::from_u8(codes.0).unwrap(), Encoding::from_u8(codes.1).unwrap());
        shown(&Meta { protocol, encoding, ..meta(signal, 12, &body) }, &body);
    }
}

/// A request with one log record that has this body, an encoded value.
fn log(value: &[u8]) -> Vec<u8> {
    field(1, &field(2, &field(2, &field(5, value))))
}

fn text(text: &[u8]) -> Vec<u8> {
    field(1, text)
}

/// Long texts, many attributes and deep values end, and the line says that it was cut.
#[test]
fn long_and_deep_values_are_cut() {
    let mut deep = text(b"end");
    (0..200).for_each(|_| deep = field(5, &field(1, &deep)));
    let entry = [field(1, b"key"), field(2, &text(b"value"))].concat();
    let many = field(6, &field(1, &entry).repeat(10_000));
    let wide = field(5, &field(1, &text(&b"\x01".repeat(10_000))).repeat(20));
    for value in [text(&b"x".repeat(200_000)), text("ü".repeat(100_000).as_bytes()), many, wide] {
        let body = log(&value);
        let shown = shown(&meta(Signal::Logs, 1, &body), &body);
        assert_eq!((shown.len(), &shown[0]["cut"]), (1, &serde_json::json!(true)));
    }
    let body = log(&deep);
    assert_eq!(shown(&meta(Signal::Logs, 1, &body), &body).len(), 1);
}

/// Nothing in a text can steer a terminal, begin another line, or be another text than it looks like.
#[test]
fn texts_are_harmless() {
    let nasty = "a\u{1b}[2J\r\n\"\\\u{202e}\u{9b}\u{7f}\u{2028}ü";
    let body = log(&text(nasty.as_bytes()));
    let tap = Tap::new(arena());
    let reading = open(&tap, "").unwrap();
    tap.offer(TapPoint::Source("otlp"), &meta(Signal::Logs, 1, &body), Some(&body));
    let mut seen = String::new();
    reading.write_next(&mut |line| {
        seen.push_str(line);
        true
    });
    let harmless = |c: char| !c.is_control() && !matches!(c, '\u{202e}' | '\u{2028}');
    assert!(seen.trim_end().chars().all(harmless), "{seen:?}");
    let line: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(line["body"], nasty);
    let body = log(&text(b"a\xffb"));
    assert_eq!(shown(&meta(Signal::Logs, 1, &body), &body)[0]["body"], "a\u{fffd}b");
}
