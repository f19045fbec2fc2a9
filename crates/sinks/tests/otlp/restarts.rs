//! Promise: a sink that is stopped anywhere resumes where it left off, loses nothing, and sends again only what
//! was not answered.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, SECOND, pipeline, settings};
use tidegate_journal::{Encoding, Signal};
use tidegate_sinks::OtlpSettings;

/// Requests are settled in any order, and that is what a restart remembers.
#[tokio::test]
async fn requests_answered_out_of_order_are_not_resent() {
    let each = BOTH.map(|transport| async move {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        // The first is never answered; those behind it are.
        peer.script([Reply::Stall]);
        for _ in 0..20 {
            rig.put_padded(Signal::Traces, Encoding::Identity, 10, 4000).await;
        }
        let small = OtlpSettings { max_request_bytes: 40 << 10, ..settings(&peer, transport) };
        let (sink, stopper) = rig.sink(small.clone());
        let script = async {
            peer.stalled(1).await;
            peer.requests(19).await;
            while rig.page().queued > 10 {
                tokio::task::yield_now().await;
            }
            stopper.stop();
        };
        tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
        assert_eq!((rig.page().queued, rig.page().delivered), (10, 190));
        assert_eq!(rig.held(), 0, "all memory is given back");
        let rig = rig.restarted();
        rig.drain(small).await;
        assert_eq!(rig.page().delivered, 200, "the books outlive the process");
        let taken = peer.taken();
        assert_eq!(taken.len(), 200);
        assert!(taken.values().all(|times| *times == 1));
    });
    futures_util::future::join_all(each).await;
}

/// A request answered soon after the stop order is not sent again.
#[tokio::test]
async fn a_stop_waits_for_answers_that_come_soon() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        peer.script([Reply::Stall]);
        rig.put(Signal::Traces, Encoding::Identity, 10).await;
        let (sink, stopper) = rig.sink(settings(&peer, transport));
        let script = async {
            peer.stalled(1).await;
            stopper.stop();
            peer.release();
        };
        tokio::join!(sink.run(), script);
        assert_eq!((rig.page().queued, rig.page().delivered), (0, 10));
    }
}

/// Wherever it is stopped, again and again, each item arrives.
#[tokio::test]
async fn many_stops_lose_nothing() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        for round in 0..8 {
            for _ in 0..6 {
                rig.put_padded(Signal::Logs, Encoding::Gzip, 10, 2000).await;
            }
            let small = OtlpSettings { max_request_bytes: 30 << 10, ..settings(&peer, transport) };
            let (sink, stopper) = rig.sink(small);
            let script = async {
                peer.requests(2 * round + 1).await;
                stopper.stop();
            };
            tokio::join!(sink.run(), script);
            rig.page();
            rig = rig.restarted();
        }
        rig.drain(settings(&peer, transport)).await;
        assert_eq!(rig.page().delivered, 480);
        rig.assert_exact(&[&peer]);
    }
}

/// The order to stop does not wait for a record that is in the sink's pipeline: it is given up between two steps of the run, counted
/// nowhere, and taken again after the restart.
#[tokio::test]
async fn a_record_in_the_pipeline_does_not_hold_up_the_stop() {
    let mut rig = Rig::new(16 << 20);
    let peer = Peer::new();
    let pipeline = pipeline(r#"set(log.attributes["x"], "1")"#);
    let meters = pipeline.meters.clone();
    rig.pipeline = Some(pipeline);
    rig.put_padded(Signal::Logs, Encoding::Identity, 200, 5_000).await;
    let (sink, stopper) = rig.sink(settings(&peer, BOTH[0]));
    let script = async {
        while meters.time().is_zero() {
            tokio::task::yield_now().await;
        }
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
    assert_eq!(meters.steps()[0].totals().items, 0, "the run was given up");
    assert_eq!((rig.page().queued, rig.held()), (200, 0));
    rig.drain(settings(&peer, BOTH[0])).await;
    assert_eq!(meters.steps()[0].totals().items, 200);
    rig.assert_exact(&[&peer]);
}
