//! Promise: a receiver that is gone costs its neighbours nothing; it gets what is its when it is back, in order and once.

use crate::receiver::{Receiver, Reply};
use crate::rig::{PART, Placement, Rig, SinkSettings, settings, until};
use std::time::Duration;
use tidegate_sinks::ShardBy;

/// How a receiver fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Stalls,
    Refuses,
    IsBusy,
    Gone,
}

const FAILURES: [Failure; 4] = [Failure::Stalls, Failure::Refuses, Failure::IsBusy, Failure::Gone];

fn begin(failure: Failure, receiver: &mut Receiver) {
    match failure {
        Failure::Stalls => receiver.always(Reply::Stall),
        Failure::Refuses => receiver.always(Reply::Status(503, "not ready")),
        Failure::IsBusy => receiver.always(Reply::Status(429, "slow down")),
        Failure::Gone => receiver.leave(),
    }
}

fn end(failure: Failure, receiver: &mut Receiver) {
    match failure {
        Failure::Gone => receiver.come_back(),
        _ => receiver.release(),
    }
}

fn impatient(rig: &Rig, receivers: &[Receiver], replicas: usize) -> SinkSettings {
    let mut settings = settings(rig, receivers, replicas);
    settings.1.patience = Duration::from_millis(100);
    settings
}

#[tokio::test]
async fn a_receiver_that_fails_gets_everything_later() {
    for (failure, replicas) in FAILURES.into_iter().flat_map(|failure| [(failure, 1), (failure, 2)]) {
        let mut receivers = Receiver::some(3);
        let mut rig = Rig::new(PART);
        let settings = impatient(&rig, &receivers, replicas);
        let ring = Placement::of(&receivers, replicas, ShardBy::All);
        begin(failure, &mut receivers[0]);
        rig.run(&settings, async |rig| {
            for time in 0..30 {
                rig.put(None, 0..50, time).await;
            }
            rig.arrived(&ring, &receivers[1..]).await;
            let is_behind = |rig: &Rig| {
                let report = rig.report(&receivers[0]);
                report.is_behind && report.handed_off_requests > 0
            };
            until("its requests are in its log", || is_behind(rig)).await;
            assert!(rig.peak() <= PART as u64);
            end(failure, &mut receivers[0]);
            rig.arrived(&ring, &receivers).await;
            rig.settled().await;
            until("its log is empty", || rig.report(&receivers[0]).handed_off_requests == 0).await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]), "{failure:?}");
    }
}

#[tokio::test]
async fn a_restart_with_a_backlog_loses_nothing() {
    let mut receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = impatient(&rig, &receivers, 1);
    let ring = Placement::of(&receivers, 1, ShardBy::All);
    receivers[0].leave();
    rig.run(&settings, async |rig| {
        for time in 0..10 {
            rig.put(None, 0..100, time).await;
        }
        rig.arrived(&ring, &receivers[1..]).await;
        let first = rig.expected(&ring, &receivers[0]).len() as u64;
        until("the others have theirs", || rig.page().queued == 10 * first).await;
    })
    .await;
    rig = rig.restarted();
    receivers[0].come_back();
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 10).await;
        rig.arrived(&ring, &receivers).await;
        rig.settled().await;
    })
    .await;
}
