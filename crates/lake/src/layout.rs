//! Where things are: `v1/<table>/dt=YYYY-MM-DD/hh=HH/<first>-<last>-<node>.parquet`,
//! `v1/manifest/dt=YYYY-MM-DD/hh=HH.jsonl`, and `v1/tmp/` for what is being written.

use crate::Table;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use std::fmt;
use std::path::{Path, PathBuf};

/// One hour in UTC, counted from the Unix epoch: the lake's partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

const SECONDS: i64 = 3600;
const NANOSECONDS: u64 = 3_600_000_000_000;

impl Hour {
    /// The hour of a time in nanoseconds since the Unix epoch.
    pub fn of_ns(nanoseconds: u64) -> Hour {
        Hour(i64::try_from(nanoseconds / NANOSECONDS).unwrap_or(0))
    }

    /// When it begins, in nanoseconds since the Unix epoch.
    pub fn start_ns(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0).saturating_mul(NANOSECONDS)
    }

    /// Day (`dt=2026-11-21`) and hour (`hh=07`) as names of folders.
    pub(crate) fn folders(self) -> (String, String) {
        let start = Timestamp::from_second(self.0.saturating_mul(SECONDS)).unwrap_or(Timestamp::UNIX_EPOCH);
        let start = TimeZone::UTC.to_datetime(start);
        (format!("dt={}", start.date()), format!("hh={:02}", start.hour()))
    }

    /// The hour that these folders stand for, when they are named as [`folders`](Self::folders) does.
    pub(crate) fn of_folders(day: &str, hour: &str) -> Option<Hour> {
        let day: civil::Date = day.strip_prefix("dt=")?.parse().ok()?;
        let hour = civil::Time::new(hour.strip_prefix("hh=")?.parse().ok()?, 0, 0, 0).ok()?;
        let start = TimeZone::UTC.to_timestamp(day.to_datetime(hour)).ok()?;
        Some(Hour(start.as_second().div_euclid(SECONDS)))
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, hour) = self.folders();
        write!(f, "{day}/{hour}")
    }
}

/// The paths under one lake's folder.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(crate) fn new(dir: &Path) -> Layout {
        Layout { root: dir.join("v1") }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub(crate) fn table(&self, table: Table) -> PathBuf {
        self.root.join(table.name())
    }

    pub(crate) fn partition(&self, table: Table, hour: Hour) -> PathBuf {
        let (day, hour) = hour.folders();
        self.table(table).join(day).join(hour)
    }

    pub(crate) fn manifests(&self) -> PathBuf {
        self.root.join("manifest")
    }

    pub(crate) fn manifest(&self, hour: Hour) -> PathBuf {
        let (day, hour) = hour.folders();
        self.manifests().join(day).join(format!("{hour}.jsonl"))
    }

    /// All hours that have a manifest, oldest first.
    pub(crate) fn manifest_hours(&self) -> std::io::Result<Vec<Hour>> {
        hours(&self.manifests(), ".jsonl")
    }

    /// All hours that have a folder in `table`, oldest first.
    pub(crate) fn table_hours(&self, table: Table) -> std::io::Result<Vec<Hour>> {
        hours(&self.table(table), "")
    }
}

/// The name of a file with rows of the sequences `first..=last` of `node`. One commit may need several.
pub(crate) fn file_name(first: u64, last: u64, node: &str, part: usize) -> String {
    match part {
        0 => format!("{first:020}-{last:020}-{node}.parquet"),
        part => format!("{first:020}-{last:020}-{node}+{part}.parquet"),
    }
}

/// Whether `node` gave the file this name.
pub(crate) fn is_of(name: &str, node: &str) -> bool {
    let rest = name.splitn(3, '-').nth(2).and_then(|rest| rest.strip_suffix(".parquet"));
    rest.is_some_and(|rest| rest.split('+').next() == Some(node))
}

/// The names in a folder, none when there is no such folder.
pub(crate) fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// One entry per hour that was kept: retention bounds how many there are.
fn hours(folder: &Path, suffix: &str) -> std::io::Result<Vec<Hour>> {
    let mut hours = Vec::new();
    for day in names(folder)?.iter().filter(|name| name.starts_with("dt=")) {
        for hour in names(&folder.join(day))? {
            hours.extend(hour.strip_suffix(suffix).and_then(|hour| Hour::of_folders(day, hour)));
        }
    }
    Ok(hours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_named_by_its_folders() {
        let hour = Hour::of_ns(1_700_000_000_000_000_000);
        assert_eq!(hour.to_string(), "dt=2023-11-14/hh=22");
        let (day, name) = hour.folders();
        assert_eq!(Hour::of_folders(&day, &name), Some(hour));
        assert_eq!(Hour::of_folders("dt=2023-11-14", "hh=24"), None);
        assert_eq!(Hour::of_folders("2023-11-14", "hh=22"), None);
        assert_eq!(Hour::of_ns(hour.start_ns()), hour);
        assert_eq!(Hour::of_ns(hour.start_ns() - 1).to_string(), "dt=2023-11-14/hh=21");
    }
}
