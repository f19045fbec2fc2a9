//! Rules from their definitions, with all errors at once.

use super::pattern::Pattern;
use super::rule::{Action, Expansion, ExpansionPart, Rule};
use super::selector::Selector;
use super::{PROMETHEUS_ACTIONS, RuleDefinition, VMAGENT_ACTIONS};
use crate::memory::{Slice, Space};
use crate::regex::{Mode, Part, PatternError, Regex, Regexes, Template};
use crate::{Anchor, Problem, Severity};

/// State that rules share while they are compiled.
#[derive(Debug, Default)]
pub(super) struct Compiler {
    pub(super) constants: Vec<u8>,
    pub(super) regexes: Regexes,
    pub(super) memos: usize,
    pub(super) problems: Vec<Problem>,
    /// Where the current rule is.
    step: usize,
    item: usize,
}

impl Compiler {
    /// Compiles rule `item` of step `step`; `None` when it has errors, which are among the problems then.
    pub(super) fn rule(&mut self, step: usize, item: usize, definition: &RuleDefinition) -> Option<Rule> {
        (self.step, self.item) = (step, item);
        let before = self.errors();
        let mut condition = Vec::new();
        for text in &definition.condition {
            match Selector::new(text, self) {
                Ok(selector) => condition.push(selector),
                Err((message, range)) => self.problem(Severity::Error, "if", range, message, None),
            }
        }
        if definition.source_labels.iter().any(String::is_empty) {
            self.error("source_labels", "the name of a source label is empty");
        }
        let mut source: Box<[Slice]> =
            definition.source_labels.iter().map(|name| self.constant(name)).collect();
        let separator = self.constant(definition.separator.as_deref().unwrap_or(";"));
        let name = definition.action.as_deref().unwrap_or("replace").to_ascii_lowercase();
        if matches!(&*name, "keep_metrics" | "drop_metrics") {
            source = Box::new([self.constant("__name__")]);
        }
        let action = self.action(&name, definition)?;
        (self.errors() == before).then_some(Rule { condition: condition.into(), source, separator, action })
    }

    /// The errors so far.
    pub(super) fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    /// A literal of the rules.
    pub(super) fn constant(&mut self, text: &str) -> Slice {
        // Rules are a part of the configuration, which is much smaller than 4 GiB.
        let slice =
            Slice { start: self.constants.len() as u32, len: text.len() as u32, space: Space::Constants };
        self.constants.extend_from_slice(text.as_bytes());
        slice
    }

    pub(super) fn pattern(&mut self, text: &str, mode: Mode, groups: bool) -> Result<Pattern, PatternError> {
        Pattern::new(text, mode, groups, &mut self.regexes, &mut self.memos)
    }

    fn action(&mut self, name: &str, definition: &RuleDefinition) -> Option<Action> {
        self.check(name, definition);
        let target = definition.target_label.as_deref().unwrap_or_default();
        Some(match name {
            "replace" => {
                let replacement = definition.replacement.as_deref().unwrap_or("$1");
                let groups = target.contains('$') || replacement.contains('$');
                let pattern = self.regex(definition, Mode::Whole, groups)?;
                let target = self.expansion("target_label", target, &pattern, false)?;
                let replacement = self.expansion("replacement", replacement, &pattern, true)?;
                Action::Replace { pattern, target, replacement }
            }
            "replace_all" => {
                let pattern = self.regex(definition, Mode::Search, true)?;
                let replacement = definition.replacement.as_deref().unwrap_or("$1");
                let replacement = self.expansion("replacement", replacement, &pattern, true)?;
                Action::ReplaceAll { pattern, target: self.constant(target), replacement }
            }
            "keep" | "keep_metrics" => Action::Keep(self.regex(definition, Mode::Whole, false)?),
            "drop" | "drop_metrics" => Action::Drop(self.regex(definition, Mode::Whole, false)?),
            "keepequal" => Action::KeepEqual(self.constant(target)),
            "dropequal" => Action::DropEqual(self.constant(target)),
            "hashmod" => {
                Action::HashMod { target: self.constant(target), modulus: definition.modulus.unwrap_or(1) }
            }
            "lowercase" => Action::Lowercase(self.constant(target)),
            "uppercase" => Action::Uppercase(self.constant(target)),
            "labelmap" | "labelmap_all" => {
                let all = name == "labelmap_all";
                let mode = if all { Mode::Search } else { Mode::Whole };
                let pattern = self.regex(definition, mode, true)?;
                let replacement = definition.replacement.as_deref().unwrap_or("$1");
                let replacement = self.expansion("replacement", replacement, &pattern, false)?;
                if all {
                    Action::LabelMapAll { pattern, replacement }
                } else {
                    Action::LabelMap { pattern, replacement }
                }
            }
            "labeldrop" => Action::LabelDrop(self.regex(definition, Mode::Whole, false)?),
            "labelkeep" => Action::LabelKeep(self.regex(definition, Mode::Whole, false)?),
            "keep_if_equal" => Action::KeepIfEqual,
            "drop_if_equal" => Action::DropIfEqual,
            "keep_if_contains" => Action::KeepIfContains(self.constant(target)),
            "drop_if_contains" => Action::DropIfContains(self.constant(target)),
            _ => return None,
        })
    }

