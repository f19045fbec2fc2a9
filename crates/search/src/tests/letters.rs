//! Dead letters.

use super::logs::logs;
use super::metrics::{counter, histogram};
use super::{SECOND, START, Stored, bounds, each};
use crate::{Bounds, Kind, Query, Stores, search};
use prost::Message as _;
use serde_json::{Value, json};
use std::time::Instant;
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters, mark_sent};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};

#[test]
fn dead_letters_are_listed_the_newest_first() {
    let stored = Stored::new();
    let none = stored.ask(Kind::DeadLetters, &json!({}));
    assert_eq!((&none["letters"], &none["total"]), (&json!([]), &json!(0)));
    let dir = stored.dir.path().join("dead-letters");
    let letters = DeadLetters::open(&dir, 1 << 20).unwrap();
    let meta = Meta {
        tenant: Tenant::new("shop").unwrap(),
        signal: Signal::Logs,
        protocol: Protocol::Otlp,
        encoding: Encoding::Identity,
        items: 3,
        raw_len: 4,
        received_at_ns: 1,
    };
    for (sink, reason) in [("up", "400: first"), ("up", "400: second"), ("other", "422: <b>")] {
        letters.add(DeadLetter { sink, reason, meta: &meta, body: b"body" }).unwrap();
    }
    let all = stored.ask(Kind::DeadLetters, &json!({}));
    assert_eq!(each(&all["letters"], "reason"), ["422: <b>", "400: second", "400: first"]);
    assert_eq!((&all["total"], &all["items"], &all["has_more"]), (&json!(3), &json!(9), &json!(false)));
    let first = &all["letters"][0];
    assert_eq!(
        (&first["sink"], &first["tenant"], &first["bytes"]),
        (&json!("other"), &json!("shop"), &json!(4))
    );
    assert_eq!((&first["signal"], &first["protocol"]), (&json!("logs"), &json!("otlp")));
    let one = stored.ask(Kind::DeadLetters, &json!({"sink": "up", "limit": 1}));
    assert_eq!(
        (each(&one["letters"], "reason"), &one["has_more"]),
        (vec!["400: second".into()], &json!(true))
    );
    let id = all["letters"][1]["id"].as_u64().unwrap();
    mark_sent(&dir, "up", id).unwrap();
    let left = stored.ask(Kind::DeadLetters, &json!({}));
    assert_eq!(each(&left["letters"], "reason"), ["422: <b>"]);
}

/// A folder of dead letters, to which bodies are added.
struct Letters {
    stored: Stored,
    letters: DeadLetters,
}

impl Letters {
    fn new() -> Letters {
        let stored = Stored::new();
        let letters = DeadLetters::open(&stored.dir.path().join("dead-letters"), 1 << 20).unwrap();
        Letters { stored, letters }
    }

    /// Adds a letter, and asks for it.
    fn added(
        &self,
        (protocol, signal): (Protocol, Signal),
        encoding: Encoding,
        body: &[u8],
        raw_len: usize,
    ) -> Value {
        let meta = Meta {
            tenant: Tenant::NONE,
            signal,
            protocol,
            encoding,
            items: 1,
            raw_len: u32::try_from(raw_len).unwrap(),
            received_at_ns: START * SECOND,
        };
        self.letters.add(DeadLetter { sink: "up", reason: "400: no", meta: &meta, body }).unwrap();
        let all = self.stored.ask(Kind::DeadLetters, &json!({"limit": 1}));
        self.stored.ask(Kind::DeadLetter, &json!({"id": all["letters"][0]["id"]}))
    }
}

#[test]
fn the_items_of_a_letter_are_shown() {
    let of = Letters::new();
    let otlp = |signal, raw: Vec<u8>| of.added((Protocol::Otlp, signal), Encoding::Identity, &raw, raw.len());
    let told = otlp(Signal::Logs, logs("shop", &[(1, 9, "one"), (2, 9, "two")]).encode_to_vec());
    assert_eq!((&told["letter"]["sink"], &told["letter"]["reason"]), (&json!("up"), &json!("400: no")));
    assert_eq!(each(&told["logs"], "body"), ["two", "one"]);
    let first = &told["logs"][1];
    assert_eq!((&first["service"], &first["from"]), (&json!("shop"), &json!("dead letter")));
    assert_eq!(first["attributes"]["exception.type"], "Oops");
    assert_eq!(
        (&told["spans"], &told["incomplete"], &told["from_journal"]),
        (&Value::Null, &json!([]), &json!(0))
    );

    let told = otlp(Signal::Metrics, counter(&[("eu", 0, 100)]).encode_to_vec());
    let point = &told["points"][0];
    assert_eq!(
        (&point["name"], &point["value"], &point["unit"]),
        (&json!("orders"), &json!(100), &json!("{order}"))
    );
    assert_eq!((&point["attributes"]["region"], &told["histograms"]), (&json!("eu"), &json!([])));
    let told = otlp(Signal::Metrics, histogram(5, [60, 40, 10]).encode_to_vec());
    assert_eq!((&told["histograms"][0]["count"], &told["points"]), (&json!(110), &json!([])));

    let raw = super::metrics::series(&[("__name__", "up"), ("job", "a"), ("zone", "z")], START * 1000, 1.0);
    let body = snap::raw::Encoder::new().compress_vec(&raw).unwrap();
    let told = of.added((Protocol::RemoteWrite1, Signal::Metrics), Encoding::Snappy, &body, raw.len());
    let point = &told["points"][0];
    assert_eq!((&point["name"], &point["value"]), (&json!("up"), &json!(1.0)));
    assert_eq!(point["attributes"], json!({"job": "a", "zone": "z"}));
}

