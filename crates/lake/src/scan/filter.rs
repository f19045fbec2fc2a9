//! Which row groups and which rows a query wants.

use crate::labels::promoted;
use crate::{Error, Matcher, Query};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, ParquetRecordBatchReaderBuilder, RowFilter};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Filter {
    /// Times in microseconds: this one and later, before that one.
    from_us: i64,
    to_us: i64,
    metric: Option<String>,
    labels: Vec<Matcher>,
}

impl Filter {
    pub(crate) fn new(query: &Query) -> Filter {
        let mut labels = query.labels.clone();
        let mut metric = query.metric.clone();
        // A plain condition on the name can be answered by statistics.
        if metric.is_none()
            && let Some(at) = labels.iter().position(|label| label.name == "__name__" && !label.negated)
        {
            metric = Some(labels.swap_remove(at).value);
        }
        Filter {
            from_us: query.from.map_or(i64::MIN, |from| from.as_microsecond()),
            to_us: query.to.map_or(i64::MAX, |to| to.as_microsecond()),
            metric,
            labels,
        }
    }

    /// Whether rows between these times, in microseconds, may match.
    pub(crate) fn may_have(&self, least: i64, greatest: i64) -> bool {
        greatest >= self.from_us && (least < self.to_us || self.to_us == i64::MAX)
    }

    /// The columns that are looked at.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let mut columns = vec!["time", "metric_name"];
        columns.extend(self.labels.iter().map(|label| column_of(&label.name)));
        columns
    }

    /// Whether a row group may have matching rows.
    pub(crate) fn may_match(
        &self,
        builder: &mut ParquetRecordBatchReaderBuilder<File>,
        group: usize,
    ) -> parquet::errors::Result<bool> {
        let metadata = Arc::clone(builder.metadata());
        let group_metadata = metadata.row_group(group);
        if let Some((_, Statistics::Int64(times))) = statistics(group_metadata, "time")
            && let (Some(&least), Some(&greatest)) = (times.min_opt(), times.max_opt())
            && !self.may_have(least, greatest)
        {
            return Ok(false);
        }
        let Some(metric) = self.metric.as_deref() else { return Ok(true) };
        let Some((column, names)) = statistics(group_metadata, "metric_name") else { return Ok(true) };
        let below = names.min_bytes_opt().is_some_and(|least| metric.as_bytes() < least);
        let above = names.max_bytes_opt().is_some_and(|greatest| metric.as_bytes() > greatest);
        if below || above {
            return Ok(false);
        }
        let bloom = builder.get_row_group_column_bloom_filter(group, column)?;
        Ok(bloom.is_none_or(|bloom| bloom.check(&metric)))
    }

    /// The filter of rows, which reads the columns of `projection`.
    pub(crate) fn rows(self: &Arc<Self>, projection: ProjectionMask) -> RowFilter {
        let filter = Arc::clone(self);
        let predicate = ArrowPredicateFn::new(projection, move |batch| filter.matching(&batch));
        RowFilter::new(vec![Box::new(predicate)])
    }

    fn matching(&self, batch: &RecordBatch) -> Result<BooleanArray, ArrowError> {
        let missing = |name: &str| ArrowError::SchemaError(format!("there is no column `{name}`"));
        let times = batch.column_by_name("time").ok_or_else(|| missing("time"))?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let names = batch.column_by_name("metric_name").ok_or_else(|| missing("metric_name"))?;
        let names = names.as_string_view();
        let mut columns = Vec::new();
        for label in &self.labels {
            let column = column_of(&label.name);
            columns.push(batch.column_by_name(column).ok_or_else(|| missing(column))?.as_string_view());
        }
        // Rows of a series follow each other, so the last answer for a text is often the next one.
        let mut answered: Vec<Option<(&str, bool)>> = vec![None; self.labels.len()];
        Ok((0..batch.num_rows())
            .map(|row| {
                let time = times.value(row);
                let in_time = time >= self.from_us && (time < self.to_us || self.to_us == i64::MAX);
                let named = || self.metric.as_deref().is_none_or(|metric| metric == names.value(row));
                let labelled =
                    self.labels.iter().zip(&columns).zip(&mut answered).all(|((label, column), answered)| {
                        let text = if column.is_null(row) { "" } else { column.value(row) };
                        match answered {
                            Some((known, answer)) if *known == text => *answer,
                            _ => answered.insert((text, label.matches(text))).1,
                        }
                    });
                Some(in_time && named() && labelled)
            })
            .collect())
    }

    /// The columns in this order.
    pub(crate) fn project(&self, batch: &RecordBatch, columns: &[String]) -> Result<RecordBatch, Error> {
        let places: Result<Vec<usize>, ArrowError> =
            columns.iter().map(|column| batch.schema().index_of(column)).collect();
        Ok(batch.project(&places?)?)
    }
}

fn statistics<'a>(group: &'a RowGroupMetaData, column: &str) -> Option<(usize, &'a Statistics)> {
    let place = group.columns().iter().position(|chunk| chunk.column_path().string() == column)?;
    Some((place, group.column(place).statistics()?))
}

/// The column that has the label `name`.
fn column_of(name: &str) -> &str {
    match name {
        "__name__" => "metric_name",
        "service_name" => "service_name",
        name if promoted(name.as_bytes()).is_some() => name,
        _ => "attributes",
    }
}

impl Matcher {
    /// Whether it matches `text`, which is what its column has.
    fn matches(&self, text: &str) -> bool {
        let value = if column_of(&self.name) == "attributes" {
            let labels: HashMap<Cow<'_, str>, Cow<'_, str>> = serde_json::from_str(text).unwrap_or_default();
            labels.get(self.name.as_str()).map_or(String::new(), |value| value.clone().into_owned())
        } else {
            text.to_owned()
        };
        (value == self.value) != self.negated
    }
}
