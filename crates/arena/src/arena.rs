//! The arena: one lock over the budget and the idle windows, and the charges it hands out.

use crate::budget::Budget;
use crate::map::Map;
use crate::share::{Floors, Share};
use crate::sync::{Arc, Mutex, lock};
use crate::units::{GROWTH_STEP, PAGE, rounded};
use crate::window::Window;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// The most pages that a window keeps hot when it is dropped, in bytes.
const MAX_HOT_BYTES: usize = 1 << 20;
/// Idle windows are kept in classes by their hot pages: none, one page, two, four … up to [`MAX_HOT_BYTES`].
const CLASSES: usize = 2 + (MAX_HOT_BYTES / PAGE).ilog2() as usize;
/// Pages that stay idle for this many ticks of [`Arena::tick`] are given back.
const COLD_AFTER: u32 = 2;

/// Payload memory: windows and charges against one total. A handle; clones are the same arena.
#[derive(Clone)]
pub struct Arena {
    inner: Arc<SharedArena>,
}

pub(crate) struct SharedArena {
    map: Map,
    window: usize,
    /// The most that each share can ever hold.
    ceilings: [AtomicU64; Share::COUNT],
    state: Mutex<ArenaState>,
}

struct ArenaState {
    budget: Budget,
    idle: IdleWindows,
    tick: u32,
    /// Pages that the kernel did not take back: how often, and how many bytes. They stay charged for good.
    kept: (u64, u64),
}

/// Why a charge was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChargeError {
    /// There is not enough now; waiting may help.
    #[error("no memory is free for this now")]
    Short,
    /// It can never be granted: the share cannot hold that much.
    #[error("{wanted} bytes are more than the {most} bytes that this share can ever hold")]
    Never {
        /// The size of the request, in bytes.
        wanted: u64,
        /// The most that could ever be granted, in bytes.
        most: u64,
    },
    /// As many charges or windows as are allowed are waiting or in use already.
    #[error("as many requests as are allowed hold or await memory already")]
    Crowded,
}

/// The usage of one share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareUse {
    /// Which share.
    pub share: Share,
    /// The bytes nobody else can take.
    pub floor: u64,
    /// The bytes charged now.
    pub used: u64,
    /// The most bytes charged at any moment so far.
    pub peak: u64,
    /// How many charges wait.
    pub waiting: usize,
}

/// The usage of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The bytes that all shares may hold together.
    pub total: u64,
    /// Resident pages of idle windows, in bytes; they count against `total` and yield to any charge.
    pub idle: u64,
    /// Each share, in the order of [`Share::ALL`].
    pub shares: [ShareUse; Share::COUNT],
    /// How often the kernel did not take pages back (`madvise`). That never happens on a kernel that is well.
    pub kept_times: u64,
    /// The bytes of those pages: charged for good, so that the total holds. There is that much less for everybody.
    pub kept_bytes: u64,
}

impl Arena {
    /// Reserves address space for `windows` windows of `window` bytes each, to hold at most `total`
    /// resident bytes. At most `waiters` charges may wait at a time.
    ///
    /// # Errors
    /// When the kernel refuses the address space (a `ulimit -v`, or overcommit switched off), or does not take pages back.
    ///
    /// # Panics
    /// When the floors exceed `total`: the [`MemoryPlan`](crate::MemoryPlan) has refused that before.
    pub fn new(
        total: u64,
        floors: Floors,
        window: usize,
        windows: usize,
        waiters: usize,
    ) -> io::Result<Arena> {
        let window = rounded(window).max(GROWTH_STEP);
        let len = window.checked_mul(windows).ok_or(io::ErrorKind::InvalidInput)?;
        let budget = Budget::new(total, floors, waiters);
        let ceilings = Share::ALL.map(|share| AtomicU64::new(budget.ceiling(share)));
        let state = Mutex::new(ArenaState { budget, idle: IdleWindows::new(windows), tick: 0, kept: (0, 0) });
        let inner = SharedArena { map: Map::reserve(len)?, window, ceilings, state };
        Ok(Arena { inner: Arc::new(inner) })
    }

    /// The length of a window's address space: the largest body it can hold, in bytes.
    pub fn window_len(&self) -> usize {
        self.inner.window
    }

    /// The most bytes that `share` can ever hold: the total less the floors of the others.
    pub fn ceiling(&self, share: Share) -> u64 {
        self.inner.ceilings[share.index()].load(Ordering::Relaxed)
    }

    /// Whether all of `held` could be charged at the same time if nobody else held anything. If not, waiting is no use.
    pub fn could_hold(&self, held: &[(Share, u64)]) -> bool {
        lock(&self.inner.state).budget.could_hold(held)
    }

