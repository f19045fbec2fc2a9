//! Reads the rows of one table from an SQLite database, with what its write-ahead log adds.
//!
//! Promise: a damaged file is an error, and takes no more than a pass over its pages. Source: the file format of SQLite 3
//! (sqlite.org/fileformat2.html). Nothing is written, and no lock is taken: the program that owns the file must not run.

mod record;
mod wal;

use crate::bounded::{self, ReadError, of_file};
use std::path::{Path, PathBuf};
use wal::WalPages;

pub(crate) use record::Value;

/// The deepest tree. SQLite itself has 20.
const DEEPEST: usize = 20;
const HEADER: usize = 100;

type Result<T> = std::result::Result<T, String>;

/// A row: its rowid, and the values of its columns.
pub(crate) struct Row {
    pub(crate) rowid: i64,
    pub(crate) values: Vec<Value>,
}

/// A table's rows and the names of its columns.
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// The value of a column; `None` also where the row was written before the column was added.
    pub(crate) fn value<'r>(&self, row: &'r Row, column: &str) -> Option<&'r Value> {
        row.values.get(self.columns.iter().position(|name| name == column)?)
    }
}

/// Reads the table `name` of the database at `path`; `None` if it has no such table.
///
/// # Errors
/// When the file or its log cannot be read, is no such database, or is damaged.
pub(crate) fn read_table(path: &Path, name: &str) -> std::result::Result<Option<Table>, ReadError> {
    let bytes = bounded::read(path)?;
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (log, rollback) = (beside("-wal"), beside("-journal"));
    // SQLite would undo the transaction that is in it.
    if std::fs::metadata(&rollback).is_ok_and(|file| file.len() > 0) {
        return Err(ReadError::format(
            path,
            format!(
                "{} has a transaction that was cut: run `sqlite3 {} 'select 1'` first",
                rollback.display(),
                path.display()
            ),
        ));
    }
    let log = if log.is_file() { bounded::read(&log)? } else { Vec::new() };
    of_file(path, Database::open(&bytes, &log).and_then(|database| database.table(name)))
}

struct Database<'a> {
    bytes: &'a [u8],
    log: WalPages<'a>,
    page_size: usize,
    /// The part of a page that has content.
    usable: usize,
    pages: u32,
}

