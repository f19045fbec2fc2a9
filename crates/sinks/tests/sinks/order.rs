//! Promise: whatever receivers do, and however often the sink is started anew, nothing that was accepted is missing at
//! them, and a receiver that is alone gets each series in order.

use crate::rig::{Rig, SECOND, order, peer};
use proptest::prelude::*;
use std::time::Duration;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::RemoteWriteSettings;

/// A step of the scenario.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many samples of all series are accepted, in a request of this version.
    Put(bool, u64),
    /// A receiver behaves like this from now on.
    Order(bool, usize),
    /// The sink has so many milliseconds.
    Wait(u64),
    /// The sink is dropped where it stands, and started anew.
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<bool>(), 1u64..40).prop_map(|(v2, samples)| Step::Put(v2, samples)),
        2 => (any::<bool>(), 0usize..5).prop_map(|(first, behaviour)| Step::Order(first, behaviour)),
        3 => (0u64..30).prop_map(Step::Wait),
        1 => Just(Step::Kill),
    ];
    prop::collection::vec(step, 1..25)
}

fn behaviour(number: usize) -> Behaviour {
    match number {
        0 => Behaviour::Status { code: 503, retry_after: None },
        1 => Behaviour::Stall,
        2 => Behaviour::Refuse,
        3 => Behaviour::OnlyV1,
        _ => Behaviour::Healthy,
    }
}

async fn run(steps: Vec<Step>, lanes: usize, part: usize, endpoints: usize) {
    let mut rig = Rig::new(60, part);
    let peers = [peer(Behaviour::Healthy), peer(Behaviour::Healthy)];
    let settings = RemoteWriteSettings {
        endpoints: peers
            .iter()
            .take(endpoints)
            .map(|peer| peer.target().to_string().parse().unwrap())
            .collect(),
        lanes,
        linger: Duration::from_millis(2),
        timeout: Duration::from_millis(300),
        ..crate::rig::settings(&peers[0])
    };
    let mut rest = steps.into_iter();
    let mut ends = false;
    while !ends {
        let (sink, stopper) = rig.sink(settings.clone());
        let script = async {
            loop {
                match rest.next() {
                    Some(Step::Put(v2, samples)) => {
                        rig.put(if v2 { Version::V2 } else { Version::V1 }, 0..60, samples).await;
                    }
                    Some(Step::Order(first, number)) => {
                        order(&peers[usize::from(first)], behaviour(number)).await
                    }
                    Some(Step::Wait(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
                    Some(Step::Kill) => return,
                    None => break,
                }
            }
            for peer in &peers {
                order(peer, Behaviour::Healthy).await;
            }
            while !rig.ledger.balance().at_rest() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            ends = true;
            stopper.stop();
            std::future::pending().await
        };
        let ran = async {
            tokio::select! {
                () = script => {}
                () = sink.run() => {}
            }
        };
        tokio::time::timeout(30 * SECOND, ran).await.expect("everything is sent");
    }
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (rig.acked.samples(), vec![]));
    let verdicts = peers.each_ref().map(|peer| rig.compare(&peer.report()));
    let came: u64 = verdicts.iter().map(|verdict| verdict.acked - verdict.missing).sum();
    assert!(came >= rig.acked.samples(), "each sample is at one of them: {verdicts:?}");
    if endpoints == 1 {
        assert!(verdicts[0].nothing_lost(), "{verdicts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_missing_whatever_receivers_do(
        steps in steps(),
        lanes in prop::sample::select(vec![1usize, 3]),
        part in prop::sample::select(vec![96usize << 10, 256 << 10, 1 << 20]),
        endpoints in 1usize..3,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(steps, lanes, part, endpoints));
    }
}
