//! One pass over an OTLP body: a walk from resource to scope to item, in bounded steps.

mod open;
mod outgrown;
mod own;
mod points;
pub(crate) mod rope;
mod scan;
#[cfg(test)]
mod tests;
mod walk;

use crate::level::LEVELS;
use crate::machine::Spare;
use crate::measures::Measurements;
use crate::memory::Memory;
use crate::pass::Pass;
use crate::pipeline::{Limits, Outcome, StepCounts};
use crate::record::Record;
use crate::regex::Caches;
use crate::step::Step;
use crate::traces::TraceSampler;
use open::Open;
use rope::{Position, Rope};
use tidegate_wire::otlp::Signal;

/// The work of one call of [`Walk::advance`], in bytes read or written, or what takes as long.
const WORK: usize = 32 << 10;
/// How many messages enclose each other: request, resource, scope, metric, data.
const DEPTH: usize = 5;

/// One pass over one body.
pub(crate) struct Walk<'a> {
    steps: &'a [Step],
    pass: &'a Pass,
    /// Statements and conditions on each level.
    texts: [usize; LEVELS],
    signal: Signal,
    body: &'a [u8],
    memory: Memory<'a>,
    tools: Tools<'a>,
    rope: Rope<'a>,
    /// The most bytes by which an item may grow with what encloses it.
    growth: usize,
    /// The most bytes by which a resource, scope or metric may grow that is changed behind its members.
    late_growth: usize,
    stack: [Open<'a>; DEPTH],
    depth: usize,
    items: u64,
    items_left: u64,
    written: Position,
}

/// Items that a step dropped in a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Drops {
    /// Because of a condition or a failure.
    pub(crate) filtered: u64,
    /// By sampling.
    pub(crate) sampled_out: u64,
}

/// The working memory of a run.
pub(crate) struct Tools<'a> {
    pub(crate) record: &'a mut Record,
    pub(crate) regexes: &'a mut Caches,
    pub(crate) spare: &'a mut Spare,
    pub(crate) counts: &'a mut [StepCounts],
    /// Items that each step dropped in this run.
    pub(crate) drops: &'a mut [Drops],
    pub(crate) now_ns: i64,
    /// Decides about traces.
    pub(crate) traces: Option<&'a mut (dyn TraceSampler + Send)>,
    /// Sums up what steps measure.
    pub(crate) measurements: Option<&'a mut (dyn Measurements + Send)>,
}

/// The bytes of the temporary space for a body of `body_len` bytes: room for the values of one record, of which each
/// is at most a mebibyte.
const fn temporary_bytes(body_len: usize) -> usize {
    let twice = body_len.saturating_mul(2);
    (if twice < 2 << 20 { twice } else { 2 << 20 }) + (32 << 10)
}

/// The bytes of scratch for a body of `body_len` bytes.
pub(crate) const fn scratch_bytes(body_len: usize) -> usize {
    temporary_bytes(body_len).saturating_add(rope::space_bytes(body_len))
}

/// How many statements and conditions of the steps of a pass run on each level.
fn texts(steps: &[Step], pass: &Pass, signal: Signal) -> [usize; LEVELS] {
    let mut texts = [0; LEVELS];
    for context in
        pass.steps.iter().filter_map(|step| steps.get(*step)).flat_map(|step| step.contexts(signal))
    {
        if let Some(texts) = texts.get_mut(context.level()) {
            *texts += 1;
        }
    }
    texts
}

impl<'a> Walk<'a> {
    /// Begins a pass over `body`.
    pub(crate) fn new(
        steps: &'a [Step],
        pass: &'a Pass,
        signal: Signal,
        constants: &'a [u8],
        body: &'a [u8],
        scratch: &'a mut [u8],
        tools: Tools<'a>,
    ) -> Walk<'a> {
        let (temporary, space) = scratch.split_at_mut(temporary_bytes(body.len()).min(scratch.len()));
        let memory = Memory::new(body, constants, temporary);
        let request = Open::request(body, memory.mark());
        tools.drops.fill(Drops::default());
        Walk {
            steps,
            pass,
            texts: texts(steps, pass, signal),
            signal,
            body,
            rope: Rope::new(body, space),
            growth: usize::MAX,
            late_growth: usize::MAX,
            stack: std::array::from_fn(|_| request.clone()),
            depth: 0,
            memory,
            tools,
            items: 0,
            items_left: 0,
            written: Position::default(),
        }
    }

    /// Bounds the output.
    pub(crate) fn limit(&mut self, limits: Limits) {
        self.rope.limit(limits.body);
        let [.., inner] = &self.pass.levels;
        let is_late = self.pass.late.contains(&true) || self.pass.access.writes_data && !inner.is_empty();
        // A part that grows behind its members is a part of its own: there are up to four such around an item.
        (self.growth, self.late_growth) = match is_late {
            true => (limits.growth / 2, limits.growth / 8),
            false => (limits.growth, limits.growth),
        };
    }

    /// Has steps about traces ask `traces`.
    pub(crate) fn ask(&mut self, traces: &'a mut (dyn TraceSampler + Send)) {
        self.tools.traces = Some(traces);
    }

    /// Has steps that measure tell `measurements`.
    pub(crate) fn tell(&mut self, measurements: &'a mut (dyn Measurements + Send)) {
        self.tools.measurements = Some(measurements);
    }

    /// Does a bounded amount of work; returns the outcome when that is known.
    pub(crate) fn advance(&mut self) -> Option<Outcome> {
        let mut work = 0;
        while work < WORK {
            match self.step() {
                Ok(Some(done)) => work += done,
                Ok(None) => return Some(self.finish()),
                // The rope keeps room for what stays as it is, so this does not happen. Drops are not counted then.
                Err(rope::Full) => {
                    debug_assert!(false, "the rope has no room for what stays");
                    return Some(Outcome::Unchanged);
                }
            }
        }
        None
    }

    /// Writes a part of the output. Returns whether that was all.
    pub(crate) fn write(&mut self, out: &mut [u8], most: usize) -> bool {
        self.rope.write(&mut self.written, out, most)
    }

    /// Enters the counts of the steps: only now, when nothing can undo what they dropped.
    fn finish(&mut self) -> Outcome {
        let mut items = self.items;
        for &step in &self.pass.steps {
            if let Some(counts) = self.tools.counts.get_mut(step) {
                let drops = self.tools.drops.get(step).copied().unwrap_or_default();
                counts.items += items;
                counts.filtered += drops.filtered;
                counts.sampled_out += drops.sampled_out;
                items = items.saturating_sub(drops.filtered + drops.sampled_out);
            }
        }
        let [request, ..] = &self.stack;
        if !request.is_dirty {
            return Outcome::Unchanged;
        }
        if self.rope.len() == 0 || self.items > 0 && self.items_left == 0 {
            return Outcome::Empty;
        }
        Outcome::Changed { len: self.rope.len(), items: self.items_left }
    }
}
