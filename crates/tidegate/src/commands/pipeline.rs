//! `tidegate pipeline …`: pipelines tried out on what a person has at hand.

mod trial;

use crate::cli::{EvalArgs, EvalFormat, EvalSignal, PipelineCommand};
use crate::commands::check;
use crate::{Failure, Outcome, output};
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_config::{Config, Name, StepLabel};
use tidegate_pipeline::{Definition, Format, Pipeline, StepKind};
use tidegate_trial::{
    Applied, Change, StepTotals, apply, decode, decode_samples, decode_series, encode, encode_series, explain,
};
use tidegate_wire::otlp::json::{Encoder, Layout, Next, max_len, translate};
use tidegate_wire::otlp::{self, Signal};
use tidegate_wire::remote_write::Version;

/// The longest input, in bytes.
const LONGEST: u64 = 1 << 30;

/// A body, and how people see what is in it.
pub(crate) struct Input {
    pub(crate) format: Format,
    pub(crate) body: Vec<u8>,
}

impl Input {
    pub(crate) fn otlp(signal: Signal, body: Vec<u8>) -> Input {
        Input { format: Format::Otlp(signal), body }
    }

    pub(crate) fn series(body: Vec<u8>) -> Input {
        Input { format: Format::RemoteWrite(Version::V1), body }
    }

    /// The items of a body of this format.
    pub(crate) fn items(&self, body: &[u8]) -> Vec<Json> {
        match self.format {
            Format::Otlp(signal) => decode(signal, body),
            Format::RemoteWrite(_) => decode_series(body).into_iter().map(Json::from).collect(),
        }
    }
}

/// `tidegate pipeline …`
pub(crate) fn pipeline(command: &PipelineCommand) -> Outcome {
    match command {
        PipelineCommand::Eval(args) => eval(args),
        PipelineCommand::Trial { memory } => trial::trial(*memory),
    }
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// The pipeline `name`, compiled, and the names of its steps.
pub(crate) fn compiled(config: &Config, name: &Name) -> Result<(Pipeline, Vec<StepLabel>), Failure> {
    let steps = config.pipeline(name).ok_or_else(|| Failure(format!("there is no pipeline `{name}`")))?;
    // The configuration was checked, so it compiles.
    let (pipeline, _) = Pipeline::compile(&steps.definition).map_err(|problems| {
        Failure(problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("\n"))
    })?;
    Ok((pipeline, steps.labels))
}

/// Shows in lines how each statement of a pipeline changes an input.
pub(crate) fn explanation(config: &Config, name: &Name, input: &Input) -> Result<String, Failure> {
    let steps = config.pipeline(name).ok_or_else(|| Failure(format!("there is no pipeline `{name}`")))?;
    let items = |body: &[u8]| input.items(body);
    let explained =
        explain(&steps.definition, input.format, &input.body, now_ns(), items).map_err(|problems| {
            Failure(problems.first().map(|problem| problem.message.clone()).unwrap_or_default())
        })?;
    let mut text = String::new();
    for part in explained {
        let label = steps.labels.get(part.step).map_or("", |label| label.step.as_str());
        let what = described(&steps.definition, part.step, part.item);
        let _ = writeln!(text, "       step {label}: {what}");
        for Change { item, differences } in &part.changes {
            let Some(differences) = differences else {
                let _ = writeln!(text, "         item {}: dropped", item + 1);
                continue;
            };
            for difference in differences {
                let shown = |value: &Option<Json>| {
                    value.as_ref().map_or_else(|| "nothing".to_owned(), |value| value.to_string())
                };
                let (was, now) = (shown(&difference.expected), shown(&difference.got));
                let path = &difference.path;
                let place = if path.is_empty() { String::new() } else { format!(" {path}:") };
                let _ = writeln!(text, "         item {}:{place} {was} → {now}", item + 1);
            }
        }
        if part.changes.is_empty() {
            text.push_str("         no change\n");
        }
    }
    Ok(text)
}

/// A statement as it is written, or the name of a step.
fn described(definition: &Definition, step: usize, item: Option<usize>) -> String {
    let at = item.unwrap_or_default();
    match definition.steps.get(step).map(|step| &step.kind) {
        Some(StepKind::Edit(statements)) => statements.get(at).cloned().unwrap_or_default(),
        Some(StepKind::Relabel(rules)) => rules.get(at).map_or_else(String::new, |rule| {
            format!("relabel rule {}: {}", at + 1, rule.action.as_deref().unwrap_or("replace"))
        }),
        Some(StepKind::Drop(conditions)) => format!("drop {}", conditions.join(", ")),
        Some(StepKind::Keep(conditions)) => format!("keep {}", conditions.join(", ")),
        Some(StepKind::Redact(_)) => "redact".to_owned(),
        Some(StepKind::Sample(sampling)) => format!("sample {}", sampling.ratio),
        _ => String::new(),
    }
}

fn eval(args: &EvalArgs) -> Outcome {
    let config = check::config(&args.config)?;
    let name = match &args.pipeline {
        Some(name) => name.parse::<Name>().map_err(|_| Failure(format!("there is no pipeline `{name}`")))?,
        None => {
            let mut names = config.pipelines.keys();
            let only = names.next().filter(|_| names.next().is_none()).cloned();
            only.ok_or("name the pipeline with --pipeline: the configuration does not have exactly one")?
        }
    };
    let (pipeline, labels) = compiled(&config, &name)?;
    let mut input = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    std::io::stdin().lock().take(LONGEST).read_to_end(&mut input)?;
    let mut totals = Totals::default();
    let mut out = std::io::stdout().lock();
    for form in forms(args, &input)? {
        if args.explain {
            out.write_all(explanation(&config, &name, &form.input)?.as_bytes())?;
            continue;
        }
        let applied = apply(&pipeline, form.input.format, &form.input.body, now_ns());
        totals.add(&applied);
        let body = applied.body.as_deref().unwrap_or(&form.input.body);
        let written = written(&form, body);
        match out.write_all(&written) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            outcome => outcome?,
        }
    }
    drop(out);
    totals.report(&labels);
    Ok(())
}

