//! The file with the hashrings changes while data flows.

use crate::Rig;
use crate::support::{alone, driving, full_speed, phase};
use std::collections::BTreeSet;
use std::time::Duration;
use tidegate_load::{Behaviour, LoadProfile, RunLimit};
use tidegate_tests::{SOON, until};

const SERIES: usize = 20_000;
/// The part of all series that may move to an eleventh member: its share is a eleventh, give or take that of its sections.
const MAY_MOVE: f64 = 0.12;

fn load(time: Duration) -> LoadProfile {
    LoadProfile { rate: Some(100.0), limit: RunLimit::Time(time), ..full_speed(10, time) }
}

/// An eleventh member gets its share, from all others, and no series moves between those.
#[test]
fn an_eleventh_member_takes_its_share_and_nothing_else_moves() {
    let _alone = alone();
    let rig = Rig::start(11, 10, 1, SERIES, 1000);
    let driving = driving(&rig.gateway.target(), &rig.model, &load(20 * Duration::from_secs(1) + phase()));
    // The first pass over all series.
    until(SOON, "every series to be there", || rig.ingestors.replica(1).series.len() == SERIES);
    let before: Vec<BTreeSet<_>> =
        (0..10).map(|member| rig.ingestors.series_of(member).into_iter().collect()).collect();
    assert_eq!(before.iter().map(BTreeSet::len).sum::<usize>(), SERIES, "each series is at one member");
    rig.set_ring(&(0..11).collect::<Vec<_>>());
    assert!(rig.ingestors.wait_for(10, SOON, |samples| samples > 0), "the new member gets nothing");
    let report = driving.join().unwrap();
    rig.is_over(&report.acked);
    let moved = rig.ingestors.series_of(10).len();
    println!("{moved} of {SERIES} series moved");
    assert!(moved > 0 && moved as f64 <= MAY_MOVE * SERIES as f64, "{moved} of {SERIES} series moved");
    for (member, before) in before.iter().enumerate() {
        let after: BTreeSet<_> = rig.ingestors.series_of(member).into_iter().collect();
        assert_eq!(after, *before, "series came to member {member}");
    }
}

/// What waits for a member that leaves goes to those that have its series now, before anything newer of them.
#[test]
fn the_backlog_of_a_member_that_leaves_goes_to_the_others() {
    let _alone = alone();
    let rig = Rig::start(4, 4, 1, SERIES, 1000);
    let driving = driving(&rig.gateway.target(), &rig.model, &load(20 * Duration::from_secs(1) + phase()));
    assert!(rig.ingestors.wait_for(3, SOON, |samples| samples > 1000), "the ring works");
    rig.ingestors.set(3, Behaviour::Refuse);
    let backlog = || rig.member(3)["handed_off_requests"].as_u64().unwrap_or_default();
    until(SOON, "a backlog", || backlog() > 20);
    rig.set_ring(&[0, 1, 2]);
    until(SOON, "the member to have left", || rig.member(3).is_null());
    let report = driving.join().unwrap();
    rig.is_over(&report.acked);
}
