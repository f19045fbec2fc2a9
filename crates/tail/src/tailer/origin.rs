//! Where reading begins in a file without a checkpoint of its own: it may be a copy of one that is known.

use super::Tailer;
use crate::checkpoint::Checkpoint;
use crate::destination::{CheckpointChange, Destination};
use crate::file::{FirstBytes, Former, Index, Stage, Tracked, read_at, tail_at};
use crate::identity::{Head, SAMPLE, path_hash};
use crate::resource::FileResource;
use std::io;
use tidegate_lines::Checkpoint as LinesCheckpoint;

/// Where reading begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// At the beginning.
    Beginning,
    /// Where reading of the file ended that it is a copy of.
    After(Former),
    /// Nowhere yet: the file that it is a copy of is read.
    Copy(Index),
}

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Where to begin in a file that begins with `first`, and is `length` bytes long.
    pub(super) fn origin(&self, index: Index, file: &Tracked, first: &[u8], length: u64) -> Origin {
        let path = path_hash(&file.path);
        for original in self.heads.matches(first) {
            if original != index
                && let Some(known) = self.table.get(original)
                && known.coding.is_none()
                && known.committed.born != path
                && path_hash(&known.path) != path
                && !matches!(known.stage, Stage::Copy { .. } | Stage::Skipped)
                // One that was truncated is compared as it was, when that is noticed.
                && (!is_whole(known) || is_copy(file, length, known))
            {
                return Origin::Copy(original);
            }
        }
        let mut formers = self.formers.matches(first);
        formers.retain(|former| former.checkpoint.born != path || former.id == file.id);
        let fitting = formers.into_iter().filter(|former| {
            let offset = former.checkpoint.offset();
            former.id != file.id
                && offset <= length
                && tail_at(&file.handle, offset).is_ok_and(|tail| tail == Some(former.checkpoint.tail))
        });
        match fitting.max_by_key(|former| former.checkpoint.offset()) {
            Some(former) => Origin::After(former),
            None => Origin::Beginning,
        }
    }

    /// Begins to read a copy where reading of the original ended.
    pub(super) fn begin_after(&mut self, file: &mut Tracked, former: Former) {
        file.committed = Checkpoint {
            born: file.committed.born,
            seen: super::discover::unix_seconds(),
            ..former.checkpoint
        };
        file.begin();
        self.others.push(self.change(file.id, &file.committed));
    }

    /// Decides anew about the copies of a file that has ended or was truncated, before anything else is read.
    ///
    /// `read`: how far the original was read. A copy that has no more holds nothing new.
    pub(super) fn release_copies(&mut self, original: Index, read: u64) {
        for index in self.table.numbers() {
            let Some(file) = self.table.get_mut(index) else { continue };
            if file.stage != (Stage::Copy { original }) {
                continue;
            }
            file.stage = Stage::New;
            if let Ok(committed) = read_through(file, read) {
                file.begin();
                file.head = committed.head;
                file.committed = committed;
                let change = CheckpointChange {
                    key: file.id.key(self.settings.key).to_vec(),
                    value: Some(committed.encode()),
                };
                self.others.push(change);
                self.heads.insert(committed.head, index);
            }
            if !file.is_queued {
                file.is_queued = true;
                self.ready.push_front(index);
            }
        }
    }
}

/// The checkpoint at the end of a copy that is not longer than what was `read` of its original.
fn read_through(file: &Tracked, read: u64) -> io::Result<Checkpoint> {
    let length = file.handle.metadata()?.len();
    if file.coding.is_some() || length > read || length != file.length {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(Checkpoint {
        lines: LinesCheckpoint::at(length),
        head: Head::of(FirstBytes::of(&file.handle)?.as_slice()),
        tail: tail_at(&file.handle, length)?.unwrap_or_default(),
        finished: false,
        born: file.committed.born,
        seen: super::discover::unix_seconds(),
    })
}

/// Whether a file still is as it was read.
fn is_whole(known: &Tracked) -> bool {
    let length = known.handle.metadata().map_or(0, |metadata| metadata.len());
    length >= known.next()
        && FirstBytes::of(&known.handle).is_ok_and(|first| known.head.fits(first.as_slice()))
}

/// Whether a file of `length` bytes that begins like `known` is a copy of it: whole, or still being made.
fn is_copy(file: &Tracked, length: u64, known: &Tracked) -> bool {
    let Ok(known_length) = known.handle.metadata().map(|metadata| metadata.len()) else { return false };
    // A copy is made from a file that holds as much. The first line of a short one may be that of another.
    if length > known_length || length < known.next().min(SAMPLE as u64) {
        return false;
    }
    let (mut own, mut other) = ([0; SAMPLE], [0; SAMPLE]);
    let from = length.saturating_sub(SAMPLE as u64);
    match (read_at(&file.handle, &mut own, from), read_at(&known.handle, &mut other, from)) {
        (Ok(len), Ok(other_len)) => len <= other_len && own.get(..len) == other.get(..len),
        _ => false,
    }
}
