//! The integrations: `tracing`, `log` and the OpenTelemetry SDK, each seen from the peer.

use crate::oracle::{any, attribute, number, shape, text};
use crate::peer::Peer;
use crate::{LONG, balances, quick};
use opentelemetry::logs::{LogRecord as _, Logger as _, LoggerProvider as _};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{Span as _, SpanKind, Status, Tracer as _, TracerProvider as _};
use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::Resource;
use tidegate_sender::opentelemetry::Exporter;
use tidegate_sender::{Class, EventsAs, Layer, Logger, Reason, SpanContext};
use tracing_subscriber::prelude::*;

#[derive(Debug)]
struct Shown;

#[test]
fn tracing_spans_arrive_as_a_tree_and_events_know_their_span() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let layer = Layer::new(sender.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let outer = tracing::info_span!("request", otel.kind = "server", otel.name = %format!("GET {}", 1), traceparent = parent, late = tracing::field::Empty, large = u64::MAX);
        outer.in_scope(|| {
            let inner = tracing::info_span!("query", text = "SELECT", rows = 7, ratio = 0.5, hit = true, shown = ?Shown);
            inner.in_scope(|| tracing::warn!(shown = ?Shown, count = 3, "slow {}", "query"));
            drop(inner);
            outer.record("late", "said");
        });
        let failed = tracing::info_span!(parent: None, "failed", otel.status_code = "ERROR", otel.status_message = "no");
        failed.follows_from(&outer);
        drop(failed);
    });
    tracing::info!("outside of the subscriber, and so not sent");
    assert!(sender.flush(LONG).is_nothing());

    let spans = peer.spans();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (outer, inner, failed) = (named("GET 1"), named("query"), named("failed"));
    assert_eq!(spans.len(), 3);
    assert_eq!((outer.kind, outer.flags), (2, 0x301));
    assert_eq!(outer.parent_span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    assert_eq!(text(&outer.attributes, "late"), Some("said"));
    assert_eq!(text(&outer.attributes, "large"), Some("18446744073709551615"));
    assert_eq!(outer.attributes.len(), 2, "fields that are understood are not attributes");
    assert_eq!((&inner.parent_span_id, &inner.trace_id), (&outer.span_id, &outer.trace_id));
    assert_eq!(inner.trace_id[..2], [0x0a, 0xf7]);
    assert!(inner.start >= outer.start && inner.end <= outer.end && inner.end >= inner.start);
    assert_eq!(text(&inner.attributes, "text"), Some("SELECT"));
    assert_eq!(attribute(&inner.attributes, "rows"), Some(&any::Value::Int(7)));
    assert_eq!(attribute(&inner.attributes, "ratio"), Some(&any::Value::Double(0.5)));
    assert_eq!(attribute(&inner.attributes, "hit"), Some(&any::Value::Bool(true)));
    assert_eq!(text(&inner.attributes, "shown"), Some("Shown"));
    let status = failed.status.as_ref().unwrap();
    assert_eq!((status.code, &*status.message), (2, "no"));
    assert!(failed.parent_span_id.is_empty());
    assert_eq!(failed.links[0].span_id, outer.span_id);

    let logs = peer.logs();
    assert_eq!(logs.len(), 1);
    assert_eq!(logs[0].body.as_ref().unwrap().value, Some(any::Value::Str("slow query".to_owned())));
    assert_eq!(
        (logs[0].severity, &logs[0].span_id, &logs[0].trace_id),
        (13, &inner.span_id, &inner.trace_id)
    );
    assert_eq!(text(&logs[0].attributes, "shown"), Some("Shown"));
    assert_eq!(attribute(&logs[0].attributes, "count"), Some(&any::Value::Int(3)));
    assert!(text(&logs[0].attributes, "code.file.path").unwrap().ends_with("integrations.rs"));
    balances(&sender);
}

#[test]
fn tracing_events_can_be_events_of_their_span() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let layer = Layer::new(sender.clone()).events(EventsAs::SpanEvents);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::info_span!("work", a = 1).in_scope(|| {
            tracing::info!(step = 1, "first");
            tracing::error!(step = 2, "second");
        });
        tracing::info!("outside");
    });
    assert!(sender.flush(LONG).is_nothing());
    let span = &peer.spans()[0];
    assert_eq!(span.attributes.len(), 1);
    let names: Vec<_> = span.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(attribute(&span.events[1].attributes, "step"), Some(&any::Value::Int(2)));
    assert_eq!(span.events[1].attributes.len(), 1);
    assert_eq!(span.status.as_ref().unwrap().code, 2);
    assert_eq!(peer.logs().len(), 1);
}

#[test]
fn tracing_spans_and_attributes_beyond_their_limits_are_counted() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let layer = Layer::with_open_spans(sender.clone(), 2, 64);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let open: Vec<_> = (0..10).map(|number| tracing::info_span!("many", number)).collect();
        drop(open);
        let long = "x".repeat(100);
        tracing::info_span!("long", long = long.as_str(), short = 1);
    });
    assert!(sender.flush(LONG).is_nothing());
    let stats = sender.stats();
    let refused = stats.dropped(Class::Span, Reason::TooManyOpen);
    assert!(refused > 0);
    let spans = peer.spans();
    assert_eq!(spans.len() as u64 + refused, 11);
    let long = spans.iter().find(|span| span.name == "long").unwrap();
    assert_eq!((long.dropped_attributes, long.attributes.len()), (1, 1));
    balances(&sender);
}

