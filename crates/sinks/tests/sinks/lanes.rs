//! Promise: with several lanes every series' samples still arrive in order.

use crate::rig::{Rig, answers, peer, settings};
use tidegate_load::Behaviour;
use tidegate_load::remote_write::{RequestExtras, Version};
use tidegate_sinks::{Prefer, RemoteWriteSettings};

#[tokio::test]
async fn all_arrives_in_the_order_of_each_series() {
    let versions = [
        (Version::V1, Prefer::AsReceived),
        (Version::V2, Prefer::AsReceived),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ];
    for lanes in [2, 4] {
        for (version, prefer) in versions {
            let mut rig = Rig::new(300, 1 << 20);
            let peer = peer(Behaviour::Healthy);
            for _ in 0..10 {
                rig.put(version, 0..200, 1).await;
                rig.put_with(
                    version,
                    0..300,
                    1,
                    RequestExtras { exemplars: true, ..RequestExtras::default() },
                )
                .await;
                rig.put(version, 200..300, 1).await;
            }
            rig.drain(RemoteWriteSettings { lanes, prefer, ..settings(&peer) }).await;
            rig.assert_exact(&peer.report());
            assert_eq!(rig.dropped(), [], "{lanes} lanes, {version:?} as {prefer:?}");
            assert!(answers(&peer.report(), 204) >= lanes as u64);
        }
    }
}

/// A batch with fewer series than lanes makes no empty requests.
#[tokio::test]
async fn a_lane_without_series_sends_nothing() {
    for version in [Version::V1, Version::V2] {
        let mut rig = Rig::new(2, 1 << 20);
        let peer = peer(Behaviour::Healthy);
        rig.put(version, 0..1, 1).await;
        rig.drain(RemoteWriteSettings { lanes: 8, ..settings(&peer) }).await;
        rig.assert_exact(&peer.report());
        assert_eq!(answers(&peer.report(), 204), 1);
    }
}

#[tokio::test]
async fn one_failing_round_costs_no_order() {
    use crate::rig::{arrival, order};
    let mut rig = Rig::new(100, 1 << 20);
    let peer = peer(Behaviour::Status { code: 500, retry_after: None });
    for _ in 0..5 {
        rig.put(Version::V1, 0..100, 1).await;
    }
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| answers(arrived, 500) >= 8).await;
        order(&watched, Behaviour::Healthy).await;
    };
    tokio::join!(rig.drain(RemoteWriteSettings { lanes: 4, ..settings(&peer) }), script);
    rig.assert_exact(&peer.report());
}
