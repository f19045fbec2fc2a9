//! Outputs: sinks.

mod client;
mod elasticsearch;
mod http;
mod loki;
mod splunk;

use super::plugin::{Lacking, Plugin};
use super::section::{Section, SectionKind};
use super::tags::{Mark, Origin, Selected, Selector, either};
use super::{FluentBit, Marker, known};
use crate::error::quote;
use crate::import::document::Map;
use crate::import::sinks::{Destination, Flow, Route, SIGNALS};
use crate::import::steps::Step;
use crate::model::Signal;

/// Properties that all outputs have.
const COMMON: &Lacking = &[
    ("alias", "not needed: metrics have the names of sinks"),
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
        let alias = section.raw("alias").map(|alias| alias.value.clone());
        plugin.lacks(COMMON, &mut self.report);
        let Some(selector) = Selector::read(&mut plugin, &self.report) else {
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
        let selected = selector.of(&all, end);
        let (conditions, steps) = (self.route(&selected), self.steps_of(&taken, &target));
        self.needs_tags |= selected != Selected::All || steps.1;
        let signals: Vec<Signal> = SIGNALS
            .into_iter()
            .filter(|signal| {
                target.signals.contains(signal)
                    && taken.iter().any(|(_, origin)| origin.signals.contains(signal))
            })
            .collect();
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
        if has_forward && conditions != Route::All {
            plugin.note("tags of clients are the attribute `fluent.tag`", &mut self.report);
        }
        if strays {
            let message = "it gets the samples of remote write, or the documents, of an input that it did not match: conditions do not apply to them";
            plugin.note(message, &mut self.report);
        }
        let flows = signals
            .iter()
            .map(|signal| {
                // Filters of Fluent Bit are about logs.
                let steps = if *signal == Signal::Logs { steps.0.clone() } else { Vec::new() };
                Flow { name: "filters".to_owned(), signal: *signal, steps, route: conditions.clone() }
            })
            .collect();
        let Target { kind, settings, has_signals, .. } = target;
        self.output.add(name, &Destination { kind, settings, signals, has_signals }, flows);
    }

    fn route(&self, selected: &Selected) -> Route {
        match selected {
            Selected::Some(conditions) => Route::When(conditions.clone()),
            Selected::All | Selected::None => Route::All,
        }
    }

    /// The steps for records of these origins, and whether some of them look at tags.
    fn steps_of(&self, taken: &[(usize, &Origin)], target: &Target) -> (Vec<Step>, bool) {
        let mut all = Vec::new();
        let mut looks_at_tags = false;
        for filter in &self.filters {
            let when = match filter.selector.of(taken, filter.position) {
                Selected::None => continue,
                Selected::All => None,
                Selected::Some(conditions) => Some(either(&conditions)),
            };
            looks_at_tags |= when.is_some();
            for step in &filter.steps {
                let mut step = step.clone();
                step.when = match (when.clone(), step.when) {
                    (Some(tag), Some(own)) => {
                        let tag = if tag.contains(" or ") { format!("({tag})") } else { tag };
                        let own = if own.contains(" or ") { format!("({own})") } else { own };
                        Some(format!("{tag} and {own}"))
                    }
                    (one, other) => one.or(other),
                };
                all.push(step);
            }
        }
        all.extend(target.steps.iter().cloned());
        (all, looks_at_tags)
    }
}
