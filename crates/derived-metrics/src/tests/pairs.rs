//! Promise: two spans are one edge, with the names of both services, and one that stays alone is dropped or has a virtual node.

use super::*;

pub(super) const SERVER: i64 = 2;
pub(super) const CLIENT: i64 = 3;
pub(super) const PRODUCER: i64 = 4;
pub(super) const CONSUMER: i64 = 5;
pub(super) const TTL_MS: u64 = 2_000;

/// One dimension, two peer attributes and one of databases.
pub(super) fn pair_settings(temporality: Temporality, max_items: u32) -> Settings {
    let names =
        ["client", "server", "connection_type", "failed", "client_zone", "server_zone", "virtual_node"];
    let seconds = || InstrumentKind::Histogram { bounds: vec![0.01, 0.1] };
    let group = Group {
        attributes: Some(names.map(String::from).to_vec()),
        divisor: 1e9,
        instruments: vec![
            instrument("total", InstrumentKind::Count),
            instrument("failed", InstrumentKind::Count),
            instrument("server", seconds()),
            instrument("client", seconds()),
        ],
        pairs: Some(PairSettings {
            dimensions: 1,
            peers: 2,
            has_virtual_node_label: true,
            ttl_ms: TTL_MS,
            max_items,
        }),
    };
    let more = settings(temporality, 100);
    Settings { measures: vec![more.measures[0].clone(), group], exemplars: false, ..more }
}

/// A span; the time that it took is in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Half {
    pub(super) kind: i64,
    pub(super) id: u8,
    pub(super) parent: u8,
    pub(super) has_failed: bool,
    pub(super) took_ms: i64,
    /// Service, zone, two peers, database.
    pub(super) key: [Option<&'static str>; 5],
}

pub(super) fn half(kind: i64, id: u8, parent: u8, service: &'static str) -> Half {
    Half { kind, id, parent, has_failed: false, took_ms: 5, key: [Some(service), None, None, None, None] }
}

pub(super) fn tell(aggregator: &mut Aggregator, half: &Half) {
    aggregator.key().push(&listed(&half.key));
    tell_with_key(aggregator, half);
}

fn tell_with_key(aggregator: &mut Aggregator, half: &Half) {
    let span = MeasuredSpan {
        trace_id: [1; 16],
        span_id: [half.id; 8],
        parent_span_id: [half.parent; 8],
        kind: half.kind,
        status: if half.has_failed { 2 } else { 1 },
        ..MeasuredSpan::default()
    };
    let value = Number::Int(half.took_ms * 1_000_000);
    // An adjusted count changes nothing.
    aggregator.observe(1, &Observation { value, count: 3, span: Some(span) });
}

pub(super) fn told(halves: &[Half]) -> Aggregator {
    let mut aggregator = Aggregator::new(pair_settings(Temporality::Cumulative, 10));
    aggregator.begin(b"t", START_MS);
    halves.iter().for_each(|half| tell(&mut aggregator, half));
    aggregator
}

/// The points of metrics: their attributes, and their counts; of histograms with the sum.
pub(super) fn lines(points: &Points) -> Vec<String> {
    let line = |((_, resource, metric, attributes), data): (&PointKey, &Data)| {
        assert_eq!(resource, "");
        let attributes = attributes.replace("failed=BoolValue(", "failed=(");
        match data {
            Data::Histogram(it) => {
                let point = &it.data_points[0];
                format!("{metric} {attributes} {} {}", point.count, point.sum.unwrap())
            }
            Data::Sum(it) => format!("{metric} {attributes} {:?}", it.data_points[0].value.unwrap()),
            other => panic!("{other:?}"),
        }
    };
    points.iter().map(line).collect()
}

/// The totals of a flush, by their attributes.
fn totals(aggregator: &mut Aggregator) -> Vec<String> {
    let lines = lines(&flush(aggregator, START_MS));
    lines.into_iter().filter_map(|line| Some(line.strip_prefix("total ")?.to_owned())).collect()
}

