//! A pipeline as the configuration writes it, and the problems that compiling it finds.

use std::fmt::{self, Write};
use std::ops::Range;

/// The steps of a pipeline, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definition {
    /// The steps, in the order in which items pass through them.
    pub steps: Vec<StepDefinition>,
}

impl Definition {
    /// A hash of all settings: the same for the same definition in any process of this version.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Fingerprint::default();
        // It takes any text.
        let _ = write!(hash, "{self:?}");
        hash
    }
}

/// A hash that is the same in any process: FNV-1a of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// The hash of what was hashed so far, and `bytes`.
    pub(crate) fn with(self, bytes: &[u8]) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        bytes.iter().fold(self.0, step)
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.with(text.as_bytes());
        Ok(())
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepDefinition {
    /// An OTTL condition. Items that do not meet it pass the step unchanged.
    pub when: Option<String>,
    /// The treatment of a statement or condition that fails on an item.
    pub on_error: ErrorMode,
    /// The operation.
    pub kind: StepKind,
}

impl StepDefinition {
    /// The parts of the step whose failures are counted, in the order of
    /// [`StepCounts::failures`](crate::StepCounts::failures), each in a few words: its statements, conditions or rules, and `when` behind them.
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        let own: Vec<String> = match &self.kind {
            StepKind::Drop(texts) | StepKind::Keep(texts) | StepKind::Edit(texts) => texts.clone(),
            StepKind::Relabel(rules) => {
                let action = |rule: &crate::RuleDefinition| rule.action.clone().unwrap_or("replace".into());
                rules
                    .iter()
                    .enumerate()
                    .map(|(at, rule)| format!("rule {}: {}", at + 1, action(rule)))
                    .collect()
            }
            StepKind::Sample(_) | StepKind::SampleTraces => vec!["sample".to_owned()],
            StepKind::WatchTraces(tests) => {
                tests.iter().flat_map(crate::SpanTest::conditions).cloned().collect()
            }
            StepKind::Measure(measures) => {
                let texts = measures.iter().flat_map(crate::Measure::texts).cloned();
                texts.chain(["attributes".to_owned()]).collect()
            }
            StepKind::Redact(_) => vec!["redact".to_owned()],
        };
        own.into_iter().chain(self.when.clone()).collect()
    }
}

/// The operation of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// Drops items that meet at least one of these OTTL conditions, as the Collector's filter processor does.
    Drop(Vec<String>),
    /// Keeps items that meet at least one of these OTTL conditions, and drops others of the same context.
    Keep(Vec<String>),
    /// Runs these OTTL statements, as the Collector's transform processor does.
    Edit(Vec<String>),
    /// Applies Prometheus relabeling to the series of metrics.
    Relabel(Vec<crate::relabel::RuleDefinition>),
    /// Keeps a part of the items.
    Sample(Sampling),
    /// Tells the [sampler](crate::TraceSampler) of the run which of these tests spans fulfil, and changes nothing.
    WatchTraces(Vec<crate::SpanTest>),
    /// Drops the spans of traces that the [sampler](crate::TraceSampler) of the run does not keep.
    SampleTraces,
    /// Tells the [measurements](crate::Measurements) of the run of items, and changes nothing.
    Measure(Vec<crate::Measure>),
    /// Masks and removes secrets in attributes and in the bodies of log records.
    Redact(Redaction),
}

/// The treatment of a statement or condition that fails on an item, as in the Collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorMode {
    /// Counts and logs the failure; the item stays as it was before the statement.
    #[default]
    Ignore,
    /// Counts the failure without a log line.
    Silent,
    /// Drops the item, so data that could not be redacted is not delivered.
    Drop,
}

/// The secrets to mask or remove. Texts are looked through in nested maps and lists, too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction {
    /// The text that replaces a secret.
    pub mask: String,
    /// Patterns that come with the gateway, for parts of values.
    pub presets: Vec<Preset>,
    /// Regular expressions in Go's syntax: parts of values that match are masked.
    pub block_values: Vec<String>,
    /// Regular expressions in Go's syntax: the values of keys that match are masked.
    pub block_keys: Vec<String>,
    /// The only attributes to keep, beside the ignored ones; `None` for all.
    pub allow_keys: Option<Vec<String>>,
    /// Attributes that stay as they are.
    pub ignore_keys: Vec<String>,
}

/// A pattern for a common sort of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// An email address.
    Email,
    /// A number as Visa, Mastercard, Discover and American Express have them.
    CreditCard,
    /// An IPv4 address.
    Ipv4,
    /// A JSON web token.
    Jwt,
    /// `Bearer` and a token.
    BearerToken,
    /// The id of an AWS access key.
    AwsAccessKey,
    /// A social security number of the USA, with its hyphens.
    UsSsn,
    /// An international bank account number.
    Iban,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 8] = [
        Preset::Email,
        Preset::CreditCard,
        Preset::Ipv4,
        Preset::Jwt,
        Preset::BearerToken,
        Preset::AwsAccessKey,
        Preset::UsSsn,
        Preset::Iban,
    ];
}

/// A part of the items to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// The share of items to keep, from 0 to 1.
    pub ratio: f64,
    /// The value that decides.
    pub by: SampleBy,
    /// How the value becomes a decision.
    pub mode: SampleMode,
    /// Hexadecimal digits of the threshold that is written to sampled items, from 1 to 14; the Collector's default is 4.
    pub precision: u8,
    /// Whether an item without usable randomness (no trace id, a broken trace state) is dropped; the Collector's `fail_closed`.
    pub drops_unknown: bool,
    /// An attribute of log records with the least percentage to keep; the Collector's `sampling_priority`.
    pub priority: Option<String>,
}

/// The value whose hash decides whether an item is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleBy {
    /// The trace id: all spans of a trace share one decision.
    TraceId,
    /// An attribute of the item.
    Attribute(String),
    /// The trace id, or this attribute of an item without one.
    TraceIdOrAttribute(String),
}

/// How the Collector's `probabilistic_sampler` maps a value to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleMode {
    /// 14 bits of FNV with a seed.
    HashSeed(u32),
    /// 56 bits of randomness, relative to the incoming threshold in `tracestate`.
    Proportional,
    /// 56 bits of randomness, down to the configured ratio.
    Equalizing,
}

/// A place in a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The step, counted from 0.
    pub step: usize,
    /// The setting of the step: `when`, `drop`, `edit`, `relabel`, …
    pub setting: &'static str,
    /// The statement, condition or rule within it, counted from 0; `None` for the setting as a whole.
    pub item: Option<usize>,
    /// The field of a relabeling rule, or of `redact`; empty otherwise.
    pub field: &'static str,
    /// The bytes of that text that are at fault.
    pub range: Range<usize>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The pipeline does not compile.
    Error,
    /// It compiles, but may not do what its author expects.
    Warning,
}

/// Something wrong with a [`Definition`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Anchor,
    /// How bad.
    pub severity: Severity,
    /// The error, as a sentence without a full stop.
    pub message: String,
    /// The remedy, where one is known.
    pub help: Option<String>,
}
