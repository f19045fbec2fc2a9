//! The ways through a Collector: from receivers over processors and connectors to exporters.

use std::collections::BTreeMap;
use std::ops::Range;

use super::components::Section;
use super::exporters::is_known;
use super::processors::Processed;
use super::routing::Routes;
use super::{Collector, type_of};
use crate::import::group::{FileReader, Text};
use crate::import::sinks::{Destination, Flow, Route, signal_name};
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;

/// A pipeline of the service.
#[derive(Debug)]
pub(super) struct ServicePipeline {
    pub(super) name: String,
    pub(super) at: Range<usize>,
    pub(super) signal: Signal,
    pub(super) receivers: Vec<Text>,
    pub(super) processors: Vec<Text>,
    pub(super) exporters: Vec<Text>,
}

/// All ways, by exporter.
pub(super) struct Graph {
    flows: Vec<(Text, Flow, Vec<String>)>,
}

/// The state of a walk through the pipelines.
struct Walk<'g> {
    pipelines: &'g [ServicePipeline],
    processed: BTreeMap<String, Processed>,
    routes: BTreeMap<String, Routes>,
    connectors: Vec<String>,
    flows: Vec<(Text, Flow, Vec<String>)>,
    /// How many pipelines were gone through, on all ways.
    passed: usize,
}

/// The most pipelines to go through: connectors can multiply the ways.
const MOST_PASSED: usize = 10_000;

impl Graph {
    /// Follows all ways through `pipelines`.
    pub(super) fn build(
        collector: &mut Collector<'_>,
        pipelines: Vec<ServicePipeline>,
        reader: &mut FileReader<'_, '_>,
    ) -> Graph {
        let mut walk = Walk {
            pipelines: &pipelines,
            processed: BTreeMap::new(),
            routes: BTreeMap::new(),
            connectors: Vec::new(),
            flows: Vec::new(),
            passed: 0,
        };
        walk.prepare(collector, reader);
        for pipeline in &pipelines {
            let own: Vec<String> = pipeline
                .receivers
                .iter()
                .filter(|receiver| !walk.connectors.contains(&receiver.value))
                .map(|receiver| receiver.value.clone())
                .collect();
            if !own.is_empty() {
                walk.follow(pipeline, &[], &Route::All, &own, &mut Vec::new());
            }
        }
        if walk.passed > MOST_PASSED {
            let message = format!("there are more than {MOST_PASSED} ways from receivers to exporters");
            reader.error(&(0..0), message, "join pipelines, or convert a part of the configuration");
        }
        Graph { flows: walk.flows }
    }
}

impl Walk<'_> {
    /// Converts every component that a pipeline names, each once, in the order of the pipelines.
    fn prepare(&mut self, collector: &mut Collector<'_>, reader: &mut FileReader<'_, '_>) {
        let mut receivers: Vec<String> = Vec::new();
        for pipeline in self.pipelines {
            if pipeline.signal == Signal::Profiles {
                let message = "pipelines do not change profiles; they are passed on as they are";
                reader.note(&pipeline.at, &format!("service.pipelines.{}", pipeline.name), message);
            }
            let exits = pipeline.exporters.iter().map(|exporter| (exporter, Section::Exporters));
            let entrances = pipeline.receivers.iter().map(|receiver| (receiver, Section::Receivers));
            for (name, section) in entrances.chain(exits) {
                if self.connectors.contains(&name.value) {
                    continue;
                }
                if let Some(entry) = collector.components.find(Section::Connectors, &name.value) {
                    self.connectors.push(name.value.clone());
                    if let Some(routes) = collector.connector(entry, reader) {
                        self.routes.insert(name.value.clone(), routes);
                    }
                    continue;
                }
                match collector.components.find(section, &name.value) {
                    None => collector.components.refuse(section, name, reader),
                    Some(entry) if section == Section::Receivers && !receivers.contains(&name.value) => {
                        receivers.push(name.value.clone());
                        collector.receiver(entry, reader);
                    }
                    Some(_) => {}
                }
            }
            for name in &pipeline.processors {
                if self.processed.contains_key(&name.value) {
                    continue;
                }
                match collector.components.find(Section::Processors, &name.value) {
                    Some(entry) => {
                        let has = |pipeline: &&ServicePipeline| {
                            pipeline.processors.iter().any(|processor| processor.value == name.value)
                        };
                        let signals: Vec<Signal> =
                            self.pipelines.iter().filter(has).map(|pipeline| pipeline.signal).collect();
                        let processed = collector.processor(entry, &signals, reader);
                        self.processed.insert(name.value.clone(), processed);
                    }
                    None => collector.components.refuse(Section::Processors, name, reader),
                }
            }
        }
    }

    fn follow(
        &mut self,
        pipeline: &ServicePipeline,
        before: &[Step],
        route: &Route,
        receivers: &[String],
        visited: &mut Vec<String>,
    ) {
        self.passed += 1;
        if visited.contains(&pipeline.name) || self.passed > MOST_PASSED {
            return;
        }
        visited.push(pipeline.name.clone());
        let mut steps = before.to_vec();
        for name in &pipeline.processors {
            if let Some(processed) = self.processed.get(&name.value) {
                steps.extend(processed.of(pipeline.signal).iter().cloned());
            }
        }
        for exporter in &pipeline.exporters {
            if !self.connectors.contains(&exporter.value) {
                let flow = Flow {
                    name: pipeline.name.clone(),
                    signal: pipeline.signal,
                    steps: steps.clone(),
                    route: route.clone(),
                };
                self.flows.push((exporter.clone(), flow, receivers.to_vec()));
                continue;
            }
            let pipelines = self.pipelines;
            let fed = pipelines.iter().filter(|next| {
                next.signal == pipeline.signal
                    && next.receivers.iter().any(|name| name.value == exporter.value)
            });
            for next in fed {
                let Some(routes) = self.routes.get(&exporter.value) else { continue };
                let Some(onward) = routes.to(&next.name) else { continue };
                let (steps, route) = joined(&steps, route, onward, &exporter.value);
                self.follow(next, &steps, &route, receivers, visited);
            }
        }
        visited.pop();
    }
}

