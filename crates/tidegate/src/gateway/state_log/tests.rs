//! Promise: each lasting change is logged once in each direction, trouble that lasts is logged again with its counts, and
//! a flapping state does not fill the log.

use super::*;
use crate::gateway::refusals::Refusals;

const SECOND: Duration = Duration::from_secs(1);

/// A gateway that is observed once a second.
struct Watched {
    log: StateLog,
    refusals: Refusals,
    /// The journal accepts nothing.
    barred: bool,
    now: Duration,
    seen: GatewaySnapshot,
}

impl Watched {
    fn new() -> Watched {
        let verdict = StateReport { state: State::Flowing, reason: "all is well".to_owned() };
        let sink = SinkSnapshot { name: "up".to_owned(), ..SinkSnapshot::default() };
        let seen = GatewaySnapshot { verdict, refuses: false, refused: BTreeMap::new(), sinks: vec![sink] };
        Watched { log: StateLog::default(), refusals: Refusals::default(), barred: false, now: SECOND, seen }
    }

    /// The lines of so many seconds, each begun by `change`.
    fn during(&mut self, seconds: u64, mut change: impl FnMut(u64, &mut GatewaySnapshot)) -> Vec<LogLine> {
        let mut lines = Vec::new();
        for second in 0..seconds {
            change(second, &mut self.seen);
            self.refusals.note(self.now, self.barred, &self.seen.refused);
            let mut seen = self.seen.clone();
            seen.refuses = !self.refusals.lately(self.now).is_empty();
            if seen.refuses {
                // As the console judges.
                seen.verdict.state = State::PushingBack;
            }
            self.log.look(self.now, &seen, &mut |line| lines.push(line));
            self.now += SECOND;
        }
        lines
    }

    fn states(
        &mut self,
        seconds: u64,
        change: impl FnMut(u64, &mut GatewaySnapshot),
    ) -> Vec<(&'static str, bool, u64)> {
        let lines = self.during(seconds, change);
        let state = |line: &LogLine| match line {
            LogLine::State { state, still, refused, .. } => {
                Some((*state, *still, refused.iter().map(|(_, count)| count).sum()))
            }
            _ => None,
        };
        lines.iter().filter_map(state).collect()
    }
}

fn refuse(seen: &mut GatewaySnapshot, count: u64) {
    *seen.refused.entry("disk").or_insert(0) += count;
}

#[test]
fn a_healthy_gateway_logs_nothing() {
    assert_eq!(Watched::new().during(1000, |_, _| {}), []);
}

#[test]
fn refusals_are_logged_at_once_every_five_minutes_and_at_their_end() {
    let mut watched = Watched::new();
    assert_eq!(watched.during(5, |_, _| {}), []);
    let full = |_: u64, seen: &mut GatewaySnapshot| {
        seen.verdict = StateReport { state: State::PushingBack, reason: "the journal is full".to_owned() };
        refuse(seen, 7);
    };
    watched.barred = true;
    let lines = watched.during(1, full);
    let Some(LogLine::State { reason, is_well: false, still: false, .. }) = lines.first() else {
        panic!("{lines:?}")
    };
    assert_eq!(reason, "the journal is full");
    assert_eq!(watched.states(650, full), [("pushing back", true, 2100), ("pushing back", true, 2100)]);
    watched.barred = false;
    let over = watched.during(30, |_, seen| {
        seen.verdict = StateReport { state: State::Flowing, reason: "all is well".to_owned() };
    });
    let [LogLine::State { state: "flowing", is_well: true, refused, seconds, .. }] = &over[..] else {
        panic!("{over:?}")
    };
    assert_eq!((refused[0], *seconds), (("disk", 50 * 7), 660));
}

/// Requests are refused although each second's look finds the journal open again, and a sink that piles up records.
#[test]
fn refusals_now_and_then_are_one_state() {
    let mut watched = Watched::new();
    let states = watched.states(100, |second, seen| {
        seen.verdict.state = State::Spilling;
        if second % 4 == 1 {
            refuse(seen, 1);
        }
    });
    assert_eq!(states, [("pushing back", false, 1)]);
    assert_eq!(watched.states(100, |_, _| {}), [("spilling", false, 24)]);
}

