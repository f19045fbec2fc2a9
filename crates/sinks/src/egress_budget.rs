//! A sink's part of the memory for what is read back from the journal.
//!
//! Each sink has a part of its own that always suffices for its usual requests, and takes no more: so it can
//! wait for memory without anybody waiting for it. What is larger (one body as large as the source allows, to
//! be decompressed) is borrowed, by one sink at a time. Whoever waits for its turn holds no more than its part,
//! so whoever has it gets what it needs. While another sink waits for it, it is kept for a [`BorrowSlice`] and one
//! request at most, also by a record that becomes thousands of requests. So a stalled peer holds up the others' large
//! bodies for its timeout, and nothing else of theirs.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidegate_arena::{Arena, ChargeError, GROWTH_STEP, PAGE, Share, Window, rounded};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a record keeps the turn to borrow, at least, while another sink waits for it.
const BORROW_SLICE: Duration = Duration::from_millis(250);
/// A window that is to grow leaves this to others, in bytes.
const LEFT_TO_OTHERS: usize = 2 * PAGE;
/// How long to wait when there is memory, but no window or place in the queue for it.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// The memory that a sink may hold, and the turn to borrow more. Clones share it.
#[derive(Clone)]
pub struct EgressBudget {
    state: Arc<BudgetState>,
    /// Bytes that are left to holders of others of its clones.
    reserve: usize,
}

struct BudgetState {
    arena: Arena,
    share: Share,
    /// Bytes that are this sink's alone.
    part: usize,
    /// The most that it can ever hold: its part, and all that is nobody's.
    most: usize,
    queue: Arc<BorrowQueue>,
    /// Whether it has the turn.
    borrowing: AtomicBool,
    /// Invariant: at most `part`, or `most` while borrowing.
    held: AtomicUsize,
    /// The part of `held` that handles with a reserve took. Invariant: at most the limit of `held` less the reserve.
    held_beside_reserve: AtomicUsize,
    /// How many bytes were missing for what was asked for last.
    missing: AtomicUsize,
    /// Something was given back.
    fell: Notify,
}

/// The queue of the sinks that want to borrow memory: one borrows at a time, in the order in which they asked.
#[derive(Debug)]
pub struct BorrowQueue {
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for BorrowQueue {
    fn default() -> BorrowQueue {
        BorrowQueue { turn: Arc::new(Semaphore::new(1)), waiting: AtomicUsize::new(0) }
    }
}

impl BorrowQueue {
    /// How many sinks wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Whether a sink has the turn.
    pub fn is_taken(&self) -> bool {
        self.turn.available_permits() == 0
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let _waiter = Waiter::new(self);
        // The semaphore is fair, and never closed.
        Arc::clone(&self.turn).acquire_owned().await.ok()
    }
}

/// A sink that waits for its turn, until it has it or gives up.
struct Waiter<'a>(&'a BorrowQueue);

