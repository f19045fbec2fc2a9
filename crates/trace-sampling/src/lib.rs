//! Tail sampling: decides which traces are kept when they are complete.
//!
//! Spans are not held here. Each is folded into its trace's entry in a table of fixed size, which has what the
//! policies ask: when the trace began and ended, how many spans it has, and a bit for each test that a span fulfils. After a
//! wait the trace is decided, its entry goes, and the decision is remembered in a few bytes, for those who read the spans again.
//!
//! Promises, argued in `design/tail-sampling.md`:
//! - Nothing grows: [`Settings::bytes`] is all that a sampler takes, whatever arrives.
//! - Time comes from outside. The same spans at the same times have the same decisions.
//! - No trace is forgotten undecided: where the table is full, the oldest is decided early, and counted.
//!
//! The policies are those of the Collector's tail sampling processor:
//! <https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/processor/tailsamplingprocessor>.

mod checkpoints;
mod decisions;
mod explanation;
mod index;
mod policies;
mod rates;
mod sampler;
mod table;

pub use explanation::{Explanation, Trace};
pub use policies::{NamedPolicy, Policies, Policy, Vote};
pub use rates::{MAX_RATES, Rates};
pub use sampler::{Counts, PolicyCounts, SET_BACK_MS, Sampler, Settings};
