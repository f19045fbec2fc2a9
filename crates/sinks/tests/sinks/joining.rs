//! Promise: bodies that need no decoding are joined, and arrive whole and in order.

use crate::rig::{Rig, answers, peer, settings};
use tidegate_journal::Encoding;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::{RequestExtras, Version};

#[tokio::test]
async fn joined_bodies_arrive_whole_and_in_order() {
    let mut rig = Rig::new(200, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for _ in 0..20 {
        rig.put(Version::V1, 0..100, 1).await;
        rig.put_with(
            Version::V1,
            100..200,
            2,
            RequestExtras { exemplars: true, metadata: true, stale: true },
        )
        .await;
    }
    rig.drain(settings(&peer)).await;
    let arrived = peer.report();
    rig.assert_exact(&arrived);
    assert_eq!(rig.dropped(), []);
    let requests = answers(&arrived, 204);
    assert!(requests < 10, "40 bodies took {requests} requests");
    assert!(arrived.totals.exemplars > 0 && arrived.totals.metadata > 0);
    assert_eq!(arrived.series.values().map(|series| series.stale).sum::<u64>(), 20 * 90);
    let items = arrived.totals.samples
        + arrived.totals.histograms
        + arrived.totals.exemplars
        + arrived.totals.metadata;
    assert_eq!(rig.assert_closed(0).delivered, items, "an item is delivered when the peer has it");
}

#[tokio::test]
async fn single_records_are_sent_without_waiting_for_more() {
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    let (sink, stopper) = rig.sink(settings(&peer));
    let watched = peer.clone();
    let script = async {
        for n in 1..=3 {
            rig.put(Version::V1, 0..10, 1).await;
            crate::rig::arrival(&watched, move |arrived| answers(arrived, 204) == n).await;
        }
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
    rig.assert_exact(&peer.report());
    assert_eq!(answers(&peer.report(), 204), 3);
}

/// A body that is not compressed, as behind a pipeline, is sent whole and without anything in front of it: alone, and joined with others.
#[tokio::test]
async fn bodies_without_compression_arrive_as_they_are() {
    let extras = RequestExtras { exemplars: true, metadata: true, stale: true };
    for version in [Version::V1, Version::V2] {
        for records in [1, 3] {
            let mut rig = Rig::new(100, 1 << 20);
            let peer = peer(Behaviour::Healthy);
            for _ in 0..records {
                rig.put_in(Encoding::Identity, version, 0..100, 2, extras).await;
            }
            rig.drain(settings(&peer)).await;
            rig.assert_exact(&peer.report());
            assert_eq!(rig.dropped(), [], "{records} records of {version:?}");
        }
    }
}
