//! Looking at a journal from outside, whether or not a process has it open: nothing is locked or changed, and
//! memory does not grow with what is looked at.

use crate::checkpoints;
use crate::cursor::file::{self, sink_of};
use crate::follower::CursorPosition;
use crate::meta::Meta;
use crate::record::{HEADER, Header, key, salt_of, version_of};

pub use crate::record::VERSION;
use crate::record_scanner::RecordScanner;
use crate::segment::{is_quarantined, is_spare, parse_name};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tidegate_files::folder::{Files, RealFiles};

/// How many places [`verify`] names; further ones are only counted.
pub const MAX_ERRORS: usize = 100;

/// A journal's folder.
pub struct Inspection {
    files: Arc<dyn Files>,
    salt: Option<u64>,
    /// The segments, oldest first.
    pub segments: Vec<SegmentInfo>,
    /// The cursors: each sink's name, and where it is, unless that cannot be read.
    pub cursors: Vec<(String, Option<CursorPosition>)>,
    /// The saved checkpoints of sources; `None` in a journal that never had one.
    pub checkpoints: Option<SavedCheckpoints>,
    /// Damaged segments that are kept for people to look at: names and lengths.
    pub kept: Vec<(String, u64)>,
    /// Consumed segments whose files will be written over: names and lengths.
    pub spares: Vec<(String, u64)>,
}

/// The saved table of checkpoints. A crash may have left newer ones in the records behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedCheckpoints {
    /// A table that can be read.
    Table {
        /// How many checkpoints it has.
        checkpoints: usize,
        /// The sequence up to which it has those of all records.
        sequence: u64,
    },
    /// Neither of its two files can be read.
    Unreadable,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its file.
    pub name: String,
    /// The sequence of its first record.
    pub first: u64,
    /// The sequence of the next segment's first record, where there is one.
    pub next: Option<u64>,
    /// The length of its file, in bytes. That of the last one includes what is reserved.
    pub len: u64,
    /// Damage was found in it before.
    pub damaged: bool,
}

/// One record as it stands in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordInfo {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes stepped over before it: damaged, or never written.
    pub skipped: u64,
    /// The header's metadata about its body; `None` if it uses codes unknown to this version.
    pub meta: Option<Meta>,
    /// The length of its body as it is kept, in bytes.
    pub body_len: u32,
    /// Its number.
    pub sequence: u64,
    /// How many items it holds.
    pub items: u64,
    /// The items of all records before it.
    pub items_before: u64,
    /// Whether its bytes are as they were written.
    pub whole: bool,
}

/// The result of [`verify`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Segments read.
    pub segments: u64,
    /// Whole records.
    pub records: u64,
    /// Their items.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records between the first and the last whole one that cannot be read.
    pub missing_records: u64,
    /// Their items.
    pub missing_items: u64,
    /// Where something is wrong: the first [`MAX_ERRORS`] of them, in words.
    pub places: Vec<String>,
    /// How many places there are.
    pub wrong: u64,
    /// Sinks whose cursor cannot be read.
    pub lost_cursors: Vec<String>,
    /// The saved checkpoints of sources; `None` in a journal that never had one.
    pub checkpoints: Option<SavedCheckpoints>,
}

impl VerifyReport {
    /// Whether all that should be there is there.
    pub fn is_sound(&self) -> bool {
        self.wrong == 0
            && self.missing_records == 0
            && self.lost_cursors.is_empty()
            && self.checkpoints != Some(SavedCheckpoints::Unreadable)
    }

    fn wrong(&mut self, place: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.places.len() < MAX_ERRORS {
            self.places.push(place());
        }
    }
}

