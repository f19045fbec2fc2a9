//! Reads the lake back as export requests.
//!
//! [`Replay`] reads the committed rows of one table, in the order of the hours in which they were received, and gives
//! requests that an OTLP receiver takes, or remote write 1.0 (`prometheus.WriteRequest`) for metrics that came by remote
//! write. Requests say [how far](ReplayPosition) they go, so that an interrupted replay goes on without a gap or a repetition when
//! the position of each acknowledged request is kept.
//!
//! It promises:
//! - what comes out is what came in, but for the list below; the order of the resources, scopes, metrics and attributes in a
//!   request is not kept, and what encloses several items is in a request once;
//! - a request is at most as long as it may be, unless it has a single item;
//! - the memory that it takes is that of 256 rows of one row group, one request twice, and 48 bytes for each row that
//!   one summary has in one row group, of which there may be 2²⁰. Rows are as large as the lake's writer takes them;
//! - a file is compared with the checksum in its manifest before it is decoded. A damaged one is an error that names it, and
//!   the caller may [pass it over](Replay::skip_file).
//!
//! Left to others: sending, and deciding what to do about what a receiver refuses. The lake has no tenants, so all of it
//! is read.
//!
//! Not as it came in, because the columns do not tell (`design/lake.md`, "Reading back", gives the reasons):
//! - OTLP: `dropped_attributes_count` of resources and scopes, `entity_refs`, `Metric.metadata`, flags of points other than
//!   "no recorded value", metrics without points, resources and scopes without items, and profiles are not kept;
//! - a log record without a time has the time of its observation, or else of its arrival;
//! - counts above 2⁶³ − 1 become that; a temporality of sums that OTLP does not define becomes unspecified; an exemplar
//!   without a value gets 0.0; ids of spans and links that were not sent become zeros;
//! - a summary becomes two when the writer ended a file in its middle, which only very long footers make it do;
//! - remote write 1.0 has no start times, which came with 2.0, so they are left out. Metadata is that of the metric's own name;
//!   info and state set come out as gauges. A label `__name__` without a value is left out. Labels of exemplars are sorted,
//!   and the spans of a native histogram are joined: the buckets of the gaps count 0;
//! - series of remote write with labels out of order, which no gateway hands to the lake, come out as OTLP when their type
//!   is known.

mod columns;
mod exemplars;
mod histograms;
mod items;
mod logs;
mod message;
mod origin;
mod points;
mod position;
mod remote_write;
mod request;
mod rows;
mod series;
mod spans;
mod summaries;
#[cfg(test)]
mod tests;
mod values;

pub use position::ReplayPosition;

use crate::layout::{Hour, Layout};
use crate::manifest::{self, FileEntry};
use crate::{Error, Table};
use items::FileItems;
use request::{Item, RequestBuilder};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use tidegate_wire::otlp::Signal;

/// Rows that are decoded at a time.
const BATCH: usize = 256;

/// The part of the lake that is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayQuery {
    /// The table.
    pub table: Table,
    /// The first hour of receiving; `None` for the oldest.
    pub first: Option<Hour>,
    /// The last hour of receiving, included; `None` for the newest. An hour that the lake is still being written to is read as
    /// far as it is committed when the replay is opened.
    pub last: Option<Hour>,
    /// The longest request, in bytes, without compression. An item that alone makes a longer one is a request of its own.
    pub max_request_bytes: usize,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayProtocol {
    /// An export request of OTLP.
    #[default]
    Otlp,
    /// `prometheus.WriteRequest`, which is remote write 1.0. It is to be compressed with snappy when it is sent.
    RemoteWrite,
}

use ReplayProtocol as Protocol;

/// A request out of the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    /// Its protocol.
    pub protocol: ReplayProtocol,
    /// The signal of its items.
    pub signal: Signal,
    /// Log records, spans, points or series' samples in it. A sample has its exemplars with it.
    pub items: u32,
    /// The message, not compressed.
    pub body: Vec<u8>,
    /// How far the replay is when this request is acknowledged.
    pub position: ReplayPosition,
}

/// Counts of what a replay could not read, and passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayLosses {
    /// Files that a manifest names and that are not there.
    pub missing_files: u64,
    /// Lines of manifests that cannot be read. They may name files.
    pub damaged_manifest_lines: u64,
    /// Files that the caller passed over.
    pub skipped_files: u64,
}

/// A replay of one table.
pub struct Replay {
    layout: Layout,
    query: ReplayQuery,
    /// The hours that are left, with the number of their commits when the replay was opened.
    hours: VecDeque<(Hour, usize)>,
    /// Goes on in this hour.
    resume: Option<ReplayPosition>,
    hour: Option<Hour>,
    /// The files of that hour that are left, the one that is being read first.
    files: VecDeque<FileEntry>,
    /// Items of that one that are in requests.
    done: u64,
    open: Option<FileItems>,
    item: Item,
    /// Whether the item is in no request yet.
    is_held: bool,
    request: RequestBuilder,
    /// Behind the last item of the request.
    position: Option<ReplayPosition>,
    losses: ReplayLosses,
}

