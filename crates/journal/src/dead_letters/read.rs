//! Reading letters, whether or not a process is writing more.

use super::{NEWER, OLDER, SENT, SINK_MAX};
use crate::cursor::file::is_name;
use crate::meta::Meta;
use crate::record::{Header, u64_at};
use crate::record_scanner::RecordScanner;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::Path;
use tidegate_files::folder::{Files, RealFiles, write_all};

/// One letter, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDeadLetter {
    /// Its number: later ones have larger numbers.
    pub id: u64,
    /// When it was rejected, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Which sink could not deliver it.
    pub sink: String,
    /// The peer's message.
    pub reason: String,
    /// The body's metadata.
    pub meta: Meta,
    /// The body's length, in bytes.
    pub body_len: u32,
}

/// The letters in a folder, oldest first; see [`read`].
pub struct StoredDeadLetters {
    /// The files still to be read, the next one last: each with its length.
    files: Vec<(RecordScanner, u64)>,
    at: u64,
    /// Which letters of each sink were sent; a sink for each file that says so.
    sent: BTreeMap<String, ResentLetters>,
    /// The letter that was given last: where it is, and its header.
    last: Option<(u64, Header)>,
}

/// The letters in the folder `dir` that were not marked as sent; all of them where `sent_too` says so.
///
/// # Errors
/// When the folder cannot be listed, or a file in it cannot be opened.
pub fn read(dir: &Path, sent_too: bool) -> io::Result<StoredDeadLetters> {
    let folder = RealFiles::new(dir.to_owned());
    let list = match folder.list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let mut files = Vec::new();
    for name in [NEWER, OLDER] {
        if let Some((_, len)) = list.iter().find(|(known, _)| known == name) {
            files.push((RecordScanner::new(folder.open(name, false)?, None), *len));
        }
    }
    let sinks = list.iter().filter_map(|(name, _)| name.strip_suffix(SENT));
    let sent = match sent_too {
        true => BTreeMap::new(),
        false => sinks.map(|sink| (sink.to_owned(), sent(&folder, sink))).collect(),
    };
    Ok(StoredDeadLetters { files, at: 0, sent, last: None })
}

/// Marks every letter of `sink` up to and with `id` as sent, but for those that were
/// [refused](mark_refused) before `id`. They stay until newer ones need their room.
///
/// # Errors
/// When that cannot be written down.
pub fn mark_sent(dir: &Path, sink: &str, id: u64) -> io::Result<()> {
    mark(dir, sink, |sent| {
        sent.through = sent.through.max(id);
        sent.but.retain(|refused| *refused != id);
    })
}

/// Marks that the letter `id` of `sink` was refused once more: it stays to be sent, whatever is sent after it. Of
/// [`MOST_REFUSED`] such letters the oldest counts as sent when there is one more.
///
/// # Errors
/// When that cannot be written down.
pub fn mark_refused(dir: &Path, sink: &str, id: u64) -> io::Result<()> {
    mark(dir, sink, |sent| {
        sent.through = sent.through.max(id);
        if !sent.but.contains(&id) {
            sent.but.push(id);
        }
        let most = sent.but.len().saturating_sub(MOST_REFUSED);
        sent.but.drain(..most);
    })
}

/// How many letters of a sink are kept to be sent although later ones were.
pub const MOST_REFUSED: usize = 64;

/// The resent dead letters of a sink. On disk: their numbers, eight bytes each, little-endian.
#[derive(Debug, Default)]
struct ResentLetters {
    /// Up to and with this letter,
    through: u64,
    /// but for these: at most [`MOST_REFUSED`].
    but: Vec<u64>,
}

fn mark(dir: &Path, sink: &str, change: impl FnOnce(&mut ResentLetters)) -> io::Result<()> {
    if !is_name(sink) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let folder = RealFiles::new(dir.to_owned());
    let name = format!("{sink}{SENT}");
    let fresh = format!("{name}.new");
    match folder.remove(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = folder.create(&fresh)?;
    let mut sent = sent(&folder, sink);
    change(&mut sent);
    let bytes: Vec<u8> =
        std::iter::once(&sent.through).chain(&sent.but).flat_map(|id| id.to_le_bytes()).collect();
    write_all(&*file, &mut [IoSlice::new(&bytes)], 0)?;
    file.sync()?;
    folder.rename(&fresh, &name)?;
    folder.sync_names()
}

fn sent(folder: &dyn Files, sink: &str) -> ResentLetters {
    let mut bytes = [0; 8 * (1 + MOST_REFUSED)];
    let read = folder.open(&format!("{sink}{SENT}"), false).and_then(|file| file.read_at(&mut bytes, 0));
    let mut ids = bytes.chunks_exact(8).take(read.unwrap_or(0) / 8).map(|id| u64_at(id, 0));
    ResentLetters { through: ids.next().unwrap_or(0), but: ids.collect() }
}

impl ResentLetters {
    fn has(&self, id: u64) -> bool {
        id <= self.through && !self.but.contains(&id)
    }
}

impl StoredDeadLetters {
    /// The body of the letter that was given last.
    ///
    /// # Errors
    /// When it cannot be read, or is not as it was written.
    pub fn body(&mut self) -> io::Result<Vec<u8>> {
        let (Some((at, header)), Some((walker, _))) = (self.last, self.files.last_mut()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        // As long as the header says, which the file's own length has confirmed.
        let mut body = vec![0; header.body_len as usize];
        if walker.body(at, &header, &mut body)? { Ok(body) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

impl Iterator for StoredDeadLetters {
    type Item = StoredDeadLetter;

    fn next(&mut self) -> Option<StoredDeadLetter> {
        loop {
            let (walker, len) = self.files.last_mut()?;
            let Some((at, header)) = walker.find(self.at, *len, 0..u64::MAX) else {
                self.files.pop();
                (self.at, self.last) = (0, None);
                continue;
            };
            self.at = at + header.size();
            let meta = walker.tenant(at, &header).and_then(|tenant| header.meta(tenant));
            let Some((meta, note)) = meta.zip(walker.note(at, &header)) else { continue };
            let Some((sink, reason)) = note
                .get(9..)
                .and_then(|texts| texts.split_at_checked(usize::from(*note.get(8)?).min(SINK_MAX)))
            else {
                continue;
            };
            let sink = String::from_utf8_lossy(sink).into_owned();
            if self.sent.get(&sink).is_some_and(|sent| sent.has(header.sequence)) {
                continue;
            }
            let letter = StoredDeadLetter {
                id: header.sequence,
                at_ns: u64_at(note, 0),
                sink,
                reason: String::from_utf8_lossy(reason).into_owned(),
                meta,
                body_len: header.body_len,
            };
            self.last = Some((at, header));
            return Some(letter);
        }
    }
}