/// Looks at the journal in `dir`.
///
/// # Errors
/// When the folder cannot be listed.
pub fn inspect(dir: &Path) -> io::Result<Inspection> {
    let files = Arc::new(RealFiles::new(dir.to_owned()));
    let mut list = files.list()?;
    list.sort_unstable();
    let mut inspection = Inspection {
        files,
        salt: None,
        segments: Vec::new(),
        cursors: Vec::new(),
        checkpoints: None,
        kept: Vec::new(),
        spares: Vec::new(),
    };
    let saved = checkpoints::file::inspect(&*inspection.files, &list);
    inspection.checkpoints = saved.map(|table| match table {
        Some((checkpoints, sequence)) => SavedCheckpoints::Table { checkpoints, sequence },
        None => SavedCheckpoints::Unreadable,
    });
    for (name, len) in list {
        if let Some((first, damaged)) = parse_name(&name) {
            inspection.salt = inspection.first_salt(&name, first).or(inspection.salt);
            let segments = &mut inspection.segments;
            if let Some(before) = segments.last_mut() {
                before.next = Some(first);
            }
            segments.push(SegmentInfo { name, first, next: None, len, damaged });
        } else if let Some(sink) = sink_of(&name) {
            let written = inspection.files.open(&name, false).ok().and_then(|file| file::read(&*file));
            let position = written.map(|written| CursorPosition::of(&written.cursor));
            inspection.cursors.push((sink.to_owned(), position));
        } else if is_quarantined(&name) {
            inspection.kept.push((name, len));
        } else if is_spare(&name) {
            inspection.spares.push((name, len));
        }
    }
    Ok(inspection)
}

/// Reads every record of the journal in `dir` and checks it.
///
/// # Errors
/// When the folder cannot be listed.
pub fn verify(dir: &Path) -> io::Result<VerifyReport> {
    let inspection = inspect(dir)?;
    let mut report = VerifyReport::default();
    // The next record's sequence and the items before it, once one is known.
    let mut expected: Option<(u64, u64)> = None;
    for segment in &inspection.segments {
        let before = (report.clone(), expected);
        report.segments += 1;
        let records = match inspection.records(segment) {
            Ok(records) => records,
            Err(error) => {
                report.wrong(|| format!("{}: cannot be opened ({error})", segment.name));
                continue;
            }
        };
        for found in records {
            if found.skipped > 0 {
                report.wrong(|| {
                    format!(
                        "{}: {} bytes before {} are not a record",
                        segment.name, found.skipped, found.offset
                    )
                });
            }
            if !found.whole || found.meta.is_none() {
                let what = if found.whole { "is of a newer version" } else { "is damaged" };
                report.wrong(|| {
                    format!("{}: the record {} at {} {what}", segment.name, found.sequence, found.offset)
                });
                continue;
            }
            if let Some((sequence, items)) = expected {
                report.missing_records += found.sequence.saturating_sub(sequence);
                report.missing_items += found.items_before.saturating_sub(items);
            }
            expected = Some((found.sequence + 1, found.items_before + found.items));
            report.records += 1;
            report.items += found.items;
            report.bytes += found.size;
        }
        if report.wrong > before.0.wrong && inspection.is_gone(segment) {
            // Consumed while it was read, and its file perhaps written over: there is nothing to verify.
            (report, expected) = before;
        }
    }
    let lost = inspection.cursors.iter().filter(|(_, position)| position.is_none());
    report.checkpoints = inspection.checkpoints;
    report.lost_cursors = lost.map(|(name, _)| name.clone()).collect();
    Ok(report)
}

impl Inspection {
    /// The records of a segment, each of them read and checked.
    ///
    /// # Errors
    /// When the segment cannot be opened.
    pub fn records(&self, segment: &SegmentInfo) -> io::Result<Records> {
        let key = self.salt.map(|salt| key(salt, segment.first));
        let walker = RecordScanner::new(self.files.open(&segment.name, false)?, key);
        let bound = segment.next.unwrap_or(u64::MAX);
        Ok(Records { walker, at: 0, end: segment.len, next: segment.first, bound })
    }

    /// The records of a segment with their bodies, none of which is read unasked. Of the newest segment, they end at the first thing that
    /// is no record: what is behind it may be of another time.
    ///
    /// # Errors
    /// When the segment cannot be opened.
    pub fn bodies(&self, segment: &SegmentInfo) -> io::Result<Bodies> {
        let key = self.salt.map(|salt| key(salt, segment.first));
        let scanner = RecordScanner::new(self.files.open(&segment.name, false)?, key);
        Ok(Bodies { scanner, segment: segment.clone(), at: 0, next: segment.first, current: None })
    }

