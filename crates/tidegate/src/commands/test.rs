//! `tidegate test`: the tests in a configuration.

use super::pipeline::{Input, compiled, explanation, now_ns};
use crate::cli::TestArgs;
use crate::commands::check;
use crate::{Failure, Outcome, output};
use serde_json::Value as Json;
use std::fmt::Write;
use tidegate_config::{Config, Expectation, Fixture, Given, PipelineTest, Sequence, Text};
use tidegate_pipeline::ErrorMode;
use tidegate_trial::{Applied, apply, differences, encode, encode_series};
use tidegate_wire::otlp::Signal;

/// `tidegate test`
pub(crate) fn test(args: &TestArgs) -> Outcome {
    let config = check::config(&args.config)?;
    let wanted =
        |test: &&PipelineTest| args.filter.as_ref().is_none_or(|part| test.name.as_str().contains(part));
    let tests: Vec<&PipelineTest> = config.tests.iter().filter(wanted).collect();
    if tests.is_empty() {
        let what = if config.tests.is_empty() {
            "the configuration has no `tests`"
        } else {
            "no test has such a name"
        };
        return Err(Failure(format!("{what}: see docs/pipelines.md for how to write some")));
    }
    let (mut text, mut failed) = (String::new(), 0);
    for test in &tests {
        let report = run(&config, test)?;
        failed += usize::from(!report.is_empty());
        let verdict = if report.is_empty() { "ok    " } else { "FAILED" };
        let _ = writeln!(text, "{verdict} {}", test.name.as_str());
        for line in &report {
            let _ = writeln!(text, "       {line}");
        }
        if args.explain {
            for (_, input) in inputs(test)? {
                text.push_str(&explanation(&config, &test.pipeline, &input)?);
            }
        }
    }
    let _ = writeln!(text, "{} of {} tests passed", tests.len() - failed, tests.len());
    output::print(&text)?;
    if failed > 0 { Err(Failure(format!("{failed} tests failed"))) } else { Ok(()) }
}

/// The lines that say what is not as expected.
fn run(config: &Config, test: &PipelineTest) -> Result<Vec<String>, Failure> {
    let (pipeline, labels) = compiled(config, &test.pipeline)?;
    let steps = config.pipeline(&test.pipeline).map(|steps| steps.definition.steps).unwrap_or_default();
    let is_silent = |step: usize| steps.get(step).is_some_and(|step| step.on_error == ErrorMode::Silent);
    let (mut report, mut dropped) = (Vec::new(), 0);
    let Expectation { exactly, dropped: expected_drops, .. } = test.expect.0;
    let mut unseen = expected_items(&test.expect.0);
    for (name, input) in inputs(test)? {
        let applied = apply(&pipeline, input.format, &input.body, now_ns());
        dropped += applied.dropped();
        for (step, statement) in failures(&applied).into_iter().filter(|(step, _)| !is_silent(*step)) {
            let label = labels.get(step).map_or("", |label| label.step.as_str());
            report.push(format!("step {label}, statement {}: it failed on an item", statement + 1));
        }
        let got = input.items(applied.body.as_deref().unwrap_or(&input.body));
        if let Some(at) = unseen.iter().position(|(expected, _)| *expected == name) {
            let (_, expected) = unseen.swap_remove(at);
            compare(name, &expected, &got, exactly, &mut report);
        }
    }
    for (name, expected) in unseen.into_iter().filter(|(_, expected)| !expected.is_empty()) {
        report.push(format!("{name}: {} expected, but none given", expected.len()));
    }
    if let Some(expected) = expected_drops.filter(|expected| u64::from(*expected) != dropped) {
        report.push(format!("dropped: expected {expected}, got {dropped}"));
    }
    Ok(report)
}

fn failures(applied: &Applied) -> Vec<(usize, usize)> {
    let steps = applied.steps.iter().enumerate();
    let of_step = |(step, totals): (usize, &tidegate_trial::StepTotals)| {
        let failed = totals.failures.iter().enumerate().filter(|(_, count)| **count > 0);
        failed.map(|(statement, _)| (step, statement)).collect::<Vec<_>>()
    };
    steps.flat_map(of_step).collect()
}

fn compare(name: &str, expected: &[Json], got: &[Json], exactly: bool, report: &mut Vec<String>) {
    if expected.len() != got.len() {
        report.push(format!("{name}: expected {}, got {}", expected.len(), got.len()));
    }
    for (at, (expected, got)) in expected.iter().zip(got).enumerate() {
        for difference in differences(expected, got, exactly) {
            let shown =
                |value: Option<Json>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
            let place =
                if difference.path.is_empty() { String::new() } else { format!(".{}", difference.path) };
            report.push(format!("{name}[{at}]{place}:"));
            report.push(format!("  - expected {}", shown(difference.expected)));
            report.push(format!("  + got      {}", shown(difference.got)));
        }
    }
    for (at, extra) in got.iter().enumerate().skip(expected.len()) {
        report.push(format!("{name}[{at}]:"));
        report.push(format!("  + got      {extra}"));
    }
}

const SIGNALS: [(&str, Signal); 3] =
    [("logs", Signal::Logs), ("traces", Signal::Traces), ("metrics", Signal::Metrics)];

/// The input, by signal.
fn inputs(test: &PipelineTest) -> Result<Vec<(&'static str, Input)>, Failure> {
    let Given { logs, traces, metrics, series } = &test.given.0;
    let refused = |error: tidegate_trial::ItemError| {
        Failure(format!("test `{}`, `given`: {error}", test.name.as_str()))
    };
    let mut inputs = Vec::new();
    for ((name, signal), items) in SIGNALS.into_iter().zip([logs, traces, metrics]) {
        if let Some(items) = items {
            inputs.push((name, Input::otlp(signal, encode(signal, &json(items)).map_err(refused)?)));
        }
    }
    if let Some(series) = series {
        let body = encode_series(series.iter().map(Text::as_str)).map_err(refused)?;
        inputs.push(("series", Input::series(body)));
    }
    Ok(inputs)
}

/// The expected output, by signal, where the test has one.
fn expected_items(expect: &Expectation) -> Vec<(&'static str, Vec<Json>)> {
    let Expectation { logs, traces, metrics, series, .. } = expect;
    let signals = SIGNALS.into_iter().zip([logs, traces, metrics]);
    let mut expected: Vec<_> =
        signals.filter_map(|((name, _), items)| Some((name, json(items.as_ref()?)))).collect();
    if let Some(series) = series {
        // As they are printed, so that blanks and the order of labels do not matter.
        let body = |text: &Text| encode_series([text.as_str()]).ok();
        let printed = |text: &Text| match body(text) {
            Some(body) => tidegate_trial::decode_series(&body).concat(),
            None => text.as_str().to_owned(),
        };
        expected.push(("series", series.iter().map(|text| printed(text).into()).collect()));
    }
    expected
}

fn json(items: &Sequence<Fixture>) -> Vec<Json> {
    items.iter().map(|item| item.as_json().clone()).collect()
}
