//! The pipelines of sources, which run before the journal.
//!
//! Promises: what a source has a pipeline for never reaches the journal without having passed it, also while the
//! configuration is read again; and there are never more [`Workspace`]s of a source than runs at once.

use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_journal::{Protocol, Signal};
use tidegate_pipeline::{Format, Pipeline, StepCounts, Workspace};
use tidegate_pool::Pool;
use tidegate_stage::{FailureLog, Owner, PipelineMeters, format_of};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The pipelines of all sources. Clones share them.
#[derive(Clone, Default)]
pub struct SourcePipelines(Arc<State>);

struct State {
    /// The most runs at once.
    runs: usize,
    all: Semaphore,
    /// Of these runs, those of large bodies: one less, so small ones never wait for large ones alone.
    large: Semaphore,
    current: ArcSwap<Vec<Arc<SourcePipeline>>>,
    /// Where large bodies are checked once more.
    pool: Option<Pool>,
}

/// The pipeline of a source.
#[derive(Debug)]
pub struct SourcePipeline {
    source: String,
    pipeline: Arc<Pipeline>,
    /// The steps whose failures are not logged.
    silent: Vec<usize>,
    meters: PipelineMeters,
    log: Mutex<FailureLog>,
    /// Workspaces without a run.
    idle: Mutex<Vec<Workspace>>,
    /// Another one has taken its place.
    is_replaced: AtomicBool,
}

/// The turn to run. Dropping it passes the turn on.
pub(crate) struct RunTurn<'a> {
    _all: SemaphorePermit<'a>,
    _large: Option<SemaphorePermit<'a>>,
}

/// A workspace for one run.
pub(crate) struct HeldWorkspace<'a> {
    owner: &'a SourcePipeline,
    // There is one until this is dropped.
    workspace: Option<Workspace>,
}

impl Default for State {
    fn default() -> State {
        State::new(0, None)
    }
}

impl State {
    fn new(runs: usize, pool: Option<Pool>) -> State {
        State {
            runs,
            all: Semaphore::new(runs),
            large: Semaphore::new(runs.saturating_sub(1)),
            current: ArcSwap::default(),
            pool,
        }
    }
}

impl SourcePipelines {
    /// How many runs there are at once where so many threads serve requests: each can be at one, and there is one more than
    /// large bodies can have.
    #[must_use]
    pub fn runs(threads: usize) -> usize {
        threads.max(2)
    }

    /// No pipelines yet; of those that are [set](Self::set), at most `runs` run at once.
    #[must_use]
    pub fn new(runs: usize, pool: Pool) -> SourcePipelines {
        SourcePipelines(Arc::new(State::new(runs, Some(pool))))
    }

    /// Has requests that arrive from now on pass through these.
    pub fn set(&self, pipelines: Vec<Arc<SourcePipeline>>) {
        let before = self.0.current.swap(Arc::new(pipelines));
        let now = self.0.current.load();
        // They may be those of before again.
        now.iter().for_each(|own| own.is_replaced.store(false, Relaxed));
        for replaced in before.iter().filter(|before| !now.iter().any(|it| Arc::ptr_eq(it, before))) {
            replaced.is_replaced.store(true, Relaxed);
            replaced.idle().clear();
        }
    }

    /// All of them as they are now.
    #[must_use]
    pub fn all(&self) -> Arc<Vec<Arc<SourcePipeline>>> {
        self.0.current.load_full()
    }

    /// The pipeline that a record of this source, protocol and signal has to pass, and the format of its body.
    pub(crate) fn of(
        &self,
        source: &str,
        protocol: Protocol,
        signal: Signal,
    ) -> Option<(Arc<SourcePipeline>, Format)> {
        let current = self.0.current.load();
        let own = current.iter().find(|own| own.source == source)?;
        Some((Arc::clone(own), own.format(protocol, signal)?))
    }

    /// Waits for the turn to run; `is_large` says that others should have theirs meanwhile.
    pub(crate) async fn turn(&self, is_large: bool) -> Option<RunTurn<'_>> {
        let State { runs, all, large, .. } = &*self.0;
        // The semaphores are fair, and never closed.
        let large = if is_large && *runs > 1 { Some(large.acquire().await.ok()?) } else { None };
        Some(RunTurn { _all: all.acquire().await.ok()?, _large: large })
    }

    pub(crate) fn pool(&self) -> Option<&Pool> {
        self.0.pool.as_ref()
    }
}

impl SourcePipeline {
    /// The heap of a run beside its workspace, in bytes: the state of its task.
    pub const RUN_BYTES: usize = 16 << 10;

    /// The pipeline of the source of this name. The failures of the steps `silent` are not logged.
    #[must_use]
    pub fn new(
        source: &str,
        pipeline: Pipeline,
        silent: Vec<usize>,
        meters: PipelineMeters,
    ) -> SourcePipeline {
        SourcePipeline {
            source: source.to_owned(),
            pipeline: Arc::new(pipeline),
            silent,
            log: Mutex::new(FailureLog::new(&meters)),
            meters,
            idle: Mutex::default(),
            is_replaced: AtomicBool::new(false),
        }
    }

    /// The source's name.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled steps.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// What the steps do.
    pub fn meters(&self) -> &PipelineMeters {
        &self.meters
    }

    /// The memory of a run beside what is charged for its body, in bytes.
    #[must_use]
    pub fn run_bytes(&self) -> usize {
        self.pipeline.workspace_bytes() + SourcePipeline::RUN_BYTES
    }

    /// The format of the decoded bodies of records of this protocol and signal, if it applies to them.
    pub fn format(&self, protocol: Protocol, signal: Signal) -> Option<Format> {
        format_of(&self.pipeline, protocol, signal)
    }

    /// A workspace, for a run that has the turn.
    pub(crate) fn workspace(&self) -> HeldWorkspace<'_> {
        let idle = self.idle().pop();
        let mut workspace = idle.unwrap_or_else(|| self.pipeline.workspace());
        // A run that was given up has left its counts.
        workspace.take_counts(|_, _| {});
        HeldWorkspace { owner: self, workspace: Some(workspace) }
    }

    /// Enters what the steps did to one body. Returns how many items they dropped, and how many they left out of a sample.
    pub(crate) fn count(&self, workspace: &mut Workspace) -> (u64, u64) {
        let (mut filtered, mut sampled_out, mut has_failed) = (0, 0, false);
        workspace.take_counts(|step, counts: &StepCounts| {
            filtered += counts.filtered;
            sampled_out += counts.sampled_out;
            has_failed |= counts.failures.iter().any(|failures| *failures > 0);
            self.meters.add(step, counts);
        });
        if has_failed {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.log(Owner::Source(&self.source), &self.meters, &self.silent);
        }
        (filtered, sampled_out)
    }

    /// Workspaces without a run.
    #[cfg(test)]
    pub(crate) fn idle_workspaces(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldWorkspace<'_> {
    pub(crate) fn get(&mut self) -> &mut Workspace {
        let HeldWorkspace { owner, workspace } = self;
        workspace.get_or_insert_with(|| owner.pipeline.workspace())
    }
}

impl Drop for HeldWorkspace<'_> {
    fn drop(&mut self) {
        let mut idle = self.owner.idle();
        // Under the lock, so that none stays behind when it is replaced.
        if !self.owner.is_replaced.load(Relaxed) {
            idle.extend(self.workspace.take());
        }
    }
}
