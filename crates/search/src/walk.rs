//! The way of a query: first through the records that the lake does not have yet, then through the lake.

use crate::literals::Literals;
use crate::records::{self, RecordBounds};
use crate::{Bounds, SearchError, Stores};
use std::time::Instant;
use tidegate_journal::Signal;
use tidegate_lake::{Query, Search, SearchCounts, Snapshot, Table, Uncommitted, Visitor};

/// How often a query begins anew because the lake took records meanwhile.
const ATTEMPTS: usize = 3;

/// A visitor that can begin anew.
pub(crate) trait Collector: Visitor {
    /// Forgets everything.
    fn reset(&mut self);
}

/// The queries of one search, and what they read together.
pub(crate) struct Walk<'s> {
    pub(crate) stores: &'s Stores,
    pub(crate) bounds: &'s Bounds,
    pub(crate) started: Instant,
    pub(crate) read: ReadCounts,
}

/// Counts of rows and records that were read, and of those that could not be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReadCounts {
    pub(crate) lake: SearchCounts,
    pub(crate) records: u64,
    /// Rows of records that were compared with the conditions.
    pub(crate) record_rows: u64,
    /// Records that are too long to be read in the memory of a search.
    pub(crate) too_long: u64,
    /// Records that cannot be read.
    pub(crate) damaged: u64,
    /// Items that are too long to become rows in the memory of a search.
    pub(crate) dropped: u64,
    /// Records went out of the journal while it was read, each time.
    pub(crate) is_torn: bool,
    /// The journal is kept in memory, where nothing is searched.
    pub(crate) is_unsearched: bool,
    /// The time was over.
    pub(crate) is_late: bool,
    /// When the oldest record of the journal was received, in nanoseconds since the Unix epoch.
    pub(crate) oldest_ns: Option<u64>,
}

impl<'s> Walk<'s> {
    pub(crate) fn new(stores: &'s Stores, bounds: &'s Bounds) -> Walk<'s> {
        Walk { stores, bounds, started: Instant::now(), read: ReadCounts::default() }
    }

    /// Shows all rows of `query` to the collector.
    pub(crate) fn search(
        &mut self,
        query: &Query,
        collector: &mut impl Collector,
    ) -> Result<(), SearchError> {
        let before = self.read;
        for attempt in 1..=ATTEMPTS {
            self.read = before;
            collector.reset();
            let lake = self.snapshot()?;
            let after = lake.as_ref().and_then(Snapshot::through);
            let mut records = Uncommitted::new(Search::new(query, &mut *collector)?)?;
            let is_whole = self.journal(after, query, &mut records)?;
            // The lake may have taken what was not there any more. Records may also go without a trace in the lake: if none of
            // their items is of its tables, or no lake takes them.
            if !is_whole && self.snapshot()?.as_ref().and_then(Snapshot::through) != after {
                self.read.is_torn = attempt == ATTEMPTS;
                if attempt < ATTEMPTS {
                    continue;
                }
            }
            self.read.dropped += records.dropped();
            let mut search = records.into_search();
            self.read.record_rows += search.counts().rows_read;
            let read_before = search.counts();
            if let Some(lake) = &lake {
                search.lake(lake)?;
            }
            self.read.lake.add(&search.counts().since(&read_before));
            break;
        }
        self.read.is_late |= self.bounds.is_over();
        Ok(())
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, SearchError> {
        let lake = self.stores.lake.as_ref();
        Ok(lake.map(|lake| Snapshot::of(&lake.dir, &lake.node)).transpose()?)
    }

    /// Reads the records behind `after`. Returns whether all that the journal should have were there.
    fn journal(
        &mut self,
        after: Option<u64>,
        query: &Query,
        rows: &mut Uncommitted<'_>,
    ) -> Result<bool, SearchError> {
        let Some(dir) = &self.stores.journal else {
            self.read.is_unsearched = true;
            return Ok(true);
        };
        let signal = match query.table {
            Table::Logs => Signal::Logs,
            Table::Spans => Signal::Traces,
            Table::MetricPoints | Table::MetricHistograms => Signal::Metrics,
        };
        let lake = self.stores.lake.as_ref().map(|lake| &*lake.sink);
        let literals = Literals::of(query);
        let bounds = RecordBounds { after, signal, body: self.bounds.body, literals, lake };
        let read = records::read(dir, &bounds, rows, &mut self.read)
            .map_err(|source| SearchError::Journal { dir: dir.clone(), source })?;
        rows.flush()?;
        Ok(read)
    }
}
