//! The pipelines of the configured sinks, compiled.

use super::journal_signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, Config, Name};
use tidegate_journal::{Protocol, Signal};
use tidegate_pipeline::{ErrorMode, Pipeline, StepKind};
use tidegate_sinks::{PipelineMeters, Signals, SinkPipeline, StepMeters};

/// The pipelines by the names of their sinks. Those of sinks without one are missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkPipelines(Arc<BTreeMap<Name, CompiledPipeline>>);

/// A sink's pipeline, and the settings that it was compiled from.
#[derive(Debug)]
struct CompiledPipeline {
    settings: config::SinkPipeline,
    sink: SinkPipeline,
}

impl SinkPipelines {
    /// Those of `config`, which was checked: what does not compile was refused there.
    pub(crate) fn of(config: &Config) -> SinkPipelines {
        let compiled = config.sinks.keys().filter_map(|name| {
            let settings = config.pipeline_of(name)?;
            let (pipeline, _) = Pipeline::compile(&settings.definition).ok()?;
            let steps = settings.definition.steps.iter();
            let silent = steps.enumerate().filter(|(_, step)| step.on_error == ErrorMode::Silent);
            let sink = SinkPipeline {
                pipeline: Arc::new(pipeline),
                routing: settings.routing,
                silent: silent.map(|(position, _)| position).collect(),
                meters: meters(&settings),
                // Known when the sink starts.
                capacities: Vec::new(),
            };
            Some((name.clone(), CompiledPipeline { settings, sink }))
        });
        SinkPipelines(Arc::new(compiled.collect()))
    }

    /// The pipeline of the sink `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&SinkPipeline> {
        self.compiled(name).map(|compiled| &compiled.sink)
    }

    /// Whether the sink `name` has the same pipeline in `other`.
    pub(crate) fn is_same_in(&self, other: &SinkPipelines, name: &str) -> bool {
        let settings = |of: &SinkPipelines| of.compiled(name).map(|compiled| compiled.settings.clone());
        settings(self) == settings(other)
    }

    /// Whether the sinks take what they take in `other`, by `when` and `otherwise`.
    pub(crate) fn routes_as(&self, other: &SinkPipelines) -> bool {
        let routes = |of: &SinkPipelines| -> Vec<_> {
            let routed = of.0.iter().filter(|(_, compiled)| compiled.settings.routing > 0);
            let steps = |it: &config::SinkPipeline| it.definition.steps.get(..it.routing).map(<[_]>::to_vec);
            routed.map(|(name, compiled)| (name.clone(), steps(&compiled.settings))).collect()
        };
        routes(self) == routes(other)
    }

    /// These, with the meters of `old` for pipelines that are the same.
    pub(crate) fn with_meters_of(&self, old: &SinkPipelines) -> SinkPipelines {
        let compiled = self.0.iter().map(|(name, compiled)| {
            let mut sink = compiled.sink.clone();
            if let Some(before) = old.get(name.as_str()).filter(|_| self.is_same_in(old, name.as_str())) {
                sink.meters = before.meters.clone();
            }
            (name.clone(), CompiledPipeline { settings: compiled.settings.clone(), sink })
        });
        SinkPipelines(Arc::new(compiled.collect()))
    }

    /// The lines of the plan for what they take beside payload.
    pub(crate) fn declared(&self) -> impl Iterator<Item = Reservation> {
        self.0.values().flat_map(|CompiledPipeline { sink, .. }| {
            let line = |what, count, each: usize| Reservation {
                owner: "sink",
                what,
                count,
                each: each as u64,
                setting: None,
            };
            [
                // While a configuration is read again there is the old one, and the new one.
                line("a pipeline, and the one that takes its place", 2, sink.pipeline.program_bytes()),
                line("working memory of a pipeline", 1, SinkPipeline::working_bytes(&sink.pipeline)),
            ]
        })
    }

    /// What passes the pipelines unchanged although their authors may expect otherwise: a sentence for each sink.
    pub(crate) fn notes(&self, config: &Config) -> Vec<String> {
        let sinks =
            self.0.iter().filter_map(|(name, compiled)| Some((name, compiled, config.sinks.get(name)?)));
        let notes = sinks.filter_map(|(name, compiled, sink)| {
            let signals: Signals = sink.signals().iter().map(journal_signal).collect();
            let relabels = compiled.settings.definition.steps.iter();
            let relabels = relabels.into_iter().any(|step| matches!(step.kind, StepKind::Relabel(_)));
            // That sink relabels what it translates OTLP to.
            let has_series = matches!(sink, config::Sink::PrometheusRemoteWrite(_));
            let unchanged: Vec<&str> = [
                ("OTLP metrics", Protocol::Otlp, Signal::Metrics, relabels && !has_series),
                ("Prometheus remote write", Protocol::RemoteWrite1, Signal::Metrics, true),
                ("Elastic APM events", Protocol::Intake, Signal::Events, !has_series),
                ("documents of `_bulk`", Protocol::Bulk, Signal::Logs, true),
            ]
            .into_iter()
            .filter(|(_, protocol, signal, is_worth_it)| {
                *is_worth_it && signals.take(*protocol, *signal) && !compiled.sink.applies(*protocol, *signal)
            })
            .map(|(words, ..)| words)
            .collect();
            let list = unchanged.join(", ");
            (!unchanged.is_empty())
                .then(|| format!("`sinks.{name}`: these pass its pipeline unchanged: {list}"))
        });
        notes.collect()
    }

    fn compiled(&self, name: &str) -> Option<&CompiledPipeline> {
        self.0.iter().find_map(|(known, compiled)| (known.as_str() == name).then_some(compiled))
    }
}

/// Meters of all steps of a pipeline.
fn meters(settings: &config::SinkPipeline) -> PipelineMeters {
    let steps = settings.definition.steps.iter().zip(&settings.labels);
    let meters =
        steps.map(|(step, label)| StepMeters::new(label.pipeline.clone(), label.step.clone(), step.parts()));
    PipelineMeters::new(meters.collect())
}