/// A part of the input that is one body.
struct Form {
    input: Input,
    /// How it was written, and is written again.
    written: Written,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Protobuf,
    Request,
    Items,
    Series,
}

fn signal_of(args: &EvalArgs) -> Option<Signal> {
    args.signal.map(|signal| match signal {
        EvalSignal::Traces => Signal::Traces,
        EvalSignal::Metrics => Signal::Metrics,
        EvalSignal::Logs => Signal::Logs,
    })
}

fn forms(args: &EvalArgs, input: &[u8]) -> Result<Vec<Form>, Failure> {
    let is_json = input.trim_ascii_start().first() == Some(&b'{')
        && serde_json::Deserializer::from_slice(input)
            .into_iter::<Json>()
            .next()
            .is_some_and(|first| first.is_ok());
    let format = match args.format {
        Some(format) => format,
        None if is_json => EvalFormat::Json,
        None if args.signal.is_some() => EvalFormat::Protobuf,
        None if std::str::from_utf8(input).is_ok() => EvalFormat::Series,
        None => return Err("name the signal of the protobuf with --signal".into()),
    };
    match format {
        EvalFormat::Protobuf => {
            let signal = signal_of(args).ok_or("name the signal of the protobuf with --signal")?;
            otlp::check(signal, input)
                .map_err(|error| format!("this is no OTLP request of that signal: {error}"))?;
            Ok(vec![Form { input: Input::otlp(signal, input.to_vec()), written: Written::Protobuf }])
        }
        EvalFormat::Json => json_forms(args, input),
        EvalFormat::Series => {
            let text = std::str::from_utf8(input).map_err(|_| "series are UTF-8")?;
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            let body = encode_series(lines)?;
            Ok(vec![Form { input: Input::series(body), written: Written::Series }])
        }
    }
}

