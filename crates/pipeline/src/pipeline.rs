//! A compiled pipeline, and its run over one body.

use crate::definition::Fingerprint;
use crate::machine::Spare;
use crate::measures::Measurements;
use crate::pass::{self, Pass};
use crate::record::{Record, Uses};
use crate::regex::{Caches, Regexes};
use crate::relabel::{RelabelRun, RelabelWorkspace, Rules};
use crate::required::{LiteralSearch, Required};
use crate::run::{self, Drops, Tools, Walk};
use crate::step::Step;
use crate::traces::TraceSampler;
use crate::value::{Failure, FailureReason};
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
    steps: Vec<Step>,
    /// The passes over bodies of traces, metrics and logs.
    passes: [Vec<Pass>; 3],
    /// The literals of all steps.
    constants: Box<[u8]>,
    regexes: Regexes,
    uses: Uses,
    /// The steps that relabel series, in one pass over bodies of remote write.
    relabel: Option<Rules>,
    fingerprint: Fingerprint,
    size: TextSize,
}

/// How much text a pipeline was compiled from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextSize {
    /// Statements, conditions and rules.
    pub(crate) texts: usize,
    /// Their length, in bytes.
    pub(crate) bytes: usize,
}

/// The working memory of runs, besides body, scratch and output: one for each concurrent run. It never grows.
#[derive(Debug)]
pub struct Workspace {
    counts: Vec<StepCounts>,
    drops: Vec<Drops>,
    record: Record,
    regexes: Caches,
    spare: Spare,
    relabel: Option<RelabelWorkspace>,
}

/// Counts of a step since the counts were taken last.
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
    /// Why each of them failed first.
    pub reasons: Vec<Option<FailureReason>>,
}

/// The signals that passes are for.
const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

/// How long what comes out of a run may be. A change that would make it longer is undone, and counts as a failure of the last
/// statement that makes such changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of the output. What stays as it is passes, however long it is.
    pub body: usize,
    /// The most bytes by which an item may grow, together with what encloses it: the resource and scope of a span, the metric of a
    /// data point.
    pub growth: usize,
}

impl Limits {
    /// None but those of the scratch space.
    pub const NONE: Limits = Limits { body: usize::MAX, growth: usize::MAX };
}

/// Outcome of a run over a body.
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
pub struct Run<'a>(Passing<'a>);

