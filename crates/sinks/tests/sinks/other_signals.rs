//! Promise: what a sink is not configured to take passes it by: neither delivered nor dropped, never sent, and
//! never in the way of the cursor.

use crate::rig::{Rig, answers, arrival, peer, settings};
use std::time::Duration;
use tidegate_journal::{Protocol, Signal};
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;

const SOON: Duration = Duration::from_secs(10);

async fn spans(rig: &Rig, items: u64) {
    rig.append_of(Signal::Traces, Protocol::Otlp, b"spans", 5, items).await;
}

/// Between, before and behind what is sent, also when that has to be sent twice.
#[tokio::test]
async fn records_of_other_signals_are_skipped() {
    let mut rig = Rig::new(10, 1 << 20);
    rig.signals = [Signal::Metrics].into_iter().collect();
    let peer = peer(Behaviour::Status { code: 503, retry_after: None });
    spans(&rig, 3).await;
    for _ in 0..5 {
        rig.put(Version::V1, 0..10, 1).await;
        spans(&rig, 7).await;
        spans(&rig, 1).await;
    }
    // Closed, so that the sink ends when it has sent everything.
    assert!(rig.journal.close(SOON));
    let (sink, _stopper) = rig.sink(settings(&peer));
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| answers(arrived, 503) >= 2).await;
        peer.set(Behaviour::Healthy);
    };
    tokio::join!(sink.run(), script);
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.passed, page.dropped), (50, 43, vec![]));
    rig.assert_exact(&peer.report());
}

/// Remote write has no way to say what Elastic's agents measure: it is not counted as lost.
#[tokio::test]
async fn metricsets_are_skipped_by_remote_write() {
    let mut rig = Rig::new(10, 1 << 20);
    rig.signals = [Signal::Metrics].into_iter().collect();
    let peer = peer(Behaviour::Healthy);
    for signal in [Signal::Metrics, Signal::Events] {
        rig.append_of(signal, Protocol::Intake, b"events", 6, 4).await;
        rig.put(Version::V1, 0..10, 1).await;
    }
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.passed, page.dropped), (20, 8, vec![]));
}

/// A sink to which nothing comes that it takes does not keep the journal from being emptied.
#[tokio::test]
async fn a_sink_without_work_moves_on() {
    let mut rig = Rig::new(10, 1 << 20);
    rig.signals = [Signal::Metrics].into_iter().collect();
    let peer = peer(Behaviour::Healthy);
    for _ in 0..3 {
        spans(&rig, 4).await;
    }
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.passed), (0, 12));
    assert_eq!(peer.report().versions, [0, 0]);
}
