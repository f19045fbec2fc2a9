//! Pieces have what the whole has, in its order, each with its own resource, scope and metric; bodies join by
//! being put one after the other.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use proptest::prelude::*;
use prost::Message;

use super::{captured, strategies};
use crate::otlp::{Signal, check, items, joinable, split};

/// Each item, encoded, with all that encloses it.
type Flat = Vec<Vec<u8>>;

fn flat_traces(raw: &[u8]) -> Flat {
    let mut flat = Vec::new();
    for mut resource in ExportTraceServiceRequest::decode(raw).unwrap().resource_spans {
        for mut scope in std::mem::take(&mut resource.scope_spans) {
            for span in std::mem::take(&mut scope.spans) {
                flat.push([resource.encode_to_vec(), scope.encode_to_vec(), span.encode_to_vec()].concat());
            }
        }
    }
    flat
}

fn flat_logs(raw: &[u8]) -> Flat {
    let mut flat = Vec::new();
    for mut resource in ExportLogsServiceRequest::decode(raw).unwrap().resource_logs {
        for mut scope in std::mem::take(&mut resource.scope_logs) {
            for record in std::mem::take(&mut scope.log_records) {
                flat.push([resource.encode_to_vec(), scope.encode_to_vec(), record.encode_to_vec()].concat());
            }
        }
    }
    flat
}

fn flat_metrics(raw: &[u8]) -> Flat {
    let mut flat = Vec::new();
    for mut resource in ExportMetricsServiceRequest::decode(raw).unwrap().resource_metrics {
        for mut scope in std::mem::take(&mut resource.scope_metrics) {
            for metric in std::mem::take(&mut scope.metrics) {
                for metric in points(metric) {
                    flat.push(
                        [resource.encode_to_vec(), scope.encode_to_vec(), metric.encode_to_vec()].concat(),
                    );
                }
            }
        }
    }
    flat
}

/// A metric for each point of a metric.
fn points(metric: Metric) -> Vec<Metric> {
    let of = |data| Metric { data: Some(data), ..metric.clone() };
    macro_rules! each {
        ($kind:ident, $data:expr) => {{
            let mut data = $data.clone();
            std::mem::take(&mut data.data_points)
                .into_iter()
                .map(|point| {
                    let mut data = data.clone();
                    data.data_points = vec![point];
                    of(Data::$kind(data))
                })
                .collect()
        }};
    }
    match &metric.data {
        None => vec![],
        Some(Data::Gauge(data)) => each!(Gauge, data),
        Some(Data::Sum(data)) => each!(Sum, data),
        Some(Data::Histogram(data)) => each!(Histogram, data),
        Some(Data::ExponentialHistogram(data)) => each!(ExponentialHistogram, data),
        Some(Data::Summary(data)) => each!(Summary, data),
    }
}

