//! Pipelines: change, drop, route and sample telemetry between its receipt and its delivery.
//!
//! A pipeline is a list of steps in two languages that users already have in their files: the OpenTelemetry
//! Transformation Language (OTTL) and Prometheus relabeling. [`Pipeline::compile`] checks all of it at once and compiles it;
//! [`Run`] applies it to one decoded request body.
//!
//! Promises, argued in `design/pipeline.md`:
//! - A run allocates nothing. It works in memory that its caller has paid for: the body, a scratch buffer, the output, and a
//!   [`Workspace`] of constant size. The output's length is known before a byte of it is written.
//! - A run never fails. A statement that fails leaves its item as it was and is counted; a body without a change is
//!   [`Outcome::Unchanged`], and its owner keeps the bytes that came.
//! - The books close: items in = items out + filtered + sampled out, by step.
//! - Nothing computes for long: [`Run::advance`] returns after a bounded amount of work.
//!
//! No I/O. The crate knows no source and no sink.

mod access;
mod any_value;
mod compile;
mod definition;
mod functions;
mod key_index;
mod level;
mod line_pattern;
mod machine;
mod md5;
mod measure_step;
mod measures;
mod memory;
mod ottl;
mod pass;
mod pipeline;
mod record;
mod redaction;
mod regex;
mod relabel;
mod required;
mod run;
mod sample_step;
mod sampling;
mod step;
mod table;
#[cfg(test)]
mod testing;
mod traces;
mod value;
mod watch_step;

pub use definition::{
    Anchor, Definition, ErrorMode, Preset, Problem, Redaction, SampleBy, SampleMode, Sampling, Severity,
    StepDefinition, StepKind,
};
pub use line_pattern::LinePattern;
pub use measures::{
    AttributeSource, AttributeValue, DERIVED_SCOPE, KeyAttribute, KeyAttributes, MEASURE_KEY_MAX, Measure,
    MeasureCount, MeasureKey, MeasureValue, Measured, MeasuredSpan, Measurements, Number, Observation,
};
pub use ottl::components::signal_of_function;
pub use pipeline::{Format, Limits, Outcome, Pipeline, Progress, Run, StepCounts, Workspace};
pub use relabel::{
    AppliedRule, PROMETHEUS_ACTIONS, RelabelRun, RelabelWorkspace, RuleDefinition, Rules, StepRules,
    VMAGENT_ACTIONS, explain,
};
pub use required::LiteralSearch;
/// The signals of [`Format::Otlp`].
pub use tidegate_wire::otlp::Signal;
/// The versions of [`Format::RemoteWrite`].
pub use tidegate_wire::remote_write::Version;
pub use traces::{MAX_SPAN_TESTS, SpanFacts, SpanTest, TraceId, TraceSampler};
pub use value::FailureReason;
