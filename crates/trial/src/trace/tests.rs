use super::*;
use crate::paste;
use std::time::Duration;
use tidegate_pipeline::{ErrorMode, RuleDefinition, StepDefinition};

fn definition(kinds: Vec<StepKind>) -> Definition {
    let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    Definition { steps: kinds.into_iter().map(step).collect() }
}

fn bounds() -> Bounds {
    Bounds { body: 1 << 20, explain_until: Instant::now() + Duration::from_secs(60) }
}

fn traced(definition: &Definition, text: &str) -> Trace {
    let pasted = paste::read(text);
    assert_eq!(pasted.problems, []);
    trace(definition, &pasted.bodies, 0, bounds()).unwrap()
}

/// An item's changes, as `statement: path was → now`, or `statement: dropped`.
fn changes(item: &TracedItem) -> Vec<String> {
    let mut lines = Vec::new();
    for change in &item.changes {
        match &change.differences {
            None => lines.push(format!("{}: dropped", change.statement)),
            Some(found) => lines.extend(found.iter().map(|it| {
                let shown =
                    |value: &Option<Json>| value.as_ref().map_or("nothing".to_owned(), Json::to_string);
                format!("{}: {} {} → {}", change.statement, it.path, shown(&it.expected), shown(&it.got))
            })),
        }
    }
    lines
}

fn edit(statements: &[&str]) -> StepKind {
    StepKind::Edit(statements.iter().map(|it| (*it).to_owned()).collect())
}

/// Each item has its own changes, though a statement of the same step drops one and changes another.
#[test]
fn every_change_is_told_of_its_item_and_statement() {
    let definition = definition(vec![
        StepKind::Drop(vec!["log.body == \"b\"".into()]),
        edit(&["set(log.attributes[\"env\"], \"prod\")", "set(log.body, \"C\") where log.body == \"c\""]),
    ]);
    let trace = traced(&definition, "{\"body\": \"a\"}\n{\"body\": \"b\"}\n{\"body\": \"c\"}");
    let all: Vec<_> = trace.items.iter().map(changes).collect();
    assert_eq!(all[0], ["1: attributes nothing → {\"env\":\"prod\"}"]);
    assert_eq!(all[1], ["0: dropped"]);
    assert_eq!(all[2], ["1: attributes nothing → {\"env\":\"prod\"}", "2: body \"c\" → \"C\""]);
    assert_eq!(trace.items.iter().map(|item| item.line).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(trace.items[1].after.is_none());
    assert_eq!(trace.items[2].after.as_ref().unwrap()["body"], "C");
    assert_eq!(trace.steps[0].dropped, 1);
    assert_eq!((trace.explained, trace.statements.len()), (3, 3));
}

#[test]
fn an_edit_that_drops_what_it_fails_on_is_told_of_that_item() {
    let mut definition = definition(vec![edit(&["set(log.body, ParseJSON(log.body))"])]);
    definition.steps[0].on_error = ErrorMode::Drop;
    let trace = traced(
        &definition,
        "{\"body\": \"{\\\"a\\\":1}\"}\n{\"body\": \"x\"}\n{\"body\": \"{\\\"b\\\":2}\"}",
    );
    let all: Vec<_> = trace.items.iter().map(|item| changes(item).len()).collect();
    assert_eq!(all, [1, 1, 1]);
    assert_eq!(changes(&trace.items[1]), ["0: dropped"]);
    assert_eq!(trace.steps[0].failures, [1]);
}

#[test]
fn rules_are_traced_over_series() {
    let rule = RuleDefinition {
        action: Some("labeldrop".into()),
        regex: vec!["replica".into()],
        ..RuleDefinition::default()
    };
    let drop = RuleDefinition {
        source_labels: vec!["job".into()],
        regex: vec!["b".into()],
        action: Some("drop".into()),
        ..RuleDefinition::default()
    };
    let definition = definition(vec![StepKind::Relabel(vec![rule, drop])]);
    let trace = traced(&definition, "up{job=\"a\",replica=\"0\"}\nup{job=\"b\",replica=\"0\"}");
    assert_eq!(
        changes(&trace.items[0]),
        ["0:  \"up{job=\\\"a\\\",replica=\\\"0\\\"}\" → \"up{job=\\\"a\\\"}\""]
    );
    assert_eq!(changes(&trace.items[1]).last().unwrap(), "1: dropped");
}

/// A value that is another in each run is a change of the statement that makes it, and of no later one.
#[test]
fn what_is_drawn_is_told_once() {
    let definition = definition(vec![edit(&["set(log.attributes[\"id\"], UUID())", "set(log.body, \"y\")"])]);
    let trace = traced(&definition, "{\"body\": \"x\", \"attributes\": {\"a\": 1}}");
    let lines = changes(&trace.items[0]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("0: attributes.id nothing →") && lines[1] == "1: body \"x\" → \"y\"",
        "{lines:?}"
    );
}

#[test]
fn it_ends_in_time_and_within_its_bytes() {
    let double = edit(&["set(log.body, Concat([log.body, log.body], \"\"))"]);
    let nested = edit(&["set(resource.attributes[\"a\"], \"x\")"]);
    let steps = definition((0..20).flat_map(|_| [double.clone(), nested.clone()]).collect());
    let pasted = paste::read(&format!("{{\"body\": \"{}\"}}", "x".repeat(50_000)));
    let most = 1 << 20;
    let ended = trace(
        &steps,
        &pasted.bodies,
        0,
        Bounds { body: most, explain_until: Instant::now() + Duration::from_secs(60) },
    );
    assert!(ended.is_ok() || ended.is_err_and(|error| error == TooLong { most }));
    let late = trace(
        &definition(vec![nested]),
        &pasted.bodies,
        0,
        Bounds { body: most, explain_until: Instant::now() },
    )
    .unwrap();
    assert_eq!((late.explained, late.items.len()), (0, 1));
    assert!(late.items[0].after.is_some(), "the result is there without the explanation");
}
