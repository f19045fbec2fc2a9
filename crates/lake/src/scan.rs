//! Reading rows back: files skipped by the manifest, row groups by their statistics, rows by a filter.

mod filter;

use crate::layout::{Hour, Layout};
use crate::manifest::{self, FileEntry};
use crate::{Error, Query, Table};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
pub(crate) use filter::{LakeFilter, chunk};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that match a query, as batches of at most 1,024. Files come in the order in which they were
/// committed; rows of metrics are sorted by metric, series and time within a row group.
///
/// Holds one file open and a page of each column that is read. Each batch has the columns that were asked for
/// and, behind them, what [`Output`](crate::Output) shows in their place: the nanoseconds when the time was asked for
/// without them, and the integers when the value was.
///
/// Files that a manifest names and that are not there are passed over, and [told](Self::missing).
pub struct Scan {
    layout: Layout,
    query: Query,
    filter: Arc<LakeFilter>,
    columns: Vec<String>,
    hours: std::vec::IntoIter<Hour>,
    files: std::vec::IntoIter<PathBuf>,
    /// The hour of those files.
    hour: Option<Hour>,
    missing: Vec<PathBuf>,
    missing_count: u64,
    open: Option<(PathBuf, ParquetRecordBatchReader)>,
    left: u64,
}

/// So many of the files that are missing are named.
const NAMED: usize = 10;
/// Rows of a batch.
const BATCH: usize = 1024;

/// Reads the rows of the lake at `dir` that match. The lake may be written at the same time: what is
/// committed after an hour's manifest was read is not seen.
pub fn scan(dir: &Path, query: &Query) -> Result<Scan, Error> {
    let layout = Layout::new(dir);
    let hours = layout.manifest_hours().map_err(Error::io("looking into", layout.root()))?;
    let mut columns = query.output()?;
    let (time, nanoseconds) = query.table.time_columns();
    if columns.iter().any(|column| column == time) && !columns.iter().any(|column| column == nanoseconds) {
        columns.push(nanoseconds.to_owned());
    }
    if query.table == Table::MetricPoints && columns.iter().any(|column| column == "value") {
        let integers = "value_int".to_owned();
        if !columns.contains(&integers) {
            columns.push(integers);
        }
    }
    Ok(Scan {
        layout,
        filter: Arc::new(LakeFilter::new(query)?),
        columns,
        hours: hours.into_iter(),
        files: Vec::new().into_iter(),
        hour: None,
        missing: Vec::new(),
        missing_count: 0,
        open: None,
        left: query.limit.unwrap_or(u64::MAX),
        query: query.clone(),
    })
}

impl Scan {
    /// The columns that were asked for: all of a batch but the nanoseconds behind them.
    pub fn columns(&self) -> Result<Vec<String>, Error> {
        self.query.output()
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            if self.left == 0 {
                return Ok(None);
            }
            if let Some((path, reader)) = &mut self.open {
                match reader.next() {
                    Some(batch) => {
                        let read = |source: arrow::error::ArrowError| Error::Parquet {
                            doing: "reading",
                            path: path.clone(),
                            source: source.into(),
                        };
                        let batch = self.filter.project(&batch.map_err(read)?, &self.columns)?;
                        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
                        self.left -= rows as u64;
                        if rows > 0 {
                            return Ok(Some(batch.slice(0, rows)));
                        }
                    }
                    None => self.open = None,
                }
            } else if let Some(path) = self.files.next() {
                match self.open(&path) {
                    Err(error) if error.is_missing() => self.is_missing(path)?,
                    opened => self.open = opened?.map(|reader| (path, reader)),
                }
            } else if let Some(hour) = self.hours.next() {
                let manifest = manifest::read(&self.layout, hour)?;
                let folder = self.layout.partition(self.query.table, hour);
                let files = manifest.lines.iter().flat_map(|line| &line.files);
                let wanted = files.filter(|file| self.is_wanted(file));
                let wanted: Vec<PathBuf> = wanted.map(|file| folder.join(&file.file)).collect();
                (self.hour, self.files) = (Some(hour), wanted.into_iter());
            } else {
                return Ok(None);
            }
        }
    }

    /// Files that should be there and are not: the first ten of them, and how many there are.
    pub fn missing(&self) -> (&[PathBuf], u64) {
        (&self.missing, self.missing_count)
    }

    /// Retention may have let it go since its name was read, and its manifest before it: else somebody else did.
    fn is_missing(&mut self, path: PathBuf) -> Result<(), Error> {
        let Some(hour) = self.hour else { return Ok(()) };
        let named = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let manifest = manifest::read(&self.layout, hour)?;
        if manifest.lines.iter().flat_map(|line| &line.files).any(|file| file.file == named) {
            self.missing_count += 1;
            if self.missing.len() < NAMED {
                self.missing.push(path);
            }
        }
        Ok(())
    }

    fn is_wanted(&self, file: &FileEntry) -> bool {
        file.table() == Some(self.query.table) && self.filter.may_have(file.min_time_us, file.max_time_us)
    }

    /// Opens a file at its first row group that may have matching rows, if there is one.
    fn open(&self, path: &Path) -> Result<Option<ParquetRecordBatchReader>, Error> {
        let file = tidegate_files::read(path).map_err(Error::io("opening", path))?;
        self.reader(file).map_err(Error::parquet("reading", path))
    }

    fn reader(&self, file: File) -> parquet::errors::Result<Option<ParquetRecordBatchReader>> {
        let mut builder = reader_of(file)?.with_batch_size(BATCH);
        let mut groups = Vec::new();
        for group in 0..builder.metadata().num_row_groups() {
            if self.filter.may_match(&mut builder, group)? {
                groups.push(group);
            }
        }
        if groups.is_empty() {
            return Ok(None);
        }
        let read = projection(&builder, self.columns.iter().map(String::as_str));
        let filter = projection(&builder, self.filter.columns().into_iter());
        builder
            .with_row_groups(groups)
            .with_projection(read)
            .with_row_filter(self.filter.rows(filter))
            .build()
            .map(Some)
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let advanced = self.advance();
        if advanced.is_err() {
            // Rows after an error would look complete.
            self.left = 0;
        }
        advanced.transpose()
    }
}

/// The columns of these names, without regard to points in them: `k8s.pod.name` would be taken for a path. Names that the file does
/// not have are left out.
pub(crate) fn projection<'a>(
    builder: &ParquetRecordBatchReaderBuilder<File>,
    names: impl Iterator<Item = &'a str>,
) -> ProjectionMask {
    let places = names.filter_map(|name| builder.schema().index_of(name).ok());
    ProjectionMask::roots(builder.parquet_schema(), places)
}

/// Opens a file whose texts are shown as views.
pub(crate) fn reader_of(file: File) -> parquet::errors::Result<ParquetRecordBatchReaderBuilder<File>> {
    let metadata = views(&file)?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
}

/// How to read a file so that its texts are shown as views into its pages: a long text that many rows have in
/// common is in memory once.
pub(crate) fn views(file: &File) -> parquet::errors::Result<ArrowReaderMetadata> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    let fields = metadata.schema().fields().iter().map(|field| {
        if field.data_type() == &DataType::Utf8 {
            Field::clone(field).with_data_type(DataType::Utf8View)
        } else {
            Field::clone(field)
        }
    });
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}
