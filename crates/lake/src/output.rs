//! Rows for people and programs: an aligned table, NDJSON, CSV.

mod cell;
mod csv;

use crate::Error;
use arrow::array::{Array, RecordBatch};
use cell::CellValue;
use serde_json::Value;
use std::io::Write;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Columns aligned by spaces under their names, for reading: what a terminal obeys is escaped.
    Table,
    /// One JSON object a line. Labels are an object; NaN and infinities are strings.
    Ndjson,
    /// RFC 4180, names first. A text that a spreadsheet would compute (`=…`) has a `'` before it.
    Csv,
}

/// Writes batches of a [`Scan`](crate::Scan).
///
/// Times are RFC 3339 in UTC with nanoseconds. Integer points are shown in `value`, unless `value_int` is there too. In tables and CSV, NULL is empty and what has parts is JSON.
pub struct Output<W> {
    format: Format,
    out: W,
    columns: Vec<String>,
    /// Of each column so far, in characters.
    widths: Vec<usize>,
    begun: bool,
    is_terminal: bool,
}

impl<W: Write> Output<W> {
    /// Writes `columns` to `out`.
    pub fn new(format: Format, out: W, columns: Vec<String>) -> Self {
        let widths = columns.iter().map(|column| column.chars().count()).collect();
        Output { format, out, columns, widths, begun: false, is_terminal: false }
    }

    /// Says that a terminal shows it: characters that it obeys are escaped. Tables have none of them anyway.
    pub fn on_terminal(self, is_terminal: bool) -> Self {
        Output { is_terminal, ..self }
    }

    /// Writes all rows of a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.write_rows(batch).map_err(Error::Output)
    }

    /// Ends the output: names of columns are written even when there were no rows.
    pub fn finish(mut self) -> Result<W, Error> {
        self.begin().and_then(|()| self.out.flush()).map_err(Error::Output)?;
        Ok(self.out)
    }

    fn begin(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        match self.format {
            Format::Table => write_aligned_line(&mut self.out, &self.columns, &self.widths),
            Format::Csv => csv::line(&mut self.out, self.columns.iter().map(String::as_str)),
            Format::Ndjson => Ok(()),
        }
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        let asked = |name: &str| self.columns.iter().any(|column| column == name);
        let beside = |name: &str| match name {
            // A caller of both learns which of the two it is.
            "value" => Some("value_int").filter(|integers| !asked(integers)),
            name => nanoseconds_of(name),
        };
        let nanos = |name: &str| batch.column_by_name(beside(name)?).map(|column| &**column);
        let columns: Vec<Column<'_>> = self
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(name, column)| (name.as_str(), &**column, nanos(name)))
            .collect();
        let cell = |(name, column, nanos): Column<'_>, row| CellValue::of(name, column, nanos, row);
        match self.format {
            Format::Ndjson => {
                for row in 0..batch.num_rows() {
                    let cells = columns.iter().map(|&column| (column.0, cell(column, row)));
                    if self.is_terminal {
                        let mut line = Vec::new();
                        write_json_line(&mut line, cells)?;
                        let line = String::from_utf8_lossy(&line);
                        self.out.write_all(tidegate_plain::json(&line).as_bytes())?;
                    } else {
                        write_json_line(&mut self.out, cells)?;
                    }
                }
            }
            Format::Csv => {
                let rows = 0..batch.num_rows();
                let is_seen = self.is_terminal;
                let text = |column, row| {
                    let text = csv::cell(cell(column, row));
                    if is_seen { tidegate_plain::line(&text).into_owned() } else { text }
                };
                let texts = rows.map(|row| columns.iter().map(|&column| text(column, row)).collect());
                let texts: Vec<Vec<String>> = texts.collect();
                self.begin()?;
                for row in texts {
                    csv::line(&mut self.out, row.iter().map(String::as_str))?;
                }
            }
            Format::Table => {
                let rows = 0..batch.num_rows();
                let text = |column, row| tidegate_plain::line(&cell(column, row).text()).into_owned();
                let texts = rows.map(|row| columns.iter().map(|&column| text(column, row)).collect());
                let texts: Vec<Vec<String>> = texts.collect();
                for row in &texts {
                    for (width, text) in self.widths.iter_mut().zip(row) {
                        *width = text.chars().count().max(*width);
                    }
                }
                self.begin()?;
                for row in texts {
                    write_aligned_line(&mut self.out, &row, &self.widths)?;
                }
            }
        }
        Ok(())
    }
}

/// A column's name, its values, and what belongs to them in another column: the nanoseconds beyond times, the integers
/// where values are such.
type Column<'a> = (&'a str, &'a dyn Array, Option<&'a dyn Array>);

/// A value as JSON, as [`Format::Ndjson`] has it: a time with its nanoseconds where their column is there, too. `null` where there is no
/// such column.
pub fn json_of(rows: &RecordBatch, column: &str, row: usize) -> String {
    let Some(values) = rows.column_by_name(column) else { return "null".to_owned() };
    let beside = nanoseconds_of(column).and_then(|name| rows.column_by_name(name));
    CellValue::of(column, &**values, beside.map(|beside| &**beside), row).json()
}

/// The column that has the nanoseconds of the times in another.
fn nanoseconds_of(column: &str) -> Option<&'static str> {
    match column {
        "time" => Some("time_ns"),
        "start_time" => Some("start_ns"),
        "observed_time" => Some("observed_ns"),
        _ => None,
    }
}

fn write_json_line<'a>(
    out: &mut impl Write,
    cells: impl Iterator<Item = (&'a str, CellValue)>,
) -> std::io::Result<()> {
    for (place, (name, cell)) in cells.enumerate() {
        let open = if place == 0 { '{' } else { ',' };
        write!(out, "{open}{}:{}", Value::from(name), cell.json())?;
    }
    out.write_all(b"}\n")
}

/// Writes fields padded to the widths of their columns. The last one is not padded.
fn write_aligned_line(out: &mut impl Write, fields: &[String], widths: &[usize]) -> std::io::Result<()> {
    for (place, (field, &width)) in fields.iter().zip(widths).enumerate() {
        if place + 1 == fields.len() {
            write!(out, "{field}")?;
        } else {
            write!(out, "{field:width$}  ")?;
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests;
