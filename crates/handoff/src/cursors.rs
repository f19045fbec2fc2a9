//! The saved cursors: two files that are written in turn, so that one of them is always a whole save.

use crate::address::{ADDRESS_MAX, is_valid};
use crate::segment::{Decoded, VERSION};
use crate::totals::{Position, TOTALS, Totals, u16_at, u32_at, u64_at};
use std::io::{self, IoSlice};
use std::sync::Arc;
use tidegate_files::folder::{File, Files, write_all};

/// The files' names.
pub(crate) const NAMES: [&str; 2] = ["cursors.0", "cursors.1"];
/// The most bytes that one member takes in a file.
pub(crate) const ENTRY_MAX: usize = 2 + ADDRESS_MAX + 2 * POSITION + 2 * 8;
const POSITION: usize = 16 + TOTALS;
const MAGIC: [u8; 4] = [0xF5, b'T', b'G', 0xA3];
/// The bytes before the first member: magic, version, key, generation, members, length, checksum, zero.
const START: usize = 40;
const CHECKSUM: usize = 32;
/// The longest file that is read, in bytes: some fifty thousand members.
const FILE_MAX: u64 = 16 << 20;

/// The highest number that a position may have.
const PLAUSIBLE_MAX: u64 = u64::MAX / 2;

/// One member, as saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedMember {
    pub(crate) address: String,
    pub(crate) cursor: Position,
    /// Behind the last record that was durable.
    pub(crate) head: Position,
    pub(crate) damaged_segments: Option<(u64, u64)>,
}

/// All members, as saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saved {
    pub(crate) key: u64,
    pub(crate) generation: u64,
    pub(crate) members: Vec<SavedMember>,
}

/// The two files.
pub(crate) struct CursorFiles {
    slots: [Option<Arc<dyn File>>; 2],
    generation: u64,
    /// The slot of the last save that is durable. The next goes to the other one.
    newest: usize,
    buffer: Vec<u8>,
}

/// The cursors as they were read.
pub(crate) struct Loaded {
    pub(crate) files: CursorFiles,
    pub(crate) saved: Option<Saved>,
    /// There are files, and none can be read.
    pub(crate) lost: bool,
    /// A file of another version, and the version.
    pub(crate) other_version: Option<(&'static str, u32)>,
}

impl CursorFiles {
    /// Reads the newest whole save.
    pub(crate) fn load(files: &dyn Files) -> io::Result<Loaded> {
        let mut slots = [None, None];
        let mut newest: Option<(usize, Saved, Vec<u8>)> = None;
        let (mut other_version, mut content) = (None, false);
        for (index, (name, slot)) in NAMES.into_iter().zip(&mut slots).enumerate() {
            let file = match files.open(name, true) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let bytes = read(&*file)?;
            content |= bytes.iter().any(|byte| *byte != 0);
            *slot = Some(file);
            match Saved::decode(&bytes) {
                Decoded::Whole(saved)
                    if newest.as_ref().is_none_or(|(_, known, _)| known.generation < saved.generation) =>
                {
                    newest = Some((index, saved, bytes));
                }
                Decoded::OtherVersion(version) => other_version = Some((name, version)),
                _ => {}
            }
        }
        if let Some((index, _, bytes)) = &newest
            && let Some(Some(file)) = slots.get(*index)
        {
            // An earlier process may have had a failing sync, after which the kernel believes that these pages are written.
            // The same bytes again harm nothing, whichever of them arrive.
            write_all(&**file, &mut [IoSlice::new(bytes)], 0)?;
            file.sync()?;
        }
        let lost = content && newest.is_none();
        let (newest, saved) = newest.map_or((1, None), |(index, saved, _)| (index, Some(saved)));
        let generation = saved.as_ref().map_or(0, |saved| saved.generation);
        let files = CursorFiles { slots, generation, newest, buffer: Vec::new() };
        Ok(Loaded { files, saved, lost, other_version })
    }

    /// Creates the files that are missing, with space for `members`: no save needs any more on a full disk.
    pub(crate) fn reserve(&mut self, files: &dyn Files, members: usize) -> io::Result<()> {
        for (name, slot) in NAMES.into_iter().zip(&mut self.slots) {
            let file = match slot {
                Some(file) => file,
                None => slot.insert(files.create(name)?),
            };
            let wanted = (START + members * ENTRY_MAX) as u64;
            if file.size()? < wanted {
                file.allocate(wanted)?;
            }
        }
        files.sync_names()
    }

    /// How many saves there were, ever.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts on behind `generation` where the files say less: they were lost.
    pub(crate) fn begin_behind(&mut self, generation: u64) {
        self.generation = self.generation.max(generation);
    }

