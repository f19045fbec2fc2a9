//! Promise: a record that the sink can hold at all is delivered, item by item, whatever becomes of it on the way out.

use crate::node::{Answer, Node};
use crate::rig::{NAME, Rig, SECOND, gzipped, settings};
use crate::unavailable::{meta, until};
use std::time::Duration;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::protobuf::{field, varint};
use tidegate_sinks::{ElasticsearchSettings, Health};

/// An attribute that is a text.
pub(crate) fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &field(1, value))].concat()
}

/// A request of logs, spans or metrics with these items under one resource.
pub(crate) fn request(resource: &[u8], items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let items: Vec<u8> = items.flat_map(|item| field(2, &item)).collect();
    field(1, &[field(1, resource), field(2, &items)].concat())
}

fn logs(count: usize, len: usize) -> Vec<u8> {
    let record = |number: usize| field(5, &field(1, format!("{number} {}", "x".repeat(len)).as_bytes()));
    request(&field(1, &attribute("service.name", b"shop")), (0..count).map(record))
}

fn bulk(count: usize, len: usize) -> Vec<u8> {
    let line =
        |n| format!("{{\"create\":{{\"_index\":\"i\"}}}}\n{{\"n\":{n},\"pad\":\"{}\"}}\n", "x".repeat(len));
    (0..count).map(line).collect::<String>().into_bytes()
}

fn intake(count: usize, len: usize) -> Vec<u8> {
    let metadata = r#"{"metadata":{"service":{"name":"shop","agent":{"name":"python","version":"1"}}}}"#;
    let event = |n| {
        format!(
            "{{\"error\":{{\"id\":\"{n:032x}\",\"timestamp\":1700000000000000,\"log\":{{\"message\":\"{}\"}}}}}}\n",
            "x".repeat(len)
        )
    };
    format!("{metadata}\n{}", (0..count).map(event).collect::<String>()).into_bytes()
}

fn series(count: usize, samples: usize) -> Vec<u8> {
    let label =
        |name: &str, value: &str| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat());
    let sample = |at: usize| {
        let mut timestamp = vec![0x10];
        varint(&mut timestamp, 1_700_000_000_000 + at as u64);
        field(2, &[&[0x09][..], &(at as f64).to_le_bytes(), &timestamp].concat())
    };
    let one = |number: usize| {
        let labels =
            [label("__name__", "requests"), label("id", &number.to_string()), label("job", "a")].concat();
        field(1, &[labels, (0..samples).flat_map(sample).collect()].concat())
    };
    (0..count).flat_map(one).collect()
}

/// Each kind of body, with how many documents it is.
fn bodies() -> [(Protocol, Signal, Vec<u8>, u32); 5] {
    [
        (Protocol::Otlp, Signal::Logs, logs(2000, 2000), 2000),
        (Protocol::Otlp, Signal::Logs, logs(20_000, 100), 20_000),
        (Protocol::Bulk, Signal::Logs, bulk(2000, 2000), 2000),
        (Protocol::Intake, Signal::Logs, intake(2000, 2000), 2000),
        (Protocol::RemoteWrite1, Signal::Metrics, series(200, 250), 50_000),
    ]
}

/// A body of about 4 MB goes through a sink that can hold 1.5 MiB beside it, compressed or not, also when the node is
/// in trouble on the way; each document once.
#[tokio::test]
async fn large_bodies_are_delivered_in_pieces() {
    for (number, (protocol, signal, body, items)) in bodies().into_iter().enumerate() {
        for (encoding, trouble) in [(Encoding::Identity, false), (Encoding::Gzip, true)] {
            let kept = if encoding == Encoding::Gzip { gzipped(&body) } else { body.clone() };
            let decoded = if encoding == Encoding::Gzip { body.len() } else { 0 };
            let most = kept.len() + decoded + (3 << 19);
            let rig = Rig::tight(most as u64);
            let script: Vec<Answer> = match trouble {
                false => Vec::new(),
                true => [Answer::Ok, Answer::Every(3, 429), Answer::Lost, Answer::Status(503, "busy")]
                    .iter()
                    .cycle()
                    .take(12)
                    .cloned()
                    .collect(),
            };
            let node = Node::new(script);
            rig.append(Meta { encoding, ..meta(signal, protocol, items, body.len()) }, &kept).await;
            let gzip = trouble.then_some(1);
            rig.drain(ElasticsearchSettings { gzip, ..settings(&node) }).await;
            let told = format!("body {number}, {encoding:?}");
            assert_eq!((rig.page().delivered, rig.dropped()), (u64::from(items), vec![]), "{told}");
            assert_eq!(node.seen().documents.len(), items as usize, "{told}");
            assert_eq!(node.seen().anonymous, 0);
            assert!(node.seen().requests.len() > 3, "{told}");
        }
    }
}