impl<'a> Waiter<'a> {
    fn new(queue: &'a BorrowQueue) -> Waiter<'a> {
        queue.waiting.fetch_add(1, Relaxed);
        Waiter(queue)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

/// It does not fit into the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetError {
    /// With the turn to borrow it might.
    WithoutTurn,
    /// It never does.
    Never,
}

impl EgressBudget {
    /// A room with a part of `part` bytes in `share`. All rooms borrow in turn, by one `queue`.
    pub fn new(arena: &Arena, share: Share, part: usize, queue: &Arc<BorrowQueue>) -> EgressBudget {
        let usage = arena.usage();
        let floor: u64 =
            usage.shares.iter().filter(|known| known.share == share).map(|known| known.floor).sum();
        let free = usize::try_from(arena.ceiling(share).saturating_sub(floor)).unwrap_or(usize::MAX);
        let state = BudgetState {
            arena: arena.clone(),
            share,
            part,
            most: free.saturating_add(part),
            queue: Arc::clone(queue),
            borrowing: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            held_beside_reserve: AtomicUsize::new(0),
            missing: AtomicUsize::new(0),
            fell: Notify::new(),
        };
        EgressBudget { state: Arc::new(state), reserve: 0 }
    }

    /// The same budget for somebody who leaves a reserve of `bytes` to those who have it as it is: they always find that much, but for what
    /// they hold themselves.
    pub(crate) fn with_reserve(&self, bytes: usize) -> EgressBudget {
        EgressBudget { state: Arc::clone(&self.state), reserve: self.reserve.saturating_add(bytes) }
    }

    /// Bytes that are this sink's alone.
    pub(crate) fn part(&self) -> usize {
        self.state.part.saturating_sub(self.reserve)
    }

    /// The most that this sink can ever hold, with its turn to borrow.
    pub fn most(&self) -> usize {
        self.state.most.saturating_sub(self.reserve)
    }

    /// How much more may be held now, in bytes.
    pub(crate) fn left(&self) -> usize {
        let BudgetState { part, most, .. } = &*self.state;
        let limit = if self.is_borrowing() { *most } else { *part };
        let left = limit.saturating_sub(self.held());
        if self.reserve == 0 {
            return left;
        }
        left.min(limit.saturating_sub(self.reserve).saturating_sub(self.held_beside_reserve()))
    }

    fn held_beside_reserve(&self) -> usize {
        self.state.held_beside_reserve.load(Relaxed)
    }

    /// The longest window that can be had now, if need be after a wait: with what is held already, and with the turn to
    /// borrow where it is this sink's.
    pub(crate) fn longest_window(&self) -> usize {
        let left = self.left().min(self.state.arena.window_len());
        // Windows come in pages, and long ones in steps.
        let unit = if left <= GROWTH_STEP { PAGE } else { GROWTH_STEP };
        left / unit * unit
    }

    /// Whether it is this sink's turn to borrow.
    pub(crate) fn is_borrowing(&self) -> bool {
        self.state.borrowing.load(Relaxed)
    }

    /// How much is held, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.state.held.load(Relaxed)
    }

    /// How many bytes were missing for what was asked for last; none where it was had, or may be had a little later.
    pub(crate) fn missing(&self) -> usize {
        self.state.missing.load(Relaxed)
    }

    /// Whether more is held than the sink's own part.
    pub(crate) fn is_over(&self) -> bool {
        self.held() > self.state.part || (self.reserve > 0 && self.held_beside_reserve() > self.part())
    }

    /// Whether more than `own` bytes are held.
    pub(crate) fn holds_more_than(&self, own: usize) -> bool {
        self.state.held.load(Relaxed) > own
    }

    /// Waits until no more than `own` bytes are held.
    pub(crate) async fn falls_to(&self, own: usize) {
        while self.holds_more_than(own) {
            let fell = self.state.fell.notified();
            let mut fell = std::pin::pin!(fell);
            // Registered before the look, so that nothing that is given back after it is missed.
            fell.as_mut().enable();
            if self.holds_more_than(own) {
                fell.await;
            }
        }
    }

    /// Waits for the turn to borrow. To be kept until what is held is within the part again.
    pub(crate) async fn turn(&self) -> BorrowTurn {
        let permit = self.state.queue.turn().await;
        self.state.borrowing.store(true, Relaxed);
        BorrowTurn(Some((self.clone(), permit)))
    }

    /// Whether this sink has the turn to borrow, and another one waits for it.
    fn is_turn_wanted(&self) -> bool {
        self.is_borrowing() && self.state.queue.waiting() > 0
    }

    /// Pays for `bytes` on the heap, waiting for them.
    pub(crate) async fn charge(&self, bytes: usize) -> Result<Charged<tidegate_arena::Charge>, BudgetError> {
        let hold = self.hold(bytes)?;
        loop {
            match self.state.arena.charge(self.state.share, bytes as u64).await {
                Ok(charge) => return Ok(Charged { what: charge, hold }),
                Err(refused) => passing(refused).await?,
            }
        }
    }

    /// A window with `bytes` charged, waiting for them.
    pub(crate) async fn window(&self, bytes: usize) -> Result<Charged<Window>, BudgetError> {
        let hold = self.hold(rounded(bytes.max(1)))?;
        loop {
            match self.state.arena.window(self.state.share, bytes).await {
                Ok(window) => return Ok(Charged { what: window, hold }),
                Err(refused) => passing(refused).await?,
            }
        }
    }

    /// A window that is to grow: of `expected` bytes where they are left, else of a page. The kernel has to bring the pages that a window
    /// grows by; one that was as long before has them.
    pub(crate) async fn growing_window(&self, expected: usize) -> Result<Charged<Window>, BudgetError> {
        let most = self.left().saturating_sub(LEFT_TO_OTHERS).min(self.state.arena.window_len());
        self.window(if rounded(expected) <= most { expected } else { PAGE }).await
    }

    fn hold(&self, bytes: usize) -> Result<BudgetCharge, BudgetError> {
        let left = self.left();
        self.state.missing.store(bytes.saturating_sub(left), Relaxed);
        let own = if self.reserve == 0 { self.held() } else { self.held_beside_reserve() };
        if own.saturating_add(bytes) > self.most() {
            return Err(BudgetError::Never);
        }
        if bytes > left {
            return Err(BudgetError::WithoutTurn);
        }
        self.add(bytes);
        Ok(BudgetCharge { room: self.clone(), bytes })
    }

    fn add(&self, bytes: usize) {
        self.state.held.fetch_add(bytes, Relaxed);
        if self.reserve > 0 {
            self.state.held_beside_reserve.fetch_add(bytes, Relaxed);
        }
    }

    fn give_back(&self, bytes: usize) {
        self.state.held.fetch_sub(bytes, Relaxed);
        if self.reserve > 0 {
            self.state.held_beside_reserve.fetch_sub(bytes, Relaxed);
        }
        self.state.fell.notify_waiters();
    }
}

/// Waits a little when the refusal is one that passes.
async fn passing(refused: ChargeError) -> Result<(), BudgetError> {
    match refused {
        ChargeError::Never { .. } => Err(BudgetError::Never),
        ChargeError::Short | ChargeError::Crowded => {
            tokio::time::sleep(RETRY_DELAY).await;
            Ok(())
        }
    }
}

/// Something that takes room, until it is dropped.
pub(crate) struct Charged<T> {
    what: T,
    hold: BudgetCharge,
}

struct BudgetCharge {
    room: EgressBudget,
    bytes: usize,
}

impl Charged<Window> {
    /// Makes room for `more` bytes behind the filled ones, if it is free now.
    #[inline]
    pub(crate) fn try_reserve(&mut self, more: usize) -> Result<(), BudgetError> {
        if self.what.len().saturating_add(more) <= self.hold.bytes {
            return Ok(());
        }
        self.try_grow(more)
    }

