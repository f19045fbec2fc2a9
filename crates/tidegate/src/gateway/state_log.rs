//! Logs the state of the gateway, of its sinks and of the destination of forwarded items: each change in both directions, and a reminder every few minutes while
//! requests are refused, records pile up or a sink fails.
//!
//! Invariant: a lasting change is logged once when it begins and once when it is over, whatever happens in between; a
//! state that flaps costs at most a line every few seconds.

use super::refusals::{REFUSAL_LIFETIME, own};
use super::status::StatusView;
use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;
use tidegate_console::{State, StateReport, Status};
use tidegate_ledger::Dropped;

/// How often the log repeats that something is not well.
const REMINDER_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// How long a sink fails, or works again, before that is logged: most fail briefly now and then.
const MIN_FAILURE_TIME: Duration = Duration::from_secs(3);

/// The gateway at one moment.
#[derive(Debug, Clone)]
pub(crate) struct GatewaySnapshot {
    pub(crate) verdict: StateReport,
    /// Requests were refused lately because of the gateway.
    pub(crate) refuses: bool,
    /// Requests refused since the start because of the gateway, by reason.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    pub(crate) sinks: Vec<SinkSnapshot>,
}

/// A sink, or the cluster of one that answers forwarded items, at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkSnapshot {
    pub(crate) name: String,
    /// The cluster as the destination of forwarded items, and not as the journal's sink.
    pub(crate) is_destination: bool,
    /// The error, while the sink fails.
    pub(crate) failing: Option<String>,
    /// Failed attempts since the start.
    pub(crate) failures: u64,
    /// Items queued for it.
    pub(crate) queued: u64,
    /// Items dropped since it was attached, by reason.
    pub(crate) dropped: BTreeMap<&'static str, u64>,
}

/// A line to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogLine {
    /// The gateway's state changed, or is `still` a bad one.
    State { state: &'static str, is_well: bool, still: bool, reason: String, refused: Counts, seconds: u64 },
    /// A sink fails, or `still` does.
    Failing { sink: String, still: bool, error: String, failures: u64, queued: u64, seconds: u64 },
    /// A sink works again.
    Works { sink: String, failures: u64, queued: u64, seconds: u64 },
    /// Requests to the destination of forwarded items fail, or `still` do.
    DestinationFailing { sink: String, still: bool, error: String, failures: u64, seconds: u64 },
    /// The destination answers again.
    DestinationWorks { sink: String, failures: u64, seconds: u64 },
    /// Items were dropped for a sink.
    Lost { sink: String, dropped: Counts },
}

