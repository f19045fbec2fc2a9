//! Traces a pipeline's changes to each item, statement by statement.
//!
//! As [`explain`](crate::explain()) does it, the pipeline runs up to each statement in turn. Items carry marks, so each change and each drop
//! is told of the very item; and all of it is bounded, since a stranger's steps and items may be behind it.

use crate::apply::{StepTotals, TooLong, apply_within};
use crate::compare::{Difference, differences};
use crate::explain::prefixes;
use crate::items::decode;
use crate::marks::{mark, marks};
use crate::paste::PastedBody;
use crate::series::decode as decode_series;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tidegate_pipeline::{Definition, Format, Pipeline, StepKind};

/// Limits of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most bytes of a body, between statements too.
    pub body: usize,
    /// From then on no statement is explained any more.
    pub explain_until: Instant,
}

/// Changes of a pipeline to items.
#[derive(Debug, Default)]
pub struct Trace {
    /// The items that were given, in their order.
    pub items: Vec<TracedItem>,
    /// Items that came out and were not given: a statement made them.
    pub made: Vec<Json>,
    /// The statements, rules and other steps, in their order.
    pub statements: Vec<TracedStatement>,
    /// Counts of each step in the run as a whole.
    pub steps: Vec<StepTotals>,
    /// So many of the statements are explained; fewer than there are if the time was over.
    pub explained: usize,
}

/// An item, and what became of it.
#[derive(Debug)]
pub struct TracedItem {
    /// Its line in the text.
    pub line: usize,
    /// Its form.
    pub format: Format,
    /// As it was; a text for a series.
    pub before: Json,
    /// As it is then; `None` if it was dropped.
    pub after: Option<Json>,
    /// Its changes, in order.
    pub changes: Vec<TracedChange>,
}

/// Change of an item by one statement.
#[derive(Debug, PartialEq)]
pub struct TracedChange {
    /// The statement: its position in [`Trace::statements`].
    pub statement: usize,
    /// The differences; `None` if the item was dropped.
    pub differences: Option<Vec<Difference>>,
}

/// A statement, a rule, or a step that is one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedStatement {
    /// The step, counted from 0.
    pub step: usize,
    /// The statement or rule in it, counted from 0; `None` where the step is one thing.
    pub item: Option<usize>,
}

/// Runs `definition`, which compiles, over `bodies`.
///
/// # Errors
/// [`TooLong`].
pub fn trace(
    definition: &Definition,
    bodies: &[PastedBody],
    now_ns: i64,
    bounds: Bounds,
) -> Result<Trace, TooLong> {
    let prefixes = prefixes(definition);
    let statements = prefixes.iter().map(|(step, item, _)| TracedStatement { step: *step, item: *item });
    let mut trace = Trace { statements: statements.collect(), ..Trace::default() };
    let Ok((whole, _)) = Pipeline::compile(definition) else { return Ok(trace) };
    let mut traced: Vec<TracedBody> = Vec::new();
    for body in bodies {
        let body = TracedBody::new(body, trace.items.len(), &mut trace.items);
        let last = body.run(&whole, now_ns, bounds.body, Some(&mut trace.steps))?;
        for (mark, item) in &last.items {
            if let Some(traced) = trace.items.get_mut(body.first + mark) {
                traced.after = Some(item.clone());
            }
        }
        trace.made.extend(last.made);
        traced.push(body);
    }
    for (statement, (step, item, prefix)) in prefixes.iter().enumerate() {
        if Instant::now() >= bounds.explain_until {
            break;
        }
        let Ok((pipeline, _)) = Pipeline::compile(prefix) else { break };
        let is_random = draws(definition, *step, *item);
        for body in &mut traced {
            let after = body.run(&pipeline, now_ns, bounds.body, None)?.items;
            body.compare(statement, &after, &mut trace.items);
            if is_random {
                let again = body.run(&pipeline, now_ns, bounds.body, None)?.items;
                body.note_random(&after, &again);
            }
            body.current = after;
        }
        trace.explained = statement + 1;
    }
    Ok(trace)
}

