//! One trace by itself: what each policy says of it, for people.

use crate::policies::{Decision, Evidence, Policies, Vote};
use crate::rates::Rates;
use crate::table::TraceFacts;
use tidegate_pipeline::SpanFacts;

/// A trace whose spans are folded one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace(TraceFacts);

/// The decision on a trace, and how it comes about. Policies that limit rates are asked as in a second in which nothing else was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The word of each policy, in their order.
    pub votes: Vec<Vote>,
    /// The number of the policy that decides; `None` where none keeps it.
    pub policy: Option<usize>,
    /// Whether the trace is kept.
    pub is_kept: bool,
}

impl Trace {
    /// Takes in a span.
    pub fn fold(&mut self, span: &SpanFacts) {
        self.0.fold(span);
    }

    /// Adds tests that an event of a span fulfils.
    pub fn fulfil(&mut self, fulfilled: u64) {
        self.0.fulfilled |= fulfilled;
    }

    /// How many spans it has.
    #[must_use]
    pub fn spans(&self) -> u32 {
        self.0.spans
    }

    /// The time from the first start of a span to the last end, in whole milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> i64 {
        self.0.duration_ms()
    }

    /// A bit for each test that it fulfils.
    #[must_use]
    pub fn fulfilled(&self) -> u64 {
        self.0.fulfilled
    }

    /// The decision of `policies` on it.
    #[must_use]
    pub fn explain(&self, policies: &Policies) -> Explanation {
        let evidence = Evidence { trace_id: &self.0.trace_id, facts: &self.0, second: 0 };
        let votes = policies.votes(&evidence, &mut Rates::default());
        let Decision { is_kept, policy } = policies.decide(&evidence, &mut Rates::default());
        Explanation { votes, policy, is_kept }
    }
}