    /// How many bytes could be charged to `share` now, if nobody waits for any.
    pub fn free(&self, share: Share) -> u64 {
        lock(&self.inner.state).budget.free(share)
    }

    /// Has another total and other floors from now on: for a configuration that changes while running.
    ///
    /// A charge that waits for more than its share can hold from now on waits until its deadline.
    ///
    /// # Errors
    /// [`ChargeError::Short`] while more is charged than fits; nothing has changed then.
    pub fn replan(&self, total: u64, floors: Floors) -> Result<(), ChargeError> {
        let mut state = lock(&self.inner.state);
        if floors.sum() > total || !state.budget.replan(total, floors) {
            return Err(ChargeError::Short);
        }
        for share in Share::ALL {
            let ceiling = state.budget.ceiling(share);
            self.inner.ceilings[share.index()].store(ceiling, Ordering::Relaxed);
        }
        state.reclaim(&self.inner);
        Ok(())
    }

    /// Charges `bytes` to `share` if they are free now.
    ///
    /// # Errors
    /// [`ChargeError::Short`] or [`ChargeError::Never`].
    pub fn try_charge(&self, share: Share, bytes: u64) -> Result<Charge, ChargeError> {
        self.possible(share, bytes)?;
        let mut state = lock(&self.inner.state);
        if !state.budget.try_take(share, bytes) {
            return Err(ChargeError::Short);
        }
        state.reclaim(&self.inner);
        Ok(Charge { arena: self.clone(), share, bytes })
    }

    /// Charges `bytes` to `share`, waiting in arrival order until they are free. The caller brings the
    /// deadline; dropping the future leaves the queue.
    pub fn charge(&self, share: Share, bytes: u64) -> ChargeFuture<'_> {
        ChargeFuture { arena: self, share, bytes, waiter: None }
    }

    /// Takes a window with `bytes` charged and ready to be filled, if they are free now.
    ///
    /// # Errors
    /// As [`try_charge`](Self::try_charge), and [`ChargeError::Crowded`] when every window is in use.
    pub fn try_window(&self, share: Share, bytes: usize) -> Result<Window, ChargeError> {
        let wanted = self.window_step(bytes)?;
        self.possible(share, wanted as u64)?;
        let mut state = lock(&self.inner.state);
        if !state.budget.try_take(share, wanted as u64) {
            return Err(ChargeError::Short);
        }
        self.furnish(&mut state, share, wanted)
    }

    /// Takes a window with `bytes` charged and ready to be filled, waiting for them.
    ///
    /// # Errors
    /// [`ChargeError::Never`] or [`ChargeError::Crowded`].
    pub async fn window(&self, share: Share, bytes: usize) -> Result<Window, ChargeError> {
        match self.try_window(share, bytes) {
            Err(ChargeError::Short) => {}
            answer => return answer,
        }
        let wanted = self.window_step(bytes)?;
        let charge = self.charge(share, wanted as u64).await?;
        let mut state = lock(&self.inner.state);
        charge.spent();
        self.furnish(&mut state, share, wanted)
    }

    /// Gives back the pages of windows that nobody used between the last calls. To be called about once a
    /// second, so that a burst does not stay resident.
    pub fn tick(&self) {
        let mut state = lock(&self.inner.state);
        state.tick = state.tick.wrapping_add(1);
        let tick = state.tick;
        while state.idle.oldest().is_some_and(|since| tick.wrapping_sub(since) >= COLD_AFTER) {
            state.cool_oldest(&self.inner);
        }
    }

    /// The charges of each share, for `/status` and the metrics.
    pub fn usage(&self) -> Usage {
        let state = lock(&self.inner.state);
        let budget = &state.budget;
        let shares = Share::ALL.map(|share| ShareUse {
            share,
            floor: budget.floor(share),
            used: budget.used(share),
            peak: budget.peak(share),
            waiting: budget.waiting(share),
        });
        let (kept_times, kept_bytes) = state.kept;
        Usage { total: budget.total(), idle: state.idle.bytes as u64, shares, kept_times, kept_bytes }
    }

    /// Whether `share` could hold `wanted` bytes if nobody else held any.
    pub(crate) fn possible(&self, share: Share, wanted: u64) -> Result<(), ChargeError> {
        let most = self.ceiling(share);
        if wanted > most { Err(ChargeError::Never { wanted, most }) } else { Ok(()) }
    }

    /// The first charge of a window that can hold `bytes`.
    fn window_step(&self, bytes: usize) -> Result<usize, ChargeError> {
        let (wanted, most) = (rounded(bytes.max(1)), self.inner.window);
        if wanted > most {
            return Err(ChargeError::Never { wanted: wanted as u64, most: most as u64 });
        }
        Ok(wanted)
    }

    /// Picks a window for `wanted` bytes that are charged already.
    fn furnish(&self, state: &mut ArenaState, share: Share, wanted: usize) -> Result<Window, ChargeError> {
        // Sinks have parts of their share, and count what they asked for.
        let exact = matches!(share, Share::Lake | Share::Egress);
        let Some(IdleWindow { index, hot, .. }) = state.idle.take(wanted, exact) else {
            state.give_back(&self.inner, share, wanted);
            return Err(ChargeError::Crowded);
        };
        let mut charged = wanted;
        // Pages hot beyond what is paid for: pay for them too where that is little, else give them back.
        let extra = hot.saturating_sub(wanted);
        if extra > 0 && hot <= 4 * wanted && !exact && state.budget.try_take(share, extra as u64) {
            charged = hot;
        } else if extra > 0 {
            // SAFETY: the window was idle, so nobody refers to its pages.
            let released = unsafe { self.inner.map.release(self.inner.offset(index) + wanted, extra) };
            if released.is_err() {
                // They are resident, so they are paid for, whether or not there was room for that.
                state.budget.take_anyway(share, extra as u64);
                state.kept.0 += 1;
                charged = hot;
            }
        }
        state.reclaim(&self.inner);
        Ok(Window::new(self.clone(), share, index, charged))
    }

    /// The start of window `index`.
    #[inline]
    pub(crate) fn start_of(&self, index: u32) -> std::ptr::NonNull<u8> {
        self.inner.map.at(self.inner.offset(index))
    }

    /// Takes back these bytes at the end of a window, which are charged to `share`. The caller owns the window, and they are its own no more.
    /// When the answer is `false`, the kernel kept their pages: they stay the caller's, and charged.
    pub(crate) fn give_back_tail(&self, share: Share, index: u32, bytes: Range<usize>) -> bool {
        // SAFETY: the owner of the window has lent it out exclusively for this call, and refers to none of these bytes, which are behind
        // its filled ones. The pages go before their charge does.
        let released = unsafe { self.inner.map.release(self.inner.offset(index) + bytes.start, bytes.len()) };
        let mut state = lock(&self.inner.state);
        if released.is_err() {
            state.kept.0 += 1;
            return false;
        }
        state.give_back(&self.inner, share, bytes.len());
        true
    }

    /// Takes a dropped window back. Its first pages stay hot for the next user.
    pub(crate) fn put_back(&self, share: Share, index: u32, charged: usize) {
        let hot = charged.min(MAX_HOT_BYTES);
        // SAFETY: the window is being dropped, so nobody refers to its pages, and its index is not idle
        // yet, so nobody else can get it. The pages go before their charge does.
        let released = unsafe { self.inner.map.release(self.inner.offset(index) + hot, charged - hot) };
        let mut state = lock(&self.inner.state);
        if released.is_err() {
            // The window is not used again, and its charge does not end.
            state.kept.0 += 1;
            state.kept.1 += charged as u64;
            return;
        }
        let since = state.tick;
        state.idle.put(IdleWindow { index, hot, since });
        state.give_back(&self.inner, share, charged);
    }
}

