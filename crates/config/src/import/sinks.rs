//! Sinks and pipelines, as an import makes and prints them.

use std::collections::BTreeSet;

use super::document::{Map, Yaml};
use super::steps::{Step, merge};
use crate::model::Signal;

/// A destination before its pipelines are known.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    /// The kind of sink.
    pub(super) kind: &'static str,
    /// Its settings besides `type`, `signals`, `pipeline` and `when`.
    pub(super) settings: Map,
    /// The signals that this kind takes, of those that the original sends; written as `signals` if `has_signals`.
    pub(super) signals: Vec<Signal>,
    /// Whether the kind has the setting `signals`.
    pub(super) has_signals: bool,
}

/// One way on which a signal reaches a destination.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// The pipeline's name in the original.
    pub(super) name: String,
    pub(super) signal: Signal,
    pub(super) steps: Vec<Step>,
    pub(super) route: Route,
}

/// Which items take a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    All,
    /// Those that meet one of these conditions.
    When(Vec<String>),
    /// Those that meet none of these conditions, which are those of the other routes.
    Otherwise(Vec<String>),
}

/// The sinks and pipelines of a configuration.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) sinks: Map,
    /// Whether `otherwise: true` means the same as the conditions' opposite.
    pub(super) has_otherwise: bool,
    pipelines: Vec<(String, Vec<Step>)>,
    pipeline_names: BTreeSet<String>,
    names: BTreeSet<String>,
}

/// The signals in the order in which they are written.
pub(super) const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

/// The name of a signal in configurations.
pub(super) fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "traces",
        Signal::Metrics => "metrics",
        Signal::Logs => "logs",
        Signal::Profiles => "profiles",
    }
}

/// Ways that can share a sink.
struct Bucket {
    flows: Vec<Flow>,
    steps: Vec<Step>,
}

impl Output {
    /// Adds a sink for `destination`, or several where its ways have different steps or conditions.
    pub(super) fn add(&mut self, name: &str, destination: &Destination, flows: Vec<Flow>) {
        let mut buckets: Vec<Bucket> = Vec::new();
        for flow in flows.into_iter().filter(|flow| destination.signals.contains(&flow.signal)) {
            let joined = buckets.iter_mut().any(|bucket| bucket.joins(&flow));
            if !joined {
                buckets.push(Bucket { steps: flow.steps.clone(), flows: vec![flow] });
            }
        }
        let is_one = buckets.len() == 1;
        for bucket in &buckets {
            let wanted = match bucket.flows.as_slice() {
                [only] if !is_one => name_of(&format!("{name}-{}", only.name)),
                _ => name_of(name),
            };
            let sink = self.unique(wanted);
            let settings = self.sink(destination, bucket);
            self.sinks.set(&sink, settings);
        }
    }

    fn sink(&mut self, destination: &Destination, bucket: &Bucket) -> Map {
        let mut map = Map::default();
        map.set("type", destination.kind);
        match bucket.flows.first().map(|flow| &flow.route) {
            Some(Route::When(conditions)) => {
                map.set("when", Yaml::List(conditions.iter().map(|text| text.as_str().into()).collect()));
            }
            Some(Route::Otherwise(_)) if self.has_otherwise => map.set("otherwise", "true"),
            Some(Route::Otherwise(others)) => {
                let nots: Vec<String> = others.iter().map(|other| format!("not ({other})")).collect();
                map.set("when", Yaml::List(vec![nots.join(" and ").into()]));
            }
            Some(Route::All) | None => {}
        }
        if !bucket.steps.is_empty() {
            let pipeline = self.pipeline(bucket);
            map.set("pipeline", pipeline);
        }
        if destination.has_signals {
            let signals = SIGNALS.iter().filter(|signal| bucket.has(**signal));
            map.set("signals", Yaml::Flow(signals.map(|signal| signal_name(*signal).to_owned()).collect()));
        }
        map.append(&destination.settings);
        map
    }

    /// The name of a pipeline with these steps, shared with other sinks.
    fn pipeline(&mut self, bucket: &Bucket) -> String {
        let same = |steps: &[Step]| {
            steps.len() == bucket.steps.len()
                && steps.iter().zip(&bucket.steps).all(|(one, other)| one.equals(other))
        };
        if let Some((name, _)) = self.pipelines.iter().find(|(_, steps)| same(steps)) {
            return name.clone();
        }
        let names: BTreeSet<&str> = bucket.flows.iter().map(|flow| flow.name.as_str()).collect();
        let wanted = match names.len() {
            1 => names.first().map_or_else(String::new, |name| name_of(name)),
            _ => "main".to_owned(),
        };
        let name = numbered(&wanted, |name| self.pipeline_names.contains(name));
        self.pipeline_names.insert(name.clone());
        self.pipelines.push((name.clone(), bucket.steps.clone()));
        name
    }

    /// A name that no sink has yet.
    fn unique(&mut self, wanted: String) -> String {
        let name = numbered(&wanted, |name| self.names.contains(name));
        self.names.insert(name.clone());
        name
    }

    /// Writes `pipelines` and `sinks`.
    pub(super) fn write(self, configuration: &mut Map) {
        let mut pipelines = Map::default();
        for (name, steps) in &self.pipelines {
            let mut names: Vec<String> = Vec::new();
            let mut list = Vec::new();
            for step in steps {
                // Metrics tell steps apart by their names.
                let name = numbered(&name_of(&step.name), |name| names.iter().any(|taken| taken == name));
                list.push(Yaml::Map(step.settings(&name)));
                names.push(name);
            }
            let mut pipeline = Map::default();
            pipeline.set("steps", Yaml::List(list));
            pipelines.set(name, pipeline);
        }
        configuration.set_group("pipelines", pipelines);
        configuration.set_group("sinks", self.sinks);
    }
}

impl Bucket {
    fn has(&self, signal: Signal) -> bool {
        self.flows.iter().any(|flow| flow.signal == signal)
    }

    /// Takes `flow` in if one sink can serve it too.
    fn joins(&mut self, flow: &Flow) -> bool {
        if self.flows.first().is_some_and(|first| first.route != flow.route) {
            return false;
        }
        let is_same = |other: &Flow| {
            other.steps.len() == flow.steps.len()
                && other.steps.iter().zip(&flow.steps).all(|(one, other)| one.equals(other))
        };
        if let Some(other) = self.flows.iter().find(|other| other.signal == flow.signal) {
            // The same data on the same way: once is enough.
            return is_same(other);
        }
        let lists: Vec<(Signal, Vec<Step>)> =
            self.flows.iter().chain([flow]).map(|flow| (flow.signal, flow.steps.clone())).collect();
        let Some(steps) = merge(&lists) else { return false };
        self.steps = steps;
        self.flows.push(flow.clone());
        true
    }
}

/// `wanted`, or with a number behind it if that is taken.
pub(super) fn numbered(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    (2..).map(|number| format!("{wanted}-{number}")).find(|name| !is_taken(name)).unwrap_or_default()
}

/// A name of a component as a name of ours.
pub(super) fn name_of(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(allowed).take(56).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "sink".to_owned() } else { name.to_owned() }
}
