//! Promise: whatever a peer does, nothing is lost, and the books close at every moment.

use crate::rig::{NAME, Rig, SECOND, answers, arrival, order, peer, settings};
use std::time::Duration;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::RemoteWriteSettings;

/// Lets the peer fail until it was asked `times` times, then lets it work, and checks that all arrives.
async fn recovers(behaviour: Behaviour, status: u16, times: u64) {
    let mut rig = Rig::new(100, 1 << 20);
    let peer = peer(behaviour);
    for version in [Version::V1, Version::V2, Version::V1] {
        rig.put(version, 0..100, 1).await;
    }
    let watched = peer.clone();
    let (ledger, health) = (rig.ledger.clone(), rig.health.clone());
    let script = async {
        arrival(&watched, move |arrived| answers(arrived, status) >= times).await;
        let balance = ledger.balance();
        assert_eq!(balance.difference(), 0);
        assert_eq!(balance.sinks.iter().find(|sink| sink.name == NAME).unwrap().queued, 300);
        assert!(health.trouble().last_error.is_some_and(|error| error.contains(&status.to_string())));
        order(&watched, Behaviour::Healthy).await;
    };
    tokio::join!(rig.drain(settings(&peer)), script);
    rig.assert_exact(&peer.report());
    assert_eq!(rig.dropped(), []);
    assert_eq!(rig.health.trouble().retry_at, None);
    assert_eq!(rig.health.activity().in_flight, 0);
}

#[tokio::test]
async fn server_errors_and_429_are_retried() {
    recovers(Behaviour::Status { code: 503, retry_after: None }, 503, 4).await;
    recovers(Behaviour::Status { code: 500, retry_after: None }, 500, 4).await;
    recovers(Behaviour::Status { code: 429, retry_after: None }, 429, 4).await;
    // Somebody mends the credentials.
    recovers(Behaviour::Status { code: 401, retry_after: None }, 401, 4).await;
}

/// The peer is left alone for as long as it asks.
#[tokio::test]
async fn retry_after_is_honoured() {
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Status { code: 503, retry_after: Some(2) });
    rig.put(Version::V1, 0..10, 1).await;
    let watched = peer.clone();
    let asked = tokio::time::Instant::now();
    let script = async {
        arrival(&watched, |arrived| answers(arrived, 503) == 1).await;
        order(&watched, Behaviour::Healthy).await;
    };
    tokio::join!(rig.drain(settings(&peer)), script);
    assert!(asked.elapsed() >= 2 * SECOND, "{:?}", asked.elapsed());
    assert_eq!(answers(&peer.report(), 503), 1);
    rig.assert_exact(&peer.report());
}

#[tokio::test]
async fn refused_connections_are_retried() {
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Refuse);
    rig.put(Version::V1, 0..10, 1).await;
    let (watched, health) = (peer.clone(), rig.health.clone());
    let script = async {
        while health.activity().failures < 3 {
            tokio::task::yield_now().await;
        }
        order(&watched, Behaviour::Healthy).await;
    };
    tokio::join!(rig.drain(settings(&peer)), script);
    rig.assert_exact(&peer.report());
    assert_eq!(rig.health.activity().resent, 10 * rig.health.activity().failures);
}

#[tokio::test]
async fn a_peer_that_does_not_answer_is_given_up_after_the_timeout() {
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Stall);
    rig.put(Version::V1, 0..10, 1).await;
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| arrived.stalled >= 2).await;
        order(&watched, Behaviour::Healthy).await;
    };
    let timeout = Duration::from_millis(50);
    tokio::join!(rig.drain(RemoteWriteSettings { timeout, ..settings(&peer) }), script);
    // Twice where the machine was too busy to answer in time.
    let verdict = rig.compare(&peer.report());
    assert_eq!((verdict.acked, verdict.missing), (10, 0), "{verdict:?}");
    assert_eq!(rig.dropped(), []);
}

/// A large body is not held while a peer is waited for, and arrives all the same.
#[tokio::test]
async fn large_bodies_survive_failures() {
    for version in [Version::V1, Version::V2] {
        let mut rig = Rig::new(3000, 256 << 10);
        let peer = peer(Behaviour::Status { code: 503, retry_after: None });
        rig.put(version, 0..3000, 3).await;
        rig.put(version, 0..10, 1).await;
        let watched = peer.clone();
        let script = async {
            for n in 1..5 {
                arrival(&watched, move |arrived| answers(arrived, 503) >= n).await;
            }
            order(&watched, Behaviour::Healthy).await;
        };
        tokio::join!(rig.drain(settings(&peer)), script);
        rig.assert_exact(&peer.report());
        assert_eq!(rig.dropped(), []);
    }
}
