//! Events arrive unchanged: every field, in every form, over every transport.

use crate::oracle::{any, attribute, number, shape, text};
use crate::peer::Peer;
use crate::{LONG, balances, number_of, numbered, oracle, quick};
use prost::Message;
use tidegate_sender::{
    Attributes, Buckets, Compression, ExponentialPoint, HistogramPoint, Link, Log, Metric, Number,
    NumberPoint, Points, Severity, Span, SpanContext, SpanEvent, SpanKind, Status, Temporality, Value,
};

#[test]
fn a_span_arrives_with_all_its_fields() {
    let peer = Peer::new();
    let sender = quick(&peer).compression(Compression::Gzip).start().unwrap();
    let list = [Value::Int(1), Value::Str("two")];
    let map = [("inner", Value::Double(0.5))];
    let shown = format_args!("{}-{}", 1, 2).to_string();
    let attributes = [
        ("str", Value::Str("text")),
        ("bool", Value::Bool(true)),
        ("int", Value::Int(-5)),
        ("double", Value::Double(1.5)),
        ("bytes", Value::Bytes(&[1, 2])),
        ("list", Value::List(&list)),
        ("map", Value::Map(&map)),
        ("shown", Value::Display(&shown)),
    ];
    let reason = [("exception.type", Value::Str("Oops"))];
    let span = Span {
        context: SpanContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 },
        parent: Some([3; 8]),
        parent_is_remote: true,
        trace_state: "a=b",
        name: "GET /",
        kind: SpanKind::Server,
        start: 10,
        end: 20,
        attributes: &attributes,
        dropped_attributes: 3,
        events: &[SpanEvent { time: 15, name: "exception", attributes: &reason }],
        links: &[Link {
            context: SpanContext { trace_id: [4; 16], span_id: [5; 8], flags: 1 },
            trace_state: "c=d",
            attributes: &reason,
        }],
        status: Status::Error("it broke"),
        scope: sender.scope("library", "1.2"),
    };
    sender.span(&span).unwrap();
    assert!(sender.flush(LONG).is_nothing());

    let request = &peer.taken()[0];
    assert_eq!(request.path, "/v1/traces");
    assert_eq!(request.headers["content-type"], "application/x-protobuf");
    assert_eq!(request.headers["content-encoding"], "gzip");
    let decoded = oracle::TracesRequest::decode(&*request.body).unwrap();
    let resource = decoded.resources[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), Some("tests"));
    let scope = &decoded.resources[0].scopes[0];
    assert_eq!(scope.scope.as_ref().unwrap().name, "library");
    assert_eq!(scope.scope.as_ref().unwrap().version, "1.2");
    let got = &scope.spans[0];
    assert_eq!(
        (&*got.trace_id, &*got.span_id, &*got.parent_span_id),
        (&[1; 16][..], &[2; 8][..], &[3; 8][..])
    );
    assert_eq!((&*got.trace_state, &*got.name, got.kind), ("a=b", "GET /", 2));
    assert_eq!((got.start, got.end, got.dropped_attributes, got.flags), (10, 20, 3, 0x301));
    assert_eq!(text(&got.attributes, "str"), Some("text"));
    assert_eq!(attribute(&got.attributes, "bool"), Some(&any::Value::Bool(true)));
    assert_eq!(attribute(&got.attributes, "int"), Some(&any::Value::Int(-5)));
    assert_eq!(attribute(&got.attributes, "double"), Some(&any::Value::Double(1.5)));
    assert_eq!(attribute(&got.attributes, "bytes"), Some(&any::Value::Bytes(vec![1, 2])));
    assert_eq!(text(&got.attributes, "shown"), Some("1-2"));
    let Some(any::Value::List(list)) = attribute(&got.attributes, "list") else { panic!("no list") };
    assert_eq!(list.values[1].value, Some(any::Value::Str("two".to_owned())));
    let Some(any::Value::Map(map)) = attribute(&got.attributes, "map") else { panic!("no map") };
    assert_eq!(attribute(&map.values, "inner"), Some(&any::Value::Double(0.5)));
    assert_eq!((got.events[0].time, &*got.events[0].name), (15, "exception"));
    assert_eq!(text(&got.events[0].attributes, "exception.type"), Some("Oops"));
    assert_eq!((&*got.links[0].trace_id, &*got.links[0].trace_state), (&[4; 16][..], "c=d"));
    let status = got.status.as_ref().unwrap();
    assert_eq!((status.code, &*status.message), (2, "it broke"));
    balances(&sender);
}

#[test]
fn a_log_record_arrives_with_all_its_fields() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let log = Log {
        time: 5,
        observed: 6,
        severity: Severity::WARN,
        body: Value::Str("disk is nearly full"),
        event_name: "disk.low",
        attributes: &[("free", Value::Int(7))],
        context: Some(SpanContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 }),
        ..Log::default()
    };
    sender.log(&log).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    let got = &peer.logs()[0];
    assert_eq!((got.time, got.observed, got.severity, &*got.severity_text), (5, 6, 13, "WARN"));
    assert_eq!(got.body.as_ref().unwrap().value, Some(any::Value::Str("disk is nearly full".to_owned())));
    assert_eq!(
        (&*got.event_name, got.flags, &*got.trace_id, &*got.span_id),
        ("disk.low", 1, &[1; 16][..], &[2; 8][..])
    );
    assert_eq!(attribute(&got.attributes, "free"), Some(&any::Value::Int(7)));
}