impl SharedArena {
    #[inline]
    fn offset(&self, index: u32) -> usize {
        index as usize * self.window
    }
}

impl ArenaState {
    fn give_back(&mut self, inner: &SharedArena, share: Share, bytes: usize) {
        self.budget.release(share, bytes as u64);
        self.reclaim(inner);
    }

    /// Restores: charged + idle ≤ total. Everything that charges or parks pages ends with this, before
    /// the lock is released and so before anyone can touch a page that a charge has just paid for.
    ///
    /// Where the kernel takes nothing back it ends all the same: each round takes one from the windows that are hot.
    fn reclaim(&mut self, inner: &SharedArena) {
        while self.idle.bytes > 0 && self.budget.used_by_all() + self.idle.bytes as u64 > self.budget.total()
        {
            self.cool_oldest(inner);
        }
    }

    /// Gives the pages of the window that has been idle for longest back to the kernel. One whose pages it keeps is not
    /// used again, and what it holds is charged for good: to ingest, which can be refused.
    fn cool_oldest(&mut self, inner: &SharedArena) {
        let Some(spare) = self.idle.take_oldest() else { return };
        // SAFETY: the window is idle, so nobody refers to its pages.
        let released = unsafe { inner.map.release(inner.offset(spare.index), spare.hot) };
        match released {
            Ok(()) => self.idle.put(IdleWindow { hot: 0, ..spare }),
            Err(_) => {
                self.kept.0 += 1;
                self.kept.1 += spare.hot as u64;
                self.budget.take_anyway(Share::Ingest, spare.hot as u64);
            }
        }
    }
}

