//! Items that a peer rejected permanently, kept for inspection and resending.
//!
//! Two files in a folder of their own, framed as segments are. When the newer one is half of what is allowed,
//! it takes the place of the older one: so the bound holds, and the newest half at least is there. A letter is
//! written to the page cache: it survives the end of the process. Its items were counted as dropped by then;
//! this is a copy for people, and no acknowledgement depends on it.

mod marks;
mod read;

pub use marks::{Discarded, MOST_KEPT, discard, mark_kept, mark_sent, mark_sent_but};
pub use read::{StoredDeadLetter, StoredDeadLetters, read};

use crate::meta::Meta;
use crate::record::random;
use crate::record::{ALIGN, Header, checksum, size_of_record};
use crate::record_scanner::RecordScanner;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_files::folder::{File, Files, RealFiles, write_all};

/// The longest reason that is kept, in bytes; longer ones are cut.
pub const REASON_MAX: usize = 1024;
/// The bytes that are kept where nobody says otherwise.
pub const DEFAULT_MAX: u64 = 64 << 20;
const NEWER: &str = "letters";
const OLDER: &str = "letters.old";
const SINK_MAX: usize = 64;
const PADDING: [u8; ALIGN as usize] = [0; ALIGN as usize];

/// Where sinks put what their peers reject. A handle; clones are the same letters.
#[derive(Clone)]
pub struct DeadLetters(Arc<Inner>);

/// One rejected body.
#[derive(Debug, Clone, Copy)]
pub struct DeadLetter<'a> {
    /// Which sink could not deliver it.
    pub sink: &'a str,
    /// The peer's message.
    pub reason: &'a str,
    /// The body's metadata.
    pub meta: &'a Meta,
    /// The body, as it would be sent.
    pub body: &'a [u8],
}

struct Inner {
    files: Arc<dyn Files>,
    /// Largest size of each of the two files, in bytes.
    half: u64,
    state: Mutex<State>,
}

struct State {
    file: Option<Arc<dyn File>>,
    end: u64,
    next: u64,
    key: u64,
}

impl DeadLetters {
    /// Opens the letters in the folder `dir`, making it where there is none, to hold `max` bytes at most.
    ///
    /// # Errors
    /// When the folder cannot be made or listed, or a file in it cannot be opened.
    pub fn open(dir: &Path, max: u64) -> io::Result<DeadLetters> {
        tidegate_files::create_folder(dir, tidegate_files::Access::Owner)?;
        Self::open_in(Arc::new(RealFiles::new(dir.to_owned())), max)
    }

    pub(crate) fn open_in(files: Arc<dyn Files>, max: u64) -> io::Result<DeadLetters> {
        let mut state = State { file: None, end: 0, next: 1, key: random() };
        for name in [OLDER, NEWER] {
            let file = match files.open(name, true) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let len = files.list()?.into_iter().find(|(known, _)| known == name).map_or(0, |(_, len)| len);
            let mut walker = RecordScanner::new(file.clone(), None);
            let mut end = 0;
            while let Some((at, header)) = walker.find(end, len, 0..u64::MAX) {
                end = at + header.size();
                state.next = state.next.max(header.sequence + 1);
            }
            state.key = walker.key().unwrap_or(state.key);
            if name == NEWER {
                // The bytes after the last whole header were being written when the process ended.
                file.set_len(end)?;
                (state.file, state.end) = (Some(file), end);
            }
        }
        Ok(DeadLetters(Arc::new(Inner { files, half: max / 2, state: Mutex::new(state) })))
    }

    /// Keeps a letter. Brief: one write to the page cache.
    ///
    /// # Errors
    /// When it is larger than half of what may be kept, or the disk refuses it.
    pub fn add(&self, letter: DeadLetter<'_>) -> io::Result<()> {
        let DeadLetter { sink, reason, meta, body } = letter;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut note = Vec::with_capacity(8 + 1 + SINK_MAX + REASON_MAX);
        note.extend_from_slice(&u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
        let sink = cut(sink, SINK_MAX);
        note.push(u8::try_from(sink.len()).unwrap_or(0));
        note.extend_from_slice(sink.as_bytes());
        note.extend_from_slice(cut(reason, REASON_MAX).as_bytes());
        let tenant = meta.tenant.as_str().as_bytes();
        let len = u32::try_from(body.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let size = size_of_record(tenant.len() + note.len(), len);
        if size > self.0.half {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = state.room(&*self.0.files, size, self.0.half)?;
        let mut header =
            Header::new(state.key, state.next, 0, meta, len, checksum(&meta.tenant, "", &note, body));
        header.note_len = u16::try_from(note.len()).unwrap_or(0);
        let head = header.encode();
        let padding = size - (head.len() + tenant.len() + note.len() + body.len()) as u64;
        let padding = PADDING.get(..padding as usize).unwrap_or_default();
        let mut parts = [&head[..], tenant, &note, body, padding].map(IoSlice::new);
        if let Err(error) = write_all(&*file, &mut parts, state.end) {
            // Half a letter is cut off, now or when the next one is written over it.
            drop(file.set_len(state.end));
            return Err(error);
        }
        state.next += 1;
        state.end += size;
        Ok(())
    }
}

impl State {
    /// The file to write to, with room for `size` bytes.
    fn room(&mut self, files: &dyn Files, size: u64, half: u64) -> io::Result<Arc<dyn File>> {
        if self.file.is_some() && self.end + size > half {
            files.rename(NEWER, OLDER)?;
            self.file = None;
        }
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let file = files.create(NEWER)?;
        self.end = 0;
        Ok(self.file.insert(file).clone())
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeadLetters")
    }
}

/// The first `max` bytes of a text, or fewer, so that no character is cut.
fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

#[cfg(all(test, not(loom)))]
mod tests;
