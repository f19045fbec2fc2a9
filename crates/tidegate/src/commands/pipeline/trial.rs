//! `tidegate pipeline trial`: the process in which a trial of the page `/pipelines` runs.
//!
//! It reads a [`TrialRequest`], the form and the items that were taken from standard input, and writes the answer to standard
//! output. Whatever is in them, it takes no more than its bounds, and does nothing else.

use super::{described, now_ns};
use crate::Outcome;
use crate::commands::confine::confine;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tidegate_config::{Errors, ParsedSteps, parse_steps};
use tidegate_console::{
    ChangeReport, FormError, ItemReport, LONGEST_ITEMS, StatementReport, TextProblem, TrialAnswer, TrialForm,
    TrialReport, TrialRequest,
};
use tidegate_pipeline::{Definition, Format, StepKind};
use tidegate_trial::{Bounds, PasteProblem, Trace, TracedStatement, read_pasted, trace};
use tidegate_wire::otlp::Signal as OtlpSignal;

/// The longest input: a request, a form, and items.
const LONGEST_INPUT: u64 = 1 << 20;
/// Processor time, in seconds.
const CPU_SECONDS: u64 = 8;
/// Not above the gateway, which has work to do.
const NICE: i32 = 10;
/// How long statements are explained.
const EXPLAIN_TIME: Duration = Duration::from_secs(3);
/// The longest body between statements.
const LONGEST_BODY: usize = 2 << 20;
/// So many problems are told of each text.
const MOST_PROBLEMS: usize = 20;
/// The longest line that is shown with a problem, in characters.
const LONGEST_LINE: usize = 400;

/// `tidegate pipeline trial`
pub(super) fn trial(memory: u64) -> Outcome {
    confine(memory, CPU_SECONDS, NICE)?;
    let mut input = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    std::io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut input)?;
    let answer = answer(&input).ok_or("the input is no trial: this command is for the gateway itself")?;
    std::io::stdout().lock().write_all(answer.bytes())?;
    Ok(())
}

fn answer(input: &[u8]) -> Option<TrialAnswer> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let request: TrialRequest = serde_json::from_slice(input.get(..end)?).ok()?;
    let (body, items) = input.get(end + 1..)?.split_at_checked(request.form_bytes)?;
    let is_json = TrialForm::is_json(&request.content_type);
    let mut report = TrialReport::default();
    let form = match TrialForm::read(&request.content_type, body) {
        Ok(form) => filled(form, &request, items, &mut report),
        Err(FormError::Unreadable(words)) => return Some(TrialAnswer::refused(&words, is_json)),
        Err(error) if is_json => return Some(TrialAnswer::refused(&error.to_string(), is_json)),
        Err(FormError::TooLong { name, most, form }) => {
            report.notes.push(FormError::TooLong { name, most, form: TrialForm::default() }.to_string());
            return Some(TrialAnswer::page(&form, &report, &request.pipelines, request.most));
        }
    };
    run(&form, &mut report);
    Some(match is_json {
        true => TrialAnswer::json(&report, request.most),
        false => TrialAnswer::page(&form, &report, &request.pipelines, request.most),
    })
}

/// The form with what was asked for in the place of its texts.
fn filled(mut form: TrialForm, request: &TrialRequest, items: &[u8], report: &mut TrialReport) -> TrialForm {
    if let Some(load) = &request.load {
        match &load.steps {
            Some(steps) => form.steps.clone_from(steps),
            None => report.notes.push(format!(
                "There is no pipeline {}, or its steps are too long for a form, or the configuration is being changed.",
                load.name
            )),
        }
    }
    if let Some(taken) = &request.taken {
        report.notes.push(taken.words.clone());
        if let Some(items) = std::str::from_utf8(items).ok().filter(|items| !items.is_empty()) {
            form.items = items.to_owned();
        }
    }
    form.items.truncate(LONGEST_ITEMS);
    form
}

fn run(form: &TrialForm, report: &mut TrialReport) {
    let (has_steps, has_items) = (!form.steps.trim().is_empty(), !form.items.trim().is_empty());
    if !has_steps || !has_items {
        let missing = if has_steps { "items" } else { "steps" };
        report.notes.push(format!("There are no {missing} yet."));
    }
    let pasted = read_pasted(&form.items);
    report.items_problems = problems_of_items(&pasted.problems, &form.items);
    if !has_steps {
        return;
    }
    let ParsedSteps { pipeline, warnings } = match parse_steps("steps", &form.steps) {
        Ok(parsed) => parsed,
        Err(errors) => return report.steps_problems = problems_of_steps(&errors, &form.steps),
    };
    report.warnings = warnings;
    report.warnings.extend(unfit(&pipeline.definition, pasted.bodies.iter().map(|body| body.format)));
    let bounds = Bounds { body: LONGEST_BODY, explain_until: Instant::now() + EXPLAIN_TIME };
    match trace(&pipeline.definition, &pasted.bodies, now_ns(), bounds) {
        Ok(traced) => {
            let step =
                |at: usize| pipeline.labels.get(at).map_or_else(String::new, |label| label.step.clone());
            fill(report, traced, &pipeline.definition, &step);
        }
        Err(error) => report.notes.push(format!("{error}: try fewer of them.")),
    }
}

