//! Promise: a sink that is stopped anywhere resumes where it left off, and loses nothing.

use crate::rig::{Rig, SECOND, answers, arrival, peer, settings};
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::RemoteWriteSettings;

#[tokio::test]
async fn after_a_restart_it_resumes_at_the_cursor() {
    let mut rig = Rig::new(20, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for round in 1..=4 {
        for _ in 0..10 {
            rig.put(Version::V1, 0..20, 1).await;
        }
        let (sink, stopper) = rig.sink(settings(&peer));
        let watched = peer.clone();
        let ledger = rig.ledger.clone();
        let script = async {
            arrival(&watched, move |arrived| arrived.samples() == round * 200).await;
            while !ledger.balance().at_rest() {
                tokio::task::yield_now().await;
            }
            stopper.stop();
        };
        tokio::join!(sink.run(), script);
        assert_eq!(rig.assert_closed(0).delivered, round * 200, "the books outlive the process");
        rig = rig.restarted();
    }
    // Nothing is sent twice after an orderly stop.
    rig.assert_exact(&peer.report());
}

/// Stopped while a request is on its way: it is sent again, and that is all.
#[tokio::test]
async fn stopped_in_the_middle_of_a_request_it_sends_that_again() {
    let mut rig = Rig::new(20, 1 << 20);
    let peer = peer(Behaviour::Stall);
    for _ in 0..10 {
        rig.put(Version::V1, 0..20, 1).await;
    }
    let (sink, stopper) = rig.sink(settings(&peer));
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| arrived.stalled == 1).await;
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    rig.assert_closed(200);
    assert_eq!(rig.held(), 0);
    let rig = rig.restarted();
    crate::rig::order(&peer, Behaviour::Healthy).await;
    rig.drain(settings(&peer)).await;
    rig.assert_exact(&peer.report());
}

/// Stopped between the pieces of one large record.
#[tokio::test]
async fn stopped_in_the_middle_of_a_record_it_loses_nothing() {
    let mut rig = Rig::new(2000, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    rig.put(Version::V2, 0..2000, 1).await;
    let limited = RemoteWriteSettings { max_items: 100, ..settings(&peer) };
    let (sink, stopper) = rig.sink(limited.clone());
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| answers(arrived, 204) >= 3).await;
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
    let queued = rig.ledger.balance().sinks[0].queued;
    rig.assert_closed(queued);
    let rig = rig.restarted();
    rig.drain(limited).await;
    let verdict = rig.compare(&peer.report());
    assert_eq!(verdict.missing, 0);
    assert_eq!(rig.dropped(), []);
}