#[test]
fn a_lasting_state_is_logged() {
    let mut watched = Watched::new();
    // Draining every other second is not worth a line.
    let flicker = |second: u64, seen: &mut GatewaySnapshot| {
        seen.verdict.state = if second.is_multiple_of(2) { State::Draining } else { State::Flowing };
    };
    assert_eq!(watched.states(100, flicker), []);
    let spills = |_: u64, seen: &mut GatewaySnapshot| seen.verdict.state = State::Spilling;
    assert_eq!(watched.states(100, spills), [("spilling", false, 0)]);
    assert_eq!(watched.states(300, spills), [("spilling", true, 0)]);
    assert_eq!(watched.states(100, |_, seen| seen.verdict.state = State::Draining), [("draining", false, 0)]);
    assert_eq!(watched.states(1000, |_, seen| seen.verdict.state = State::Flowing), [("flowing", false, 0)]);
}

#[test]
fn a_recovered_sink_is_logged_with_its_error() {
    let mut watched = Watched::new();
    let fails = |_: u64, seen: &mut GatewaySnapshot| {
        let sink = &mut seen.sinks[0];
        (sink.failing, sink.failures, sink.queued) =
            (Some("connection refused".to_owned()), sink.failures + 1, 10);
    };
    let lines = watched.during(310, fails);
    let [LogLine::Failing { still: false, error, failures: 4, queued: 10, .. }, again] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(error, "connection refused");
    let LogLine::Failing { still: true, failures: 300, seconds: 303, .. } = again else {
        panic!("{again:?}")
    };
    let lines = watched.during(100, |_, seen| seen.sinks[0].failing = None);
    let expected = LogLine::Works { sink: "up".to_owned(), failures: 310, queued: 10, seconds: 310 };
    assert_eq!(lines, [expected]);
    // One that stumbles is not told.
    let stumble = |second: u64, seen: &mut GatewaySnapshot| {
        seen.sinks[0].failing = second.is_multiple_of(5).then(|| "503".to_owned());
    };
    assert_eq!(watched.during(100, stumble), []);
}

#[test]
fn drops_are_logged_at_once_and_then_every_five_minutes() {
    let mut watched = Watched::new();
    watched.seen.sinks[0].dropped.insert("rejected", 1000);
    assert_eq!(watched.during(5, |_, _| {}), [], "what was dropped before the start is no news");
    let lines = watched.during(302, |_, seen| *seen.sinks[0].dropped.entry("too_large").or_insert(0) += 1);
    let lost = |count| LogLine::Lost { sink: "up".to_owned(), dropped: vec![("too_large", count)] };
    assert_eq!(lines, [lost(1), lost(300)]);
}

/// A destination that fails is logged in both directions and again every few minutes, apart from the sink of its name.
#[test]
fn a_failing_destination_is_logged_in_both_directions() {
    let mut watched = Watched::new();
    watched.seen.sinks.push(SinkSnapshot {
        name: "up".to_owned(),
        is_destination: true,
        ..SinkSnapshot::default()
    });
    let lines = watched.during(305, |_, seen| {
        seen.sinks[1].failing = Some("status 503".to_owned());
        seen.sinks[1].failures += 1;
    });
    let failing = |line: &LogLine| match line {
        LogLine::DestinationFailing { sink, still, failures, .. } => Some((sink.clone(), *still, *failures)),
        _ => None,
    };
    let told: Vec<_> = lines.iter().filter_map(failing).collect();
    assert_eq!(told, [("up".to_owned(), false, 4), ("up".to_owned(), true, 300)]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let over = watched.during(30, |_, seen| seen.sinks[1].failing = None);
    let [LogLine::DestinationWorks { sink, failures: 305, .. }] = &over[..] else { panic!("{over:?}") };
    assert_eq!(sink, "up");
}
