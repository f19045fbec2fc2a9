//! A cursor's file: four places that are written in turn, so that no crash can take them all.
//!
//! Of the four, one is the newest that `fdatasync` has made durable, one may be on its way there, one is the
//! newest written. The next write goes to one that is none of these. So a power cut that tears every page in
//! flight leaves the durable one, and a kill in the middle of a write leaves the newest one before it.

use super::{Cursor, ENCODED_LEN, RestoredCursor};
use std::io::{self, IoSlice};
use std::sync::Arc;
use tidegate_files::folder::{File, Files, write_all};

const SLOTS: usize = 4;
/// Places are this far apart, in bytes: no two share a page or a physical sector.
const SLOT_DISTANCE: u64 = 4096;
const SUFFIX: &str = ".cursor";

/// The file name of the sink `name`.
pub(crate) fn file_name(name: &str) -> String {
    format!("{name}{SUFFIX}")
}

/// The sink whose cursor the file called `file` holds.
pub(crate) fn sink_of(file: &str) -> Option<&str> {
    file.strip_suffix(SUFFIX).filter(|name| is_name(name))
}

/// The longest name of a sink, in bytes.
pub(crate) const SINK_NAME_MAX: usize = 64;

/// Sinks are named in letters, digits, `-`, `_` and `.`, not beginning with a dot, [`SINK_NAME_MAX`] at most.
pub(crate) fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=SINK_NAME_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(legal)
}

/// The newest cursor in the file, if there is one that can be read. Changes nothing.
pub(crate) fn read(file: &dyn File) -> Option<RestoredCursor> {
    places(file).into_iter().flatten().max_by_key(|written| written.generation)
}

fn places(file: &dyn File) -> [Option<RestoredCursor>; SLOTS] {
    std::array::from_fn(|place| {
        let mut bytes = [0; ENCODED_LEN];
        file.read_at(&mut bytes, place as u64 * SLOT_DISTANCE).ok()?;
        RestoredCursor::decode(&bytes)
    })
}

/// A cursor's file, open for writing.
pub(crate) struct CursorFile {
    file: Arc<dyn File>,
    generation: u64,
    newest: usize,
    /// The low-water mark that the newest says.
    newest_low: u64,
    durable: usize,
    syncing: usize,
    /// Something is written that no `fdatasync` has covered.
    dirty: bool,
    /// The newest is not what the cursor is: it could not be written, or the kernel may have forgotten it
    /// after an `fdatasync` that failed.
    stale: bool,
}

impl CursorFile {
    /// Creates the file for `cursor`, durably. It has its name only when it is whole: a sink whose cursor
    /// cannot be read must never become one that has none, for its data would be deleted.
    pub(crate) fn create(
        files: &dyn Files,
        name: &str,
        cursor: &Cursor,
        salt: u64,
    ) -> io::Result<CursorFile> {
        let name = file_name(name);
        let fresh = format!("{name}.new");
        match files.remove(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = files.create(&fresh)?;
        file.allocate(SLOTS as u64 * SLOT_DISTANCE)?;
        let mut this = CursorFile {
            file,
            generation: 0,
            newest: 0,
            newest_low: 0,
            durable: 0,
            syncing: 0,
            dirty: false,
            stale: false,
        };
        this.write(|generation| (cursor.encode(salt, generation), cursor.low))?;
        this.file.sync()?;
        this.end_sync(true);
        files.rename(&fresh, &name)?;
        files.sync_names()?;
        Ok(this)
    }

    /// Goes on with a file that can be read. Nothing of it may be overwritten before the newest is known to
    /// be durable. A sync alone would not tell: one that failed in an earlier life leaves pages that the
    /// kernel takes for written. So the newest is written again, where it is, and synced.
    pub(crate) fn resume(file: Arc<dyn File>) -> io::Result<Option<(CursorFile, RestoredCursor)>> {
        let places = places(&*file).into_iter().enumerate();
        let newest = places.filter_map(|(at, place)| Some((at, place?)));
        let Some((at, written)) = newest.max_by_key(|(_, written)| written.generation) else {
            return Ok(None);
        };
        let mut bytes = [0; ENCODED_LEN];
        file.read_at(&mut bytes, at as u64 * SLOT_DISTANCE)?;
        write_all(&*file, &mut [IoSlice::new(&bytes)], at as u64 * SLOT_DISTANCE)?;
        file.sync()?;
        let generation = written.generation;
        let this = CursorFile {
            file,
            generation,
            newest: at,
            newest_low: written.cursor.low,
            durable: at,
            syncing: at,
            dirty: false,
            stale: false,
        };
        Ok(Some((this, written)))
    }

    /// Writes the cursor to the page cache: it survives the end of the process from now on. `look` encodes
    /// it with the generation it is given, and says its low-water mark.
    pub(crate) fn write(&mut self, look: impl FnOnce(u64) -> ([u8; ENCODED_LEN], u64)) -> io::Result<()> {
        let taken = [self.newest, self.durable, self.syncing];
        let place = (0..SLOTS).find(|place| !taken.contains(place)).unwrap_or(0);
        let (bytes, low) = look(self.generation + 1);
        self.stale = true;
        self.dirty = true;
        write_all(&*self.file, &mut [IoSlice::new(&bytes)], place as u64 * SLOT_DISTANCE)?;
        self.generation += 1;
        (self.newest, self.newest_low) = (place, low);
        self.stale = false;
        Ok(())
    }

    /// Begins to make the cursor durable, whose low-water mark is `low`, unless it is: the caller calls `sync`
    /// on the file, holding no lock, and then [`end_sync`](Self::end_sync). Also gives the mark that is durable
    /// then.
    pub(crate) fn begin_sync(
        &mut self,
        low: u64,
        look: impl FnOnce(u64) -> ([u8; ENCODED_LEN], u64),
    ) -> io::Result<Option<(Arc<dyn File>, u64)>> {
        // A gap moves the cursor and is not written by itself.
        if self.stale || self.newest_low != low {
            self.write(look)?;
        }
        if !self.dirty {
            return Ok(None);
        }
        self.syncing = self.newest;
        self.dirty = false;
        Ok(Some((self.file.clone(), self.newest_low)))
    }

    /// After a failed sync nothing written before it may be believed to become durable: the next one begins
    /// with writing the cursor anew.
    pub(crate) fn end_sync(&mut self, synced: bool) {
        if synced {
            self.durable = self.syncing;
        } else {
            (self.stale, self.dirty) = (true, true);
        }
    }
}