fn fill(report: &mut TrialReport, traced: Trace, definition: &Definition, step: &dyn Fn(usize) -> String) {
    let statements = traced.statements.iter().enumerate().map(|(position, statement)| {
        let mut it = StatementReport {
            step: step(statement.step),
            what: described(definition, statement.step, statement.item),
            changed: 0,
            dropped: 0,
            failed: failures(&traced, statement),
            explained: position < traced.explained,
        };
        let changes = traced.items.iter().flat_map(|item| &item.changes);
        for change in changes.filter(|change| change.statement == position) {
            *if change.differences.is_some() { &mut it.changed } else { &mut it.dropped } += 1;
        }
        it
    });
    report.statements = statements.collect();
    if traced.explained < traced.statements.len() {
        report.notes.push(format!(
            "The time was over: only the first {} of {} statements are explained. What comes out is complete.",
            traced.explained,
            traced.statements.len()
        ));
    }
    report.made = traced.made;
    report.items = traced
        .items
        .into_iter()
        .map(|item| {
            let drop = item.changes.iter().find(|change| change.differences.is_none());
            let changes = item.changes.iter().flat_map(|change| {
                change.differences.iter().flatten().map(|difference| ChangeReport {
                    statement: change.statement,
                    path: difference.path.clone(),
                    was: difference.expected.clone(),
                    now: difference.got.clone(),
                })
            });
            ItemReport {
                line: item.line,
                kind: kind(item.format),
                dropped_by: drop.map(|drop| drop.statement),
                changes: changes.collect(),
                before: item.before,
                after: item.after,
            }
        })
        .collect();
}

const fn kind(format: Format) -> &'static str {
    match format {
        Format::Otlp(OtlpSignal::Traces) => "span",
        Format::Otlp(OtlpSignal::Metrics) => "metric point",
        Format::Otlp(_) => "log record",
        Format::RemoteWrite(_) => "series",
    }
}

/// On how many items a statement failed, in the run as a whole.
fn failures(traced: &Trace, statement: &TracedStatement) -> u64 {
    let Some(step) = traced.steps.get(statement.step) else { return 0 };
    match statement.item {
        Some(item) => step.failures.get(item).copied().unwrap_or(0),
        None => step.failures.iter().sum(),
    }
}

/// Steps that leave all of the items as they are, because they are of another kind.
fn unfit(definition: &Definition, formats: impl Iterator<Item = Format>) -> Option<String> {
    let formats: Vec<Format> = formats.collect();
    let is_series = |format: &Format| matches!(format, Format::RemoteWrite(_));
    let relabels = |kind: &StepKind| matches!(kind, StepKind::Relabel(_));
    let steps = || definition.steps.iter().map(|step| &step.kind);
    if formats.is_empty() {
        None
    } else if formats.iter().all(is_series) && !steps().any(relabels) {
        Some("these steps leave series as they are: only `relabel` changes those".to_owned())
    } else if !formats.iter().any(is_series) && steps().all(relabels) {
        let help =
            "OTLP metrics are relabelled by a sink `prometheus_remote_write`, after it has translated them";
        Some(format!("`relabel` leaves items of OTLP as they are: paste series. {help}"))
    } else {
        None
    }
}

fn problems_of_steps(errors: &Errors, text: &str) -> Vec<TextProblem> {
    let problem = |problem: &tidegate_config::Problem| {
        let (message, help) = (problem.message.clone(), problem.help.clone());
        let Some(place) = &problem.place else {
            return TextProblem { line: 0, column: 0, width: 0, excerpt: String::new(), message, help };
        };
        // The excerpt of a configuration hides what may be secrets; here the whole text stands above.
        let (excerpt, column) = excerpt(text, place.line, place.column);
        let width = place.width.min(excerpt.chars().count().saturating_sub(column - 1).max(1));
        TextProblem { line: place.line, column, width, excerpt, message, help }
    };
    errors.problems().iter().take(MOST_PROBLEMS).map(problem).collect()
}

/// A line, from near the column on where it is long, and the column in it.
fn excerpt(text: &str, line: usize, column: usize) -> (String, usize) {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let start = column.saturating_sub(LONGEST_LINE / 2);
    (line.chars().skip(start).take(LONGEST_LINE).collect(), column.saturating_sub(start).max(1))
}

fn problems_of_items(problems: &[PasteProblem], text: &str) -> Vec<TextProblem> {
    let problem = |problem: &PasteProblem| {
        let (excerpt, _) = excerpt(text, problem.line, 1);
        let (line, message) = (problem.line, problem.message.clone());
        TextProblem { line, column: 0, width: 0, excerpt, message, help: String::new() }
    };
    let mut shown: Vec<TextProblem> = problems.iter().take(MOST_PROBLEMS).map(problem).collect();
    if let Some(more) = problems.len().checked_sub(MOST_PROBLEMS + 1) {
        shown.push(TextProblem {
            line: 0,
            column: 0,
            width: 0,
            excerpt: String::new(),
            message: format!("{} more lines cannot be read", more + 1),
            help: String::new(),
        });
    }
    shown
}

#[cfg(test)]
mod tests;
