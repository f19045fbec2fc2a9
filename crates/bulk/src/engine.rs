//! The callers' handle, and the ticket for one item.

use crate::meters::RequestHistograms;
use crate::new_item::{Action, FIXED_BYTES, NewItem};
use crate::outcome::{
    Answer, BulkSubmitError, Failure, FetchedDocument, SearchResponse, StoredOutcome, WriteResponse,
};
use crate::settings::Settings;
use crate::slots::{Phase, SlotKey};
use crate::state::{State, hash_of};
use crate::sync::{Arc, Mutex, lock};
use crate::target::{Search, Target};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate_arena::Arena;
use tidegate_meters::Registry;

/// Takes items from any thread and gives back tickets. A handle; clones are the same engine.
///
/// Submitted bytes are copied before the call returns, so the caller may free them at once. If there is no slot or
/// memory the call refuses at once, with a delay.
#[derive(Clone)]
pub struct Bulk {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) settings: Settings,
    pub(crate) histograms: RequestHistograms,
    pub(crate) arena: Arena,
    /// Of the documents' hashes.
    seed: u64,
}

impl Bulk {
    /// An engine without a driver.
    pub(crate) fn without_driver(settings: Settings, arena: Arena) -> Bulk {
        let settings = settings.clamped();
        let state = State::new(settings.clone(), arena.clone());
        let seed = state.seed();
        let histograms = RequestHistograms::new();
        Bulk { shared: Arc::new(Shared { state: Mutex::new(state), settings, histograms, arena, seed }) }
    }

    /// Writes a document that must not exist yet.
    ///
    /// # Errors
    /// When it is not taken; nothing was sent then, and nothing will be.
    pub fn create(
        &self,
        target: Target<'_>,
        source: &[u8],
    ) -> Result<Ticket<'_, WriteResponse>, BulkSubmitError> {
        self.submit(&NewItem::document(Action::Create, target, source)?)
    }

    /// Writes a document, whether it exists or not.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn index(
        &self,
        target: Target<'_>,
        source: &[u8],
    ) -> Result<Ticket<'_, WriteResponse>, BulkSubmitError> {
        self.submit(&NewItem::document(Action::Index, target, source)?)
    }

    /// Changes a document; `change` is the body of an update (`{"doc":{…}}`, `{"script":{…}}`).
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn update(
        &self,
        target: Target<'_>,
        change: &[u8],
    ) -> Result<Ticket<'_, WriteResponse>, BulkSubmitError> {
        self.submit(&NewItem::document(Action::Update, target, change)?)
    }

    /// Deletes a document.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn delete(&self, target: Target<'_>) -> Result<Ticket<'_, WriteResponse>, BulkSubmitError> {
        self.submit(&NewItem::document(Action::Delete, target, b"")?)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn get(&self, target: Target<'_>) -> Result<Ticket<'_, FetchedDocument>, BulkSubmitError> {
        self.submit(&NewItem::document(Action::Get, target, b"")?)
    }

    /// Searches.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn search(&self, search: Search<'_>) -> Result<Ticket<'_, SearchResponse>, BulkSubmitError> {
        self.submit(&NewItem::search(search)?)
    }

    /// The longest item that is taken, in bytes, its action included.
    pub(crate) fn longest_item(&self) -> usize {
        let Settings { item_bytes, lane_bytes, .. } = self.shared.settings;
        let lane = usize::try_from(lane_bytes).unwrap_or(usize::MAX);
        item_bytes.min(self.shared.arena.window_len()).min(lane).saturating_sub(FIXED_BYTES)
    }

    /// The number of items that wait, are in flight, or have an answer that was not taken yet.
    pub fn depth(&self) -> u32 {
        lock(&self.shared.state).used()
    }

    /// Publishes the engine's meters, which are named `bulk_…`. One engine can publish to one registry.
    pub fn publish(&self, registry: &Registry) {
        self.shared.histograms.publish(&self.shared, registry);
    }

    pub(crate) fn submit<T>(&self, item: &NewItem<'_>) -> Result<Ticket<'_, T>, BulkSubmitError> {
        let shared = &*self.shared;
        let (max_len, hash) = (item.max_len(), hash_of(shared.seed, item));
        let (taken, driver) = {
            let mut state = lock(&shared.state);
            (state.submit(item, max_len, hash), state.take_driver_waker())
        };
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(Ticket { shared, key: Some(taken?), answer: PhantomData })
    }
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bulk with {} items", self.depth())
    }
}

/// A submitted item; awaiting it gives its answer.
///
/// Dropping it before the item is sent withdraws the item. Dropping it later only discards the answer.
#[must_use = "dropping a ticket takes the item back"]
pub struct Ticket<'a, T> {
    shared: &'a Shared,
    /// `None` once the answer was taken.
    key: Option<SlotKey>,
    answer: PhantomData<fn() -> T>,
}

impl<T: Answer> Future for Ticket<'_, T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(key) = self.key else { return Poll::Pending };
        let taken = lock(&self.shared.state).take(key, context.waker());
        match taken {
            Some(outcome) => {
                self.key = None;
                Poll::Ready(T::of(StoredOutcome(outcome)))
            }
            None => Poll::Pending,
        }
    }
}

impl<T> Ticket<'_, T> {
    /// Withdraws the item. Returns false when it is too late: the item is in flight or answered.
    pub fn withdraw(mut self) -> bool {
        self.release().is_some_and(|in_flight| !in_flight)
    }

    /// Releases the slot. Returns whether the item was in flight or answered; `None` when its answer was taken
    /// before.
    fn release(&mut self) -> Option<bool> {
        if let Some(key) = self.key.take() {
            let (released, driver) = {
                let mut state = lock(&self.shared.state);
                (state.abandon(key), state.take_driver_waker())
            };
            let is_over = released.in_flight || matches!(released.phase, Some(Phase::Answered(_)));
            // Wakers and windows end without the lock: what they do then is not ours to know.
            drop(released);
            if let Some(driver) = driver {
                driver.wake();
            }
            return Some(is_over);
        }
        None
    }
}

impl<T> Drop for Ticket<'_, T> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<T> fmt::Debug for Ticket<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.key)
    }
}
