//! The two files of the table of checkpoints, written in turn, so that no crash can take both.
//!
//! The newest that a sync has made durable is never written to. Each file is reserved at its full length when it is made,
//! so that a full disk does not stop the table.

use super::{CHECKPOINT_KEY_MAX, CHECKPOINT_VALUE_MAX, Change};
use crate::record::{Encoder, u32_at, u64_at};
use std::io::{self, IoSlice};
use std::sync::Arc;
use tidegate_files::folder::{File, Files, write_all};

const NAMES: [&str; 2] = ["checkpoints.0", "checkpoints.1"];
/// A file on its way to one of those names.
const FRESH: &str = "checkpoints.new";
const MAGIC: [u8; 4] = [b'T', b'G', b'C', 1];
/// The bytes before the entries.
const HEAD: usize = 64;
/// Where the checksum is: behind what it covers of the head.
const CHECKSUM: usize = HEAD - 4;
/// An entry at its longest, with its two lengths, in bytes.
const ENTRY_MAX: u64 = 2 + CHECKPOINT_KEY_MAX as u64 + CHECKPOINT_VALUE_MAX as u64;
/// No table is longer, in bytes: what a damaged length may make the reader allocate.
const LONGEST: u64 = 1 << 30;

/// The header of a saved table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableHead {
    /// The journal's identity.
    pub(crate) salt: u64,
    /// The notes of all records before it are in the table.
    pub(crate) sequence: u64,
    /// The items of those records.
    pub(crate) items: u64,
}

/// A whole table as it stands in a file.
pub(crate) struct StoredTable {
    pub(crate) head: TableHead,
    generation: u64,
    slot: usize,
    bytes: Vec<u8>,
}

impl StoredTable {
    /// Reads both files: the whole tables in them, the newest first, and whether a file is there at all.
    ///
    /// # Errors
    /// When a file that is there cannot be opened. What cannot be read of an open one is damage.
    pub(crate) fn read(files: &dyn Files, list: &[(String, u64)]) -> io::Result<(Vec<StoredTable>, bool)> {
        let (mut whole, mut any) = (Vec::new(), false);
        for (slot, name) in NAMES.into_iter().enumerate() {
            let Some((_, len)) = list.iter().find(|(listed, _)| listed == name) else { continue };
            any = true;
            whole.extend(Self::read_one(&*files.open(name, false)?, slot, *len));
        }
        whole.sort_by_key(|table: &StoredTable| std::cmp::Reverse(table.generation));
        Ok((whole, any))
    }

    /// The table in a file of `len` bytes, if it is whole.
    fn read_one(file: &dyn File, slot: usize, len: u64) -> Option<StoredTable> {
        let mut head = [0; HEAD];
        if file.read_at(&mut head, 0).ok()? < HEAD || head.first_chunk() != Some(&MAGIC) {
            return None;
        }
        let entries = u64::from(u32_at(&head, 4));
        let whole = HEAD as u64 + entries;
        if whole > len || whole > LONGEST {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(whole).ok()?];
        if file.read_at(&mut bytes, 0).ok()? < bytes.len() || checksum(&bytes) != u32_at(&bytes, CHECKSUM) {
            return None;
        }
        Some(StoredTable {
            generation: u64_at(&bytes, 8),
            head: TableHead {
                salt: u64_at(&bytes, 16),
                sequence: u64_at(&bytes, 24),
                items: u64_at(&bytes, 32),
            },
            slot,
            bytes,
        })
    }

    /// Its entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Change<'_>> {
        let mut rest = self.bytes.get(HEAD..).unwrap_or_default();
        std::iter::from_fn(move || {
            let change = Change::decode(rest)?;
            rest = rest.get(change.len()..).unwrap_or_default();
            Some(change)
        })
    }
}

/// A table to be saved: the head, then the entries that `encode` appends, `len` bytes of them.
pub(crate) struct EncodedTable(Vec<u8>);

impl EncodedTable {
    pub(crate) fn new(head: TableHead, len: usize, encode: impl FnOnce(&mut Vec<u8>)) -> EncodedTable {
        let mut bytes = Vec::with_capacity(HEAD + len);
        bytes.resize(HEAD, 0);
        encode(&mut bytes);
        let entries = u32::try_from(bytes.len() - HEAD).unwrap_or(0);
        let mut out = Encoder { bytes: &mut bytes, at: 0 };
        out.put(&MAGIC);
        out.put(&entries.to_le_bytes());
        out.put(&[0; 8]);
        out.put(&head.salt.to_le_bytes());
        out.put(&head.sequence.to_le_bytes());
        out.put(&head.items.to_le_bytes());
        EncodedTable(bytes)
    }

