//! Processors: the steps of pipelines.

mod actions;
mod filter;
mod sampler;
mod transform;

use super::components::Section;
use super::{Collector, settings, type_of};
use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::import::sinks::{SIGNALS, signal_name};
use crate::import::steps::Step;
use crate::model::Signal;
use crate::values::Bytes;
use crate::yaml::Entry;

/// The steps of a processor, by signal.
#[derive(Debug, Default)]
pub(super) struct Processed {
    traces: Vec<Step>,
    metrics: Vec<Step>,
    logs: Vec<Step>,
}

impl Processed {
    /// The steps for a signal; none for profiles.
    pub(super) fn of(&self, signal: Signal) -> &[Step] {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
            Signal::Profiles => &[],
        }
    }

    /// Notes steps for signals whose pipelines do not have the processor.
    fn note_unused(&self, entry: &Entry, signals: &[Signal], reader: &mut FileReader<'_, '_>) {
        for signal in SIGNALS {
            if !signals.contains(&signal) && !self.of(signal).is_empty() {
                let name = signal_name(signal);
                let message = format!("left out for {name}: no pipeline for {name} has this processor");
                reader.note(&entry.key_at, &format!("processors.{}", entry.key), message);
            }
        }
    }

    /// Notes what the engine does not accept. It stays in the configuration, so it is corrected and not forgotten.
    fn note_refused(&self, entry: &Entry, signals: &[Signal], reader: &mut FileReader<'_, '_>) {
        let steps =
            SIGNALS.iter().filter(|signal| signals.contains(signal)).flat_map(|signal| self.of(*signal));
        for (text, reason) in steps.flat_map(Step::refused) {
            let message = format!("to be corrected in {}: {reason}", quote(&text));
            reader.note(&entry.key_at, &format!("processors.{}", entry.key), message);
        }
    }

    fn push(&mut self, signal: Signal, step: Step) {
        match signal {
            Signal::Traces => self.traces.push(step),
            Signal::Metrics => self.metrics.push(step),
            Signal::Logs => self.logs.push(step),
            Signal::Profiles => {}
        }
    }
}

impl Collector<'_> {
    /// Converts a processor that pipelines for `signals` have.
    pub(super) fn processor(
        &mut self,
        entry: &Entry,
        signals: &[Signal],
        reader: &mut FileReader<'_, '_>,
    ) -> Processed {
        let path = format!("processors.{}", entry.key);
        match type_of(&entry.key) {
            "memory_limiter" => self.memory(entry, "processors", reader),
            "batch" => {
                if let Some(mut group) = settings(entry, "processors", reader) {
                    group.take_all();
                }
                let message = "not needed: every sink makes its own batches (`max_request_bytes`, `linger`)";
                reader.note(&entry.key_at, &path, message);
            }
            kind => {
                let Some(mut group) = settings(entry, "processors", reader) else {
                    return Processed::default();
                };
                let processed = match kind {
                    "filter" => filter::convert(&entry.key, &mut group, reader),
                    "transform" => self.transform(&entry.key, &mut group, reader),
                    "attributes" => actions::attributes(&entry.key, signals, &mut group, reader),
                    "resource" => actions::resource(&entry.key, &mut group, reader),
                    "probabilistic_sampler" => sampler::convert(&entry.key, &mut group, reader),
                    _ => {
                        self.components.unknown(Section::Processors, entry, reader);
                        return Processed::default();
                    }
                };
                group.finish(reader);
                processed.note_refused(entry, signals, reader);
                if matches!(kind, "filter" | "transform") {
                    processed.note_unused(entry, signals, reader);
                }
                return processed;
            }
        }
        Processed::default()
    }

    /// The bound on memory.
    pub(super) fn memory(&mut self, entry: &Entry, section: &str, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, section, reader) else { return };
        let path = group.path.clone();
        if let Some(mebibytes) = group.number("limit_mib", reader).filter(|limit| *limit > 0) {
            let comment =
                "A bound that is kept: resident memory never exceeds it, and nothing is dropped to keep it.";
            self.out.set_with("memory", Bytes::mib(mebibytes).to_string(), Some(comment));
        }
        if let Some(percentage) = group.text("limit_percentage", reader) {
            let message =
                "`memory` was left out: by default it is at most three quarters of the cgroup's limit";
            reader.note(&percentage.at, &format!("{path}.limit_percentage"), message);
        }
        let checked = "not needed: memory is charged before it is used, not measured afterwards";
        group.lacks(
            &[
                ("check_interval", checked),
                ("spike_limit_mib", checked),
                ("spike_limit_percentage", checked),
                ("min_gc_interval_when_soft_limited", checked),
                ("min_gc_interval_when_hard_limited", checked),
            ],
            reader,
        );
        group.finish(reader);
    }
}

/// Takes the treatment of failures.
fn error_mode(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<&'static str> {
    let mode = group.text("error_mode", reader)?;
    match mode.value.as_str() {
        "ignore" => None,
        "silent" => Some("silent"),
        "propagate" => {
            let message = "`propagate` drops the whole request; `on_error: drop` drops the item that fails";
            reader.note(&mode.at, &group.path_of("error_mode"), message);
            Some("drop")
        }
        _ => {
            reader.error(&mode.at, "there is no such error mode", "write `ignore`, `silent` or `propagate`");
            None
        }
    }
}

/// The texts of statements or conditions.
fn values(texts: &[Text]) -> Vec<String> {
    texts.iter().map(|text| crate::import::ottl::one_line(&text.value)).collect()
}
