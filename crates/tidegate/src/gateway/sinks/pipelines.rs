//! The pipelines of the configured sinks, compiled.

use super::journal_signal;
use super::routing::{Routing, RoutingHistory};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, Config, Name};
use tidegate_journal::{Protocol, Signal};
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, StepDefinition, StepKind};
use tidegate_sinks::{EarlierPipeline, PipelineMeters, SharedSampler, Signals, SinkPipeline, StepMeters};
use tidegate_trace_sampling::{NamedPolicy, Policies, Policy};

/// The pipelines by the names of their sinks. Those of sinks without one are missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct SinkPipelines(Arc<BTreeMap<Name, CompiledPipeline>>);

/// A sink's pipeline, and the settings that it was compiled from.
#[derive(Debug)]
struct CompiledPipeline {
    settings: config::ConfiguredPipeline,
    sink: SinkPipeline,
    /// Those for queued records of periods in which the sink took other items, by the number of the period.
    earlier: Vec<(u64, Arc<Pipeline>, usize)>,
    sampling: Option<CompiledSampling>,
}

/// The sampling of a sink's traces.
#[derive(Debug, Clone)]
pub(crate) struct CompiledSampling {
    /// The steps that select what the sink takes, and the one that watches traces.
    pub(crate) watch: Arc<Pipeline>,
    /// Those for queued records of periods in which the sink took other items, by the number of the period.
    earlier: Vec<(u64, Arc<Pipeline>)>,
    /// Counters of the step that watches.
    pub(crate) meters: PipelineMeters,
    pub(crate) settings: tidegate_trace_sampling::Settings,
    pub(crate) version: u32,
    /// The policies, in their order.
    pub(crate) policies: Vec<ShownPolicy>,
    /// The sampler, while the sink runs.
    pub(crate) shared: SharedSampler,
}

/// A policy, for those who look at what it decides.
#[derive(Debug, Clone)]
pub(crate) struct ShownPolicy {
    pub(crate) name: String,
    /// Whether it drops what it decides about.
    pub(crate) drops: bool,
}

impl ShownPolicy {
    /// Its decision, in a word.
    pub(crate) fn decision(&self) -> &'static str {
        if self.drops { "dropped" } else { "kept" }
    }
}

impl SinkPipelines {
    /// Those of `config`, which was checked: what does not compile was refused there. `history` is the routing of what is queued.
    pub(crate) fn of(config: &Config, history: &RoutingHistory) -> SinkPipelines {
        let routings = routings(config);
        let compiled = config.sinks.keys().filter_map(|name| {
            let settings = config.pipeline_of(name).unwrap_or_else(no_steps);
            let earlier = earlier(&settings, (&routings, name.as_str()), history);
            if settings.labels.is_empty() && earlier.is_empty() {
                return None;
            }
            let (sink, sampling) = (compiled(&settings)?, sampling(&settings));
            let sampling = sampling.map(|it| it.with_earlier(&settings, (&routings, name.as_str()), history));
            Some((name.clone(), CompiledPipeline { sink, settings, earlier, sampling }))
        });
        SinkPipelines(Arc::new(compiled.collect()))
    }