/// Splits `raw`, looks at each piece, and returns what is in all of them.
fn pieces(signal: Signal, raw: &[u8], max_bytes: usize, flat: fn(&[u8]) -> Flat) -> Flat {
    let mut found = Vec::new();
    for piece in split(signal, raw, max_bytes) {
        let mut out = Vec::new();
        piece.write(&mut out).unwrap();
        assert_eq!(out.len(), piece.len());
        if let Some(bytes) = piece.as_bytes() {
            assert_eq!(bytes, out);
        }
        assert_eq!(check(signal, &out).unwrap().items, piece.items());
        assert_eq!(items(signal, &out), piece.items());
        let most = max_bytes.max(piece.enclosing() + max_bytes / 8);
        assert!(out.len() <= most || piece.items() <= 1, "{} bytes of {max_bytes}", out.len());
        found.extend(flat(&out));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pieces_of_traces_are_the_whole(request in strategies::traces(), max_bytes in 0usize..3000) {
        let raw = request.encode_to_vec();
        prop_assert_eq!(pieces(Signal::Traces, &raw, max_bytes, flat_traces), flat_traces(&raw));
    }

    #[test]
    fn pieces_of_logs_are_the_whole(request in strategies::logs(), max_bytes in 0usize..2000) {
        let raw = request.encode_to_vec();
        prop_assert_eq!(pieces(Signal::Logs, &raw, max_bytes, flat_logs), flat_logs(&raw));
    }

    #[test]
    fn pieces_of_metrics_are_the_whole(request in strategies::metrics(), max_bytes in 0usize..2000) {
        let raw = request.encode_to_vec();
        prop_assert_eq!(pieces(Signal::Metrics, &raw, max_bytes, flat_metrics), flat_metrics(&raw));
    }

    /// A piece of one item is never longer than what was said of the largest, and that is said of no more than there is.
    #[test]
    fn the_largest_item_is_known(
        traces in strategies::traces(),
        logs in strategies::logs(),
        metrics in strategies::metrics(),
    ) {
        let bodies = [
            (Signal::Traces, traces.encode_to_vec()),
            (Signal::Logs, logs.encode_to_vec()),
            (Signal::Metrics, metrics.encode_to_vec()),
        ];
        for (signal, raw) in bodies {
            let largest = split(signal, &raw, 0).filter(|piece| piece.items() > 0).map(|piece| piece.len()).max();
            let said = check(signal, &raw).unwrap().largest_item;
            // Of what is cut each level's length may need a few bytes less; an item without fields counts as one byte.
            let lengths = 5 * 4 + 1;
            prop_assert!(said >= largest.unwrap_or(0) && said <= largest.map_or(0, |len| len + lengths), "{said} {largest:?}");
            prop_assert!(said <= raw.len() + 1);
        }
    }

    /// The skipped part and its rest together are the whole, wherever the split is.
    #[test]
    fn skipping_items_leaves_the_rest(request in strategies::metrics(), passed in 0u64..40, max_bytes in 0usize..2000) {
        let raw = request.encode_to_vec();
        let mut rest = split(Signal::Metrics, &raw, max_bytes);
        rest.skip_items(passed);
        let left: u64 = rest.map(|piece| piece.items()).sum();
        prop_assert_eq!(left, items(Signal::Metrics, &raw).saturating_sub(passed));
        let mut rest = split(Signal::Metrics, &raw, max_bytes);
        rest.skip_items(passed);
        let mut found = Vec::new();
        for piece in rest {
            let mut out = Vec::new();
            piece.write(&mut out).unwrap();
            found.extend(flat_metrics(&out));
        }
        let whole = flat_metrics(&raw);
        prop_assert_eq!(found, whole.get(passed as usize..).unwrap_or_default());
    }

    /// Joining is concatenation.
    #[test]
    fn bodies_join(one in strategies::traces(), two in strategies::traces()) {
        prop_assert!(joinable(Signal::Traces));
        let joined = [one.encode_to_vec(), two.encode_to_vec()].concat();
        let merged = [one.resource_spans, two.resource_spans].concat();
        let merged = ExportTraceServiceRequest { resource_spans: merged }.encode_to_vec();
        prop_assert_eq!(&merged, &joined);
        prop_assert!(check(Signal::Traces, &joined).is_ok());
    }
}

#[test]
fn a_request_that_fits_is_one_borrowed_piece() {
    for (signal, raw) in [
        (Signal::Traces, captured::TRACES),
        (Signal::Metrics, captured::METRICS),
        (Signal::Logs, captured::LOGS),
    ] {
        let pieces: Vec<_> = split(signal, raw, raw.len()).collect();
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].as_bytes(), Some(raw));
        assert_eq!(pieces[0].items(), check(signal, raw).unwrap().items);
    }
}

/// A resource that is longer than a piece may be is not said once for each of thousands of items.
#[test]
fn a_large_resource_is_not_repeated_for_each_item() {
    let attribute = |len: usize| {
        let value = opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue("x".repeat(len));
        opentelemetry_proto::tonic::common::v1::KeyValue {
            key: "k".into(),
            value: Some(opentelemetry_proto::tonic::common::v1::AnyValue { value: Some(value) }),
            ..Default::default()
        }
    };
    let spans = |count: usize| vec![opentelemetry_proto::tonic::trace::v1::Span::default(); count];
    let scope = |count| opentelemetry_proto::tonic::trace::v1::ScopeSpans {
        spans: spans(count),
        ..Default::default()
    };
    let resource = opentelemetry_proto::tonic::resource::v1::Resource {
        attributes: vec![attribute(10_000)],
        ..Default::default()
    };
    for scope_spans in [vec![scope(5000)], vec![scope(1); 5000]] {
        let group = opentelemetry_proto::tonic::trace::v1::ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans,
            ..Default::default()
        };
        let raw = ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec();
        let found: Vec<_> = split(Signal::Traces, &raw, 8 << 10).collect();
        assert_eq!(found.iter().map(|piece| piece.items()).sum::<u64>(), 5000);
        assert!(found.len() < raw.len() / 900, "{} pieces", found.len());
        assert!(found.iter().all(|piece| piece.len() < 10_000 + (2 << 10)));
    }
}

/// The dictionary of profiles goes into every piece.
#[test]
fn profiles_are_cut_with_their_dictionary() {
    let scope = [0x12, 6, 0x12, 1, 0, 0x12, 1, 0];
    // Two profiles in one scope of one resource, then a dictionary of two bytes.
    let raw = [&[0x0a, 8][..], &scope, &[0x12, 2, 0x2a, 0]].concat();
    let found: Vec<_> = split(Signal::Profiles, &raw, 0)
        .map(|piece| {
            let mut out = Vec::new();
            piece.write(&mut out).unwrap();
            out
        })
        .collect();
    let piece = [0x12, 2, 0x2a, 0, 0x0a, 5, 0x12, 3, 0x12, 1, 0].to_vec();
    assert_eq!(found, [piece.clone(), piece]);
    assert!(!joinable(Signal::Profiles));
}
