//! Policies, and what they say about a trace.

use crate::rates::{MAX_RATES, Rates};
use crate::table::TraceFacts;
use tidegate_pipeline::TraceId;

/// The salt of probabilistic policies without one: the Collector's.
const DEFAULT_SALT: &str = "default-hash-seed";

/// A policy with the name under which its decisions are counted.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPolicy {
    /// The name.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

/// A policy of the Collector's tail sampling processor.
#[derive(Debug, Clone, PartialEq)]
pub enum Policy {
    /// Keeps all.
    Always,
    /// Keeps traces by the time from the first start of a span to the last end.
    Latency {
        /// The least duration, in milliseconds; with an upper threshold, shorter ones too are left out.
        threshold_ms: i64,
        /// The greatest duration, in milliseconds; 0 for none.
        upper_threshold_ms: i64,
    },
    /// Keeps traces by the number of their spans.
    SpanCount {
        /// The least.
        min: i64,
        /// The most; 0 for any number.
        max: i64,
    },
    /// Keeps a part of the traces, by a hash of their ids.
    Probabilistic {
        /// Goes into the hash before the id; empty for the Collector's.
        salt: String,
        /// The part, in percent.
        percentage: f64,
    },
    /// Keeps fewer spans than this in a second.
    RateLimiting {
        /// So many are too many already, as in the Collector.
        spans_per_second: u64,
    },
    /// Keeps traces that fulfil the test with this number in the step that watches spans.
    Test {
        /// The number.
        number: usize,
        /// Keeps traces that do not fulfil it instead.
        invert: bool,
    },
    /// Keeps what all of these keep.
    And(Vec<Policy>),
    /// Keeps what this does not keep.
    Not(Box<Policy>),
    /// Drops what all of these keep, whatever other policies keep.
    Drop(Vec<Policy>),
    /// The first of these that keeps a trace decides, within a rate of its own.
    Composite {
        /// The most spans in a second of each of them.
        most: u64,
        /// The policies, each with its own most spans in a second.
        policies: Vec<(u64, Policy)>,
    },
}

/// The policies of a sampler, compiled.
#[derive(Debug, Clone)]
pub struct Policies {
    all: Vec<Compiled>,
    /// How many counters they have.
    counters: usize,
}

/// A policy with its counters.
#[derive(Debug, Clone)]
enum Compiled {
    Always,
    Latency { threshold_ms: i64, upper_threshold_ms: i64 },
    SpanCount { min: i64, max: i64 },
    Probabilistic { salted: u64, threshold: u64 },
    RateLimiting { counter: usize, most: u64 },
    Test { bit: u64, invert: bool },
    And(Vec<Compiled>),
    Not(Box<Compiled>),
    Drop(Vec<Compiled>),
    Composite { most: u64, policies: Vec<(usize, u64, Compiled)> },
}

/// A policy's word on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// It keeps the trace.
    Kept,
    /// It does not.
    NotKept,
    /// It drops the trace.
    Dropped,
}

/// The decision on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_kept: bool,
    /// The number of the policy that decided; `None` where none kept it.
    pub(crate) policy: Option<usize>,
}

/// The basis of a decision.
pub(crate) struct Evidence<'a> {
    pub(crate) trace_id: &'a TraceId,
    pub(crate) facts: &'a TraceFacts,
    /// The second of the decision, since 1970.
    pub(crate) second: u32,
}

impl Policies {
    /// Compiles policies. `None` where they have more counters than there are: [`MAX_RATES`].
    #[must_use]
    pub fn new<'a>(policies: impl IntoIterator<Item = &'a Policy>) -> Option<Policies> {
        let mut counters = 0;
        let compiled = policies.into_iter().map(|policy| Compiled::of(policy, &mut counters)).collect();
        (counters <= MAX_RATES).then_some(Policies { all: compiled, counters })
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them limits a rate.
    #[must_use]
    pub fn limit_rates(&self) -> bool {
        self.counters > 0
    }

    /// The word of each policy on a trace.
    pub(crate) fn votes(&self, evidence: &Evidence<'_>, rates: &mut Rates) -> Vec<Vote> {
        self.all.iter().map(|policy| policy.vote(evidence, rates)).collect()
    }

    /// Decides on a trace, as the Collector does: a policy that drops it has the last word, else the first that keeps it decides.
    pub(crate) fn decide(&self, evidence: &Evidence<'_>, rates: &mut Rates) -> Decision {
        let mut kept = None;
        for (number, policy) in self.all.iter().enumerate() {
            match policy.vote(evidence, rates) {
                Vote::Dropped => return Decision { is_kept: false, policy: Some(number) },
                // Those behind it are asked, too: they may drop it, and count it for their rates.
                Vote::Kept => kept = kept.or(Some(number)),
                Vote::NotKept => {}
            }
        }
        Decision { is_kept: kept.is_some(), policy: kept }
    }
}

