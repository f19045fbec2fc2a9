//! Tail sampling of a sink: a watcher that reads ahead of it, and what the two share.
//!
//! The watcher follows the journal with a cursor of its own and takes each span into the [`Sampler`]. It reads only as far as the sink asks:
//! to the record at which everything about the sink's next record is decided. The sink's pipeline drops the spans of traces that are
//! not kept. The argument is in `design/tail-sampling.md`.

mod cursor;
mod watcher;

use crate::egress_budget::EgressBudget;
use cursor::WatcherState;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_journal::{Journal, OpenError, Record, SET_BACK_NS, StartAt, WhenFull};
use tidegate_pipeline::{Pipeline, SpanFacts, TraceId, TraceSampler};
use tidegate_stage::PipelineMeters;
use tidegate_trace_sampling::{Counts, SET_BACK_MS, Sampler, Settings};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use watcher::{JournalReader, Watcher};

/// The end of the name of a watcher's cursor, behind that of its sink. No sink's name has a dot.
const CURSOR_SUFFIX: &str = ".tail";

/// A sampler takes for a clock that was set back what the journal does.
const _: () = assert!(SET_BACK_NS == SET_BACK_MS * 1_000_000);

/// How the traces of a sink are sampled. Clones share the sampler.
#[derive(Clone)]
pub struct TraceSampling {
    /// The steps that select what the sink takes, and the one that watches traces.
    pub watch: Arc<Pipeline>,
    /// The same for records of earlier periods, in which the sink took other items, by their sequences.
    pub earlier: Vec<(Range<u64>, Arc<Pipeline>)>,
    /// Counters of the step that watches.
    pub meters: PipelineMeters,
    /// The policies, and the size of the table.
    pub settings: Settings,
    /// Says which policies wrote the counters that are kept with the cursor: those of others are not read.
    pub version: u32,
    /// The memory of the watcher for records.
    pub room: EgressBudget,
    /// Where the watcher runs.
    pub runtime: Handle,
    /// The sampler.
    pub shared: SharedSampler,
}

/// The sampler of a sink, as long as that runs.
#[derive(Debug, Clone, Default)]
pub struct SharedSampler(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Option<State>>,
    /// The sink wants another record decided, or has settled some.
    moved: Notify,
    /// The record that the sink wanted is decided.
    decided: Notify,
}

#[derive(Debug)]
struct State {
    sampler: Sampler,
    /// The record that the sink waits for: its sequence, and when it was received.
    wanted: Option<(u64, u64)>,
}

/// The decisions of a sampler, and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingReport {
    /// Decisions.
    pub counts: Counts,
    /// Traces that are not decided.
    pub undecided: u64,
    /// Decisions that are remembered.
    pub remembered: u64,
}

/// The watcher of a sink, which ends with this.
pub(crate) struct Sampling {
    shared: SharedSampler,
    reader: JournalReader,
    task: JoinHandle<()>,
    pub(crate) runtime: Handle,
}

impl TraceSampling {
    /// The name of the cursor that the watcher of a sink has in the journal.
    #[must_use]
    pub fn cursor_of(sink: &str) -> String {
        format!("{sink}{CURSOR_SUFFIX}")
    }

    /// The sink whose watcher has this cursor; `None` where it is a sink's own.
    #[must_use]
    pub fn sink_of(cursor: &str) -> Option<&str> {
        cursor.strip_suffix(CURSOR_SUFFIX)
    }