/// Each request is a body, and neighbouring items of a signal are.
fn json_forms(args: &EvalArgs, input: &[u8]) -> Result<Vec<Form>, Failure> {
    let mut forms = Vec::new();
    let mut items: Vec<Json> = Vec::new();
    let mut signal_of_items = None;
    let flush = |items: &mut Vec<Json>, signal: Option<Signal>, forms: &mut Vec<Form>| -> Outcome {
        if let Some(signal) = signal.filter(|_| !items.is_empty()) {
            let body = encode(signal, &std::mem::take(items))?;
            forms.push(Form { input: Input::otlp(signal, body), written: Written::Items });
        }
        Ok(())
    };
    for value in serde_json::Deserializer::from_slice(input).into_iter::<Json>() {
        let value = value.map_err(|error| format!("reading JSON: {error}"))?;
        const REQUESTS: [(&str, Signal); 3] = [
            ("resourceSpans", Signal::Traces),
            ("resourceMetrics", Signal::Metrics),
            ("resourceLogs", Signal::Logs),
        ];
        if let Some((_, signal)) = REQUESTS.iter().find(|(name, _)| value.get(name).is_some()) {
            flush(&mut items, signal_of_items, &mut forms)?;
            let text = value.to_string();
            let mut body = vec![0; max_len(text.as_bytes())];
            let translated = translate(*signal, text.as_bytes(), &mut body)
                .map_err(|error| format!("reading an OTLP/JSON request: {error}"))?;
            if let Some(error) = translated.errors.first() {
                return Err(Failure(format!("reading an OTLP/JSON request: {error}")));
            }
            body.truncate(translated.len);
            forms.push(Form { input: Input::otlp(*signal, body), written: Written::Request });
            continue;
        }
        let signal = match value.get("signal").and_then(Json::as_str) {
            Some("traces") => Some(Signal::Traces),
            Some("metrics") => Some(Signal::Metrics),
            Some("logs") => Some(Signal::Logs),
            _ => signal_of(args),
        };
        let signal = signal.ok_or("an item has no member `signal`: name it with --signal")?;
        if signal_of_items != Some(signal) {
            flush(&mut items, signal_of_items, &mut forms)?;
            signal_of_items = Some(signal);
        }
        items.push(value);
    }
    flush(&mut items, signal_of_items, &mut forms)?;
    Ok(forms)
}

fn written(form: &Form, body: &[u8]) -> Vec<u8> {
    match (form.written, form.input.format) {
        (Written::Protobuf, _) => body.to_vec(),
        (Written::Request, Format::Otlp(_)) if body.is_empty() => Vec::new(),
        (Written::Request, Format::Otlp(signal)) => request(signal, body),
        (Written::Series, _) => {
            decode_samples(body).into_iter().fold(Vec::new(), |mut text, (series, values)| {
                values.iter().for_each(|value| text.extend(format!("{series} {value}\n").into_bytes()));
                text
            })
        }
        _ => form.input.items(body).into_iter().fold(Vec::new(), |mut text, item| {
            text.extend(item.as_str().map_or_else(|| item.to_string(), str::to_owned).into_bytes());
            text.push(b'\n');
            text
        }),
    }
}

/// A request as OTLP/JSON, on a line.
fn request(signal: Signal, body: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(signal, body, Layout::Request);
    let (mut text, mut filled) = (vec![0; 64 << 10], 0);
    loop {
        let progress = encoder.write(text.get_mut(filled..).unwrap_or_default());
        filled += progress.written;
        match progress.next {
            Next::Done => break,
            Next::More => {}
            Next::Space => text.resize(text.len() * 2, 0),
        }
    }
    text.truncate(filled);
    text.push(b'\n');
    text
}

/// Totals of the steps for all of the input.
#[derive(Default)]
struct Totals(Vec<StepTotals>);

impl Totals {
    fn add(&mut self, applied: &Applied) {
        self.0.resize(applied.steps.len(), StepTotals::default());
        for (total, step) in self.0.iter_mut().zip(&applied.steps) {
            total.dropped += step.dropped;
            total.failures.resize(step.failures.len(), 0);
            total.failures.iter_mut().zip(&step.failures).for_each(|(total, count)| *total += count);
        }
    }

    fn report(&self, labels: &[StepLabel]) {
        for (step, label) in self.0.iter().zip(labels) {
            if step.dropped > 0 {
                output::error(&format!("step {}: {} items dropped", label.step, step.dropped));
            }
            for (statement, count) in step.failures.iter().enumerate().filter(|(_, count)| **count > 0) {
                output::error(&format!(
                    "step {}, statement {}: failed on {count} items",
                    label.step,
                    statement + 1
                ));
            }
        }
    }
}
