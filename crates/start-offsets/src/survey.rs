//! Compares checkpoints with the files on disk.

use crate::checkpoint::Checkpoint;
use crate::prefix::{PREFIX_LEN, Prefix};
use crate::stored_offsets::StoredOffset;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file of another program's checkpoint, as it is now.
#[derive(Debug, Clone)]
pub struct SurveyedFile {
    /// Where the file is, which may have been renamed; where it was, if it is not found; none if the program kept no path.
    pub path: Option<PathBuf>,
    /// Bytes that the other program has read.
    pub offset: u64,
    /// The length in bytes, if the file is there.
    pub size: Option<u64>,
    /// How far it is read.
    pub state: State,
    /// The offset to be stored; none for a file that is gone or cannot be read.
    pub stored: Option<StoredOffset>,
}

/// How far a file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// To its end.
    Read,
    /// So many bytes are unread.
    Behind(u64),
    /// It is shorter than what was read, so it was truncated, or replaced by another: it is read from its beginning.
    Truncated,
    /// It was made after the checkpoint was stored, so it is another file: it is read from its beginning.
    Replaced,
    /// Its path is not known: it is found by its first bytes.
    ByContent,
    /// There is no such file any more.
    Gone,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// Looks for the file of `checkpoint`: under its path, or under another name in the same folder if it was renamed.
pub fn survey(checkpoint: &Checkpoint) -> SurveyedFile {
    let offset = checkpoint.offset;
    let not_found =
        |state, stored| SurveyedFile { path: checkpoint.path.clone(), offset, size: None, state, stored };
    let by_content = || {
        let first = checkpoint.first_bytes.as_ref()?;
        Some(StoredOffset { path: None, device: None, inode: None, prefix: Prefix::of(first), offset })
    };
    let found = checkpoint.path.as_ref().and_then(|path| locate(path, checkpoint.inode));
    let Some((path, metadata)) = found else {
        return match by_content() {
            Some(stored) => not_found(State::ByContent, Some(stored)),
            None => not_found(State::Gone, None),
        };
    };
    let size = metadata.len();
    let first = match first_bytes(&path) {
        Ok(first) => first,
        Err(error) => {
            let state = State::Unreadable(error.to_string());
            return SurveyedFile { path: Some(path), offset, size: Some(size), state, stored: None };
        }
    };
    if checkpoint.first_bytes.as_ref().is_some_and(|known| !Prefix::of(known).is_of(&first)) {
        // Another file has the path by now.
        return not_found(State::ByContent, by_content());
    }
    // Not every file system knows when a file was made.
    let is_later =
        checkpoint.stored_at.zip(metadata.created().ok()).is_some_and(|(stored, made)| made > stored);
    let (state, start) = match size.checked_sub(offset) {
        _ if is_later => (State::Replaced, 0),
        Some(0) => (State::Read, offset),
        Some(unread) => (State::Behind(unread), offset),
        None => (State::Truncated, 0),
    };
    let stored = StoredOffset {
        path: path.to_str().map(str::to_owned),
        device: Some(metadata.dev()),
        inode: Some(metadata.ino()),
        prefix: Prefix::of(&first),
        offset: start,
    };
    SurveyedFile { path: Some(path), offset, size: Some(size), state, stored: Some(stored) }
}

/// The file at `path`, or the one in its folder with this inode.
fn locate(path: &Path, inode: Option<u64>) -> Option<(PathBuf, Metadata)> {
    let file = |path: &Path| fs::metadata(path).ok().filter(Metadata::is_file);
    if let Some(metadata) = file(path).filter(|metadata| inode.is_none_or(|inode| metadata.ino() == inode)) {
        return Some((path.to_owned(), metadata));
    }
    let inode = inode?;
    let mut entries = fs::read_dir(path.parent()?).ok()?.flatten();
    entries.find_map(|entry| {
        let metadata = file(&entry.path()).filter(|metadata| metadata.ino() == inode)?;
        Some((entry.path(), metadata))
    })
}

/// At most [`PREFIX_LEN`] bytes.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(path)?.take(PREFIX_LEN as u64).read_to_end(&mut first)?;
    Ok(first)
}
