//! Where reading begins in a file without a checkpoint of its own: it may be a copy of one that is known.

use super::Tailer;
use crate::checkpoint::Checkpoint;
use crate::destination::Destination;
use crate::file::{FirstBytes, Former, Index, Stage, Tracked, read_at, tail_at};
use crate::identity::{Head, SAMPLE, path_hash};
use crate::resource::FileResource;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;
use tidegate_lines::Checkpoint as LinesCheckpoint;

/// A copy that has not grown for so long is complete.
const COPY_WAIT: Duration = Duration::from_secs(5);

/// Where reading begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// At the beginning.
    Beginning,
    /// Where reading of the file ended that it is a copy of.
    After(Former),
    /// Nowhere yet: the file that it is a copy of is read.
    Copy(Index),
    /// At the end: it has less than was read of the file that it is a copy of.
    End,
    /// Not known yet: its copy was found first, and is being read.
    Later,
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
                && !matches!(known.stage, Stage::New | Stage::Copy { .. } | Stage::Skipped)
            {
                // One that was truncated is compared as it was, when that is noticed.
                if !is_whole(known) || is_copy(file, length, known) {
                    return Origin::Copy(original);
                }
                if let Some(origin) = behind_copy(file, length, known, self.now()) {
                    return origin;
                }
            }
        }
        let mut formers = self.formers.matches(first);
        formers.retain(|former| former.checkpoint.born != path);
        formers.retain(|former| former.id != file.id);
        let fitting = formers.iter().filter(|former| {
            let offset = former.checkpoint.offset();
            offset <= length
                && tail_at(&file.handle, offset).is_ok_and(|tail| tail == Some(former.checkpoint.tail))
        });
        match fitting.max_by_key(|former| former.checkpoint.offset()) {
            Some(former) => Origin::After(*former),
            None if formers
                .iter()
                .any(|former| former.checkpoint.offset() > length && is_derived(&file.path, former)) =>
            {
                Origin::End
            }
            None => Origin::Beginning,
        }
    }

    /// Takes a copy that has nothing new for read.
    pub(super) fn begin_at_end(&mut self, file: &mut Tracked) -> io::Result<()> {
        file.committed = at_end(file)?;
        file.begin();
        self.others.push(self.change(file.id, &file.committed));
        Ok(())
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
    pub(super) fn release_copies(&mut self, original: Index, path: &Path, read: u64) {
        for index in self.copies.of(original) {
            let Some(mut file) = self.table.take(index) else { continue };
            if file.stage == (Stage::Copy { original }) {
                self.release(index, &mut file, path, read);
            }
            self.table.give_back(index, file);
        }
    }

    fn release(&mut self, index: Index, file: &mut Tracked, original: &Path, read: u64) {
        self.copies.remove(original_of(file), index);
        file.stage = Stage::New;
        if let Ok(committed) = read_through(file, original, read) {
            file.begin();
            self.set_head(index, file, committed.head);
            file.committed = committed;
            self.others.push(self.change(file.id, &committed));
        }
        if !file.is_queued {
            file.is_queued = true;
            self.ready.push_front(index);
        }
    }

    /// Notes that a file is a copy: it is not read while `original` is whole.
    pub(super) fn set_copy(&mut self, index: Index, file: &mut Tracked, original: Index) {
        file.stage = Stage::Copy { original };
        self.copies.insert(original, index);
    }
}

/// The file that `file` is a copy of.
fn original_of(file: &Tracked) -> Index {
    match file.stage {
        Stage::Copy { original } => original,
        _ => Index::MAX,
    }
}

/// Where to begin in a file whose copy, `known`, was found first and is read: `copytruncate` copies before it truncates, and a
/// writer may have gone on in between. `None` when `known` does not look like its copy.
fn behind_copy(file: &Tracked, length: u64, known: &Tracked, now: Duration) -> Option<Origin> {
    let offset = known.committed.offset();
    let known_length = known.handle.metadata().ok()?.len();
    if !is_rotated_name(&known.path, &file.path) || length < known_length {
        return None;
    }
    if offset > 0 && tail_at(&file.handle, offset).ok()? != Some(known.committed.tail) {
        return None;
    }
    let is_read = known.in_batches == 0 && !known.is_queued && known.length == known_length && offset > 0;
    // Perhaps it is still being made: then both would be read from there.
    let is_made = now.saturating_sub(known.progressed) >= COPY_WAIT;
    Some(if is_read && is_made {
        Origin::After(Former { id: known.id, checkpoint: known.committed, is_displaced: false })
    } else {
        Origin::Later
    })
}

/// Whether `path` is what a rotation makes of the name `original`: `a.log.1`, `a.log-20260101`, `a-1.log`.
pub(super) fn is_rotated_name(path: &Path, original: &Path) -> bool {
    let (Some(name), Some(of)) = (path.file_name(), original.file_name()) else { return false };
    let stem = original.file_stem().unwrap_or(of);
    let rest = |of: &OsStr| name.as_encoded_bytes().strip_prefix(of.as_encoded_bytes());
    let is_suffix = |rest: Option<&[u8]>| rest.is_some_and(|rest| matches!(rest, [b'.' | b'-' | b'_', ..]));
    name != of && (is_suffix(rest(of)) || is_suffix(rest(stem)))
}

/// The checkpoint at the end of a copy that is not longer than what was `read` of its original, which had the path `original`.
fn read_through(file: &Tracked, original: &Path, read: u64) -> io::Result<Checkpoint> {
    let length = file.handle.metadata()?.len();
    // A rotation's copy was perhaps still being made when it was looked at. Another may be growing by itself.
    let is_same = length == file.length || is_rotated_name(&file.path, original);
    if file.coding.is_some() || length > read || !is_same {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    at_end(file)
}

/// The checkpoint at the end of a file.
fn at_end(file: &Tracked) -> io::Result<Checkpoint> {
    let length = file.handle.metadata()?.len();
    Ok(Checkpoint {
        lines: LinesCheckpoint::at(length),
        head: Head::of(FirstBytes::of(&file.handle)?.as_slice()),
        tail: tail_at(&file.handle, length)?.unwrap_or_default(),
        finished: false,
        born: file.committed.born,
        seen: super::discover::unix_seconds(),
    })
}

/// Whether a file with `path` that begins like `former` and is shorter is a copy of it: content that was overwritten, under a
/// name that a rotation makes of its file's.
pub(super) fn is_derived(path: &Path, former: &Former) -> bool {
    if !former.is_displaced || !former.checkpoint.head.is_full() {
        return false;
    }
    let Some(name) = path.file_name().map(OsStr::as_bytes) else { return false };
    let ends = name.iter().enumerate().filter(|(_, byte)| matches!(byte, b'.' | b'-' | b'_'));
    let mut originals = ends.filter_map(|(end, _)| name.get(..end).filter(|name| !name.is_empty()));
    originals.any(|name| path_hash(&path.with_file_name(OsStr::from_bytes(name))) == former.checkpoint.born)
}

/// Whether a file still is as it was read.
pub(super) fn is_whole(known: &Tracked) -> bool {
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