    /// The version of the format that a segment begins with; `None` if it does not begin with a record.
    ///
    /// # Errors
    /// When the segment cannot be read.
    pub fn version(&self, segment: &SegmentInfo) -> io::Result<Option<u8>> {
        let mut bytes = [0; HEADER];
        let read = self.files.open(&segment.name, false)?.read_at(&mut bytes, 0)?;
        Ok(if read == HEADER { version_of(&bytes) } else { None })
    }

    fn is_gone(&self, segment: &SegmentInfo) -> bool {
        let gone = self.files.open(&segment.name, false);
        gone.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    fn first_salt(&self, name: &str, first: u64) -> Option<u64> {
        let mut bytes = [0; HEADER];
        self.files.open(name, false).ok()?.read_at(&mut bytes, 0).ok()?;
        let header = Header::decode(&bytes).filter(|header| header.sequence == first)?;
        Some(salt_of(header.key, first))
    }
}

/// The records of one segment; see [`Inspection::bodies`].
pub struct Bodies {
    scanner: RecordScanner,
    segment: SegmentInfo,
    at: u64,
    next: u64,
    current: Option<(u64, Header)>,
}

impl Bodies {
    /// When the first record was received, in nanoseconds since 1970; `None` if its header cannot be read.
    pub fn received_at_ns(&mut self) -> Option<u64> {
        let only = self.segment.first..self.segment.first.saturating_add(1);
        self.scanner.record_at(0, self.segment.len, only).map(|header| header.received_at_ns)
    }

    /// The next record: its sequence, and its metadata, `None` if it uses codes unknown to this version.
    pub fn next_head(&mut self) -> Option<(u64, Option<Meta>)> {
        let SegmentInfo { len, next, .. } = self.segment;
        let (at, header) = match next {
            Some(next) => self.scanner.find(self.at, len, self.next..next)?,
            None => (self.at, self.scanner.record_at(self.at, len, self.next..u64::MAX)?),
        };
        (self.at, self.next) = (at + header.size(), header.sequence + 1);
        self.current = Some((at, header));
        Some((header.sequence, self.scanner.tenant(at, &header).and_then(|tenant| header.meta(tenant))))
    }

    /// The only sink that the record that came last is for; `None` where it is for all, or its name cannot be read.
    pub fn recipient(&mut self) -> Option<&str> {
        let (at, header) = self.current?;
        self.scanner.recipient(at, &header).filter(|name| !name.is_empty())
    }

    /// The length of the body of the record that came last, in bytes.
    pub fn body_len(&self) -> usize {
        self.current.map_or(0, |(_, header)| header.body_len as usize)
    }

    /// Reads the body of the record that came last into `body`, which is as long. Returns whether it is as it was written.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_body(&mut self, body: &mut [u8]) -> io::Result<bool> {
        match self.current {
            Some((at, header)) => self.scanner.body(at, &header, body),
            None => Ok(false),
        }
    }
}

/// The records of one segment; see [`Inspection::records`].
pub struct Records {
    walker: RecordScanner,
    at: u64,
    end: u64,
    next: u64,
    bound: u64,
}

impl Iterator for Records {
    type Item = RecordInfo;

    fn next(&mut self) -> Option<RecordInfo> {
        let (offset, header) = self.walker.find(self.at, self.end, self.next..self.bound)?;
        let skipped = offset - self.at;
        (self.at, self.next) = (offset + header.size(), header.sequence + 1);
        let whole = self.walker.is_whole(offset, &header);
        let Header { sequence, items_before, body_len, .. } = header;
        Some(RecordInfo {
            offset,
            size: header.size(),
            skipped,
            meta: self.walker.tenant(offset, &header).and_then(|tenant| header.meta(tenant)),
            body_len,
            sequence,
            items: u64::from(header.items),
            items_before,
            whole,
        })
    }
}
