//! `/tap` over real sockets: what was caught, within the memory of answers, and mistakes in words.

use super::sample::healthy;
use super::served::{Answer, Served, gateway_with};
use crate::LONGEST_ANSWER;
use serde_json::Value;
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_tap::{Tap, TapPoint};

/// A gateway that nobody sends anything to, and its tap.
fn served() -> (Served, Tap) {
    let gateway = gateway_with(healthy());
    let tap = gateway.tap.clone();
    (Served::new(gateway), tap)
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

/// A request with so many log records, and what is known of it.
fn logs(records: usize) -> (Meta, Vec<u8>) {
    let record = field(2, &field(5, &field(1, "x".repeat(1_000).as_bytes())));
    let body = field(1, &field(2, &record.repeat(records)));
    let meta = Meta {
        tenant: Tenant::NONE,
        signal: Signal::Logs,
        protocol: Protocol::Otlp,
        encoding: Encoding::Identity,
        items: u32::try_from(records).unwrap(),
        raw_len: u32::try_from(body.len()).unwrap(),
        received_at_ns: 1,
    };
    (meta, body)
}

/// The items of an answer, and its last line.
fn lines(answer: &Answer) -> (usize, Value) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.has("Content-Type: application/x-ndjson"));
    assert!(answer.body.ends_with("}\n") && answer.body.len() <= LONGEST_ANSWER);
    let lines: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, items) = lines.split_last().unwrap();
    assert!(items.iter().all(|item| item["at"] == "source:otlp"));
    (items.len(), last.clone())
}

#[test]
fn a_page_view_opens_the_tap_and_shows_records() {
    let (served, tap) = served();
    assert_eq!(served.ask("GET /status").status, 200);
    assert!(!tap.is_open(), "nobody looks");
    assert_eq!(lines(&served.ask("GET /tap")).0, 0);
    let (meta, body) = logs(3);
    tap.offer(TapPoint::Source("otlp"), &meta, Some(&body));
    let (items, last) = lines(&served.ask("GET /tap?wait=10s"));
    assert_eq!((items, &last["missed_records"]), (3, &Value::from(0)));
    assert_eq!(lines(&served.ask("GET /tap")).0, 0, "each is shown once");
}

/// Items that do not fit into a response wait for the next; none is lost.
#[test]
fn answers_are_bounded_and_go_on() {
    let (served, tap) = served();
    lines(&served.ask("GET /tap"));
    let (meta, body) = logs(150);
    (0..6).for_each(|_| tap.offer(TapPoint::Source("otlp"), &meta, Some(&body)));
    let (first, last) = lines(&served.ask("GET /tap"));
    assert!((300..900).contains(&first), "{first}");
    assert_eq!((&last["lines_without_room"], &last["missed_records"]), (&Value::from(0), &Value::from(0)));
    let waiting = last["records_waiting"].as_u64().unwrap();
    assert_eq!(usize::try_from(waiting).unwrap() * 150 + first, 900);
    assert_eq!(lines(&served.ask("GET /tap")).0, 900 - first);
    // More than is caught is counted.
    (0..100).for_each(|_| tap.offer(TapPoint::Source("otlp"), &meta, Some(&body)));
    assert!(lines(&served.ask("GET /tap")).1["missed_records"].as_u64().unwrap() >= 36);
}

#[test]
fn mistakes_are_answered_in_words() {
    let (served, tap) = served();
    for (request, status, words) in [
        ("GET /tap?sink=lke", 404, "there is no sink `lke`; there are: lake, upstream"),
        ("GET /tap?sink=%1b%5b2J%0a", 404, "`\\u{1b}[2J\\n`"),
        ("GET /tap?source=kafka", 400, "the sources are elastic_apm"),
        ("GET /tap?nam=x", 400, "no parameter `nam`"),
        ("POST /tap", 405, "use GET or HEAD"),
        ("GET /tap?id=one", 200, "open_for_seconds"),
        ("GET /tap?id=other", 200, "open_for_seconds"),
        ("DELETE /tap?id=other", 200, "the look is over"),
        ("DELETE /tap?id=one", 200, "the look is over"),
    ] {
        let answer = served.ask(request);
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
        assert!(answer.body.contains(words), "{request}: {}", answer.body);
    }
    assert!(!tap.is_open(), "both looks are over");
}
