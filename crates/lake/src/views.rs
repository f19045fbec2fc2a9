//! Views of the tables under the names and in the shapes of the ClickHouse exporter of the OpenTelemetry
//! Collector, for who has queries for those.

use crate::layout::Layout;
use crate::{Error, Table, list};
use std::fmt::Write;
use std::path::Path;

/// One view: its name, its table, its columns and the rows that it has.
struct ViewDefinition {
    name: &'static str,
    table: Table,
    columns: &'static [(&'static str, &'static str)],
    rows: &'static str,
}

/// `CREATE VIEW` statements for DuckDB over the lake at `dir`. Attributes are maps of texts; what is no string
/// is JSON in them. A table without files has no view, since DuckDB would not know its columns: the text says
/// so where it is left out.
pub fn duckdb_views(dir: &Path) -> Result<String, Error> {
    let layout = Layout::new(dir);
    let there: Vec<Table> = list(dir)?.into_iter().map(|partition| partition.table).collect();
    let mut text = String::new();
    for view in &VIEWS {
        if there.contains(&view.table) {
            let files = layout.table(view.table).join("**").join("*.parquet");
            let files = files.display().to_string().replace('\'', "''");
            let columns: Vec<String> = view
                .columns
                .iter()
                .map(|(name, value)| format!("  {} AS \"{name}\"", value.trim()))
                .collect();
            let columns = columns.join(",\n");
            let (name, rows) = (view.name, view.rows);
            let _ = write!(
                text,
                "CREATE OR REPLACE VIEW {name} AS SELECT\n{columns}\n\
                 FROM read_parquet('{files}', union_by_name = true){rows};\n\n"
            );
        } else {
            let _ = write!(text, "-- {}: the table {} has no files yet\n\n", view.name, view.table);
        }
    }
    Ok(text)
}

/// A time in nanoseconds.
macro_rules! nanoseconds {
    ($time:literal, $rest:literal) => {
        concat!("make_timestamp_ns(epoch_us(", $time, ") * 1000 + coalesce(", $rest, ", 0))")
    };
}

/// Attributes from JSON.
macro_rules! map {
    ($json:literal) => {
        concat!("from_json(coalesce(", $json, ", '{}'), '\"MAP(VARCHAR, VARCHAR)\"')")
    };
}

/// Attributes with those that have columns of their own.
macro_rules! map_with {
    ($json:literal, $($name:literal),+) => {
        concat!(
            "map_concat(from_json(", $json, ", '\"MAP(VARCHAR, VARCHAR)\"'), map_from_entries([entry FOR entry IN [",
            $("{'k': '", $name, "', 'v': \"", $name, "\"::VARCHAR}, ",)+
            "] IF entry.v IS NOT NULL]))"
        )
    };
}

macro_rules! id {
    ($id:literal) => {
        concat!("coalesce(lower(hex(", $id, ")), '')")
    };
}

macro_rules! exemplars {
    ($of:literal) => {
        concat!("[", $of, " FOR e IN coalesce(exemplars, [])]")
    };
}

/// A metric's name, its origin, its attributes and times; then what the view has of its own.
macro_rules! metric {
    ($(($name:literal, $value:expr)),+ $(,)?) => {
        &[
            ("ResourceAttributes", map!("resource")),
            ("ResourceSchemaUrl", "coalesce(resource_schema_url, '')"),
            ("ScopeName", "coalesce(scope_name, '')"),
            ("ScopeVersion", "coalesce(scope_version, '')"),
            ("ScopeAttributes", map!("scope_attributes")),
            ("ScopeDroppedAttrCount", "0"),
            ("ScopeSchemaUrl", "coalesce(scope_schema_url, '')"),
            ("ServiceName", "service_name"),
            ("MetricName", "metric_name"),
            ("MetricDescription", "coalesce(description, '')"),
            ("MetricUnit", "coalesce(unit, '')"),
            ("Attributes", METRIC_ATTRIBUTES),
            ("StartTimeUnix", nanoseconds!("start_time", "start_ns")),
            ("TimeUnix", nanoseconds!("time", "time_ns")),
            ("Flags", "flags"),
            $(($name, $value)),+
        ]
    };
}

/// Labels that the resource has, too, are its own: they were copied to their columns for filters.
const METRIC_ATTRIBUTES: &str = "map_concat(from_json(attributes, '\"MAP(VARCHAR, VARCHAR)\"'), map_from_entries([\
    entry FOR entry IN [{'k': 'job', 'v': job}, {'k': 'instance', 'v': instance}, \
    {'k': 'k8s.namespace.name', 'v': \"k8s.namespace.name\"}, {'k': 'k8s.pod.name', 'v': \"k8s.pod.name\"}, \
    {'k': 'host.name', 'v': \"host.name\"}] \
    IF entry.v IS NOT NULL AND NOT list_contains(json_keys(resource), entry.k)]))";

