//! A caller's side: an item gets its slot and its place in a batch, or is taken back.

use super::{ReleasedValues, State};
use crate::batch::{Batch, Id, Stage};
use crate::clock;
use crate::document;
use crate::lane::Lane;
use crate::new_item::NewItem;
use crate::outcome::BulkSubmitError;
use crate::slots::{NONE, Phase, SlotKey};
use tidegate_arena::{ChargeError as Short, Window, rounded};

impl State {
    /// Accepts an item: copies its bytes into its batch's window before it returns.
    ///
    /// `max_len` is [`NewItem::max_len`], and `hash` is made with [`NewItem::with_document_key`], both without
    /// the lock.
    pub(crate) fn submit(
        &mut self,
        item: &NewItem<'_>,
        max_len: usize,
        hash: Option<u64>,
    ) -> Result<SlotKey, BulkSubmitError> {
        let lane = item.lane();
        let taken = self.find_batch(lane, max_len, hash).and_then(|(id, found)| {
            let key = self.slots.take(id).ok_or_else(|| self.full_error(lane))?;
            let document = hash.map(|hash| self.documents.add(found, hash, id));
            self.write(item, id, key, document);
            Ok(key)
        });
        let counts = &mut self.lane_mut(lane).counts;
        match taken {
            Ok(_) => counts.submitted += 1,
            Err(_) => counts.refused += 1,
        }
        taken
    }

    /// The batch for an item, with memory for it, and the entry of its document.
    fn find_batch(
        &mut self,
        lane: Lane,
        max_len: usize,
        hash: Option<u64>,
    ) -> Result<(Id, Option<u32>), BulkSubmitError> {
        if self.stopping {
            return Err(BulkSubmitError::Stopping);
        }
        let window = self.arena.window_len().saturating_sub(lane.prefix().len());
        let most = self.settings.item_bytes.min(window);
        if max_len > most {
            return Err(BulkSubmitError::TooLarge { bytes: max_len, most });
        }
        if self.slots.is_full() {
            return Err(self.full_error(lane));
        }
        let found = hash.and_then(|hash| self.documents.find(hash));
        let id = match found.and_then(|found| self.documents.batch(found)) {
            Some(last) => self.follower_of(last, lane, max_len)?,
            None => self.open_batch(lane, max_len)?,
        };
        Ok((id, found))
    }

    /// The lane's open batch, or a new one.
    fn open_batch(&mut self, lane: Lane, max_len: usize) -> Result<Id, BulkSubmitError> {
        if let Some(id) = self.lane(lane).open {
            if self.accepts(id, lane, max_len) {
                return self.reserve(id, max_len);
            }
            self.seal(id);
        }
        let preferred = self.lane(lane).last_body_len;
        let id = self.begin_batch(lane, max_len, preferred, None)?;
        self.lane_mut(lane).open = Some(id);
        Ok(id)
    }

    /// A batch for an item whose document has an item in `last` already: `last` itself, or one that is sent only
    /// when `last` is done.
    fn follower_of(&mut self, last: Id, lane: Lane, max_len: usize) -> Result<Id, BulkSubmitError> {
        let mut at = last;
        loop {
            if self.accepts(at, lane, max_len) {
                return self.reserve(at, max_len);
            }
            let Some(batch) = self.batch_mut(at) else { return Err(self.full_error(lane)) };
            let gathering = batch.stage == Stage::Gathering;
            let (full, next) = (gathering && batch.lane == lane, batch.followers[lane.index()]);
            if full {
                self.seal(at);
            } else if gathering {
                // Somebody waits for it now.
                super::batch_due_now(self.batch_mut(at));
                self.has_driver_work = true;
            }
            let Some(next) = next else {
                let id = self.begin_batch(lane, max_len, 0, Some(at))?;
                if let Some(batch) = self.batch_mut(at) {
                    batch.followers[lane.index()] = Some(id);
                }
                return Ok(id);
            };
            at = next;
        }
    }

