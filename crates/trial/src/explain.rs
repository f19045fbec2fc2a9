//! Explains the changes of each statement, condition and rule of a pipeline.
//!
//! A pipeline is run up to each of its statements in turn, and what comes out is compared with what came out before. That takes
//! as many runs as there are statements, which is nothing for a handful of items, and needs nothing of the engine.

use crate::apply::apply;
use crate::compare::{Difference, differences};
use serde_json::Value as Json;
use tidegate_pipeline::{Definition, Format, Pipeline, Problem, StepDefinition, StepKind};

/// Outcome of one statement, rule or step.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The step, counted from 0.
    pub step: usize,
    /// The statement or rule in it, counted from 0; `None` where the step is one thing.
    pub item: Option<usize>,
    /// Its changes; nothing if it left all items as they were.
    pub changes: Vec<Change>,
}

/// A change of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The item, as it was counted from 0 before.
    pub item: usize,
    /// The differences; `None` if the item was dropped.
    pub differences: Option<Vec<Difference>>,
}

/// Runs `definition` over `body` statement by statement. `items` reads the items of a body.
///
/// # Errors
/// Errors of the pipeline.
pub fn explain(
    definition: &Definition,
    format: Format,
    body: &[u8],
    now_ns: i64,
    items: impl Fn(&[u8]) -> Vec<Json>,
) -> Result<Vec<Explained>, Vec<Problem>> {
    let mut explained = Vec::new();
    let mut before = items(body);
    for (step, item, prefix) in prefixes(definition) {
        let (pipeline, _) = Pipeline::compile(&prefix)?;
        let applied = apply(&pipeline, format, body, now_ns);
        let after = items(applied.body.as_deref().unwrap_or(body));
        explained.push(Explained { step, item, changes: changes(&before, &after) });
        before = after;
    }
    Ok(explained)
}

/// The pipeline up to each statement.
pub(crate) fn prefixes(definition: &Definition) -> Vec<(usize, Option<usize>, Definition)> {
    let mut prefixes = Vec::new();
    for (at, step) in definition.steps.iter().enumerate() {
        let earlier = definition.steps.get(..at).unwrap_or_default();
        let mut add = |item, kind| {
            let mut steps = earlier.to_vec();
            steps.push(StepDefinition { kind, ..step.clone() });
            prefixes.push((at, item, Definition { steps }));
        };
        match &step.kind {
            StepKind::Edit(statements) => {
                for end in 1..=statements.len() {
                    add(Some(end - 1), StepKind::Edit(statements.iter().take(end).cloned().collect()));
                }
            }
            StepKind::Relabel(rules) => {
                for end in 1..=rules.len() {
                    add(Some(end - 1), StepKind::Relabel(rules.iter().take(end).cloned().collect()));
                }
            }
            kind => add(None, kind.clone()),
        }
    }
    prefixes
}

/// A step either changes items or drops some.
fn changes(before: &[Json], after: &[Json]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut rest = after.iter().peekable();
    let mut to_drop = before.len().saturating_sub(after.len());
    for (item, was) in before.iter().enumerate() {
        match rest.peek() {
            // Dropped items are dropped unchanged, so an item that is different is not there any more.
            Some(now) if *now == was || to_drop == 0 => {
                let found = both_ways(was, now);
                rest.next();
                if !found.is_empty() {
                    changes.push(Change { item, differences: Some(found) });
                }
            }
            _ => {
                to_drop = to_drop.saturating_sub(1);
                changes.push(Change { item, differences: None });
            }
        }
    }
    changes
}

fn both_ways(was: &Json, now: &Json) -> Vec<Difference> {
    if was == now { Vec::new() } else { differences(was, now, true) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dropped_and_changed_items_are_told_apart() {
        let [a, b, c] = [json!({"name": "a"}), json!({"name": "b"}), json!({"name": "c"})];
        let dropped = changes(&[a.clone(), b.clone(), c.clone()], &[a.clone(), c.clone()]);
        assert_eq!(dropped, [Change { item: 1, differences: None }]);
        let changed = changes(&[a.clone(), b.clone()], &[a.clone(), json!({"name": "B"})]);
        let found = Difference { path: "name".into(), expected: Some("b".into()), got: Some("B".into()) };
        assert_eq!(changed, [Change { item: 1, differences: Some(vec![found]) }]);
        assert_eq!(changes(std::slice::from_ref(&a), &[]), [Change { item: 0, differences: None }]);
        assert!(changes(std::slice::from_ref(&a), std::slice::from_ref(&a)).is_empty());
    }
}