impl<'a> Database<'a> {
    fn open(bytes: &'a [u8], log: &'a [u8]) -> Result<Database<'a>> {
        let no_database = || "it is no SQLite database".to_owned();
        if bytes.get(..16).ok_or_else(no_database)? != b"SQLite format 3\0" {
            return Err(no_database());
        }
        let page_size = match u16_at(bytes, 16)? {
            1 => 65536,
            size if size >= 512 && size.is_power_of_two() => usize::from(size),
            _ => return Err(damaged()),
        };
        let log = WalPages::read(log, page_size);
        let first = log.get(1).or_else(|| bytes.get(..page_size)).ok_or_else(damaged)?;
        if u32_at(first, 56)? > 1 {
            return Err("its texts are UTF-16, which Fluent Bit does not use".to_owned());
        }
        let usable = page_size - usize::from(*first.get(20).ok_or_else(damaged)?);
        let pages = log.pages().unwrap_or(u32::try_from(bytes.len() / page_size).map_err(|_| damaged())?);
        Ok(Database { bytes, log, page_size, usable, pages })
    }

    fn page(&self, number: u32) -> Result<&'a [u8]> {
        if number == 0 || number > self.pages {
            return Err(damaged());
        }
        self.log
            .get(number)
            .or_else(|| {
                let at = (number as usize - 1).checked_mul(self.page_size)?;
                self.bytes.get(at..at.checked_add(self.page_size)?)
            })
            .ok_or_else(damaged)
    }

    fn table(&self, name: &str) -> Result<Option<Table>> {
        // Of `sqlite_schema`: type, name, tbl_name, rootpage, sql.
        for row in self.rows(1)? {
            let [kind, table, _, root, sql, ..] = row.values.as_slice() else { return Err(damaged()) };
            if kind.text() == Some("table") && table.text() == Some(name) {
                let root = root.integer().and_then(|root| u32::try_from(root).ok()).ok_or_else(damaged)?;
                let columns = columns(sql.text().unwrap_or_default());
                return Ok(Some(Table { columns, rows: self.rows(root)? }));
            }
        }
        Ok(None)
    }

    /// The rows of the table whose tree has this root, in order.
    fn rows(&self, root: u32) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut left = self.pages;
        let mut open = vec![(root, 0)];
        while let Some((number, depth)) = open.pop() {
            // Each page is in one place of one tree.
            left = left.checked_sub(1).ok_or_else(damaged)?;
            let page = self.page(number)?;
            let start = if number == 1 { HEADER } else { 0 };
            let cells = usize::from(u16_at(page, start + 3)?);
            let (is_leaf, header) = match page.get(start) {
                Some(13) => (true, 8),
                Some(5) if depth < DEEPEST => (false, 12),
                _ => return Err(damaged()),
            };
            let cell = |index: usize| u16_at(page, start + header + 2 * index).map(usize::from);
            if is_leaf {
                for index in 0..cells {
                    rows.push(self.row(page, cell(index)?)?);
                }
            } else {
                open.push((u32_at(page, start + 8)?, depth + 1));
                for index in (0..cells).rev() {
                    open.push((u32_at(page, cell(index)?)?, depth + 1));
                }
            }
        }
        Ok(rows)
    }

    /// The row in the cell at `at`.
    fn row(&self, page: &'a [u8], at: usize) -> Result<Row> {
        let rest = page.get(at..).ok_or_else(damaged)?;
        let (len, rest) = record::varint(rest).ok_or_else(damaged)?;
        let (rowid, rest) = record::varint(rest).ok_or_else(damaged)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= self.bytes.len().max(1 << 20))
            .ok_or_else(damaged)?;
        let local = self.local(len);
        let mut payload = rest.get(..local).ok_or_else(damaged)?.to_vec();
        let mut next = if local < len { u32_at(rest, local)? } else { 0 };
        while payload.len() < len {
            let overflow = self.page(next)?;
            let part = (len - payload.len()).min(self.usable.saturating_sub(4));
            payload.extend_from_slice(
                overflow.get(4..4 + part).filter(|it| !it.is_empty()).ok_or_else(damaged)?,
            );
            next = u32_at(overflow, 0)?;
        }
        let values = record::values(&payload).ok_or_else(damaged)?;
        Ok(Row { rowid: rowid.cast_signed(), values })
    }

    /// The part of a payload that is in the cell itself.
    fn local(&self, len: usize) -> usize {
        let most = self.usable.saturating_sub(35);
        if len <= most {
            return len;
        }
        let least = (self.usable.saturating_sub(12) * 32 / 255).saturating_sub(23);
        let fitting = least + (len - least.min(len)) % self.usable.saturating_sub(4).max(1);
        if fitting <= most { fitting } else { least }
    }
}

/// The names of the columns in a `CREATE TABLE` whose column definitions have no parentheses of their own.
fn columns(sql: &str) -> Vec<String> {
    let list = sql.split_once('(').map_or("", |(_, list)| list);
    let first =
        |definition: &str| definition.split_whitespace().next().map(|name| name.trim_matches('"').to_owned());
    list.split(',').filter_map(first).collect()
}

fn damaged() -> String {
    "the database is damaged".to_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let value = bytes.get(at..).and_then(|rest| rest.first_chunk());
    value.map(|bytes| u16::from_be_bytes(*bytes)).ok_or_else(damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let value = bytes.get(at..).and_then(|rest| rest.first_chunk());
    value.map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_of_a_table() {
        let sql = "CREATE TABLE in_tail_files (  id      INTEGER PRIMARY KEY,  name    TEXT NOT NULL, rotated INTEGER DEFAULT 0)";
        assert_eq!(columns(sql), ["id", "name", "rotated"]);
    }

    proptest! {
        /// Whatever the bytes behind the header are, reading ends.
        #[test]
        fn damaged_databases_are_errors(body in proptest::collection::vec(any::<u8>(), 1024..4096), log in proptest::collection::vec(any::<u8>(), 0..2048)) {
            let mut bytes = b"SQLite format 3\0\x02\x00\x01\x01\x00\x40\x20\x20".to_vec();
            bytes.resize(56, 0);
            bytes.extend_from_slice(&[0, 0, 0, 1]);
            bytes.resize(HEADER, 0);
            bytes.push(13 - (body.first().unwrap_or(&0) & 8));
            bytes.extend_from_slice(&body);
            let _ = Database::open(&bytes, &log).and_then(|database| database.table("t"));
        }
    }
}
