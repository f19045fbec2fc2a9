//! Which row groups and which rows a query wants.

mod condition;

use crate::{Error, Query, Table};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::error::ArrowError;
use condition::Condition;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, ParquetRecordBatchReaderBuilder, RowFilter};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LakeFilter {
    time: &'static str,
    /// Times in microseconds: this one and later, before that one.
    from_us: i64,
    to_us: i64,
    conditions: Vec<Condition>,
}

impl LakeFilter {
    pub(crate) fn new(query: &Query) -> Result<LakeFilter, Error> {
        Ok(LakeFilter {
            time: query.table.time_columns().0,
            from_us: query.from.map_or(i64::MIN, |from| from.as_microsecond()),
            to_us: query.to.map_or(i64::MAX, |to| to.as_microsecond()),
            conditions: condition::of(query)?,
        })
    }

    /// The least time of rows, in microseconds.
    pub(crate) fn from(&self) -> i64 {
        self.from_us
    }

    /// Leaves rows before this time out, too.
    pub(crate) fn not_before(&mut self, from_us: i64) {
        self.from_us = self.from_us.max(from_us);
    }

    /// Whether rows between these times, in microseconds, may match.
    pub(crate) fn may_have(&self, least: i64, greatest: i64) -> bool {
        greatest >= self.from_us && (least < self.to_us || self.to_us == i64::MAX)
    }

    /// The columns that are looked at.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let mut columns = vec![self.time];
        columns.extend(self.conditions.iter().flat_map(Condition::columns));
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
        if let Some((_, Some(Statistics::Int64(times)))) = chunk(group_metadata, self.time)
            && let (Some(&least), Some(&greatest)) = (times.min_opt(), times.max_opt())
            && !self.may_have(least, greatest)
        {
            return Ok(false);
        }
        for condition in &self.conditions {
            let Some((name, bytes)) = condition.exact() else { continue };
            let Some((column, statistics)) = chunk(group_metadata, name) else { continue };
            if let Some(statistics) = statistics {
                let below = statistics.min_bytes_opt().is_some_and(|least| bytes < least);
                let above = statistics.max_bytes_opt().is_some_and(|greatest| bytes > greatest);
                if below || above {
                    return Ok(false);
                }
            }
            let bloom = builder.get_row_group_column_bloom_filter(group, column)?;
            if bloom.is_some_and(|bloom| !bloom.check(bytes)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The filter of rows, which reads the columns of `projection`.
    pub(crate) fn rows(self: &Arc<Self>, projection: ProjectionMask) -> RowFilter {
        let filter = Arc::clone(self);
        let predicate = ArrowPredicateFn::new(projection, move |batch| {
            let rows = batch.num_rows();
            let cheap = filter.narrow(&batch, false, vec![true; rows])?;
            filter.narrow(&batch, true, cheap).map(BooleanArray::from)
        });
        RowFilter::new(vec![Box::new(predicate)])
    }

    /// The rows that fulfil the conditions that are costly, or all others.
    pub(crate) fn matching(&self, batch: &RecordBatch, is_costly: bool) -> Result<BooleanArray, ArrowError> {
        self.narrow(batch, is_costly, vec![true; batch.num_rows()]).map(BooleanArray::from)
    }

    fn narrow(
        &self,
        batch: &RecordBatch,
        is_costly: bool,
        mut wanted: Vec<bool>,
    ) -> Result<Vec<bool>, ArrowError> {
        if !is_costly {
            let times = column(batch, self.time)?.as_primitive::<TimestampMicrosecondType>();
            let in_time = |time: i64| time >= self.from_us && (time < self.to_us || self.to_us == i64::MAX);
            wanted.iter_mut().zip(times.values()).for_each(|(wanted, &time)| *wanted &= in_time(time));
        }
        for condition in self.conditions.iter().filter(|condition| condition.is_costly() == is_costly) {
            condition.narrow(batch, &mut wanted)?;
        }
        Ok(wanted)
    }

    /// The columns in this order.
    pub(crate) fn project(&self, batch: &RecordBatch, columns: &[String]) -> Result<RecordBatch, Error> {
        let places: Result<Vec<usize>, ArrowError> =
            columns.iter().map(|column| batch.schema().index_of(column)).collect();
        Ok(batch.project(&places?)?)
    }
}

/// The place of a column's chunk, and what is known of its values.
pub(crate) fn chunk<'a>(
    group: &'a RowGroupMetaData,
    column: &str,
) -> Option<(usize, Option<&'a Statistics>)> {
    let is_column = |path: &[String]| matches!(path, [name] if name == column);
    let place = group.columns().iter().position(|chunk| is_column(chunk.column_path().parts()))?;
    Some((place, group.column(place).statistics()))
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("there is no column `{name}`"));
    batch.column_by_name(name).map(|column| &**column).ok_or_else(missing)
}

/// The column that has the label or attribute `name`.
fn column_of(table: Table, name: &str) -> &str {
    match (table, name) {
        (Table::MetricPoints | Table::MetricHistograms, "__name__") => "metric_name",
        (_, "service_name" | "service.name") => "service_name",
        (_, name) if table.promoted().contains(&name) => name,
        _ => "attributes",
    }
}
