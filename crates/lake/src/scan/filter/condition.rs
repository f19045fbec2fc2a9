//! One thing that rows must have.

use super::{column, column_of};
use crate::{Error, Matcher, Query, Table};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::error::ArrowError;
use memchr::memmem::Finder;
use serde_json::{Map, Value};

/// The status of a span that failed.
const FAILED: i32 = 2;

#[derive(Debug)]
pub(crate) enum Condition {
    /// A text, exactly.
    Text { column: &'static str, value: String },
    /// A trace.
    Trace([u8; 16]),
    /// One of these traces.
    Traces(Vec<[u8; 16]>),
    /// A part of a text.
    Contains { column: &'static str, part: Box<Finder<'static>> },
    /// A number, at least.
    AtLeast { column: &'static str, least: i32 },
    /// A number, between these.
    Within { column: &'static str, least: i64, most: i64 },
    /// A number, exactly.
    Number { column: &'static str, value: i32 },
    /// A label or attribute in a column of its own.
    Promoted(Matcher),
    /// One that is in the JSON of the row's attributes, or else of its resource.
    Attribute(Matcher),
}

/// The conditions of a query, the cheapest first.
pub(super) fn of(query: &Query) -> Result<Vec<Condition>, Error> {
    let table = query.table;
    let is_metrics = matches!(table, Table::MetricPoints | Table::MetricHistograms);
    let refuse = |what| Error::Condition { what, table: table.name() };
    let mut conditions = Vec::new();
    let mut matchers = query.labels.clone();
    let mut metric = query.metric.clone();
    // A plain condition on the name can be answered by statistics.
    if metric.is_none()
        && let Some(at) = matchers.iter().position(|label| label.name == "__name__" && !label.negated)
    {
        metric = Some(matchers.swap_remove(at).value);
    }
    if let Some(id) = query.trace_id {
        if is_metrics {
            return Err(refuse("trace ids"));
        }
        conditions.push(Condition::Trace(id));
    }
    if !query.traces.is_empty() {
        if is_metrics {
            return Err(refuse("trace ids"));
        }
        let mut traces = query.traces.clone();
        traces.sort_unstable();
        conditions.push(Condition::Traces(traces));
    }
    if query.failed || query.duration_ns != (None, None) {
        if table != Table::Spans {
            return Err(refuse("durations and outcomes"));
        }
        if query.failed {
            conditions.push(Condition::Number { column: "status_code", value: FAILED });
        }
        if let (least, most) = query.duration_ns
            && (least, most) != (None, None)
        {
            let (least, most) = (least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX));
            conditions.push(Condition::Within { column: "duration_ns", least, most });
        }
    }
    if let Some(value) = metric {
        if !is_metrics {
            return Err(refuse("metric names"));
        }
        conditions.push(Condition::Text { column: "metric_name", value });
    }
    if let Some(value) = query.service.clone() {
        conditions.push(Condition::Text { column: "service_name", value });
    }
    if let Some(value) = query.name.clone() {
        let column = match table {
            Table::Spans => "span_name",
            Table::Logs => "event_name",
            Table::MetricPoints | Table::MetricHistograms => "metric_name",
        };
        conditions.push(Condition::Text { column, value });
    }
    if let Some(least) = query.severity {
        if table != Table::Logs {
            return Err(refuse("severities"));
        }
        conditions.push(Condition::AtLeast { column: "severity_number", least });
    }
    if let Some(part) = query.contains.clone() {
        if table != Table::Logs {
            return Err(refuse("bodies"));
        }
        conditions
            .push(Condition::Contains { column: "body", part: Box::new(Finder::new(&part).into_owned()) });
    }
    for matcher in matchers {
        conditions.push(match column_of(table, &matcher.name) {
            "attributes" => Condition::Attribute(matcher),
            "metric_name" | "service_name" => {
                let column = if matcher.name == "__name__" { "metric_name" } else { "service_name" };
                Condition::Promoted(Matcher { name: column.to_owned(), ..matcher })
            }
            _ => Condition::Promoted(matcher),
        });
    }
    Ok(conditions)
}

impl Condition {
    pub(super) fn columns(&self) -> Vec<&str> {
        match self {
            Condition::Text { column, .. }
            | Condition::Contains { column, .. }
            | Condition::AtLeast { column, .. }
            | Condition::Within { column, .. }
            | Condition::Number { column, .. } => vec![column],
            Condition::Trace(_) | Condition::Traces(_) => vec!["trace_id"],
            Condition::Promoted(matcher) => vec![&matcher.name],
            Condition::Attribute(_) => vec!["attributes", "resource"],
        }
    }

    /// Whether it is over a column that is in [`COSTLY`].
    pub(super) fn is_costly(&self) -> bool {
        matches!(self, Condition::Contains { .. } | Condition::Attribute(_))
    }

    /// A column and the one value that it must have.
    pub(super) fn exact(&self) -> Option<(&str, &[u8])> {
        match self {
            Condition::Text { column, value } => Some((column, value.as_bytes())),
            Condition::Trace(id) => Some(("trace_id", id)),
            _ => None,
        }
    }

    /// Takes from `wanted` the rows that do not have it.
    pub(super) fn narrow(&self, batch: &RecordBatch, wanted: &mut [bool]) -> Result<(), ArrowError> {
        let keep = |wanted: &mut [bool], has: &mut dyn FnMut(usize) -> bool| {
            for (row, wanted) in wanted.iter_mut().enumerate() {
                *wanted = *wanted && has(row);
            }
        };
        match self {
            Condition::Text { column: name, value } => {
                let texts = column(batch, name)?.as_string_view();
                keep(wanted, &mut |row| texts.is_valid(row) && texts.value(row) == value);
            }
            Condition::Contains { column: name, part } => {
                let texts = column(batch, name)?.as_string_view();
                keep(wanted, &mut |row| {
                    texts.is_valid(row) && part.find(texts.value(row).as_bytes()).is_some()
                });
            }
            Condition::AtLeast { column: name, least } => {
                let numbers = column(batch, name)?.as_primitive::<Int32Type>();
                keep(wanted, &mut |row| numbers.value(row) >= *least);
            }
            Condition::Within { column: name, least, most } => {
                let numbers = column(batch, name)?.as_primitive::<Int64Type>();
                keep(wanted, &mut |row| (least..=most).contains(&&numbers.value(row)));
            }
            Condition::Number { column: name, value } => {
                let numbers = column(batch, name)?.as_primitive::<Int32Type>();
                keep(wanted, &mut |row| numbers.value(row) == *value);
            }
            Condition::Traces(traces) => {
                let ids = column(batch, "trace_id")?.as_fixed_size_binary();
                let is_one = |id: &[u8]| traces.binary_search_by(|trace| trace.as_slice().cmp(id)).is_ok();
                keep(wanted, &mut |row| ids.is_valid(row) && is_one(ids.value(row)));
            }
            Condition::Trace(id) => {
                let ids = column(batch, "trace_id")?.as_fixed_size_binary();
                keep(wanted, &mut |row| ids.is_valid(row) && ids.value(row) == id);
            }
            Condition::Promoted(matcher) => {
                let column = column(batch, &matcher.name)?;
                if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
                    let text = |row| {
                        if numbers.is_valid(row) { numbers.value(row).to_string() } else { String::new() }
                    };
                    keep(wanted, &mut |row| matcher.is(&text(row)));
                } else {
                    let texts = column.as_string_view();
                    keep(wanted, &mut |row| {
                        matcher.is(if texts.is_null(row) { "" } else { texts.value(row) })
                    });
                }
            }
            Condition::Attribute(matcher) => {
                let attributes = column(batch, "attributes")?.as_string_view();
                let resources = column(batch, "resource")?.as_string_view();
                // Rows of a series or a process follow each other, so the last answer is often the next one.
                let mut last: Option<(&str, &str, bool)> = None;
                keep(wanted, &mut |row| {
                    let (own, resource) = (attributes.value(row), resources.value(row));
                    match last {
                        Some((known, of, answer)) if known == own && of == resource => answer,
                        _ => last.insert((own, resource, matcher.is_in(own, resource))).2,
                    }
                });
            }
        }
        Ok(())
    }
}

impl Matcher {
    fn is(&self, text: &str) -> bool {
        (text == self.value) != self.negated
    }

    /// Whether it matches these attributes of a row, or where they say nothing those of its resource. What is
    /// no string is compared as JSON.
    fn is_in(&self, attributes: &str, resource: &str) -> bool {
        let value_in = |json: &str| {
            // Most texts do not have the name at all, and need not be taken apart.
            let all: Map<String, Value> = if json.contains(&self.name) {
                serde_json::from_str(json).unwrap_or_default()
            } else {
                Map::new()
            };
            all.get(&self.name).map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        self.is(&value_in(attributes).or_else(|| value_in(resource)).unwrap_or_default())
    }
}
