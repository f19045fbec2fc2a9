//! The folder as the I/O thread uses it, and the limits that hold for all members.

use crate::clock::Clock;
use crate::cursors::CursorFiles;
use crate::error::{AppendError, DiskError};
use crate::scan::SCRATCH;
use crate::segment::{Decoded, HEAD, SegmentHead, damaged_name, file_name, parse_name};
use crate::settings::{Durability, Settings};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_files::folder::{File, Files};

/// How long appends are refused after a disk error; also the longest time between a completion and the save of its cursor.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How many damaged segments are kept for people.
const SET_ASIDE_MAX: usize = 4;

pub(crate) struct Disk {
    pub(crate) settings: Settings,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) key: u64,
    pub(crate) cursors: CursorFiles,
    /// Bytes of the files of all members.
    pub(crate) used: u64,
    /// The names of segments that were set aside, the oldest first.
    pub(crate) set_aside: VecDeque<String>,
    pub(crate) scratch: Box<[u8]>,
    /// Files were removed or renamed, and a power cut would bring them back.
    pub(crate) removed: bool,
    /// Of all members: a full disk is full for everybody.
    suspension: Suspension,
}

/// Until when appends are refused after an error, and why.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Suspension(Option<(u64, DiskError)>);

impl Suspension {
    fn refusal(self, now: u64) -> Option<AppendError> {
        let (until, trouble) = self.0.filter(|(until, _)| *until > now)?;
        Some(AppendError::Disk { trouble, retry_after: Duration::from_nanos(until - now) })
    }
}

impl Disk {
    pub(crate) fn new(
        settings: Settings,
        files: Arc<dyn Files>,
        clock: Box<dyn Clock>,
        key: u64,
        cursors: CursorFiles,
    ) -> Disk {
        let scratch = vec![0; SCRATCH].into_boxed_slice();
        let set_aside = VecDeque::new();
        Disk {
            settings,
            files,
            clock,
            key,
            cursors,
            used: 0,
            set_aside,
            scratch,
            removed: false,
            suspension: Suspension::default(),
        }
    }

    /// Makes what was written durable, where that is asked for.
    pub(crate) fn sync(&self, file: &dyn File) -> io::Result<()> {
        if self.is_synced() { file.sync() } else { Ok(()) }
    }

    pub(crate) fn sync_names(&self) -> io::Result<()> {
        if self.is_synced() { self.files.sync_names() } else { Ok(()) }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.settings.durability == Durability::Fsync
    }

    /// The refusal of the append that found the error, and of those that come soon after it: of all where the disk is full,
    /// otherwise of the member whose suspension this is.
    pub(crate) fn failed(&mut self, member: &mut Suspension, error: &io::Error) -> AppendError {
        let trouble = DiskError::of(error);
        tracing::warn!(%error, "the handoff log cannot write: it refuses appends for a second");
        let suspension = if trouble == DiskError::Full { &mut self.suspension } else { member };
        suspension.0 = Some((self.clock.monotonic_ns() + RETRY_INTERVAL.as_nanos() as u64, trouble));
        AppendError::Disk { trouble, retry_after: RETRY_INTERVAL }
    }

    /// The refusal of a member's append that comes soon after an error.
    pub(crate) fn refusal(&self, member: Suspension) -> Option<AppendError> {
        let now = self.clock.monotonic_ns();
        self.suspension.refusal(now).or(member.refusal(now))
    }

    /// The head of a segment, if it is whole.
    pub(crate) fn head(&self, prefix: &str, number: u64) -> io::Result<Decoded<SegmentHead>> {
        let file = self.files.open(&file_name(prefix, number), false)?;
        let mut bytes = [0; HEAD];
        let read = file.read_at(&mut bytes, 0)?;
        Ok(SegmentHead::decode(bytes.get(..read).unwrap_or_default()))
    }

    /// The lowest number above `number` of the segments that there are, and not above `last`.
    pub(crate) fn next_segment(&self, prefix: &str, number: u64, last: u64) -> io::Result<Option<u64>> {
        let following = number.saturating_add(1);
        if following > last {
            return Ok(None);
        }
        match self.files.open(&file_name(prefix, following), false) {
            Ok(_) => return Ok(Some(following)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let list = self.files.list()?;
        let ours = list.iter().filter_map(|(name, _)| parse_name(name)).filter(|(other, _)| *other == prefix);
        Ok(ours.map(|(_, other)| other).filter(|other| (following..=last).contains(other)).min())
    }

    /// Deletes a segment, or sets it aside, and gives the bytes that it took; zero where there is none.
    pub(crate) fn remove(&mut self, prefix: &str, number: u64, damaged: bool) -> io::Result<u64> {
        let name = file_name(prefix, number);
        let size = match self.files.open(&name, false) {
            Ok(file) => file.size()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        if damaged {
            self.set_aside(&name, damaged_name(prefix, number))?;
        } else {
            self.files.remove(&name)?;
        }
        self.removed = true;
        self.used = self.used.saturating_sub(size);
        Ok(size)
    }

    fn set_aside(&mut self, name: &str, kept: String) -> io::Result<()> {
        self.files.rename(name, &kept)?;
        tracing::warn!(
            segment = kept,
            "a segment of the handoff log was damaged: it was delivered as far as it can be read"
        );
        self.set_aside.push_back(kept);
        while self.set_aside.len() > SET_ASIDE_MAX
            && let Some(oldest) = self.set_aside.pop_front()
        {
            if let Err(error) = self.files.remove(&oldest) {
                tracing::warn!(%error, oldest, "a damaged segment cannot be deleted");
            }
        }
        Ok(())
    }
}