    /// These, with pipelines for what is queued by `history`, which may have changed since they were compiled. `sinks` are all sinks
    /// of their configuration.
    pub(crate) fn with_earlier_of<'a>(
        &self,
        sinks: impl Iterator<Item = &'a Name> + Clone,
        history: &RoutingHistory,
    ) -> SinkPipelines {
        let routings = self.routings(sinks.clone());
        let pipelines = sinks.filter_map(|name| {
            let known = self.compiled(name.as_str());
            let settings = known.map_or_else(no_steps, |known| known.settings.clone());
            let earlier = earlier(&settings, (&routings, name.as_str()), history);
            if known.is_none() && earlier.is_empty() {
                return None;
            }
            let sink = known.map(|known| known.sink.clone()).or_else(|| compiled(&settings))?;
            let sampling = known.and_then(|known| known.sampling.clone());
            let sampling = sampling.map(|it| it.with_earlier(&settings, (&routings, name.as_str()), history));
            Some((name.clone(), CompiledPipeline { settings, sink, earlier, sampling }))
        });
        SinkPipelines(Arc::new(pipelines.collect()))
    }

    /// The pipeline of the sink `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&SinkPipeline> {
        self.compiled(name).map(|compiled| &compiled.sink)
    }

    /// The sampling of the sink `name`.
    pub(crate) fn sampling(&self, name: &str) -> Option<&CompiledSampling> {
        self.compiled(name)?.sampling.as_ref()
    }

    /// How many sinks sample traces: each has a reader beside it.
    pub(crate) fn samplers(&self) -> u64 {
        self.0.values().filter(|compiled| compiled.sampling.is_some()).count() as u64
    }

    /// Whether the sink `name` has the same pipeline in `other`.
    pub(crate) fn is_same_in(&self, other: &SinkPipelines, name: &str) -> bool {
        let settings = |of: &SinkPipelines| {
            let compiled = of.compiled(name).filter(|compiled| !compiled.settings.labels.is_empty());
            compiled.map(|compiled| compiled.settings.clone())
        };
        settings(self) == settings(other)
    }

    /// These, with the meters of `old` for pipelines that are the same.
    pub(crate) fn with_meters_of(&self, old: &SinkPipelines) -> SinkPipelines {
        let compiled = self.0.iter().map(|(name, compiled)| {
            let mut sink = compiled.sink.clone();
            if let Some(before) = old.get(name.as_str()).filter(|_| self.is_same_in(old, name.as_str())) {
                sink.meters = before.meters.clone();
            }
            let (settings, earlier) = (compiled.settings.clone(), compiled.earlier.clone());
            let sampling = compiled.sampling.clone();
            (name.clone(), CompiledPipeline { settings, sink, earlier, sampling })
        });
        SinkPipelines(Arc::new(compiled.collect()))
    }

    /// How these route items: for each of `sinks`.
    pub(crate) fn routings<'a>(&self, sinks: impl Iterator<Item = &'a Name>) -> BTreeMap<String, Routing> {
        let of = |name: &Name| {
            let settings = self.compiled(name.as_str()).map(|compiled| &compiled.settings);
            let steps = settings.and_then(|it| it.definition.steps.get(..it.routing));
            (name.to_string(), Routing::of(steps.unwrap_or_default()))
        };
        sinks.map(of).collect()
    }

    /// How many times the sink `name` holds a record of this protocol and signal in its pipeline; `None` where that does not
    /// read it.
    pub(crate) fn copies(&self, name: &str, protocol: Protocol, signal: Signal) -> Option<usize> {
        let CompiledPipeline { sink, earlier, .. } = self.compiled(name)?;
        let of_earlier = earlier.iter().filter_map(|(_, pipeline, _)| {
            SinkPipeline { pipeline: Arc::clone(pipeline), ..sink.clone() }.copies(protocol, signal)
        });
        sink.copies(protocol, signal).into_iter().chain(of_earlier).max()
    }

    /// The pipelines of the sink `name` for queued records of earlier periods.
    pub(crate) fn earlier(&self, name: &str, history: &RoutingHistory) -> Vec<EarlierPipeline> {
        let earlier = self.compiled(name).into_iter().flat_map(|compiled| &compiled.earlier);
        let of = |(number, pipeline, routing): &(u64, Arc<Pipeline>, usize)| {
            let (from, to) = history.bounds(*number)?;
            Some(EarlierPipeline { records: from..to, pipeline: Arc::clone(pipeline), routing: *routing })
        };
        earlier.filter_map(of).collect()
    }

    /// The lines of the plan for what they take beside payload.
    pub(crate) fn declared(&self) -> impl Iterator<Item = Reservation> {
        self.0.values().flat_map(|CompiledPipeline { sink, earlier, sampling, .. }| {
            let of_earlier = |bytes: fn(&Pipeline) -> usize| {
                earlier.iter().map(|(_, pipeline, _)| bytes(pipeline)).sum::<usize>()
            };
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
                line(
                    "pipelines for records that were routed otherwise, and those that take their place",
                    2,
                    of_earlier(Pipeline::program_bytes),
                ),
                line(
                    "working memory of pipelines for these records",
                    1,
                    of_earlier(Pipeline::workspace_bytes),
                ),
                line(
                    "policies about traces, and those that take their place",
                    2,
                    sampling.as_ref().map_or(0, |it| it.step_bytes().0),
                ),
                line(
                    "traces that are not decided, and decisions: `sample.tail` with `max_traces` and `max_decisions`",
                    1,
                    sampling.as_ref().map_or(0, |it| it.settings.bytes() + it.step_bytes().1),
                ),
            ]
            .into_iter()
            .filter(|line| line.each > 0)
        })
    }

    /// The sum of [`declared`](Self::declared).
    pub(crate) fn bytes(&self) -> u64 {
        self.declared().map(|line| line.bytes()).sum()
    }

    /// Warnings about items that pass the pipelines unchanged although their authors may expect otherwise: a sentence
    /// for each sink.
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

/// How `config` routes items: for each sink.
pub(crate) fn routings(config: &Config) -> BTreeMap<String, Routing> {
    let of = |name: &Name| {
        let settings = config.pipeline_of(name);
        let steps = settings.as_ref().and_then(|it| it.definition.steps.get(..it.routing));
        (name.to_string(), Routing::of(steps.unwrap_or_default()))
    };
    config.sinks.keys().map(of).collect()
}

impl CompiledSampling {
    /// The same, with steps for what is queued of other periods.
    fn with_earlier(
        self,
        settings: &config::ConfiguredPipeline,
        (routings, name): (&BTreeMap<String, Routing>, &str),
        history: &RoutingHistory,
    ) -> CompiledSampling {
        let tests = settings.sampling.as_ref().map_or(&[][..], |sampling| &sampling.tests);
        let earlier = history.earlier(routings, name).filter_map(|(number, mut steps)| {
            steps.push(watching(tests));
            let (watch, _) = Pipeline::compile(&Definition { steps }).ok()?;
            Some((number, Arc::new(watch)))
        });
        CompiledSampling { earlier: earlier.collect(), ..self }
    }

