//! How each column is encoded, and what readers can skip by.

use crate::buffer_sizes::BufferSizes;
use crate::table::{Column, HistogramColumn, LogColumn, PROMOTED, SpanColumn, Table};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

pub(crate) fn of(table: Table, shape: &BufferSizes) -> WriterProperties {
    let sorting =
        [0, 4, 5].map(|place| SortingColumn { column_idx: place, descending: false, nulls_first: false });
    let is_sorted = matches!(table, Table::MetricPoints | Table::MetricHistograms);
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("tidegate {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_max_row_group_row_count(None)
        .set_data_page_size_limit(shape.page_bytes)
        .set_data_page_row_count_limit(shape.page_rows)
        .set_write_batch_size(512)
        .set_dictionary_page_size_limit(shape.dictionary_bytes)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_index_truncate_length(Some(64))
        .set_statistics_truncate_length(Some(64))
        .set_sorting_columns(is_sorted.then(|| sorting.to_vec()));
    for column in table.columns() {
        builder = column_of(builder, column, shape);
    }
    builder.build()
}

fn column_of(
    builder: WriterPropertiesBuilder,
    column: Column,
    shape: &BufferSizes,
) -> WriterPropertiesBuilder {
    let path = || ColumnPath::new(vec![column.field().name().clone()]);
    let leaf = |leaf: &[&str]| {
        let outer = [column.field().name().clone(), "list".to_owned(), "element".to_owned()];
        ColumnPath::new(outer.into_iter().chain(leaf.iter().map(|&part| part.to_owned())).collect())
    };
    let plain = |builder: WriterPropertiesBuilder, parts: &[&str]| {
        parts
            .iter()
            .fold(builder, |builder, part| builder.set_column_dictionary_enabled(leaf(&[part]), false))
    };
    let page = EnabledStatistics::Page;
    let chunk = EnabledStatistics::Chunk;
    match column {
        Column::MetricName => builder
            .set_column_statistics_enabled(path(), page)
            .set_column_bloom_filter_enabled(path(), true)
            .set_column_bloom_filter_fpp(path(), 0.01)
            .set_column_bloom_filter_max_ndv(path(), 4096),
        Column::SeriesId => builder.set_column_statistics_enabled(path(), page),
        Column::Time => builder
            .set_column_statistics_enabled(path(), page)
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
        Column::ServiceName => builder.set_column_statistics_enabled(path(), chunk),
        Column::Promoted(place) if place < PROMOTED.len() => {
            builder.set_column_statistics_enabled(path(), chunk)
        }
        Column::Attributes => {
            builder.set_column_dictionary_page_size_limit(path(), 4 * shape.dictionary_bytes)
        }
        Column::Value => builder
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::BYTE_STREAM_SPLIT),
        Column::Exemplars => {
            plain(builder, &["time", "value", "value_int", "trace_id", "span_id", "attributes"])
        }
        Column::Span(SpanColumn::TraceId) | Column::Log(LogColumn::TraceId) => builder
            .set_column_dictionary_enabled(path(), false)
            .set_column_bloom_filter_enabled(path(), true)
            .set_column_bloom_filter_fpp(path(), 0.01)
            .set_column_bloom_filter_max_ndv(path(), shape.traces),
        Column::Span(SpanColumn::StartTime) | Column::Log(LogColumn::Time) => builder
            .set_column_statistics_enabled(path(), page)
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
        Column::Span(SpanColumn::DurationNs) | Column::Log(LogColumn::ObservedTime) => builder
            .set_column_statistics_enabled(path(), chunk)
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
        Column::Span(SpanColumn::SpanId | SpanColumn::ParentSpanId | SpanColumn::Attributes)
        | Column::Log(LogColumn::SpanId | LogColumn::Attributes | LogColumn::Body) => {
            builder.set_column_dictionary_enabled(path(), false)
        }
        Column::Span(SpanColumn::ServiceName | SpanColumn::Name | SpanColumn::StatusCode)
        | Column::Log(LogColumn::ServiceName | LogColumn::SeverityNumber) => {
            builder.set_column_statistics_enabled(path(), page)
        }
        Column::Span(SpanColumn::Kind | SpanColumn::Promoted(_)) | Column::Log(LogColumn::Promoted(_)) => {
            builder.set_column_statistics_enabled(path(), chunk)
        }
        Column::Span(SpanColumn::Events) => plain(builder, &["time", "attributes"]),
        Column::Span(SpanColumn::Links) => plain(builder, &["trace_id", "span_id", "attributes"]),
        Column::Histogram(HistogramColumn::Count | HistogramColumn::Sum | HistogramColumn::CountFloat) => {
            builder.set_column_dictionary_enabled(path(), false)
        }
        Column::Histogram(HistogramColumn::CountsFloat(_) | HistogramColumn::BucketCountsFloat) => builder
            .set_column_dictionary_enabled(leaf(&[]), false)
            .set_column_encoding(leaf(&[]), Encoding::BYTE_STREAM_SPLIT),
        Column::Histogram(HistogramColumn::Counts(_) | HistogramColumn::BucketCounts) => builder
            .set_column_dictionary_enabled(leaf(&[]), false)
            .set_column_encoding(leaf(&[]), Encoding::DELTA_BINARY_PACKED),
        _ => builder,
    }
}
