//! Clocks: this machine's beside the program's date, beside peers', and beside the times in the journal.

use crate::examination::{Examination, seconds_between};
use crate::finding::Finding;
use crate::probe;
use std::time::{Duration, SystemTime};

/// A clock that is so many seconds off has records with wrong times, and tokens that are not valid yet.
const OFF: f64 = 60.0;
/// Seconds by which a clock was set while it was looked at.
const JUMP: f64 = 1.0;

/// What is known of the clock.
struct Clock {
    now: SystemTime,
    /// The date of the program's sources.
    built: Option<SystemTime>,
    jump: f64,
    /// Peers, and their clocks when they answered.
    peers: Vec<(String, SystemTime)>,
    /// The time of the newest record, in nanoseconds since 1970.
    newest_ns: Option<u64>,
}

pub(crate) fn of(seen: &Examination<'_>) -> Vec<Finding> {
    let peers = seen.peers.iter().filter_map(|(peer, report)| {
        Some((format!("the peer of `sinks.{}`", peer.sink), probe::date(report)?))
    });
    check(&Clock {
        now: seen.now,
        built: seen.subject.program.date,
        jump: seen.clock_jump,
        peers: peers.collect(),
        newest_ns: seen.journal.as_ref().and_then(|journal| journal.newest_ns),
    })
}

fn check(clock: &Clock) -> Vec<Finding> {
    let remedy = "set the clock, and have it kept (`timedatectl set-ntp true`, chrony)";
    let now = shown(clock.now);
    if let Some(built) = clock.built.filter(|built| *built > clock.now) {
        let what = "the clock of this machine is wrong: it is before the date of this program";
        let evidence = format!("the clock says {now}, and the program is of {}", shown(built));
        return vec![Finding::broken(what, evidence).remedy(remedy)];
    }
    let mut findings = Vec::new();
    if clock.jump.abs() > JUMP {
        let what = format!("the clock was set by {:+.1} s while the doctor ran", clock.jump);
        findings.push(Finding::at_risk(what, "the clock beside the time that passed").remedy(remedy));
    }
    for (who, theirs) in &clock.peers {
        // Theirs are of the last seconds, in whole seconds.
        let off = seconds_between(clock.now, *theirs);
        if off.abs() > OFF {
            let what = format!("the clock of this machine and that of {who} differ by {:.0} s", off.abs());
            let evidence =
                format!("`Date` of its answer: {}; the clock of this machine: {now}", shown(*theirs));
            findings.push(
                Finding::at_risk(what, evidence)
                    .remedy(format!("{remedy}; if this machine's is right, tell who runs the peer")),
            );
        }
    }
    if let Some(newest) = clock.newest_ns {
        let newest = SystemTime::UNIX_EPOCH + Duration::from_nanos(newest);
        if seconds_between(clock.now, newest) > OFF {
            let what = "the newest record of the journal is from the future: the clock was ahead when it was received, or is behind now";
            let evidence = format!("it was received at {}, and the clock says {now}", shown(newest));
            findings.push(Finding::at_risk(what, evidence).remedy(remedy));
        }
    }
    if findings.is_empty() {
        let evidence = format!("it says {now}; compared with {} peers", clock.peers.len());
        findings.push(Finding::fine("the clock is not seen to be wrong", evidence));
    }
    findings
}

/// To the second.
pub(crate) fn shown(time: SystemTime) -> String {
    let time =
        jiff::Timestamp::try_from(time).and_then(|time| jiff::Timestamp::from_second(time.as_second()));
    time.map_or_else(|_| "a time beyond the calendar".to_owned(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn clock() -> Clock {
        Clock {
            now: at(10_000),
            built: Some(at(9000)),
            jump: 0.01,
            peers: vec![("p".into(), at(10_002))],
            newest_ns: Some(9_999_000_000_000),
        }
    }

    #[test]
    fn a_wrong_clock_is_seen() {
        let severity = |clock: Clock| check(&clock)[0].severity;
        assert_eq!(severity(clock()), Severity::Fine);
        assert_eq!(severity(Clock { built: Some(at(10_001)), ..clock() }), Severity::Broken);
        assert_eq!(severity(Clock { jump: -30.0, ..clock() }), Severity::AtRisk);
        assert_eq!(severity(Clock { peers: vec![("p".into(), at(9000))], ..clock() }), Severity::AtRisk);
        assert_eq!(severity(Clock { newest_ns: Some(20_000_000_000_000), ..clock() }), Severity::AtRisk);
        assert_eq!(shown(at(1_700_000_000)), "2023-11-14T22:13:20Z");
    }
}
