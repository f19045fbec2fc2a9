//! Searching: rows of the lake from the newest files on, and rows of records that are not in the lake yet.
//!
//! Of a row group, the columns of the cheap conditions are read first, those of the costly ones (texts) only for rows that are left, and
//! all others only for rows that the [`Visitor`] wants. So the newest hundred of a million matching rows cost a hundred rows.

mod snapshot;
mod uncommitted;

pub use snapshot::Snapshot;
pub use uncommitted::Uncommitted;

use crate::query::COSTLY;
use crate::scan::{LakeFilter, projection, views};
use crate::{Error, Query, Table};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::file::statistics::Statistics;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// Rows of a batch.
const BATCH: usize = 2048;

/// Receives the rows of a search, a group at a time: [`look`](Self::look) at all that match, in a few columns; then
/// [`wanted`](Self::wanted) once; then [`take`](Self::take) with those, whole.
pub trait Visitor {
    /// The columns that are looked at.
    fn looked_at(&self) -> &[&'static str];

    /// The columns of rows that are taken.
    fn taken(&self) -> &[&'static str];

    /// Rows before this time, in microseconds since the Unix epoch, are of no use any more.
    fn not_before_us(&self) -> i64 {
        i64::MIN
    }

    /// Looks at matching rows. `first` is the place of the first of them among all that match of this group.
    ///
    /// # Errors
    /// When a column is not as it should be.
    fn look(&mut self, first: usize, rows: &RecordBatch) -> Result<(), ArrowError>;

    /// The places of those rows of the group that are wanted whole, in ascending order. The next rows are of another group.
    fn wanted(&mut self) -> Vec<usize>;

    /// Takes the wanted rows, in that order.
    ///
    /// # Errors
    /// When a column is not as it should be.
    fn take(&mut self, rows: &RecordBatch) -> Result<(), ArrowError>;

    /// Rows of records come to an end here, and those of the lake begin.
    fn enter_lake(&mut self) {}

    /// Whether to stop here. Asked for each batch.
    fn is_over(&mut self) -> bool;
}

/// Counts of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// Files of which something was read.
    pub files_read: u64,
    /// Files that could be passed over.
    pub files_skipped: u64,
    /// Rows that were compared with the conditions.
    pub rows_read: u64,
    /// Files that the lake should have and has not.
    pub missing: u64,
    /// Files that cannot be read: damaged ones, most likely.
    pub unreadable: u64,
}

impl SearchCounts {
    /// Adds those of another search.
    pub fn add(&mut self, other: &SearchCounts) {
        self.files_read += other.files_read;
        self.files_skipped += other.files_skipped;
        self.rows_read += other.rows_read;
        self.missing += other.missing;
        self.unreadable += other.unreadable;
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &SearchCounts) -> SearchCounts {
        SearchCounts {
            files_read: self.files_read - earlier.files_read,
            files_skipped: self.files_skipped - earlier.files_skipped,
            rows_read: self.rows_read - earlier.rows_read,
            missing: self.missing - earlier.missing,
            unreadable: self.unreadable - earlier.unreadable,
        }
    }
}

/// A query whose rows go to a visitor.
pub struct Search<'v> {
    table: Table,
    filter: LakeFilter,
    visitor: &'v mut dyn Visitor,
    counts: SearchCounts,
}