    fn accepts(&mut self, id: Id, lane: Lane, max_len: usize) -> bool {
        let (items, bytes) = (self.settings.batch_items, self.settings.batch_bytes);
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return false };
        if batch.stage != Stage::Gathering || batch.lane != lane || batch.items.len >= items {
            return false;
        }
        if batch.body_len() + max_len > bytes && 2 * batch.dead_bytes >= batch.body_len() {
            batch.compact(&mut self.slots);
        }
        batch.items.len == 0 || batch.body_len() + max_len <= bytes
    }

    /// Pays for `max_len` more bytes in batch `id`.
    fn reserve(&mut self, id: Id, max_len: usize) -> Result<Id, BulkSubmitError> {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else {
            return Err(BulkSubmitError::Stopping);
        };
        let lane = batch.lane;
        if batch.window.as_ref().is_some_and(|window| window.spare() >= max_len) {
            return Ok(id);
        }
        if batch.dead_bytes > 0 && 2 * batch.dead_bytes >= batch.body_len() {
            batch.compact(&mut self.slots);
        }
        let charged = batch.charged;
        let Some(window) = &mut batch.window else {
            let window = self.window(lane, max_len, 0)?;
            self.charge(id, window.charged());
            if let Some(batch) = self.batch_mut(id) {
                batch.window = Some(window);
            }
            return Ok(id);
        };
        let wanted = rounded(window.len() + max_len) as u64;
        let more = wanted.saturating_sub(charged);
        if self.lanes[lane.index()].charged + more <= self.settings.lane_bytes
            && window.try_reserve(max_len).is_ok()
        {
            let now = window.charged();
            self.charge(id, now);
            return Ok(id);
        }
        // A missing resource may be free once this batch is sent, so the batch does not linger.
        super::batch_due_now(Some(batch));
        self.has_driver_work = true;
        Err(self.full_error(lane))
    }

    fn charge(&mut self, id: Id, charged: usize) {
        let Some(batch) = self.batch_mut(id) else { return };
        let (lane, before) = (batch.lane, batch.charged);
        batch.charged = charged as u64;
        let state = self.lane_mut(lane);
        state.charged = state.charged - before + charged as u64;
    }

    /// A window for a body that begins with an item of `max_len` bytes; with capacity for `preferred` bytes if
    /// that leaves half of the lane's bytes to other batches.
    fn window(&mut self, lane: Lane, max_len: usize, preferred: usize) -> Result<Window, BulkSubmitError> {
        let (first, most) = (lane.prefix().len() + max_len, self.settings.lane_bytes);
        let wanted = rounded(first) as u64;
        if wanted > most {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Err(BulkSubmitError::TooLarge { bytes: max_len, most });
        }
        if self.lane(lane).charged + wanted > most {
            return Err(self.full_error(lane));
        }
        let share = self.settings.share;
        let may_prefer = preferred > first && self.lane(lane).charged + rounded(preferred) as u64 <= most / 2;
        let preferred = if may_prefer { self.arena.try_window(share, preferred).ok() } else { None };
        let mut window = match preferred.map_or_else(|| self.arena.try_window(share, first), Ok) {
            Ok(window) => window,
            Err(Short::Never { most, .. }) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                return Err(BulkSubmitError::TooLarge { bytes: max_len, most });
            }
            Err(Short::Short | Short::Crowded) => return Err(self.full_error(lane)),
        };
        // Paid for above.
        let _ = window.append(lane.prefix());
        Ok(window)
    }

    /// A new batch with memory for `max_len` bytes, or for `preferred` bytes if possible.
    fn begin_batch(
        &mut self,
        lane: Lane,
        max_len: usize,
        preferred: usize,
        predecessor: Option<Id>,
    ) -> Result<Id, BulkSubmitError> {
        if self.lane(lane).batches >= self.settings.batches {
            return Err(self.full_error(lane));
        }
        let window = self.window(lane, max_len, preferred)?;
        let now = clock::now();
        let id = self.free_batch_id(lane);
        let charged = window.charged();
        let batch = Batch {
            stage: Stage::Gathering,
            lane,
            window: Some(window),
            due: now + self.settings.linger,
            deadline: now + self.settings.deadline,
            predecessor,
            ..Batch::free(now)
        };
        if let Some(spare) = self.batch_mut(id) {
            *spare = batch;
        }
        self.lane_mut(lane).batches += 1;
        self.charge(id, charged);
        self.has_driver_work = true;
        Ok(id)
    }

    /// An unused place in the table for a batch of `lane`: those whose number is the lane's, modulo their number.
    fn free_batch_id(&mut self, lane: Lane) -> Id {
        let places = (lane.index()..).step_by(Lane::COUNT).take(self.settings.batches);
        let free = |at: &usize| self.batches.get(*at).is_none_or(|batch| batch.stage == Stage::Free);
        let at = places.into_iter().find(free).unwrap_or(lane.index());
        if at >= self.batches.len() {
            let unused = || Batch::free(clock::now());
            self.batches.resize_with(at + 1, unused);
        }
        // There are at most `Lane::COUNT` times 256.
        Id::try_from(at).unwrap_or(Id::MAX)
    }

    /// Writes an item to the end of batch `id`, which has the memory.
    fn write(&mut self, item: &NewItem<'_>, id: Id, key: SlotKey, document: Option<u32>) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        let Some(window) = &mut batch.window else { return };
        let start = window.len();
        let len = item.write(window.spare_mut());
        window.advance(len);
        batch.has_auto_ids |= item.has_auto_id();
        if let Some(slot) = self.slots.at_mut(key.slot) {
            // Bodies are at most half of what a `u32` counts: see `Settings::within_reason`.
            slot.start = u32::try_from(start).unwrap_or(u32::MAX);
            slot.len = u32::try_from(len).unwrap_or(u32::MAX);
            slot.document = document.unwrap_or(NONE);
            slot.has_auto_id = item.has_auto_id();
        }
        batch.items.push(&mut self.slots, key.slot);
        let full =
            batch.items.len >= self.settings.batch_items || batch.body_len() >= self.settings.batch_bytes;
        self.lanes[item.lane().index()].depth += 1;
        if full {
            self.seal(id);
        }
    }

    /// Releases an item whose caller dropped its ticket.
    pub(crate) fn abandon(&mut self, key: SlotKey) -> ReleasedValues {
        let mut released = ReleasedValues::default();
        let Some(slot) = self.slots.get_mut(key) else { return released };
        let (id, answered) = (slot.batch, matches!(slot.phase, Phase::Answered(_)));
        if !answered {
            let Some(batch) = self.batches.get(usize::from(id)) else { return released };
            if batch.stage != Stage::InFlight {
                return self.withdraw(id, key.slot);
            }
            // Its answer will be discarded.
            slot.phase = Phase::Abandoned;
            released.waker = slot.waker.take();
            released.in_flight = true;
            let lane = batch.lane;
            self.lane_mut(lane).counts.abandoned += 1;
            return released;
        }
        let (phase, waker) = self.release(key.slot);
        (released.phase, released.waker) = (Some(phase), waker);
        released
    }

    /// Removes an item that is not in flight from batch `id`.
    pub(super) fn withdraw(&mut self, id: Id, slot: u32) -> ReleasedValues {
        let mut released = ReleasedValues::default();
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return released };
        batch.items.remove(&mut self.slots, slot);
        if let Some(item) = self.slots.at(slot) {
            let (start, len) = (item.start as usize, item.len as usize);
            match &mut batch.window {
                Some(window) if start + len == window.len() => window.truncate(start),
                _ => batch.dead_bytes += len,
            }
            self.documents.remove(item.document);
        }
        let (lane, empty) = (batch.lane, batch.items.len == 0);
        self.lane_mut(lane).counts.withdrawn += 1;
        let (phase, waker) = self.release(slot);
        (released.phase, released.waker) = (Some(phase), waker);
        if empty {
            released.window = self.release_emptied(id);
        }
        released
    }

    /// Handles batch `id`, which is not in flight, after its last item was withdrawn.
    pub(super) fn release_emptied(&mut self, id: Id) -> Option<Window> {
        let batch = self.batch_mut(id)?;
        batch.dead_bytes = 0;
        if batch.predecessor.is_some() {
            // It keeps its place in the order. Its memory it does not need.
            batch.stage = Stage::Gathering;
            let window = batch.window.take();
            self.charge(id, 0);
            return window;
        }
        if batch.stage == Stage::Gathering {
            // Kept for the next item until it is due: submitting and withdrawing in turn allocates no windows.
            let start = batch.lane.prefix().len();
            if let Some(window) = &mut batch.window {
                window.truncate(start);
            }
            return None;
        }
        self.complete(id)
    }

    /// The error for a lane without memory, with the delay after which to try again.
    fn full_error(&self, lane: Lane) -> BulkSubmitError {
        let (state, now) = (self.lane(lane), clock::now());
        BulkSubmitError::Full { retry_after: state.throughput.delay(state.charged, self.oldest(lane), now) }
    }
}

/// The identity of the document of `item`.
pub(crate) fn hash_of(seed: u64, item: &NewItem<'_>) -> Option<u64> {
    item.with_document_key(|index, id| document::hash(seed, index, id))
}
