//! A folder in memory that fails as real ones do: writes that stop half way, disks that fill up, syncs that
//! fail and forget, and power cuts that keep some of what was not synced, in any order.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    clippy::must_use_candidate,
    reason = "a test ends where it fails"
)]

use super::{File, Files};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The unit that a device writes wholly or, when cut off, partly, in bytes.
const SECTOR: usize = 512;

/// Random numbers that a seed repeats.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers that belong to `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// True as often as this, in a thousand.
    pub fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }
}

/// The folder. A handle; clones are the same folder.
#[derive(Clone)]
pub struct SimulatedFiles(Arc<Mutex<DiskState>>);

struct DiskState {
    dice: Random,
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since they were last durable.
    changes: Vec<Change>,
    /// Calls until the machine stops.
    stops_in: Option<u64>,
    stopped: bool,
    /// How often a call fails, in a thousand.
    faults: u64,
    /// How much may be stored, in bytes.
    room: usize,
    /// Files that cannot be written to.
    broken: BTreeSet<usize>,
}

#[derive(Default, Clone)]
struct Inode {
    cached: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
    /// Errors in writing it back, ever.
    errors: u64,
}

enum Change {
    Set(String, usize),
    Gone(String),
}

impl SimulatedFiles {
    /// An empty folder whose failures follow from `seed`.
    pub fn new(seed: u64) -> SimulatedFiles {
        SimulatedFiles(Arc::new(Mutex::new(DiskState {
            dice: Random::new(seed),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            stops_in: None,
            stopped: false,
            faults: 0,
            room: usize::MAX,
            broken: BTreeSet::new(),
        })))
    }

    /// A folder with these files.
    pub fn of(contents: &BTreeMap<String, Vec<u8>>) -> SimulatedFiles {
        let this = SimulatedFiles::new(0);
        let mut world = this.world();
        for (name, bytes) in contents {
            let inode = world.inodes.len();
            let (cached, durable) = (bytes.clone(), bytes.clone());
            world.inodes.push(Inode { cached, durable, ..Inode::default() });
            world.names.insert(name.clone(), inode);
        }
        world.durable_names = world.names.clone();
        drop(world);
        this
    }

    fn world(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    /// Makes the machine stop in the middle of the call after the next `calls`.
    pub fn stop_in(&self, calls: u64) {
        self.world().stops_in = Some(calls);
    }

    /// Stops it now.
    pub fn stop(&self) {
        self.world().stopped = true;
    }

    /// Whether the machine has stopped.
    pub fn is_stopped(&self) -> bool {
        self.world().stopped
    }

    /// How often a call fails from now on, in a thousand.
    pub fn set_faults(&self, in_a_thousand: u64) {
        self.world().faults = in_a_thousand;
    }

    /// Makes every write to the file with this name fail.
    pub fn fail_writes_of(&self, name: &str) {
        let mut world = self.world();
        let inode = world.names[name];
        world.broken.insert(inode);
    }

    /// How many bytes the disk holds.
    pub fn set_room(&self, bytes: usize) {
        self.world().room = bytes;
    }

    /// The process was killed: what was written is still in the page cache.
    pub fn restart_process(&self) {
        let mut world = self.world();
        world.stopped = false;
        world.stops_in = None;
        world.broken.clear();
    }

    /// The power was cut: what was not synced is there, or is not, or is there in part.
    pub fn restart_machine(&self) {
        let mut world = self.world();
        let changes = world.changes.len() as u64;
        let kept = world.dice.below(changes + 1) as usize;
        let mut names = world.durable_names.clone();
        for change in world.changes.drain(..).take(kept) {
            change.apply(&mut names);
        }
        world.durable_names.clone_from(&names);
        world.names = names;
        let DiskState { dice, inodes, .. } = &mut *world;
        for inode in inodes {
            inode.lose_power(dice);
        }
        drop(world);
        self.restart_process();
    }

    /// Every file's name and bytes.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let world = self.world();
        world.names.iter().map(|(name, inode)| (name.clone(), world.inodes[*inode].cached.clone())).collect()
    }
}

impl DiskState {
    /// Counts a call. An error when the machine has stopped or the call fails; true when it stops in the
    /// middle of this call.
    fn call(&mut self, may_fail: bool) -> io::Result<bool> {
        if self.stopped {
            return Err(io::Error::other("the machine has stopped"));
        }
        if let Some(left) = &mut self.stops_in {
            if *left == 0 {
                self.stopped = true;
                return Ok(true);
            }
            *left -= 1;
        }
        if may_fail && self.dice.chance(self.faults) {
            let full = self.dice.chance(500);
            return Err(if full { ErrorKind::StorageFull.into() } else { io::Error::other("i/o error") });
        }
        Ok(false)
    }

    fn stored(&self) -> usize {
        self.names.values().map(|inode| self.inodes[*inode].cached.len()).sum()
    }

    fn rename(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Change::Set(name, inode) => names.insert(name.clone(), *inode),
            Change::Gone(name) => names.remove(name),
        };
    }
}

