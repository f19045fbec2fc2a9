//! How far a replay has come.

use crate::layout::Hour;
use crate::{Error, Table};
use std::fmt;
use std::str::FromStr;

/// How far a replay has come: behind so many items of a file.
///
/// One line of text, by [`Display`](fmt::Display) and [`FromStr`]:
///
/// ```text
/// 1 logs dt=2026-11-21/hh=07 00000000000000000017-00000000000000000063-a.parquet 1234
/// ```
///
/// The version, the table, the hour of receiving, the file, and the items of it that were handed out. An item is a log
/// record, a span, a histogram, a number or a whole summary; except for summaries it is a row. The items of a file have an
/// order that does not change, and neither do the files of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPosition {
    pub(super) table: Table,
    pub(super) hour: Hour,
    pub(super) file: String,
    pub(super) items: u64,
}

const VERSION: &str = "1";

impl ReplayPosition {
    /// The table that is read.
    pub fn table(&self) -> Table {
        self.table
    }

    /// The hour of receiving that it has come to.
    pub fn hour(&self) -> Hour {
        self.hour
    }
}

impl fmt::Display for ReplayPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplayPosition { table, hour, file, items } = self;
        write!(f, "{VERSION} {table} {hour} {file} {items}")
    }
}

impl FromStr for ReplayPosition {
    type Err = Error;

    fn from_str(line: &str) -> Result<ReplayPosition, Error> {
        parse(line).ok_or_else(|| Error::Position(line.trim().to_owned()))
    }
}

fn parse(line: &str) -> Option<ReplayPosition> {
    let mut words = line.split_whitespace();
    let (VERSION, table, hour, file, items) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?)
    else {
        return None;
    };
    let (day, hour) = hour.split_once('/')?;
    if words.next().is_some() || file.contains('/') {
        return None;
    }
    Some(ReplayPosition {
        table: Table::of_name(table)?,
        hour: Hour::of_folders(day, hour)?,
        file: file.to_owned(),
        items: items.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_as_it_was_written() {
        let line = "1 logs dt=2026-11-21/hh=07 00000000000000000017-00000000000000000063-a.parquet 1234";
        let position: ReplayPosition = line.parse().unwrap();
        assert_eq!((position.table(), position.items), (Table::Logs, 1234));
        assert_eq!(position.to_string(), line);
        assert_eq!(format!("{line}\n").parse::<ReplayPosition>().unwrap(), position);
    }

    #[test]
    fn refuses_other_lines() {
        for line in [
            "",
            "2 logs dt=2026-11-21/hh=07 a.parquet 1",
            "1 profiles dt=2026-11-21/hh=07 a.parquet 1",
            "1 logs dt=2026-11-21/hh=24 a.parquet 1",
            "1 logs dt=2026-11-21/hh=07 ../a.parquet 1",
            "1 logs dt=2026-11-21/hh=07 a.parquet -1",
            "1 logs dt=2026-11-21/hh=07 a.parquet",
            "1 logs dt=2026-11-21/hh=07 a.parquet 1 2",
        ] {
            let error = line.parse::<ReplayPosition>().unwrap_err().to_string();
            assert!(error.contains("replay"), "{error}");
        }
    }
}
