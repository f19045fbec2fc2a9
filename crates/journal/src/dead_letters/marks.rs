//! Marks of letters that were sent or discarded: a small file for each sink, beside the letters.

use super::read::read;
use crate::cursor::file::is_name;
use crate::record::u64_at;
use std::io::{self, IoSlice};
use std::path::Path;
use tidegate_files::Access;
use tidegate_files::folder::{Files, RealFiles, write_all};

/// How many letters of a sink are kept to be sent although later ones were.
pub const MOST_KEPT: usize = 512;

/// The end of the name of a sink's file that says which of its letters were sent.
pub(super) const SENT: &str = ".sent";
/// Locked while a mark is made: a command and the gateway may mark letters of one sink at the same time.
const LOCK: &str = "marks.lock";

/// Letters that were discarded, or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Discarded {
    /// How many letters are gone.
    pub letters: u64,
    /// How many items they had.
    pub items: u64,
    /// How many letters of the sink are kept, since they are newer.
    pub kept: u64,
}

/// The resent dead letters of a sink. On disk: their numbers, eight bytes each, little-endian.
#[derive(Debug, Default)]
pub(super) struct ResentLetters {
    /// Up to and with this letter,
    through: u64,
    /// but for these: at most [`MOST_KEPT`].
    but: Vec<u64>,
}

/// Marks every letter of `sink` up to and with `id` as sent, but for those that are [kept](mark_kept). They stay until newer
/// ones need their room.
///
/// # Errors
/// When that cannot be written down.
pub fn mark_sent(dir: &Path, sink: &str, id: u64) -> io::Result<()> {
    mark_sent_but(dir, sink, id, &[])
}

/// As [`mark_sent`], where the letters `passed` were passed over: they stay to be sent, but for those that somebody else has sent
/// or discarded meanwhile.
///
/// # Errors
/// When that cannot be written down, or as many letters of the sink are kept as can be.
pub fn mark_sent_but(dir: &Path, sink: &str, id: u64, passed: &[u64]) -> io::Result<()> {
    mark(dir, sink, |sent| {
        sent.pass(passed);
        sent.through = sent.through.max(id);
        sent.but.retain(|kept| *kept != id);
    })
}

/// Marks that the letter `id` of `sink` stays to be sent, whatever is sent after it, as do the letters `passed` that were passed
/// over before it; all others up to it were sent.
///
/// # Errors
/// When that cannot be written down, or as many letters of the sink are kept as can be: [`MOST_KEPT`].
pub fn mark_kept(dir: &Path, sink: &str, id: u64, passed: &[u64]) -> io::Result<()> {
    mark(dir, sink, |sent| {
        sent.pass(passed);
        if !sent.but.contains(&id) {
            sent.but.push(id);
        }
        sent.through = sent.through.max(id);
    })
}

/// Discards the letters of `sink` up to and with the number `through`, those that were refused again too; all of them
/// without a number. They are marked as if they had been sent.
///
/// # Errors
/// When the letters cannot be read, or the mark cannot be written down.
pub fn discard(dir: &Path, sink: &str, through: Option<u64>) -> io::Result<Discarded> {
    let (mut discarded, mut last) = (Discarded::default(), None);
    for letter in read(dir, false)?.filter(|letter| letter.sink == sink) {
        if through.is_some_and(|through| letter.id > through) {
            discarded.kept += 1;
        } else {
            discarded.letters += 1;
            discarded.items += u64::from(letter.meta.items);
            last = Some(letter.id);
        }
    }
    if let Some(last) = last {
        mark(dir, sink, |sent| {
            sent.through = sent.through.max(last);
            sent.but.retain(|refused| *refused > last);
        })?;
    }
    Ok(discarded)
}

fn mark(dir: &Path, sink: &str, change: impl FnOnce(&mut ResentLetters)) -> io::Result<()> {
    if !is_name(sink) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Without it, the later of two marks could be made of an old file or half a new one, and letters that were refused would
    // be forgotten.
    let lock =
        tidegate_files::open(&dir.join(LOCK), Access::Owner, |options| options.write(true).create(true))?;
    lock.lock()?;
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
    if sent.but.len() > MOST_KEPT {
        // What gave way to newer letters needs no mark.
        let oldest = read(dir, true)?.next().map_or(u64::MAX, |letter| letter.id);
        sent.but.retain(|id| *id >= oldest);
    }
    if sent.but.len() > MOST_KEPT {
        return Err(io::Error::other(format!(
            "{MOST_KEPT} letters of `{sink}` are kept although later ones were sent, and no more can be: send those, or discard them"
        )));
    }
    let bytes: Vec<u8> =
        std::iter::once(&sent.through).chain(&sent.but).flat_map(|id| id.to_le_bytes()).collect();
    write_all(&*file, &mut [IoSlice::new(&bytes)], 0)?;
    file.sync()?;
    folder.rename(&fresh, &name)?;
    folder.sync_names()
}

pub(super) fn sent(folder: &dyn Files, sink: &str) -> ResentLetters {
    let mut bytes = vec![0; 8 * (1 + MOST_KEPT)];
    let read = folder.open(&format!("{sink}{SENT}"), false).and_then(|file| file.read_at(&mut bytes, 0));
    let mut ids = bytes.chunks_exact(8).take(read.unwrap_or(0) / 8).map(|id| u64_at(id, 0));
    ResentLetters { through: ids.next().unwrap_or(0), but: ids.collect() }
}

impl ResentLetters {
    /// Keeps what was passed over. What is marked already is as it is marked.
    fn pass(&mut self, passed: &[u64]) {
        let marked = self.through;
        for id in passed.iter().filter(|id| **id > marked) {
            self.but.push(*id);
            self.through = self.through.max(*id);
        }
    }

    pub(super) fn has(&self, id: u64) -> bool {
        id <= self.through && !self.but.contains(&id)
    }
}
