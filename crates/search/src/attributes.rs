//! Rows as objects of JSON, for people: attributes together again, long texts cut.

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::error::ArrowError;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use tidegate_lake::{Table, json_of};

/// The longest text that is shown whole, and the longest attributes that are shown at all, in bytes.
const LONGEST: usize = 16 << 10;

/// The body is a string, and no other JSON.
const STRING: &str = "1";

/// The store in which a row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Journal,
    Lake,
    DeadLetter,
}

/// The columns of a log record that is shown.
pub(crate) const LOG: [&str; 19] = [
    "time",
    "time_ns",
    "service_name",
    "severity_number",
    "severity_text",
    "body",
    "body_type",
    "event_name",
    "trace_id",
    "span_id",
    "scope_name",
    "attributes",
    "resource",
    "log.file.path",
    "k8s.namespace.name",
    "k8s.pod.name",
    "k8s.container.name",
    "host.name",
    "exception.type",
];

/// The columns of a span that is shown.
pub(crate) const SPAN: [&str; 29] = [
    "start_time",
    "start_ns",
    "service_name",
    "span_name",
    "duration_ns",
    "kind",
    "status_code",
    "status_message",
    "trace_id",
    "span_id",
    "parent_span_id",
    "scope_name",
    "attributes",
    "resource",
    "events",
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "url.path",
    "server.address",
    "db.system",
    "db.namespace",
    "db.query.text",
    "rpc.service",
    "rpc.method",
    "messaging.system",
    "messaging.destination.name",
    "exception.type",
    "enduser.id",
];

/// The columns of a shown point or histogram; each of their tables has some of the last six.
pub(crate) const METRIC: [&str; 18] = [
    "time",
    "time_ns",
    "service_name",
    "metric_name",
    "unit",
    "attributes",
    "resource",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
    "quantile",
    "value",
    "value_int",
    "count",
    "count_float",
    "sum",
];

/// Writes a row as an object.
struct RowWriter<'r> {
    rows: &'r RecordBatch,
    row: usize,
    json: String,
    is_cut: bool,
}

/// A log record.
pub(crate) fn log(rows: &RecordBatch, row: usize, from: Origin) -> Vec<u8> {
    let mut out = RowWriter::new(rows, row);
    out.value("time", "time");
    out.text("service", "service_name");
    out.value("severity", "severity_number");
    out.text("severity_text", "severity_text");
    out.text("event_name", "event_name");
    out.text("body", "body");
    out.member("body_is_json", if json_of(rows, "body_type", row) == STRING { "false" } else { "true" });
    out.value("trace_id", "trace_id");
    out.value("span_id", "span_id");
    out.text("scope", "scope_name");
    out.attributes(Table::Logs);
    out.end(from)
}

/// A span.
pub(crate) fn span(rows: &RecordBatch, row: usize, from: Origin) -> Vec<u8> {
    let mut out = RowWriter::new(rows, row);
    out.value("time", "start_time");
    out.text("service", "service_name");
    out.text("name", "span_name");
    out.value("duration_ns", "duration_ns");
    out.value("kind", "kind");
    out.value("status", "status_code");
    out.text("status_message", "status_message");
    out.value("trace_id", "trace_id");
    out.value("span_id", "span_id");
    out.value("parent_span_id", "parent_span_id");
    out.text("scope", "scope_name");
    out.attributes(Table::Spans);
    out.events();
    out.end(from)
}

/// A point of a metric.
pub(crate) fn point(rows: &RecordBatch, row: usize, from: Origin) -> Vec<u8> {
    let mut out = RowWriter::of_metric(rows, row);
    out.value("quantile", "quantile");
    let value = if json_of(rows, "value", row) == "null" { "value_int" } else { "value" };
    out.value("value", value);
    out.attributes(Table::MetricPoints);
    out.end(from)
}