impl Compiled {
    fn of(policy: &Policy, counters: &mut usize) -> Compiled {
        let mut counter = || {
            *counters += 1;
            *counters - 1
        };
        match policy {
            Policy::Always => Compiled::Always,
            Policy::Latency { threshold_ms, upper_threshold_ms } => {
                Compiled::Latency { threshold_ms: *threshold_ms, upper_threshold_ms: *upper_threshold_ms }
            }
            Policy::SpanCount { min, max } => Compiled::SpanCount { min: *min, max: *max },
            Policy::Probabilistic { salt, percentage } => {
                let salt = if salt.is_empty() { DEFAULT_SALT } else { salt };
                Compiled::Probabilistic {
                    salted: fnv(FNV_OFFSET, salt.as_bytes()),
                    threshold: threshold(*percentage),
                }
            }
            Policy::RateLimiting { spans_per_second } => {
                // As the Collector: the sum stays below it.
                Compiled::RateLimiting { counter: counter(), most: spans_per_second.saturating_sub(1) }
            }
            Policy::Test { number, invert } => {
                Compiled::Test { bit: 1 << (number % u64::BITS as usize), invert: *invert }
            }
            Policy::And(all) => Compiled::And(all.iter().map(|one| Compiled::of(one, counters)).collect()),
            Policy::Not(one) => Compiled::Not(Box::new(Compiled::of(one, counters))),
            Policy::Drop(all) => Compiled::Drop(all.iter().map(|one| Compiled::of(one, counters)).collect()),
            Policy::Composite { most, policies } => {
                let compiled = policies.iter().map(|(own, policy)| {
                    let number = *counters;
                    *counters += 1;
                    (number, *own, Compiled::of(policy, counters))
                });
                Compiled::Composite { most: *most, policies: compiled.collect() }
            }
        }
    }

    fn vote(&self, evidence: &Evidence<'_>, rates: &mut Rates) -> Vote {
        let Evidence { trace_id, facts, second } = evidence;
        let spans = facts.spans;
        let is_kept = match self {
            Compiled::Always => true,
            Compiled::Latency { threshold_ms, upper_threshold_ms: 0 } => facts.duration_ms() >= *threshold_ms,
            Compiled::Latency { threshold_ms, upper_threshold_ms } => {
                (*threshold_ms + 1..=*upper_threshold_ms).contains(&facts.duration_ms())
            }
            Compiled::SpanCount { min, max } => {
                let spans = i64::from(spans);
                spans >= *min && (*max == 0 || spans <= *max)
            }
            Compiled::Probabilistic { salted, threshold } => fnv(*salted, *trace_id) <= *threshold,
            Compiled::RateLimiting { counter, most } => rates.take(*counter, *second, spans, *most),
            Compiled::Test { bit, invert } => (facts.fulfilled & bit != 0) != *invert,
            Compiled::And(all) => keep_all(all, evidence, rates),
            Compiled::Not(one) => one.vote(evidence, rates) != Vote::Kept,
            Compiled::Drop(all) => {
                return if keep_all(all, evidence, rates) { Vote::Dropped } else { Vote::NotKept };
            }
            Compiled::Composite { most, policies } => {
                let first = policies.iter().find(|(.., policy)| policy.vote(evidence, rates) == Vote::Kept);
                first.is_some_and(|(counter, own, _)| rates.take(*counter, *second, spans, *own.min(most)))
            }
        };
        if is_kept { Vote::Kept } else { Vote::NotKept }
    }
}

/// Whether each of them keeps the trace. Those behind the first that does not are not asked, so they count nothing.
fn keep_all(policies: &[Compiled], evidence: &Evidence<'_>, rates: &mut Rates) -> bool {
    policies.iter().all(|policy| policy.vote(evidence, rates) == Vote::Kept)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// 64-bit FNV-1a, continued from `hash`.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The greatest hash that is kept. As the Collector computes it: 2⁶⁴ − 1 times the ratio, with the 64 bits of precision that its
/// `big.Float` takes from the first factor, rounded to even and then cut off.
fn threshold(percentage: f64) -> u64 {
    let ratio = percentage / 100.0;
    if ratio.is_nan() || ratio <= 0.0 {
        return 0;
    }
    if ratio >= 1.0 {
        return u64::MAX;
    }
    // The ratio is `mantissa` × 2^-`shift`, exactly.
    let bits = ratio.to_bits();
    let exponent = (bits >> 52) as i32;
    let mantissa = if exponent == 0 { bits << 1 } else { bits | 1 << 52 } & ((1 << 53) - 1);
    let shift = 1075 - exponent;
    let product = u128::from(u64::MAX) * u128::from(mantissa);
    // To 64 significant bits.
    let extra = (u128::BITS - product.leading_zeros()).saturating_sub(u64::BITS);
    let (whole, rest) = (product >> extra, product & ((1 << extra) - 1));
    let half = if extra == 0 { 0 } else { 1 << (extra - 1) };
    let up = extra > 0 && (rest > half || rest == half && whole & 1 == 1);
    let rounded = whole + u128::from(up);
    let shift = shift - extra.cast_signed();
    let threshold = if shift >= 128 { 0 } else { rounded >> shift.max(0) };
    u64::try_from(threshold).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
