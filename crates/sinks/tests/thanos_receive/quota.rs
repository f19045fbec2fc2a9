//! Promise: a quota that is used up loses nothing. Members that take what they get go on, and the rings can be changed.

use crate::member::{Member, Reply};
use crate::rig::{PART, Rig, until};
use crate::rings::{from_file, ring_of, write};
use tidegate_sinks::ThanosReceiveSettings;

/// Requests that are put in: more than fit into the quota.
const REQUESTS: i64 = 60;

fn with_quota(settings: ThanosReceiveSettings, quota: u64) -> ThanosReceiveSettings {
    let handoff = tidegate_handoff::Settings { quota, total_quota: quota, ..settings.handoff };
    ThanosReceiveSettings { handoff, max_request_bytes: 4 << 10, is_compressed: false, ..settings }
}

fn waits_for_space(rig: &Rig, member: &Member) -> bool {
    rig.report(member).last_error.is_some_and(|error| error.contains("quota"))
}

#[tokio::test]
async fn a_member_whose_quota_is_used_up_can_leave() {
    let mut members = Member::some(2);
    let mut rig = Rig::new(PART);
    let settings = with_quota(from_file(&rig, &members.iter().collect::<Vec<_>>(), 1), 32 << 10);
    members[0].leave();
    let [gone, other] = &members[..] else { unreachable!() };
    rig.run(&settings, async |rig| {
        for time in 0..REQUESTS {
            rig.put(None, 0..100, time).await;
        }
        until("its quota is used up", || waits_for_space(rig, gone)).await;
        assert!(rig.report(gone).handed_off_bytes <= 32 << 10);
        write(rig, &ring_of(&[other]));
        rig.settled().await;
        until("the member is gone", || rig.health.members().len() == 1).await;
        let taken = other.samples();
        assert_eq!(taken.len(), 100);
        for (key, times) in taken {
            assert_eq!(times, (0..REQUESTS).collect::<Vec<_>>(), "{key:?}");
        }
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

/// A neighbour that uses up the disk space of all does not hold up a member that takes what it gets.
#[tokio::test]
async fn a_member_goes_on_when_others_have_used_up_the_space() {
    let (stalls, refuses) = (Reply::Stall, Reply::Grpc(14, "not ready"));
    for failure in [stalls, refuses] {
        let mut members = Member::some(2);
        let mut rig = Rig::new(PART);
        let settings = with_quota(from_file(&rig, &members.iter().collect::<Vec<_>>(), 1), 32 << 10);
        members[0].leave();
        rig.run(&settings, async |rig| {
            for time in 0..REQUESTS {
                rig.put(None, 0..100, time).await;
            }
            until("the space is used up", || waits_for_space(rig, &members[0])).await;
            rig.arrived(&settings, &[&members[1]]).await;
            members[1].always(failure);
            for time in REQUESTS..REQUESTS + 5 {
                rig.put(None, 0..100, time).await;
            }
            until("the other one waits too", || waits_for_space(rig, &members[1])).await;
            members[1].release();
            rig.arrived(&settings, &[&members[1]]).await;
            members[0].come_back();
            rig.settled().await;
            rig.arrived(&settings, &members.iter().collect::<Vec<_>>()).await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}

/// Requests that wait for a full log fill the memory. The sink still reads the log, however long its records: nothing else frees the log
/// or the memory.
#[tokio::test]
async fn a_log_is_read_while_its_quota_and_the_memory_are_used_up() {
    for (memory, is_compressed) in [(1_usize << 20, false), (1 << 20, true), (16 << 20, false)] {
        let mut members = Member::some(2);
        let mut rig = Rig::new(memory);
        let settings = with_quota(from_file(&rig, &members.iter().collect::<Vec<_>>(), 2), memory as u64);
        let settings = ThanosReceiveSettings { max_request_bytes: memory, is_compressed, ..settings };
        members[0].leave();
        rig.run(&settings, async |rig| {
            let mut time = 0;
            // The log gets long requests.
            while !waits_for_space(rig, &members[0]) {
                rig.put(None, 0..2000, time).await;
                time += 1;
            }
            // Shorter ones fill what is left of the memory: a series takes over forty bytes.
            let series = memory as u64 >> 13;
            for _ in 0..memory as u64 / series / 32 {
                rig.put(None, 0..series, time).await;
                time += 1;
                // The sink reads what comes.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            }
            members[0].come_back();
            rig.settled().await;
            // What each request gave back was not taken by one of a few items, and so on to the end.
            assert!(members.iter().all(|member| (member.requests() as u64) < rig.items / 100));
            rig.arrived(&settings, &members.iter().collect::<Vec<_>>()).await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}
