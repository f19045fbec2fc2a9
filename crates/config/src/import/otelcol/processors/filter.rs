//! The filter processor: drops what meets a condition.

use super::{Processed, error_mode, values};
use crate::import::group::{FileReader, Group};
use crate::import::otelcol::matching::{Legacy, condition};
use crate::import::ottl;
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;
use crate::yaml::{Node, Value};

/// The steps of a filter.
pub(super) fn convert(name: &str, group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Processed {
    let mut processed = Processed::default();
    let mode = error_mode(group, reader);
    let mut push = |signal, conditions: Vec<String>, own: Option<&'static str>| {
        if !conditions.is_empty() {
            let mut step = Step::new(name, StepKind::Drop(conditions));
            step.on_error = own.or(mode);
            processed.push(signal, step);
        }
    };
    for (signal, key) in [
        (Signal::Traces, "trace_conditions"),
        (Signal::Metrics, "metric_conditions"),
        (Signal::Logs, "log_conditions"),
    ] {
        let path = group.path_of(key);
        let Some(entry) = group.take(key) else { continue };
        for (conditions, own) in lists(&entry.node, &path, reader) {
            push(signal, conditions, own);
        }
    }
    for (signal, key, contexts) in [
        (
            Signal::Traces,
            "traces",
            &[("resource", "resource"), ("span", "span"), ("spanevent", "spanevent")][..],
        ),
        (
            Signal::Metrics,
            "metrics",
            &[("resource", "resource"), ("metric", "metric"), ("datapoint", "datapoint")],
        ),
        (Signal::Logs, "logs", &[("resource", "resource"), ("log_record", "log")]),
    ] {
        let Some(mut inner) = group.group(key, reader) else { continue };
        push(signal, legacy(&mut inner, signal, reader), None);
        let mut conditions = Vec::new();
        for (list, context) in contexts {
            let texts = inner.texts(list, reader);
            conditions.extend(texts.iter().map(|text| ottl::qualified(&text.value, context)));
        }
        push(signal, conditions, None);
        inner.lacks(
            &[("regexp", "not needed: regular expressions are compiled when the configuration is read")],
            reader,
        );
        inner.finish(reader);
    }
    if let Some(mut spans) = group.group("spans", reader) {
        push(Signal::Traces, legacy(&mut spans, Signal::Traces, reader), None);
        spans.finish(reader);
    }
    let profiles = "left out: pipelines do not look at profiles";
    group.lacks(&[("profiles", profiles), ("profile_conditions", profiles)], reader);
    processed
}

/// Conditions as texts, which have their contexts in their paths, or in groups with a context.
fn lists(
    node: &Node,
    path: &str,
    reader: &mut FileReader<'_, '_>,
) -> Vec<(Vec<String>, Option<&'static str>)> {
    let mut flat = Vec::new();
    let mut found = Vec::new();
    for item in reader.items(node, path) {
        if !matches!(item.value, Value::Mapping(_)) {
            flat.extend(reader.text(item, path));
            continue;
        }
        let Some(mut group) = reader.group(item, path) else { continue };
        let context = group.text("context", reader);
        let mode = error_mode(&mut group, reader);
        let texts = group.texts("conditions", reader);
        group.finish(reader);
        let conditions = match context {
            Some(context) => texts.iter().map(|text| ottl::qualified(&text.value, &context.value)).collect(),
            None => values(&texts),
        };
        found.push((conditions, mode));
    }
    found.insert(0, (values(&flat), None));
    found
}

/// The conditions by which `include` and `exclude` drop.
fn legacy(group: &mut Group<'_>, signal: Signal, reader: &mut FileReader<'_, '_>) -> Vec<String> {
    let legacy = match signal {
        Signal::Logs => Legacy::Logs,
        Signal::Metrics => Legacy::Metrics,
        _ => Legacy::Spans,
    };
    let mut conditions = Vec::new();
    for (key, is_kept) in [("include", true), ("exclude", false)] {
        let Some(mut inner) = group.group(key, reader) else { continue };
        let met = condition(&mut inner, legacy, reader);
        inner.finish(reader);
        conditions.extend(met.map(|met| if is_kept { format!("not ({met})") } else { met }));
    }
    conditions
}
