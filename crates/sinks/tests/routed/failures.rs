//! Promise: a receiver that is gone costs its neighbours nothing; it gets what is its when it is back, in order and once.

use crate::receiver::{Receiver, Reply, Traces};
use crate::rig::{PART, Rig, SinkSettings, merged, settings, until};
use std::time::Duration;

fn impatient(rig: &Rig, receivers: &[Receiver]) -> SinkSettings {
    let mut settings = settings(rig, receivers, 1);
    settings.1.patience = Duration::from_millis(100);
    settings
}

/// Waits until everything of these traces is at these receivers.
async fn arrived(receivers: &[Receiver], wanted: &Traces) {
    until("all that is theirs arrives", || {
        let taken = merged(receivers);
        wanted.iter().all(|(trace, spans)| taken.get(trace) == Some(spans))
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_fails_gets_everything_later() {
    for failure in [Some(Reply::Stall), Some(Reply::Status(503, "not ready")), None] {
        let mut receivers = Receiver::some(3);
        let mut rig = Rig::new(PART);
        let settings = impatient(&rig, &receivers);
        rig.run(&settings, async |rig| {
            rig.put("shop", 0..100).await;
            rig.settled().await;
            let of_others = merged(&receivers[1..]);
            match failure {
                Some(reply) => receivers[0].always(reply),
                None => receivers[0].leave(),
            }
            for _ in 0..30 {
                rig.put("shop", 0..100).await;
            }
            let wanted =
                rig.put.clone().into_iter().filter(|(trace, _)| of_others.contains_key(trace)).collect();
            arrived(&receivers[1..], &wanted).await;
            until("its requests are in its log", || rig.report(&receivers[0]).handed_off_requests > 0).await;
            assert!(rig.peak() <= PART as u64);
            match failure {
                Some(_) => receivers[0].release(),
                None => receivers[0].come_back(),
            }
            arrived(&receivers, &rig.put).await;
            rig.settled().await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]), "{failure:?}");
    }
}

#[tokio::test]
async fn a_restart_with_a_backlog_loses_nothing() {
    let mut receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = impatient(&rig, &receivers);
    receivers[0].leave();
    rig.run(&settings, async |rig| {
        for _ in 0..10 {
            rig.put("shop", 0..100).await;
        }
        until("its requests are in its log", || rig.report(&receivers[0]).handed_off_requests > 0).await;
    })
    .await;
    rig = rig.restarted();
    receivers[0].come_back();
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..100).await;
        rig.settled().await;
    })
    .await;
    // What was in flight at the stop may come twice.
    for (trace, mut spans) in merged(&receivers) {
        spans.sort_unstable();
        spans.dedup();
        assert_eq!(spans, rig.put[&trace]);
    }
    assert_eq!(merged(&receivers).len(), 100);
}