    #[cold]
    fn try_grow(&mut self, more: usize) -> Result<(), BudgetError> {
        let Some(mut growth) = self.growth(more)? else { return Ok(()) };
        self.what.try_reserve(more).map_err(|refused| match refused {
            ChargeError::Never { .. } => BudgetError::Never,
            ChargeError::Short | ChargeError::Crowded => BudgetError::WithoutTurn,
        })?;
        self.hold.bytes += std::mem::take(&mut growth.bytes);
        Ok(())
    }

    /// Makes room for `more` bytes behind the filled ones, waiting for memory that others give back.
    pub(crate) async fn reserve(&mut self, more: usize) -> Result<(), BudgetError> {
        let Some(mut growth) = self.growth(more)? else { return Ok(()) };
        loop {
            match self.what.reserve(more).await {
                Ok(()) => break,
                Err(refused) => passing(refused).await?,
            }
        }
        self.hold.bytes += std::mem::take(&mut growth.bytes);
        Ok(())
    }

    /// Holds what is missing for `more` bytes behind the filled ones; nothing where none is.
    fn growth(&self, more: usize) -> Result<Option<BudgetCharge>, BudgetError> {
        let wanted = rounded(self.what.len().saturating_add(more));
        let missing = wanted.saturating_sub(self.hold.bytes);
        (missing > 0).then(|| self.hold.room.hold(missing)).transpose()
    }
}

impl Charged<Window> {
    /// Gives back what is held beyond the filled bytes.
    pub(crate) fn shrink(&mut self) {
        self.what.shrink();
        let freed = self.hold.bytes.saturating_sub(self.what.charged());
        if freed > 0 {
            self.hold.bytes -= freed;
            self.hold.room.give_back(freed);
        }
    }

    /// The window, to be lent to somebody who takes a window of its own, and what pays for it.
    pub(crate) fn into_parts(self) -> (Window, LentCharge) {
        (self.what, LentCharge(self.hold))
    }
}

/// Pays for a window that is lent.
pub(crate) struct LentCharge(BudgetCharge);

impl LentCharge {
    /// The window that it pays for.
    pub(crate) fn of(self, window: Window) -> Charged<Window> {
        Charged { what: window, hold: self.0 }
    }
}

impl<T> Charged<T> {
    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.hold.bytes
    }
}

impl<T> Deref for Charged<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

impl<T> DerefMut for Charged<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.what
    }
}

impl AsRef<[u8]> for Charged<Window> {
    fn as_ref(&self) -> &[u8] {
        &self.what
    }
}

impl Drop for BudgetCharge {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

/// The turn to borrow; dropping it lets the next one borrow.
pub(crate) struct BorrowTurn(Option<(EgressBudget, Option<OwnedSemaphorePermit>)>);

impl BorrowTurn {
    /// The bytes available without the turn.
    pub(crate) const fn none() -> BorrowTurn {
        BorrowTurn(None)
    }

    /// Whether it is one.
    pub(crate) const fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for BorrowTurn {
    fn drop(&mut self) {
        if let Some((room, _permit)) = &self.0 {
            room.state.borrowing.store(false, Relaxed);
        }
    }
}

/// How long a record that goes out in pieces keeps the turn to borrow while another sink waits for it.
///
/// The record is read and decoded again in the next turn, so it sends for as long as that takes: no more than half of
/// the work is done twice.
pub(crate) struct BorrowSlice {
    /// When the sink got the turn.
    begun: Instant,
    /// When the first piece was begun.
    sending: Option<Instant>,
}

impl BorrowSlice {
    /// Begins with the turn.
    pub(crate) fn begin() -> BorrowSlice {
        BorrowSlice { begun: Instant::now(), sending: None }
    }

    /// Everything is read: from now on pieces are sent.
    pub(crate) fn sends(&mut self) {
        self.sending.get_or_insert_with(Instant::now);
    }

    /// Whether the turn goes to another sink before the next piece. To be asked only once something was settled, or
    /// sinks would take turns with nothing done.
    pub(crate) fn is_over(&self, room: &EgressBudget) -> bool {
        let Some(sending) = self.sending else { return false };
        room.is_turn_wanted() && sending.elapsed() >= BORROW_SLICE.max(sending.duration_since(self.begun))
    }
}

#[cfg(test)]
mod tests;