#[test]
fn two_spans_are_one_edge_in_either_order() {
    let mut client = half(CLIENT, 7, 1, "shop");
    client.key[1] = Some("eu");
    let server = Half { took_ms: 3, has_failed: true, ..half(SERVER, 8, 7, "cart") };
    for halves in [[client, server], [server, client]] {
        let mut aggregator = told(&halves);
        assert_eq!(aggregator.waiting_spans(), 0);
        let edge = "client=shop,server=cart,connection_type=,failed=(true),client_zone=eu,virtual_node=";
        assert_eq!(
            lines(&flush(&mut aggregator, START_MS)),
            [
                format!("client {edge} 1 0.005"),
                format!("failed {edge} AsInt(1)"),
                format!("server {edge} 1 0.003"),
                format!("total {edge} AsInt(1)"),
            ]
        );
    }
}

#[test]
fn edges_without_failures_have_no_point_of_failures() {
    let mut aggregator = told(&[half(CLIENT, 7, 1, "shop"), half(SERVER, 8, 7, "cart")]);
    aggregator.begin_flush(START_MS);
    assert_eq!(aggregator.piece(0, 1 << 20).unwrap().data_points, 3);
    let points = points(&aggregator, 1 << 20);
    assert_eq!(points.keys().map(|key| &*key.2).collect::<Vec<_>>(), ["client", "server", "total"]);
}

#[test]
fn the_last_span_says_the_type_of_connection() {
    let (producer, consumer) = (half(PRODUCER, 7, 1, "shop"), half(CONSUMER, 8, 7, "cart"));
    let (client, server) = (half(CLIENT, 7, 1, "shop"), half(SERVER, 8, 7, "cart"));
    for (halves, connection) in [
        ([producer, consumer], "messaging_system"),
        ([client, consumer], "messaging_system"),
        ([producer, server], ""),
    ] {
        let edge = format!(
            "client=shop,server=cart,connection_type={connection},failed=(false),virtual_node= AsInt(1)"
        );
        assert_eq!(totals(&mut told(&halves)), [edge]);
    }
}

#[test]
fn other_kinds_and_services_without_a_name_are_no_halves() {
    let mut aggregator = told(&[half(0, 1, 0, "a"), half(1, 1, 0, "a"), half(SERVER, 1, 0, "")]);
    assert_eq!((aggregator.waiting_spans(), aggregator.counts().observations), (0, 0));
    // A measure requires the name; this is what it would be without.
    tell(&mut aggregator, &Half { key: [None; 5], ..half(SERVER, 1, 0, "") });
    assert_eq!(aggregator.waiting_spans(), 0);
}

#[test]
fn a_database_completes_its_edge() {
    let mut client = half(CLIENT, 7, 1, "shop");
    client.key[4] = Some("orders");
    let mut aggregator = told(&[client]);
    let edge = "client=shop,server=orders,connection_type=database,failed=(false),virtual_node=";
    assert_eq!(
        lines(&flush(&mut aggregator, START_MS)),
        [
            format!("client {edge} 1 0.005"),
            format!("server {edge} 1 0.005"),
            format!("total {edge} AsInt(1)")
        ]
    );
    // A span of its server that waits already is in the edge.
    let mut server = Half { has_failed: true, ..half(SERVER, 8, 7, "cart") };
    server.key[1] = Some("us");
    let edge = "client=shop,server=orders,connection_type=database,failed=(true),server_zone=us,virtual_node= AsInt(1)";
    let mut aggregator = told(&[server, client]);
    assert_eq!((totals(&mut aggregator), aggregator.waiting_spans()), (vec![edge.to_owned()], 0));
    // Without a name it is none.
    client.key[4] = Some("");
    assert_eq!(told(&[client]).waiting_spans(), 1);
}