    fn seal(&mut self, generation: u64) {
        Encoder { bytes: &mut self.0, at: 8 }.put(&generation.to_le_bytes());
        let sum = checksum(&self.0);
        Encoder { bytes: &mut self.0, at: CHECKSUM }.put(&sum.to_le_bytes());
    }
}

/// CRC32C of everything but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    let head = crc32c::crc32c(bytes.get(..CHECKSUM).unwrap_or_default());
    crc32c::crc32c_append(head, bytes.get(HEAD..).unwrap_or_default())
}

/// Writes a table again, where it is, and syncs it and its name.
fn prove(files: &dyn Files, table: &StoredTable) -> io::Result<Arc<dyn File>> {
    let file = files.open(NAMES.get(table.slot).copied().unwrap_or(FRESH), true)?;
    write_all(&*file, &mut [IoSlice::new(&table.bytes)], 0)?;
    file.sync()?;
    files.sync_names()?;
    Ok(file)
}

/// The two files, open for writing.
#[derive(Default)]
pub(crate) struct TableFiles {
    /// `None`: there is none, or it is not to be believed. It is made anew.
    slots: [Option<Arc<dyn File>>; 2],
    /// The one that holds the newest table that is known to be durable.
    durable: Option<usize>,
    generation: u64,
    /// The length to reserve, in bytes.
    reserve: u64,
}

impl TableFiles {
    /// Files for tables of up to `limit` checkpoints.
    pub(crate) fn new(limit: usize) -> TableFiles {
        let reserve = (limit as u64).saturating_mul(ENTRY_MAX).saturating_add(HEAD as u64).min(LONGEST);
        TableFiles { reserve, ..TableFiles::default() }
    }

    /// Goes on with files in which `newest` is the table that counts. It may be in the page cache only, so it is
    /// written again, where it is, and synced: nothing of the other file may be overwritten before. True when that
    /// succeeded; else the next table goes to a new file.
    pub(crate) fn resume(&mut self, files: &dyn Files, newest: &StoredTable) -> bool {
        self.generation = newest.generation;
        match prove(files, newest) {
            Ok(file) => {
                let other = 1 - newest.slot.min(1);
                let there = NAMES.get(other).and_then(|name| files.open(name, true).ok());
                self.put(newest.slot, Some(file));
                self.put(other, there);
                self.durable = Some(newest.slot);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the journal's checkpoints cannot be made durable: they are written anew");
                false
            }
        }
    }

    /// Whether a table is known to be durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    /// Makes `table` durable. After an error the newest one before it still is.
    pub(crate) fn save(&mut self, files: &dyn Files, mut table: EncodedTable) -> io::Result<()> {
        let first = self.durable.is_none();
        self.save_to(files, self.durable.map_or(0, |durable| 1 - durable), &mut table)?;
        if first {
            // Both are reserved now, while there is room. When this fails the next table tries again.
            drop(self.save_to(files, 1, &mut table));
        }
        Ok(())
    }

    fn save_to(&mut self, files: &dyn Files, slot: usize, table: &mut EncodedTable) -> io::Result<()> {
        // Never one generation twice, whatever of it has arrived.
        self.generation += 1;
        table.seal(self.generation);
        let known = self.slots.get_mut(slot).and_then(Option::take);
        let file = match known {
            Some(file) => {
                write_all(&*file, &mut [IoSlice::new(&table.0)], 0)?;
                file.sync()?;
                file
            }
            None => self.create(files, slot, table)?,
        };
        self.put(slot, Some(file));
        self.durable = Some(slot);
        Ok(())
    }

    /// Makes a file anew. It has its name only when it is whole and durable, so what had the name stays until then.
    fn create(&self, files: &dyn Files, slot: usize, table: &EncodedTable) -> io::Result<Arc<dyn File>> {
        match files.remove(FRESH) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = files.create(FRESH)?;
        file.allocate(self.reserve.max(table.0.len() as u64))?;
        write_all(&*file, &mut [IoSlice::new(&table.0)], 0)?;
        file.sync()?;
        files.rename(FRESH, NAMES.get(slot).copied().unwrap_or(FRESH))?;
        files.sync_names()?;
        Ok(file)
    }

    fn put(&mut self, slot: usize, file: Option<Arc<dyn File>>) {
        if let Some(known) = self.slots.get_mut(slot) {
            *known = file;
        }
    }
}

/// How many checkpoints the newest table in `files` has, and up to which sequence it has them: the outer nothing where there
/// never was a table, the inner where none can be read. Changes nothing.
pub(crate) fn inspect(files: &dyn Files, list: &[(String, u64)]) -> Option<Option<(usize, u64)>> {
    let Ok((whole, any)) = StoredTable::read(files, list) else { return Some(None) };
    any.then(|| whole.first().map(|table| (table.entries().count(), table.head.sequence)))
}