const TEMPORALITY: &str = "CASE WHEN type IN (2, 4) THEN 2 WHEN type IN (3, 10) THEN 1 ELSE 0 END";

const VIEWS: [ViewDefinition; 7] = [
    ViewDefinition {
        name: "otel_traces",
        table: Table::Spans,
        columns: &[
            ("Timestamp", nanoseconds!("start_time", "start_ns")),
            ("TraceId", id!("trace_id")),
            ("SpanId", id!("span_id")),
            ("ParentSpanId", id!("parent_span_id")),
            ("TraceState", "coalesce(trace_state, '')"),
            ("SpanName", "span_name"),
            (
                "SpanKind",
                "CASE kind WHEN 1 THEN 'Internal' WHEN 2 THEN 'Server' WHEN 3 THEN 'Client' \
                 WHEN 4 THEN 'Producer' WHEN 5 THEN 'Consumer' ELSE 'Unspecified' END",
            ),
            ("ServiceName", "service_name"),
            ("ResourceAttributes", map!("resource")),
            ("ScopeName", "coalesce(scope_name, '')"),
            ("ScopeVersion", "coalesce(scope_version, '')"),
            (
                "SpanAttributes",
                map_with!(
                    "attributes",
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
                    "enduser.id"
                ),
            ),
            ("Duration", "duration_ns"),
            ("StatusCode", "CASE status_code WHEN 1 THEN 'Ok' WHEN 2 THEN 'Error' ELSE 'Unset' END"),
            ("StatusMessage", "coalesce(status_message, '')"),
            (
                "Events.Timestamp",
                "[make_timestamp_ns(epoch_us(e.time) * 1000 + e.time_ns) FOR e IN coalesce(events, [])]",
            ),
            ("Events.Name", "[e.name FOR e IN coalesce(events, [])]"),
            (
                "Events.Attributes",
                "[from_json(e.attributes, '\"MAP(VARCHAR, VARCHAR)\"') FOR e IN coalesce(events, [])]",
            ),
            ("Links.TraceId", "[lower(hex(l.trace_id)) FOR l IN coalesce(links, [])]"),
            ("Links.SpanId", "[lower(hex(l.span_id)) FOR l IN coalesce(links, [])]"),
            ("Links.TraceState", "[coalesce(l.trace_state, '') FOR l IN coalesce(links, [])]"),
            (
                "Links.Attributes",
                "[from_json(l.attributes, '\"MAP(VARCHAR, VARCHAR)\"') FOR l IN coalesce(links, [])]",
            ),
        ],
        rows: "",
    },
    ViewDefinition {
        name: "otel_logs",
        table: Table::Logs,
        columns: &[
            ("Timestamp", nanoseconds!("time", "time_ns")),
            ("TraceId", id!("trace_id")),
            ("SpanId", id!("span_id")),
            ("TraceFlags", "flags & 255"),
            ("SeverityText", "coalesce(severity_text, '')"),
            ("SeverityNumber", "severity_number"),
            ("ServiceName", "service_name"),
            ("Body", "coalesce(body, '')"),
            ("ResourceSchemaUrl", "coalesce(resource_schema_url, '')"),
            ("ResourceAttributes", map!("resource")),
            ("ScopeSchemaUrl", "coalesce(scope_schema_url, '')"),
            ("ScopeName", "coalesce(scope_name, '')"),
            ("ScopeVersion", "coalesce(scope_version, '')"),
            ("ScopeAttributes", map!("scope_attributes")),
            (
                "LogAttributes",
                "map_concat(from_json(attributes, '\"MAP(VARCHAR, VARCHAR)\"'), map_from_entries([\
                 entry FOR entry IN [{'k': 'log.file.path', 'v': \"log.file.path\"}, \
                 {'k': 'k8s.namespace.name', 'v': \"k8s.namespace.name\"}, \
                 {'k': 'k8s.pod.name', 'v': \"k8s.pod.name\"}, \
                 {'k': 'k8s.container.name', 'v': \"k8s.container.name\"}, \
                 {'k': 'host.name', 'v': \"host.name\"}, {'k': 'exception.type', 'v': \"exception.type\"}] \
                 IF entry.v IS NOT NULL AND NOT list_contains(json_keys(resource), entry.k)]))",
            ),
            ("EventName", "coalesce(event_name, '')"),
        ],
        rows: "",
    },
    ViewDefinition {
        name: "otel_metrics_gauge",
        table: Table::MetricPoints,
        columns: metric![
            ("Value", "coalesce(value, value_int::DOUBLE)"),
            (
                "Exemplars.FilteredAttributes",
                exemplars!("from_json(e.attributes, '\"MAP(VARCHAR, VARCHAR)\"')")
            ),
            ("Exemplars.TimeUnix", exemplars!("make_timestamp_ns(epoch_us(e.time) * 1000 + e.time_ns)")),
            ("Exemplars.Value", exemplars!("e.value")),
            ("Exemplars.SpanId", exemplars!("coalesce(lower(hex(e.span_id)), '')")),
            ("Exemplars.TraceId", exemplars!("coalesce(lower(hex(e.trace_id)), '')")),
        ],
        rows: "\nWHERE flags & 2 = 0 AND type NOT IN (2, 3, 4, 10, 11, 12) AND quantile IS NULL \
               AND NOT (type = 6 AND NOT suffix(metric_name, '_sum')) AND NOT (type = 7 AND value_int IS NOT NULL)",
    },
    ViewDefinition {
        name: "otel_metrics_sum",
        table: Table::MetricPoints,
        columns: metric![
            ("Value", "coalesce(value, value_int::DOUBLE)"),
            (
                "Exemplars.FilteredAttributes",
                exemplars!("from_json(e.attributes, '\"MAP(VARCHAR, VARCHAR)\"')")
            ),
            ("Exemplars.TimeUnix", exemplars!("make_timestamp_ns(epoch_us(e.time) * 1000 + e.time_ns)")),
            ("Exemplars.Value", exemplars!("e.value")),
            ("Exemplars.SpanId", exemplars!("coalesce(lower(hex(e.span_id)), '')")),
            ("Exemplars.TraceId", exemplars!("coalesce(lower(hex(e.trace_id)), '')")),
            ("AggregationTemporality", TEMPORALITY),
            ("IsMonotonic", "type IN (2, 3, 11)"),
        ],
        rows: "\nWHERE flags & 2 = 0 AND type IN (2, 3, 4, 10, 11, 12)",
    },
    ViewDefinition {
        name: "otel_metrics_histogram",
        table: Table::MetricHistograms,
        columns: metric![
            ("Count", "coalesce(count, count_float::BIGINT)"),
            ("Sum", "sum"),
            ("BucketCounts", "coalesce(bucket_counts, [])"),
            ("ExplicitBounds", "coalesce(bounds, [])"),
            (
                "Exemplars.FilteredAttributes",
                exemplars!("from_json(e.attributes, '\"MAP(VARCHAR, VARCHAR)\"')")
            ),
            ("Exemplars.TimeUnix", exemplars!("make_timestamp_ns(epoch_us(e.time) * 1000 + e.time_ns)")),
            ("Exemplars.Value", exemplars!("e.value")),
            ("Exemplars.SpanId", exemplars!("coalesce(lower(hex(e.span_id)), '')")),
            ("Exemplars.TraceId", exemplars!("coalesce(lower(hex(e.trace_id)), '')")),
            ("Min", "min"),
            ("Max", "max"),
            ("AggregationTemporality", "temporality"),
        ],
        rows: "\nWHERE scale IS NULL",
    },
    ViewDefinition {
        name: "otel_metrics_exponential_histogram",
        table: Table::MetricHistograms,
        columns: metric![
            ("Count", "coalesce(count, count_float::BIGINT)"),
            ("Sum", "sum"),
            ("Scale", "scale"),
            ("ZeroCount", "coalesce(zero_count, zero_count_float::BIGINT)"),
            ("PositiveOffset", "coalesce(positive_offset, 0)"),
            ("PositiveBucketCounts", "coalesce(positive_counts, [])"),
            ("NegativeOffset", "coalesce(negative_offset, 0)"),
            ("NegativeBucketCounts", "coalesce(negative_counts, [])"),
            (
                "Exemplars.FilteredAttributes",
                exemplars!("from_json(e.attributes, '\"MAP(VARCHAR, VARCHAR)\"')")
            ),
            ("Exemplars.TimeUnix", exemplars!("make_timestamp_ns(epoch_us(e.time) * 1000 + e.time_ns)")),
            ("Exemplars.Value", exemplars!("e.value")),
            ("Exemplars.SpanId", exemplars!("coalesce(lower(hex(e.span_id)), '')")),
            ("Exemplars.TraceId", exemplars!("coalesce(lower(hex(e.trace_id)), '')")),
            ("Min", "min"),
            ("Max", "max"),
            ("AggregationTemporality", "temporality"),
        ],
        rows: "\nWHERE scale IS NOT NULL",
    },
    // The rows of a summary differ in type and quantile alone.
    ViewDefinition {
        name: "otel_metrics_summary",
        table: Table::MetricPoints,
        columns: metric![
            ("Count", "max(value_int) FILTER (type = 7)"),
            ("Sum", "max(value) FILTER (type = 6)"),
            ("ValueAtQuantiles.Quantile", "coalesce(list(quantile ORDER BY quantile) FILTER (type = 5), [])"),
            ("ValueAtQuantiles.Value", "coalesce(list(value ORDER BY quantile) FILTER (type = 5), [])"),
        ],
        rows: "\nWHERE type = 5 AND quantile IS NOT NULL OR type = 7 AND value_int IS NOT NULL \
               OR type = 6 AND NOT suffix(metric_name, '_sum')\nGROUP BY ALL",
    },
];
