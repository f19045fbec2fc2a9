//! Dead letters.

use super::{Stored, each};
use crate::Kind;
use serde_json::json;
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