/// A histogram of a metric.
pub(crate) fn histogram(rows: &RecordBatch, row: usize, from: Origin) -> Vec<u8> {
    let mut out = RowWriter::of_metric(rows, row);
    let count = if json_of(rows, "count", row) == "null" { "count_float" } else { "count" };
    out.value("count", count);
    out.value("sum", "sum");
    out.attributes(Table::MetricHistograms);
    out.end(from)
}

impl Origin {
    fn json(self) -> &'static str {
        match self {
            Origin::Journal => "\"journal\"",
            Origin::Lake => "\"lake\"",
            Origin::DeadLetter => "\"dead letter\"",
        }
    }
}

impl<'r> RowWriter<'r> {
    fn new(rows: &'r RecordBatch, row: usize) -> Self {
        RowWriter { rows, row, json: "{".to_owned(), is_cut: false }
    }

    /// With that which points and histograms have alike.
    fn of_metric(rows: &'r RecordBatch, row: usize) -> Self {
        let mut out = RowWriter::new(rows, row);
        out.value("time", "time");
        out.text("service", "service_name");
        out.text("name", "metric_name");
        out.text("unit", "unit");
        out
    }

    fn member(&mut self, name: &str, json: &str) {
        let comma = if self.json.len() > 1 { "," } else { "" };
        let _ = write!(self.json, "{comma}\"{name}\":{json}");
    }

    fn value(&mut self, name: &str, column: &str) {
        let json = json_of(self.rows, column, self.row);
        self.member(name, &json);
    }

    fn text(&mut self, name: &str, column: &str) {
        let text = text_of(self.rows, column, self.row);
        let json = text.map_or(Value::Null, |text| {
            let short = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
            self.is_cut |= short.len() < text.len();
            Value::from(short)
        });
        self.member(name, &json.to_string());
    }

    /// Attributes that have columns of their own are among the others again.
    fn attributes(&mut self, table: Table) {
        let resource = self.object("resource");
        let mut own = self.object("attributes");
        if let Some(own) = &mut own {
            for &name in table.promoted() {
                // That of a log record may be its resource's.
                let is_of_resource =
                    table == Table::Logs && resource.as_ref().is_some_and(|all| all.contains_key(name));
                let value = json_of(self.rows, name, self.row);
                if value != "null" && value.len() <= LONGEST && !is_of_resource {
                    own.insert(name.to_owned(), serde_json::from_str(&value).unwrap_or_default());
                }
            }
        }
        let json = |object: Option<Map<String, Value>>| object.map_or(Value::Null, Value::Object).to_string();
        self.member("attributes", &json(own));
        self.member("resource", &json(resource));
    }

    fn object(&mut self, column: &str) -> Option<Map<String, Value>> {
        let text = text_of(self.rows, column, self.row)?;
        self.is_cut |= text.len() > LONGEST;
        if text.len() > LONGEST { None } else { serde_json::from_str(text).ok() }
    }

    fn events(&mut self) {
        let json = json_of(self.rows, "events", self.row);
        self.is_cut |= json.len() > LONGEST;
        let json = if json.len() > LONGEST || json == "null" { "[]" } else { &json };
        self.member("events", json);
    }

    fn end(mut self, from: Origin) -> Vec<u8> {
        self.member("from", from.json());
        let cut = if self.is_cut { "true" } else { "false" };
        self.member("cut", cut);
        self.json.push('}');
        self.json.into_bytes()
    }
}

/// A column that the lake's tables have.
pub(crate) fn column<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r ArrayRef, ArrowError> {
    rows.column_by_name(name)
        .ok_or_else(|| ArrowError::SchemaError(format!("the column `{name}` is missing")))
}

/// The text of a row in a column.
pub(crate) fn text_of<'r>(rows: &'r RecordBatch, column: &str, row: usize) -> Option<&'r str> {
    let column = rows.column_by_name(column)?.as_string_view_opt()?;
    column.is_valid(row).then(|| column.value(row))
}