    /// Checks the fields that an action needs and those that it does not use, as Prometheus and vmagent do.
    fn check(&mut self, action: &str, definition: &RuleDefinition) {
        let actions = PROMETHEUS_ACTIONS.iter().chain(&VMAGENT_ACTIONS).copied();
        if action != "graphite" && !actions.clone().any(|known| known == action) {
            let text = definition.action.as_deref().unwrap_or_default();
            let known: Vec<&str> = actions.collect();
            let help = Some(format!("the actions are {}", known.join(", ")));
            self.problem(Severity::Error, "action", 0..text.len(), format!("unknown action `{text}`"), help);
            return;
        }
        if action == "graphite" {
            let help = "use `replace` with `source_labels: [__name__]` and a `regex` with groups";
            let message = "the action `graphite` is not supported".into();
            self.problem(Severity::Error, "action", 0..action.len(), message, Some(help.into()));
            return;
        }
        let needs_target = matches!(
            action,
            "replace"
                | "hashmod"
                | "lowercase"
                | "uppercase"
                | "keepequal"
                | "dropequal"
                | "replace_all"
                | "keep_if_contains"
                | "drop_if_contains"
        );
        if needs_target && definition.target_label.as_ref().is_none_or(String::is_empty) {
            self.error("target_label", &format!("the action `{action}` needs `target_label`"));
        }
        if action == "hashmod" && definition.modulus.unwrap_or(0) == 0 {
            self.error("modulus", "the action `hashmod` needs a `modulus` above 0");
        }
        let fewest = match action {
            "keep_if_equal" | "drop_if_equal" => 2,
            "replace_all" | "keep_if_contains" | "drop_if_contains" => 1,
            _ => 0,
        };
        if definition.source_labels.len() < fewest {
            let labels = if fewest == 2 { "at least two `source_labels`" } else { "`source_labels`" };
            self.error("source_labels", &format!("the action `{action}` needs {labels}"));
        }
        if action.starts_with("labelmap") && definition.replacement.as_deref() == Some("") {
            self.error("replacement", &format!("`replacement` is empty, and `{action}` needs a name"));
        }
        let metrics = matches!(action, "keep_metrics" | "drop_metrics");
        if metrics && definition.regex.is_empty() && definition.condition.is_empty() {
            self.error("regex", &format!("the action `{action}` needs `regex` or `if`"));
        }
        let equal = matches!(
            action,
            "keepequal"
                | "dropequal"
                | "keep_if_equal"
                | "drop_if_equal"
                | "keep_if_contains"
                | "drop_if_contains"
        );
        let names = matches!(action, "labeldrop" | "labelkeep");
        let cases = matches!(action, "lowercase" | "uppercase");
        let if_equal = matches!(action, "keep_if_equal" | "drop_if_equal");
        let other_than = |text: &Option<String>, usual: &str| text.as_ref().is_some_and(|text| text != usual);
        let unused = [
            ("source_labels", (names || metrics) && !definition.source_labels.is_empty()),
            ("regex", equal && !definition.regex.is_empty()),
            ("modulus", (equal || names) && definition.modulus.is_some_and(|modulus| modulus != 0)),
            ("separator", (equal || names) && other_than(&definition.separator, ";")),
            ("replacement", (equal || names || cases) && other_than(&definition.replacement, "$1")),
            ("target_label", (names || if_equal) && other_than(&definition.target_label, "")),
        ];
        for (field, set) in unused {
            if set {
                self.error(field, &format!("the action `{action}` has no use for `{field}`"));
            }
        }
        let everything = definition.source_labels.is_empty()
            && definition.regex.is_empty()
            && definition.condition.is_empty();
        if matches!(action, "keep" | "drop") && everything {
            let message = format!("this rule has no condition: it {action}s every series");
            self.problem(Severity::Warning, "action", 0..action.len(), message, None);
        }
    }

