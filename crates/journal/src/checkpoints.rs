//! Checkpoints: how far a source has read what it reads, kept with the records that it made of it.
//!
//! A batch carries the checkpoints that hold once it is appended. They are written in the note of its record, so they
//! are durable exactly when the record is. The journal keeps the newest value of each key in a [table](table), and
//! saves that in [two files](file) before a segment may be deleted. See "Checkpoints" in `design/journal.md`.

pub(crate) mod file;
pub(crate) mod table;

use crate::cursor::file::SINK_NAME_MAX;
use crate::record::NOTE_MAX;
use std::fmt;

/// The longest key of a checkpoint, in bytes.
pub const CHECKPOINT_KEY_MAX: usize = 32;
/// The longest value of a checkpoint, in bytes.
pub const CHECKPOINT_VALUE_MAX: usize = 255;

/// The first byte of a note that holds checkpoints.
const VERSION: u8 = 1;
/// Marks the length of a key whose checkpoint is removed.
const REMOVED: u8 = 0x80;

/// New values of checkpoints, and removals: empty by default, and then without memory of its own.
///
/// A note holds 2,048 bytes: a byte, and for each key its length (1 byte), the key, the value's length (1 byte), the
/// value. A source that fills it ends its batch.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Checkpoints(Option<Box<Note>>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Note {
    bytes: Vec<u8>,
    /// The only sink that the record is for; empty where it is for all.
    recipient: Box<str>,
}

/// Why a checkpoint was not taken in. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The note of one record holds no more: this one goes with the next batch.
    #[error("the batch has as many checkpoints as a record holds")]
    Full,
    /// The key is empty, or longer than [`CHECKPOINT_KEY_MAX`].
    #[error("the key of a checkpoint is not 1 to {CHECKPOINT_KEY_MAX} bytes long")]
    Key,
    /// The value is longer than [`CHECKPOINT_VALUE_MAX`].
    #[error("the value of a checkpoint is longer than {CHECKPOINT_VALUE_MAX} bytes")]
    Value,
}

impl Checkpoints {
    /// The most heap memory that one takes, in bytes. Its source declares it for each batch that it has under way.
    pub const MOST_BYTES: usize = NOTE_MAX + SINK_NAME_MAX + size_of::<Note>();

    /// Sets the checkpoint `key` to `value`. The last call for a key counts.
    ///
    /// # Errors
    /// When either has a wrong length, or a record's note has no room for it.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), CheckpointError> {
        if value.len() > CHECKPOINT_VALUE_MAX {
            return Err(CheckpointError::Value);
        }
        self.change(Change { key, value: Some(value) })
    }

    /// Removes the checkpoint `key`.
    ///
    /// # Errors
    /// When the key has a wrong length, or a record's note has no room for it.
    pub fn remove(&mut self, key: &[u8]) -> Result<(), CheckpointError> {
        self.change(Change { key, value: None })
    }

    /// Whether it changes nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|note| note.bytes.is_empty())
    }

    fn change(&mut self, change: Change<'_>) -> Result<(), CheckpointError> {
        if !(1..=CHECKPOINT_KEY_MAX).contains(&change.key.len()) {
            return Err(CheckpointError::Key);
        }
        let earlier = changes(self.note()).find(|(_, earlier)| earlier.key == change.key);
        let earlier = earlier.map(|(at, earlier)| at..at + earlier.len());
        let replaced = earlier.as_ref().map_or(0, |range| range.len());
        if self.note().len().max(1) - replaced + change.len() > NOTE_MAX {
            return Err(CheckpointError::Full);
        }
        let note = self.0.get_or_insert_default();
        if note.bytes.is_empty() {
            note.bytes.push(VERSION);
        }
        if let Some(earlier) = earlier {
            note.bytes.drain(earlier);
        }
        // Grown by what is needed, so that it never takes more than it declares.
        note.bytes.reserve_exact(change.len());
        change.encode(&mut note.bytes);
        Ok(())
    }

    /// Addresses the record to the sink `recipient` alone. It travels with the checkpoints because hardly any record has either.
    pub(crate) fn address(&mut self, recipient: &str) {
        self.0.get_or_insert_default().recipient = recipient.into();
    }

    /// The only sink that the record is for; empty where it is for all.
    pub(crate) fn recipient(&self) -> &str {
        self.0.as_ref().map_or("", |note| &note.recipient)
    }

    /// The bytes of the record's note.
    pub(crate) fn note(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |note| &note.bytes)
    }

    /// Their number, in bytes: at most [`NOTE_MAX`].
    pub(crate) fn note_len(&self) -> u16 {
        u16::try_from(self.note().len()).unwrap_or(0)
    }
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(changes(self.note()).map(|(_, change)| (change.key, change.value))).finish()
    }
}

/// The new value of one checkpoint, or its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: Option<&'a [u8]>,
}

impl<'a> Change<'a> {
    /// Its encoded length, in bytes.
    pub(crate) fn len(&self) -> usize {
        1 + self.key.len() + self.value.map_or(0, |value| 1 + value.len())
    }

    /// Appends it to `out`. The lengths fit their bytes: see [`Checkpoints::set`].
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let len = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap_or(0);
        out.push(len(self.key) | if self.value.is_none() { REMOVED } else { 0 });
        out.extend_from_slice(self.key);
        if let Some(value) = self.value {
            out.push(len(value));
            out.extend_from_slice(value);
        }
    }

    /// The change at the start of `bytes`, if there is a whole one.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Change<'a>> {
        let (first, rest) = bytes.split_first()?;
        let (key, rest) = rest.split_at_checked(usize::from(first & !REMOVED))?;
        if !(1..=CHECKPOINT_KEY_MAX).contains(&key.len()) {
            return None;
        }
        if first & REMOVED != 0 {
            return Some(Change { key, value: None });
        }
        let (len, rest) = rest.split_first()?;
        Some(Change { key, value: Some(rest.get(..usize::from(*len))?) })
    }
}

/// The changes in a record's note and where in it each begins, up to what this version does not know.
pub(crate) fn changes(note: &[u8]) -> impl Iterator<Item = (usize, Change<'_>)> {
    let mut at = if note.first() == Some(&VERSION) { 1 } else { note.len() };
    std::iter::from_fn(move || {
        let change = Change::decode(note.get(at..)?)?;
        let begin = at;
        at += change.len();
        Some((begin, change))
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
