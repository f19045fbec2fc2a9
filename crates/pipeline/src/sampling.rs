//! Probabilistic sampling, with the decisions of the Collector's `probabilistic_sampler` processor.
//!
//! A decision compares an item's randomness with a threshold, both of 56 bits: it is kept where the randomness is at least the
//! threshold. The modes differ in where the two come from. Sampled items say what was done to them, so that a later
//! sampler and a backend can go on from there: spans in the member `ot` of their trace state, log records in the attributes
//! `sampling.threshold` and `sampling.randomness`.
//!
//! Sources: <https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/> and
//! <https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/processor/probabilisticsamplerprocessor>.

mod threshold;
pub(crate) mod trace_state;

use crate::definition::{SampleBy, SampleMode, Sampling};
pub(crate) use threshold::{HexText, Randomness, Threshold};
pub(crate) use trace_state::TraceState;

/// The attribute of a log record with its threshold.
pub(crate) const THRESHOLD_ATTRIBUTE: &str = "sampling.threshold";
/// The attribute of a log record with its randomness.
pub(crate) const RANDOMNESS_ATTRIBUTE: &str = "sampling.randomness";
/// The attribute of a span that overrides the decision.
pub(crate) const PRIORITY_ATTRIBUTE: &str = "sampling.priority";

/// The bits of the hash that decide in [`SampleMode::HashSeed`].
const HASH_BITS: u32 = 14;
const HASH_BUCKETS: u32 = 1 << HASH_BITS;

/// A compiled `sample` step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sampler {
    rule: Rule,
    by: SampleBy,
    precision: i32,
    /// Whether an item without usable randomness is dropped.
    drops_unknown: bool,
    priority: Option<String>,
}

/// How a threshold is found.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Never,
    Hash { seed: u32, threshold: Threshold },
    Equalizing(Threshold),
    Proportional(f64),
}

/// The properties of a span that decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanFacts<'a> {
    pub(crate) trace_id: &'a [u8],
    pub(crate) trace_state: &'a [u8],
    /// The hashed attribute, where the sampler has one.
    pub(crate) attribute: Option<&'a [u8]>,
    /// The number in [`PRIORITY_ATTRIBUTE`].
    pub(crate) priority: Option<f64>,
}

/// The properties of a log record that decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogFacts<'a> {
    pub(crate) trace_id: &'a [u8],
    /// The hashed attribute, where the sampler has one.
    pub(crate) attribute: Option<&'a [u8]>,
    /// The text in [`THRESHOLD_ATTRIBUTE`]; empty for none.
    pub(crate) threshold: &'a [u8],
    /// The text in [`RANDOMNESS_ATTRIBUTE`]; empty for none.
    pub(crate) randomness: &'a [u8],
    /// The number in [`Sampler::priority_attribute`]: the least percentage to keep.
    pub(crate) priority: Option<f64>,
}

/// The decision on a span.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SpanDecision<'a> {
    Drop,
    /// Keep it as it is.
    Keep,
    /// Keep it with this trace state.
    KeepWith(TraceState<'a>),
}

/// The decision on a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDecision {
    Drop,
    /// Keep it as it is.
    Keep,
    /// Keep it with these attributes; without a randomness its attribute stays as it is.
    KeepWith {
        threshold: Option<HexText>,
        randomness: Option<HexText>,
    },
}

impl Sampler {
    /// Compiles a step. `ratio` is checked before.
    pub(crate) fn new(sampling: &Sampling) -> Sampler {
        // As the Collector computes it, in single precision, so that the same items are kept.
        let percent = (sampling.ratio * 100.0).clamp(0.0, 100.0) as f32;
        let ratio = (f64::from(percent) / 100.0).max(threshold::SMALLEST_PROBABILITY);
        let precision = i32::from(sampling.precision);
        let rule = match sampling.mode {
            _ if percent == 0.0 => Rule::Never,
            SampleMode::HashSeed(seed) => {
                // Rounded down: less than one bucket is none.
                match (percent * (HASH_BUCKETS as f32 / 100.0)) as u32 {
                    0 => Rule::Never,
                    kept => Rule::Hash {
                        seed,
                        threshold: Threshold::from_bits(u64::from(HASH_BUCKETS - kept) << 42),
                    },
                }
            }
            SampleMode::Equalizing => {
                Rule::Equalizing(Threshold::of_probability(ratio, precision).unwrap_or(Threshold::ALWAYS))
            }
            SampleMode::Proportional => Rule::Proportional(ratio),
        };
        Sampler {
            rule,
            by: sampling.by.clone(),
            precision,
            drops_unknown: sampling.drops_unknown,
            priority: sampling.priority.clone(),
        }
    }

    /// The attribute whose value is hashed, if any.
    pub(crate) fn hashed_attribute(&self) -> Option<&str> {
        match &self.by {
            SampleBy::TraceId => None,
            SampleBy::Attribute(name) | SampleBy::TraceIdOrAttribute(name) => Some(name),
        }
    }

    /// The attribute of a log record that names the least percentage to keep, if any.
    pub(crate) fn priority_attribute(&self) -> Option<&str> {
        self.priority.as_deref()
    }

