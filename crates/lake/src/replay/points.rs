//! Numbers and summaries out of rows of `metric_points`.

use super::columns::{Doubles, Longs};
use super::exemplars::ExemplarColumns;
use super::items::{ItemReader, RowError};
use super::request::Item;
use super::rows::{FileRows, Next};
use super::series::{MetricKind, Provenance, Series, SeriesColumns};
use super::summaries::{Part, Summaries, Value};
use super::{Protocol, remote_write};
use crate::Error;
use crate::table::point_type;
use arrow::array::RecordBatch;

/// Reads numbers and summaries. A number is a row. A summary is several, which are joined.
#[derive(Default)]
pub(super) struct PointReader {
    columns: Option<PointColumns>,
    batch: u64,
    series: Series,
    summaries: Summaries,
}

struct PointColumns {
    series: SeriesColumns,
    value: Doubles,
    value_int: Longs,
    quantile: Doubles,
    exemplars: Option<ExemplarColumns>,
}

impl PointColumns {
    fn of(batch: &RecordBatch) -> Result<PointColumns, RowError> {
        Ok(PointColumns {
            series: SeriesColumns::of(batch)?,
            value: Doubles::of(batch, "value")?,
            value_int: Longs::of(batch, "value_int")?,
            quantile: Doubles::of(batch, "quantile")?,
            exemplars: ExemplarColumns::of(batch)?,
        })
    }
}

/// The field of attributes in points of gauges, sums and summaries.
const ATTRIBUTES: u32 = 7;

impl ItemReader for PointReader {
    fn next(&mut self, rows: &mut FileRows, item: &mut Item) -> Result<bool, Error> {
        loop {
            if self.summaries.write_next(item) {
                return Ok(true);
            }
            match rows.next()? {
                Next::Row => match self.row(rows, item) {
                    Ok(RowOutcome::Item) => return Ok(true),
                    Ok(RowOutcome::PartOfSummary | RowOutcome::SummariesFirst) => {}
                    Err(error) => return Err(rows.damaged(error)),
                },
                Next::EndOfGroup => self.summaries.end_group(),
                Next::End => {
                    if !self.summaries.end() {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn rows_are_items(&self) -> bool {
        false
    }
}

/// The outcome of a row.
enum RowOutcome {
    /// It is an item.
    Item,
    /// It is kept with others.
    PartOfSummary,
    /// It is still to be read: those that are kept are complete now.
    SummariesFirst,
}

impl PointReader {
    fn row(&mut self, rows: &mut FileRows, item: &mut Item) -> Result<RowOutcome, RowError> {
        let Some((batch, number, row)) = rows.row() else { return Ok(RowOutcome::PartOfSummary) };
        if self.batch != number {
            (self.columns, self.batch) = (Some(PointColumns::of(batch)?), number);
        }
        let Some(columns) = &self.columns else { return Ok(RowOutcome::PartOfSummary) };
        let of = &columns.series;
        if self.summaries.is_over(of.name(row), of.id(row), of.attributes(row)) {
            self.summaries.end_run();
            return Ok(RowOutcome::SummariesFirst);
        }
        self.series.update(of, row, ATTRIBUTES, Provenance::Unknown)?;
        let outcome = if self.series.came_by_remote_write() {
            write_sample(columns, &self.series, row, item)?;
            RowOutcome::Item
        } else if let Some(value) = part_of_summary(columns, row) {
            let part = Part {
                time: of.time.at(row).unwrap_or_default(),
                start: of.start.at(row).unwrap_or_default(),
                is_stale: of.is_stale(row),
                value,
            };
            self.summaries.begin_run(of.name(row), of.id(row), of.attributes(row));
            self.summaries.add(&self.series, part)?;
            RowOutcome::PartOfSummary
        } else {
            write_number(columns, &self.series, row, item)?;
            RowOutcome::Item
        };
        rows.pass();
        Ok(outcome)
    }
}

fn write_sample(
    columns: &PointColumns,
    series: &Series,
    row: usize,
    item: &mut Item,
) -> Result<(), RowError> {
    let out = item.begin(Protocol::RemoteWrite);
    // Some rows are there for their exemplars.
    if let Some(bits) = columns.value.bits_at(row) {
        remote_write::write_sample(bits, columns.series.time.millis_at(row).unwrap_or_default(), out);
    }
    if let Some(exemplars) = &columns.exemplars {
        exemplars.write_remote_write(row, out)?;
    }
    series.enclose_in_labels(item);
    Ok(())
}

fn write_number(
    columns: &PointColumns,
    series: &Series,
    row: usize,
    item: &mut Item,
) -> Result<(), RowError> {
    let out = item.begin(Protocol::Otlp);
    let point = out.begin(1);
    out.fixed64_unless_0(2, columns.series.start.at(row).unwrap_or_default());
    out.fixed64_unless_0(3, columns.series.time.at(row).unwrap_or_default());
    match columns.value_int.at(row) {
        Some(value) => out.fixed64(6, value.cast_unsigned()),
        None => out.fixed64_if(4, columns.value.bits_at(row)),
    }
    if let Some(exemplars) = &columns.exemplars {
        exemplars.write_otlp(row, 5, out)?;
    }
    out.put(series.attributes.as_bytes());
    out.varint_unless_0(8, columns.series.otlp_flags(row));
    out.end(point);
    series.enclose(MetricKind::of_numbers(columns.series.point_type(row)), item);
    Ok(())
}

fn part_of_summary(columns: &PointColumns, row: usize) -> Option<Value> {
    let value = columns.value.bits_at(row).unwrap_or_default();
    match columns.series.point_type(row) {
        point_type::SUMMARY_QUANTILE => {
            Some(Value::Quantile { quantile: columns.quantile.bits_at(row).unwrap_or_default(), value })
        }
        point_type::SUMMARY_SUM => Some(Value::Sum(value)),
        point_type::SUMMARY_COUNT => Some(Value::Count(columns.value_int.count_at(row))),
        _ => None,
    }
}