#[test]
fn metrics_arrive_in_every_shape_and_large_ones_in_parts() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let region: &dyn Attributes = &[("region", Value::Str("north"))];
    let at = |value| NumberPoint { attributes: region, start: 1, time: 2, value };
    let metric =
        |name, points| Metric { name, description: "what", unit: "By", points, scope: Default::default() };
    let many: [NumberPoint<'_>; 100] = std::array::from_fn(|index| at(Number::Int(index as i64)));
    let temporality = Temporality::Cumulative;
    for points in [
        Points::Gauge(&[at(Number::Double(1.5))]),
        Points::Sum { points: &many, temporality, monotonic: true },
        Points::Histogram {
            points: &[HistogramPoint {
                attributes: region,
                time: 2,
                count: 3,
                sum: Some(0.0),
                bounds: &[1.0, 2.0],
                counts: &[1, 2, 0],
                ..Default::default()
            }],
            temporality,
        },
        Points::Exponential {
            points: &[ExponentialPoint {
                attributes: region,
                time: 2,
                count: 4,
                scale: -2,
                zero_count: 1,
                positive: Buckets { offset: -3, counts: &[1, 300] },
                ..Default::default()
            }],
            temporality,
        },
    ] {
        sender.metric(&metric("m", points)).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    let metrics = peer.metrics();
    assert!(metrics.iter().all(|metric| metric.name == "m" && metric.unit == "By"));
    let mut sums = Vec::new();
    for metric in &metrics {
        match metric.shape.as_ref().unwrap() {
            shape::Shape::Gauge(gauge) => {
                assert_eq!(gauge.points[0].value, Some(number::Number::Double(1.5)));
                assert_eq!(text(&gauge.points[0].attributes, "region"), Some("north"));
            }
            shape::Shape::Sum(sum) => {
                assert_eq!((sum.temporality, sum.monotonic), (2, true));
                sums.extend(sum.points.iter().map(|point| point.value.clone()));
            }
            shape::Shape::Histogram(histogram) => {
                let point = &histogram.points[0];
                assert_eq!(
                    (point.count, point.sum, &*point.counts, &*point.bounds),
                    (3, Some(0.0), &[1, 2, 0][..], &[1.0, 2.0][..])
                );
            }
            shape::Shape::Exponential(exponential) => {
                let point = &exponential.points[0];
                let positive = point.positive.as_ref().unwrap();
                assert_eq!(
                    (point.scale, point.zero_count, positive.offset, &*positive.counts),
                    (-2, 1, -3, &[1, 300][..])
                );
            }
        }
    }
    let expected = (0..100).map(|value| Some(number::Number::Int(value)));
    assert_eq!(sums, expected.collect::<Vec<_>>());
    assert_eq!(metrics.len(), 3 + 4);
    balances(&sender);
}

#[test]
fn events_of_different_libraries_are_grouped_by_scope() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let scopes = [sender.scope("a", "1"), sender.scope("b", "2"), sender.scope("a", "1")];
    assert_eq!(scopes[0], scopes[2]);
    for number in 0..30 {
        let scope = scopes[number as usize % 2];
        sender.span(&Span { scope, ..numbered(number) }).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    let request = oracle::TracesRequest::decode(&*peer.taken()[0].body).unwrap();
    let scopes = &request.resources[0].scopes;
    assert_eq!(scopes.len(), 2);
    for scope in scopes {
        let odd = scope.scope.as_ref().unwrap().name == "b";
        assert_eq!(scope.spans.len(), 15);
        assert!(scope.spans.iter().all(|span| (number_of(span) % 2 == 1) == odd));
    }
}

#[test]
fn a_large_batch_and_an_event_over_many_blocks_arrive_whole() {
    for compression in [Compression::Gzip, Compression::None] {
        let peer = Peer::new();
        let sender = quick(&peer).compression(compression).start().unwrap();
        // Not compressible.
        let mut seed = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        })
        .take(200_000)
        .collect();
        let attributes = [("noise", Value::Bytes(&noise))];
        sender.span(&Span { attributes: &attributes, ..numbered(0) }).unwrap();
        for number in 1..500 {
            sender.span(&numbered(number)).unwrap();
        }
        assert!(sender.flush(LONG).is_nothing());
        let mut spans = peer.spans();
        spans.sort_by_key(number_of);
        assert_eq!(spans.len(), 500);
        assert_eq!(attribute(&spans[0].attributes, "noise"), Some(&any::Value::Bytes(noise)));
        balances(&sender);
    }
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_as_good() {
    let folder = std::env::temp_dir().join(format!("tidegate-sender-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("peer.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let peer = std::sync::Arc::new(Peer::new());
    let behind = std::sync::Arc::clone(&peer);
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        crate::peer::serve_any(&behind, stream.try_clone().unwrap(), stream)
    });
    let sender = quick(&peer).endpoint(format!("unix:{}", path.display())).start().unwrap();
    sender.span(&numbered(1)).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(peer.spans().len(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}
