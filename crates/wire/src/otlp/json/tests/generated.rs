//! Random requests in every form of JSON.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use proptest::prelude::*;
use prost::Message as _;

use super::super::schema::{LOGS, METRICS, Message, TRACES};
use super::model::{Dice, request};
use super::*;

fn compare(signal: Signal, root: &'static Message, seed: u64) -> Result<Vec<u8>, TestCaseError> {
    let node = request(root, seed);
    let mut json = String::new();
    node.json(None, &mut Dice(seed), &mut json);
    let mut expected = Vec::new();
    node.protobuf(None, &mut expected);
    let found = translated(signal, &json);
    prop_assert!(found.is_ok(), "{}\n{json}", found.unwrap_err());
    let found = found.unwrap();
    prop_assert!(found == expected, "{json}\n{found:02x?}\n{expected:02x?}");
    // Cut anywhere it is refused, and changed anywhere it is at least no reason to panic.
    let cut = (0..json.len()).nth(seed as usize % json.len()).filter(|&at| json.is_char_boundary(at));
    if let Some(cut) = cut {
        prop_assert!(translated(signal, &json[..cut]).is_err() || json[cut..].trim().is_empty());
    }
    let mut damaged = json.clone().into_bytes();
    let at = seed as usize % damaged.len();
    damaged[at] = (seed >> 17) as u8;
    let mut out = vec![0; max_len(&damaged)];
    if let Err(error) = translate(signal, &damaged, &mut out) {
        prop_assert!(!matches!(error.kind(), OtlpJsonErrorKind::Full));
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Traces become what a plain encoder writes, and prost reads them.
    #[test]
    fn traces_become_protobuf(seed in any::<u64>()) {
        let found = compare(Signal::Traces, &TRACES, seed)?;
        prop_assert!(Traces::decode(&found[..]).is_ok());
    }

    /// Logs become what a plain encoder writes, and prost reads them.
    #[test]
    fn logs_become_protobuf(seed in any::<u64>()) {
        let found = compare(Signal::Logs, &LOGS, seed)?;
        prop_assert!(Logs::decode(&found[..]).is_ok());
    }

    /// Metrics become what a plain encoder writes, and prost reads them.
    #[test]
    fn metrics_become_protobuf(seed in any::<u64>()) {
        let found = compare(Signal::Metrics, &METRICS, seed)?;
        prop_assert!(Metrics::decode(&found[..]).is_ok());
    }

    /// Text that is nothing but pieces of JSON is translated or refused, within the room that was asked for.
    #[test]
    fn anything_is_translated_or_refused(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "0", "1e5", "-", ".", "null", "true", " ",
            "\"resourceMetrics\":[{", "\"scopeMetrics\":[{", "\"metrics\":[{", "\"histogram\":{", "\"dataPoints\":[{",
            "\"explicitBounds\":[", "\"bucketCounts\":[", "0,", "0,0,0,0,0,0,0,0,", "}]}", "\"resource\":{",
            "\"attributes\":[{", "\"key\":", "\"value\":{", "\"arrayValue\":{\"values\":[{", "\"kvlistValue\":{",
        ]), 0..60),
    ) {
        let json = format!("{{\"resourceMetrics\":[{{\"scopeMetrics\":[{{\"metrics\":[{{{}", pieces.concat());
        if let Err(error) = translated(Signal::Metrics, &json) {
            prop_assert!(!matches!(error.kind(), OtlpJsonErrorKind::Full), "{}", json);
        }
    }
}