    /// Decides on a span.
    pub(crate) fn span<'a>(&self, facts: SpanFacts<'a>) -> SpanDecision<'a> {
        let mut parsed = TraceState::parse(facts.trace_state);
        let randomness;
        let mut is_usable = parsed.is_some();
        match self.rule {
            Rule::Never => randomness = Some(Randomness::MOST),
            Rule::Hash { seed, .. } => {
                randomness = self.hashed(facts.trace_id, facts.attribute, seed);
                if let Some(state) = &mut parsed {
                    if state.has_sampling() {
                        // Consistent sampling is in use: it is left alone.
                        (parsed, is_usable) = (None, false);
                    } else {
                        state.set_randomness(randomness.unwrap_or(Randomness::MOST));
                    }
                }
            }
            Rule::Equalizing(_) | Rule::Proportional(_) => {
                let explicit = parsed.as_ref().and_then(TraceState::randomness);
                let of_id = || Randomness::of_trace_id(facts.trace_id);
                randomness = is_usable.then(|| explicit.or_else(of_id)).flatten();
            }
        }
        let arriving = parsed.as_ref().and_then(TraceState::threshold);
        if is_usable
            && let (Some(known), Some(threshold)) = (randomness, arriving)
            && !threshold.keeps(known)
        {
            // It should not have been sampled, so its threshold is wrong.
            parsed.as_mut().into_iter().for_each(TraceState::clear_threshold);
            is_usable = false;
        }
        let threshold = match facts.priority {
            Some(0.0) => Threshold::NEVER,
            Some(wanted) if wanted > 0.0 => Threshold::ALWAYS,
            _ => self.threshold(is_usable && randomness.is_some(), arriving),
        };
        if !threshold.keeps(randomness.unwrap_or(Randomness::MOST)) {
            return SpanDecision::Drop;
        }
        match parsed {
            Some(mut state) => {
                state.raise_threshold(threshold);
                SpanDecision::KeepWith(state)
            }
            None => SpanDecision::Keep,
        }
    }

    /// Decides on a log record.
    pub(crate) fn log(&self, facts: LogFacts<'_>) -> LogDecision {
        let arriving = Threshold::parse(facts.threshold);
        let explicit = Randomness::parse(facts.randomness);
        let is_readable = (facts.threshold.is_empty() || arriving.is_some())
            && (facts.randomness.is_empty() || explicit.is_some());
        let mut is_usable = is_readable;
        let mut writes = is_readable;
        let mut written = None;
        let randomness = match self.rule {
            Rule::Never => Some(Randomness::MOST),
            Rule::Hash { seed, .. } => {
                let hashed = self.hashed(facts.trace_id, facts.attribute, seed);
                if arriving.is_some() || explicit.is_some() {
                    (is_usable, writes) = (false, false);
                } else {
                    written = hashed.filter(|_| is_readable);
                }
                hashed
            }
            Rule::Equalizing(_) | Rule::Proportional(_) => {
                let of_id = || Randomness::of_trace_id(facts.trace_id);
                is_readable.then(|| explicit.or_else(of_id)).flatten()
            }
        };
        let mut kept = arriving.filter(|_| is_readable);
        if is_usable
            && let (Some(known), Some(threshold)) = (randomness, kept)
            && !threshold.keeps(known)
        {
            (kept, is_usable) = (None, false);
        }
        let lowest = facts.priority.filter(|percent| *percent != 0.0);
        let lowest = lowest.and_then(|percent| Threshold::of_probability(percent / 100.0, self.precision));
        let threshold = lowest.unwrap_or_else(|| self.threshold(is_usable && randomness.is_some(), kept));
        if !threshold.keeps(randomness.unwrap_or(Randomness::MOST)) {
            return LogDecision::Drop;
        }
        if !writes {
            return LogDecision::Keep;
        }
        let raised = kept.is_none_or(|known| known <= threshold);
        LogDecision::KeepWith {
            threshold: raised.then(|| threshold.text()),
            randomness: written.map(Randomness::text),
        }
    }

    /// The threshold for an item whose randomness is known, or is not.
    fn threshold(&self, is_known: bool, arriving: Option<Threshold>) -> Threshold {
        match self.rule {
            _ if !is_known && self.drops_unknown => Threshold::NEVER,
            _ if !is_known => Threshold::ALWAYS,
            Rule::Never => Threshold::NEVER,
            Rule::Hash { threshold, .. } => threshold,
            Rule::Equalizing(threshold) => arriving.map_or(threshold, |known| known.max(threshold)),
            Rule::Proportional(ratio) => {
                let probability = arriving.map_or(1.0, Threshold::probability) * ratio;
                // Below the smallest there is no way to say it.
                Threshold::of_probability(probability, self.precision).unwrap_or(Threshold::NEVER)
            }
        }
    }

    fn hashed(&self, trace_id: &[u8], attribute: Option<&[u8]>, seed: u32) -> Option<Randomness> {
        let attribute = attribute.filter(|value| !value.is_empty());
        let trace_id = Some(trace_id).filter(|id| id.iter().any(|byte| *byte != 0));
        let value = match self.by {
            SampleBy::TraceId => trace_id,
            SampleBy::Attribute(_) => attribute,
            SampleBy::TraceIdOrAttribute(_) => trace_id.or(attribute),
        };
        value.map(|value| Randomness::of_hash(fnv(value, seed)))
    }
}

/// 32-bit FNV-1a of the seed, little endian, and `value`.
fn fnv(value: &[u8], seed: u32) -> u32 {
    let seed = seed.to_le_bytes();
    let bytes = seed.iter().chain(value);
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
