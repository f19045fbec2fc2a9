//! The tables and their columns, with the field ids that they have had from the first day.
//!
//! Only types that Iceberg v2, DuckDB, Trino and ClickHouse all have: no unsigned and no short integers,
//! times in microseconds with the nanoseconds beside them. Ids are never reused and columns only added.

mod logs;
mod spans;

pub(crate) use logs::LogColumn;
pub(crate) use spans::{SpanColumn, event_fields, link_fields, span_dropped_fields};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A table of the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Single values: samples of gauges, sums, classic histograms and summaries.
    MetricPoints,
    /// Histograms: native ones, and all that OpenTelemetry has.
    MetricHistograms,
    /// Spans of traces.
    Spans,
    /// Log records.
    Logs,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 4] = [Table::MetricPoints, Table::MetricHistograms, Table::Spans, Table::Logs];

    /// Its name, which is also its folder's.
    pub fn name(self) -> &'static str {
        match self {
            Table::MetricPoints => "metric_points",
            Table::MetricHistograms => "metric_histograms",
            Table::Spans => "spans",
            Table::Logs => "logs",
        }
    }

    /// The table of that name.
    pub fn of_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    pub(crate) fn columns(self) -> Vec<Column> {
        match self {
            Table::MetricPoints => KEY_COLUMNS.iter().chain(&POINT_COLUMNS).copied().collect(),
            Table::MetricHistograms => KEY_COLUMNS.iter().chain(&HISTOGRAM_COLUMNS).copied().collect(),
            Table::Spans => SpanColumn::all().map(Column::Span).collect(),
            Table::Logs => LogColumn::all().map(Column::Log).collect(),
        }
    }

    /// The columns of the time by which files and row groups are skipped, and of the nanoseconds beyond it.
    pub fn time_columns(self) -> (&'static str, &'static str) {
        match self {
            Table::Spans => ("start_time", "start_ns"),
            _ => ("time", "time_ns"),
        }
    }

    /// Attributes or labels that have columns of their own; their place here is their place among those.
    pub fn promoted(self) -> &'static [&'static str] {
        match self {
            Table::MetricPoints | Table::MetricHistograms => &PROMOTED,
            Table::Spans => &spans::PROMOTED,
            Table::Logs => &logs::PROMOTED,
        }
    }

    /// The columns as they are written.
    pub(crate) fn schema(self) -> SchemaRef {
        Arc::new(Schema::new(self.columns().into_iter().map(Column::field).collect::<Fields>()))
    }

    /// The names of its columns, in order.
    pub fn column_names(self) -> Vec<String> {
        self.columns().into_iter().map(|column| column.field().name().clone()).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Values of the column `type`.
pub(crate) mod point_type {
    pub(crate) const UNKNOWN: i32 = 0;
    pub(crate) const GAUGE: i32 = 1;
    pub(crate) const COUNTER: i32 = 2;
    pub(crate) const DELTA: i32 = 3;
    pub(crate) const UP_DOWN_COUNTER: i32 = 4;
    pub(crate) const SUMMARY_QUANTILE: i32 = 5;
    pub(crate) const SUMMARY_SUM: i32 = 6;
    pub(crate) const SUMMARY_COUNT: i32 = 7;
    pub(crate) const HISTOGRAM: i32 = 8;
    pub(crate) const GAUGE_HISTOGRAM: i32 = 9;
    pub(crate) const UP_DOWN_DELTA: i32 = 10;
    /// Sums whose temporality is not said.
    pub(crate) const MONOTONIC: i32 = 11;
    pub(crate) const SUM: i32 = 12;
}

/// Bits of the column `flags`.
pub(crate) mod flag {
    /// The series is gone: Prometheus' stale marker, OTLP's "no recorded value".
    pub(crate) const STALE: u8 = 1;
    /// The row has no value; it is there for its exemplars.
    pub(crate) const EXEMPLARS_ONLY: u8 = 2;
    /// The value is an integer. Not in the column: `value_int` says so.
    pub(crate) const INT: u8 = 0x40;
    /// There is no value. Not in the column either.
    pub(crate) const NO_VALUE: u8 = 0x80;
    /// The column's type.
    pub(crate) const SHOWN: u8 = 0x3f;
}

/// Labels that have columns of their own; their place here is their place in [`Column::Promoted`].
pub(crate) const PROMOTED: [&str; 5] = ["job", "instance", "k8s.namespace.name", "k8s.pod.name", "host.name"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    MetricName,
    Unit,
    Description,
    Type,
    SeriesId,
    Time,
    TimeNs,
    StartTime,
    Flags,
    ServiceName,
    Resource,
    ScopeName,
    ScopeVersion,
    ScopeAttributes,
    ResourceSchemaUrl,
    ScopeSchemaUrl,
    StartNs,
    Attributes,
    Promoted(usize),
    Value,
    ValueInt,
    Quantile,
    Exemplars,
    Histogram(HistogramColumn),
    Span(SpanColumn),
    Log(LogColumn),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistogramColumn {
    Count,
    CountFloat,
    Sum,
    Min,
    Max,
    Bounds,
    BucketCounts,
    BucketCountsFloat,
    Scale,
    ZeroCount,
    ZeroCountFloat,
    ZeroThreshold,
    Offset(BucketSide),
    Spans(BucketSide),
    Counts(BucketSide),
    CountsFloat(BucketSide),
    Temporality,
    ResetHint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketSide {
    Positive,
    Negative,
}

const KEY_COLUMNS: [Column; 23] = [
    Column::MetricName,
    Column::Unit,
    Column::Description,
    Column::Type,
    Column::SeriesId,
    Column::Time,
    Column::TimeNs,
    Column::StartTime,
    Column::Flags,
    Column::ServiceName,
    Column::Resource,
    Column::ScopeName,
    Column::Attributes,
    Column::Promoted(0),
    Column::Promoted(1),
    Column::Promoted(2),
    Column::Promoted(3),
    Column::Promoted(4),
    Column::ScopeVersion,
    Column::ScopeAttributes,
    Column::ResourceSchemaUrl,
    Column::ScopeSchemaUrl,
    Column::StartNs,
];

const POINT_COLUMNS: [Column; 4] = [Column::Value, Column::ValueInt, Column::Quantile, Column::Exemplars];

const HISTOGRAM_COLUMNS: [Column; 23] = {
    use BucketSide::*;
    use HistogramColumn::*;
    [
        Column::Histogram(Count),
        Column::Histogram(CountFloat),
        Column::Histogram(Sum),
        Column::Histogram(Min),
        Column::Histogram(Max),
        Column::Histogram(Bounds),
        Column::Histogram(BucketCounts),
        Column::Histogram(BucketCountsFloat),
        Column::Histogram(Scale),
        Column::Histogram(ZeroCount),
        Column::Histogram(ZeroCountFloat),
        Column::Histogram(ZeroThreshold),
        Column::Histogram(Offset(Positive)),
        Column::Histogram(Spans(Positive)),
        Column::Histogram(Counts(Positive)),
        Column::Histogram(CountsFloat(Positive)),
        Column::Histogram(Offset(Negative)),
        Column::Histogram(Spans(Negative)),
        Column::Histogram(Counts(Negative)),
        Column::Histogram(CountsFloat(Negative)),
        Column::Histogram(Temporality),
        Column::Histogram(ResetHint),
        Column::Exemplars,
    ]
};

impl Column {
    pub(crate) fn field(self) -> Field {
        use DataType::{Float64, Int32, Int64, Utf8View};
        match self {
            Column::MetricName => field(1, "metric_name", Utf8View, false),
            Column::Unit => field(2, "unit", Utf8View, true),
            Column::Description => field(3, "description", Utf8View, true),
            Column::Type => field(4, "type", Int32, false),
            Column::SeriesId => field(5, "series_id", Int64, false),
            Column::Time => field(6, "time", timestamp(), false),
            Column::TimeNs => field(7, "time_ns", Int32, false),
            Column::StartTime => field(8, "start_time", timestamp(), true),
            Column::Flags => field(9, "flags", Int32, false),
            Column::ServiceName => field(10, "service_name", Utf8View, false),
            Column::Resource => field(11, "resource", Utf8View, false),
            Column::ScopeName => field(12, "scope_name", Utf8View, true),
            Column::Attributes => field(13, "attributes", Utf8View, false),
            Column::ScopeVersion => field(14, "scope_version", Utf8View, true),
            Column::ScopeAttributes => field(15, "scope_attributes", Utf8View, true),
            Column::ResourceSchemaUrl => field(16, "resource_schema_url", Utf8View, true),
            Column::ScopeSchemaUrl => field(17, "scope_schema_url", Utf8View, true),
            Column::StartNs => field(18, "start_ns", Int32, true),
            Column::Promoted(place) => {
                let id = 100 + i32::try_from(place).unwrap_or(0);
                field(id, PROMOTED.get(place).copied().unwrap_or_default(), Utf8View, true)
            }
            Column::Value => field(20, "value", Float64, true),
            Column::ValueInt => field(21, "value_int", Int64, true),
            Column::Quantile => field(22, "quantile", Float64, true),
            Column::Exemplars => {
                let exemplar = DataType::Struct(exemplar_fields());
                field(30, "exemplars", list(31, exemplar), true)
            }
            Column::Histogram(column) => column.field(),
            Column::Span(column) => column.field(),
            Column::Log(column) => column.field(),
        }
    }
}

impl HistogramColumn {
    fn field(self) -> Field {
        use BucketSide::{Negative, Positive};
        use DataType::{Float64, Int32, Int64};
        match self {
            Self::Count => field(40, "count", Int64, true),
            Self::CountFloat => field(41, "count_float", Float64, true),
            Self::Sum => field(42, "sum", Float64, true),
            Self::Min => field(43, "min", Float64, true),
            Self::Max => field(44, "max", Float64, true),
            Self::Bounds => field(45, "bounds", list(46, Float64), true),
            Self::BucketCounts => field(47, "bucket_counts", list(48, Int64), true),
            Self::BucketCountsFloat => field(49, "bucket_counts_float", list(50, Float64), true),
            Self::Scale => field(51, "scale", Int32, true),
            Self::ZeroCount => field(52, "zero_count", Int64, true),
            Self::ZeroCountFloat => field(53, "zero_count_float", Float64, true),
            Self::ZeroThreshold => field(54, "zero_threshold", Float64, true),
            Self::Offset(Positive) => field(55, "positive_offset", Int32, true),
            Self::Spans(Positive) => field(56, "positive_spans", list(57, Int64), true),
            Self::Counts(Positive) => field(58, "positive_counts", list(59, Int64), true),
            Self::CountsFloat(Positive) => field(60, "positive_counts_float", list(61, Float64), true),
            Self::Offset(Negative) => field(62, "negative_offset", Int32, true),
            Self::Spans(Negative) => field(63, "negative_spans", list(64, Int64), true),
            Self::Counts(Negative) => field(65, "negative_counts", list(66, Int64), true),
            Self::CountsFloat(Negative) => field(67, "negative_counts_float", list(68, Float64), true),
            Self::Temporality => field(69, "temporality", Int32, false),
            Self::ResetHint => field(70, "reset_hint", Int32, true),
        }
    }
}

/// The fields of an exemplar.
pub(crate) fn exemplar_fields() -> Fields {
    Fields::from(vec![
        field(32, "time", timestamp(), false),
        field(33, "value", DataType::Float64, false),
        field(34, "trace_id", DataType::FixedSizeBinary(16), true),
        field(35, "span_id", DataType::FixedSizeBinary(8), true),
        field(36, "attributes", DataType::Utf8View, false),
        field(37, "time_ns", DataType::Int32, false),
        field(38, "value_int", DataType::Int64, true),
    ])
}

/// Microseconds in UTC: `timestamptz` in SQL.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn list(element_id: i32, element: DataType) -> DataType {
    DataType::List(Arc::new(field(element_id, "element", element, false)))
}

fn field(id: i32, name: &str, data_type: DataType, nullable: bool) -> Field {
    let metadata = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    Field::new(name, data_type, nullable).with_metadata(metadata)
}

#[cfg(test)]
mod tests;
