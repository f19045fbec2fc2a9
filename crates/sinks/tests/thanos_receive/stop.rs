//! Promise: a sink that is stopped waits for answers that come soon.

use crate::member::{Member, Reply};
use crate::rig::{PART, Rig, SECOND, settings, until};
use tidegate_sinks::ThanosReceiveSettings;

/// An answer that comes soon behind the stop counts.
#[tokio::test]
async fn a_stop_waits_for_answers_that_come_soon() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&member], 1);
    member.always(Reply::Stall);
    rig.put(None, 0..10, 1).await;
    let (sink, stopper) = rig.sink(&settings);
    let script = async {
        until("it is stalled", || member.stalled() > 0).await;
        stopper.stop();
        member.release();
    };
    tokio::time::timeout(30 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    assert_eq!((rig.page().queued, rig.page().delivered, rig.held()), (0, 10, 0));
}

/// What is in flight at the stop is sent again after it.
#[tokio::test]
async fn what_is_in_flight_is_not_lost() {
    let members = Member::some(3);
    let all: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &all, 3);
    all.iter().for_each(|member| member.always(Reply::Stall));
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 1).await;
        until("all are stalled", || all.iter().all(|member| member.stalled() > 0)).await;
    })
    .await;
    assert_eq!((rig.page().queued, rig.page().delivered), (100, 0));
    rig = rig.restarted();
    all.iter().for_each(|member| member.release());
    // What was stalled is let go of by the stop: it was not taken.
    rig.run(&settings, async |rig| rig.settled().await).await;
    assert_eq!(rig.page().delivered, 100);
    for member in all {
        let expected = rig.expected(&settings, member);
        let samples = member.samples();
        assert!(expected.keys().all(|key| samples.contains_key(key)));
    }
}

/// Stopped again and again, with a member that comes and goes, and small requests.
#[tokio::test]
async fn many_stops_lose_nothing() {
    let mut members = Member::some(3);
    let mut rig = Rig::new(PART);
    let all: Vec<_> = members.iter().collect();
    let small = ThanosReceiveSettings { max_request_bytes: 2000, ..settings(&rig, &all, 2) };
    for round in 0..8_usize {
        if round % 2 == 0 {
            members[0].leave();
        } else {
            members[0].come_back();
        }
        let before: usize = members[1].requests();
        rig.run(&small, async |rig| {
            for time in 0..5 {
                rig.put(None, 0..100, 5 * round as i64 + time).await;
            }
            until("something was sent", || members[1].requests() > before + round % 3).await;
        })
        .await;
        rig = rig.restarted();
    }
    rig.run(&small, async |rig| {
        rig.settled().await;
        rig.caught_up(&members).await;
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    for member in &members {
        let samples = member.samples();
        for (key, times) in rig.expected(&small, member) {
            assert!(times.iter().all(|time| samples[&key].contains(time)), "{key:?}");
        }
    }
}