#[test]
fn spans_that_stay_alone_have_virtual_nodes() {
    let mut mailer = half(CLIENT, 2, 1, "shop");
    mailer.key[3] = Some("mailer");
    let mut both = half(CLIENT, 3, 1, "shop");
    (both.key[2], both.key[3]) = (Some("first"), Some("second"));
    let halves = [
        half(SERVER, 1, 0, "front"),
        mailer,
        both,
        half(CLIENT, 4, 1, "shop"),
        // Its client may not be measured at all.
        half(SERVER, 6, 5, "back"),
    ];
    let mut aggregator = told(&halves);
    aggregator.begin(b"other", START_MS + TTL_MS);
    assert_eq!(aggregator.waiting_spans(), 5, "not before");
    aggregator.begin(b"other", START_MS + TTL_MS + 1);
    assert_eq!((aggregator.waiting_spans(), aggregator.counts().expired_edges), (0, 5));
    aggregator.begin_flush(START_MS);
    let points = points(&aggregator, 1 << 20);
    assert!(points.keys().all(|key| key.0 == b"t"), "the tenant of the span");
    let edge = |client: &str, server: &str, node: &str, times: [f64; 2]| {
        let edge = format!(
            "client={client},server={server},connection_type=virtual_node,failed=(false),virtual_node={node}"
        );
        let [of_client, of_server] = times;
        [
            format!("client {edge} 1 {of_client}"),
            format!("server {edge} 1 {of_server}"),
            format!("total {edge} AsInt(1)"),
        ]
    };
    let mut expected: Vec<_> = [
        edge("user", "front", "client", [0.0, 0.005]),
        edge("shop", "mailer", "server", [0.005, 0.0]),
        edge("shop", "first", "server", [0.005, 0.0]),
        edge("shop", "unknown", "server", [0.005, 0.0]),
    ]
    .into_iter()
    .flatten()
    .collect();
    expected.sort();
    assert_eq!(lines(&points), expected);
}

#[test]
fn without_peers_spans_that_stay_alone_are_dropped() {
    let mut settings = pair_settings(Temporality::Cumulative, 10);
    settings.measures[1].pairs.as_mut().unwrap().peers = 0;
    let mut aggregator = Aggregator::new(settings);
    aggregator.begin(b"t", START_MS);
    tell(&mut aggregator, &Half { key: [Some("a"), None, None, None, None], ..half(SERVER, 1, 0, "") });
    aggregator.begin(b"t", START_MS + TTL_MS + 1);
    assert_eq!((aggregator.counts().expired_edges, aggregator.series()), (1, 0));
}

#[test]
fn a_full_store_drops_spans_that_would_wait() {
    let mut aggregator = told(&[]);
    (0..12).for_each(|id| tell(&mut aggregator, &half(CLIENT, id, 1, "shop")));
    assert_eq!((aggregator.waiting_spans(), aggregator.counts().dropped_spans), (10, 2));
    // Others are taken.
    let mut database = half(CLIENT, 90, 1, "shop");
    database.key[4] = Some("orders");
    [half(CLIENT, 3, 1, "shop"), half(SERVER, 80, 3, "cart"), database]
        .iter()
        .for_each(|half| tell(&mut aggregator, half));
    assert_eq!((aggregator.waiting_spans(), aggregator.series()), (9, 2));
    assert_eq!((aggregator.counts().dropped_spans, aggregator.counts().lost), (2, 0));
}

#[test]
fn long_names_overflow_in_either_order() {
    let long: &'static str = "x".repeat(600).leak();
    let (client, server) = (half(CLIENT, 7, 1, long), half(SERVER, 8, 7, "cart"));
    for halves in [[client, server], [server, client]] {
        let mut aggregator = told(&halves);
        assert_eq!((aggregator.counts().cut, aggregator.counts().overflowed), (1, 1));
        assert_eq!(totals(&mut aggregator), ["otel.metric.overflow=BoolValue(true) AsInt(1)"]);
    }
    // A key that is cut itself.
    let mut aggregator = told(&[server]);
    aggregator.key().push(&[0; 5_000]);
    tell_with_key(&mut aggregator, &client);
    assert_eq!(
        (aggregator.counts().cut, aggregator.counts().overflowed, aggregator.waiting_spans()),
        (1, 1, 0)
    );
}

