//! Promise: a member that is gone costs its neighbours nothing; it gets what is its when it is back, in order and once.

use crate::member::{Member, Reply};
use crate::rig::{PART, Rig, settings, until};
use std::time::Duration;
use tidegate_sinks::ThanosReceiveSettings;

/// How a member fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Stalls,
    Refuses,
    Gone,
}

const FAILURES: [Failure; 3] = [Failure::Stalls, Failure::Refuses, Failure::Gone];

fn begin(failure: Failure, member: &mut Member) {
    match failure {
        Failure::Stalls => member.always(Reply::Stall),
        Failure::Refuses => member.always(Reply::Grpc(14, "not ready")),
        Failure::Gone => member.leave(),
    }
}

fn end(failure: Failure, member: &mut Member) {
    match failure {
        Failure::Gone => member.come_back(),
        Failure::Stalls | Failure::Refuses => member.release(),
    }
}

fn impatient(rig: &Rig, members: &[Member]) -> ThanosReceiveSettings {
    let all: Vec<_> = members.iter().collect();
    ThanosReceiveSettings { patience: Duration::from_millis(100), ..settings(rig, &all, 3) }
}

#[tokio::test]
async fn a_member_that_fails_gets_everything_later() {
    for failure in FAILURES {
        let mut members = Member::some(3);
        let mut rig = Rig::new(PART);
        let settings = impatient(&rig, &members);
        begin(failure, &mut members[0]);
        rig.run(&settings, async |rig| {
            for time in 0..30 {
                rig.put(None, 0..50, time).await;
            }
            rig.arrived(&settings, &[&members[1], &members[2]]).await;
            let behind = |rig: &Rig| {
                let report = rig.report(&members[0]);
                report.is_behind && report.handed_off_requests > 0
            };
            until("its requests are in its log", || behind(rig)).await;
            let first = rig.expected(&settings, &members[0]);
            let first = first.keys().filter(|(_, replica, _)| *replica == 1).count() as u64;
            until("the rest is settled", || rig.page().queued == 30 * first).await;
            assert_eq!(rig.page().delivered, rig.items - 30 * first, "{failure:?}");
            assert!(rig.peak() <= PART as u64);
            end(failure, &mut members[0]);
            rig.settled().await;
            rig.arrived(&settings, &members.iter().collect::<Vec<_>>()).await;
            until("it takes requests at once", || !rig.report(&members[0]).is_behind).await;
            rig.put(None, 0..50, 30).await;
            rig.settled().await;
        })
        .await;
        rig.arrived(&settings, &members.iter().collect::<Vec<_>>()).await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]), "{failure:?}");
    }
}

/// The log of a member that is gone outlives the process.
#[tokio::test]
async fn a_restart_in_between_loses_nothing() {
    let mut members = Member::some(3);
    let mut rig = Rig::new(PART);
    let settings = impatient(&rig, &members);
    members[0].leave();
    for round in 0..3 {
        rig.run(&settings, async |rig| {
            for time in 0..10 {
                rig.put(None, 0..50, 10 * round + time).await;
            }
            rig.arrived(&settings, &[&members[1], &members[2]]).await;
            let first = rig.expected(&settings, &members[0]);
            let first = first.keys().filter(|(_, replica, _)| *replica == 1).count() as u64;
            let waiting = 10 * (round as u64 + 1) * first;
            until("the rest is settled", || rig.page().queued == waiting).await;
            // One that was slow may have copies on disk that it took already: they would be sent again.
            rig.caught_up(&members[1..]).await;
        })
        .await;
        rig = rig.restarted();
    }
    members[0].come_back();
    rig.run(&settings, async |rig| {
        rig.settled().await;
        rig.caught_up(&members).await;
    })
    .await;
    rig.arrived(&settings, &members.iter().collect::<Vec<_>>()).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}
