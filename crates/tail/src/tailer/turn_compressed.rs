//! The turn of a compressed file.

use super::Tailer;
use super::discover::unix_seconds;
use super::fill::{Filling, Turn};
use super::turn::{Bytes, Fed};
use crate::batch::Part;
use crate::checkpoint::Checkpoint;
use crate::compressed::{Coding, Decompressor};
use crate::destination::Destination;
use crate::file::{Former, Index, Stage, Tracked, read_at};
use crate::identity::{Head, SAMPLE, tail_hash};
use crate::resource::FileResource;
use std::io;
use std::time::Duration;

/// How long a compressed file that is not whole has to stay as it is before it counts as damaged.
const UNFINISHED_WAIT: Duration = Duration::from_mins(1);

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// The turn of a compressed file. One is decompressed at a time.
    pub(super) fn compressed_turn(
        &mut self,
        index: Index,
        file: &mut Tracked,
        filling: &mut Filling<'_>,
    ) -> io::Result<Turn> {
        let Some(coding) = file.coding else { return Ok(Turn::Idle) };
        let length = file.handle.metadata()?.len();
        let (owner, mut decompressor) = match self.decompressor.take() {
            Some((owner, decompressor)) if owner == index => (owner, decompressor),
            Some(other) if self.table.get(other.0).is_some_and(Tracked::is_readable) => {
                self.decompressor = Some(other);
                self.waiting.push(index);
                return Ok(Turn::Idle);
            }
            _ => (index, Decompressor::new(coding, self.settings.reads_compressed())?),
        };
        let turn = self.decompressed_turn(index, file, length, &mut decompressor, filling);
        let is_damaged = turn.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData);
        if is_damaged {
            return self.damaged(file, length);
        }
        if file.is_readable() && file.stage != Stage::New && !self.waiting.contains(&index) {
            self.decompressor = Some((owner, decompressor));
        }
        turn
    }

    fn decompressed_turn(
        &mut self,
        index: Index,
        file: &mut Tracked,
        length: u64,
        decompressor: &mut Decompressor,
        filling: &mut Filling<'_>,
    ) -> io::Result<Turn> {
        if file.stage == Stage::New && !self.begin_compressed(index, file, length, decompressor)? {
            return Ok(Turn::Idle);
        }
        let longest = self.line_settings.get(usize::from(file.input)).map_or(0, |lines| lines.longest_read());
        let from = file.next();
        let read = decompressor.from(&file.handle, from, self.settings.turn.max(longest))?;
        if read.behind {
            return Ok(Turn::More);
        }
        if read.at_end && !read.is_whole {
            return self.not_whole(index, file, length);
        }
        file.length = length;
        let (at_end, bytes) = (read.at_end, read.bytes);
        let fed = self.feed(index, file, Bytes { bytes, is_last: at_end }, filling)?;
        match fed {
            Fed::Read(_) if at_end => {
                self.finish_compressed(index, file, filling);
                Ok(Turn::Idle)
            }
            Fed::Read(_) => Ok(Turn::More),
            Fed::Full => Ok(Turn::Full),
            Fed::Later => Ok(Turn::Idle),
        }
    }

    /// Decides what is read of a compressed file; says whether anything is.
    fn begin_compressed(
        &mut self,
        index: Index,
        file: &mut Tracked,
        length: u64,
        decompressor: &mut Decompressor,
    ) -> io::Result<bool> {
        file.length = length;
        let read = decompressor.from(&file.handle, 0, SAMPLE)?;
        if read.bytes.len() < SAMPLE && !(read.at_end && read.is_whole) {
            // It is being written.
            self.waiting.push(index);
            return Ok(false);
        }
        let first = read.bytes.get(..SAMPLE).unwrap_or(read.bytes).to_vec();
        let stored = file.committed;
        if stored.head.len > 0 && stored.head.fits(&first) {
            file.head = stored.head;
            if stored.finished {
                file.stage = Stage::Skipped;
            } else {
                file.begin();
            }
            return Ok(!stored.finished);
        }
        file.committed = Checkpoint::start(stored.born);
        let is_open = |other: &Index| {
            let original = self.table.get(*other);
            original.is_some_and(|original| original.coding.is_none() && original.is_readable())
        };
        if let Some(original) =
            self.heads.matches(&first).into_iter().find(|other| *other != index && is_open(other))
        {
            file.stage = Stage::Copy { original };
            return Ok(false);
        }
        file.head = Head::of(&first);
        for former in self.formers.matches(&first) {
            if self.is_compressed_from(file, length, &former, decompressor)? {
                let offset = former.checkpoint.offset();
                file.committed = Checkpoint { born: stored.born, seen: unix_seconds(), ..former.checkpoint };
                let read = decompressor.from(&file.handle, offset, 1)?;
                if read.at_end && read.bytes.is_empty() {
                    self.skip_compressed(file);
                    return Ok(false);
                }
                file.begin();
                return Ok(true);
            }
        }
        let wanted = self.settings.inputs.get(usize::from(file.input)).is_some_and(|input| input.compressed);
        if !wanted {
            self.meters.add_skipped_compressed(1);
            self.skip_compressed(file);
            return Ok(false);
        }
        file.begin();
        Ok(true)
    }

    /// Whether a compressed file has what was read of `former` before its offset.
    fn is_compressed_from(
        &self,
        file: &Tracked,
        length: u64,
        former: &Former,
        decompressor: &mut Decompressor,
    ) -> io::Result<bool> {
        let offset = former.checkpoint.offset();
        if former.checkpoint.finished {
            return Ok(false);
        }
        // Files are compressed whole, and most were read whole: then the trailer tells enough.
        if former.checkpoint.head.is_full() && gzip_length(file, length)? == Some(offset as u32) {
            return Ok(true);
        }
        loop {
            let read = decompressor.from(&file.handle, offset, 1)?;
            if !read.behind {
                break;
            }
        }
        Ok(decompressor.before(offset).is_some_and(|before| tail_hash(before) == former.checkpoint.tail))
    }

    /// Notes that a compressed file is not read, now and later.
    fn skip_compressed(&mut self, file: &mut Tracked) {
        file.stage = Stage::Skipped;
        file.committed =
            Checkpoint { finished: true, head: file.head, seen: unix_seconds(), ..file.committed };
        self.others.push(self.change(file.id, &file.committed));
    }

    /// The end of a compressed file is in the batch.
    fn finish_compressed(&mut self, index: Index, file: &mut Tracked, filling: &mut Filling<'_>) {
        file.stage = Stage::Skipped;
        let committed = Checkpoint { finished: true, head: file.head, ..file.committed };
        if let Some(part) = filling.effects.part(index) {
            part.checkpoint.finished = true;
        } else {
            let checkpoint = file
                .lines
                .as_ref()
                .map_or(committed, |lines| Checkpoint { lines: lines.checkpoint(), ..committed });
            filling.effects.parts.push(Part {
                file: index,
                checkpoint,
                records: 0,
                bytes: 0,
                is_last: false,
            });
            file.in_batches += 1;
        }
    }

    fn not_whole(&mut self, index: Index, file: &mut Tracked, length: u64) -> io::Result<Turn> {
        let now = self.started.elapsed();
        if file.length != length {
            file.length = length;
            file.progressed = now;
        }
        if now.saturating_sub(file.progressed) > UNFINISHED_WAIT {
            return self.damaged(file, length);
        }
        self.waiting.push(index);
        Ok(Turn::Idle)
    }

    /// What is left of a damaged file is lost.
    fn damaged(&mut self, file: &mut Tracked, length: u64) -> io::Result<Turn> {
        let input = self.settings.inputs.get(usize::from(file.input));
        if !input.is_some_and(|input| input.compressed) {
            self.meters.add_skipped_compressed(1);
            file.stage = Stage::Skipped;
            return Ok(Turn::Idle);
        }
        if file.error.is_none() {
            self.meters.add_errors(1);
            self.meters.add_lost(crate::LossReason::Unreadable, length);
            tracing::warn!(path = %file.path.display(), "a compressed log file is damaged: the rest of it is not read");
        }
        file.error = Some("damaged: it cannot be decompressed".into());
        file.stage = Stage::Skipped;
        Ok(Turn::Idle)
    }
}

/// The length that the trailer of a gzip file says, modulo 2³².
fn gzip_length(file: &Tracked, length: u64) -> io::Result<Option<u32>> {
    if file.coding != Some(Coding::Gzip) || length < 18 {
        return Ok(None);
    }
    let mut trailer = [0; 4];
    let read = read_at(&file.handle, &mut trailer, length - 4)?;
    Ok((read == 4).then_some(u32::from_le_bytes(trailer)))
}
