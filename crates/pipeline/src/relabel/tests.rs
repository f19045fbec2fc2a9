//! Rules do to bodies what they do to labels, and to labels what Prometheus and vmagent document.

mod actions;
mod alike;
mod bodies;
mod errors;
mod oracle;
mod random;
mod symbols;

use super::*;

/// A rule from pairs of field and value. Lists are separated by commas; `regex` is one text, `regexes` are several.
fn rule(fields: &[(&str, &str)]) -> RuleDefinition {
    let mut rule = RuleDefinition::default();
    for &(field, value) in fields {
        let list = || value.split(',').map(String::from).collect::<Vec<_>>();
        let text = Some(value.to_string());
        match field {
            "source_labels" => rule.source_labels = list(),
            "separator" => rule.separator = text,
            "target_label" => rule.target_label = text,
            "regex" => rule.regex = vec![value.into()],
            "regexes" => rule.regex = list(),
            "modulus" => rule.modulus = value.parse().ok(),
            "replacement" => rule.replacement = text,
            "action" => rule.action = text,
            "if" => rule.condition.push(value.into()),
            other => panic!("{other}"),
        }
    }
    rule
}

fn compile(rules: &[RuleDefinition]) -> Rules {
    let step = StepRules { step: 0, on_error: ErrorMode::Ignore, rules };
    Rules::compile(&[step]).unwrap_or_else(|problems| panic!("{problems:?}")).0
}

/// `a=b,c=d` as labels.
fn labels(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap()).map(|(name, value)| (name.into(), value.into())).collect()
}

fn joined(labels: &[(String, String)]) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// The labels that `rules` leave of `given`; `None` when they drop the series.
fn relabeled(rules: &Rules, given: &[(String, String)]) -> Option<Vec<(String, String)>> {
    let applied = explain(rules, given);
    match applied.last() {
        Some(last) => last.labels.clone(),
        None => Some(given.to_vec()),
    }
}
