//! Opening a folder, in whatever state its files are.

mod end;
mod logs;

use crate::address::file_prefix;
use crate::clock::Clock;
use crate::cursors::{CursorFiles, Loaded, SavedMember};
use crate::disk::Disk;
use crate::error::OpenError;
use crate::log::{FIRST, Log};
use crate::queue::Queue;
use crate::segment::{self, VERSION};
use crate::settings::Settings;
use crate::state::{MemberState, Shared, View};
use crate::totals::{Position, Totals};
use crate::worker::Worker;
use logs::{HeadError, Segments, choose_logs, group, heads};
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_files::folder::Files;

/// Counts of records and files at opening.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Members with a backlog.
    pub members: usize,
    /// The backlogs of all of them.
    pub backlog: Totals,
    /// Bytes that were cut off behind the last whole records: writes under way, which were not acknowledged.
    pub torn_bytes: u64,
    /// Segments that were set aside because nothing in them can be read.
    pub unreadable_segments: u64,
    /// No saved cursors could be read: delivery begins at the oldest records, so that some are delivered again.
    pub lost_cursors: bool,
    /// How long it took.
    pub took: Duration,
}

/// Log numbers count up in the upper half of segment numbers, so that a saved cursor never fits a later log of its member.
const LOG_SHIFT: u32 = 32;

/// The first segment number of a log that is begun after `generation` saves.
pub(crate) fn first_segment(generation: u64) -> u64 {
    generation << LOG_SHIFT
}

/// Everything that the logs of a folder start from.
pub(crate) fn recover(
    settings: Settings,
    files: Arc<dyn Files>,
    clock: Box<dyn Clock>,
) -> Result<(Arc<Shared>, Worker, Recovery), OpenError> {
    let settings = settings.normalised();
    let dir = settings.dir.display().to_string();
    let failed = |doing: &str, source| OpenError::Io { dir: dir.clone(), doing: doing.into(), source };
    let version = |file: String, found| OpenError::Version { dir: dir.clone(), file, found, known: VERSION };
    let begun = clock.monotonic_ns();
    let list = files.list().map_err(|error| failed("list its files", error))?;
    let loaded = CursorFiles::load(&*files).map_err(|error| failed("read its cursors", error))?;
    let Loaded { files: cursors, saved, lost, other_version } = loaded;
    if let Some((name, found)) = other_version {
        return Err(version(name.into(), found));
    }
    let logs_found = group(&list);
    let mut saved_members: BTreeMap<String, SavedMember> = BTreeMap::new();
    let key = saved.as_ref().map(|saved| saved.key);
    for member in saved.into_iter().flat_map(|saved| saved.members) {
        saved_members.insert(file_prefix(&member.address), member);
    }
    let heads = heads(&*files, &logs_found, &list).map_err(|error| match error {
        HeadError::Version(name, found) => version(name, found),
        HeadError::Io(error) => failed("read its segments", error),
    })?;
    let key = key.or_else(|| heads.values().next().map(|head| head.key)).unwrap_or_else(random);
    let mut disk = Disk::new(settings.clone(), files, clock, key, cursors);
    let set_aside = list.iter().map(|(name, _)| name).filter(|name| segment::is_damaged(name));
    disk.set_aside = set_aside.cloned().collect::<VecDeque<_>>();
    disk.cursors.begin_behind(logs_found.keys().map(|(_, log)| log + 1).max().unwrap_or(1));

    let mut recovery = Recovery { lost_cursors: lost, ..Recovery::default() };
    let mut logs = Vec::new();
    let found = choose_logs(&mut disk, &mut recovery, logs_found, &heads, &saved_members);
    for (prefix, segments) in found {
        let saved = saved_members.remove(&prefix);
        let saved_address = saved.as_ref().map(|saved| saved.address.clone());
        let head = heads.get(&(prefix, segments.last >> LOG_SHIFT));
        let Some(address) = saved_address.or(head.map(|head| head.address.clone())) else { continue };
        let saved = saved.filter(|saved| saved.head.segment >> LOG_SHIFT == segments.last >> LOG_SHIFT);
        let log = open_log(&mut disk, &mut recovery, (logs.len(), &address), &segments, saved.as_ref());
        logs.push(log.map_err(|error| failed("read its segments", error))?);
    }
    for log in &mut logs {
        // Finds out when the oldest record was received.
        let _ = log.next_record(&mut disk);
        let backlog = log.member.view().found;
        recovery.backlog = recovery.backlog.plus(backlog);
        recovery.members += usize::from(backlog.records > 0);
    }
    let planned = logs.len().max(settings.members);
    if let Err(error) = disk.cursors.reserve(&*disk.files, planned) {
        tracing::warn!(%error, "there is no space for the cursors of the handoff log");
    }
    recovery.took = Duration::from_nanos(disk.clock.monotonic_ns().saturating_sub(begun));
    logs.iter().for_each(|log| log.member.adopt());
    let members = logs.iter().map(|log| log.member.clone()).collect();
    let shared = Shared { queue: Queue::new(settings.queue), settings, members: Mutex::new(members) };
    let shared = Arc::new(shared);
    let mut worker = Worker::new(shared.clone(), disk, logs);
    // Before anything is appended, so that no save is older than the files.
    worker.save_and_delete();
    Ok((shared, worker, recovery))
}

fn open_log(
    disk: &mut Disk,
    recovery: &mut Recovery,
    (index, address): (usize, &str),
    segments: &Segments,
    saved: Option<&SavedMember>,
) -> io::Result<Log> {
    disk.used += segments.bytes;
    let head = end::find_end(disk, recovery, address, segments, saved)?;
    let view = View { head, cursor: head, ..View::default() };
    let member = Arc::new(MemberState::new(index, address, view));
    // Never a number again that a saved position names, also where its segment is lost.
    let last = saved.map_or(0, |saved| saved.head.segment.max(saved.cursor.segment)).max(segments.last);
    let mut log = Log::new(member, segments.first, last + 1, segments.bytes);
    // What was cut or set aside meanwhile.
    log.disk_bytes = segments.bytes.min(end::size_of(disk, &log.prefix(), segments)?);
    disk.used = disk.used.saturating_sub(segments.bytes - log.disk_bytes);
    let cursor = match saved {
        Some(saved) => saved.cursor,
        None => oldest(disk, &log, segments)?.unwrap_or(head),
    };
    let mut view = log.member.view();
    if cursor.before.records < head.before.records {
        view.cursor = cursor;
    }
    view.damaged_segments = saved.and_then(|saved| saved.damaged_segments);
    view.opened = head.before;
    view.found = view.backlog();
    view.disk_bytes = log.disk_bytes;
    drop(view);
    Ok(log)
}

/// Where the oldest record is.
fn oldest(disk: &mut Disk, log: &Log, segments: &Segments) -> io::Result<Option<Position>> {
    let mut number = Some(segments.first);
    while let Some(segment) = number {
        if let Some(before) = log.before_segment(disk, segment)? {
            return Ok(Some(Position { segment, offset: FIRST, before }));
        }
        number = disk.next_segment(&log.prefix(), segment, segments.last)?;
    }
    Ok(None)
}

/// A number that no client can guess.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
