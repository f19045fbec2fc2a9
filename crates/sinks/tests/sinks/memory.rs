//! Promise: what a sink holds stays within its part, however long a peer stalls.

use crate::rig::{Rig, arrival, order, peer, settings};
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::{Prefer, RemoteWriteSettings};

#[tokio::test]
async fn a_stalled_peer_costs_no_more_than_the_part() {
    let ways = [
        (Version::V1, Prefer::AsReceived, 1),
        (Version::V2, Prefer::AsReceived, 1),
        (Version::V1, Prefer::V2, 4),
        (Version::V2, Prefer::V1, 1),
        (Version::V2, Prefer::V2, 8),
    ];
    for (version, prefer, lanes) in ways {
        let part = 512 << 10;
        let mut rig = Rig::new(400, part);
        let peer = peer(Behaviour::Stall);
        for _ in 0..40 {
            rig.put(version, 0..400, 1).await;
        }
        let watched = peer.clone();
        let (arena, way) = (rig.arena.clone(), format!("{version:?} as {prefer:?} over {lanes} lanes"));
        let script = async {
            arrival(&watched, |arrived| arrived.stalled >= 1).await;
            let held = arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
            assert!(held > 0 && held <= part as u64, "{way}: {held}");
            order(&watched, Behaviour::Healthy).await;
        };
        tokio::join!(rig.drain(RemoteWriteSettings { prefer, lanes, ..settings(&peer) }), script);
        rig.assert_exact(&peer.report());
        assert!(rig.peak() <= part as u64, "{way}: the peak is {}", rig.peak());
    }
}

/// Large bodies are borrowed for, one sink at a time, and given back while the peer is waited for.
#[tokio::test]
async fn borrowed_memory_is_returned_during_a_wait() {
    for version in [Version::V1, Version::V2] {
        let part = 256 << 10;
        let mut rig = Rig::new(3000, part);
        let peer = peer(Behaviour::Stall);
        rig.put(version, 0..3000, 2).await;
        let watched = peer.clone();
        let (arena, turn) = (rig.arena.clone(), rig.turn.clone());
        let script = async {
            arrival(&watched, |arrived| arrived.stalled >= 1).await;
            let held = arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
            assert!(held <= part as u64, "{version:?}: {held}");
            assert!(!turn.is_taken(), "another sink may borrow");
            order(&watched, Behaviour::Healthy).await;
        };
        let prefer = Prefer::V2;
        tokio::join!(rig.drain(RemoteWriteSettings { prefer, ..settings(&peer) }), script);
        rig.assert_exact(&peer.report());
        assert!(rig.peak() > part as u64);
    }
}

/// Two sinks with large bodies do not stop each other, though there is room for one to borrow.
#[tokio::test]
async fn a_stalled_sink_does_not_hold_up_anothers_large_bodies() {
    let mut rig = Rig::new(3000, 256 << 10);
    for _ in 0..3 {
        rig.put(Version::V2, 0..3000, 2).await;
    }
    let (stalled, healthy) = (peer(Behaviour::Stall), peer(Behaviour::Healthy));
    let (slow, stopper) = rig.sink_called("slow", settings(&stalled));
    let script = async {
        arrival(&stalled, |arrived| arrived.stalled >= 1).await;
        rig.drain(settings(&healthy)).await;
        stopper.stop();
    };
    tokio::join!(slow.run(), script);
    rig.assert_exact(&healthy.report());
}
