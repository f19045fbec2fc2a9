//! Records that are not in the lake yet, as the rows that they will be there.

use super::Search;
use crate::buffer_sizes::{BufferSizes, SMALLEST};
use crate::gatherer::{Gatherer, Overflow};
use crate::run::RowBuffer;
use crate::table::Column;
use crate::{BatchPosition, BatchResult, Error, Table};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use std::sync::Arc;
use tidegate_wire::otlp::Signal;
use tidegate_wire::remote_write::Request;

/// A search through records: they become rows as in a [`Writer`](crate::Writer), which are looked through whenever the memory for them is
/// full.
pub struct Uncommitted<'v> {
    rows: Gatherer<SearchedRows<'v>>,
    result: BatchResult,
}

struct SearchedRows<'v> {
    search: Search<'v>,
    /// Those of the table that are needed.
    columns: Vec<Column>,
}

impl<'v> Uncommitted<'v> {
    /// The memory that it takes, in bytes: rows, the bounded tables beside them, and the columns of some rows.
    pub const BYTES: u64 = SMALLEST / 2;

    /// Searches records within [`BYTES`](Self::BYTES).
    ///
    /// # Errors
    /// None that is known.
    pub fn new(search: Search<'v>) -> Result<Uncommitted<'v>, Error> {
        // As the least writer has it, which needs the other half for encoders and footers.
        let shape = BufferSizes::of(SMALLEST)?;
        let needed = search.columns();
        let columns = search.table.columns().into_iter();
        let columns = columns.filter(|column| needed.contains(&column.field().name().as_str())).collect();
        let rows = Gatherer::new(&shape, 0, SearchedRows { search, columns });
        Ok(Uncommitted { rows, result: BatchResult::default() })
    }

    /// Searches a piece of a record: a checked OTLP request, `raw` once decompressed.
    ///
    /// # Errors
    /// When a column cannot be built.
    pub fn otlp(&mut self, position: &BatchPosition, signal: Signal, raw: &[u8]) -> Result<(), Error> {
        self.rows.push_otlp(signal, position, raw, &mut self.result)
    }

    /// Searches a record of remote write.
    ///
    /// # Errors
    /// When a column cannot be built.
    pub fn remote_write(&mut self, request: &Request<'_>) -> Result<(), Error> {
        self.rows.push_request(request, &mut self.result)
    }

    /// Looks through all rows that are gathered.
    ///
    /// # Errors
    /// When a column cannot be built.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.rows.write_all()
    }

    /// The search, with which to go on in the lake. What was not [flushed](Self::flush) is not looked through.
    pub fn into_search(self) -> Search<'v> {
        self.rows.overflow.search
    }

    /// Items that could not become rows, most of them for their length.
    pub fn dropped(&self) -> u64 {
        self.result.dropped.items()
    }

    /// Whether the visitor says that it is over.
    pub fn is_over(&mut self) -> bool {
        self.rows.overflow.search.visitor.is_over()
    }
}

impl Overflow for SearchedRows<'_> {
    fn write(&mut self, table: Table, run: &mut dyn RowBuffer) -> Result<(), Error> {
        if table != self.search.table {
            return Ok(());
        }
        run.sort();
        let fields: Vec<Field> = self.columns.iter().map(|column| column.field()).collect();
        let schema = Arc::new(Schema::new(fields));
        for stretch in run.stretches() {
            let columns: Result<Vec<_>, _> =
                self.columns.iter().map(|column| run.column(*column, stretch.clone())).collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns?)?;
            self.search.batch(&batch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Query;
    use crate::search::Visitor;
    use crate::tests::body::{bytes, fixed64};
    use crate::tests::otlp::{Attr, attributes, request};
    use arrow::error::ArrowError;

    /// Wants every row, and forgets it.
    #[derive(Default)]
    struct Counter {
        looked_at: usize,
        waiting: usize,
        taken: usize,
    }

    impl Visitor for Counter {
        fn looked_at(&self) -> &[&'static str] {
            &["time", "severity_number"]
        }

        fn taken(&self) -> &[&'static str] {
            &["time", "time_ns", "body", "attributes", "resource", "trace_id", "span_id", "host.name"]
        }

        fn look(&mut self, first: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
            assert_eq!(first, self.waiting);
            self.looked_at += rows.num_rows();
            self.waiting += rows.num_rows();
            Ok(())
        }

        fn wanted(&mut self) -> Vec<usize> {
            (0..std::mem::take(&mut self.waiting)).collect()
        }

        fn take(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
            self.taken += rows.num_rows();
            Ok(())
        }

        fn is_over(&mut self) -> bool {
            false
        }
    }

    /// However many rows there are and however they differ, the memory for them is what is said.
    #[test]
    fn rows_of_records_take_what_is_said() {
        let pieces: Vec<Vec<u8>> = (0..200_u64)
            .map(|piece| {
                let service = format!("service-{piece}");
                let records: Vec<Vec<u8>> = (0..500_u64)
                    .map(|place| {
                        let mut record = Vec::new();
                        fixed64(&mut record, 1, 1_700_000_000_000_000_000 + place);
                        let text = format!("{piece} {place} {}", "x".repeat(usize::try_from(place).unwrap()));
                        bytes(&mut record, 5, &Attr::Text(&text).encode());
                        attributes(
                            &mut record,
                            6,
                            &[("key", Attr::Text(&text)), ("host.name", Attr::Text(&text))],
                        );
                        record
                    })
                    .collect();
                request(&[("service.name", Attr::Text(&service))], b"", &records)
            })
            .collect();
        let position = BatchPosition { sequence: 1, received_at_ns: 1 };
        let mut counter = Counter::default();
        let used = allocation_counter::measure(|| {
            let search = Search::new(&Query::new(Table::Logs), &mut counter).unwrap();
            let mut rows = Uncommitted::new(search).unwrap();
            for piece in &pieces {
                rows.otlp(&position, Signal::Logs, piece).unwrap();
            }
            rows.flush().unwrap();
            assert_eq!(rows.dropped(), 0);
        });
        assert_eq!((counter.looked_at, counter.taken), (100_000, 100_000));
        assert!(used.bytes_max <= Uncommitted::BYTES, "{used:?}");
    }
}
