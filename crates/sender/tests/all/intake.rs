//! Elastic APM intake v2: lines that the server's specification allows, read by a second JSON implementation.

use crate::peer::{Behaviour, Peer, Request};
use crate::{LONG, balances, numbered, quick};
use serde_json::Value as Json;
use tidegate_sender::{
    Class, HistogramPoint, Log, Metric, Number, NumberPoint, Points, Protocol, Reason, Severity, Span,
    SpanContext, SpanEvent, SpanKind, Status, Temporality, Value,
};

fn lines(request: &Request) -> Vec<Json> {
    let text = std::str::from_utf8(&request.body).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All lines of one kind, and that each request begins with metadata.
fn of_kind(peer: &Peer, kind: &str) -> Vec<Json> {
    let mut found = Vec::new();
    for request in peer.taken() {
        assert_eq!(
            (&*request.path, &*request.headers["content-type"]),
            ("/intake/v2/events", "application/x-ndjson")
        );
        let lines = lines(&request);
        assert!(lines[0].get("metadata").is_some());
        found.extend(lines.into_iter().filter_map(|mut line| line.get_mut(kind).map(Json::take)));
    }
    found
}

#[test]
fn metadata_names_the_service_with_valid_characters() {
    let peer = Peer::new();
    let sender = quick(&peer)
        .protocol(Protocol::ElasticApm)
        .service("shop.front/é")
        .resource("service.version", "1.0")
        .resource("deployment.environment.name", "live")
        .resource("team.name", "a \"b\"")
        .start()
        .unwrap();
    sender.span(&numbered(1)).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    let metadata = &of_kind(&peer, "metadata")[0];
    assert_eq!(metadata["service"]["name"], "shop_front__");
    assert_eq!(metadata["service"]["version"], "1.0");
    assert_eq!(metadata["service"]["environment"], "live");
    assert_eq!(metadata["service"]["agent"]["name"], "tidegate-sender");
    assert_eq!(metadata["process"]["pid"], std::process::id());
    assert_eq!(metadata["labels"]["team_name"], "a \"b\"");
}

#[test]
fn roots_and_served_requests_are_transactions_and_the_rest_are_spans() {
    let peer = Peer::new();
    let sender = quick(&peer).protocol(Protocol::ElasticApm).start().unwrap();
    let query = [("db.system.name", Value::Str("postgresql")), ("odd \"key\"\n", Value::Double(f64::NAN))];
    let list = [Value::Int(1), Value::Bool(false)];
    sender
        .span(&Span { parent: None, kind: SpanKind::Server, status: Status::Error("no"), ..numbered(1) })
        .unwrap();
    sender
        .span(&Span {
            kind: SpanKind::Client,
            attributes: &query,
            start: 1_700_000_000_000_000_000,
            end: 1_700_000_000_001_000_020,
            status: Status::Ok,
            ..numbered(2)
        })
        .unwrap();
    sender.span(&Span { attributes: &[("list", Value::List(&list))], ..numbered(3) }).unwrap();
    assert!(sender.flush(LONG).is_nothing());

    let transaction = &of_kind(&peer, "transaction")[0];
    assert_eq!(transaction["id"], "0000000000000002");
    assert_eq!(transaction["trace_id"], "07".repeat(16));
    assert!(transaction.get("parent_id").is_none());
    assert_eq!((&transaction["type"], &transaction["outcome"]), (&"request".into(), &"failure".into()));
    assert_eq!(transaction["span_count"]["started"], 0);
    assert_eq!(transaction["otel"]["span_kind"], "SERVER");
    let spans = of_kind(&peer, "span");
    let query = spans.iter().find(|span| span["id"] == "0000000000000003").unwrap();
    assert_eq!((&query["type"], &query["subtype"]), (&"db".into(), &"postgresql".into()));
    assert_eq!(query["parent_id"], "09".repeat(8));
    assert_eq!(query["timestamp"], 1_700_000_000_000_000_u64);
    assert_eq!(query["duration"], 1.000_02);
    assert_eq!(query["otel"]["attributes"]["odd \"key\"\n"], Json::Null);
    let other = spans.iter().find(|span| span["id"] == "0000000000000004").unwrap();
    assert_eq!(other["otel"]["attributes"]["list"], serde_json::json!([1, false]));
    balances(&sender);
}

#[test]
fn exceptions_and_errors_are_errors_and_other_records_are_logs() {
    let peer = Peer::new();
    let sender = quick(&peer).protocol(Protocol::ElasticApm).start().unwrap();
    let thrown = [
        ("exception.type", Value::Str("Oops")),
        ("exception.message", Value::Str("it broke")),
        ("exception.stacktrace", Value::Str("at a\nat b")),
    ];
    let events = [SpanEvent { time: 5_000, name: "exception", attributes: &thrown }];
    sender.span(&Span { events: &events, ..numbered(1) }).unwrap();
    let place = Some(SpanContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 });
    let labels = [("a.b", Value::Int(7)), ("text", Value::Str("x"))];
    let said = format_args!("said {}", 1).to_string();
    for severity in [Severity::INFO, Severity::FATAL] {
        let body = Value::Display(&said);
        sender
            .log(&Log { time: 9_000, severity, body, attributes: &labels, context: place, ..Log::default() })
            .unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());

    let errors = of_kind(&peer, "error");
    let thrown = errors.iter().find(|error| error.get("exception").is_some()).unwrap();
    assert_eq!(
        (&thrown["exception"]["type"], &thrown["exception"]["message"]),
        (&"Oops".into(), &"it broke".into())
    );
    assert_eq!(thrown["context"]["custom"]["stacktrace"], "at a\nat b");
    assert_eq!((&thrown["timestamp"], &thrown["parent_id"]), (&5.into(), &"0000000000000002".into()));
    let logged = errors.iter().find(|error| error.get("log").is_some()).unwrap();
    assert_eq!((&logged["log"]["message"], &logged["log"]["level"]), (&"said 1".into(), &"FATAL".into()));
    assert_eq!(logged["id"].as_str().unwrap().len(), 32);
    let log = &of_kind(&peer, "log")[0];
    assert_eq!(
        (&log["message"], &log["log.level"], &log["@timestamp"]),
        (&"said 1".into(), &"INFO".into(), &9.into())
    );
    assert_eq!((&log["trace.id"], &log["labels"]["a_b"]), (&"01".repeat(16).into(), &7.into()));
    balances(&sender);
}

