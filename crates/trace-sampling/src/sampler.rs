//! The sampler: takes in records of spans in the order of the journal, and knows what became of their traces.

use crate::checkpoints::Checkpoints;
use crate::decisions::Decisions;
use crate::policies::{Evidence, Policies};
use crate::rates::Rates;
use crate::table::{Entry, Table, TraceFacts};
use std::hash::{BuildHasher, RandomState};
use tidegate_pipeline::{SpanFacts, TraceId, TraceSampler};

/// A record that is behind the clock by no more than this does not move it, in milliseconds. Where it is behind by more, the clock was set
/// back: the journal raises times otherwise.
pub const SET_BACK_MS: u64 = 5_000;
/// So many traces are decided before others have their turn.
const DECIDED_AT_ONCE: usize = 1_000;
/// Checkpoints are apart by this part of the wait.
const CHECKPOINTS_IN_A_WAIT: u64 = 16;

/// How traces are sampled.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long after its first span a trace is decided, in milliseconds.
    pub wait_ms: u64,
    /// How long after the span without a parent, where that is earlier.
    pub after_root_ms: Option<u64>,
    /// The most traces that are not decided.
    pub max_traces: u32,
    /// The decisions that are remembered.
    pub max_decisions: u32,
    /// The policies.
    pub policies: Policies,
}

/// Decides which traces are kept.
#[derive(Debug)]
pub struct Sampler {
    settings: Settings,
    table: Table,
    decisions: Decisions,
    checkpoints: Checkpoints,
    rates: Rates,
    hashes: RandomState,
    /// The latest time of a record that was taken in, or was promised: in milliseconds since 1970.
    clock_ms: u64,
    /// All records before this one are taken in.
    taken_in: u64,
    /// A restart begins there.
    begun: u64,
    /// Decisions that are made now hold for spans in records before this one.
    before: u64,
    /// The first record behind the last step of the clock back.
    stepped_back: u64,
    /// The last record that came with a time behind the clock, and the clock then.
    behind_clock: (u64, u64),
    counts: Counts,
    /// The trace whose span came last, undecided, and the one that was asked for last: spans of a trace come in a row. Nothing that is decided
    /// or forgotten since.
    met_last: Option<(TraceId, Entry)>,
    asked_last: Option<(TraceId, bool)>,
}

/// Traces and spans that a sampler has decided about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By the policy that decided, in their order.
    pub policies: Vec<PolicyCounts>,
    /// Traces that no policy kept.
    pub unkept: PolicyCounts,
    /// Traces that were decided early, because the table was full or the clock was set back.
    pub early: u64,
    /// Spans that came when their trace was kept, and when it was not.
    pub late: [u64; 2],
    /// Decisions that were forgotten although their spans were still to be read.
    pub forgotten: u64,
    /// Spans that were kept because no decision about their trace was known.
    pub unknown: u64,
}

/// Decisions by one policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyCounts {
    /// Traces.
    pub traces: u64,
    /// Their spans, up to the decision.
    pub spans: u64,
}

impl Settings {
    /// The bytes of a sampler.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Sampler>()
            + Table::bytes(self.max_traces, self.after_root_ms.is_some())
            + Decisions::bytes(self.max_decisions)
            + Checkpoints::BYTES
            + self.policies.len() * size_of::<PolicyCounts>()
    }
}

