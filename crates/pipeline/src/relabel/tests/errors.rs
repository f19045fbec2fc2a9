//! Definitions that Prometheus or vmagent refuse are refused, all at once.

use super::*;
use crate::Severity;

fn problems(rules: &[RuleDefinition]) -> Vec<Problem> {
    match Rules::compile(&[StepRules { step: 3, on_error: ErrorMode::Ignore, rules }]) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

#[test]
fn each_error_names_its_field() {
    for (fields, field, message) in [
        (&[("action", "hide")][..], "action", "unknown action `hide`"),
        (&[("action", "graphite")], "action", "the action `graphite` is not supported"),
        (&[("source_labels", "a")], "target_label", "the action `replace` needs `target_label`"),
        (
            &[("action", "hashmod"), ("target_label", "a")],
            "modulus",
            "the action `hashmod` needs a `modulus` above 0",
        ),
        (
            &[("action", "keepequal"), ("target_label", "a"), ("regex", "b")],
            "regex",
            "the action `keepequal` has no use for `regex`",
        ),
        (
            &[("action", "labeldrop"), ("regex", "a"), ("source_labels", "b")],
            "source_labels",
            "the action `labeldrop` has no use for `source_labels`",
        ),
        (
            &[("action", "labelkeep"), ("regex", "a"), ("separator", "b")],
            "separator",
            "the action `labelkeep` has no use for `separator`",
        ),
        (
            &[("action", "lowercase"), ("target_label", "a"), ("replacement", "b")],
            "replacement",
            "the action `lowercase` has no use for `replacement`",
        ),
        (
            &[("action", "labelmap"), ("replacement", "")],
            "replacement",
            "`replacement` is empty, and `labelmap` needs a name",
        ),
        (
            &[("action", "replace_all"), ("target_label", "a")],
            "source_labels",
            "the action `replace_all` needs `source_labels`",
        ),
        (
            &[("action", "keep_if_equal"), ("source_labels", "a")],
            "source_labels",
            "the action `keep_if_equal` needs at least two `source_labels`",
        ),
        (&[("action", "drop_metrics")], "regex", "the action `drop_metrics` needs `regex` or `if`"),
        (
            &[("action", "keep"), ("source_labels", ""), ("regex", "a")],
            "source_labels",
            "the name of a source label is empty",
        ),
        (&[("action", "drop"), ("regex", "a**")], "regex", "nested repetition operator; use parentheses"),
        (&[("action", "drop"), ("if", "{a=b}")], "if", "expected a text in quotes"),
        (&[("action", "drop"), ("if", "a b")], "if", "expected the end of the selector"),
        (&[("action", "drop"), ("if", "{a=~\"(\"}")], "if", "missing closing parenthesis"),
        (&[("action", "drop"), ("if", "{a=\"")], "if", "the text does not end: a quote is missing"),
        (&[("action", "drop"), ("if", "")], "if", "expected a metric name or `{`"),
    ] {
        let problems = problems(&[rule(fields)]);
        let found = problems.iter().any(|problem| {
            (problem.at.field, &*problem.message, problem.severity) == (field, message, Severity::Error)
        });
        assert!(found, "{fields:?}: {problems:?}");
    }
}

#[test]
fn all_errors_are_found_at_once_and_in_their_place() {
    let found = problems(&[
        rule(&[("action", "drop"), ("regexes", "ok,a**,(")]),
        rule(&[("target_label", "a")]),
        rule(&[("action", "drop"), ("if", "{a=~\"b**\"}")]),
        rule(&[("action", "keep")]),
    ]);
    let places: Vec<_> = found
        .iter()
        .map(|problem| (problem.at.step, problem.at.item, problem.at.field, problem.at.range.clone()))
        .collect();
    assert_eq!(
        places,
        [
            (3, Some(0), "regex", 1..3),
            (3, Some(0), "regex", 0..0),
            (3, Some(2), "if", 6..8),
            (3, Some(3), "action", 0..4)
        ]
    );
    assert_eq!(found[3].severity, Severity::Warning);
}

/// Settings at their defaults are no error where they have no use: files have them.
#[test]
fn defaults_may_be_written_down() {
    let usual = [
        ("action", "labeldrop"),
        ("regex", "a"),
        ("separator", ";"),
        ("replacement", "$1"),
        ("modulus", "0"),
    ];
    assert_eq!(problems(&[rule(&usual)]), []);
}
