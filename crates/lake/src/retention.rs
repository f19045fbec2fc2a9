//! How long the lake keeps what: whole hours, the oldest first.

use crate::layout::{Hour, Layout};
use crate::{Error, Table, Writer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds on what is kept. The newest hour is never let go: its manifest says where to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// How long after its end an hour is kept.
    pub age: Duration,
    /// How many bytes are kept; `None` for 20 GiB or a tenth of the disk that is free or the lake's,
    /// whichever is less.
    pub bytes: Option<u64>,
}

impl Default for Retention {
    /// Seven days.
    fn default() -> Self {
        Retention { age: Duration::from_secs(7 * 24 * 3600), bytes: None }
    }
}

const DEFAULT_BYTES: u64 = 20 << 30;
const FREE_PART: u64 = 10;

/// Bytes by hour. One entry for each hour that is kept.
#[derive(Debug, Default)]
pub(crate) struct RetainedBytes {
    hours: BTreeMap<Hour, u64>,
}

impl RetainedBytes {
    pub(crate) fn add(&mut self, hour: Hour, bytes: u64) {
        *self.hours.entry(hour).or_default() += bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.hours.values().sum()
    }

    /// The oldest hour, when it is to go.
    fn excess(&self, now_ns: u64, age: Duration, most: u64) -> Option<Hour> {
        let (&oldest, _) = self.hours.first_key_value()?;
        let (&newest, _) = self.hours.last_key_value()?;
        let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = oldest.start_ns().saturating_add(3_600_000_000_000);
        let old = end_ns.saturating_add(age_ns) <= now_ns;
        (oldest < newest && (old || self.bytes() > most)).then_some(oldest)
    }
}

impl Writer {
    /// Lets hours go until the bounds hold. What cannot be removed now is tried again next time.
    pub(crate) fn retain(&mut self, now_ns: u64) {
        let Retention { age, bytes } = self.settings.retention;
        let most = bytes.unwrap_or_else(|| self.default_bytes());
        while let Some(hour) = self.kept.excess(now_ns, age, most) {
            if self.open_hour() == Some(hour) {
                break;
            }
            if let Err(error) = remove_hour(self.layout(), hour) {
                tracing::warn!(%hour, %error, "could not let an hour of the lake go");
                break;
            }
            self.kept.hours.remove(&hour);
            tracing::info!(%hour, "let an hour of the lake go");
        }
    }

    fn default_bytes(&self) -> u64 {
        let free = rustix::fs::statvfs(self.layout().root())
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        (free.saturating_add(self.kept.bytes()) / FREE_PART).min(DEFAULT_BYTES)
    }
}

/// The manifest goes first: files that no manifest names are removed when the lake is opened, files that
/// are missing would have to be explained.
fn remove_hour(layout: &Layout, hour: Hour) -> Result<(), Error> {
    let manifest = layout.manifest(hour);
    ignore_missing(std::fs::remove_file(&manifest)).map_err(Error::io("removing", &manifest))?;
    for table in Table::ALL {
        let folder = layout.partition(table, hour);
        ignore_missing(std::fs::remove_dir_all(&folder)).map_err(Error::io("removing", &folder))?;
        // The day's folder goes with its last hour, and stays as long as it is not empty.
        let _ = folder.parent().map(std::fs::remove_dir);
    }
    let _ = manifest.parent().map(std::fs::remove_dir);
    Ok(())
}

fn ignore_missing(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