    /// The rule's pattern; several texts are alternatives.
    fn regex(&mut self, definition: &RuleDefinition, mode: Mode, groups: bool) -> Option<Pattern> {
        let joined;
        let text = match &*definition.regex {
            [] => "(.*)",
            [one] => one,
            several => {
                let before = self.errors();
                for text in several {
                    if let Err(PatternError { message, range }) = crate::regex::tree(text, mode) {
                        self.problem(Severity::Error, "regex", range, message, None);
                    }
                }
                if self.errors() > before {
                    return None;
                }
                joined = several.join("|");
                &joined
            }
        };
        match self.pattern(text, mode, groups) {
            Ok(pattern) => Some(pattern),
            Err(PatternError { message, range }) => {
                self.problem(Severity::Error, "regex", range, message, None);
                None
            }
        }
    }

    /// A text with references to the groups of `pattern`, and with `labels` to labels.
    fn expansion(
        &mut self,
        field: &'static str,
        text: &str,
        pattern: &Pattern,
        labels: bool,
    ) -> Option<Expansion> {
        let template = match &pattern.regex {
            Some(regex) => self.template(field, text, regex)?,
            None => vec![Part::Text(text.as_bytes().into())],
        };
        let mut parts = Vec::new();
        for part in template {
            match part {
                Part::Text(text) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let mut rest = &*text;
                    while labels
                        && let Some((before, after)) = rest.split_once("{{")
                        && let Some((name, after)) = after.split_once("}}")
                    {
                        if !before.is_empty() {
                            parts.push(ExpansionPart::Text(self.constant(before)));
                        }
                        parts.push(ExpansionPart::Label(self.constant(name)));
                        rest = after;
                    }
                    if !rest.is_empty() {
                        parts.push(ExpansionPart::Text(self.constant(rest)));
                    }
                }
                Part::Group(group) => parts.push(ExpansionPart::Group(Box::new([group]))),
                Part::FirstOf(groups) => parts.push(ExpansionPart::Group(groups)),
            }
        }
        Some(match &*parts {
            [] => Expansion::Constant(Slice::EMPTY),
            [ExpansionPart::Text(text)] => Expansion::Constant(*text),
            [ExpansionPart::Group(groups)]
                if (matches!(**groups, [0]) && pattern.is_whole)
                    || (matches!(**groups, [1]) && pattern.first_group_is_all) =>
            {
                Expansion::Value
            }
            _ => Expansion::Parts(parts.into()),
        })
    }

    fn template(&mut self, field: &'static str, text: &str, regex: &Regex) -> Option<Vec<Part>> {
        match Template::new(text, regex) {
            Ok(template) => Some(template.parts().to_vec()),
            Err(message) => {
                self.problem(Severity::Error, field, 0..text.len(), message, None);
                None
            }
        }
    }

    fn error(&mut self, field: &'static str, message: &str) {
        self.problem(Severity::Error, field, 0..0, message.into(), None);
    }

    fn problem(
        &mut self,
        severity: Severity,
        field: &'static str,
        range: std::ops::Range<usize>,
        message: String,
        help: Option<String>,
    ) {
        let at = Anchor { step: self.step, setting: "relabel", item: Some(self.item), field, range };
        self.problems.push(Problem { at, severity, message, help });
    }
}