/// A pass by the format of its body.
#[expect(clippy::large_enum_variant, reason = "one for each run, on its stack: a box would allocate")]
enum Passing<'a> {
    Nothing,
    Otlp(Walk<'a>),
    RemoteWrite(RelabelRun<'a>),
}

impl Pipeline {
    /// A pipeline of compiled steps.
    pub(crate) fn new(
        steps: Vec<Step>,
        constants: Box<[u8]>,
        regexes: Regexes,
        relabel: Option<Rules>,
        size: TextSize,
        fingerprint: Fingerprint,
    ) -> Pipeline {
        let passes = SIGNALS.map(|signal| {
            let mut passes = pass::passes(&steps, signal);
            for pass in &mut passes {
                let of_pass = pass.steps.iter().filter_map(|number| steps.get(*number));
                pass.required = Required::of(of_pass, signal, &constants);
            }
            passes
        });
        let mut uses = Uses::default();
        for pass in passes.iter().flatten() {
            uses.cache |= pass.access.cache;
            uses.point_keys = uses.point_keys.max(pass.point_keys.len());
            for (all, one) in uses.attributes.iter_mut().zip(pass.access.attributes) {
                *all |= one;
            }
        }
        Pipeline { steps, passes, constants, regexes, uses, relabel, size, fingerprint }
    }

    /// A hash of the definition and of `owner`. It survives restarts; another version of the program may have another.
    #[must_use]
    pub fn fingerprint(&self, owner: &[u8]) -> u64 {
        self.fingerprint.with(owner)
    }

    /// How many steps it has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// How many passes bodies of `format` take, each over the result of the one before; 0 when no step applies to them.
    #[must_use]
    pub fn passes(&self, format: Format) -> usize {
        match format {
            Format::Otlp(_) => self.passes_of(format).len(),
            Format::RemoteWrite(_) => usize::from(self.relabel.is_some()),
        }
    }

    fn passes_of(&self, format: Format) -> &[Pass] {
        let [traces, metrics, logs] = &self.passes;
        match format {
            Format::Otlp(Signal::Traces) => traces,
            Format::Otlp(Signal::Metrics) => metrics,
            Format::Otlp(Signal::Logs) => logs,
            Format::Otlp(Signal::Profiles) | Format::RemoteWrite(_) => &[],
        }
    }

    /// Whether a pass may change `body`: false when a literal that it needs does not occur.
    #[must_use]
    pub fn may_change(&self, pass: usize, format: Format, body: &[u8]) -> bool {
        let mut search = self.literal_search(pass, format, body);
        loop {
            if let Some(answer) = search.advance() {
                return answer;
            }
        }
    }

    /// As [`may_change`](Self::may_change), in bounded steps.
    #[must_use]
    pub fn literal_search<'a>(&'a self, pass: usize, format: Format, body: &'a [u8]) -> LiteralSearch<'a> {
        let required = self.passes_of(format).get(pass).and_then(|pass| pass.required.as_ref());
        LiteralSearch::new(required.ok_or(pass < self.passes(format)), body)
    }

    /// The length of the scratch buffer for a body of `body_len` bytes. The output of a pass is at most `body_len` and this long.
    #[must_use]
    pub const fn scratch_bytes(body_len: usize) -> usize {
        run::scratch_bytes(body_len)
    }

    /// The most bytes that the pipeline takes, with its texts in the settings and meters of its owner. What it takes follows from
    /// its texts and its automata: a tree has no more nodes than its text has bytes.
    #[must_use]
    pub fn program_bytes(&self) -> usize {
        const OF_STEP: usize = 4 << 10;
        const OF_TEXT: usize = 1 << 10;
        const OF_BYTE: usize = 64;
        size_of::<Pipeline>()
            + self.steps.len() * OF_STEP
            + self.size.texts * OF_TEXT
            + self.size.bytes * OF_BYTE
            + self.constants.len()
            + self.regexes.program_bytes()
            + self.relabel.as_ref().map_or(0, Rules::program_bytes)
    }

    /// The bytes that a workspace takes.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        let failures: usize = self.steps.iter().map(Step::failures).sum();
        let step = size_of::<StepCounts>() + size_of::<Drops>();
        size_of::<Workspace>()
            + self.steps.len() * step
            + failures * StepCounts::OF_PART
            + Record::table_bytes(&self.uses)
            + self.regexes.cache_bytes()
            + Spare::BYTES
            + self.relabel.as_ref().map_or(0, Rules::workspace_bytes)
    }

    /// The working memory of a run.
    #[must_use]
    pub fn workspace(&self) -> Workspace {
        Workspace {
            counts: self.steps.iter().map(|step| StepCounts::new(step.failures())).collect(),
            drops: vec![Drops::default(); self.steps.len()],
            record: Record::new(&self.uses),
            regexes: self.regexes.caches(),
            spare: Spare::new(),
            relabel: self.relabel.as_ref().map(Rules::workspace),
        }
    }
}

impl Workspace {
    /// Counts of each step since the last call. Counts of a run that is given up are to be taken and thrown away.
    pub fn take_counts(&mut self, mut each: impl FnMut(usize, &StepCounts)) {
        if let Some(relabel) = &mut self.relabel {
            relabel.take_counts(|step, own| {
                if let Some(counts) = self.counts.get_mut(step) {
                    counts.add(own);
                }
            });
        }
        for (step, counts) in self.counts.iter_mut().enumerate() {
            each(step, counts);
            counts.clear();
        }
    }
}

impl StepCounts {
    /// The bytes that a statement, condition or rule takes.
    pub(crate) const OF_PART: usize = size_of::<u64>() + size_of::<Option<FailureReason>>();

    /// The counts of a step with so many statements, conditions or rules.
    pub(crate) fn new(parts: usize) -> StepCounts {
        StepCounts { failures: vec![0; parts], reasons: vec![None; parts], ..StepCounts::default() }
    }

    /// Counts a failure of the statement, condition or rule with this number.
    pub(crate) fn fail(&mut self, number: usize, why: Failure) {
        if let Some((count, reason)) = self.failures.get_mut(number).zip(self.reasons.get_mut(number)) {
            *count += 1;
            reason.get_or_insert(why.into());
        }
    }

