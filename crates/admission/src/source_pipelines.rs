//! The pipelines of sources, which run before the journal.
//!
//! Promises: what a source has a pipeline for never reaches the journal without having passed it, also while the
//! configuration is read again; there are never more [`Workspace`]s of a source than runs at once, those of a pipeline that
//! was replaced included; and memory that a replacement gives back is charged until the last request has left it.

use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_arena::Charge;
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
    /// The workspaces without a run, of each of the current pipelines. Locked for moments only.
    idle: Mutex<Vec<IdleWorkspaces>>,
    /// Where large bodies are checked once more.
    pool: Option<Pool>,
}

/// The workspaces of a pipeline without a run.
struct IdleWorkspaces {
    owner: Arc<SourcePipeline>,
    workspaces: Vec<Workspace>,
}

/// The pipeline of a source.
pub struct SourcePipeline {
    source: String,
    pipeline: Arc<Pipeline>,
    /// The steps whose failures are not logged.
    silent: Vec<usize>,
    meters: PipelineMeters,
    log: Mutex<FailureLog>,
    /// The memory that its replacement gives back. Requests may still be in it: it ends with the last of them.
    spared: Mutex<Option<Arc<Charge>>>,
}

/// The turn to run. Dropping it passes the turn on.
pub(crate) struct RunTurn<'a> {
    _all: SemaphorePermit<'a>,
    _large: Option<SemaphorePermit<'a>>,
}

/// A workspace for one run.
pub(crate) struct HeldWorkspace<'a> {
    pipelines: &'a State,
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
            idle: Mutex::default(),
            pool,
        }
    }
}

impl State {
    fn idle(&self) -> MutexGuard<'_, Vec<IdleWorkspaces>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleWorkspaces {
    fn is_of(&self, pipeline: &SourcePipeline) -> bool {
        std::ptr::eq(&raw const *self.owner, pipeline)
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

    /// Has requests that arrive from now on pass through these. `spared` is the memory that those give back which are not
    /// among them: it stays charged until the last request has left them.
    pub fn set(&self, pipelines: Vec<Arc<SourcePipeline>>, spared: Option<Charge>) {
        let spared = spared.map(Arc::new);
        let mut idle = self.0.idle();
        let mut before = std::mem::take(&mut *idle);
        for own in &pipelines {
            // It may be one of before again.
            own.set_spared(None);
            let same = before.iter().position(|before| Arc::ptr_eq(&before.owner, own));
            idle.push(match same {
                Some(same) => before.swap_remove(same),
                None => IdleWorkspaces { owner: Arc::clone(own), workspaces: Vec::new() },
            });
        }
        before.iter().for_each(|replaced| replaced.owner.set_spared(spared.clone()));
        self.0.current.store(Arc::new(pipelines));
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

    /// A workspace for a run of `own`, which has the turn.
    pub(crate) fn workspace<'a>(&'a self, own: &'a SourcePipeline) -> HeldWorkspace<'a> {
        let pipelines = &*self.0;
        // One without a run goes, whosever of this source it is: those with a run are as many as turns at most.
        let mut all = pipelines.idle();
        let current = all.iter_mut().find(|current| current.owner.source == own.source);
        let idle = current.and_then(|current| Some((current.is_of(own), current.workspaces.pop()?)));
        drop(all);
        let mut workspace = match idle {
            Some((true, workspace)) => workspace,
            other => {
                drop(other);
                own.pipeline.workspace()
            }
        };
        // A run that was given up has left its counts.
        workspace.take_counts(|_, _| {});
        HeldWorkspace { pipelines, owner: own, workspace: Some(workspace) }
    }

    /// How many workspaces of the pipeline of this source have no run.
    #[cfg(test)]
    pub(crate) fn idle_workspaces(&self, source: &str) -> usize {
        let all = self.0.idle();
        all.iter().find(|idle| idle.owner.source == source).map_or(0, |idle| idle.workspaces.len())
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
            spared: Mutex::default(),
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

    /// Counters of the steps.
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

    fn set_spared(&self, charge: Option<Arc<Charge>>) {
        *self.spared.lock().unwrap_or_else(PoisonError::into_inner) = charge;
    }
}

impl HeldWorkspace<'_> {
    pub(crate) fn get(&mut self) -> &mut Workspace {
        let HeldWorkspace { owner, workspace, .. } = self;
        workspace.get_or_insert_with(|| owner.pipeline.workspace())
    }
}

impl Drop for HeldWorkspace<'_> {
    fn drop(&mut self) {
        let mut all = self.pipelines.idle();
        // That of a pipeline that was replaced goes.
        if let Some(current) = all.iter_mut().find(|current| current.is_of(self.owner)) {
            current.workspaces.extend(self.workspace.take());
        }
    }
}
