//! The checkpoints at opening: the saved table, and the notes of the records behind it.

use super::disk::DiskContents;
use crate::checkpoints::file::StoredTable;
use crate::record::key;
use crate::record_scanner::RecordScanner;
use std::io::{self, IoSlice};
use tidegate_files::folder::{File, Files, write_all};

/// The bytes rewritten with one call.
const BLOCK: usize = 64 << 10;

/// The contents of the two files of the table.
pub(super) struct FoundTables {
    whole: Vec<StoredTable>,
    /// A file was there, whether or not it could be read.
    any: bool,
}

impl FoundTables {
    /// # Errors
    /// When a file that is there cannot be opened: sources would begin again with what they have sent.
    pub(super) fn read(files: &dyn Files, list: &[(String, u64)]) -> io::Result<FoundTables> {
        let (whole, any) = StoredTable::read(files, list)?;
        Ok(FoundTables { whole, any })
    }

    /// The journal's identity as the newest table says it.
    pub(super) fn salt(&self) -> Option<u64> {
        self.whole.first().map(|table| table.head.salt)
    }

    /// The newest table of the journal with this identity.
    pub(super) fn newest(&self, salt: Option<u64>) -> Option<&StoredTable> {
        self.whole.iter().find(|table| salt.is_none_or(|salt| salt == table.head.salt))
    }
}

impl DiskContents {
    /// Goes on with the newest table. Segments that end at or before the sequence returned may be deleted: that table is known
    /// to be durable, so nothing is lost with their notes.
    pub(super) fn resume_tables(&mut self, files: &dyn Files, found: &FoundTables) -> u64 {
        let covered = match found.newest(self.salt) {
            Some(newest) if self.tables.resume(files, newest) => newest.head.sequence,
            None if !found.any => u64::MAX,
            _ => 0,
        };
        self.checkpoints.saved_to = covered;
        covered
    }

    /// Puts the checkpoints together. Call it when the segments and their last record are known, after
    /// [`resume_tables`](Self::resume_tables).
    pub(super) fn restore_checkpoints(&mut self, files: &dyn Files, found: &FoundTables) {
        let newest = found.newest(self.salt);
        // Without a table there are no notes, unless somebody has deleted it.
        self.recovery.lost_checkpoints = newest.is_none() && (found.any || self.noted.is_some());
        if let Some(newest) = newest {
            self.checkpoints.load(newest);
        }
        let from = newest.map_or(0, |table| table.head.sequence);
        if newest.is_some() || self.recovery.lost_checkpoints {
            // As the table is loaded: the limit that the notes were written under may have been higher.
            let limit = self.checkpoints.set_limit(usize::MAX);
            self.replay_notes(files, from);
            self.checkpoints.set_limit(limit);
            let proven = self.tables.is_durable();
            self.checkpoints.saved_to = if proven { from } else { 0 };
            self.checkpoints.unsaved = !proven || self.recovery.doubtful_checkpoints;
        }
        self.checkpoints.has_doubtful_notes = self.recovery.doubtful_checkpoints;
        self.recovery.checkpoints = self.checkpoints.len();
    }

    /// Applies the notes of all whole records from the sequence `from` on.
    fn replay_notes(&mut self, files: &dyn Files, from: u64) {
        for (number, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(number + 1).map(|next| next.first);
            let bound = next.unwrap_or(u64::MAX);
            // The last one was read to its end already.
            if bound <= from || (next.is_none() && self.noted.is_none()) {
                continue;
            }
            let Ok(file) = files.open(&segment.file_name(), false) else { continue };
            let key = self.salt.map(|salt| key(salt, segment.first));
            let (mut walker, mut at, mut sequence) = (RecordScanner::new(file, key), 0, segment.first);
            while let Some((found, header)) = walker.find(at, segment.end, sequence..bound) {
                (at, sequence) = (found + header.size(), header.sequence + 1);
                if header.note_len == 0 || header.sequence < from {
                    continue;
                }
                let note = walker.note(found, &header).map(<[u8]>::to_vec);
                if let (Some(note), true) = (note, walker.is_whole(found, &header)) {
                    self.checkpoints.apply(&note);
                }
            }
        }
    }
}

/// Writes what is between `from` and `to` again, where it is. A sync that failed in an earlier life leaves pages that the
/// kernel takes for written; a sync alone would not write them, and the checkpoints of their records would be believed.
pub(super) fn rewrite(file: &dyn File, from: u64, to: u64) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let mut at = from;
    while at < to {
        let wanted = usize::try_from(to - at).unwrap_or(BLOCK).min(BLOCK);
        let read = file.read_at(block.get_mut(..wanted).unwrap_or_default(), at)?;
        if read == 0 {
            return Ok(());
        }
        write_all(file, &mut [IoSlice::new(block.get(..read).unwrap_or_default())], at)?;
        at += read as u64;
    }
    Ok(())
}