    /// The steps for queued records of earlier periods, by their sequences.
    pub(crate) fn earlier(&self, history: &RoutingHistory) -> Vec<(Range<u64>, Arc<Pipeline>)> {
        let of = |(number, watch): &(u64, Arc<Pipeline>)| {
            let (from, to) = history.bounds(*number)?;
            Some((from..to, Arc::clone(watch)))
        };
        self.earlier.iter().filter_map(of).collect()
    }

    /// The bytes of its steps, and of what they work in.
    fn step_bytes(&self) -> (usize, usize) {
        let all = || self.earlier.iter().map(|(_, watch)| watch).chain([&self.watch]);
        (all().map(|it| it.program_bytes()).sum(), all().map(|it| it.workspace_bytes()).sum())
    }
}

/// The step that watches traces.
fn watching(tests: &[tidegate_pipeline::SpanTest]) -> StepDefinition {
    let kind = StepKind::WatchTraces(tests.to_vec());
    StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }
}

/// The settings of a sink without a pipeline.
fn no_steps() -> config::ConfiguredPipeline {
    config::ConfiguredPipeline::default()
}

/// The sampling of a sink with these settings, which were checked.
fn sampling(settings: &config::ConfiguredPipeline) -> Option<CompiledSampling> {
    let config::ConfiguredSampling {
        wait_ms, after_root_ms, max_traces, max_decisions, policies, tests, ..
    } = settings.sampling.as_ref()?;
    let mut steps = settings.definition.steps.get(..settings.routing)?.to_vec();
    let watching = watching(tests);
    let meters = StepMeters::new(String::new(), "policies".to_owned(), watching.parts());
    let meters = PipelineMeters::new(vec![meters]);
    steps.push(watching);
    let (watch, _) = Pipeline::compile(&Definition { steps }).ok()?;
    let version = watch.fingerprint(format!("{policies:?}").as_bytes()) as u32;
    Some(CompiledSampling {
        watch: Arc::new(watch),
        earlier: Vec::new(),
        meters,
        settings: tidegate_trace_sampling::Settings {
            wait_ms: *wait_ms,
            after_root_ms: *after_root_ms,
            max_traces: *max_traces,
            max_decisions: *max_decisions,
            policies: Policies::new(policies.iter().map(|policy| &policy.policy))?,
        },
        version,
        policies: policies
            .iter()
            .map(|NamedPolicy { name, policy }| ShownPolicy {
                name: name.clone(),
                drops: matches!(policy, Policy::Drop(_)),
            })
            .collect(),
        shared: SharedSampler::default(),
    })
}

fn compiled(settings: &config::ConfiguredPipeline) -> Option<SinkPipeline> {
    let (pipeline, _) = Pipeline::compile(&settings.definition).ok()?;
    Some(SinkPipeline {
        pipeline: Arc::new(pipeline),
        routing: settings.routing,
        silent: silent_steps(settings),
        meters: meters(settings),
        // Known when the sink starts.
        capacities: Vec::new(),
        earlier: Vec::new(),
        sampling: None,
    })
}

/// The pipelines of the sink `name` for the periods in which it was routed otherwise.
fn earlier(
    settings: &config::ConfiguredPipeline,
    (routings, name): (&BTreeMap<String, Routing>, &str),
    history: &RoutingHistory,
) -> Vec<(u64, Arc<Pipeline>, usize)> {
    let compiled = history.earlier(routings, name).filter_map(|(number, steps)| {
        let (pipeline, routing) = routed(settings, steps)?;
        Some((number, Arc::new(pipeline), routing))
    });
    compiled.collect()
}

/// A sink's pipeline that selects with these steps, and how many they are. None where this version does not compile the conditions
/// any more: what is queued is routed by the current ones then.
fn routed(
    settings: &config::ConfiguredPipeline,
    mut steps: Vec<StepDefinition>,
) -> Option<(Pipeline, usize)> {
    let count = steps.len();
    steps.extend_from_slice(settings.definition.steps.get(settings.routing..)?);
    let (pipeline, _) = Pipeline::compile(&Definition { steps }).ok()?;
    Some((pipeline, count))
}

/// The positions of the steps whose failures are not logged.
pub(crate) fn silent_steps(settings: &config::ConfiguredPipeline) -> Vec<usize> {
    let steps = settings.definition.steps.iter().enumerate();
    let silent = steps.filter(|(_, step)| step.on_error == ErrorMode::Silent);
    silent.map(|(position, _)| position).collect()
}

/// Meters of all steps of a pipeline.
pub(crate) fn meters(settings: &config::ConfiguredPipeline) -> PipelineMeters {
    let steps = settings.definition.steps.iter().zip(&settings.labels);
    let meters =
        steps.map(|(step, label)| StepMeters::new(label.pipeline.clone(), label.step.clone(), step.parts()));
    PipelineMeters::new(meters.collect())
}
