//! Outputs: sinks.

mod client;
mod elasticsearch;
mod filter_steps;
mod http;
mod loki;
mod splunk;

use super::plugin::{Lacking, Plugin};
use super::section::{Section, SectionKind};
use super::tags::{Mark, Origin, Selected, Selector, either};
use super::{FluentBit, Marker, known};
use crate::error::quote;
use crate::import::document::Map;
use crate::import::ottl;
use crate::import::sinks::{Destination, Flow, Route, SIGNALS, signal_name};
use crate::import::steps::{self, Step};
use crate::model::Signal;

/// Properties that all outputs have.
const COMMON: &Lacking = &[
    ("log_level", "not needed: `--log` of `tidegate run` says what is logged"),
    ("log_suppress_interval", "not needed: repeated lines of the log are suppressed"),
    (
        "retry_limit",
        "items are retried until they are delivered or refused for good; `journal.quota` bounds what waits",
    ),
    ("storage.total_limit_size", "`journal.quota` bounds what waits for all sinks together"),
];

/// A sink before it is known which records it gets.
pub(super) struct Target {
    pub(super) kind: &'static str,
    pub(super) settings: Map,
    pub(super) signals: &'static [Signal],
    pub(super) has_signals: bool,
    /// Steps behind those of the filters.
    pub(super) steps: Vec<Step>,
}

impl Target {
    fn logs(kind: &'static str, settings: Map, has_signals: bool) -> Target {
        Target { kind, settings, signals: &[Signal::Logs], has_signals, steps: Vec::new() }
    }
}

impl FluentBit {
    pub(super) fn output(&mut self, section: &Section) {
        let Some(mut plugin) = Plugin::new(section, &mut self.report) else { return };
        // A sink has the name of the plugin otherwise.
        let alias = plugin.text("alias", &self.report).map(|alias| alias.text);
        plugin.lacks(COMMON, &mut self.report);
        let Some(selector) = Selector::read(&mut plugin, &mut self.report) else {
            let message = format!("an output {} has no `match`", quote(&plugin.name));
            return self.report.error(plugin.file(), plugin.at(), message, "add `Match *`");
        };
        let target = match plugin.name.as_str() {
            "es" | "opensearch" => elasticsearch::target(&mut plugin, &mut self.report),
            "loki" => loki::target(&mut plugin, &mut self.report),
            "splunk" => splunk::target(&mut plugin, &mut self.report),
            "http" => http::json(&mut plugin, &mut self.report),
            "opentelemetry" => http::opentelemetry(&mut plugin, &mut self.report),
            "prometheus_remote_write" => http::remote_write(&mut plugin, &mut self.report),
            "stdout" | "null" | "counter" | "flowcounter" | "exit" => {
                if plugin.name != "null" {
                    let message = "a sink that discards everything; `tidegate tap` shows what passes a source or a sink";
                    plugin.note(message, &mut self.report);
                }
                plugin.take_all();
                let settings = Map::default();
                Target {
                    kind: "blackhole",
                    settings,
                    signals: &SIGNALS,
                    has_signals: true,
                    steps: Vec::new(),
                }
            }
            _ => return known::unknown(SectionKind::Output, &plugin, &mut self.report),
        };
        plugin.finish(client::KNOWN, &mut self.report);
        super::filters::note_refused(&plugin, &target.steps, &mut self.report);
        let name = alias.unwrap_or_else(|| plugin.name.clone());
        self.connect(&plugin, &name, target, &selector);
    }

