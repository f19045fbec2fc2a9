//! Filters: the steps of pipelines.

mod grep;
mod kubernetes;
mod modify;
mod nest;
pub(super) mod parser;
mod record_modifier;
mod removal;
mod rewrite_tag;
mod type_converter;

pub(super) use modify::remove;

use super::keys::{Keys, SourceKeys};
use super::plugin::{Lacking, Plugin};
use super::section::{Section, SectionKind};
use super::tags::{Origin, Selected, Selector};
use super::{EarlierFilter, FilterSteps, FluentBit, known};
use crate::error::quote;
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;

/// Properties that all filters have.
const COMMON: &Lacking = &[
    ("alias", "not needed: metrics have the names of steps"),
    ("log_level", "not needed: `--log` of `tidegate run` says what is logged"),
];

impl FluentBit {
    /// Converts a filter, which is at a position among the filters.
    pub(super) fn filter(&mut self, section: &Section, position: usize) {
        let Some(mut plugin) = Plugin::new(section, &mut self.report) else { return };
        plugin.lacks(COMMON, &mut self.report);
        let Some(selector) = Selector::read(&mut plugin, &mut self.report) else {
            let message = format!("a filter {} has no `match`", quote(&plugin.name));
            self.report.error(plugin.file(), plugin.at(), message, "add `Match *`");
            return;
        };
        // These two change no record.
        if !matches!(plugin.name.as_str(), "stdout" | "kubernetes") {
            let line = self.report.line(plugin.file(), plugin.at());
            let (selector, name) = (selector.clone(), plugin.name.clone());
            self.earlier.push(EarlierFilter { selector, name, position, line });
        }
        let origins: Vec<(usize, &Origin)> = self.origins.iter().enumerate().collect();
        if selector.of(&origins, position) == Selected::None && !origins.is_empty() {
            let message = "left out: no input has a tag that it matches";
            plugin.note(message, &mut self.report);
            return;
        }
        if selector.is_vague(&origins, position) {
            let message = "it depends on a part of the tag that is not known here: it was taken to match the tags as they are written";
            plugin.note(message, &mut self.report);
        }
        let taken = origins.iter().filter(|one| selector.of(&[**one], position) != Selected::None);
        let mut sources: Vec<SourceKeys> = Vec::new();
        for (_, origin) in taken.filter(|(_, origin)| origin.signals.contains(&Signal::Logs)) {
            if !sources.contains(&origin.keys) {
                sources.push(origin.keys.clone());
            }
        }
        self.report.keys = Keys { sources, has_pods: !self.tails.is_empty() };
        let report = &mut self.report;
        let (steps, known): (Vec<Step>, &[&'static str]) = match plugin.name.as_str() {
            "modify" => (modify::steps(&mut plugin, report), &[]),
            "record_modifier" => (record_modifier::steps(&mut plugin, report), record_modifier::KNOWN),
            "grep" => (grep::steps(&mut plugin, report), grep::KNOWN),
            "nest" => (nest::steps(&mut plugin, report), nest::KNOWN),
            "type_converter" => (type_converter::steps(&mut plugin, report), type_converter::KNOWN),
            "parser" => (parser::filter(&self.parsers, &mut plugin, report), parser::KNOWN),
            "kubernetes" => (self.kubernetes_filter(&mut plugin), kubernetes::KNOWN),
            "rewrite_tag" => (self.rewrite_tag(&mut plugin, &selector, position), rewrite_tag::KNOWN),
            "stdout" => {
                plugin.note("not needed: `tidegate tap` shows items", report);
                plugin.take_all();
                (Vec::new(), &[])
            }
            _ => {
                known::unknown(SectionKind::Filter, &plugin, report);
                plugin.take_all();
                return;
            }
        };
        note_refused(&plugin, &steps, &mut self.report);
        plugin.finish(known, &mut self.report);
        if !steps.is_empty() {
            self.filters.push(FilterSteps { selector, position, steps });
        }
    }
}

/// Notes statements and conditions that the engine refuses; they stay, so `tidegate check` refuses the configuration.
pub(super) fn note_refused(plugin: &Plugin<'_>, steps: &[Step], report: &mut super::report::Report) {
    for step in steps {
        for (text, reason) in step.refused() {
            plugin.note(format!("to be corrected in {}: {reason}", quote(&text)), report);
        }
    }
}

/// A step that edits.
pub(super) fn edit(name: &str, statements: Vec<String>) -> Vec<Step> {
    if statements.is_empty() { Vec::new() } else { vec![Step::new(name, StepKind::Edit(statements))] }
}