/// Bytes that are paid for; whoever holds the bytes holds the charge. Dropping it gives them back.
#[must_use = "dropping a charge gives its bytes back"]
pub struct Charge {
    arena: Arena,
    share: Share,
    bytes: u64,
}

impl Charge {
    /// How many bytes are paid for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The share they are charged to.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Ends the charge without giving the bytes back: they are charged to something else now.
    pub(crate) fn spent(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut state = lock(&self.arena.inner.state);
            state.budget.release(self.share, self.bytes);
            state.reclaim(&self.arena.inner);
        }
    }
}

/// A charge that is being waited for. Dropping it leaves the queue.
#[must_use = "a charge is granted when it is awaited"]
pub struct ChargeFuture<'a> {
    arena: &'a Arena,
    share: Share,
    bytes: u64,
    waiter: Option<u32>,
}

impl Future for ChargeFuture<'_> {
    type Output = Result<Charge, ChargeError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (arena, share, bytes) = (self.arena, self.share, self.bytes);
        let mut state = lock(&arena.inner.state);
        let granted = match self.waiter {
            Some(key) => state.budget.claim(key, context.waker()),
            None => {
                arena.possible(share, bytes)?;
                state.budget.try_take(share, bytes)
            }
        };
        if granted {
            self.waiter = None;
            state.reclaim(&arena.inner);
            return Poll::Ready(Ok(Charge { arena: arena.clone(), share, bytes }));
        }
        if self.waiter.is_none() {
            let Some(key) = state.budget.wait(share, bytes, context.waker().clone()) else {
                return Poll::Ready(Err(ChargeError::Crowded));
            };
            self.waiter = Some(key);
        }
        Poll::Pending
    }
}

impl Drop for ChargeFuture<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.waiter.take() {
            let mut state = lock(&self.arena.inner.state);
            state.budget.forget(key);
            state.reclaim(&self.arena.inner);
        }
    }
}

/// A window that nobody uses, with the pages it kept.
struct IdleWindow {
    index: u32,
    hot: usize,
    /// The tick at which it came back.
    since: u32,
}

/// The windows that nobody uses, by how many of their pages are hot. Within a class the last to come back
/// is the first to go out (its pages are likeliest in the cache), and the first to come back cools first.
struct IdleWindows {
    classes: [VecDeque<IdleWindow>; CLASSES],
    bytes: usize,
}

impl IdleWindows {
    fn new(windows: usize) -> IdleWindows {
        let mut classes: [VecDeque<IdleWindow>; CLASSES] = std::array::from_fn(|_| VecDeque::new());
        // Low indices go out first: page tables are paid for by the kernel per 2 MiB of address space.
        classes[0] = (0..windows as u32).rev().map(|index| IdleWindow { index, hot: 0, since: 0 }).collect();
        IdleWindows { classes, bytes: 0 }
    }

    fn class(hot: usize) -> usize {
        let pages = hot.div_ceil(PAGE);
        if pages == 0 { 0 } else { (1 + pages.next_power_of_two().ilog2() as usize).min(CLASSES - 1) }
    }

    /// The spare that suits `wanted` bytes best: hot enough without much to spare, else less hot, else
    /// cold, and only at last one so hot that it must be trimmed. Who takes exactly those has all trimmed that is to spare.
    fn take(&mut self, wanted: usize, exact: bool) -> Option<IdleWindow> {
        let fitting = Self::class(wanted);
        let generous = if exact { fitting } else { (fitting + 2).min(CLASSES - 1) };
        let order = (fitting..=generous).chain((0..fitting).rev()).chain(generous + 1..CLASSES);
        for class in order {
            if let Some(spare) = self.classes[class].pop_back() {
                self.bytes -= spare.hot;
                return Some(spare);
            }
        }
        None
    }

    fn put(&mut self, spare: IdleWindow) {
        self.bytes += spare.hot;
        self.classes[Self::class(spare.hot)].push_back(spare);
    }

    /// When the spare that has been hot and unused for longest came back.
    fn oldest(&self) -> Option<u32> {
        self.oldest_class().and_then(|class| self.classes[class].front()).map(|spare| spare.since)
    }

    /// Takes that spare out.
    fn take_oldest(&mut self) -> Option<IdleWindow> {
        let spare = self.oldest_class().and_then(|class| self.classes[class].pop_front())?;
        self.bytes -= spare.hot;
        Some(spare)
    }

    fn oldest_class(&self) -> Option<usize> {
        (1..CLASSES)
            .filter(|class| !self.classes[*class].is_empty())
            .min_by_key(|class| self.classes[*class].front().map(|spare| spare.since))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