    /// Makes a save durable; the one before stays until it is.
    pub(crate) fn save<'a>(
        &mut self,
        files: &dyn Files,
        (key, durable): (u64, bool),
        members: impl Iterator<Item = (&'a str, Position, Position, Option<(u64, u64)>)>,
    ) -> io::Result<()> {
        let slot = 1 - self.newest.min(1);
        encode(&mut self.buffer, key, self.generation + 1, members);
        if self.slots.get(slot).is_none_or(Option::is_none) {
            self.reserve(files, 0)?;
        }
        let Some(Some(file)) = self.slots.get(slot) else { return Err(io::ErrorKind::NotFound.into()) };
        write_all(&**file, &mut [IoSlice::new(&self.buffer)], 0)?;
        if durable {
            file.sync()?;
        }
        self.newest = slot;
        self.generation += 1;
        Ok(())
    }
}

fn read(file: &dyn File) -> io::Result<Vec<u8>> {
    let len = file.size()?.min(FILE_MAX) as usize;
    let mut bytes = vec![0; len];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    // Behind the save there is space, or the end of an earlier and longer one.
    if let Some(used) = u32_at(&bytes, 28) {
        bytes.truncate((used as usize).max(START));
    }
    Ok(bytes)
}

fn encode<'a>(
    out: &mut Vec<u8>,
    key: u64,
    generation: u64,
    members: impl Iterator<Item = (&'a str, Position, Position, Option<(u64, u64)>)>,
) {
    out.clear();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&key.to_le_bytes());
    out.extend_from_slice(&generation.to_le_bytes());
    out.resize(START, 0);
    let mut count: u32 = 0;
    for (address, cursor, head, damaged) in members {
        out.extend_from_slice(&u16::try_from(address.len()).unwrap_or(0).to_le_bytes());
        out.extend_from_slice(address.as_bytes());
        for position in [cursor, head] {
            out.extend_from_slice(&position.segment.to_le_bytes());
            out.extend_from_slice(&position.offset.to_le_bytes());
            out.extend_from_slice(&position.before.encode());
        }
        let (from, to) = damaged.unwrap_or((u64::MAX, 0));
        out.extend_from_slice(&from.to_le_bytes());
        out.extend_from_slice(&to.to_le_bytes());
        count += 1;
    }
    let len = u32::try_from(out.len()).unwrap_or(0);
    put(out, 24, count);
    put(out, 28, len);
    let sum = checksum(out);
    put(out, CHECKSUM, sum);
}

fn put(out: &mut [u8], at: usize, value: u32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

/// Of everything but itself.
fn checksum(bytes: &[u8]) -> u32 {
    let sum = crc32c::crc32c(bytes.get(..CHECKSUM).unwrap_or_default());
    crc32c::crc32c_append(sum, bytes.get(CHECKSUM + 4..).unwrap_or_default())
}

impl Saved {
    fn decode(bytes: &[u8]) -> Decoded<Saved> {
        let whole = bytes.starts_with(&MAGIC)
            && u32_at(bytes, 28) == u32::try_from(bytes.len()).ok()
            && u32_at(bytes, CHECKSUM) == Some(checksum(bytes));
        match u32_at(bytes, 4).filter(|_| whole) {
            None => Decoded::Broken,
            Some(VERSION) => Self::fields(bytes).map_or(Decoded::Broken, Decoded::Whole),
            Some(other) => Decoded::OtherVersion(other),
        }
    }

    fn fields(bytes: &[u8]) -> Option<Saved> {
        let mut members = Vec::new();
        let mut rest = bytes.get(START..)?;
        for _ in 0..u32_at(bytes, 24)? {
            let (address, fixed) = rest.get(2..)?.split_at_checked(usize::from(u16_at(rest, 0)?))?;
            let address = str::from_utf8(address).ok().filter(|address| is_valid(address))?.to_owned();
            let (from, to) = (u64_at(fixed, 2 * POSITION)?, u64_at(fixed, 2 * POSITION + 8)?);
            members.push(SavedMember {
                address,
                cursor: position(fixed)?,
                head: position(fixed.get(POSITION..)?)?,
                damaged_segments: (from <= to).then_some((from, to)),
            });
            rest = fixed.get(2 * POSITION + 16..)?;
        }
        Some(Saved { key: u64_at(bytes, 8)?, generation: u64_at(bytes, 16)?, members })
    }
}

fn position(bytes: &[u8]) -> Option<Position> {
    let (segment, offset) = (u64_at(bytes, 0)?, u64_at(bytes, 8)?);
    let before = Totals::decode(bytes.get(16..)?)?;
    // No calculation with them may overflow.
    let plausible = [segment, offset, before.records, before.items, before.bytes];
    plausible.iter().all(|value| *value <= PLAUSIBLE_MAX).then_some(Position { segment, offset, before })
}
