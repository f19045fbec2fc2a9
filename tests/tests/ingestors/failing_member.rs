//! One of three ingestors stalls, fails, is gone, and comes back, while 200 clients send.

use crate::Rig;
use crate::support::{alone, driving, full_speed, long, phase};
use std::time::{Duration, Instant};
use tidegate_load::{Behaviour, LoadProfile};

const CONNECTIONS: usize = 200;
/// Requests a second where the test is short: what any machine takes, so that rates can be compared.
const RATE: f64 = 60.0;
/// The member that fails.
const FAILING: usize = 2;

/// How the member behaves, one after the other, and for how many phases.
const WEATHER: [(Behaviour, u32); 5] = [
    (Behaviour::Healthy, 1),
    (Behaviour::Stall, 1),
    (Behaviour::Status { code: 503, retry_after: None }, 1),
    (Behaviour::Refuse, 1),
    (Behaviour::Healthy, 1),
];

fn storm(replication: u64) {
    let _alone = alone();
    let rig = Rig::start(3, 3, replication, 40_000, 1000);
    // Gone for five minutes.
    let gone = if long() { 5 } else { 1 };
    let phases = WEATHER.map(|(mood, times)| (mood, if mood == Behaviour::Refuse { gone } else { times }));
    let length = phase() * phases.iter().map(|(_, times)| times).sum();
    let rate = (!long()).then_some(RATE);
    let profile = LoadProfile { rate, ..full_speed(CONNECTIONS, length) };
    let driving = driving(&rig.gateway.target(), &rig.model, &profile);
    let mut before = 0.0;
    for (mood, times) in phases {
        rig.ingestors.set(FAILING, mood);
        let (begun, from) = (Instant::now(), others(&rig));
        // The storm's length, not a wait for something to happen.
        std::thread::sleep((phase() * times).saturating_sub(Duration::from_millis(50)));
        let rate = (others(&rig) - from) as f64 / begun.elapsed().as_secs_f64();
        println!(
            "{mood:?}: the others take {rate:.0} samples a second; peak {} KiB",
            rig.gateway.hwm() >> 10
        );
        if before > 0.0 && mood != Behaviour::Healthy {
            assert!(rate >= 0.9 * before, "the others take {rate:.0} a second, and {before:.0} before");
        }
        before = if before > 0.0 { before } else { rate };
    }
    let report = driving.join().unwrap();
    println!("{report}");
    assert_eq!(report.failed, 0, "everybody is answered: {report}");
    let behind = rig.member(FAILING);
    println!("when all is sent: {behind}");
    rig.is_over(&report.acked);
}

/// Samples that the members took which do not fail.
fn others(rig: &Rig) -> u64 {
    (0..3).filter(|member| *member != FAILING).map(|member| rig.ingestors.samples_of(member)).sum()
}

#[test]
fn a_failing_member_costs_disk() {
    storm(1);
}

#[test]
fn a_failing_member_costs_disk_with_three_copies() {
    storm(3);
}