impl Graph {
    /// Whether the sinks with conditions have those of one table, all of them, so that what they leave is what none of
    /// its conditions holds for.
    fn has_otherwise(&self) -> bool {
        let routes = self.flows.iter().filter(|(exporter, ..)| is_known(type_of(&exporter.value)));
        let routes: Vec<&Route> = routes.map(|(_, flow, _)| &flow.route).collect();
        let mut tables: Vec<&Vec<String>> = Vec::new();
        let mut conditions: Vec<&String> = Vec::new();
        for route in routes {
            match route {
                Route::Otherwise(others) if !tables.contains(&others) => tables.push(others),
                Route::When(when) => conditions.extend(when),
                Route::Otherwise(_) | Route::All => {}
            }
        }
        let is_of = |condition: &str, other: &str| {
            condition == other || condition.starts_with(&format!("({other}) and not ("))
        };
        let [table] = tables.as_slice() else { return false };
        table.iter().all(|other| conditions.iter().any(|condition| is_of(condition, other)))
            && conditions.iter().all(|condition| table.iter().any(|other| is_of(condition, other)))
    }
}

/// The steps and the condition behind a connector. A sink's condition is looked at before its steps, so one that comes
/// behind steps has to be a step itself.
fn joined(steps: &[Step], before: &Route, onward: Route, connector: &str) -> (Vec<Step>, Route) {
    match (before, onward) {
        (Route::All, onward) if steps.is_empty() => (Vec::new(), onward),
        (_, onward) => {
            let kind = match onward {
                Route::When(conditions) => StepKind::Keep(conditions),
                Route::Otherwise(others) => StepKind::Drop(others),
                Route::All => return (steps.to_vec(), before.clone()),
            };
            let mut steps = steps.to_vec();
            steps.push(Step::new(connector, kind));
            (steps, before.clone())
        }
    }
}

impl Collector<'_> {
    /// Makes the sinks.
    pub(super) fn sinks(&mut self, graph: &Graph, reader: &mut FileReader<'_, '_>) {
        self.output.has_otherwise = graph.has_otherwise();
        let mut done: Vec<&str> = Vec::new();
        for (exporter, ..) in &graph.flows {
            if done.contains(&exporter.value.as_str()) {
                continue;
            }
            done.push(&exporter.value);
            let ways: Vec<_> = graph.flows.iter().filter(|(name, ..)| name.value == exporter.value).collect();
            same_data_twice(&ways, exporter, reader);
            let Some(entry) = self.components.find(Section::Exporters, &exporter.value) else { continue };
            let destinations = self.exporter(entry, reader);
            let is_reached = |destination: &&Destination| {
                ways.iter().any(|(_, flow, _)| destination.signals.contains(&flow.signal))
            };
            let reached: Vec<&Destination> = destinations.iter().filter(is_reached).collect();
            for destination in &reached {
                let flows: Vec<Flow> = ways.iter().map(|(_, flow, _)| flow.clone()).collect();
                let name = match destination.signals.as_slice() {
                    [signal] if reached.len() > 1 => format!("{}-{}", exporter.value, signal_name(*signal)),
                    _ => exporter.value.clone(),
                };
                self.output.add(&name, destination, flows);
            }
        }
        if graph.flows.is_empty() {
            let message = "no receiver's data reaches an exporter; tidegate would store everything in a lake";
            reader.note(&(0..0), "service.pipelines", message);
        }
    }
}

/// Pipelines that were told apart by their receivers are not here: every sink gets the data of all sources.
fn same_data_twice(ways: &[&(Text, Flow, Vec<String>)], exporter: &Text, reader: &mut FileReader<'_, '_>) {
    for (index, (_, flow, receivers)) in ways.iter().enumerate() {
        let twin = ways.iter().take(index).find(|(_, other, others)| {
            other.signal == flow.signal && other.name != flow.name && others != receivers
        });
        if let Some((_, other, _)) = twin {
            let message = format!(
                "the pipelines `{}` and `{}` have {} of different receivers; in tidegate every sink gets the data of \
                 all sources: tell them apart with `when`",
                other.name,
                flow.name,
                signal_name(flow.signal)
            );
            reader.note(&exporter.at, &format!("exporters.{}", exporter.value), message);
        }
    }
}
