//! How the data flows, in one word and one sentence, judged from the numbers alone.

use crate::human::{HumanCount, HumanDuration, Plural};
use crate::status::{Sink, Status};
use serde::Serialize;
use std::time::Duration;
use tidegate_arena::Share;

/// How the data flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Data flows in and out.
    Flowing,
    /// New data is refused or delayed, because memory, disk or connections are used up, or because the cluster that has to
    /// answer it fails.
    PushingBack,
    /// New data is accepted and accumulates on disk because a sink fails or is too slow.
    Spilling,
    /// The backlog is shrinking.
    Draining,
    /// The process was told to stop, and answers what is in flight.
    Stopping,
}

/// A state, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateReport {
    /// The word.
    pub state: State,
    /// The reason, in a sentence without a full stop.
    pub reason: String,
}

impl State {
    /// All of them.
    pub const ALL: [State; 5] =
        [State::Flowing, State::PushingBack, State::Spilling, State::Draining, State::Stopping];

    /// The word for it on the pages.
    pub const fn word(self) -> &'static str {
        match self {
            State::Flowing => "flowing",
            State::PushingBack => "pushing back",
            State::Spilling => "spilling",
            State::Draining => "draining",
            State::Stopping => "stopping",
        }
    }
}

impl StateReport {
    /// The verdict on `status`. The worst true condition gives the word; all true conditions give the reason.
    pub fn of(status: &Status) -> StateReport {
        let late = LateSinks::of(status);
        let pushing = pushing_back(status);
        let state = if status.stopping {
            State::Stopping
        } else if !pushing.is_empty() {
            State::PushingBack
        } else {
            late.state()
        };
        let mut clauses = Vec::new();
        if status.stopping {
            clauses.push("stopping, answering requests in flight".to_owned());
        }
        clauses.extend(pushing);
        clauses.extend(late.clause());
        if clauses.is_empty() {
            clauses.push(match status.sinks.len() {
                0 => "data is accepted, but no sink is configured".to_owned(),
                1 => "data is accepted, and the sink keeps up".to_owned(),
                _ => "data is accepted, and every sink keeps up".to_owned(),
            });
        }
        StateReport { state, reason: clauses.join("; ") }
    }
}

/// Why requests are refused or made to wait, each reason in a clause.
fn pushing_back(status: &Status) -> Vec<String> {
    let mut clauses = Vec::new();
    if let Some(trouble) = &status.journal.trouble {
        clauses.push(format!("the journal accepts nothing: {trouble}"));
        let holds = status.left_behind.iter().filter(|left| left.items > 0);
        if let Some(left) = holds.max_by_key(|left| left.bytes) {
            let (name, items, command) = (&left.name, HumanCount(left.items), &left.command);
            clauses.push(format!(
                "`{name}`, which is no longer configured, holds back {items} items: `{command}` drops them"
            ));
        }
    }
    let intake = [Share::Ingest.name(), Share::Decode.name()];
    let short = status.memory.payload.shares.iter().filter(|share| share.waiting > 0);
    for share in short.filter(|share| intake.contains(&share.name.as_str())) {
        let waiting = if share.waiting == 1 {
            "1 request waits".to_owned()
        } else {
            format!("{} requests wait", HumanCount(share.waiting))
        };
        clauses.push(format!("{waiting} for memory of the share `{}`", share.name));
    }
    let (open, limit) = (status.memory.connections_open, status.memory.connections_limit);
    if open >= limit && limit > 0 {
        clauses.push(format!("all {} connections are in use", HumanCount(limit)));
    }
    if clauses.is_empty() && !status.refused_lately.is_empty() {
        clauses.push(format!("requests are refused: {}", status.refused_lately.join(", ")));
    }
    clauses.extend(failing_destination(status));
    clauses
}

/// How long a destination fails before that is a state of the gateway: single requests fail now and then.
const MIN_FAILURE_TIME: Duration = Duration::from_secs(3);

