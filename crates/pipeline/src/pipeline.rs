//! A compiled pipeline, and its run over one body.

use crate::{Definition, Problem};
use tidegate_wire::otlp::Signal;
use tidegate_wire::remote_write::Version;

/// The format of a decoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An OTLP export request that [`tidegate_wire::otlp::check`] accepts.
    Otlp(Signal),
    /// A remote-write request that [`tidegate_wire::remote_write`] accepts.
    RemoteWrite(Version),
}

/// A compiled pipeline. It does not change; threads share it.
#[derive(Debug)]
pub struct Pipeline {
    steps: usize,
}

/// The working memory of runs, besides body, scratch and output: one for each concurrent run. It never grows.
#[derive(Debug)]
pub struct Workspace {
    counts: Vec<StepCounts>,
}

/// What a step did since the counts were taken last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Items that reached the step.
    pub items: u64,
    /// Items that it dropped because of a condition, a rule, or a failure with `on_error: drop`.
    pub filtered: u64,
    /// Items that sampling left out.
    pub sampled_out: u64,
    /// Failures, by statement or condition.
    pub failures: Vec<u64>,
}

/// What became of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing changed: the body is still right.
    Unchanged,
    /// No item is left.
    Empty,
    /// [`Run::write`] gives `len` bytes with `items` items.
    Changed {
        /// The length of the new body, in bytes.
        len: usize,
        /// The items that are left: log records, spans, data points; samples, histograms and exemplars of remote write.
        items: u64,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do: others may have their turn first.
    More,
    /// It is over.
    Done(Outcome),
}

/// One pass of a pipeline over one body.
#[derive(Debug)]
pub struct Run<'a> {
    pipeline: &'a Pipeline,
    workspace: &'a mut Workspace,
    format: Format,
    body: &'a [u8],
    scratch: &'a mut [u8],
}

impl Pipeline {
    /// Compiles `definition`. Returns the pipeline and what its author should know, or all errors at once.
    ///
    /// # Errors
    /// Every error, with warnings between, in the order of the text.
    pub fn compile(definition: &Definition) -> Result<(Pipeline, Vec<Problem>), Vec<Problem>> {
        Ok((Pipeline { steps: definition.steps.len() }, Vec::new()))
    }

    /// How many steps it has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How many passes bodies of `format` take, each over the result of the one before; 0 when no step applies to them.
    #[must_use]
    pub fn passes(&self, _format: Format) -> usize {
        0
    }

    /// Whether a pass may change `body`: false when a literal that it needs does not occur.
    #[must_use]
    pub fn may_change(&self, _pass: usize, _format: Format, _body: &[u8]) -> bool {
        false
    }

    /// The length of the scratch buffer for a body of `body_len` bytes. The output of a pass is at most `body_len` and this long.
    #[must_use]
    pub const fn scratch_bytes(body_len: usize) -> usize {
        body_len.saturating_add(64 << 10)
    }

    /// The bytes that a workspace takes.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        size_of::<Workspace>()
    }

    /// The working memory of a run.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        Workspace { counts: vec![StepCounts::default(); self.steps] }
    }
}

impl Workspace {
    /// What each step did since the last call. Counts of a run that is given up are to be taken and thrown away.
    pub fn take_counts(&mut self, mut each: impl FnMut(usize, &StepCounts)) {
        for (step, counts) in self.counts.iter_mut().enumerate() {
            each(step, counts);
            *counts = StepCounts { failures: std::mem::take(&mut counts.failures), ..StepCounts::default() };
            counts.failures.fill(0);
        }
    }
}

impl<'a> Run<'a> {
    /// Begins pass `pass` over `body`, at `now_ns` nanoseconds since the Unix epoch.
    #[must_use]
    pub fn new(
        pipeline: &'a Pipeline,
        _pass: usize,
        workspace: &'a mut Workspace,
        format: Format,
        body: &'a [u8],
        scratch: &'a mut [u8],
        _now_ns: i64,
    ) -> Run<'a> {
        Run { pipeline, workspace, format, body, scratch }
    }

    /// Does a bounded amount of work.
    pub fn advance(&mut self) -> Progress {
        Progress::Done(Outcome::Unchanged)
    }

    /// Writes the new body to `out`, which is as long as [`Outcome::Changed`] says.
    pub fn write(&mut self, _out: &mut [u8]) {}
}