/// A body whose items are followed.
struct TracedBody {
    format: Format,
    marked: Vec<u8>,
    /// The position of its first item among all.
    first: usize,
    /// The items as the last statement left them, by their marks.
    current: BTreeMap<usize, Json>,
    /// Members that are another text in each run, such as a `UUID()`.
    random: BTreeSet<(usize, String)>,
}

/// Output of a run.
struct Produced {
    items: BTreeMap<usize, Json>,
    made: Vec<Json>,
}

impl TracedBody {
    fn new(pasted: &PastedBody, first: usize, items: &mut Vec<TracedItem>) -> TracedBody {
        let format = pasted.format;
        let marked = mark(format, &pasted.body);
        let current = Produced::of(format, &marked).items;
        items.extend(current.values().zip(&pasted.lines).map(|(before, line)| TracedItem {
            line: *line,
            format,
            before: before.clone(),
            after: None,
            changes: Vec::new(),
        }));
        TracedBody { format, marked, first, current, random: BTreeSet::new() }
    }

    fn run(
        &self,
        pipeline: &Pipeline,
        now_ns: i64,
        most: usize,
        steps: Option<&mut Vec<StepTotals>>,
    ) -> Result<Produced, TooLong> {
        let applied = apply_within(pipeline, self.format, &self.marked, now_ns, most)?;
        if let Some(steps) = steps {
            steps.resize(applied.steps.len(), StepTotals::default());
            steps.iter_mut().zip(&applied.steps).for_each(|(total, step)| total.add(step));
        }
        Ok(Produced::of(self.format, applied.body.as_deref().unwrap_or(&self.marked)))
    }

    /// Notes what `statement` did: between the last one and `after`.
    fn compare(&self, statement: usize, after: &BTreeMap<usize, Json>, items: &mut [TracedItem]) {
        for (mark, was) in &self.current {
            let differences = match after.get(mark) {
                Some(now) if now == was => continue,
                Some(now) => {
                    let mut found = differences(was, now, true);
                    found.retain(|difference| !self.random.contains(&(*mark, difference.path.clone())));
                    if found.is_empty() {
                        continue;
                    }
                    Some(found)
                }
                None => None,
            };
            if let Some(item) = items.get_mut(self.first + mark) {
                item.changes.push(TracedChange { statement, differences });
            }
        }
    }

    fn note_random(&mut self, once: &BTreeMap<usize, Json>, again: &BTreeMap<usize, Json>) {
        for (mark, one) in once {
            let other = again.get(mark).into_iter();
            let found = other.flat_map(|other| differences(one, other, true));
            self.random.extend(found.map(|difference| (*mark, difference.path)));
        }
    }
}

impl Produced {
    fn of(format: Format, body: &[u8]) -> Produced {
        let read: Vec<Json> = match format {
            Format::Otlp(signal) => decode(signal, body),
            Format::RemoteWrite(_) => decode_series(body).into_iter().map(Json::from).collect(),
        };
        let mut produced = Produced { items: BTreeMap::new(), made: Vec::new() };
        let mut marks = marks(format, body).into_iter();
        for item in read {
            match marks.next().flatten() {
                // A copy has the mark of what it was made of.
                Some(mark) if !produced.items.contains_key(&mark) => {
                    produced.items.insert(mark, item);
                }
                _ => produced.made.push(item),
            }
        }
        produced
    }
}

/// Whether a statement gives another value in each run.
fn draws(definition: &Definition, step: usize, item: Option<usize>) -> bool {
    match definition.steps.get(step).map(|step| &step.kind) {
        Some(StepKind::Edit(statements)) => {
            item.and_then(|item| statements.get(item)).is_some_and(|statement| statement.contains("UUID"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
