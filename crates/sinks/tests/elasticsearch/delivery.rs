//! Accepted documents are delivered.

use crate::node::{Answer, Node};
use crate::rig::{PART, Rig, SECOND, settings};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_ledger::Dropped;
use tidegate_sinks::ElasticsearchSettings;

const CREATE: &str = "{\"create\":{\"_index\":\"logs\"}}";

/// Records of all encodings are joined, and arrive once, compressed or not, with ids or as they came.
#[tokio::test]
async fn documents_arrive_once_however_they_came_and_go() {
    for (gzip, ids) in [(None, true), (Some(1), true), (None, false), (Some(1), false)] {
        let (mut rig, node) = (Rig::new(PART), Node::new([]));
        for round in 0..30 {
            let encoding = if round % 3 == 0 { Encoding::Gzip } else { Encoding::Identity };
            rig.put(encoding, CREATE, 7, 100).await;
        }
        rig.drain(ElasticsearchSettings { gzip, ids, ..settings(&node) }).await;
        node.assert_has(0..210);
        let seen = node.seen();
        assert!(seen.requests.len() < 10, "{} requests for 30 records", seen.requests.len());
        assert_eq!(seen.anonymous, if ids { 0 } else { 210 });
        assert_eq!((rig.page().delivered, rig.dropped()), (210, vec![]));
    }
}

/// A record that is longer than a request may be goes in pieces; one that needs more memory than the sink's own goes
/// with borrowed memory, when nothing else is under way.
#[tokio::test]
async fn a_record_longer_than_a_request_is_split() {
    for part in [PART, 512 << 10] {
        let (mut rig, node) = (Rig::new(part), Node::new([]));
        rig.put(Encoding::Identity, CREATE, 3, 100).await;
        rig.put(Encoding::Identity, CREATE, 1000, 2000).await;
        rig.put(Encoding::Gzip, CREATE, 500, 2000).await;
        rig.put(Encoding::Identity, CREATE, 3, 100).await;
        let settings =
            ElasticsearchSettings { max_request_bytes: 256 << 10, gzip: Some(1), ..settings(&node) };
        rig.drain(settings).await;
        node.assert_has(0..1506);
        assert!(node.seen().requests.len() >= 12);
        assert_eq!(rig.page().delivered, 1506);
    }
}

/// Headers, those that say who sends it among them, go with every request.
#[tokio::test]
async fn requests_have_the_headers_that_are_configured() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    rig.put(Encoding::Identity, CREATE, 1, 10).await;
    let mut settings = ElasticsearchSettings { gzip: Some(1), ..settings(&node) };
    settings.headers.insert("authorization", "ApiKey abc".parse().unwrap());
    rig.drain(settings).await;
    let seen = node.seen();
    let headers = &seen.requests[0].2;
    assert_eq!(headers["authorization"], "ApiKey abc");
    assert_eq!(headers["content-type"], "application/x-ndjson");
    assert_eq!(headers["content-encoding"], "gzip");
}

/// Items that cannot become documents are counted, and hold up nothing.
#[tokio::test]
async fn untranslatable_records_are_counted() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    rig.put(Encoding::Identity, CREATE, 1, 10).await;
    rig.append(meta(Signal::Profiles, Protocol::Otlp), b"abc").await;
    rig.drain(settings(&node)).await;
    node.assert_has(0..1);
    assert_eq!(rig.dropped(), [(Dropped::Untranslatable, 3)]);
}

/// Of what is no `_bulk` although it is said to be one, nothing counts as delivered, and its neighbours are.
#[tokio::test]
async fn invalid_bulk_bodies_are_counted() {
    for (ids, body, reason) in [
        (true, "{}", Dropped::Damaged),
        (false, "{}", Dropped::Damaged),
        (true, "{}\n", Dropped::Damaged),
        (false, "{}\n", Dropped::Rejected),
        (true, "{\"delete\":{\"_id\":\"1\"}}", Dropped::Damaged),
        (true, "", Dropped::Untranslatable),
    ] {
        let (mut rig, node) = (Rig::new(PART), Node::new([]));
        rig.put(Encoding::Identity, CREATE, 5, 10).await;
        rig.append(meta(Signal::Logs, Protocol::Bulk), body.as_bytes()).await;
        rig.drain(ElasticsearchSettings { ids, ..settings(&node) }).await;
        node.assert_has(0..5);
        assert_eq!((rig.page().delivered, rig.dropped()), (5, vec![(reason, 3)]), "{ids} {body:?}");
    }
}

/// Of a record that is not what it says: of three items.
fn meta(signal: Signal, protocol: Protocol) -> Meta {
    Meta {
        tenant: Tenant::NONE,
        signal,
        protocol,
        encoding: Encoding::Identity,
        items: 3,
        raw_len: 3,
        received_at_ns: 1,
    }
}

/// After a restart nothing that was answered is sent again; what was not is, and makes no duplicate.
#[tokio::test]
async fn a_restart_makes_no_duplicates() {
    // The ids are ours, or the clients'.
    for action in [CREATE, "{\"create\":{\"_index\":\"logs\",\"_id\":\"own-#\"}}"] {
        let (mut rig, node) = (Rig::new(PART), Node::new([]).always(Answer::Lost));
        for _ in 0..10 {
            rig.put(Encoding::Identity, action, 5, 100).await;
        }
        let (sink, stopper) =
            rig.sink(ElasticsearchSettings { max_request_bytes: 64 << 10, ..settings(&node) });
        let stopping = async {
            while node.seen().requests.len() < 5 {
                tokio::task::yield_now().await;
            }
            stopper.stop();
        };
        let (ended, ()) = tokio::join!(tokio::time::timeout(60 * SECOND, sink.run()), stopping);
        ended.unwrap();
        let rig = rig.restarted();
        let node = node.always(Answer::Ok);
        rig.drain(settings(&node)).await;
        node.assert_has(0..50);
        assert!(node.seen().repeated > 0);
        assert_eq!((rig.page().delivered, rig.page().dropped), (50, vec![]));
    }
}