#[test]
fn metrics_are_sets_of_one_sample() {
    let peer = Peer::new();
    let sender = quick(&peer).protocol(Protocol::ElasticApm).start().unwrap();
    let tags = [("region", Value::Str("north"))];
    let metric =
        |name, points| Metric { name, description: "", unit: "By", points, scope: Default::default() };
    let number = |value| NumberPoint { attributes: &tags, start: 0, time: 3_000, value };
    let points = [number(Number::Int(4)), number(Number::Double(1e300))];
    sender.metric(&metric("heap.used", Points::Gauge(&points))).unwrap();
    let histogram =
        HistogramPoint { count: 6, bounds: &[10.0, 20.0], counts: &[2, 0, 4], ..Default::default() };
    let points = Points::Histogram { points: &[histogram], temporality: Temporality::Delta };
    sender.metric(&metric("latency", points)).unwrap();
    assert!(sender.flush(LONG).is_nothing());
    let sets = of_kind(&peer, "metricset");
    assert_eq!(sets.len(), 3);
    assert_eq!(
        sets[0]["samples"]["heap.used"],
        serde_json::json!({"type": "gauge", "unit": "By", "value": 4})
    );
    assert_eq!(sets[1]["samples"]["heap.used"]["value"], 1e300);
    assert_eq!((&sets[0]["tags"]["region"], &sets[0]["timestamp"]), (&"north".into(), &3.into()));
    assert_eq!(sets[2]["samples"]["latency"]["values"], serde_json::json!([5.0, 20.0]));
    assert_eq!(sets[2]["samples"]["latency"]["counts"], serde_json::json!([2, 4]));
    balances(&sender);
}

#[test]
fn events_accepted_from_a_bad_request_count_as_sent() {
    let answer = br#"{"accepted": 3, "errors": [{"message": "no", "document": "{}"}]}"#;
    let peer = Peer::scripted([Behaviour::Answer(400, String::new(), answer.to_vec())]);
    let sender = quick(&peer).protocol(Protocol::ElasticApm).start().unwrap();
    (0..5).for_each(|number| sender.span(&numbered(number)).unwrap());
    assert!(sender.flush(LONG).is_nothing());
    let stats = sender.stats();
    assert_eq!((stats.sent_total(), stats.dropped(Class::Span, Reason::Rejected)), (3, 2));
    balances(&sender);
}
