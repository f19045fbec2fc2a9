//! Only invalid items are removed: the rest is the request without them, byte for byte.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{Exemplar, Metric, metric::Data};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use prost::Message;

use super::{captured, strategies};
use crate::otlp::{Signal, check, retain_valid};

/// Spoils what `turns` says, and says whether it did.
struct Spoiler<'t>(std::iter::Cycle<std::slice::Iter<'t, bool>>, u64);

impl Spoiler<'_> {
    fn next(&mut self) -> bool {
        let spoils = *self.0.next().unwrap();
        self.1 += u64::from(spoils);
        spoils
    }
}

/// Those groups in which something is left, or nothing was bad.
fn kept<T>(all: Vec<T>, mut each: impl FnMut(&mut T) -> (usize, u64)) -> (Vec<T>, usize, u64) {
    let (mut left, mut items, mut refused) = (Vec::new(), 0, 0);
    for mut one in all {
        let (inner, bad) = each(&mut one);
        (items, refused) = (items + inner, refused + bad);
        if inner > 0 || bad == 0 {
            left.push(one);
        }
    }
    (left, items, refused)
}

/// Leaves the items that the spoiler does not take.
fn leaves<T>(items: &mut Vec<T>, spoiler: &mut Spoiler<'_>) -> (usize, u64) {
    let before = spoiler.1;
    items.retain(|_| !spoiler.next());
    (items.len(), spoiler.1 - before)
}

fn spoilt_span(mut span: Span) -> Span {
    span.trace_id = vec![1; 15];
    span
}

fn spoilt_record(mut record: LogRecord) -> LogRecord {
    record.span_id = vec![1; 3];
    record
}

fn exemplars(data: &mut Data) -> Vec<&mut Vec<Exemplar>> {
    match data {
        Data::Gauge(data) => data.data_points.iter_mut().map(|point| &mut point.exemplars).collect(),
        Data::Sum(data) => data.data_points.iter_mut().map(|point| &mut point.exemplars).collect(),
        Data::Histogram(data) => data.data_points.iter_mut().map(|point| &mut point.exemplars).collect(),
        Data::ExponentialHistogram(data) => {
            data.data_points.iter_mut().map(|point| &mut point.exemplars).collect()
        }
        Data::Summary(_) => vec![],
    }
}

fn points(metric: &mut Metric, spoiler: &mut Spoiler<'_>) -> (usize, u64) {
    match &mut metric.data {
        None => (0, 0),
        Some(Data::Gauge(data)) => leaves(&mut data.data_points, spoiler),
        Some(Data::Sum(data)) => leaves(&mut data.data_points, spoiler),
        Some(Data::Histogram(data)) => leaves(&mut data.data_points, spoiler),
        Some(Data::ExponentialHistogram(data)) => leaves(&mut data.data_points, spoiler),
        Some(Data::Summary(data)) => (data.data_points.len(), 0),
    }
}

