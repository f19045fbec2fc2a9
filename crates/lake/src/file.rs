//! One Parquet file while it is written: row groups column after column, so that only one column's encoder
//! and one zstd context are ever alive.

mod properties;
mod spill;
#[cfg(test)]
mod tests;

use crate::buffer_sizes::BufferSizes;
use crate::checksum::ChecksummedFile;
use crate::run::RowBuffer;
use crate::table::{Column, Table};
use crate::{Error, time};
use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::TypePtr;
use spill::Spill;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_files::Access;

/// The properties that all files of one table share.
pub(crate) struct TableSchema {
    table: Table,
    /// The mode of the files.
    access: Access,
    properties: WriterPropertiesPtr,
    schema: TypePtr,
    columns: Vec<ColumnKind>,
}

struct ColumnKind {
    column: Column,
    field: Field,
    /// Makes the writers of this column alone: parquet's own for a whole row group makes all at once, each
    /// with a zstd context of half a megabyte.
    writers: ArrowRowGroupWriterFactory,
}

impl TableSchema {
    /// Pages on their way into the file are kept in a file at `spill` that has no name any more.
    pub(crate) fn new(
        table: Table,
        shape: &BufferSizes,
        spill: &Path,
        access: Access,
    ) -> Result<TableSchema, Error> {
        let properties = Arc::new(properties::of(table, shape));
        let spill = Spill::create(spill).map_err(Error::io("creating", spill))?;
        let converted = |schema: &Schema| Ok(ArrowSchemaConverter::new().convert(schema)?.root_schema_ptr());
        let columns: ParquetResult<Vec<ColumnKind>> = table
            .columns()
            .into_iter()
            .map(|column| {
                let field = column.field();
                let schema = Arc::new(Schema::new(vec![field.clone()]));
                let alone =
                    SerializedFileWriter::new(std::io::sink(), converted(&schema)?, Arc::clone(&properties))?;
                let writers = ArrowRowGroupWriterFactory::new(&alone, schema)
                    .with_page_store_factory(Arc::new(spill.clone()));
                Ok(ColumnKind { column, field, writers })
            })
            .collect();
        let failed = |source| Error::Parquet { doing: "laying out", path: table.name().into(), source };
        Ok(TableSchema {
            table,
            access,
            schema: converted(&table.schema()).map_err(failed)?,
            properties,
            columns: columns.map_err(failed)?,
        })
    }

    pub(crate) fn table(&self) -> Table {
        self.table
    }

    /// Starts a file at `path`.
    pub(crate) fn create(&self, path: PathBuf) -> Result<TableFile, Error> {
        let create = tidegate_files::open(&path, self.access, |options| {
            options.write(true).create(true).truncate(true)
        });
        let file = create.map_err(Error::io("creating", &path))?;
        let schema = Arc::clone(&self.schema);
        let writer =
            SerializedFileWriter::new(ChecksummedFile::new(file), schema, Arc::clone(&self.properties))
                .map_err(Error::parquet("starting", &path))?;
        Ok(TableFile { table: self.table, path, writer, rows: 0, times: None, footer_bytes: 0 })
    }

    fn write_column<W: std::io::Write + Send>(
        &self,
        kind: &ColumnKind,
        run: &dyn RowBuffer,
        stretches: &[Range<usize>],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> ParquetResult<()> {
        let mut writers: Vec<Option<ArrowColumnWriter>> =
            kind.writers.create_column_writers(0)?.into_iter().map(Some).collect();
        // A nested column has several leaves. Each is written and closed before the next one begins.
        for leaf in 0..writers.len() {
            let Some(mut writer) = writers.get_mut(leaf).and_then(Option::take) else { continue };
            for stretch in stretches {
                let array: ArrayRef = run.column(kind.column, stretch.clone())?;
                let leaves = compute_leaves(&kind.field, &array)?;
                let missing = || ParquetError::General("a leaf is missing".to_owned());
                writer.write(leaves.get(leaf).ok_or_else(missing)?)?;
                drop(leaves);
                run.recycle(array);
            }
            writer.close()?.append_to_row_group(group)?;
        }
        Ok(())
    }
}

/// One open file.
pub(crate) struct TableFile {
    table: Table,
    path: PathBuf,
    writer: SerializedFileWriter<ChecksummedFile>,
    rows: u64,
    times: Option<(i64, i64)>,
    footer_bytes: usize,
}

/// A file whose footer is written.
pub(crate) struct FinishedFile {
    pub(crate) table: Table,
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: String,
    /// Least and greatest time of its rows, in microseconds.
    pub(crate) times: (i64, i64),
    file: File,
}

impl TableFile {
    /// Writes the rows of `run`, which it sorts, as one row group.
    pub(crate) fn write(&mut self, kind: &TableSchema, run: &mut dyn RowBuffer) -> Result<(), Error> {
        run.sort();
        let stretches = run.stretches();
        self.write_group(kind, run, &stretches).map_err(Error::parquet("writing", &self.path))?;
        self.rows += run.len() as u64;
        if let Some((first, last)) = run.times() {
            let (least, greatest) = self.times.unwrap_or((first, last));
            self.times = Some((least.min(first), greatest.max(last)));
        }
        self.footer_bytes += self.writer.flushed_row_groups().last().map_or(0, |group| {
            // Row group, column and offset index of each column; the pages' own entries.
            let columns = group.num_columns();
            let pages = stretches.len() * columns / 2;
            columns * PER_COLUMN + pages * PER_PAGE
        });
        Ok(())
    }

    fn write_group(
        &mut self,
        kind: &TableSchema,
        run: &dyn RowBuffer,
        stretches: &[Range<usize>],
    ) -> ParquetResult<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &kind.columns {
            kind.write_column(column, run, stretches, &mut group)?;
        }
        group.close()?;
        Ok(())
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// An upper estimate of the memory that the footer takes until it is written.
    pub(crate) fn footer_bytes(&self) -> usize {
        self.footer_bytes
    }

    /// Writes the footer.
    pub(crate) fn finish(mut self) -> Result<FinishedFile, Error> {
        self.writer.finish().map_err(Error::parquet("finishing", &self.path))?;
        let summed = self.writer.inner();
        let file = summed.file().try_clone().map_err(Error::io("finishing", &self.path))?;
        Ok(FinishedFile {
            table: self.table,
            rows: self.rows,
            bytes: summed.bytes(),
            checksum: summed.checksum(),
            times: self.times.unwrap_or((0, 0)),
            path: self.path,
            file,
        })
    }
}

impl FinishedFile {
    /// Brings it to the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(Error::io("syncing", &self.path))
    }

    /// Opens it again and compares footer and row count with what was written.
    pub(crate) fn read_back(&self) -> Result<(), Error> {
        let file = tidegate_files::read(&self.path).map_err(Error::io("opening", &self.path))?;
        let wrong = |what: String| Error::ReadBack { path: self.path.clone(), what };
        let length = file.metadata().map_err(Error::io("looking at", &self.path))?.len();
        if length != self.bytes {
            return Err(wrong(format!("it has {length} bytes, {} were written", self.bytes)));
        }
        let footer = parquet::file::metadata::ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .map_err(Error::parquet("reading back", &self.path))?;
        let rows = u64::try_from(footer.file_metadata().num_rows()).unwrap_or(0);
        if rows != self.rows {
            let times = time::rfc3339(self.times.0, 0);
            return Err(wrong(format!("it has {rows} rows from {times} on, {} were written", self.rows)));
        }
        Ok(())
    }
}

const PER_COLUMN: usize = 1000;
const PER_PAGE: usize = 64;
