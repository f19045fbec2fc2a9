//! Promise: an unavailable index holds up its own documents, and nothing else.

use crate::node::{Answer, Node};
use crate::rig::{PART, Rig, SECOND, settings};
use std::time::Duration;
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_ledger::Dropped;
use tidegate_sinks::ElasticsearchSettings;

/// Waits until something is so, however slow the machine is.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(60 * SECOND, waiting).await.expect("it becomes so");
}

fn action(index: &str) -> String {
    format!("{{\"create\":{{\"_index\":\"{index}\"}}}}")
}

/// While one index is red the documents of the others arrive, those of the same request included; `/status` has its
/// name; and when it is back everything is there, once, also without ids.
#[tokio::test]
async fn others_go_on_while_an_index_takes_nothing() {
    for (ids, gzip) in [(true, None), (false, Some(1))] {
        let (mut rig, node) = (Rig::new(PART), Node::new([]));
        node.seen().red.insert("red".to_owned());
        let (sink, _stopper) = rig.sink(ElasticsearchSettings { ids, gzip, ..settings(&node) });
        let feeding = async {
            for round in 0..60 {
                let index = if round % 3 == 0 { "red" } else { "green" };
                rig.put(Encoding::Identity, &action(index), 5, 50).await;
            }
            // Of both, in one record.
            let mixed: String = (1000..1020)
                .map(|n| format!("{}\n{{\"n\":{n}}}\n", action(if n % 2 == 0 { "red" } else { "green" })))
                .collect();
            rig.append(meta(Signal::Logs, Protocol::Bulk, 20, mixed.len()), mixed.as_bytes()).await;
            until(|| node.seen().documents.len() == 40 * 5 + 10).await;
            until(|| rig.health.waiting().iter().map(|held| held.items).sum::<u64>() == 20 * 5 + 10).await;
            let held = rig.health.waiting().remove(0);
            assert_eq!((held.what.as_str(), held.records), ("red", 21));
            assert!(held.reason.contains("unavailable_shards_exception"), "{}", held.reason);
            // It is asked again, by one record at a time and without any others.
            let asked = node.seen().refused.len();
            until(|| node.seen().refused.len() > asked + 3).await;
            assert!(node.seen().refused[asked..].iter().all(|(red, others)| *red <= 10 && *others == 0));
            assert_eq!(rig.page().queued, 20 * 5 + 20);
            node.seen().red.clear();
            until(|| rig.page().queued == 0).await;
            assert!(rig.health.waiting().is_empty());
            assert_eq!(rig.health.activity().resent, 0, "the node refused them, so it has none twice");
            assert!(rig.journal.close(60 * SECOND));
        };
        let (ended, ()) = tokio::join!(tokio::time::timeout(120 * SECOND, sink.run()), feeding);
        ended.unwrap();
        node.assert_has((0..300).chain(1000..1020));
        assert_eq!((rig.page().delivered, rig.dropped()), (320, vec![]));
        assert_eq!(node.seen().repeated, 0, "nothing is sent twice that was taken");
    }
}

/// More indexes than are told apart by name, and a restart in the middle of it.
#[tokio::test]
async fn many_red_indexes_and_a_restart_lose_nothing() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    for round in 0..40 {
        let index = format!("red-{}", round % 20);
        node.seen().red.insert(index.clone());
        rig.put(Encoding::Gzip, &action(&index), 3, 50).await;
        rig.put(Encoding::Identity, &action("green"), 3, 50).await;
    }
    let (sink, stopper) = rig.sink(settings(&node));
    let stopping = async {
        let waits = || rig.health.waiting().iter().map(|held| held.items).sum::<u64>();
        until(|| node.seen().documents.len() == 120 && waits() == 120).await;
        assert_eq!(rig.health.waiting().len(), 4);
        assert!(rig.health.waiting().iter().any(|held| held.what == "other indexes"));
        stopper.stop();
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(60 * SECOND, sink.run()), stopping);
    ended.unwrap();
    let rig = rig.restarted();
    node.seen().red.clear();
    rig.drain(settings(&node)).await;
    node.assert_has(0..240);
    assert_eq!((rig.page().delivered, rig.page().dropped), (240, vec![]));
}

/// A document that is too much for a record of its own waits as others do.
#[tokio::test]
async fn documents_with_borrowed_memory_wait_for_their_index_too() {
    let (mut rig, node) = (Rig::new(512 << 10), Node::new([]));
    node.seen().red.insert("red".to_owned());
    rig.put(Encoding::Gzip, &action("red"), 500, 2000).await;
    rig.put(Encoding::Gzip, &action("green"), 500, 2000).await;
    let (sink, _stopper) =
        rig.sink(ElasticsearchSettings { max_request_bytes: 256 << 10, ..settings(&node) });
    let feeding = async {
        until(|| node.seen().documents.len() == 500).await;
        until(|| rig.health.waiting().iter().map(|held| held.items).sum::<u64>() == 500).await;
        node.seen().red.clear();
        until(|| rig.page().queued == 0).await;
        assert!(rig.journal.close(60 * SECOND));
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(120 * SECOND, sink.run()), feeding);
    ended.unwrap();
    node.assert_has(0..1000);
    assert_eq!((rig.page().delivered, node.seen().repeated), (1000, 0));
}

/// A node that fails over a request for one document in it gets halves, until that one is alone; it is kept with the
/// reason, and the others are delivered.
#[tokio::test]
async fn a_request_that_fails_for_one_document_is_halved() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::Breaks(13)));
    for _ in 0..4 {
        rig.put(Encoding::Identity, &action("logs"), 10, 10).await;
    }
    rig.drain(settings(&node)).await;
    node.assert_has((0..40).filter(|number| *number != 13));
    assert_eq!((rig.page().delivered, rig.dropped()), (39, vec![(Dropped::Rejected, 1)]));
    assert!(rig.letters()[0].0.contains("no ingest nodes"), "{:?}", rig.letters());
}

/// One that fails by itself again and again is not wanted; it is not sent for ever.
#[tokio::test]
async fn a_document_that_fails_again_and_again_is_kept_with_the_reason() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::Faults(3)));
    rig.put(Encoding::Identity, &action("logs"), 10, 10).await;
    rig.drain(settings(&node)).await;
    node.assert_has((0..10).filter(|number| *number != 3));
    assert_eq!((rig.page().delivered, rig.dropped()), (9, vec![(Dropped::Rejected, 1)]));
    assert!(rig.letters()[0].0.contains("null_pointer_exception"));
}

pub(crate) fn meta(signal: Signal, protocol: Protocol, items: u32, raw_len: usize) -> Meta {
    Meta {
        tenant: Tenant::NONE,
        signal,
        protocol,
        encoding: Encoding::Identity,
        items,
        raw_len: u32::try_from(raw_len).unwrap(),
        received_at_ns: 1_700_000_000_000_000_000,
    }
}