/// A journal that is kept in memory takes nothing from a letter.
#[test]
fn letters_do_not_need_the_journal() {
    let of = Letters::new();
    let raw = logs("shop", &[(1, 9, "one")]).encode_to_vec();
    let told = of.added((Protocol::Otlp, Signal::Logs), Encoding::Identity, &raw, raw.len());
    let query = json!({"id": told["letter"]["id"]}).to_string();
    let query = Query::parse(Kind::DeadLetter, query.as_bytes()).unwrap();
    let stores = Stores { journal: None, ..of.stored.stores() };
    let told: Value = serde_json::from_slice(&search(&query, &stores, &bounds()).unwrap()).unwrap();
    assert_eq!((each(&told["logs"], "body"), &told["incomplete"]), (vec!["one".to_owned()], &json!([])));
}

/// The events of an agent are of several kinds.
#[test]
fn a_letter_of_several_signals_has_all_of_them() {
    let body = concat!(
        r#"{"metadata":{"service":{"name":"shop","agent":{"name":"go","version":"1.0.0"}}}}"#,
        "\n",
        r#"{"transaction":{"id":"00f067aa0ba902b7","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","type":"request","name":"GET /","duration":12.5,"timestamp":1700000001000000,"span_count":{"started":0}}}"#,
        "\n",
        r#"{"metricset":{"timestamp":1700000001000000,"samples":{"queue":{"value":3}}}}"#,
        "\n",
    );
    let told = Letters::new().added(
        (Protocol::Intake, Signal::Events),
        Encoding::Identity,
        body.as_bytes(),
        body.len(),
    );
    assert_eq!(each(&told["spans"], "name"), ["GET /"], "{told}");
    assert_eq!(each(&told["points"], "name"), ["queue"], "{told}");
    assert_eq!(told["logs"], json!([]));
}

/// The answer names the reason for missing items.
#[test]
fn a_letter_that_cannot_be_shown_says_why() {
    let of = Letters::new();
    let why = |told: &Value| {
        assert_eq!(told["letter"]["sink"], "up", "{told}");
        told["incomplete"].as_array().unwrap().iter().map(Value::to_string).collect::<String>()
    };
    let damaged = of.added((Protocol::Otlp, Signal::Logs), Encoding::Gzip, b"no gzip", 1000);
    assert!(why(&damaged).contains("damaged"), "{damaged}");
    let unreadable =
        of.added((Protocol::RemoteWrite2, Signal::Metrics), Encoding::Identity, &[0xff; 100], 100);
    assert_eq!(unreadable["incomplete"], json!(["the letter cannot be read: it is damaged"]));
    let other = of.added((Protocol::OtlpJson, Signal::Logs), Encoding::Identity, b"{}", 2);
    assert!(why(&other).contains("cannot be shown"), "{other}");
    let id = &other["letter"]["id"];
    let little = of.stored.ask_within(Kind::DeadLetter, &json!({"id": id}), &Bounds { body: 1, ..bounds() });
    assert!(why(&little).contains("too long for the memory"), "{little}");
    let late = of.stored.ask_within(
        Kind::DeadLetter,
        &json!({"id": id}),
        &Bounds { until: Instant::now(), ..bounds() },
    );
    assert_eq!(
        (&late["letter"], &late["incomplete"][0]),
        (&Value::Null, &json!("the time was over before the letter was found"))
    );
    let unknown = of.stored.ask(Kind::DeadLetter, &json!({"id": 1_000_000}));
    assert_eq!((&unknown["letter"], &unknown["logs"]), (&Value::Null, &Value::Null));
}

#[test]
fn of_many_items_the_newest_are_shown() {
    let of = Letters::new();
    let raw = logs("shop", &(0..50).map(|second| (second, 9, "one")).collect::<Vec<_>>()).encode_to_vec();
    let told = of.added((Protocol::Otlp, Signal::Logs), Encoding::Identity, &raw, raw.len());
    assert_eq!((told["logs"].as_array().unwrap().len(), &told["has_more"]), (50, &json!(false)));
    let few = of.stored.ask(Kind::DeadLetter, &json!({"id": told["letter"]["id"], "limit": 3}));
    assert_eq!((few["logs"].as_array().unwrap().len(), &few["has_more"]), (3, &json!(true)));
    assert_eq!(few["logs"][0], told["logs"][0]);
    let all = of.stored.ask(Kind::DeadLetter, &json!({"id": told["letter"]["id"], "limit": 50}));
    assert_eq!((all["logs"].as_array().unwrap().len(), &all["has_more"]), (50, &json!(false)));
}
