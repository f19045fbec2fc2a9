//! The tap: closed, or open for one look at a time.

use crate::look::Look;
use crate::reading::{self, Reading};
use crate::watch::{self, At, Watch};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_journal::Meta;

/// So many ticks, of a second each, it stays open after a reading has ended.
pub const OPEN_FOR: u32 = 5;
/// What an open tap may hold, in bytes: what was caught, and what showing it takes.
pub const LOOK_BYTES: u64 = (watch::BYTES + reading::BYTES) as u64;
/// How long opening waits for that memory: as long as requests do.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where records pass that somebody may look at. Clones are the same tap.
#[derive(Clone)]
pub struct Tap(Arc<Inner>);

struct Inner {
    /// Whether there is a watch: all that is looked at while nobody looks.
    open: AtomicBool,
    /// Written when a look begins or ends; whoever offers only tries to read it.
    watch: RwLock<Option<Arc<Watch>>>,
    /// Ticks until it closes.
    left: AtomicU32,
    arena: Arena,
}

/// Why nobody can look now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is one look at a time.
    #[error("somebody else is looking, and there is one look at a time; try again when they have ended")]
    Taken,
    /// There is one reading of a look at a time.
    #[error("this look is being read already; wait for that answer")]
    Reading,
    /// Others hold the memory.
    #[error("the memory for a look is in use by requests and sinks; try again")]
    Memory,
    /// The memory is never there.
    #[error("a look takes {} KiB, and the memory has no room for that; raise `memory`", LOOK_BYTES >> 10)]
    Small,
}

impl Tap {
    /// A closed tap, whose looks are charged to `arena`.
    pub fn new(arena: Arena) -> Tap {
        let (open, left) = (AtomicBool::new(false), AtomicU32::new(0));
        Tap(Arc::new(Inner { open, watch: RwLock::new(None), left, arena }))
    }

    /// Whether somebody looks.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.open.load(Relaxed)
    }

    /// Shows a record to whoever looks: `body` is as it is kept, and left out where it was not read. Never waits:
    /// what cannot be caught at once is counted.
    #[inline]
    pub fn offer(&self, at: At<'_>, meta: &Meta, body: Option<&[u8]>) {
        if self.is_open() {
            self.offer_open(at, meta, body);
        }
    }

    #[cold]
    fn offer_open(&self, at: At<'_>, meta: &Meta, body: Option<&[u8]>) {
        // Who cannot read it offers between two looks.
        let Ok(slot) = self.0.watch.try_read() else { return };
        if let Some(watch) = &*slot {
            watch.offer(at, meta, body);
        }
    }

    /// Opens the tap for `look`, or goes on with the look of the same id, and reads what it has caught. The tap
    /// stays open for [`OPEN_FOR`] ticks after the reading is dropped.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn open(&self, look: Look) -> Result<Reading, Refused> {
        let Some(watch) = self.going_on(&look)? else {
            return self.begin(look).await;
        };
        Ok(Reading::new(watch, look))
    }

    /// The watch of a look that goes on; nothing when `look` is a new one. Its reading is claimed.
    fn going_on(&self, look: &Look) -> Result<Option<Arc<Watch>>, Refused> {
        let mut slot = self.slot();
        let Some(watch) = &*slot else { return Ok(None) };
        if watch.id() != look.id {
            return Err(Refused::Taken);
        }
        if !watch.claim() {
            return Err(Refused::Reading);
        }
        if watch.points() == &look.points() {
            self.0.left.store(OPEN_FOR, Relaxed);
            return Ok(Some(Arc::clone(watch)));
        }
        // Somebody has thought better of it.
        self.close(&mut slot);
        Ok(None)
    }

    async fn begin(&self, look: Look) -> Result<Reading, Refused> {
        let charging = self.0.arena.charge(Share::Ingest, LOOK_BYTES);
        let charge = match tokio::time::timeout(PATIENCE, charging).await {
            Ok(Ok(charge)) => charge,
            Ok(Err(tidegate_arena::Refused::Never { .. })) => return Err(Refused::Small),
            Ok(Err(_)) | Err(_) => return Err(Refused::Memory),
        };
        let mut slot = self.slot();
        if slot.is_some() {
            return Err(Refused::Taken);
        }
        let watch = Arc::new(Watch::claimed(look.id.clone(), look.points(), charge));
        *slot = Some(Arc::clone(&watch));
        self.0.left.store(OPEN_FOR, Relaxed);
        self.0.open.store(true, Relaxed);
        Ok(Reading::new(watch, look))
    }

    /// To be called once a second: closes what nobody reads any more.
    pub fn tick(&self) {
        if !self.is_open() {
            return;
        }
        let mut slot = self.slot();
        if slot.as_ref().is_some_and(|watch| watch.is_claimed()) {
            self.0.left.store(OPEN_FOR, Relaxed);
            return;
        }
        let left = self.0.left.load(Relaxed).saturating_sub(1);
        self.0.left.store(left, Relaxed);
        if left == 0 {
            self.close(&mut slot);
        }
    }

    /// Gives back what was caught and the charge for it.
    fn close(&self, slot: &mut RwLockWriteGuard<'_, Option<Arc<Watch>>>) {
        self.0.open.store(false, Relaxed);
        **slot = None;
    }

    /// Waits for those who are offering, which takes them as long as a copy.
    fn slot(&self) -> RwLockWriteGuard<'_, Option<Arc<Watch>>> {
        self.0.watch.write().unwrap_or_else(PoisonError::into_inner)
    }
}