#[test]
fn log_records_arrive_with_where_they_were_made() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let logger = Logger::new(sender.clone());
    let mut record = log::Record::builder();
    record.level(log::Level::Error).target("shop::cart").file(Some("cart.rs")).line(Some(12));
    log::Log::log(&logger, &record.args(format_args!("no room for {}", 13)).build());
    log::Log::flush(&logger);
    let got = &peer.logs()[0];
    assert_eq!(got.body.as_ref().unwrap().value, Some(any::Value::Str("no room for 13".to_owned())));
    assert_eq!(got.severity, 17);
    assert_eq!(text(&got.attributes, "log.target"), Some("shop::cart"));
    assert_eq!(attribute(&got.attributes, "code.line.number"), Some(&any::Value::Int(12)));
}

fn resource() -> Resource {
    Resource::builder_empty().with_service_name("from the SDK").build()
}

#[test]
fn spans_of_the_sdk_arrive_with_its_resource() {
    let peer = Peer::new();
    let sender = quick(&peer).resource("kept", "yes").start().unwrap();
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .with_simple_exporter(Exporter::new(sender.clone()))
        .with_resource(resource())
        .build();
    let tracer = provider.tracer("library");
    let mut span = tracer
        .span_builder("GET /")
        .with_kind(SpanKind::Server)
        .with_attributes([KeyValue::new("list", Value::Array(Array::I64(vec![1, 2])))])
        .start(&tracer);
    span.add_event("cached", vec![KeyValue::new("hit", true)]);
    span.set_status(Status::error("broken"));
    span.end();
    assert!(sender.flush(LONG).is_nothing());
    let request = <crate::oracle::TracesRequest as prost::Message>::decode(&*peer.taken()[0].body).unwrap();
    let resource = request.resources[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), Some("from the SDK"));
    assert_eq!(text(&resource.attributes, "kept"), Some("yes"));
    assert_eq!(request.resources[0].scopes[0].scope.as_ref().unwrap().name, "library");
    let span = &peer.spans()[0];
    assert_eq!((&*span.name, span.kind, span.status.as_ref().unwrap().code), ("GET /", 2, 2));
    assert_eq!(span.trace_id.len() + span.span_id.len(), 24);
    assert!(
        matches!(attribute(&span.attributes, "list"), Some(any::Value::List(list)) if list.values.len() == 2)
    );
    assert_eq!(attribute(&span.events[0].attributes, "hit"), Some(&any::Value::Bool(true)));
}

#[test]
fn log_records_of_the_sdk_arrive() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let provider = opentelemetry_sdk::logs::SdkLoggerProvider::builder()
        .with_simple_exporter(Exporter::new(sender.clone()))
        .build();
    let logger = provider.logger("library");
    let mut record = logger.create_log_record();
    record.set_severity_number(opentelemetry::logs::Severity::Warn2);
    record.set_body("careful".into());
    record.add_attribute("count", 3);
    logger.emit(record);
    assert!(sender.flush(LONG).is_nothing());
    let got = &peer.logs()[0];
    assert_eq!(
        (got.severity, got.body.as_ref().unwrap().value.clone()),
        (14, Some(any::Value::Str("careful".to_owned())))
    );
    assert_eq!(attribute(&got.attributes, "count"), Some(&any::Value::Int(3)));
}

#[test]
fn metrics_of_the_sdk_arrive() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let provider = opentelemetry_sdk::metrics::SdkMeterProvider::builder()
        .with_periodic_exporter(Exporter::new(sender.clone()))
        .build();
    let meter = provider.meter("library");
    meter.u64_counter("requests").build().add(5, &[KeyValue::new("route", "/")]);
    meter.f64_histogram("latency").with_boundaries(vec![1.0, 2.0]).build().record(1.5, &[]);
    meter.i64_gauge("depth").build().record(-3, &[]);
    provider.force_flush().unwrap();
    assert!(sender.flush(LONG).is_nothing());
    let metrics = peer.metrics();
    let named =
        |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().shape.clone().unwrap();
    let shape::Shape::Sum(sum) = named("requests") else { panic!("no sum") };
    assert_eq!(sum.points[0].value, Some(number::Number::Int(5)));
    assert_eq!(
        (text(&sum.points[0].attributes, "route"), sum.monotonic, sum.temporality),
        (Some("/"), true, 2)
    );
    let shape::Shape::Histogram(histogram) = named("latency") else { panic!("no histogram") };
    assert_eq!((histogram.points[0].sum, &*histogram.points[0].counts), (Some(1.5), &[0, 1, 0][..]));
    let shape::Shape::Gauge(gauge) = named("depth") else { panic!("no gauge") };
    assert_eq!(gauge.points[0].value, Some(number::Number::Int(-3)));
    balances(&sender);
}

#[test]
fn a_place_is_handed_on_as_a_traceparent_header() {
    let place = SpanContext { trace_id: [0xab; 16], span_id: [1; 8], flags: 1 };
    let header = place.to_string();
    assert_eq!(header, format!("00-{}-{}-01", "ab".repeat(16), "01".repeat(8)));
    assert_eq!(SpanContext::from_traceparent(&header), Some(place));
    for wrong in [
        "",
        "00-1-2-3",
        &header[1..],
        &header.to_uppercase(),
        &header.replace("01", "00"),
        &format!("{header}-x"),
    ] {
        assert_eq!(SpanContext::from_traceparent(wrong), None, "{wrong}");
    }
}
