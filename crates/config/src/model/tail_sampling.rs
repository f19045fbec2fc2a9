//! Tail sampling of a sink, in the words of the Collector's tail sampling processor.

mod compile;
mod policies;

pub use compile::ConfiguredSampling;
pub use policies::{
    AndPolicy, BooleanAttributePolicy, CompositePolicy, CompositeSubPolicy, ConditionErrors, DropPolicy,
    LatencyPolicy, NotPolicy, NumericAttributePolicy, OttlConditionPolicy, PolicyDetails, PolicyType,
    ProbabilisticPolicy, RateAllocation, RateLimitingPolicy, SpanCountPolicy, SpanStatus, StatusCodePolicy,
    StringAttributePolicy, SubPolicy, TailPolicies, TailPolicy, TraceStatePolicy,
};

use crate::declare::settings;
use crate::values::Duration;

settings! {
    /// A sink takes a part of the traces, each as a whole.
    pub struct SinkSample {
        /// Decides about a trace when its spans have arrived.
        tail: TailSampling,
    }
}

settings! {
    /// Whole traces, decided when they are complete. What the Collector calls `tail_sampling`.
    pub struct TailSampling {
        /// How long after its first span a trace is decided. The Collector's `decision_wait`.
        wait: Duration [Duration::milliseconds(100)..=Duration::minutes(60)] = Duration::seconds(30),
        /// How long after the span without a parent a trace is decided, where that is earlier. Default: after `wait`. The Collector's
        /// `decision_wait_after_root_received`.
        after_root: Option<Duration> [Duration::milliseconds(0)..=Duration::minutes(60)] = None,
        /// The most traces that wait for their decision, of 74 bytes each at most. Where more come, the oldest are decided early. The Collector's
        /// `num_traces`.
        max_traces: u32 [1_000..=50_000_000] = 50_000,
        /// The decisions that are remembered, of 20 bytes each, for spans that are still to be sent or come late: twice as many as `max_traces` at least,
        /// whatever this says.
        max_decisions: u32 [0..=500_000_000] = 200_000,
        /// The policies, in the form of the Collector's `tail_sampling` processor. A trace is kept when one of them keeps it and none drops it.
        policies: TailPolicies,
    }
}

impl TailSampling {
    /// The decisions that are remembered.
    #[must_use]
    pub fn decisions(&self) -> u32 {
        // Otherwise decisions could have no room although nothing is undecided.
        self.max_decisions.max(self.max_traces.saturating_mul(2))
    }
}
