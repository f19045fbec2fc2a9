//! The filter `rewrite_tag`: records get another tag, so other outputs take them.

use super::modify::path;
use crate::error::quote;
use crate::import::fluent_bit::plugin::{Plugin, Value, words};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::tags::{Origin, Selected, Selector, either};
use crate::import::fluent_bit::{EarlierFilter, FluentBit, Marker};
use crate::import::ottl::literal;
use crate::import::steps::Step;

pub(super) const KNOWN: &[&str] = &["rule", "emitter_name", "recursion"];

/// The most origins of records that rules may make.
const MOST_ORIGINS: usize = 200;

impl FluentBit {
    /// Divides the records of the tags that the filter takes by its rules. It has no steps: a tag is no part of a record.
    pub(super) fn rewrite_tag(
        &mut self,
        plugin: &mut Plugin<'_>,
        selector: &Selector,
        position: usize,
    ) -> Vec<Step> {
        let rules = plugin.all("rule", &self.report);
        plugin.lacks(
            &[
                ("emitter_name", "not needed: there is no emitter"),
                ("emitter_mem_buf_limit", "not needed: there is no emitter"),
                ("recursion_action", "not needed: there is no emitter"),
            ],
            &mut self.report,
        );
        plugin.lacks_prefix("emitter_", "not needed: there is no emitter", &mut self.report);
        if rules.is_empty() {
            let help = "add `Rule $KEY REGEX NEW_TAG false`";
            self.report.error(plugin.file(), plugin.at(), "a filter `rewrite_tag` has no `rule`", help);
        }
        let message = "its rules became conditions of sinks and steps, which look at records as they were received: before other filters \
                       have changed them";
        plugin.note(message, &mut self.report);
        // Conditions of rules that keep their records, each with the position of the origin.
        let mut kept: Vec<(usize, String)> = Vec::new();
        for rule in rules {
            let parts = words(&rule.text, 4);
            let [key, regex, new, keep] = parts.as_slice() else {
                let help = "write `Rule $KEY REGEX NEW_TAG false`";
                plugin.error(&rule, "a rule has four parts", help, &mut self.report);
                continue;
            };
            let Some(path) = path(plugin, &rule, key, &mut self.report) else { continue };
            let path = if path.starts_with("log.attributes[") && self.is_parsed_before(selector, position) {
                let message = format!(
                    "to be corrected: rules look at records as they were received, and {} may be a part that a parser finds later; parse \
                     the text in a pipeline of the source, and write the attribute",
                    quote(key)
                );
                plugin.note_value(&rule, message, &mut self.report);
                // The engine knows no such path, so `check` refuses it.
                record::indexed("unknown", &[key])
            } else {
                path
            };
            let condition = format!("IsMatch({path}, {})", literal(&record::pattern(regex)));
            let keeps = match keep.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" => true,
                "false" | "off" | "no" => false,
                other => {
                    let message = format!("{} is `true` or `false`", quote(other));
                    plugin.error(&rule, message, "write one of the two", &mut self.report);
                    continue;
                }
            };
            for index in 0..self.origins.len() {
                let Some(origin) = self.origins.get(index).cloned() else { continue };
                // What an earlier rule has made is not looked at again.
                if origin.tags.iter().any(|(_, until)| *until == position) {
                    continue;
                }
                // Of records whose tags are known in part, the filter takes those that its own pattern matches.
                let own = match selector.of(&[(index, &origin.without_rules())], position) {
                    Selected::None => continue,
                    Selected::All => condition.clone(),
                    Selected::Some(tags) => format!("({}) and {condition}", either(&tags)),
                };
                // Fluent Bit stops at the first rule that matches, also where that keeps the record.
                let mut full = own.clone();
                for (_, earlier) in kept.iter().filter(|(of, _)| *of == index) {
                    full = format!("{full} and not ({earlier})");
                }
                let tag = expanded(new, origin.tag());
                self.comes_too_late((&rule, position), plugin, &origin, &tag);
                if self.origins.len() >= MOST_ORIGINS {
                    let message = format!("rules make more than {MOST_ORIGINS} kinds of records");
                    plugin.error(&rule, message, "split the configuration", &mut self.report);
                    return Vec::new();
                }
                let mut other = origin.clone();
                if let Some(last) = other.tags.last_mut() {
                    last.1 = position;
                }
                other.tags.push((tag, usize::MAX));
                other.conditions.push(full.clone());
                other.path = None;
                let marker = self.markers.get(index).cloned().unwrap_or(Marker::Never);
                self.origins.push(other);
                self.markers.push(marker);
                if keeps {
                    kept.push((index, own));
                } else if let Some(origin) = self.origins.get_mut(index) {
                    origin.conditions.push(format!("not ({full})"));
                }
            }
        }
        Vec::new()
    }

    /// Whether a parser changes records that the filter takes before it does.
    fn is_parsed_before(&self, selector: &Selector, position: usize) -> bool {
        let parses = |step: &Step| matches!(step.name.as_str(), "parser" | "merge_log");
        let parsers = || self.filters.iter().filter(|filter| filter.steps.iter().any(parses));
        self.origins.iter().enumerate().any(|one| {
            selector.of(&[one], position) != Selected::None
                && parsers().any(|filter| filter.selector.of(&[one], filter.position) != Selected::None)
        })
    }

    /// Notes a mistake if an earlier filter takes records of the new tag but not all of the old one: Fluent Bit begins with
    /// the first filter again, and a pipeline goes on with the next.
    fn comes_too_late(
        &mut self,
        (rule, position): (&Value, usize),
        plugin: &Plugin<'_>,
        origin: &Origin,
        tag: &str,
    ) {
        let is_late = |earlier: &&EarlierFilter| {
            earlier.position < position
                && earlier.selector.may_take(tag)
                && !earlier.selector.takes_all(origin, earlier.position)
        };
        if let Some(EarlierFilter { name, line, .. }) = self.earlier.iter().find(is_late) {
            let message = format!(
                "records of the tag {} would pass the filter {} (line {line}) only before they have that tag",
                quote(tag),
                quote(name)
            );
            let help = format!("move the filter {} behind this one", quote(name));
            plugin.error(rule, message, help, &mut self.report);
        }
    }
}

/// A tag whose references are replaced: `$TAG` by the tag, others by what is not known.
fn expanded(new: &str, tag: &str) -> String {
    let mut out = String::new();
    let mut rest = new;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, mut behind) = after.split_at(end);
        while let Some((_, after)) = behind.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            behind = after;
        }
        out.push_str(if name == "TAG" && behind.len() == after.len() - end { tag } else { "*" });
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn references_in_tags_are_replaced() {
        assert_eq!(expanded("new.$TAG", "kube.*"), "new.kube.*");
        assert_eq!(expanded("$1.$TAG[2].x", "a"), "*.*.x");
        assert_eq!(expanded("a.$kubernetes['x'].b", "t"), "a.*.b");
        assert_eq!(expanded("plain$", "t"), "plain*");
    }
}