/// Of a record whose one item fits nowhere only that is lost, and people are told what to raise.
#[tokio::test]
async fn an_item_that_fits_nowhere_is_lost_alone() {
    let long = "\u{1}".repeat(2 << 20);
    let record = |text: &str| field(5, &field(1, text.as_bytes()));
    let body = request(&[], ["before", &long, "behind"].into_iter().map(record));
    let rig = Rig::tight(body.len() as u64 + (4 << 20));
    let node = Node::new([]);
    rig.append(meta(Signal::Logs, Protocol::Otlp, 3, body.len()), &body).await;
    rig.drain(settings(&node)).await;
    assert_eq!((rig.page().delivered, rig.dropped()), (2, vec![(Dropped::TooLarge, 1)]));
    assert_eq!(node.seen().documents.len(), 2);
    assert!(rig.health.trouble().last_error.unwrap().contains("raise `memory`"));
}

/// A record that becomes many requests gives up the turn to borrow between them, so that another sink's large record does
/// not wait for all of them; and each document still arrives once.
#[tokio::test]
async fn another_sink_borrows_between_the_pieces_of_a_record() {
    let span =
        |_| [field(1, &[7; 16]), field(2, &[7; 8]), field(5, "x".repeat(100 << 10).as_bytes())].concat();
    let spans = request(&field(1, &attribute("service.name", b"shop")), (0..10).map(span));
    let bodies = [
        (Protocol::Otlp, Signal::Logs, logs(1000, 2000), 1000),
        (Protocol::Bulk, Signal::Logs, bulk(1000, 2000), 1000),
        (Protocol::RemoteWrite1, Signal::Metrics, series(40, 250), 10_000),
    ];
    for (protocol, signal, body, items) in &bodies {
        let rig = Rig::tight(body.len() as u64 + (4 << 20));
        let (long, other) = (Node::new([]), Node::new([]));
        rig.append(meta(*signal, *protocol, *items, body.len()), body).await;
        rig.append(meta(Signal::Traces, Protocol::Otlp, 10, spans.len()), &spans).await;
        assert!(rig.journal.close(60 * SECOND));
        (long.seen().holds, long.seen().delay) = (true, Duration::from_millis(20));
        let settings = |node: &Node| ElasticsearchSettings { max_request_bytes: 64 << 10, ..settings(node) };
        let (health, only) = (Health::default(), |signal: Signal| [signal].into_iter().collect());
        let (first, _stopper) = rig.sink_of(NAME, only(*signal), &rig.health, settings(&long));
        let (second, _stopper) = rig.sink_of("other", only(Signal::Traces), &health, settings(&other));
        let second = async {
            until(|| long.seen().came > 0).await;
            second.run().await;
            long.seen().came
        };
        let release = async {
            until(|| rig.turn.waiting() == 1).await;
            long.seen().holds = false;
        };
        let all = async { tokio::join!(first.run(), second, release) };
        let ((), before, ()) = tokio::time::timeout(120 * SECOND, all).await.expect("everything is sent");
        assert_eq!(other.seen().documents.len(), 10);
        let seen = long.seen();
        assert!(before < seen.came, "{protocol:?}: {before} of {} requests", seen.came);
        assert_eq!((seen.documents.len(), seen.repeated), (*items as usize, 0), "{protocol:?}");
        assert_eq!((rig.page().delivered, rig.dropped()), (u64::from(*items), vec![]));
    }
}