/// Counts by reason, without zeros.
type Counts = Vec<(&'static str, u64)>;

/// Decides which lines are due.
#[derive(Default)]
pub(crate) struct StateLog {
    told: Option<LoggedState>,
    /// A state other than the logged one, and since when.
    pending: Option<(State, Duration)>,
    /// By name, with whether it is the destination.
    sinks: BTreeMap<(String, bool), LoggedSinkState>,
}

/// The state that was logged last.
struct LoggedState {
    state: State,
    since: Duration,
    /// Requests were refused in it.
    refuses: bool,
    /// When a line about it was last due, and what had been refused by then.
    at: Duration,
    refused: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct LoggedSinkState {
    /// Since when the sink fails, and how many attempts had failed before.
    failing: Option<(Duration, u64)>,
    /// When that was logged, if it was, and how many attempts had failed by then.
    told: Option<(Duration, u64)>,
    /// Since when the sink works again.
    works: Option<Duration>,
    /// The dropped items at the last log line, and its time.
    dropped: BTreeMap<&'static str, u64>,
    dropped_at: Option<Duration>,
}

impl StateLog {
    /// Compares what is seen at `now`, a time since the start, with what was logged, and passes the lines that are due to
    /// `tell`.
    pub(crate) fn look(&mut self, now: Duration, seen: &GatewaySnapshot, tell: &mut dyn FnMut(LogLine)) {
        self.state(now, seen, tell);
        self.sinks.retain(|(name, is_destination), _| {
            seen.sinks.iter().any(|sink| sink.name == *name && sink.is_destination == *is_destination)
        });
        for sink in &seen.sinks {
            // Earlier losses were logged by the process that had them.
            let fresh = || LoggedSinkState { dropped: sink.dropped.clone(), ..LoggedSinkState::default() };
            self.sinks
                .entry((sink.name.clone(), sink.is_destination))
                .or_insert_with(fresh)
                .look(now, sink, tell);
        }
    }

    fn state(&mut self, now: Duration, seen: &GatewaySnapshot, tell: &mut dyn FnMut(LogLine)) {
        if seen.verdict.state == State::Stopping {
            return;
        }
        let state = seen.verdict.state;
        let Some(told) = &mut self.told else {
            // That a gateway is well after its start is not worth a line.
            let (since, refused) = (now, seen.refused.clone());
            self.told = Some(LoggedState { state: State::Flowing, since, refuses: false, at: now, refused });
            return self.changed_state(now, seen, tell);
        };
        if state == told.state {
            self.pending = None;
            told.refuses |= seen.refuses;
            let is_well = matches!(state, State::Flowing | State::Draining);
            if !is_well && now.saturating_sub(told.at) >= REMINDER_INTERVAL {
                let refused = since(&told.refused, &seen.refused);
                let seconds = now.saturating_sub(told.since).as_secs();
                (told.at, told.refused) = (now, seen.refused.clone());
                tell(line((is_well, true), &seen.verdict, refused, seconds));
            }
            return;
        }
        self.changed_state(now, seen, tell);
    }

    /// Handles a state other than the logged one. Refusals are logged at once.
    fn changed_state(&mut self, now: Duration, seen: &GatewaySnapshot, tell: &mut dyn FnMut(LogLine)) {
        let state = seen.verdict.state;
        let Some(told) = &mut self.told else { return };
        if state == told.state {
            return;
        }
        let begun = match self.pending {
            Some((pending, begun)) if pending == state => begun,
            _ => now,
        };
        self.pending = Some((state, begun));
        // That the refusals are over was waited for already.
        if !(seen.refuses || told.refuses) && now.saturating_sub(begun) < REFUSAL_LIFETIME {
            return;
        }
        let is_well = matches!(state, State::Flowing | State::Draining);
        let refused = since(&told.refused, &seen.refused);
        // The line that trouble is over says how long it took.
        let seconds = if is_well { now.saturating_sub(told.since).as_secs() } else { 0 };
        let refused_now = seen.refused.clone();
        self.told =
            Some(LoggedState { state, since: begun, refuses: seen.refuses, at: now, refused: refused_now });
        self.pending = None;
        tell(line((is_well, false), &seen.verdict, refused, seconds));
    }
}

fn line((is_well, still): (bool, bool), verdict: &StateReport, refused: Counts, seconds: u64) -> LogLine {
    let (state, reason) = (verdict.state.word(), verdict.reason.clone());
    LogLine::State { state, is_well, still, reason, refused, seconds }
}

impl LoggedSinkState {
    fn look(&mut self, now: Duration, sink: &SinkSnapshot, tell: &mut dyn FnMut(LogLine)) {
        self.losses(now, sink, tell);
        let Some(error) = &sink.failing else { return self.working(now, sink, tell) };
        self.works = None;
        let (since, before) = *self.failing.get_or_insert((now, sink.failures.saturating_sub(1)));
        let (still, from) = match self.told {
            None if now.saturating_sub(since) < MIN_FAILURE_TIME => return,
            None => (false, before),
            Some((at, _)) if now.saturating_sub(at) < REMINDER_INTERVAL => return,
            Some((_, failures)) => (true, failures),
        };
        self.told = Some((now, sink.failures));
        let (name, error) = (sink.name.clone(), error.clone());
        let (failures, queued) = (sink.failures.saturating_sub(from), sink.queued);
        let seconds = now.saturating_sub(since).as_secs();
        tell(match sink.is_destination {
            true => LogLine::DestinationFailing { sink: name, still, error, failures, seconds },
            false => LogLine::Failing { sink: name, still, error, failures, queued, seconds },
        });
    }

    fn working(&mut self, now: Duration, sink: &SinkSnapshot, tell: &mut dyn FnMut(LogLine)) {
        let Some((since, before)) = self.failing else { return };
        let works = *self.works.get_or_insert(now);
        if self.told.is_some() && now.saturating_sub(works) < MIN_FAILURE_TIME {
            return;
        }
        if self.told.is_some() {
            let (name, queued) = (sink.name.clone(), sink.queued);
            let failures = sink.failures.saturating_sub(before);
            let seconds = works.saturating_sub(since).as_secs();
            tell(match sink.is_destination {
                true => LogLine::DestinationWorks { sink: name, failures, seconds },
                false => LogLine::Works { sink: name, failures, queued, seconds },
            });
        }
        (self.failing, self.told, self.works) = (None, None, None);
    }

    /// Losses are logged at once, and then every few minutes.
    fn losses(&mut self, now: Duration, sink: &SinkSnapshot, tell: &mut dyn FnMut(LogLine)) {
        let dropped = since(&self.dropped, &sink.dropped);
        let lately = self.dropped_at.is_some_and(|at| now.saturating_sub(at) < REMINDER_INTERVAL);
        if dropped.is_empty() || lately {
            return;
        }
        (self.dropped, self.dropped_at) = (sink.dropped.clone(), Some(now));
        tell(LogLine::Lost { sink: sink.name.clone(), dropped });
    }
}

/// The growth of each count.
fn since(before: &BTreeMap<&'static str, u64>, now: &BTreeMap<&'static str, u64>) -> Counts {
    let more = |(reason, count): (&&'static str, &u64)| {
        (*reason, count.saturating_sub(before.get(reason).copied().unwrap_or(0)))
    };
    now.iter().map(more).filter(|(_, count)| *count > 0).collect()
}

impl GatewaySnapshot {
    /// The part of `status` that is logged.
    pub(crate) fn of(status: &Status) -> GatewaySnapshot {
        let dropped = |dropped: &[(Dropped, u64)]| {
            let lost = dropped.iter().filter(|(reason, _)| !reason.is_intended());
            lost.map(|(reason, items)| (reason.name(), *items)).collect()
        };
        let sinks = status.sinks.iter().map(|sink| {
            let fails = sink.broken || sink.retry_at.is_some();
            let error = || sink.last_error.as_ref().map_or_else(String::new, |error| error.message.clone());
            SinkSnapshot {
                name: sink.name.clone(),
                is_destination: false,
                failing: fails.then(error),
                failures: sink.failures + sink.restarts,
                queued: sink.lag.items,
                dropped: dropped(&sink.dropped),
            }
        });
        let destination = status.destination.as_ref().map(|destination| SinkSnapshot {
            name: destination.sink.clone(),
            is_destination: true,
            failing: destination.failing_since.map(|_| {
                destination.last_error.as_ref().map_or_else(String::new, |error| error.message.clone())
            }),
            failures: destination.failures,
            ..SinkSnapshot::default()
        });
        GatewaySnapshot {
            verdict: StateReport::of(status),
            refuses: !status.refused_lately.is_empty(),
            refused: own(&status.books.sources),
            sinks: sinks.chain(destination).collect(),
        }
    }
}

/// Logs what is due; to be called once a second.
pub(crate) fn round(view: Weak<StatusView>) -> impl FnMut() + Send + 'static {
    let mut state_log = StateLog::default();
    move || {
        let Some(view) = view.upgrade() else { return };
        let now = view.started.elapsed();
        view.rates.note(now, &view.journal.stats(), view.check_ins());
        view.refusals.note(now, view.journal.append_error().is_some(), &own(&view.ledger.balance().sources));
        let status = view.brief();
        view.note_history(&status);
        state_log.look(status.uptime, &GatewaySnapshot::of(&status), &mut |line| log(&line));
    }
}

fn log(line: &LogLine) {
    match line {
        LogLine::State { state, is_well: true, reason, refused, seconds, .. } => {
            let refused = listed(refused);
            tracing::info!(state, reason, refused, after_seconds = seconds, "the gateway's state changed");
        }
        LogLine::State { state, still: false, reason, refused, .. } => {
            tracing::warn!(state, reason, refused = listed(refused), "the gateway's state changed");
        }
        LogLine::State { state, reason, refused, seconds, .. } => {
            let refused = listed(refused);
            tracing::warn!(
                state,
                reason,
                refused,
                for_seconds = seconds,
                "the gateway's state is still the same"
            );
        }
        LogLine::Failing { sink, still: false, error, failures, queued, .. } => {
            tracing::warn!(sink, error, failures, queued, "the sink is failing");
        }
        LogLine::Failing { sink, error, failures, queued, seconds, .. } => {
            tracing::warn!(sink, error, failures, queued, for_seconds = seconds, "the sink is still failing");
        }
        LogLine::Works { sink, failures, queued, seconds } => {
            tracing::info!(sink, failures, queued, after_seconds = seconds, "the sink works again");
        }
        LogLine::DestinationFailing { sink, still: false, error, failures, .. } => {
            tracing::warn!(sink, error, failures, "the destination of `_bulk` is failing");
        }
        LogLine::DestinationFailing { sink, error, failures, seconds, .. } => {
            tracing::warn!(
                sink,
                error,
                failures,
                for_seconds = seconds,
                "the destination of `_bulk` is still failing"
            );
        }
        LogLine::DestinationWorks { sink, failures, seconds } => {
            tracing::info!(sink, failures, after_seconds = seconds, "the destination of `_bulk` works again");
        }
        LogLine::Lost { sink, dropped } => {
            tracing::warn!(sink, items = listed(dropped), "items were dropped for this sink, for good");
        }
    }
}

/// `disk: 12, memory: 3`.
fn listed(counts: &Counts) -> String {
    let each: Vec<String> = counts.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

#[cfg(test)]
mod tests;