/// Why items that the destination has to answer are refused.
fn failing_destination(status: &Status) -> Option<String> {
    let destination = status.destination.as_ref()?;
    let time = status.at.duration_since(destination.failing_since?).unwrap_or_default();
    let (name, source) = (&destination.sink, &destination.source);
    let error = destination.last_error.as_ref().map_or("", |error| &error.message);
    let words =
        || format!("destination `{name}` of `{source}` has failed for {}: {error}", HumanDuration(time));
    (time >= MIN_FAILURE_TIME).then(words)
}

/// The sinks that are late, and the one that is latest.
struct LateSinks<'a> {
    worst: Option<(&'a Sink, Duration)>,
    count: usize,
    /// The recent rate of received items, per second.
    arriving: Option<f64>,
}

impl<'a> LateSinks<'a> {
    fn of(status: &'a Status) -> LateSinks<'a> {
        // One that failed is late at once.
        let age = |sink: &Sink| sink.late().or(sink.broken.then(|| sink.lag.age.unwrap_or_default()));
        let late = || status.sinks.iter().filter_map(|sink| Some((sink, age(sink)?)));
        // One that fails comes before one that only has much to do.
        let worst = late()
            .max_by_key(|(sink, age)| (sink.broken, sink.retry_at.is_some(), !sink.waiting.is_empty(), *age));
        LateSinks { worst, count: late().count(), arriving: status.journal.items_per_second }
    }

    fn state(&self) -> State {
        match self.worst {
            None => State::Flowing,
            Some((sink, _))
                if sink.broken
                    || sink.retry_at.is_some()
                    || !sink.waiting.is_empty()
                    || self.falls_back(sink) =>
            {
                State::Spilling
            }
            Some(_) => State::Draining,
        }
    }

    /// Whether what comes in is known to be more than what `sink` completes.
    fn falls_back(&self, sink: &Sink) -> bool {
        matches!((sink.items_per_second, self.arriving), (Some(out), Some(arriving)) if out < arriving)
    }

    fn clause(&self) -> Option<String> {
        let (sink, age) = self.worst?;
        let why = match &sink.last_error {
            Some(error) if sink.broken => format!("it failed and is started again: {}", error.message),
            Some(error) if sink.retry_at.is_some() => error.message.clone(),
            _ if sink.broken || sink.retry_at.is_some() => "its last attempt failed".to_owned(),
            _ if !sink.waiting.is_empty() => unavailable(sink),
            _ if self.falls_back(sink) => "it is slower than the incoming data".to_owned(),
            _ => self.catching_up(sink),
        };
        let others = match self.count - 1 {
            0 => String::new(),
            1 => "; 1 more sink is late".to_owned(),
            more => format!("; {more} more sinks are late"),
        };
        Some(format!("sink `{}` is {} behind: {why}{others}", sink.name, HumanDuration(age)))
    }

    fn catching_up(&self, sink: &Sink) -> String {
        let (Some(out), Some(arriving)) = (sink.items_per_second, self.arriving) else {
            return "it is catching up".to_owned();
        };
        match Duration::try_from_secs_f64((sink.lag.items as f64 / (out - arriving)).ceil()) {
            Ok(left) if left < Duration::from_secs(7 * 86_400) => {
                format!("it is catching up, in about {}", HumanDuration(left))
            }
            _ => "it is catching up".to_owned(),
        }
    }
}

/// Names the indexes that accept nothing, while the rest of a sink's data is delivered.
fn unavailable(sink: &Sink) -> String {
    let names: Vec<String> = sink.waiting.iter().map(|waiting| format!("`{}`", waiting.index)).collect();
    let documents = sink.waiting.iter().fold(0_u64, |sum, waiting| sum.saturating_add(waiting.documents));
    let verb = if documents == 1 { "waits" } else { "wait" };
    format!("{} {verb} for unavailable indexes: {}", Plural(documents, "document"), names.join(", "))
}