impl Sampler {
    /// A sampler that has taken in nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Sampler {
        Sampler {
            table: Table::new(settings.max_traces, settings.after_root_ms.is_some()),
            decisions: Decisions::new(settings.max_decisions),
            checkpoints: Checkpoints::new(),
            rates: Rates::default(),
            hashes: RandomState::new(),
            clock_ms: 0,
            taken_in: 0,
            begun: 0,
            before: 0,
            stepped_back: 0,
            behind_clock: (0, 0),
            counts: Counts {
                policies: vec![PolicyCounts::default(); settings.policies.len()],
                ..Counts::default()
            },
            met_last: None,
            asked_last: None,
            settings,
        }
    }

    /// Begins at the record `sequence`, with these counters.
    pub fn restore(&mut self, sequence: u64, rates: Rates) {
        (self.taken_in, self.begun, self.before, self.rates) = (sequence, sequence, sequence, rates);
    }

    /// All records before this one are taken in.
    #[must_use]
    pub fn taken_in(&self) -> u64 {
        self.taken_in
    }

    /// Whether a record may be taken in: the decisions about all traces of it could be remembered until its spans are read. Where not, the
    /// reader behind has to pass some records first.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.decisions.room() > u64::from(self.table.len())
    }

    /// Begins a record: everything that is due at its time is decided. To be called until it returns true; others may have their turn
    /// between. The record's spans follow, and [`end`](Self::end).
    pub fn begin(&mut self, sequence: u64, received_at_ns: u64) -> bool {
        let now_ms = received_at_ns / 1_000_000;
        self.before = sequence;
        self.taken_in = sequence;
        if now_ms.saturating_add(SET_BACK_MS) < self.clock_ms {
            if !self.decide_all() {
                return false;
            }
            self.checkpoints.clear();
            (self.clock_ms, self.stepped_back) = (now_ms, sequence);
        } else if now_ms < self.clock_ms {
            self.behind_clock = (sequence, self.clock_ms);
        }
        if !self.advance(now_ms) {
            return false;
        }
        // Its spans are read when the decisions that are made from now on are known.
        self.before = sequence + 1;
        true
    }

    /// Ends a record.
    pub fn end(&mut self) {
        self.taken_in = self.before;
    }

    /// Decides what is due at a time that no later record will be before. To be called until it returns true.
    pub fn advance(&mut self, now_ms: u64) -> bool {
        for _ in 0..DECIDED_AT_ONCE {
            self.close_checkpoints();
            let Some((entry, due_ms)) = self.first_due().filter(|(_, due_ms)| *due_ms <= now_ms) else {
                if now_ms > self.clock_ms {
                    // Only where the time moves on: a trace that was met at the time of a checkpoint was met behind it.
                    let distance = self.settings.wait_ms / CHECKPOINTS_IN_A_WAIT;
                    self.checkpoints.begin(self.before, now_ms, distance);
                    self.clock_ms = now_ms;
                }
                self.close_checkpoints();
                return true;
            };
            self.decide(entry, due_ms);
        }
        false
    }

    /// When the next trace is due, in milliseconds since 1970.
    #[must_use]
    pub fn due_ms(&self) -> Option<u64> {
        self.first_due().map(|(_, due_ms)| due_ms)
    }

    /// Whether every trace is decided that has a span in the record `sequence` or one before it. `received_at_ns` is its time.
    #[must_use]
    pub fn is_decided(&self, sequence: u64, received_at_ns: u64) -> bool {
        // The clock at the record, or a later one: it is behind that by little, or a step back is.
        let received_ms = received_at_ns / 1_000_000;
        let (last, clock_ms) = self.behind_clock;
        let at_ms = match sequence <= last {
            true => clock_ms.min(received_ms.saturating_add(SET_BACK_MS)).max(received_ms),
            false => received_ms,
        };
        let is_earlier = |facts: &TraceFacts| self.met_ms(facts.first_at) <= at_ms;
        self.taken_in > sequence
            && (sequence < self.stepped_back
                || !self.table.oldest().is_some_and(|(_, facts)| is_earlier(facts)))
    }

    /// Decides the oldest trace now. Returns whether there was one.
    pub fn decide_early(&mut self) -> bool {
        self.close_checkpoints();
        let Some((entry, _)) = self.table.oldest() else { return false };
        self.counts.early += 1;
        self.decide(entry, self.clock_ms);
        true
    }

    /// The reader behind has passed all records before `sequence` for good. Returns where a restart may begin from now on, if that has
    /// changed, and the counters for it.
    pub fn pass(&mut self, sequence: u64) -> Option<(u64, Rates)> {
        self.decisions.pass(sequence);
        self.close_checkpoints();
        let checkpoint = self.checkpoints.pass(sequence)?;
        self.begun = self.begun.max(checkpoint.sequence);
        Some((checkpoint.sequence, checkpoint.rates))
    }

    /// As [`pass`](Self::pass), where no record follows for now: where nothing is undecided, a restart may begin behind all that was taken in.
    pub fn rest(&mut self, sequence: u64) -> Option<(u64, Rates)> {
        let is_over = self.table.len() == 0 && sequence >= self.taken_in && self.taken_in > self.begun;
        is_over.then(|| {
            self.decisions.pass(sequence);
            self.checkpoints.clear();
            self.begun = self.taken_in;
            (self.taken_in, self.rates)
        })
    }

    /// Records before `sequence` are gone: nobody reads them.
    pub fn skip(&mut self, sequence: u64) {
        self.taken_in = self.taken_in.max(sequence);
        self.before = self.before.max(sequence);
    }

    /// Whether a restart may still begin before the record `sequence`.
    #[must_use]
    pub fn has_checkpoint(&self, sequence: u64) -> bool {
        self.checkpoints.has(sequence)
    }

    /// The first record behind the last place from which a restart may read again, as soon as [`pass`](Self::pass) says so.
    #[must_use]
    pub fn newest_checkpoint(&self) -> Option<u64> {
        self.checkpoints.newest()
    }

    /// Traces that are not decided, and decisions that are remembered.
    #[must_use]
    pub fn remembered(&self) -> (u64, u64) {
        (self.table.len().into(), self.decisions.len())
    }

    /// The decisions so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The trace that is decided next, and when.
    fn first_due(&self) -> Option<(Entry, u64)> {
        let (oldest, facts) = self.table.oldest()?;
        let due_ms = self.met_ms(facts.first_at).saturating_add(self.settings.wait_ms);
        let root = self
            .settings
            .after_root_ms
            .zip(self.table.oldest_root())
            .map(|(after, (entry, met_at))| (entry, self.met_ms(met_at).saturating_add(after)));
        Some(root.filter(|(_, of_root)| *of_root < due_ms).unwrap_or((oldest, due_ms)))
    }

    /// A time up to now of which 32 bits are kept.
    fn met_ms(&self, at: u32) -> u64 {
        self.clock_ms.saturating_sub((self.clock_ms as u32).wrapping_sub(at).into())
    }

    /// Decides early what is left. Returns whether that was all.
    fn decide_all(&mut self) -> bool {
        (0..DECIDED_AT_ONCE).any(|_| !self.decide_early())
    }

    fn decide(&mut self, entry: Entry, at_ms: u64) {
        (self.met_last, self.asked_last) = (None, None);
        let facts = self.table.remove(entry, |id| hash(&self.hashes, id));
        let second = u32::try_from(at_ms / 1_000).unwrap_or(u32::MAX);
        let evidence = Evidence { trace_id: &facts.trace_id, facts: &facts, second };
        let decision = self.settings.policies.decide(&evidence, &mut self.rates);
        let counts = decision.policy.and_then(|policy| self.counts.policies.get_mut(policy));
        let counts = counts.unwrap_or(&mut self.counts.unkept);
        counts.traces += 1;
        counts.spans += u64::from(facts.spans);
        let hash = hash(&self.hashes, &facts.trace_id);
        let is_forgotten = self.decisions.push(hash, decision.is_kept, self.before);
        self.counts.forgotten += u64::from(is_forgotten);
    }

    fn close_checkpoints(&mut self) {
        let oldest_ms = self.table.oldest().map(|(_, facts)| self.met_ms(facts.first_at));
        self.checkpoints.close(oldest_ms, self.before, &self.rates);
    }
}

