//! The steps of the filters in front of an output.

use super::Target;
use crate::import::fluent_bit::FluentBit;
use crate::import::fluent_bit::tags::{Mark, Origin, Selected, TAG, either};
use crate::import::ottl::literal;
use crate::import::steps::{Step, StepKind};
use std::collections::BTreeMap;

/// Attributes that tell which rules a record met; they go before it is sent.
const RULE: &str = "fluent.rule";

/// Conditions of rules, which a first step evaluates: later steps change what the conditions look at.
#[derive(Default)]
struct RuleMarks {
    conditions: Vec<String>,
}

impl RuleMarks {
    /// The condition that a record met `condition` when it was received.
    fn met(&mut self, condition: &str) -> String {
        let index = self.conditions.iter().position(|one| one == condition).unwrap_or_else(|| {
            self.conditions.push(condition.to_owned());
            self.conditions.len() - 1
        });
        format!("{} == true", path(index))
    }
}

fn path(index: usize) -> String {
    format!("log.attributes[{}]", literal(&format!("{RULE}.{}", index + 1)))
}

impl FluentBit {
    /// The steps for records of these origins, and whether some of them look at tags.
    pub(super) fn steps_of(&self, taken: &[(usize, &Origin)], target: &Target) -> (Vec<Step>, bool) {
        // Each with the condition that the filter takes a record.
        let mut steps: Vec<(Option<String>, Step)> = Vec::new();
        for filter in &self.filters {
            let tag = match filter.selector.of(taken, filter.position) {
                Selected::None => continue,
                Selected::All => None,
                Selected::Some(conditions) => Some(either(&conditions)),
            };
            steps.extend(filter.steps.iter().map(|step| (tag.clone(), step.clone())));
        }
        let looks_at_tags = steps.iter().any(|(tag, _)| tag.is_some());
        let is_of_rules = |tag: &str| {
            taken.iter().any(|(_, origin)| origin.conditions.iter().any(|condition| tag.contains(condition)))
        };
        let mut marks = RuleMarks::default();
        // What the first step looks at is as it was received.
        if steps.iter().skip(1).any(|(tag, _)| tag.as_deref().is_some_and(is_of_rules)) {
            for (tag, _) in &mut steps {
                if let Some(tag) = tag.as_mut().filter(|tag| is_of_rules(tag)) {
                    *tag = marks.met(tag);
                }
            }
        }
        let mut own: Vec<String> =
            (1..=marks.conditions.len()).map(|number| format!("{RULE}.{number}")).collect();
        if taken.iter().any(|(_, origin)| matches!(origin.mark, Mark::Forward(_))) {
            own.push(TAG.to_owned());
        }
        let mut all: Vec<Step> = Vec::new();
        let set =
            |(index, condition): (usize, &String)| format!("set({}, true) where {condition}", path(index));
        let first: Vec<String> = marks.conditions.iter().enumerate().map(set).collect();
        if !first.is_empty() {
            all.push(Step::new("rules", StepKind::Edit(first)));
        }
        // Each has a name of its own, which metrics show.
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (tag, mut step) in steps {
            let number = numbers.entry(step.name.clone()).and_modify(|number| *number += 1).or_insert(1);
            if *number > 1 {
                step.name = format!("{}-{number}", step.name);
            }
            step.when = joined(tag, step.when);
            if let StepKind::Edit(statements) = &mut step.kind {
                statements.iter_mut().for_each(|statement| keep_own(statement, &own));
            }
            all.push(step);
        }
        if !marks.conditions.is_empty() {
            let pattern = literal(&format!("^{}\\.[0-9]+$", RULE.replace('.', "\\.")));
            let removed = format!("delete_matching_keys(log.attributes, {pattern})");
            all.push(Step::new("rules", StepKind::Edit(vec![removed])));
        }
        all.extend(target.steps.iter().cloned());
        (all, looks_at_tags)
    }
}

/// A condition on the tag together with that of a step.
fn joined(tag: Option<String>, own: Option<String>) -> Option<String> {
    let grouped = |text: String| if text.contains(" or ") { format!("({text})") } else { text };
    match (tag, own) {
        (Some(tag), Some(own)) => Some(format!("{} and {}", grouped(tag), grouped(own))),
        (one, other) => one.or(other),
    }
}

/// Has a list of the attributes that stay name our own, too.
fn keep_own(statement: &mut String, own: &[String]) {
    const LIST: &str = "keep_keys(log.attributes, [";
    if let Some(rest) = statement.strip_prefix(LIST).filter(|_| !own.is_empty()) {
        let names: Vec<String> = own.iter().map(|name| literal(name)).collect();
        let comma = if rest.starts_with(']') { "" } else { ", " };
        *statement = format!("{LIST}{}{comma}{rest}", names.join(", "));
    }
}
