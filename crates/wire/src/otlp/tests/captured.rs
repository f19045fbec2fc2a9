//! Bodies as an SDK sends them are accepted, counted and shown. (All fields, against prost: `oracle`.)

use crate::otlp::{
    AnyValue, Counts, Data, LogsRequest, MetricsRequest, Number, Signal, TracesRequest, check,
};

pub(in crate::otlp) const TRACES: &[u8] = include_bytes!("../../../tests/data/otlp/python-traces.pb");
pub(in crate::otlp) const METRICS: &[u8] = include_bytes!("../../../tests/data/otlp/python-metrics.pb");
pub(in crate::otlp) const LOGS: &[u8] = include_bytes!("../../../tests/data/otlp/python-logs.pb");

#[test]
fn captured_traces_are_shown() {
    let counts = check(Signal::Traces, TRACES).unwrap();
    assert_eq!(
        counts,
        Counts {
            items: 55,
            resources: 1,
            scopes: 1,
            events: 51,
            links: 4,
            largest_item: 663,
            ..Counts::default()
        }
    );
    let group = TracesRequest::new(TRACES).resources().next().unwrap();
    let service = group.resource.attributes().find(b"service.name");
    assert!(matches!(service, Some(AnyValue::Text(b"shop-otel"))));
    let span = group.scopes().flat_map(|scope| scope.items()).next().unwrap();
    assert!(matches!(span.attributes().find(b"db.system"), Some(AnyValue::Text(b"postgresql"))));
    let Some(AnyValue::Array(tags)) = span.attributes().find(b"tags") else { panic!("an array") };
    assert_eq!(tags.values().count(), 2);
}

#[test]
fn captured_metrics_are_shown() {
    let counts = check(Signal::Metrics, METRICS).unwrap();
    let expected = Counts {
        items: 3,
        resources: 1,
        scopes: 1,
        metrics: 3,
        histograms: 1,
        exemplars: 5,
        largest_item: 632,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    let metrics: Vec<_> = MetricsRequest::new(METRICS)
        .resources()
        .flat_map(|resource| resource.scopes())
        .flat_map(|scope| scope.items())
        .collect();
    assert_eq!(
        metrics.iter().map(|metric| metric.name).collect::<Vec<_>>(),
        [&b"orders"[..], b"latency", b"inflight"]
    );
    let Data::Sum(sum) = metrics[0].data else { panic!("a sum") };
    assert!(sum.is_monotonic);
    assert_eq!(sum.points().next().unwrap().value, Some(Number::Int(5)));
}

#[test]
fn captured_logs_are_shown() {
    let counts = check(Signal::Logs, LOGS).unwrap();
    assert_eq!(counts, Counts { items: 5, resources: 1, scopes: 1, largest_item: 335, ..Counts::default() });
    let group = LogsRequest::new(LOGS).resources().next().unwrap();
    let record = group.scopes().flat_map(|scope| scope.items()).next().unwrap();
    assert!(matches!(record.body, AnyValue::Text(b"item 0 served")));
    assert_eq!(record.severity, 13);
}