fn hash(hashes: &RandomState, trace_id: &TraceId) -> u64 {
    hashes.hash_one(u128::from_ne_bytes(*trace_id))
}

impl TraceSampler for Sampler {
    fn watch(&mut self, span: &SpanFacts) {
        let at = self.clock_ms as u32;
        if let Some((_, entry)) = self.met_last.filter(|(met, _)| *met == span.trace_id) {
            return self.table.fold(entry, span, at);
        }
        let hash = hash(&self.hashes, &span.trace_id);
        if let Some(entry) = self.table.find(hash, &span.trace_id) {
            self.met_last = Some((span.trace_id, entry));
            self.table.fold(entry, span, at);
        } else if let Some(is_kept) = self.decisions.find(hash) {
            self.counts.late[usize::from(!is_kept)] += 1;
            if self.decisions.is_old(hash) {
                // The span is asked for later.
                self.asked_last = None;
                self.counts.forgotten += u64::from(self.decisions.push(hash, is_kept, self.before));
            }
        } else {
            if self.table.is_full() {
                self.decide_early();
            }
            let entry = self.table.insert(hash, span, at);
            self.met_last = entry.map(|entry| (span.trace_id, entry));
        }
    }

    fn watch_event(&mut self, trace_id: &TraceId, fulfilled: u64) {
        if let Some(entry) = self.table.find(hash(&self.hashes, trace_id), trace_id) {
            self.table.fulfil(entry, fulfilled);
        }
    }

    fn keeps(&mut self, trace_id: &TraceId) -> bool {
        if let Some((_, is_kept)) = self.asked_last.filter(|(asked, _)| asked == trace_id) {
            return is_kept;
        }
        let known = self.decisions.find(hash(&self.hashes, trace_id));
        self.asked_last = known.map(|is_kept| (*trace_id, is_kept));
        self.counts.unknown += u64::from(known.is_none());
        known.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests;