impl Inode {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.cached.len() < end {
            self.cached.resize(end, 0);
        }
        self.cached[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..end.div_ceil(SECTOR));
    }

    fn set_len(&mut self, len: usize) {
        if len < self.cached.len() {
            self.dirty.retain(|sector| sector * SECTOR < len);
            self.dirty.insert(len / SECTOR);
        }
        self.cached.resize(len, 0);
    }

    /// Makes the first `bytes` of a dirty sector durable.
    fn keep(&mut self, sector: usize, bytes: usize) {
        let from = sector * SECTOR;
        let to = (from + bytes).min(self.cached.len()).min(self.durable.len());
        if from < to {
            self.durable[from..to].copy_from_slice(&self.cached[from..to]);
        }
    }

    fn sync(&mut self) {
        self.durable.resize(self.cached.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            self.keep(sector, SECTOR);
        }
    }

    /// Some of it arrives, and the kernel forgets that the rest has not: it tells each description once.
    fn fail_to_sync(&mut self, dice: &mut Random) {
        self.errors += 1;
        for sector in std::mem::take(&mut self.dirty) {
            if dice.chance(500) {
                self.keep(sector, SECTOR);
            }
        }
    }

    fn lose_power(&mut self, dice: &mut Random) {
        if dice.chance(500) {
            self.durable.resize(self.cached.len(), 0);
        }
        for sector in std::mem::take(&mut self.dirty) {
            match dice.below(4) {
                0 => self.keep(sector, dice.below(SECTOR as u64) as usize),
                1 | 2 => self.keep(sector, SECTOR),
                _ => {}
            }
        }
        self.cached = self.durable.clone();
    }
}

impl Files for SimulatedFiles {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut world = self.world();
        world.call(false)?;
        Ok(world
            .names
            .iter()
            .map(|(name, inode)| (name.clone(), world.inodes[*inode].cached.len() as u64))
            .collect())
    }

    fn open(&self, name: &str, _write: bool) -> io::Result<Arc<dyn File>> {
        let mut world = self.world();
        world.call(false)?;
        let inode = *world.names.get(name).ok_or(ErrorKind::NotFound)?;
        let told = AtomicU64::new(world.inodes[inode].errors);
        Ok(Arc::new(SimulatedFile { folder: self.clone(), inode, told }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut world = self.world();
        if world.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        world.call(true)?;
        let inode = world.inodes.len();
        world.inodes.push(Inode::default());
        world.rename(Change::Set(name.into(), inode));
        Ok(Arc::new(SimulatedFile { folder: self.clone(), inode, told: AtomicU64::new(0) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.world();
        world.call(true)?;
        let inode = *world.names.get(from).ok_or(ErrorKind::NotFound)?;
        world.rename(Change::Set(to.into(), inode));
        world.rename(Change::Gone(from.into()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.world();
        world.call(true)?;
        if !world.names.contains_key(name) {
            return Err(ErrorKind::NotFound.into());
        }
        world.rename(Change::Gone(name.into()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut world = self.world();
        if world.call(true)? {
            // Nobody may believe that the names are durable.
            return Err(io::Error::other("the machine stops"));
        }
        world.changes.clear();
        world.durable_names = world.names.clone();
        Ok(())
    }
}

struct SimulatedFile {
    folder: SimulatedFiles,
    inode: usize,
    /// The errors that this description was told.
    told: AtomicU64,
}

impl SimulatedFile {
    /// Sets the length, where there is room for it.
    fn resize(&self, len: u64) -> io::Result<()> {
        let mut world = self.folder.world();
        world.call(true)?;
        let len = len as usize;
        let old = world.inodes[self.inode].cached.len();
        if world.stored() - old.min(world.stored()) + len > world.room && len > old {
            return Err(ErrorKind::StorageFull.into());
        }
        world.inodes[self.inode].set_len(len);
        Ok(())
    }
}

impl File for SimulatedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let world = self.folder.world();
        let bytes = world.inodes[self.inode].cached.get(offset as usize..).unwrap_or_default();
        let len = bytes.len().min(into.len());
        into[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut world = self.folder.world();
        if world.broken.contains(&self.inode) {
            return Err(io::Error::other("i/o error"));
        }
        match world.call(true) {
            Ok(false) => {
                // A short write now and then.
                if world.faults > 0 && world.dice.chance(100) && bytes.len() > 1 {
                    let written = 1 + world.dice.below(bytes.len() as u64 - 1) as usize;
                    bytes.truncate(written);
                }
            }
            // The machine stops, or the disk fails, with the write half done.
            stopped => {
                let written = world.dice.below(bytes.len() as u64 + 1) as usize;
                if !world.stopped || stopped.is_ok() {
                    world.inodes[self.inode].write(&bytes[..written], offset as usize);
                }
                return Err(stopped.err().unwrap_or_else(|| io::Error::other("the machine stops")));
            }
        }
        let end = offset as usize + bytes.len();
        let old = world.inodes[self.inode].cached.len();
        if end > old && world.stored() - old + end > world.room {
            return Err(ErrorKind::StorageFull.into());
        }
        world.inodes[self.inode].write(&bytes, offset as usize);
        Ok(bytes.len())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.folder.world().inodes[self.inode].cached.len() as u64)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let now = self.folder.world().inodes[self.inode].cached.len() as u64;
        if len > now { self.resize(len) } else { Ok(()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.resize(len)
    }

    fn begin_sync(&self, _offset: u64) {}

    fn sync(&self) -> io::Result<()> {
        let mut world = self.folder.world();
        let called = world.call(true);
        let DiskState { dice, inodes, stopped, .. } = &mut *world;
        let inode = &mut inodes[self.inode];
        match called {
            Ok(false) => {
                inode.sync();
                let told = self.told.swap(inode.errors, Ordering::Relaxed);
                if told == inode.errors { Ok(()) } else { Err(io::Error::other("i/o error, earlier")) }
            }
            // Stopped in the middle: whatever is dirty may or may not arrive, which the restart decides.
            Ok(true) => Err(io::Error::other("the machine stops")),
            Err(error) if *stopped => Err(error),
            Err(error) => {
                inode.fail_to_sync(dice);
                self.told.store(inode.errors, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}
