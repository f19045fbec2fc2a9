//! The journal on disk: its format, damage, cursors, age and size. It is only read, also while a gateway writes it.

use crate::examination::{READ_LIMIT, seconds_between};
use crate::finding::Finding;
use crate::subject::{Durability, Setup};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::Bytes;
use tidegate_journal::CursorPosition;
use tidegate_journal::inspect::{Inspection, SavedCheckpoints, SegmentInfo, VERSION, inspect};

/// The most places that are told.
const PLACES: usize = 3;
/// Of the quota, that much is near it.
const NEAR: f64 = 0.9;

/// The contents of a journal's folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    folder: PathBuf,
    /// Why it cannot be looked at.
    error: Option<String>,
    bytes: u64,
    segments: usize,
    /// Segments whose records were read.
    read: usize,
    records: u64,
    /// Segments of another format, with its version.
    foreign: Vec<(String, u8)>,
    /// Where something is wrong, the first of them in words.
    places: Vec<String>,
    wrong: u64,
    /// The last record of all, where it is not whole.
    torn: Option<String>,
    quarantined: Vec<(String, u64)>,
    cursors: Vec<(String, Option<CursorPosition>)>,
    has_lost_checkpoints: bool,
    /// When the first and the last record were received, in nanoseconds since 1970.
    oldest_ns: Option<u64>,
    pub(crate) newest_ns: Option<u64>,
    /// The sequence behind the last record, and the items before it.
    head: (u64, u64),
}

/// Reads the journal in `folder`, the newest segment and the oldest first, for `limit` at most. `None` if there is none.
pub(crate) fn look(folder: &Path, limit: Duration) -> Option<Journal> {
    let begun = Instant::now();
    let mut journal = Journal { folder: folder.to_owned(), ..Journal::default() };
    let found = match inspect(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            journal.error = Some(error.to_string());
            return Some(journal);
        }
    };
    journal.segments = found.segments.len();
    journal.bytes = found.segments.iter().map(|segment| segment.len).sum();
    journal.quarantined.clone_from(&found.kept);
    journal.cursors.clone_from(&found.cursors);
    journal.has_lost_checkpoints = found.checkpoints == Some(SavedCheckpoints::Unreadable);
    // The ends are what everybody asks for.
    let newest = found.segments.last().into_iter();
    let others = found.segments.iter().take(found.segments.len().saturating_sub(1));
    for segment in newest.chain(others) {
        if begun.elapsed() >= limit || !journal.read_surely(&found, segment, begun + limit) {
            break;
        }
    }
    Some(journal)
}

impl Journal {
    /// One whose disk does not answer.
    pub(crate) fn silent(folder: PathBuf) -> Journal {
        let error = format!("its disk has not answered within {} s", READ_LIMIT.as_secs());
        Journal { folder, error: Some(error), ..Journal::default() }
    }

    /// Reads a segment as [`read_segment`](Self::read_segment) does. A gateway may delete it meanwhile and write over its file, or be
    /// writing what is read: only what is wrong twice, in a segment that is still there, is damage.
    fn read_surely(&mut self, found: &Inspection, segment: &SegmentInfo, deadline: Instant) -> bool {
        let before = self.clone();
        let is_gone = || {
            let there = self.folder.join(&segment.name).symlink_metadata();
            there.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        let mut read = before.clone();
        let mut is_whole = read.read_segment(found, segment, deadline);
        if read.wrong > before.wrong && !is_gone() {
            let mut again = before.clone();
            is_whole = again.read_segment(found, segment, deadline);
            // Without the time for a second look, the first one counts.
            if is_whole {
                read = again;
            }
        }
        if read.wrong > before.wrong && is_gone() {
            read = before;
        }
        *self = read;
        is_whole
    }

    /// Reads a segment until `deadline`. Returns whether it was read whole.
    fn read_segment(&mut self, found: &Inspection, segment: &SegmentInfo, deadline: Instant) -> bool {
        match found.version(segment) {
            Ok(Some(version)) if !(1..=VERSION).contains(&version) => {
                self.foreign.push((segment.name.clone(), version));
                return true;
            }
            Ok(_) => {}
            // Consumed meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Err(error) => {
                self.note(format!("{}: {error}", segment.name));
                return true;
            }
        }
        let Ok(records) = found.records(segment) else { return true };
        let is_last = segment.next.is_none();
        // Of the last record, where it is not whole.
        let (mut unfinished, mut is_empty) = (None::<String>, true);
        for record in records {
            is_empty = false;
            if Instant::now() >= deadline {
                return false;
            }
            // What others follow was written whole, and acknowledged.
            unfinished.take().into_iter().for_each(|place| self.note(place));
            let skipped = (record.skipped > 0).then(|| {
                format!("{}: {} bytes before {} are no record", segment.name, record.skipped, record.offset)
            });
            let place = format!("{}: the record {} at {}", segment.name, record.sequence, record.offset);
            match record.meta {
                _ if !record.whole => {
                    let skipped = skipped.map_or_else(String::new, |skipped| format!("{skipped}; "));
                    unfinished = Some(format!("{skipped}{place} is damaged"));
                    continue;
                }
                None => self.note(format!("{place} says something that this version does not know")),
                Some(meta) => {
                    let at = meta.received_at_ns;
                    self.oldest_ns = Some(self.oldest_ns.map_or(at, |oldest| oldest.min(at)));
                    self.newest_ns = Some(self.newest_ns.map_or(at, |newest| newest.max(at)));
                    let head = (record.sequence + 1, record.items_before + record.items);
                    self.head = self.head.max(head);
                    self.records += 1;
                }
            }
            skipped.into_iter().for_each(|place| self.note(place));
        }
        match is_last {
            true => self.torn = unfinished,
            false if is_empty => self.note(format!("{}: no record can be read", segment.name)),
            false => unfinished.into_iter().for_each(|place| self.note(place)),
        }
        self.read += 1;
        true
    }