impl<'v> Search<'v> {
    /// Looks for the rows of `query`, whose columns and limit do not matter.
    ///
    /// # Errors
    /// When its conditions do not fit its table.
    pub fn new(query: &Query, visitor: &'v mut dyn Visitor) -> Result<Search<'v>, Error> {
        Ok(Search {
            table: query.table,
            filter: LakeFilter::new(query)?,
            visitor,
            counts: SearchCounts::default(),
        })
    }

    /// Its counts so far.
    pub fn counts(&self) -> SearchCounts {
        self.counts
    }

    /// Searches the lake, newest files first, until the visitor says that it is over. Files that cannot be read are passed over and counted.
    ///
    /// # Errors
    /// When a manifest cannot be read.
    pub fn lake(&mut self, lake: &Snapshot) -> Result<(), Error> {
        self.visitor.enter_lake();
        for &hour in lake.hours().iter().rev() {
            if self.visitor.is_over() {
                return Ok(());
            }
            if !lake.may_have(hour, self.filter.from()) {
                continue;
            }
            for file in lake.files(self.table, hour)? {
                self.narrow();
                if self.visitor.is_over() {
                    return Ok(());
                }
                if !self.filter.may_have(file.min_time_us, file.max_time_us) {
                    self.counts.files_skipped += 1;
                    continue;
                }
                match self.file(&file.path) {
                    Ok(()) => {}
                    // Retention lets the oldest go.
                    Err(error) if error.is_missing() => self.counts.missing += 1,
                    Err(_) => {
                        self.counts.unreadable += 1;
                        // The group in which it broke off is over.
                        self.visitor.wanted();
                    }
                }
            }
        }
        Ok(())
    }

    /// From now on only rows that are of use.
    fn narrow(&mut self) {
        self.filter.not_before(self.visitor.not_before_us());
    }

    fn file(&mut self, path: &Path) -> Result<(), Error> {
        let file = tidegate_files::read(path).map_err(Error::io("opening", path))?;
        self.groups(&file).map_err(Error::parquet("reading", path))
    }

    fn groups(&mut self, file: &File) -> parquet::errors::Result<()> {
        let metadata = views(file)?;
        let mut groups: Vec<usize> = (0..metadata.metadata().num_row_groups()).collect();
        // The newest first, by the time that statistics say.
        let latest = |group: usize| latest(&metadata, group, self.table.time_columns().0);
        groups.sort_by_key(|&group| std::cmp::Reverse(latest(group)));
        let mut is_read = false;
        for group in groups {
            self.narrow();
            if self.visitor.is_over() {
                break;
            }
            let mut builder = reader(file, &metadata)?;
            if self.filter.may_match(&mut builder, group)? {
                is_read = true;
                self.group(&Group { file, metadata: &metadata, group })?;
            }
        }
        *if is_read { &mut self.counts.files_read } else { &mut self.counts.files_skipped } += 1;
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>) -> parquet::errors::Result<()> {
        self.counts.rows_read += group.rows() as u64;
        let mut selection = None;
        for is_costly in [false, true] {
            let columns = self.filter.columns_of(is_costly);
            if columns.is_empty() {
                continue;
            }
            let mut masks: Vec<BooleanArray> = Vec::new();
            for batch in group.read(&columns, selection.clone())? {
                if self.visitor.is_over() {
                    return Ok(());
                }
                masks.push(self.filter.matching(&batch?, is_costly)?);
            }
            let narrower = RowSelection::from_filters(&masks);
            let narrower = match selection.take() {
                None => narrower,
                Some(wider) => RowSelection::and_then(&wider, &narrower),
            };
            if !narrower.selects_any() {
                return Ok(());
            }
            selection = Some(narrower);
        }
        let selection = selection.unwrap_or_default();
        let mut first = 0;
        let looked_at = self.visitor.looked_at().to_vec();
        for batch in group.read(&looked_at, Some(selection.clone()))? {
            let batch = batch?;
            self.visitor.look(first, &batch)?;
            first += batch.num_rows();
        }
        let wanted = self.visitor.wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = wanted.into_iter().map(|place| place..place + 1);
        let wanted = selection.and_then(&RowSelection::from_consecutive_ranges(merged(rows), first));
        let taken = self.visitor.taken().to_vec();
        for batch in group.read(&taken, Some(wanted))? {
            self.visitor.take(&batch?)?;
        }
        Ok(())
    }

    /// Looks through rows that have the columns of all conditions, and those that the visitor wants.
    fn batch(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        self.counts.rows_read += rows.num_rows() as u64;
        self.narrow();
        let mut matching = rows.clone();
        for is_costly in [false, true] {
            let mask = self.filter.matching(&matching, is_costly)?;
            matching = arrow::compute::filter_record_batch(&matching, &mask)?;
        }
        if matching.num_rows() == 0 {
            return Ok(());
        }
        self.visitor.look(0, &matching)?;
        let mut wanted = vec![false; matching.num_rows()];
        for place in self.visitor.wanted() {
            if let Some(wanted) = wanted.get_mut(place) {
                *wanted = true;
            }
        }
        let taken = arrow::compute::filter_record_batch(&matching, &BooleanArray::from(wanted))?;
        if taken.num_rows() > 0 { self.visitor.take(&taken) } else { Ok(()) }
    }

    /// The columns that [`batch`](Self::batch) needs.
    fn columns(&self) -> Vec<&str> {
        let mut columns = self.filter.columns();
        columns.extend(self.visitor.looked_at());
        columns.extend(self.visitor.taken());
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// A row group of an open file.
struct Group<'f> {
    file: &'f File,
    metadata: &'f ArrowReaderMetadata,
    group: usize,
}

impl Group<'_> {
    fn rows(&self) -> usize {
        usize::try_from(self.metadata.metadata().row_group(self.group).num_rows()).unwrap_or(0)
    }

    /// Batches of the selected rows in these columns.
    fn read(
        &self,
        columns: &[&str],
        selection: Option<RowSelection>,
    ) -> parquet::errors::Result<parquet::arrow::arrow_reader::ParquetRecordBatchReader> {
        let builder = reader(self.file, self.metadata)?;
        let mask = projection(&builder, columns.iter().copied());
        let builder = builder.with_batch_size(BATCH).with_row_groups(vec![self.group]).with_projection(mask);
        match selection {
            Some(selection) => builder.with_row_selection(selection).build(),
            None => builder.build(),
        }
    }
}

fn reader(
    file: &File,
    metadata: &ArrowReaderMetadata,
) -> parquet::errors::Result<ParquetRecordBatchReaderBuilder<File>> {
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata.clone()))
}

/// The greatest time in a row group; one that does not say may be the newest.
fn latest(metadata: &ArrowReaderMetadata, group: usize, time: &str) -> i64 {
    match crate::scan::chunk(metadata.metadata().row_group(group), time) {
        Some((_, Some(Statistics::Int64(times)))) => times.max_opt().copied().unwrap_or(i64::MAX),
        _ => i64::MAX,
    }
}

/// Joins ranges that follow each other.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = Range<usize>> {
    let mut ranges = ranges.peekable();
    std::iter::from_fn(move || {
        let mut range = ranges.next()?;
        while let Some(next) = ranges.next_if(|next| next.start == range.end) {
            range.end = next.end;
        }
        Some(range)
    })
}

impl LakeFilter {
    /// The columns of the conditions that are costly, or of the others; none when there are no such conditions. The time is among
    /// the others.
    fn columns_of(&self, is_costly: bool) -> Vec<&str> {
        let columns = self.columns();
        let mut columns: Vec<&str> =
            columns.into_iter().filter(|column| COSTLY.contains(column) == is_costly).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}
