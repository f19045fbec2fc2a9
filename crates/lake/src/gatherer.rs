//! Rows of all tables while they are gathered in one pool: what converts requests adds to them, and what does not fit any more
//! goes on to whoever takes full runs.

use crate::buffer_sizes::BufferSizes;
use crate::metadata::MetadataCache;
use crate::pool::Pool;
use crate::run::{HistogramBuffer, LogBuffer, PointBuffer, RowBuffer, RowRejection, SpanBuffer};
use crate::{BatchResult, Error, Table};

/// Takes the rows of a run that is full.
pub(crate) trait Overflow {
    /// Takes all rows of a run, of which there is at least one; the run is emptied then.
    fn write(&mut self, table: Table, run: &mut dyn RowBuffer) -> Result<(), Error>;
}

/// Rows of all tables.
pub(crate) struct Gatherer<O> {
    pub(crate) points: PointBuffer,
    pub(crate) histograms: HistogramBuffer,
    pub(crate) spans: SpanBuffer,
    pub(crate) logs: LogBuffer,
    /// Rises whenever a run is emptied: places in runs are good for as long as it is the same.
    pub(crate) emptied: u64,
    pub(crate) families: MetadataCache,
    /// xxh64 (seed 0) of the node's name.
    node: u64,
    pub(crate) overflow: O,
}

impl<O: Overflow> Gatherer<O> {
    /// No rows yet. `node` is xxh64 (seed 0) of the node's name.
    pub(crate) fn new(shape: &BufferSizes, node: u64, overflow: O) -> Self {
        let pool = Pool::new(shape.pool);
        Gatherer {
            points: PointBuffer::new(shape, &pool),
            histograms: HistogramBuffer::new(shape, &pool),
            spans: SpanBuffer::new(&pool),
            logs: LogBuffer::new(&pool),
            emptied: 0,
            families: MetadataCache::new(shape.families, shape.family_bytes),
            node,
            overflow,
        }
    }

    /// A batch's unique id: the node and the journal's sequence, eight bytes each.
    pub(crate) fn batch_id(&self, sequence: u64) -> [u8; 16] {
        (u128::from(self.node) << 64 | u128::from(sequence)).to_be_bytes()
    }

    /// Does what adds an item to a run, and does it again when room had to be made first; counts what became
    /// of it.
    pub(crate) fn take(
        &mut self,
        pushed: &mut BatchResult,
        mut add: impl FnMut(&mut Self) -> Result<u64, RowRejection>,
    ) -> Result<(), Error> {
        let mut last = false;
        loop {
            match add(self) {
                Ok(rows) => {
                    pushed.rows += rows;
                    return Ok(());
                }
                Err(RowRejection::Full) if self.make_room(&mut last)? => {}
                Err(reason) => {
                    pushed.dropped.count(reason);
                    return Ok(());
                }
            }
        }
    }

    fn run(&mut self, table: Table) -> &mut dyn RowBuffer {
        match table {
            Table::MetricPoints => &mut self.points,
            Table::MetricHistograms => &mut self.histograms,
            Table::Spans => &mut self.spans,
            Table::Logs => &mut self.logs,
        }
    }

    /// Makes room in the pool by writing out the run that has most of it. When no run has rows, what they
    /// have beside is forgotten, once for an item: `last` is where that is noted. Returns whether to try
    /// again.
    fn make_room(&mut self, last: &mut bool) -> Result<bool, Error> {
        let with_rows = Table::ALL.into_iter().filter_map(|table| {
            let run = self.run(table);
            (run.len() > 0).then(|| (run.held(), table))
        });
        if let Some((_, table)) = with_rows.max() {
            self.write_run(table)?;
            return Ok(true);
        }
        if std::mem::replace(last, true) {
            return Ok(false);
        }
        self.clear();
        Ok(true)
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self) {
        self.emptied += 1;
        for table in Table::ALL {
            self.run(table).clear();
        }
    }

    /// Hands on the gathered rows of all tables.
    pub(crate) fn write_all(&mut self) -> Result<(), Error> {
        Table::ALL.into_iter().try_for_each(|table| self.write_run(table))
    }

    fn write_run(&mut self, table: Table) -> Result<(), Error> {
        self.emptied += 1;
        let run: &mut dyn RowBuffer = match table {
            Table::MetricPoints => &mut self.points,
            Table::MetricHistograms => &mut self.histograms,
            Table::Spans => &mut self.spans,
            Table::Logs => &mut self.logs,
        };
        if run.len() > 0 {
            self.overflow.write(table, run)?;
        }
        run.clear();
        Ok(())
    }
}
