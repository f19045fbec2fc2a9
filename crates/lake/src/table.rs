//! The tables and their columns, with the field ids that they have had from the first day.
//!
//! Only types that Iceberg v2, DuckDB, Trino and ClickHouse all have: no unsigned and no short integers,
//! times in microseconds with the nanoseconds beside them. Ids are never reused and columns only added.

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A table of the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Single values: samples of gauges, counters, classic histograms and summaries.
    MetricPoints,
    /// Native histograms.
    MetricHistograms,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 2] = [Table::MetricPoints, Table::MetricHistograms];

    /// Its name, which is also its folder's.
    pub fn name(self) -> &'static str {
        match self {
            Table::MetricPoints => "metric_points",
            Table::MetricHistograms => "metric_histograms",
        }
    }

    /// The table of that name.
    pub fn of_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    pub(crate) fn columns(self) -> impl Iterator<Item = Column> {
        let own: &[Column] = match self {
            Table::MetricPoints => &POINT_COLUMNS,
            Table::MetricHistograms => &HISTOGRAM_COLUMNS,
        };
        KEY_COLUMNS.iter().chain(own).copied()
    }

    /// The columns as they are written.
    pub(crate) fn schema(self) -> SchemaRef {
        Arc::new(Schema::new(self.columns().map(Column::field).collect::<Fields>()))
    }

    /// The names of its columns, in order.
    pub fn column_names(self) -> Vec<String> {
        self.columns().map(|column| column.field().name().clone()).collect()
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
    pub(crate) const SUMMARY_QUANTILE: i32 = 5;
    pub(crate) const SUMMARY_SUM: i32 = 6;
    pub(crate) const SUMMARY_COUNT: i32 = 7;
    pub(crate) const HISTOGRAM: i32 = 8;
    pub(crate) const GAUGE_HISTOGRAM: i32 = 9;
}

/// Bits of the column `flags`.
pub(crate) mod flag {
    /// The series is gone: Prometheus' stale marker, OTLP's "no recorded value".
    pub(crate) const STALE: u8 = 1;
    /// The row has no value; it is there for its exemplars.
    pub(crate) const EXEMPLARS_ONLY: u8 = 2;
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
    Attributes,
    Promoted(usize),
    Value,
    ValueInt,
    Exemplars,
    Histogram(HistogramColumn),
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
    Offset(Side),
    Spans(Side),
    Counts(Side),
    CountsFloat(Side),
    Temporality,
    ResetHint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Positive,
    Negative,
}

const KEY_COLUMNS: [Column; 18] = [
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
];

const POINT_COLUMNS: [Column; 3] = [Column::Value, Column::ValueInt, Column::Exemplars];

const HISTOGRAM_COLUMNS: [Column; 22] = {
    use HistogramColumn::*;
    use Side::*;
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
            Column::Promoted(place) => {
                let id = 100 + i32::try_from(place).unwrap_or(0);
                field(id, PROMOTED.get(place).copied().unwrap_or_default(), Utf8View, true)
            }
            Column::Value => field(20, "value", Float64, true),
            Column::ValueInt => field(21, "value_int", Int64, true),
            Column::Exemplars => {
                let exemplar = DataType::Struct(exemplar_fields());
                field(30, "exemplars", list(31, exemplar), true)
            }
            Column::Histogram(column) => column.field(),
        }
    }
}

impl HistogramColumn {
    fn field(self) -> Field {
        use DataType::{Float64, Int32, Int64};
        use Side::{Negative, Positive};
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

/// What an exemplar consists of.
pub(crate) fn exemplar_fields() -> Fields {
    Fields::from(vec![
        field(32, "time", timestamp(), false),
        field(33, "value", DataType::Float64, false),
        field(34, "trace_id", DataType::FixedSizeBinary(16), true),
        field(35, "span_id", DataType::FixedSizeBinary(8), true),
        field(36, "attributes", DataType::Utf8View, false),
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