impl Replay {
    /// Begins to read the lake at `lake`, behind the position `resume` if there is one.
    ///
    /// # Errors
    /// When the lake cannot be read, or the position is of another table.
    pub fn open(lake: &Path, query: ReplayQuery, resume: Option<ReplayPosition>) -> Result<Replay, Error> {
        if let Some(position) = resume.as_ref().filter(|position| position.table != query.table) {
            return Err(Error::PositionTable { position: position.to_string(), table: query.table.name() });
        }
        let layout = Layout::new(lake);
        let first = query.first.max(resume.as_ref().map(|position| position.hour));
        let is_wanted = |hour: &Hour| {
            first.is_none_or(|first| first <= *hour) && query.last.is_none_or(|last| *hour <= last)
        };
        let all = layout.manifest_hours().map_err(Error::io("looking into", layout.root()))?;
        let commits = |hour: Hour| Ok((hour, manifest::read(&layout, hour)?.lines.len()));
        let hours = all.into_iter().filter(is_wanted).map(commits).collect::<Result<_, Error>>()?;
        Ok(Replay {
            layout,
            query,
            hours,
            resume,
            hour: None,
            files: VecDeque::new(),
            done: 0,
            open: None,
            item: Item::default(),
            is_held: false,
            request: RequestBuilder::default(),
            position: None,
            losses: ReplayLosses::default(),
        })
    }

    /// The next request; `None` behind the last one.
    ///
    /// # Errors
    /// When a file or a manifest cannot be read. All requests of what comes before were given then, and the next call tries
    /// again, unless the file is [passed over](Self::skip_file).
    #[expect(clippy::should_implement_trait, reason = "an iterator would have to end after an error")]
    pub fn next(&mut self) -> Result<Option<ReplayRequest>, Error> {
        loop {
            if self.is_held {
                if !self.request.add(&self.item, self.query.max_request_bytes) {
                    return Ok(self.finish());
                }
                self.is_held = false;
                self.note_position();
            }
            match self.read_item() {
                Ok(true) => self.is_held = true,
                Ok(false) => return Ok(self.finish()),
                Err(error) => {
                    self.open = None;
                    return self.finish().map(Some).ok_or(error);
                }
            }
        }
    }

    /// Passes over what is left of the file that is being read. Its path; `None` when none is.
    pub fn skip_file(&mut self) -> Option<PathBuf> {
        let hour = self.hour?;
        let file = self.files.pop_front()?;
        (self.open, self.is_held, self.done) = (None, false, 0);
        self.losses.skipped_files += 1;
        Some(self.layout.partition(self.query.table, hour).join(file.file))
    }

    /// Counts of what was passed over so far.
    pub fn losses(&self) -> ReplayLosses {
        self.losses
    }

    fn finish(&mut self) -> Option<ReplayRequest> {
        if self.request.is_empty() {
            return None;
        }
        let signal = match self.query.table {
            Table::Logs => Signal::Logs,
            Table::Spans => Signal::Traces,
            Table::MetricPoints | Table::MetricHistograms => Signal::Metrics,
        };
        let position = self.position.clone()?;
        let (protocol, items) = (self.request.protocol(), self.request.items());
        Some(ReplayRequest { protocol, signal, items, body: self.request.finish(), position })
    }

    /// The item that was just added is the last one.
    fn note_position(&mut self) {
        let (Some(open), Some(hour), Some(file)) = (&self.open, self.hour, self.files.front()) else {
            return;
        };
        self.done = open.count();
        match &mut self.position {
            Some(position) if position.hour == hour && position.file == file.file => {
                position.items = self.done
            }
            position => {
                let (table, file) = (self.query.table, file.file.clone());
                *position = Some(ReplayPosition { table, hour, file, items: self.done });
            }
        }
    }

    /// Reads the next item. Whether there was one.
    fn read_item(&mut self) -> Result<bool, Error> {
        loop {
            if let Some(open) = &mut self.open {
                if open.next(&mut self.item)? {
                    return Ok(true);
                }
                self.next_file();
            } else if let (Some(entry), Some(hour)) = (self.files.front(), self.hour) {
                let path = self.layout.partition(self.query.table, hour).join(&entry.file);
                match FileItems::open(self.query.table, &path, entry, self.done, &mut self.item) {
                    Ok(open) => self.open = Some(open),
                    Err(error) if error.is_missing() => {
                        self.note_missing(hour)?;
                        self.next_file();
                    }
                    Err(error) => return Err(error),
                }
            } else if let Some(&(hour, commits)) = self.hours.front() {
                self.begin_hour(hour, commits)?;
                self.hours.pop_front();
            } else {
                return Ok(false);
            }
        }
    }

    fn next_file(&mut self) {
        self.files.pop_front();
        (self.open, self.done) = (None, 0);
    }

    /// Reads which files an hour has. Retention may have removed it meanwhile.
    fn begin_hour(&mut self, hour: Hour, commits: usize) -> Result<(), Error> {
        let manifest = manifest::read(&self.layout, hour)?;
        let lines = manifest.lines.into_iter().take(commits);
        let files = lines.flat_map(|line| line.files).filter(|file| file.table() == Some(self.query.table));
        let mut files: VecDeque<FileEntry> = files.collect();
        let mut done = 0;
        if let Some(position) = self.resume.as_ref().filter(|position| position.hour == hour)
            && !files.is_empty()
        {
            let Some(place) = files.iter().position(|file| file.file == position.file) else {
                return Err(Error::PositionFile { position: position.to_string() });
            };
            files.drain(..place);
            done = position.items;
        }
        self.resume = None;
        self.losses.damaged_manifest_lines += manifest.damaged;
        (self.hour, self.files, self.done) = (Some(hour), files, done);
        Ok(())
    }

    /// Retention lets a manifest go before its files. If it still names the file, somebody else removed that.
    fn note_missing(&mut self, hour: Hour) -> Result<(), Error> {
        let manifest = manifest::read(&self.layout, hour)?;
        let mut named = manifest.lines.iter().flat_map(|line| &line.files);
        let file = self.files.front();
        if file.is_some_and(|missing| named.any(|file| file.file == missing.file)) {
            self.losses.missing_files += 1;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("query", &self.query).field("position", &self.position).finish()
    }
}