/// That of `spoilt` so much is left and so many items were refused.
fn left(signal: Signal, mut spoilt: Vec<u8>, expected: &[u8], items: usize, refused: u64) {
    let retained = retain_valid(signal, &mut spoilt);
    if items == 0 && refused > 0 {
        assert!(retained.is_err());
        return;
    }
    let retained = retained.unwrap();
    assert_eq!((retained.counts.items, retained.refused), (items as u64, refused));
    assert_eq!(retained.errors.len() as u64, refused.min(3));
    assert_eq!(&spoilt[..retained.len], expected);
    assert_eq!(check(signal, expected), Ok(retained.counts));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn good_spans_are_left(request in strategies::traces(), turns in prop::collection::vec(any::<bool>(), 1..9)) {
        let (mut spoilt, mut spoiler) = (request.clone(), Spoiler(turns.iter().cycle(), 0));
        for scope in spoilt.resource_spans.iter_mut().flat_map(|resource| &mut resource.scope_spans) {
            for span in scope.spans.iter_mut().filter(|_| spoiler.next()) {
                *span = spoilt_span(std::mem::take(span));
            }
        }
        let mut spoiler = Spoiler(turns.iter().cycle(), 0);
        let (resource_spans, items, refused) = kept(request.resource_spans, |resource| {
            let scopes = std::mem::take(&mut resource.scope_spans);
            let (scopes, items, refused) = kept(scopes, |scope| leaves(&mut scope.spans, &mut spoiler));
            resource.scope_spans = scopes;
            (items, refused)
        });
        let expected = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        left(Signal::Traces, spoilt.encode_to_vec(), &expected, items, refused);
    }

    #[test]
    fn good_records_are_left(request in strategies::logs(), turns in prop::collection::vec(any::<bool>(), 1..9)) {
        let (mut spoilt, mut spoiler) = (request.clone(), Spoiler(turns.iter().cycle(), 0));
        for scope in spoilt.resource_logs.iter_mut().flat_map(|resource| &mut resource.scope_logs) {
            for record in scope.log_records.iter_mut().filter(|_| spoiler.next()) {
                *record = spoilt_record(std::mem::take(record));
            }
        }
        let mut spoiler = Spoiler(turns.iter().cycle(), 0);
        let (resource_logs, items, refused) = kept(request.resource_logs, |resource| {
            let scopes = std::mem::take(&mut resource.scope_logs);
            let (scopes, items, refused) = kept(scopes, |scope| leaves(&mut scope.log_records, &mut spoiler));
            resource.scope_logs = scopes;
            (items, refused)
        });
        let expected = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
        left(Signal::Logs, spoilt.encode_to_vec(), &expected, items, refused);
    }

    #[test]
    fn good_points_are_left(request in strategies::metrics(), turns in prop::collection::vec(any::<bool>(), 1..9)) {
        let (mut spoilt, mut spoiler) = (request.clone(), Spoiler(turns.iter().cycle(), 0));
        for scope in spoilt.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics) {
            for data in scope.metrics.iter_mut().filter_map(|metric| metric.data.as_mut()) {
                for exemplars in exemplars(data).into_iter().filter(|_| spoiler.next()) {
                    exemplars.push(Exemplar { trace_id: vec![1; 3], ..Exemplar::default() });
                }
            }
        }
        let mut spoiler = Spoiler(turns.iter().cycle(), 0);
        let (resource_metrics, items, refused) = kept(request.resource_metrics, |resource| {
            let scopes = std::mem::take(&mut resource.scope_metrics);
            let (scopes, items, refused) = kept(scopes, |scope| {
                let metrics = std::mem::take(&mut scope.metrics);
                let (metrics, items, refused) = kept(metrics, |metric| points(metric, &mut spoiler));
                scope.metrics = metrics;
                (items, refused)
            });
            resource.scope_metrics = scopes;
            (items, refused)
        });
        let expected = ExportMetricsServiceRequest { resource_metrics }.encode_to_vec();
        left(Signal::Metrics, spoilt.encode_to_vec(), &expected, items, refused);
    }

    /// Whatever arrives, what is left is what the check accepts.
    #[test]
    fn anything_is_sifted(which in 0..3usize, places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        let (signal, raw) = [
            (Signal::Traces, captured::TRACES),
            (Signal::Metrics, captured::METRICS),
            (Signal::Logs, captured::LOGS),
        ][which];
        let mut raw = raw.to_vec();
        for (place, byte) in &places {
            let at = place.index(raw.len());
            raw[at] = *byte;
        }
        let before = check(signal, &raw);
        if let Ok(retained) = retain_valid(signal, &mut raw) {
            prop_assert_eq!(check(signal, &raw[..retained.len]), Ok(retained.counts));
            prop_assert_eq!(before.is_ok(), retained.errors.is_empty());
            if let Ok(counts) = before {
                prop_assert_eq!((counts, 0), (retained.counts, retained.refused));
            }
        } else {
            prop_assert!(before.is_err());
        }
    }
}

/// An error in a resource affects its items, and the message names the position.
#[test]
fn items_of_a_bad_resource_are_refused_with_it() {
    let records =
        |count: usize| vec![LogRecord { severity_text: "info".into(), ..LogRecord::default() }; count];
    let resource = |key: &str, count: usize| ResourceLogs {
        resource: Some(Resource {
            attributes: vec![KeyValue { key: key.into(), value: None, key_strindex: 0 }],
            ..Resource::default()
        }),
        scope_logs: vec![ScopeLogs { log_records: records(count), ..ScopeLogs::default() }],
        ..ResourceLogs::default()
    };
    let body = |resource_logs| ExportLogsServiceRequest { resource_logs }.encode_to_vec();
    let mut raw = body(vec![resource("a", 1), resource("b!", 200), resource("c", 2)]);
    let at = raw.iter().position(|byte| *byte == b'!').unwrap();
    raw[at] = 0xff;
    let retained = retain_valid(Signal::Logs, &mut raw).unwrap();
    assert_eq!((retained.counts.items, retained.refused), (3, 200));
    assert_eq!(&raw[..retained.len], body(vec![resource("a", 1), resource("c", 2)]));
    let [error] = &retained.errors[..] else { panic!("{retained:?}") };
    assert!(
        error.to_string().starts_with("resource 1: an attribute's key is not valid UTF-8: `b"),
        "{error}"
    );
}

/// Truncated input has no items that could be counted.
#[test]
fn a_truncated_request_is_refused_whole() {
    let raw = captured::TRACES;
    for cut in [raw.len() - 1, raw.len() / 2, 5] {
        assert!(retain_valid(Signal::Traces, &mut raw[..cut].to_vec()).is_err());
    }
}
