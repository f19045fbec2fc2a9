//! A request that passes the check is written as JSON that `serde_json` reads, with all its items, in every layout and in
//! windows of any length; the pieces of a request have the same lines as the request; OTLP/JSON reads back as the same
//! request. Writing any other body ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::value::RawValue;
use tidegate_wire::otlp::json::{Encoder, GROWTH, Layout, Next, max_len, translate};
use tidegate_wire::otlp::{Signal, check, items, split};
use tidegate_wire::output::SliceOutput;

// The normal form that the tests of `wire` compare.
#[path = "."]
mod otlp {
    use super::*;
    #[path = "../../crates/wire/src/otlp/tests/normal.rs"]
    pub(super) mod normal;

    pub(super) fn traces(body: &[u8]) -> Option<Vec<u8>> {
        Some(normal::traces(ExportTraceServiceRequest::decode(body).ok()?).encode_to_vec())
    }

    pub(super) fn logs(body: &[u8]) -> Option<Vec<u8>> {
        Some(normal::logs(ExportLogsServiceRequest::decode(body).ok()?).encode_to_vec())
    }

    pub(super) fn metrics(body: &[u8]) -> Option<Vec<u8>> {
        Some(normal::metrics(ExportMetricsServiceRequest::decode(body).ok()?).encode_to_vec())
    }
}

/// The names that stand once in each request, in bytes.
const NAMES: usize = 1024;

/// Writes the request into windows of `window` bytes, and longer ones where these are too short.
fn written(signal: Signal, raw: &[u8], layout: Layout, window: usize) -> Vec<u8> {
    let (mut encoder, mut out, mut len) = (Encoder::new(signal, raw, layout), Vec::new(), window);
    loop {
        let mut space = vec![0; len];
        let progress = encoder.write(&mut space);
        out.extend_from_slice(&space[..progress.written]);
        match progress.next {
            Next::Done => return out,
            Next::More => assert!(progress.written > 0, "{progress:?}"),
            Next::Space => len = if progress.written == 0 { 2 * len + 1 } else { window },
        }
    }
}

fn lines(json: &[u8]) -> Vec<Box<RawValue>> {
    let objects = serde_json::Deserializer::from_slice(json).into_iter::<Box<RawValue>>();
    objects.map(|object| object.expect("every line is JSON")).collect()
}

/// Every layout, of a request that passes the check.
fn is_written_whole(signal: Signal, raw: &[u8]) -> Vec<u8> {
    let all = [Layout::Request, Layout::Lines, Layout::Array].map(|layout| {
        let json = written(signal, raw, layout, 1 << 20);
        assert!(written(signal, raw, layout, raw.len() % 61) == json, "{layout:?} depends on the window");
        json
    });
    let [request, of_lines, array] = all;
    serde_json::from_slice::<Box<RawValue>>(&request).expect("a request is JSON");
    let array: Vec<Box<RawValue>> = serde_json::from_slice(&array).expect("an array is JSON");
    let objects = lines(&of_lines);
    assert_eq!(objects.len() as u64, items(signal, raw));
    assert!(objects.iter().map(|object| object.get()).eq(array.iter().map(|object| object.get())));

    let mut of_pieces = Vec::new();
    for piece in split(signal, raw, raw.len() / 4) {
        let mut body = vec![0; piece.len()];
        piece.write(&mut SliceOutput::new(&mut body)).expect("it has the length that it says");
        let json = written(signal, &body, Layout::Lines, 1 << 20);
        let most = GROWTH * body.len() + NAMES;
        assert!(piece.items() > 1 || json.len() <= most, "{} bytes became {}", body.len(), json.len());
        of_pieces.extend(json);
    }
    assert!(of_pieces == of_lines, "the pieces have other items");
    request
}

fuzz_target!(|raw: &[u8]| {
    for (signal, normal) in [
        (Signal::Traces, otlp::traces as fn(&[u8]) -> Option<Vec<u8>>),
        (Signal::Logs, otlp::logs),
        (Signal::Metrics, otlp::metrics),
    ] {
        if check(signal, raw).is_err() {
            for layout in [Layout::Request, Layout::Lines] {
                written(signal, raw, layout, 1 << 10);
            }
            continue;
        }
        let json = is_written_whole(signal, raw);
        let mut read = vec![0; max_len(&json)];
        let done = translate(signal, &json, &mut read).expect("our own reader takes it");
        let read = &read[..done.len];
        assert_eq!(done.refused, 0);
        check(signal, read).expect("what was read is valid");
        assert!(
            written(signal, read, Layout::Request, 1 << 20) == json,
            "it changes when it is read and written"
        );

        // prost merges a message that is there twice, where the last one counts for us: so it goes first. It has no
        // fields that the schema does not know, nor more than a hundred levels.
        let Some(expected) = normal(raw).filter(|body| check(signal, body).is_ok()) else { continue };
        let json = is_written_whole(signal, &expected);
        let mut read = vec![0; max_len(&json)];
        let done = translate(signal, &json, &mut read).expect("our own reader takes it");
        // JSON has one NaN of many.
        let is_nan = json.windows(5).any(|text| text == b"\"NaN\"");
        assert!(
            is_nan || normal(&read[..done.len]).as_ref() == Some(&expected),
            "the request is another one"
        );
    }
});
