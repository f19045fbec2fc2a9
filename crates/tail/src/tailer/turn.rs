//! The turn of a file: some of its bytes become records.

use super::Tailer;
use super::discover::unix_seconds;
use super::fill::{Filling, Turn};
use super::origin::Origin;
use crate::batch::{Part, RecordWriter};
use crate::checkpoint::Checkpoint;
use crate::compressed::Coding;
use crate::destination::Destination;
use crate::file::{FirstBytes, Index, Stage, Tracked, read_at, tail_at};
use crate::identity::{Head, SAMPLE, tail_hash};
use crate::resource::{FileResource, ResourceState};
use crate::settings::SHARED_HOLD;
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_lines::{Lines, Stop};
use tidegate_wire::otlp::logs::Attributes;

/// The instrumentation scope of the records.
const SCOPE: &str = "";
/// The longest resource, in bytes.
const MOST_RESOURCE: usize = 16 << 10;

/// Bytes of a file, and how they end.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    /// The new bytes, behind the last ones of those that were read before.
    pub(super) buffer: &'a [u8],
    /// How many of `buffer` were read before.
    pub(super) known: usize,
    /// Nothing will follow.
    pub(super) is_last: bool,
}

/// The outcome of a turn's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// Whole lines were read; this many bytes are used.
    Read(usize),
    /// The batch is full.
    Full,
    /// Not now: the file waits.
    Later,
}

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// The turn of a plain file.
    pub(super) fn turn(
        &mut self,
        index: Index,
        file: &mut Tracked,
        filling: &mut Filling<'_>,
    ) -> io::Result<Turn> {
        let length = file.handle.metadata()?.len();
        if length < file.next() {
            return Ok(Turn::Truncated);
        }
        if file.stage == Stage::New {
            let known_length = std::mem::replace(&mut file.length, length);
            let first = FirstBytes::of(&file.handle)?;
            if !file.head.fits(first.as_slice()) {
                self.truncated_unread(index, file, known_length);
            }
            if length == 0 {
                return Ok(Turn::Idle);
            }
            // It had no bytes, or too few, when it was found.
            if Coding::is_undecided(first.as_slice()) {
                return Ok(Turn::Idle);
            }
            file.coding = Coding::of(first.as_slice());
            if file.coding.is_some() {
                return Ok(Turn::More);
            }
            match self.origin(index, file, first.as_slice(), length) {
                Origin::Beginning => file.begin(),
                Origin::After(former) => self.begin_after(file, former),
                Origin::Copy(original) => {
                    self.set_copy(index, file, original);
                    self.enqueue(original);
                    return Ok(Turn::Idle);
                }
                Origin::End => self.begin_at_end(file)?,
                Origin::Later => {
                    self.waiting.insert(index);
                    return Ok(Turn::Idle);
                }
            }
            self.set_head(index, file, Head::of(first.as_slice()));
        }
        let from = file.next();
        let unread = length.saturating_sub(from);
        if unread == 0 && !file.flush && file.stage != Stage::Ending {
            if !file.head.fits(FirstBytes::of(&file.handle)?.as_slice()) {
                return Ok(Turn::Truncated);
            }
            file.length = length;
            return Ok(Turn::Idle);
        }
        // Nothing is read of a file that waits for its resource.
        if filling.group != Some(index) {
            if !file.head.fits(FirstBytes::of(&file.handle)?.as_slice()) {
                return Ok(Turn::Truncated);
            }
            if let Some(turn) = self.begin_group(index, file, filling) {
                file.length = length;
                return Ok(turn);
            }
        }
        let longest = self.line_settings.get(usize::from(file.input)).map_or(0, |lines| lines.longest_read());
        // The bytes before are read again: what is known of the end of the file must be of the same content as the new bytes.
        let known = usize::try_from(from).unwrap_or(SAMPLE).min(SAMPLE);
        let start = from.saturating_sub(known as u64);
        let mut wanted = self.settings.turn;
        let mut buffer = std::mem::take(&mut self.buffer);
        let turn = loop {
            let reading = usize::try_from(unread).unwrap_or(usize::MAX).min(wanted);
            buffer.resize(known + reading, 0);
            let read = match read_at(&file.handle, &mut buffer, start) {
                Ok(read) if read < known => break Ok(Turn::Truncated),
                Ok(read) => read,
                Err(error) => break Err(error),
            };
            let read_bytes = buffer.get(..read).unwrap_or_default();
            // After the bytes: if they are those of another content, its beginning is there too.
            match self.begins_as_before(index, file, start, read_bytes) {
                Ok(true) => {}
                Ok(false) => break Ok(Turn::Truncated),
                Err(error) => break Err(error),
            }
            file.length = length;
            let at_end = (read - known) as u64 >= unread;
            let is_last = at_end && file.stage == Stage::Ending;
            let bytes = Bytes { buffer: read_bytes, known, is_last };
            match self.feed(index, file, bytes, filling) {
                Ok(Fed::Read(0)) if !at_end && wanted < longest => wanted = longest,
                Ok(Fed::Read(_)) if is_last => break Ok(Turn::Ended),
                Ok(Fed::Read(_)) => break Ok(if at_end { Turn::Idle } else { Turn::More }),
                Ok(Fed::Full) => break Ok(Turn::Full),
                Ok(Fed::Later) => break Ok(Turn::Idle),
                Err(error) => break Err(error),
            }
        };
        buffer.clear();
        buffer.shrink_to(self.settings.turn);
        self.buffer = buffer;
        // Its last records are forgotten with it when they are durable.
        Ok(match turn? {
            Turn::Ended if file.in_batches > 0 => Turn::Idle,
            turn => turn,
        })
    }

    /// Whether the file still begins as it did, also where `read` from `start` on has its beginning; extends what is known of
    /// that by what was read.
    ///
    /// Invariant: the head of a file is of the same content as the bytes that became records. Taken from the file alone, it
    /// could be that of what was written after a truncation in between, and no copy would be recognised.
    fn begins_as_before(
        &mut self,
        index: Index,
        file: &mut Tracked,
        start: u64,
        read: &[u8],
    ) -> io::Result<bool> {
        let first = FirstBytes::of(&file.handle)?;
        let first = first.as_slice();
        if !file.head.fits(first) {
            return Ok(false);
        }
        let Some(start) = usize::try_from(start).ok().filter(|start| *start < SAMPLE) else {
            return Ok(true);
        };
        let end = (start + read.len()).min(SAMPLE);
        let overlap = read.get(..end - start).unwrap_or_default();
        if first.get(start..end) != Some(overlap) {
            return Ok(false);
        }
        if end > usize::from(file.head.len) {
            self.set_head(index, file, Head::of(first.get(..end).unwrap_or_default()));
        }
        Ok(true)
    }

    /// Notes how a file begins.
    pub(super) fn set_head(&mut self, index: Index, file: &mut Tracked, head: Head) {
        if file.head != head {
            self.heads.remove(file.head, index);
            file.head = head;
            self.heads.insert(head, index);
        }
    }

    /// Makes records of `bytes` in the group of the file, which begin at the file's next offset, and notes what holds when they are durable.
    pub(super) fn feed(
        &mut self,
        index: Index,
        file: &mut Tracked,
        bytes: Bytes<'_>,
        filling: &mut Filling<'_>,
    ) -> io::Result<Fed> {
        let Some(settings) = self.line_settings.get(usize::from(file.input)) else { return Ok(Fed::Later) };
        let mut lines = file
            .lines
            .take()
            .unwrap_or_else(|| Box::new(Lines::resume(Arc::clone(settings), &file.committed.lines)));
        let from = lines.position();
        let before = lines.checkpoint();
        let (held_before, now) = (lines.held_bytes(), self.started.elapsed());
        let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut writer = RecordWriter {
            encoder: &mut filling.encoder,
            observed_ns: unix_nanoseconds(),
            streams: &self.streams,
            without: filling.without,
            records: 0,
            may_hold: (settings.most_held() + SHARED_HOLD).saturating_sub(self.held_bytes),
            longest: self.destination.largest_item().saturating_sub(self.attributes.len() + RECORD_OVERHEAD),
            may_drop: filling.is_largest && filling.effects.parts.is_empty(),
            too_large: 0,
        };
        let new = bytes.buffer.get(bytes.known..).unwrap_or_default();
        let fed = if bytes.is_last {
            lines.finish(&mut self.workspace, new, now_ns, &mut writer)
        } else {
            lines.feed(&mut self.workspace, new, now_ns, &mut writer)
        };
        let mut stop = fed.stop;
        // Without memory for more, a record that is due makes some.
        if file.flush && stop != Stop::Full {
            let flushed = lines.flush(&mut self.workspace, now_ns, &mut writer);
            file.flush = flushed != Stop::End;
            if flushed == Stop::Full {
                stop = flushed;
            }
        }
        let (records, too_large) = (writer.records, writer.too_large);
        filling.effects.too_large += too_large;
        filling.effects.counts.add(&std::mem::take(&mut self.workspace.counts));
        self.held_bytes = (self.held_bytes + lines.held_bytes()).saturating_sub(held_before);
        self.schedule_flush(index, lines.deadline_ns());
        let after = lines.checkpoint();
        if records > 0 || after != before {
            let tail = match file.coding {
                Some(_) => 0,
                None => tail_of(file, bytes, from, after.offset()),
            };
            let checkpoint = Checkpoint {
                lines: after,
                head: file.head,
                tail,
                finished: false,
                born: file.committed.born,
                seen: unix_seconds(),
            };
            let bytes = after.offset().saturating_sub(before.offset());
            self.add_part(
                index,
                file,
                Part { file: index, checkpoint, records, bytes, is_last: false },
                filling,
            );
        }
        let at_rest = lines.deadline_ns().is_none() && lines.held_bytes() == 0;
        if file.in_batches > 0 || !at_rest {
            file.lines = Some(lines);
        }
        Ok(match stop {
            Stop::End => {
                if bytes.is_last
                    && let Some(part) = filling.effects.part(index)
                {
                    part.is_last = true;
                }
                Fed::Read(fed.consumed)
            }
            Stop::Full => Fed::Full,
            Stop::Memory => {
                self.waiting.insert(index);
                Fed::Later
            }
        })
    }

    fn add_part(&mut self, index: Index, file: &mut Tracked, new: Part, filling: &mut Filling<'_>) {
        self.others.supersede(&file.id.key(self.settings.key));
        if let Some(part) = filling.effects.part(index) {
            part.checkpoint = new.checkpoint;
            part.records += new.records;
            part.bytes += new.bytes;
        } else {
            filling.effects.parts.push(new);
            file.in_batches += 1;
        }
    }

    /// Begins the group of a file's records in the batch. Gives what the turn comes to if that cannot be.
    pub(super) fn begin_group(
        &mut self,
        index: Index,
        file: &mut Tracked,
        filling: &mut Filling<'_>,
    ) -> Option<Turn> {
        let known_for = self.started.elapsed().saturating_sub(file.found);
        let mut attributes = Attributes::new(&mut self.attributes, MOST_RESOURCE);
        match self.resource.resource(&file.info(index), known_for, &mut attributes) {
            ResourceState::Ready => filling.without = None,
            ResourceState::ReadyWithout(stream) => filling.without = Some(stream),
            ResourceState::Wait => {
                self.waiting.insert(index);
                return Some(Turn::Idle);
            }
            ResourceState::Exclude => {
                file.stage = Stage::Skipped;
                let held = file.lines.take().map_or(0, |lines| lines.held_bytes());
                self.held_bytes = self.held_bytes.saturating_sub(held);
                file.flush = false;
                self.schedule_flush(index, None);
                return Some(Turn::Idle);
            }
        }
        if filling.encoder.resource(&self.attributes, SCOPE).is_err() {
            let may_leave_out =
                filling.is_largest && filling.effects.parts.is_empty() && filling.encoder.items() == 0;
            // It would never fit.
            self.attributes.clear();
            if !may_leave_out || filling.encoder.resource(&self.attributes, SCOPE).is_err() {
                return Some(Turn::Full);
            }
        }
        filling.group = Some(index);
        None
    }

    fn schedule_flush(&mut self, index: Index, deadline_ns: Option<u64>) {
        self.flushes.retain(|(_, flushed)| *flushed != index);
        self.flushes.extend(deadline_ns.map(|at| (std::time::Duration::from_nanos(at), index)));
    }
}

/// The most bytes of a record in a batch beside its text and its resource.
const RECORD_OVERHEAD: usize = 256;

fn unix_nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The hash before `offset`, from the bytes that became records where they suffice: the file may have been truncated since they
/// were read. The new ones begin at `from`.
fn tail_of(file: &Tracked, bytes: Bytes<'_>, from: u64, offset: u64) -> u64 {
    let start = from.saturating_sub(bytes.known as u64);
    let end = offset.checked_sub(start).and_then(|len| usize::try_from(len).ok());
    let read = end.filter(|end| *end >= SAMPLE || start == 0);
    let tail = read.and_then(|end| bytes.buffer.get(end.saturating_sub(SAMPLE)..end)).map(tail_hash);
    tail.or_else(|| tail_at(&file.handle, offset).ok().flatten()).unwrap_or_default()
}
