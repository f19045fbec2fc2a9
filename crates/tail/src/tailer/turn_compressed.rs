//! The turn of a compressed file.

use super::Tailer;
use super::compare::{Compared, Comparison};
use super::discover::unix_seconds;
use super::fill::{Filling, Turn};
use super::origin::is_whole;
use super::turn::{Bytes, Fed};
use crate::batch::Part;
use crate::checkpoint::Checkpoint;
use crate::compressed::{Coding, Decompressor};
use crate::destination::Destination;
use crate::file::{FirstBytes, Former, Index, Stage, Tracked, read_at};
use crate::identity::{Head, SAMPLE};
use crate::resource::FileResource;
use std::io;
use std::time::Duration;

/// How long a compressed file that is not whole has to stay as it is before it counts as damaged.
const UNFINISHED_WAIT: Duration = Duration::from_mins(1);

/// The compressed file that is open, with what is decompressed of it.
pub(super) struct OpenCompressed {
    pub(super) owner: Index,
    decompressor: Decompressor,
    /// The comparison that decides where reading begins, while it goes on.
    comparison: Option<Comparison>,
}

/// The outcome for a compressed file.
enum Begun {
    /// It is read.
    Reads,
    /// It is not read, or not now.
    Rests,
    /// That takes another turn.
    Behind,
    /// It may be being written.
    NotWhole,
}

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
        let mut open = match self.decompressor.take() {
            Some(open) if open.owner == index => open,
            Some(other) if self.table.get(other.owner).is_some_and(Tracked::is_readable) => {
                self.decompressor = Some(other);
                self.waiting.insert(index);
                return Ok(Turn::Idle);
            }
            _ => OpenCompressed {
                owner: index,
                decompressor: Decompressor::new(coding, self.settings.reads_compressed())?,
                comparison: None,
            },
        };
        let turn = self.decompressed_turn(index, file, length, &mut open, filling);
        let is_damaged = turn.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData);
        if is_damaged {
            return self.damaged(file, length);
        }
        let is_begun = file.stage != Stage::New || open.comparison.is_some();
        // One that cannot be read must not keep the others waiting.
        if turn.is_ok() && file.is_readable() && is_begun && !self.waiting.contains(&index) {
            self.decompressor = Some(open);
        }
        turn
    }

    fn decompressed_turn(
        &mut self,
        index: Index,
        file: &mut Tracked,
        length: u64,
        open: &mut OpenCompressed,
        filling: &mut Filling<'_>,
    ) -> io::Result<Turn> {
        if file.stage == Stage::New {
            match self.begin_compressed(index, file, length, open)? {
                Begun::Reads => {}
                Begun::Rests => return Ok(Turn::Idle),
                Begun::Behind => return Ok(Turn::More),
                Begun::NotWhole => return self.not_whole(index, file, length),
            }
        }
        if filling.group != Some(index)
            && let Some(turn) = self.begin_group(index, file, filling)
        {
            return Ok(turn);
        }
        let decompressor = &mut open.decompressor;
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
        let fed = self.feed(index, file, Bytes { buffer: bytes, known: 0, is_last: at_end }, filling)?;
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

    /// Decides what is read of a compressed file.
    fn begin_compressed(
        &mut self,
        index: Index,
        file: &mut Tracked,
        length: u64,
        open: &mut OpenCompressed,
    ) -> io::Result<Begun> {
        if file.length != length {
            file.length = length;
            file.progressed = self.now();
        }
        let comparison = match open.comparison.take() {
            Some(comparison) => comparison,
            None => {
                let read = open.decompressor.from(&file.handle, 0, SAMPLE)?;
                if read.bytes.len() < SAMPLE && !(read.at_end && read.is_whole) {
                    // It is being written.
                    return Ok(Begun::NotWhole);
                }
                let first = read.bytes.get(..SAMPLE).unwrap_or(read.bytes).to_vec();
                if let Some(begun) = self.begin_known(index, file, &first) {
                    return Ok(begun);
                }
                let formers = self.formers.matches(&first);
                let is_same = |former: &&Former| {
                    let checkpoint = &former.checkpoint;
                    checkpoint.head.is_full() && gzip_is_as_long(file, length, checkpoint.offset())
                };
                // Files are compressed whole, and most were read whole: then the trailer tells enough.
                if let Some(former) = formers.iter().find(is_same) {
                    file.committed = Checkpoint { born: file.committed.born, ..former.checkpoint };
                    self.skip_compressed(file);
                    return Ok(Begun::Rests);
                }
                Comparison::with(formers)
            }
        };
        match comparison.go_on(file, &mut open.decompressor)? {
            Compared::Behind(comparison) => {
                open.comparison = Some(comparison);
                Ok(Begun::Behind)
            }
            Compared::NotWhole => Ok(Begun::NotWhole),
            Compared::With(former) => {
                let born = file.committed.born;
                file.committed = Checkpoint { born, seen: unix_seconds(), ..former.checkpoint };
                file.begin();
                Ok(Begun::Reads)
            }
            Compared::WithLonger => {
                self.skip_compressed(file);
                Ok(Begun::Rests)
            }
            Compared::WithNone => Ok(self.begin_unknown(file)),
        }
    }

    /// Decides about a compressed file that begins with `first` by its own checkpoint, and by the files that are open.
    fn begin_known(&mut self, index: Index, file: &mut Tracked, first: &[u8]) -> Option<Begun> {
        let stored = file.committed;
        if stored.head.len > 0 && stored.head.fits(first) {
            file.head = stored.head;
            if stored.finished {
                file.stage = Stage::Skipped;
                return Some(Begun::Rests);
            }
            file.begin();
            return Some(Begun::Reads);
        }
        file.committed = Checkpoint::start(stored.born);
        file.head = Head::of(first);
        let original = self.heads.matches(first).into_iter().find(|other| {
            let is_open = |original: &&Tracked| original.coding.is_none() && original.is_readable();
            let original = self.table.get(*other).filter(is_open);
            // A short head may be that of many files. One that was truncated is compared as it was, when that is noticed.
            *other != index
                && original.is_some_and(|original| begins_with(original, first) || !is_whole(original))
        })?;
        self.set_copy(index, file, original);
        self.enqueue(original);
        Some(Begun::Rests)
    }

    /// Decides about a compressed file of which nothing is known.
    fn begin_unknown(&mut self, file: &mut Tracked) -> Begun {
        let input = self.settings.inputs.get(usize::from(file.input));
        if input.is_some_and(|input| input.compressed) {
            file.begin();
            return Begun::Reads;
        }
        self.meters.add_skipped_compressed(1);
        self.skip_compressed(file);
        Begun::Rests
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
        self.waiting.insert(index);
        Ok(Turn::Idle)
    }

    /// The rest of a damaged file is lost.
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

/// Whether the file begins with the bytes `first`.
fn begins_with(file: &Tracked, first: &[u8]) -> bool {
    FirstBytes::of(&file.handle).is_ok_and(|bytes| bytes.as_slice().starts_with(first))
}

/// Whether the trailer of a gzip file of `length` bytes says that it has `decompressed` bytes, modulo 2³².
fn gzip_is_as_long(file: &Tracked, length: u64, decompressed: u64) -> bool {
    let mut trailer = [0; 4];
    file.coding == Some(Coding::Gzip)
        && length >= 18
        && read_at(&file.handle, &mut trailer, length - 4).is_ok_and(|read| read == 4)
        && u32::from_le_bytes(trailer) == decompressed as u32
}
