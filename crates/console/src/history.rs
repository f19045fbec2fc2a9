//! The last 15 minutes in steps of five seconds: `GET /console/history`, for pages that have just been opened.

use crate::page_buffer::PageBuffer;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_ledger::{Balance, MAX_SINKS, Refusal};

/// The length of a step.
pub const HISTORY_STEP: Duration = Duration::from_secs(5);
/// How many steps are kept: 15 minutes.
pub const MOST_STEPS_OF_HISTORY: usize = 180;

/// The heap of what is kept of a sink: an entry, and a name.
const SINK: usize = size_of::<(String, u64)>() + 64;

/// Sums and levels of the last 15 minutes. It has its whole size from the start.
#[derive(Debug)]
pub struct History(Mutex<Steps>);

#[derive(Debug)]
struct Steps {
    steps: VecDeque<HistoryStep>,
    /// The counts at the end of the last step, and when that was, as a time since the start.
    before: Option<(Duration, Counts)>,
    /// The deliveries of each sink at that time, which are counted over restarts: a sink that was not there then has delivered nothing yet.
    delivered: Vec<(String, u64)>,
    /// When the last step ended.
    at: Option<SystemTime>,
}

/// Items and refused requests since the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    received: u64,
    refused: [u64; Refusal::COUNT],
}

/// The levels at one moment, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    /// The journal on disk.
    pub journal: u64,
    /// Resident memory; 0 where the kernel does not tell.
    pub resident: u64,
    /// Memory in use for payload.
    pub payload: u64,
}

/// One step: items and refused requests within it, and the levels at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HistoryStep {
    received: u32,
    delivered: u32,
    refused: [u32; Refusal::COUNT],
    levels: Levels,
}

impl History {
    /// The heap that it takes, in bytes.
    pub const BYTES: usize = MOST_STEPS_OF_HISTORY * size_of::<HistoryStep>() + MAX_SINKS * SINK;

    /// No step yet.
    pub fn new() -> History {
        let steps = VecDeque::with_capacity(MOST_STEPS_OF_HISTORY);
        let delivered = Vec::with_capacity(MAX_SINKS);
        History(Mutex::new(Steps { steps, before: None, delivered, at: None }))
    }

    /// Notes the books and the levels at `now`, a time since the start of the process. To be called about once a second.
    pub fn note(&self, now: Duration, books: &Balance, levels: Levels) {
        let mut history = self.steps();
        let Some((at, before)) = history.before else {
            history.before = Some((now, Counts::default()));
            history.deliveries(books);
            return;
        };
        if now.saturating_sub(at) < HISTORY_STEP {
            return;
        }
        if history.steps.len() >= MOST_STEPS_OF_HISTORY {
            history.steps.pop_front();
        }
        let (counts, delivered) = (Counts::of(books), history.deliveries(books));
        history.steps.push_back(counts.since(&before, delivered, levels));
        // A late call makes a longer step, and does not make all the later ones late.
        let late = Duration::from_nanos(
            u64::try_from((now.saturating_sub(at)).as_nanos() % HISTORY_STEP.as_nanos()).unwrap_or(0),
        );
        history.before = Some((now.saturating_sub(late), counts));
        history.at = Some(SystemTime::now());
    }

    /// Writes `{"step_seconds":5,"at":…,"points":[…]}`, the oldest point first; `at` is the end of the last one.
    pub(crate) fn write_json(&self, out: &mut PageBuffer) -> serde_json::Result<()> {
        #[derive(Serialize)]
        struct Shown<'a> {
            step_seconds: u64,
            #[serde(serialize_with = "crate::status::raw::maybe_moment")]
            at: Option<SystemTime>,
            points: &'a VecDeque<HistoryStep>,
        }
        let history = self.steps();
        serde_json::to_writer(
            out,
            &Shown { step_seconds: HISTORY_STEP.as_secs(), at: history.at, points: &history.steps },
        )
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for History {
    fn default() -> History {
        History::new()
    }
}

impl Steps {
    /// Items that the sinks have delivered since the last call.
    fn deliveries(&mut self, books: &Balance) -> u64 {
        let before =
            |name: &str| self.delivered.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
        let more = books
            .sinks
            .iter()
            .map(|sink| sink.delivered.saturating_sub(before(&sink.name).unwrap_or(sink.delivered)));
        let more = more.sum();
        self.delivered.clear();
        self.delivered
            .extend(books.sinks.iter().take(MAX_SINKS).map(|sink| (sink.name.clone(), sink.delivered)));
        more
    }
}

impl Counts {
    fn of(books: &Balance) -> Counts {
        let mut counts = Counts::default();
        for source in &books.sources {
            let items: u64 = source.items.iter().map(|(_, items)| items).sum();
            counts.received += items + source.forwarded.received;
            for (reason, requests) in &source.refused {
                if let Some(count) = counts.refused.get_mut(*reason as usize) {
                    *count += requests;
                }
            }
        }
        counts
    }

    fn since(&self, before: &Counts, delivered: u64, levels: Levels) -> HistoryStep {
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let more = |now: u64, before: u64| small(now.saturating_sub(before));
        let mut refused = [0; Refusal::COUNT];
        for ((step, now), before) in refused.iter_mut().zip(self.refused).zip(before.refused) {
            *step = more(now, before);
        }
        HistoryStep {
            received: more(self.received, before.received),
            delivered: small(delivered),
            refused,
            levels,
        }
    }
}

impl Serialize for HistoryStep {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        /// Requests by reason, without those that did not occur.
        struct Refused<'a>(&'a [u32; Refusal::COUNT]);
        impl Serialize for Refused<'_> {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                let counts = Refusal::ALL.iter().zip(self.0).filter(|(_, count)| **count > 0);
                out.collect_map(counts.map(|(reason, count)| (reason.name(), count)))
            }
        }
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("received", &self.received)?;
        map.serialize_entry("delivered", &self.delivered)?;
        map.serialize_entry("refused", &Refused(&self.refused))?;
        map.serialize_entry("journal_bytes", &self.levels.journal)?;
        // Never 0 where it is known.
        map.serialize_entry("resident", &NonZeroU64::new(self.levels.resident))?;
        map.serialize_entry("payload", &self.levels.payload)?;
        map.end()
    }
}

#[cfg(test)]
mod tests;