    /// Gives a sink the records that the output took.
    fn connect(&mut self, plugin: &Plugin<'_>, name: &str, target: Target, selector: &Selector) {
        let all: Vec<(usize, &Origin)> = self
            .origins
            .iter()
            .enumerate()
            .filter(|(_, origin)| origin.signals.iter().any(|signal| target.signals.contains(signal)))
            .collect();
        let end = usize::MAX - 1;
        let taken: Vec<(usize, &Origin)> =
            all.iter().copied().filter(|one| selector.of(&[*one], end) != Selected::None).collect();
        if taken.is_empty() {
            let message = "left out: no input's records reach it";
            return plugin.note(message, &mut self.report);
        }
        let (steps, looks_at_tags) = self.steps_of(&taken, &target);
        self.needs_tags |= looks_at_tags;
        // Of each signal, since conditions on logs say nothing about others.
        let mut routes: Vec<(Route, Vec<Signal>)> = Vec::new();
        for signal in SIGNALS.into_iter().filter(|signal| target.signals.contains(signal)) {
            let of: Vec<(usize, &Origin)> =
                all.iter().copied().filter(|(_, origin)| origin.signals.contains(&signal)).collect();
            let selected = if of.is_empty() { Selected::None } else { selector.of(&of, end) };
            let Some(route) = route(selected) else { continue };
            match routes.iter_mut().find(|(other, _)| *other == route) {
                Some((_, signals)) => signals.push(signal),
                None => routes.push((route, vec![signal])),
            }
        }
        self.needs_tags |= routes.iter().any(|(route, _)| *route != Route::All);
        for condition in routes.iter().flat_map(|(route, _)| match route {
            Route::When(conditions) => conditions.clone(),
            _ => Vec::new(),
        }) {
            if let Some((text, reason)) = steps::refused(condition, tidegate_pipeline::StepKind::Drop) {
                plugin.note(format!("to be corrected in {}: {reason}", quote(&text)), &mut self.report);
            }
        }
        let signals: Vec<Signal> = routes.iter().flat_map(|(_, signals)| signals.clone()).collect();
        // Pipelines and conditions do not apply to what these receive.
        let is_stray = |(index, origin): &(usize, &Origin)| {
            self.markers.get(*index) == Some(&Marker::Never)
                && origin.signals.iter().any(|signal| signals.contains(signal))
                && !taken.iter().any(|(other, _)| other == index)
        };
        let strays = all.iter().any(is_stray);
        let is_vague = selector.is_vague(&all, end);
        let has_forward = taken.iter().any(|(_, origin)| matches!(origin.mark, Mark::Forward(_)));
        if is_vague {
            let message = "which records it takes depends on a part of the tag that is not known here: it gets all that may have such a tag; \
                           look at `when` of the sink";
            plugin.note(message, &mut self.report);
        }
        if has_forward && routes.iter().any(|(route, _)| *route != Route::All) {
            plugin.note("tags of clients are the attribute `fluent.tag`", &mut self.report);
        }
        if strays {
            let message = "it gets the samples of remote write, or the documents, of an input that it did not match: conditions do not apply to them";
            plugin.note(message, &mut self.report);
        }
        let Target { kind, settings, has_signals, .. } = target;
        let is_one = routes.len() == 1;
        for (route, signals) in routes {
            let flow = |signal: &Signal| {
                // Filters of Fluent Bit are about logs.
                let steps = if *signal == Signal::Logs { steps.clone() } else { Vec::new() };
                Flow { name: "filters".to_owned(), signal: *signal, steps, route: route.clone() }
            };
            let flows = signals.iter().map(flow).collect();
            let name = match signals.first() {
                Some(signal) if !is_one => format!("{name}-{}", signal_name(*signal)),
                _ => name.to_owned(),
            };
            let settings = settings.clone();
            self.output.add(&name, &Destination { kind, settings, signals, has_signals }, flows);
        }
    }
}

/// The way of records that are selected; none if there are none.
fn route(selected: Selected) -> Option<Route> {
    Some(match selected {
        Selected::None => return None,
        Selected::All => Route::All,
        // Conditions of a list are all about resources, or all about logs.
        Selected::Some(conditions) if conditions.iter().any(|one| ottl::signal_of(one).is_some()) => {
            Route::When(vec![either(&conditions)])
        }
        Selected::Some(conditions) => Route::When(conditions),
    })
}