    fn add(&mut self, other: &StepCounts) {
        self.items += other.items;
        self.filtered += other.filtered;
        self.sampled_out += other.sampled_out;
        for (own, other) in self.failures.iter_mut().zip(&other.failures) {
            *own += other;
        }
        for (own, other) in self.reasons.iter_mut().zip(&other.reasons) {
            *own = own.or(*other);
        }
    }

    /// Forgets all counts, and keeps their memory.
    pub fn clear(&mut self) {
        self.items = 0;
        self.filtered = 0;
        self.sampled_out = 0;
        self.failures.fill(0);
        self.reasons.fill(None);
    }
}

impl<'a> Run<'a> {
    /// Begins pass `pass` over `body`, at `now_ns` nanoseconds since the Unix epoch. `workspace` is one of this pipeline, and
    /// `scratch` as long as [`Pipeline::scratch_bytes`] says.
    ///
    /// A body of a gibibyte or more stays as it is: nothing accepts one.
    #[must_use]
    pub fn new(
        pipeline: &'a Pipeline,
        pass: usize,
        workspace: &'a mut Workspace,
        format: Format,
        body: &'a [u8],
        scratch: &'a mut [u8],
        now_ns: i64,
    ) -> Run<'a> {
        let Workspace { counts, drops, record, regexes, spare, relabel } = workspace;
        if let Format::RemoteWrite(version) = format {
            let rules = pipeline.relabel.as_ref().zip(relabel.as_mut()).filter(|_| pass == 0);
            return Run(rules.map_or(Passing::Nothing, |(rules, workspace)| {
                Passing::RemoteWrite(RelabelRun::new(rules, workspace, version, body, scratch))
            }));
        }
        let tools = Tools { record, regexes, spare, counts, drops, now_ns, traces: None, measurements: None };
        let pass = pipeline.passes_of(format).get(pass).filter(|_| body.len() < 1 << 30);
        let walk = pass.map(|pass| {
            let signal = if let Format::Otlp(signal) = format { signal } else { Signal::Profiles };
            Walk::new(&pipeline.steps, pass, signal, &pipeline.constants, body, scratch, tools)
        });
        Run(walk.map_or(Passing::Nothing, Passing::Otlp))
    }

    /// Bounds the output. Without it only the scratch space does.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Run<'a> {
        match &mut self.0 {
            Passing::Nothing => {}
            Passing::Otlp(walk) => walk.limit(limits),
            Passing::RemoteWrite(run) => run.limit(limits),
        }
        self
    }

    /// Has steps about traces ask `traces`. Without it they keep all.
    #[must_use]
    pub fn with_traces(mut self, traces: &'a mut (dyn TraceSampler + Send)) -> Run<'a> {
        if let Passing::Otlp(walk) = &mut self.0 {
            walk.ask(traces);
        }
        self
    }

    /// Has steps that measure tell `measurements`. Without it they measure nothing.
    #[must_use]
    pub fn with_measurements(mut self, measurements: &'a mut (dyn Measurements + Send)) -> Run<'a> {
        if let Passing::Otlp(walk) = &mut self.0 {
            walk.tell(measurements);
        }
        self
    }

    /// Does a bounded amount of work.
    pub fn advance(&mut self) -> Progress {
        match &mut self.0 {
            Passing::Nothing => Progress::Done(Outcome::Unchanged),
            Passing::Otlp(walk) => walk.advance().map_or(Progress::More, Progress::Done),
            Passing::RemoteWrite(run) => run.advance(),
        }
    }

    /// Writes the new body to `out`, which is as long as [`Outcome::Changed`] says.
    pub fn write(&mut self, out: &mut [u8]) {
        while !self.write_part(out) {}
    }

    /// Writes the next part of the new body to its place in `out`: as much as takes little time. Returns whether that was all.
    pub fn write_part(&mut self, out: &mut [u8]) -> bool {
        const MOST: usize = 256 << 10;
        match &mut self.0 {
            Passing::Nothing => true,
            Passing::Otlp(walk) => walk.write(out, MOST),
            Passing::RemoteWrite(run) => run.write_part(out),
        }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Run").finish_non_exhaustive()
    }
}
