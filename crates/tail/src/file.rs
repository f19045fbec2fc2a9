//! One file: what it is, how far it is read, and what is known of its end.

use crate::checkpoint::Checkpoint;
use crate::compressed::Coding;
use crate::identity::{FileId, Head, SAMPLE, tail_hash};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;
use tidegate_lines::Lines;

/// The number of a file in the [`Table`](crate::tailer).
pub(crate) type Index = u32;

/// The facts of a file for a [`FileResource`](crate::FileResource).
#[derive(Debug, Clone, Copy)]
pub struct FileInfo<'a> {
    /// Its number among the files of the tailer, while it is known.
    pub number: u32,
    /// The file.
    pub id: FileId,
    /// The position of its input in the settings.
    pub input: usize,
    /// Its path, the newest if it was renamed.
    pub path: &'a Path,
    /// The target of the path, if links are on the way.
    pub resolved: Option<&'a Path>,
}

/// A file that is known.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) id: FileId,
    pub(crate) input: u16,
    /// How many names of the patterns lead to it.
    pub(crate) names: u32,
    pub(crate) path: Box<Path>,
    pub(crate) resolved: Option<Box<Path>>,
    pub(crate) handle: File,
    /// How far it is read durably.
    pub(crate) committed: Checkpoint,
    /// The head, which may be longer than the committed one.
    pub(crate) head: Head,
    /// Its length when it was last looked at.
    pub(crate) length: u64,
    /// The state of its lines between turns, if records are begun.
    pub(crate) lines: Option<Box<Lines>>,
    pub(crate) stage: Stage,
    pub(crate) coding: Option<Coding>,
    /// Whether it waits for its turn.
    pub(crate) is_queued: bool,
    /// In how many batches that are not durable yet its records are.
    pub(crate) in_batches: u8,
    /// Whether it was found truncated while batches of it were on their way.
    pub(crate) look_again: bool,
    /// Whether `lines` must be flushed at its next turn.
    pub(crate) flush: bool,
    /// When it was found, since the start.
    pub(crate) found: Duration,
    /// When bytes of it became durable, or its state changed.
    pub(crate) progressed: Duration,
    pub(crate) rate: Rate,
    pub(crate) error: Option<Box<str>>,
}

/// The stage of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Where reading begins is decided with its first bytes.
    New,
    /// It is read.
    Reading,
    /// It begins with what `original` holds, which is read instead, as long as that is whole.
    Copy { original: Index },
    /// No name leads to it; it is read to its end.
    Held,
    /// Its last bytes are being read, then it is forgotten.
    Ending,
    /// It is not read: compressed and not wanted, read already, or excluded.
    Skipped,
}

/// A file that was read, and is gone or was truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Former {
    pub(crate) id: FileId,
    pub(crate) checkpoint: Checkpoint,
    /// Whether other content has its inode: its checkpoint has a key of its own.
    pub(crate) is_displaced: bool,
}

impl Former {
    /// The key of its checkpoint, for a source whose keys begin with `kind`.
    pub(crate) fn key(&self, kind: u8) -> Vec<u8> {
        let mut key = self.id.key(kind).to_vec();
        if self.is_displaced {
            key.extend_from_slice(&self.checkpoint.head.hash.to_be_bytes());
        }
        key
    }

    /// The file of the `key` of displaced content.
    pub(crate) fn displaced_of(kind: u8, key: &[u8]) -> Option<FileId> {
        let (id, head) = key.split_at_checked(FileId::KEY)?;
        (head.len() == size_of::<u64>()).then(|| FileId::from_key(kind, id))?
    }
}

/// Records a second, averaged over some ten seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rate {
    pub(crate) records: u64,
    per_second: f32,
    at_ms: u32,
}

impl Rate {
    const AVERAGED_MS: f32 = 10_000.0;

    /// Adds records at a time since the start.
    pub(crate) fn add(&mut self, records: u64, now: Duration) {
        self.records += records;
        self.per_second = self.at(now) + records as f32 * 1000.0 / Rate::AVERAGED_MS;
        self.at_ms = now.as_millis() as u32;
    }

    /// The rate at a time since the start.
    pub(crate) fn at(&self, now: Duration) -> f32 {
        let since = (now.as_millis() as u32).wrapping_sub(self.at_ms) as f32;
        self.per_second * (-since / Rate::AVERAGED_MS).exp()
    }
}

impl Tracked {
    /// The offset of the next byte to read.
    pub(crate) fn next(&self) -> u64 {
        self.lines.as_ref().map_or_else(|| self.committed.offset(), |lines| lines.position())
    }

    /// How far it is read durably, with all that is known of its beginning.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let is_longer = self.head.len > self.committed.head.len;
        Checkpoint { head: if is_longer { self.head } else { self.committed.head }, ..self.committed }
    }

    /// It is read from now on.
    pub(crate) fn begin(&mut self) {
        self.stage = if self.names == 0 { Stage::Held } else { Stage::Reading };
    }

    /// Goes back to what is durable.
    pub(crate) fn roll_back(&mut self) {
        self.lines = None;
    }

    /// The bytes of its paths.
    pub(crate) fn text_bytes(&self) -> usize {
        self.path.as_os_str().len() + self.resolved.as_ref().map_or(0, |path| path.as_os_str().len())
    }

    pub(crate) fn info(&self, number: Index) -> FileInfo<'_> {
        FileInfo {
            number,
            id: self.id,
            input: usize::from(self.input),
            path: &self.path,
            resolved: self.resolved.as_deref(),
        }
    }

    /// Whether it may be given turns.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.stage, Stage::New | Stage::Reading | Stage::Held | Stage::Ending)
    }
}

/// Reads bytes at `offset` until `buffer` is full or the file ends; gives how many.
///
/// # Errors
/// Those of reading.
pub(crate) fn read_at(handle: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match handle.read_at(rest, offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The first bytes of a file, at most [`SAMPLE`].
pub(crate) struct FirstBytes {
    bytes: [u8; SAMPLE],
    len: usize,
}

impl FirstBytes {
    /// Reads them.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn of(handle: &File) -> io::Result<FirstBytes> {
        let mut bytes = [0; SAMPLE];
        let len = read_at(handle, &mut bytes, 0)?;
        Ok(FirstBytes { bytes, len })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// The hash of the last bytes before `offset`; `None` when the file is shorter.
///
/// # Errors
/// Those of reading.
pub(crate) fn tail_at(handle: &File, offset: u64) -> io::Result<Option<u64>> {
    let mut bytes = [0; SAMPLE];
    let from = offset.saturating_sub(SAMPLE as u64);
    let wanted = usize::try_from(offset - from).unwrap_or(SAMPLE);
    let wanted = bytes.get_mut(..wanted).unwrap_or_default();
    let len = read_at(handle, wanted, from)?;
    Ok((len == wanted.len()).then(|| tail_hash(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate comes near the true one, and falls to nothing when nothing comes.
    #[test]
    fn the_rate_follows() {
        let mut rate = Rate::default();
        for ms in (0..60_000).step_by(100) {
            rate.add(10, Duration::from_millis(ms));
        }
        let now = Duration::from_secs(60);
        assert!((90.0..110.0).contains(&rate.at(now)), "{}", rate.at(now));
        assert!(rate.at(Duration::from_secs(200)) < 0.1);
        assert_eq!(rate.records, 6000);
    }
}
