//! Pipelines: each compiled alone, so every problem is reported where it is written, and the sinks that use them.

use std::ops::Range;

use tidegate_pipeline::{self as engine, Anchor, Definition, Format, Pipeline, Severity, StepKind, Version};

use super::path;
use crate::model::{
    Config, ConfiguredDerivation, DerivationProblem, RelabelRule, Route, Signal, SinkSample, selecting, texts,
};
use crate::suggest::nearest;
use crate::values::Name;

/// Something to know of a pipeline.
pub(crate) struct Finding {
    /// The settings down to the one at fault; entries of lists by their position.
    pub(crate) path: Vec<String>,
    /// The bytes of its value that are at fault; `None` for all of it.
    pub(crate) range: Option<Range<usize>>,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// All problems of all pipelines.
pub(crate) fn check(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, pipeline) in &config.pipelines {
        let at = path(["pipelines", name.as_str(), "steps"]);
        check_steps(&at, pipeline, &mut findings);
    }
    for name in config.sinks.keys() {
        sink(config, name, &mut findings);
        left_to_nobody(config, name, &mut findings);
    }
    for (position, test) in config.tests.iter().enumerate() {
        if !config.pipelines.contains_key(&test.pipeline) {
            let help = match nearest(test.pipeline.as_str(), config.pipelines.keys().map(Name::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "name one of `pipelines`".to_owned(),
            };
            findings.push(Finding {
                path: path(["tests", &position.to_string(), "pipeline"]),
                range: None,
                severity: Severity::Error,
                message: format!("there is no pipeline `{}`", test.pipeline),
                help,
            });
        }
    }
    for (source, settings) in config.sources.pipelines() {
        if let Some(wanted) = &settings.pipeline {
            let at = || path(["sources", source, "pipeline"]);
            findings.extend(missing(config, wanted, at()).or_else(|| idle(config, source, wanted, at())));
        }
        if let Some(parse) = settings.parse
            && source == "prometheus_remote_write"
        {
            findings.push(Finding {
                path: path(["sources", source, "parse"]),
                range: None,
                severity: Severity::Error,
                message: format!(
                    "`sources.{source}`: `parse: {parse}` is about log lines, and it receives none"
                ),
                help: "remove it".to_owned(),
            });
        }
    }
    let is_unused =
        |name: &&Name| config.sinks_of(name).next().is_none() && config.sources_of(name).next().is_none();
    for name in config.pipelines.keys().filter(is_unused) {
        findings.push(Finding {
            path: path(["pipelines", name.as_str()]),
            range: None,
            severity: Severity::Warning,
            message: format!("no sink and no source uses the pipeline `{name}`"),
            help: format!("add `pipeline: {name}` to a sink or a source"),
        });
    }
    findings
}

/// All problems of the steps of a pipeline, which stand at the path `at`.
pub(crate) fn check_steps(at: &[String], pipeline: &crate::model::Pipeline, findings: &mut Vec<Finding>) {
    // The positions of the steps that have a definition, since the engine counts only those.
    let mut positions = Vec::new();
    let mut definition = Definition::default();
    for (position, step) in pipeline.steps.iter().enumerate() {
        let operations = step.operations();
        if let [_] = operations.as_slice()
            && let Some(step) = step.definition()
        {
            positions.push(position);
            definition.steps.push(step);
            continue;
        }
        let message = match operations.as_slice() {
            [] => "this step does nothing".to_owned(),
            operations => {
                let names: Vec<String> = operations.iter().map(|(name, _)| format!("`{name}`")).collect();
                format!("this step has {} operations: {}", names.len(), names.join(", "))
            }
        };
        findings.push(Finding {
            path: below(at, [position.to_string()]),
            range: None,
            severity: Severity::Error,
            message,
            help:
                "write exactly one of `drop`, `keep`, `edit`, `relabel`, `sample` and `redact` in each step"
                    .to_owned(),
        });
    }
    compile(&definition, findings, |anchor| {
        let position = positions.get(anchor.step).copied().unwrap_or(anchor.step);
        let setting = match (anchor.setting, pipeline.steps.get(position)) {
            ("relabel", Some(step)) if step.relabel.is_none() => "write_relabel_configs",
            (setting, _) => setting,
        };
        within(below(at, [position.to_string(), setting.to_owned()]), anchor)
    });
}

/// The error of a source or sink that names the pipeline `wanted` at this path, if there is none.
fn missing(config: &Config, wanted: &Name, path: Vec<String>) -> Option<Finding> {
    if config.pipelines.contains_key(wanted) {
        return None;
    }
    let help = match nearest(wanted.as_str(), config.pipelines.keys().map(Name::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add it under `pipelines`: `{wanted}: {{ steps: […] }}`"),
    };
    let message = format!("there is no pipeline `{wanted}`");
    Some(Finding { path, range: None, severity: Severity::Error, message, help })
}

/// The error of a source whose pipeline applies to nothing that it receives: a redaction that is configured and does nothing is
/// worse than none.
fn idle(config: &Config, source: &str, wanted: &Name, path: Vec<String>) -> Option<Finding> {
    let otlp = |signals: &[engine::Signal]| signals.iter().copied().map(Format::Otlp).collect();
    let (received, steps, formats): (_, _, Vec<Format>) = match source {
        "otlp" => (
            "OTLP",
            "`drop`, `keep`, `edit`, `sample` or `redact`",
            otlp(&[engine::Signal::Traces, engine::Signal::Metrics, engine::Signal::Logs]),
        ),
        "file" | "fluent_forward" | "http" | "journald" | "kubernetes_logs" | "loki" | "syslog" => (
            "log lines",
            "`drop`, `keep`, `edit`, `sample` or `redact` for logs",
            otlp(&[engine::Signal::Logs]),
        ),
        "prometheus_remote_write" => (
            "Prometheus remote write",
            "`relabel`",
            [Version::V1, Version::V2].map(Format::RemoteWrite).into(),
        ),
        _ => return None,
    };
    let steps_of = config.pipeline(wanted).filter(|pipeline| !pipeline.definition.steps.is_empty())?;
    // Compile errors are reported elsewhere.
    let (pipeline, _) = Pipeline::compile(&steps_of.definition).ok()?;
    if formats.into_iter().any(|format| pipeline.passes(format) > 0) {
        return None;
    }
    Some(Finding {
        path,
        range: None,
        severity: Severity::Error,
        message: format!("`sources.{source}`: no step of the pipeline `{wanted}` applies to {received}"),
        help: format!("have it use {steps}, or remove it: nothing would be removed before the journal"),
    })
}

fn sink(config: &Config, name: &Name, findings: &mut Vec<Finding>) {
    let Some(sink) = config.sinks.get(name) else { return };
    let Route { pipeline, when, otherwise, sample, relabel, derive } = sink.route();
    let at = path(["sinks", name.as_str()]);
    let mut note = |setting: &str, severity, message: String, help: String| {
        let path = below(&at, [setting.to_owned()]);
        findings.push(Finding { path, range: None, severity, message, help });
    };
    if otherwise {
        let has_others =
            config.sinks.iter().any(|(other, sink)| other != name && !sink.route().when.is_empty());
        if !when.is_empty() {
            let message = format!("`sinks.{name}` has both `when` and `otherwise`");
            let help = "`otherwise` takes what other sinks leave: set only one of the two";
            note("otherwise", Severity::Error, message, help.to_owned());
        } else if !has_others {
            let message = "no other sink has a `when`, so this sink takes everything".to_owned();
            note(
                "otherwise",
                Severity::Warning,
                message,
                "add `when` to a sink, or remove `otherwise`".to_owned(),
            );
        }
    }
    if let Some(wanted) = pipeline {
        findings.extend(missing(config, wanted, below(&at, ["pipeline".to_owned()])));
    }
    if !when.is_empty() {
        let definition = Definition { steps: vec![selecting(StepKind::Keep(texts(when)))] };
        compile(&definition, findings, |anchor| within(below(&at, ["when".to_owned()]), anchor));
    }
    if let Some(SinkSample { tail }) = sample {
        let at = below(&at, ["sample", "tail", "policies"].map(str::to_owned));
        match tail.configured() {
            Ok(sampling) => {
                let definition = Definition { steps: vec![selecting(StepKind::WatchTraces(sampling.tests))] };
                compile(&definition, findings, |anchor| {
                    let text = anchor.item.and_then(|item| sampling.texts.get(item));
                    below(&at, text.into_iter().flatten().cloned())
                });
            }
            Err(problems) => findings.extend(problems.into_iter().map(|problem| Finding {
                path: below(&at, problem.path),
                range: None,
                severity: Severity::Error,
                message: problem.message,
                help: problem.help,
            })),
        }
    }
    if let Some(derive) = derive {
        match ConfiguredDerivation::of(derive) {
            Ok(derivation) => {
                let definition =
                    Definition { steps: vec![selecting(StepKind::Measure(derivation.measures))] };
                compile(&definition, findings, |anchor| {
                    let text = anchor.item.and_then(|item| derivation.texts.get(item));
                    below(&at, text.into_iter().flatten().cloned())
                });
            }
            Err(problems) => {
                findings.extend(problems.into_iter().map(|DerivationProblem { path, message, help }| {
                    Finding { path: below(&at, path), range: None, severity: Severity::Error, message, help }
                }))
            }
        }
    }
    if !relabel.is_empty() {
        let rules = relabel.iter().map(RelabelRule::definition).collect();
        let definition = Definition { steps: vec![selecting(StepKind::Relabel(rules))] };
        let at = below(&at, ["write_relabel_configs".to_owned()]);
        compile(&definition, findings, |anchor| within(at.clone(), anchor));
    }
}

/// Reports items that no sink takes: a `when` selects them, so sinks with `otherwise` leave them out, and the sink with that `when`
/// does not take their signal.
fn left_to_nobody(config: &Config, name: &Name, findings: &mut Vec<Finding>) {
    let Some(sink) = config.sinks.get(name) else { return };
    let conditions = sink.route().when;
    for (item, condition) in conditions.iter().enumerate() {
        // Compile errors are reported elsewhere.
        let definition =
            Definition { steps: vec![selecting(StepKind::Keep(texts(std::slice::from_ref(condition))))] };
        let Ok((pipeline, _)) = Pipeline::compile(&definition) else { continue };
        let selects = |signal: Signal| pipeline.passes(Format::Otlp(named(signal).1)) > 0;
        // Several sinks may share the signals of one condition.
        let takers = || config.sinks.values().filter(|sink| sink.route().when.contains(condition));
        let is_taken = |signal: &Signal| takers().any(|taker| taker.signals().contains(signal));
        for (other, rest) in config.sinks.iter().filter(|(_, rest)| rest.route().otherwise) {
            let lost = rest.signals().iter().filter(|signal| selects(**signal) && !is_taken(signal));
            let lost: Vec<String> = lost.map(|signal| format!("`{}`", named(*signal).0)).collect();
            if lost.is_empty() {
                continue;
            }
            let signals = lost.join(", ");
            let at = path(["sinks", name.as_str(), "when"]);
            findings.push(Finding {
                path: below(&at, [item.to_string()]),
                range: None,
                severity: Severity::Error,
                message: format!(
                    "this condition also selects {signals}, which `sinks.{name}` does not take, and which `sinks.{other}` leaves out \
                     because of it: no sink would take them"
                ),
                help: format!(
                    "add {signals} to the `signals` of `sinks.{name}` or of another sink with the same condition, or have the \
                     condition look at an item, for example `… and {}`",
                    item_condition(sink.signals())
                ),
            });
            break;
        }
    }
}

/// A signal's name in settings, and in the engine.
const fn named(signal: Signal) -> (&'static str, engine::Signal) {
    match signal {
        Signal::Traces => ("traces", engine::Signal::Traces),
        Signal::Metrics => ("metrics", engine::Signal::Metrics),
        Signal::Logs => ("logs", engine::Signal::Logs),
        Signal::Profiles => ("profiles", engine::Signal::Profiles),
    }
}

/// A condition that all items of a signal of `signals` meet, and that says nothing of others.
fn item_condition(signals: &[Signal]) -> &'static str {
    match signals.first() {
        Some(Signal::Traces) => "span.name != nil",
        Some(Signal::Metrics) => "metric.name != nil",
        _ => "log.severity_number >= 0",
    }
}

/// Compiles `definition`, and notes each problem at the path that `place` gives for it.
fn compile(definition: &Definition, findings: &mut Vec<Finding>, place: impl Fn(&Anchor) -> Vec<String>) {
    let problems = match Pipeline::compile(definition) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    findings.extend(problems.into_iter().map(|problem| Finding {
        path: place(&problem.at),
        range: Some(problem.at.range),
        severity: problem.severity,
        message: problem.message,
        help: problem.help.unwrap_or_default(),
    }));
}

/// The path of an entry or field within the setting at `path`.
fn within(path: Vec<String>, anchor: &Anchor) -> Vec<String> {
    let field = if anchor.field == "condition" { "if" } else { anchor.field };
    let field = Some(field).filter(|field| !field.is_empty()).map(str::to_owned);
    let item = anchor.item.map(|item| item.to_string());
    // A rule is an entry with fields; `redact` has fields with entries.
    match anchor.setting {
        "redact" => below(&path, field.into_iter().chain(item)),
        _ => below(&path, item.into_iter().chain(field)),
    }
}

fn below(path: &[String], more: impl IntoIterator<Item = String>) -> Vec<String> {
    path.iter().cloned().chain(more).collect()
}
