//! The pipelines of the configured sources, compiled.

use super::{KINDS, SourceKind};
use crate::gateway::sinks::pipelines::{meters, silent_steps};
use std::sync::Arc;
use tidegate_admission::{SourcePipeline, SourcePipelines};
use tidegate_arena::Reservation;
use tidegate_config::{self as config, Config};
use tidegate_journal::{Protocol, Signal};
use tidegate_pipeline::{Pipeline, StepKind};

/// The pipelines of sources, in the order of the sources. Those of sources without one are missing.
#[derive(Clone, Default)]
pub(crate) struct CompiledPipelines(Vec<CompiledPipeline>);

/// A source's pipeline, and the settings that it was compiled from.
#[derive(Clone)]
struct CompiledPipeline {
    kind: &'static SourceKind,
    settings: config::ConfiguredPipeline,
    source: Arc<SourcePipeline>,
}

impl CompiledPipelines {
    /// Those of `config`, which was checked: what does not compile was refused there.
    pub(crate) fn of(config: &Config) -> CompiledPipelines {
        let compiled = KINDS.iter().filter_map(|kind| {
            let settings = config.pipeline_of_source(kind.name)?;
            let (pipeline, _) = Pipeline::compile(&settings.definition).ok()?;
            let (silent, meters) = (silent_steps(&settings), meters(&settings));
            let source = Arc::new(SourcePipeline::new(kind.name, pipeline, silent, meters));
            Some(CompiledPipeline { kind, settings, source })
        });
        CompiledPipelines(compiled.collect())
    }

    /// These, but those of `running` where they are the same.
    pub(crate) fn keeping(&self, running: &CompiledPipelines) -> CompiledPipelines {
        let kept = self.0.iter().map(|new| {
            let same =
                |old: &&CompiledPipeline| old.kind.name == new.kind.name && old.settings == new.settings;
            running.0.iter().find(same).unwrap_or(new).clone()
        });
        CompiledPipelines(kept.collect())
    }

    /// As the gate takes them.
    pub(crate) fn all(&self) -> Vec<Arc<SourcePipeline>> {
        self.0.iter().map(|compiled| Arc::clone(&compiled.source)).collect()
    }

    /// The memory that `after` needs less for a run of each source, in bytes. What one source needs less is no memory of
    /// another that needs more: both may be in use at the same time.
    pub(crate) fn spared_bytes(&self, after: &CompiledPipelines) -> usize {
        let spared = |own: &CompiledPipeline| {
            let same = after.0.iter().find(|after| after.kind.name == own.kind.name);
            own.source.run_bytes().saturating_sub(same.map_or(0, |after| after.source.run_bytes()))
        };
        self.0.iter().map(spared).sum()
    }

    /// How many times a source of this kind holds a record in its pipeline; `None` where none reads it.
    pub(crate) fn copies(&self, kind: &SourceKind) -> Option<usize> {
        let compiled = self.0.iter().find(|compiled| compiled.kind.name == kind.name)?;
        let copies = |record: &(Protocol, Signal)| {
            let format = compiled.source.format(record.0, record.1)?;
            Some(tidegate_stage::copies(compiled.source.pipeline(), format))
        };
        kind.records.iter().filter_map(copies).max()
    }

    /// The lines of the plan for what they take beside payload where `workers` threads serve requests.
    pub(crate) fn declared(&self, workers: usize) -> impl Iterator<Item = Reservation> {
        let runs = SourcePipelines::runs(workers) as u64;
        self.0.iter().flat_map(move |CompiledPipeline { source, .. }| {
            let line = |what, count, each: usize| Reservation {
                owner: "source",
                what,
                count,
                each: each as u64,
                setting: None,
            };
            [
                // While a configuration is read again there is the old one, and the new one.
                line("a pipeline, and the one that takes its place", 2, source.pipeline().program_bytes()),
                line("a run of a pipeline", runs, source.run_bytes()),
            ]
        })
    }

    /// Warnings about items that are journalled unchanged although the author of a pipeline may expect otherwise: a
    /// sentence for each source.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = self.0.iter().filter_map(|CompiledPipeline { kind, settings, source }| {
            let relabels =
                settings.definition.steps.iter().any(|step| matches!(step.kind, StepKind::Relabel(_)));
            let receives = |protocol: Protocol, signal: Signal| kind.records.contains(&(protocol, signal));
            let unchanged: Vec<&str> = [
                ("OTLP metrics", Protocol::Otlp, Signal::Metrics, relabels),
                ("Prometheus remote write", Protocol::RemoteWrite1, Signal::Metrics, true),
            ]
            .into_iter()
            .filter(|(_, protocol, signal, is_worth_it)| {
                *is_worth_it && receives(*protocol, *signal) && source.format(*protocol, *signal).is_none()
            })
            .map(|(words, ..)| words)
            // Nothing applies to profiles, whatever the pipeline is.
            .chain(receives(Protocol::Otlp, Signal::Traces).then_some("profiles"))
            .collect();
            let (name, list) = (kind.name, unchanged.join(", "));
            (!unchanged.is_empty()).then(|| {
                format!("`sources.{name}`: these pass its pipeline unchanged, and are journalled so: {list}")
            })
        });
        notes.collect()
    }
}
