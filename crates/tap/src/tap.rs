//! The tap: closed, or open for some who look.

use crate::filter::TapFilter;
use crate::record_reader::{self, RecordReader};
use crate::watch::{self, TapPoint, Watch};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_journal::Meta;

/// So many ticks, of a second each, a look goes on after a reading of it has ended.
pub const OPEN_FOR: u32 = 5;
/// Most bytes that a tap holds: caught records, and the memory for showing them.
pub const LOOK_BYTES: u64 = (watch::BYTES + record_reader::BYTES) as u64;
/// How long opening waits for that memory: as long as requests do.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many looks there are at a time.
pub const LOOKS: usize = 4;

/// Where records pass that some may look at. Clones are the same tap.
#[derive(Clone)]
pub struct Tap(Arc<Inner>);

struct Inner {
    /// Whether there is a watch: all that is looked at while nobody looks.
    open: AtomicBool,
    /// At most [`LOOKS`]. Written when a look begins or ends; whoever offers only tries to read it.
    watches: RwLock<Vec<Arc<Watch>>>,
    arena: Arena,
}

/// Why nobody can look now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TapError {
    /// As many look as can.
    #[error("{LOOKS} other taps are open, the most possible; try again when one of them has ended")]
    Taken,
    /// There is one reading of a look at a time.
    #[error("this look is being read already; wait for that answer")]
    Reading,
    /// Others hold the memory.
    #[error("the memory for a look is in use by requests and sinks; try again")]
    Memory,
    /// The memory is never there.
    #[error("a tap needs {} KiB of memory, which is not available; raise `memory`", LOOK_BYTES >> 10)]
    Small,
}

impl Tap {
    /// A closed tap, whose looks are charged to `arena`.
    pub fn new(arena: Arena) -> Tap {
        let (open, watches) = (AtomicBool::new(false), RwLock::new(Vec::with_capacity(LOOKS)));
        Tap(Arc::new(Inner { open, watches, arena }))
    }

    /// Whether somebody looks.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.open.load(Relaxed)
    }

    /// Shows a record to whoever looks: `body` is as it is kept, and left out where it was not read. Never waits:
    /// what cannot be caught at once is counted.
    #[inline]
    pub fn offer(&self, at: TapPoint<'_>, meta: &Meta, body: Option<&[u8]>) {
        if self.is_open() {
            self.offer_open(at, meta, body);
        }
    }

    #[cold]
    fn offer_open(&self, at: TapPoint<'_>, meta: &Meta, body: Option<&[u8]>) {
        // Sources that cannot be read offer between two polls.
        let Ok(watches) = self.0.watches.try_read() else { return };
        watches.iter().for_each(|watch| watch.offer(at, meta, body));
    }

    /// Opens the tap for `filter`, or goes on with the look of the same id, and reads what it has caught. The look
    /// goes on for [`OPEN_FOR`] ticks after the reading is dropped.
    ///
    /// # Errors
    /// [`ChargeError`](tidegate_arena::ChargeError).
    pub async fn open(&self, look: TapFilter) -> Result<RecordReader, TapError> {
        let Some(watch) = self.going_on(&look)? else {
            return self.begin(look).await;
        };
        Ok(RecordReader::new(watch, look))
    }

    /// The watch of a look that goes on; nothing when `filter` is a new one. Its reading is claimed.
    fn going_on(&self, look: &TapFilter) -> Result<Option<Arc<Watch>>, TapError> {
        let mut watches = self.watches();
        let Some(at) = watches.iter().position(|watch| watch.id() == look.id) else {
            return if watches.len() < LOOKS { Ok(None) } else { Err(TapError::Taken) };
        };
        let Some(watch) = watches.get(at).filter(|watch| watch.claim()) else {
            return Err(TapError::Reading);
        };
        if watch.points() == &look.points() {
            watch.read_by(look.peer);
            return Ok(Some(Arc::clone(watch)));
        }
        // Somebody has thought better of it.
        self.close(&mut watches, at);
        Ok(None)
    }

    async fn begin(&self, look: TapFilter) -> Result<RecordReader, TapError> {
        let charging = self.0.arena.charge(Share::Ingest, LOOK_BYTES);
        let charge = match tokio::time::timeout(PATIENCE, charging).await {
            Ok(Ok(charge)) => charge,
            Ok(Err(tidegate_arena::ChargeError::Never { .. })) => return Err(TapError::Small),
            Ok(Err(_)) | Err(_) => return Err(TapError::Memory),
        };
        let mut watches = self.watches();
        if watches.len() >= LOOKS {
            return Err(TapError::Taken);
        }
        if watches.iter().any(|watch| watch.id() == look.id) {
            return Err(TapError::Reading);
        }
        let watch = Arc::new(Watch::claimed(look.id.clone(), look.points(), charge));
        watch.read_by(look.peer);
        watches.push(Arc::clone(&watch));
        self.0.open.store(true, Relaxed);
        Ok(RecordReader::new(watch, look))
    }

    /// Ends the look of this id at once.
    pub fn end(&self, id: &str) {
        let mut watches = self.watches();
        if let Some(at) = watches.iter().position(|watch| watch.id() == id) {
            self.close(&mut watches, at);
        }
    }

    /// The connection from `peer` is gone: looks that are bound to it end.
    pub fn gone(&self, peer: SocketAddr) {
        if !self.is_open() {
            return;
        }
        let mut watches = self.watches();
        while let Some(at) = watches.iter().position(|watch| watch.is_read_by(peer)) {
            self.close(&mut watches, at);
        }
    }

    /// To be called once a second: closes what nobody reads any more.
    pub fn tick(&self) {
        if !self.is_open() {
            return;
        }
        let mut watches = self.watches();
        watches.iter().for_each(|watch| watch.tick());
        while let Some(at) = watches.iter().position(|watch| watch.is_forgotten()) {
            self.close(&mut watches, at);
        }
    }

    /// Gives back what was caught and the charge for it: at once, or when who reads it has noticed.
    fn close(&self, watches: &mut Vec<Arc<Watch>>, at: usize) {
        watches.swap_remove(at).end();
        self.0.open.store(!watches.is_empty(), Relaxed);
    }

    /// Waits for those who are offering, which takes them as long as a copy.
    fn watches(&self) -> RwLockWriteGuard<'_, Vec<Arc<Watch>>> {
        self.0.watches.write().unwrap_or_else(PoisonError::into_inner)
    }
}