    /// Starts the watcher of the sink `name`, where the sink is at `sink`.
    pub(crate) fn start(
        &self,
        name: &str,
        journal: &Journal,
        when_full: WhenFull,
        sink: tidegate_journal::Committer,
    ) -> Result<Sampling, OpenError> {
        let cursor = TraceSampling::cursor_of(name);
        let mut follower = journal.follow(&cursor, StartAt::Oldest, when_full)?;
        let floor_ms = cursor::read(&follower.metadata(), self.version).floor_ms;
        if follower.position().sequence > sink.completed() {
            // The sink's own cursor was lost, or is older: spans before the watcher's would be unknown.
            tracing::warn!(sink = name, "the sink is behind what was decided: its traces are decided again");
            drop(follower);
            journal.forget(&cursor).map_err(|source| OpenError::Io {
                dir: "the journal".into(),
                doing: format!("remove the cursor `{cursor}`"),
                source,
            })?;
            follower = journal.follow(&cursor, StartAt::Oldest, when_full)?;
        }
        follower.in_order();
        let mut sampler = Sampler::new(self.settings.clone());
        let kept = WatcherState { floor_ms, ..cursor::read(&follower.metadata(), self.version) };
        sampler.restore(follower.position().sequence, kept.rates);
        // What was decided because nothing had come until then is decided again, and nothing comes before it.
        journal.advance_clock(floor_ms.saturating_mul(1_000_000));
        *self.shared.lock() = Some(State { sampler, wanted: None });
        let reader = JournalReader::new(follower);
        let watcher = Watcher::new(self, name, journal.clone(), reader.clone(), sink, kept);
        let task = self.runtime.spawn(watcher.run());
        Ok(Sampling { shared: self.shared.clone(), reader, task, runtime: self.runtime.clone() })
    }
}

impl std::fmt::Debug for TraceSampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceSampling").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl SharedSampler {
    /// Its decisions so far; `None` where the sink does not run.
    #[must_use]
    pub fn report(&self) -> Option<SamplingReport> {
        self.lock().as_ref().map(|State { sampler, .. }| {
            let (undecided, remembered) = sampler.remembered();
            SamplingReport { counts: sampler.counts().clone(), undecided, remembered }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer of `ask` about the sampler; the default where there is none any more.
    fn with<T: Default>(&self, ask: impl FnOnce(&mut Sampler) -> T) -> T {
        self.lock().as_mut().map(|state| ask(&mut state.sampler)).unwrap_or_default()
    }

    /// Whether everything is decided that the sink wants to know.
    fn is_satisfied(&self) -> bool {
        self.lock().as_ref().is_none_or(|State { sampler, wanted }| {
            wanted.is_none_or(|(sequence, received_at_ns)| sampler.is_decided(sequence, received_at_ns))
        })
    }
}

impl TraceSampler for SharedSampler {
    fn watch(&mut self, span: &SpanFacts) {
        self.with(|sampler| sampler.watch(span));
    }

    fn watch_event(&mut self, trace_id: &TraceId, fulfilled: u64) {
        self.with(|sampler| sampler.watch_event(trace_id, fulfilled));
    }

    fn keeps(&mut self, trace_id: &TraceId) -> bool {
        self.lock().as_mut().is_none_or(|state| state.sampler.keeps(trace_id))
    }
}

impl Sampling {
    /// The sampler, to be asked about traces.
    pub(crate) fn sampler(&self) -> SharedSampler {
        self.shared.clone()
    }

    /// Waits until every trace is decided that has a span in `record`. May be given up and begun again.
    ///
    /// # Panics
    /// When the watcher has ended: the sink cannot go on, and is started again with it.
    pub(crate) async fn decided(&mut self, record: &Record) {
        let wanted = (record.sequence, record.meta.received_at_ns);
        loop {
            let shared = self.shared.clone();
            let decided = shared.0.decided.notified();
            let mut decided = std::pin::pin!(decided);
            // Registered before the look, so that no decision after it is missed.
            decided.as_mut().enable();
            if let Some(state) = &mut *self.shared.lock() {
                state.wanted = Some(wanted);
                if state.sampler.is_decided(wanted.0, wanted.1) {
                    state.wanted = None;
                    return;
                }
            }
            self.shared.0.moved.notify_one();
            tokio::select! {
                () = decided => {}
                ended = &mut self.task => panic!("the watcher of traces has ended: {ended:?}"),
            }
        }
    }

    /// The sink has settled records.
    pub(crate) fn settled(&self) {
        self.shared.0.moved.notify_one();
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.task.abort();
        // The memory of the table is free at once, and then the cursor, for a successor that has the same table.
        *self.shared.lock() = None;
        self.reader.end();
    }
}
