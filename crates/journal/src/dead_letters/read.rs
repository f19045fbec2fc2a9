//! Reading letters, whether or not a process is writing more.

use super::marks::{ResentLetters, SENT, sent};
use super::{NEWER, OLDER, SINK_MAX};
use crate::meta::Meta;
use crate::record::{Header, u64_at};
use crate::record_scanner::RecordScanner;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use tidegate_files::folder::{Files, RealFiles};

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

impl StoredDeadLetters {
    /// The body of the letter that was given last.
    ///
    /// # Errors
    /// When it cannot be read, or is not as it was written.
    pub fn body(&mut self) -> io::Result<Vec<u8>> {
        let len = self.last.map_or(0, |(_, header)| header.body_len as usize);
        // As long as the header says, which the file's own length has confirmed.
        let mut body = vec![0; len];
        self.body_into(&mut body)?;
        Ok(body)
    }

    /// The same, read into memory of the caller that is as long as [`body_len`](StoredDeadLetter::body_len).
    ///
    /// # Errors
    /// As [`body`](Self::body): [`InvalidData`](io::ErrorKind::InvalidData) where it is damaged. `body` holds anything then.
    pub fn body_into(&mut self, body: &mut [u8]) -> io::Result<()> {
        let (Some((at, header)), Some((walker, _))) = (self.last, self.files.last_mut()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if body.len() != header.body_len as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if walker.body(at, &header, body)? { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
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