    fn note(&mut self, place: String) {
        self.wrong += 1;
        if self.places.len() < PLACES {
            self.places.push(place);
        }
    }
}

/// Judges what was read.
pub(crate) fn check(
    setup: &Setup,
    journal: Option<&Journal>,
    is_in_use: bool,
    now: SystemTime,
) -> Vec<Finding> {
    let data = &setup.data;
    if data.journal.durability == Durability::Memory {
        return in_memory(journal);
    }
    let Some(journal) = journal else {
        return vec![Finding::fine(
            "there is no journal yet",
            format!("{} is not there", data.path.join("journal").display()),
        )];
    };
    let folder = journal.folder.display();
    if let Some(error) = &journal.error {
        return vec![
            Finding::broken("the journal cannot be looked at", format!("{folder}: {error}"))
                .remedy("run the doctor as the gateway's user, or as root; see the findings on the disk"),
        ];
    }
    let mut findings = Vec::new();
    findings.extend(format(journal));
    findings.push(damage(journal, is_in_use));
    findings.extend(quarantined(journal));
    findings.extend(cursors(setup, journal));
    if journal.has_lost_checkpoints {
        findings.push(
            Finding::at_risk("the saved checkpoints of sources cannot be read", format!("{folder}"))
                .remedy("the records say which of them are still known; a source may read again what is behind the others"),
        );
    }
    findings.push(size(setup, journal, now));
    findings
}

/// Judges a journal that is in memory. Nothing reads segments that were written with another durability.
fn in_memory(journal: Option<&Journal>) -> Vec<Finding> {
    let what = "the journal is in memory: a request is acknowledged when every sink has delivered it, and clients wait for that";
    let mut findings = vec![Finding::fine(what, "`journal.durability: memory`")];
    let Some(journal) = journal.filter(|journal| journal.segments > 0) else { return findings };
    let (head, items) = journal.head;
    let is_behind = |position: &CursorPosition| position.sequence < head;
    let behind = journal.cursors.iter().filter_map(|(_, position)| position.as_ref());
    // Without a cursor, and without a record that could be read, nobody knows what was delivered.
    let is_delivered = head > 0
        && !journal.cursors.is_empty()
        && journal.cursors.iter().all(|(_, position)| position.as_ref().is_some_and(|it| !is_behind(it)));
    let waiting = behind.map(|position| items.saturating_sub(position.items)).max().unwrap_or(0);
    let evidence =
        format!("{} segments in {}, {}", journal.segments, journal.folder.display(), Bytes(journal.bytes));
    findings.push(if is_delivered {
        Finding::note("segments of the journal are left on disk, and every sink has delivered what is in them", evidence)
            .remedy("remove them when nobody wants to go back to the former `journal.durability`")
    } else {
        let what = "the journal on disk has acknowledged data that is not delivered: with `journal.durability: memory` nobody reads it";
        let evidence = format!("{evidence}, with at most {waiting} items that a sink has not completed");
        Finding::at_risk(what, evidence).remedy(
            "start the gateway with the former `journal.durability` until its sinks have taken everything (`tidegate journal ls`)",
        )
    });
    findings
}

/// A journal that another version wrote must not be opened: it would be set aside as damaged.
fn format(journal: &Journal) -> Option<Finding> {
    let (name, version) = journal.foreign.first()?;
    let (count, of) = (journal.foreign.len(), journal.segments);
    let what = format!(
        "the journal is of another version of tidegate: {count} of {of} segments have format {version}, and this program has {VERSION}"
    );
    let remedy = "do not start this version with this folder, which would set the segments aside as damaged: start the version that wrote \
                  it, and let its sinks take everything first";
    Some(
        Finding::broken(
            what,
            format!(
                "{}: the fifth byte of its first record is {version}",
                journal.folder.join(name).display()
            ),
        )
        .remedy(remedy),
    )
}