#[test]
fn values_of_other_types_are_taken_as_text() {
    use any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};
    let any = |value| AnyValue { value: Some(value) };
    let map = KeyValueList {
        values: vec![attribute("k", "v\""), KeyValue { key: "n".into(), ..KeyValue::default() }],
    };
    let cases = [
        (Value::IntValue(-5), "-5"),
        (Value::BoolValue(true), "true"),
        (Value::DoubleValue(2.0), "2"),
        (Value::DoubleValue(1e21), "1e+21"),
        (Value::DoubleValue(-2.5e-7), "-2.5e-7"),
        (Value::DoubleValue(f64::NAN), "NaN"),
        (Value::BytesValue(vec![1, 2, 3, 4]), "AQIDBA=="),
        (Value::ArrayValue(ArrayValue { values: vec![text("a"), any(Value::IntValue(1))] }), "[\"a\",1]"),
        (Value::ArrayValue(ArrayValue::default()), "[]"),
        (Value::KvlistValue(map), "{\"k\":\"v\\\"\",\"n\":null}"),
    ];
    for (value, expected) in cases {
        let mut aggregator = told(&[half(SERVER, 8, 7, "cart")]);
        let name = any(value).encode_to_vec();
        let mut key = vec![name.len() as u8 + 1];
        key.extend(name);
        key.extend([0; 4]);
        aggregator.key().push(&key);
        tell_with_key(&mut aggregator, &half(CLIENT, 7, 1, ""));
        let totals = totals(&mut aggregator);
        assert!(totals[0].starts_with(&format!("client={expected},server=cart,")), "{totals:?}");
    }
}

#[test]
fn spans_in_a_flush_are_lost_and_none_expires() {
    let mut aggregator = told(&[half(CLIENT, 7, 1, "shop")]);
    aggregator.begin_flush(START_MS);
    aggregator.begin(b"t", START_MS + 60_000);
    tell(&mut aggregator, &half(SERVER, 8, 7, "cart"));
    assert_eq!((aggregator.counts().lost, aggregator.waiting_spans(), aggregator.series()), (1, 1, 0));
    aggregator.end_flush();
    aggregator.begin(b"t", START_MS);
    assert_eq!((aggregator.waiting_spans(), aggregator.series()), (0, 1));
}

#[test]
fn a_store_takes_the_memory_that_the_settings_say() {
    let settings = pair_settings(Temporality::Cumulative, 1_000);
    let without = pair_settings(Temporality::Cumulative, 0);
    // A bucket stands for none.
    assert_eq!(settings.bytes() - without.bytes(), 1_000 * 580 - 4);
    let bytes = settings.bytes() as u64;
    let mut aggregator = None;
    let made = allocation_counter::measure(|| aggregator = Some(Aggregator::new(settings.clone())));
    assert!(made.bytes_current.unsigned_abs() + size_of::<Aggregator>() as u64 <= bytes, "{made:?} {bytes}");
    let mut aggregator = aggregator.unwrap();
    let halves: Vec<_> =
        (0..200_u8).map(|id| half([CLIENT, SERVER][usize::from(id % 2)], id, id / 2, "a")).collect();
    let keys: Vec<_> = halves.iter().map(|half| listed(&half.key)).collect();
    let used = allocation_counter::measure(|| {
        for round in 0..9 {
            for (half, key) in halves.iter().zip(&keys) {
                aggregator.begin(&[half.id % 3], START_MS + round * 1_500);
                aggregator.key().push(key);
                tell_with_key(&mut aggregator, half);
            }
            aggregator.begin_flush(START_MS + round * 1_500);
            aggregator.end_flush();
        }
    });
    assert_eq!(used.count_total, 0);
    assert!(aggregator.counts().expired_edges > 0 && aggregator.series() > 0);
}
