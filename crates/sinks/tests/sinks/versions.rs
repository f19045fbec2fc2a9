//! Promise: either version goes out as either, and a peer that knows 1.0 only gets that.

use crate::rig::{Rig, answers, peer, settings};
use tidegate_load::remote_write::{RequestExtras, Version};
use tidegate_load::{Arrivals, Behaviour};
use tidegate_sinks::{Prefer, RemoteWriteSettings};

/// Puts in bodies of both versions, has them sent, and gives what arrived.
async fn mixed(behaviour: Behaviour, prefer: Prefer) -> Arrivals {
    let mut rig = Rig::new(100, 1 << 20);
    let peer = peer(behaviour);
    for _ in 0..5 {
        rig.put(Version::V2, 0..100, 2).await;
        rig.put(Version::V2, 0..50, 1).await;
        rig.put(Version::V1, 0..100, 1).await;
        rig.put_with(Version::V2, 0..100, 1, RequestExtras { exemplars: true, ..RequestExtras::default() })
            .await;
    }
    rig.drain(RemoteWriteSettings { prefer, ..settings(&peer) }).await;
    let arrived = peer.report();
    rig.assert_exact(&arrived);
    assert_eq!(rig.dropped(), []);
    assert!(arrived.totals.exemplars > 0);
    arrived
}

#[tokio::test]
async fn each_body_goes_out_as_it_was_received() {
    let arrived = mixed(Behaviour::Healthy, Prefer::AsReceived).await;
    assert!(arrived.versions.iter().all(|requests| *requests > 0), "{:?}", arrived.versions);
}

#[tokio::test]
async fn a_forced_version_is_sent_for_both_received_versions() {
    assert_eq!(mixed(Behaviour::Healthy, Prefer::V1).await.versions[1], 0);
    assert_eq!(mixed(Behaviour::Healthy, Prefer::V2).await.versions[0], 0);
}

#[tokio::test]
async fn a_peer_that_answers_415_gets_1_0() {
    let arrived = mixed(Behaviour::OnlyV1, Prefer::V2).await;
    assert_eq!(arrived.versions[1], 0);
    assert_eq!(answers(&arrived, 415), 1, "it is not asked again and again");
}

/// A receiver that knows only 1.0 reads a 2.0 body as an empty one and says that all is well.
#[tokio::test]
async fn a_success_without_written_headers_is_taken_for_415() {
    let arrived = mixed(Behaviour::Oblivious, Prefer::AsReceived).await;
    assert_eq!(arrived.versions[1], 0);
}

/// Metadata of families without a series has no place in 2.0; the books say so.
#[tokio::test]
async fn metadata_without_a_series_is_counted_in_2_0() {
    use tidegate_ledger::Dropped;
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    // WriteRequest { metadata: [{ family: "a" }, { family: "b" }] }
    let raw = b"\x1a\x03\x12\x01a\x1a\x03\x12\x01b";
    let mut body = Vec::new();
    tidegate_load::remote_write::compress(raw, &mut body);
    rig.append(Version::V1, &body, raw.len(), 2).await;
    rig.put(Version::V2, 0..10, 1).await;
    rig.drain(RemoteWriteSettings { prefer: Prefer::V2, ..settings(&peer) }).await;
    rig.assert_exact(&peer.report());
    assert_eq!(rig.dropped(), [(Dropped::Untranslatable, 2)]);
    assert_eq!(answers(&peer.report(), 204), 1, "no request is sent that says nothing");
}