fn damage(journal: &Journal, is_in_use: bool) -> Finding {
    let read = match journal.segments.saturating_sub(journal.foreign.len()) {
        all if journal.read >= all => format!("all {} segments were read, {} records", all, journal.records),
        all => format!(
            "{} of {all} segments were read, {} records: `tidegate journal verify` reads them all",
            journal.read, journal.records
        ),
    };
    if journal.wrong > 0 {
        let what = format!("the journal is damaged in {} places", journal.wrong);
        let more = if journal.wrong > journal.places.len() as u64 { "\n…" } else { "" };
        let remedy = "the gateway delivers what can be read and counts the rest; look at the disk (`dmesg`, `smartctl -a`), and at \
                      `tidegate journal verify` for every place";
        return Finding::at_risk(what, format!("{}{more}\n{read}", journal.places.join("\n"))).remedy(remedy);
    }
    if let Some(torn) = journal.torn.as_ref().filter(|_| !is_in_use) {
        let what = "the last record of the journal is not whole, as when the machine or the gateway ends while it writes";
        let remedy = "nothing: the next start cuts it off; it was not acknowledged, unless the disk has damaged it since";
        return Finding::note(what, format!("{torn}\n{read}")).remedy(remedy);
    }
    let beside = if is_in_use { " while a gateway writes it" } else { "" };
    Finding::fine(format!("the journal is sound{beside}"), read)
}

fn quarantined(journal: &Journal) -> Option<Finding> {
    let (name, _) = journal.quarantined.first()?;
    let bytes: u64 = journal.quarantined.iter().map(|(_, bytes)| bytes).sum();
    let what = format!("{} damaged segments were set aside, {}", journal.quarantined.len(), Bytes(bytes));
    let remedy = "nobody reads them any more: remove the files when nobody wants to look at them";
    Some(Finding::note(what, journal.folder.join(name).display().to_string()).remedy(remedy))
}

fn cursors(setup: &Setup, journal: &Journal) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, position) in &journal.cursors {
        let is_configured = setup.sinks.contains(name);
        let Some(position) = position else {
            findings.push(
                Finding::at_risk(format!("the cursor of `{name}` cannot be read"), format!("its file in {}", journal.folder.display()))
                    .remedy("the sink begins again at the oldest record, so its peer gets some items twice; look at the disk (`dmesg`)"),
            );
            continue;
        };
        let (head, items) = journal.head;
        let behind = head.saturating_sub(position.sequence);
        let items = items.saturating_sub(position.items);
        if !is_configured {
            let what = format!(
                "the journal keeps {items} items for `{name}`, which is no sink of this configuration"
            );
            let evidence = format!("its cursor is at record {}, {behind} records behind", position.sequence);
            let remedy = format!(
                "if the sink was renamed, give it its former name; if it is gone for good, `tidegate journal forget {name}` drops them. Until then the \
                 journal cannot shrink"
            );
            let finding =
                if behind > 0 { Finding::at_risk(what, evidence) } else { Finding::note(what, evidence) };
            findings.push(finding.remedy(remedy));
        }
        if position.dropped > 0 || position.damaged > 0 {
            let what = format!(
                "`{name}` has lost {} items to the quota and {} to damage since it was set up",
                position.dropped, position.damaged
            );
            findings.push(
                Finding::note(what, "its cursor").remedy(
                    "raise `journal.quota`, or set `when_full: block`, which refuses new data instead",
                ),
            );
        }
    }
    findings
}

fn size(setup: &Setup, journal: &Journal, now: SystemTime) -> Finding {
    let quota = setup.data.journal.quota;
    let time = |ns: u64| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    let age = journal.oldest_ns.map_or_else(String::new, |oldest| {
        format!(
            "; the oldest record that was read is {:.0} s old",
            seconds_between(time(oldest), now).max(0.0)
        )
    });
    let evidence =
        format!("{} segments have {} of {}{age}", journal.segments, Bytes(journal.bytes), Bytes(quota));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = journal.bytes as f64 / quota.max(1) as f64;
    if share >= NEAR {
        let remedy = "find the sink that is behind (`tidegate journal ls`) and see the findings on it; or raise `journal.quota`. When the journal is full, \
                      new data is refused, or the oldest dropped, as `when_full` says";
        return Finding::at_risk("the journal is nearly full", evidence).remedy(remedy);
    }
    Finding::fine("the journal has room", evidence)
}

#[cfg(test)]
pub(crate) mod tests;
