//! A caller's side: an item gets its slot and its place in a batch, or is taken back.

use super::{Left, State};
use crate::batch::{Batch, Id, Stage};
use crate::clock;
use crate::document;
use crate::lane::Lane;
use crate::line::Line;
use crate::outcome::Refused;
use crate::slots::{Key, NONE, Phase};
use tidegate_arena::{ChargeError as Short, Window, rounded};

impl State {
    /// Takes an item in: its bytes are copied into its batch's window before this returns.
    ///
    /// `bound` is [`Line::bound`] and `hash` that of [`Line::ordered`], made without the lock.
    pub(crate) fn submit(
        &mut self,
        line: &Line<'_>,
        bound: usize,
        hash: Option<u64>,
    ) -> Result<Key, Refused> {
        let lane = line.lane();
        let taken = self.place(lane, bound, hash).and_then(|(id, found)| {
            let key = self.slots.take(id).ok_or_else(|| self.full(lane))?;
            let document = hash.map(|hash| self.documents.add(found, hash, id));
            self.write(line, id, key, document);
            Ok(key)
        });
        let counts = &mut self.lane_mut(lane).counts;
        match taken {
            Ok(_) => counts.submitted += 1,
            Err(_) => counts.refused += 1,
        }
        taken
    }

    /// The batch for an item, with room for it, and the entry of its document.
    fn place(&mut self, lane: Lane, bound: usize, hash: Option<u64>) -> Result<(Id, Option<u32>), Refused> {
        if self.stopping {
            return Err(Refused::Stopping);
        }
        let window = self.arena.window_len().saturating_sub(lane.prefix().len());
        let most = self.settings.item_bytes.min(window);
        if bound > most {
            return Err(Refused::TooLarge { bytes: bound, most });
        }
        if self.slots.is_full() {
            return Err(self.full(lane));
        }
        let found = hash.and_then(|hash| self.documents.find(hash));
        let id = match found.and_then(|found| self.documents.batch(found)) {
            Some(last) => self.behind(last, lane, bound)?,
            None => self.open(lane, bound)?,
        };
        Ok((id, found))
    }

    /// The lane's open batch, or a new one.
    fn open(&mut self, lane: Lane, bound: usize) -> Result<Id, Refused> {
        if let Some(id) = self.lane(lane).open {
            if self.accepts(id, lane, bound) {
                return self.make_room(id, bound);
            }
            self.seal(id);
        }
        let usual = self.lane(lane).usual;
        let id = self.begin(lane, bound, usual, None)?;
        self.lane_mut(lane).open = Some(id);
        Ok(id)
    }

    /// A batch for an item whose document has an item in `last` already: `last` itself, or one that is sent only
    /// when `last` is done.
    fn behind(&mut self, last: Id, lane: Lane, bound: usize) -> Result<Id, Refused> {
        let mut at = last;
        loop {
            if self.accepts(at, lane, bound) {
                return self.make_room(at, bound);
            }
            let Some(batch) = self.batch_mut(at) else { return Err(self.full(lane)) };
            let gathering = batch.stage == Stage::Gathering;
            let (full, next) = (gathering && batch.lane == lane, batch.followers[lane.index()]);
            if full {
                self.seal(at);
            } else if gathering {
                // Somebody waits for it now.
                super::batch_due_now(self.batch_mut(at));
                self.nudged = true;
            }
            let Some(next) = next else {
                let id = self.begin(lane, bound, 0, Some(at))?;
                if let Some(batch) = self.batch_mut(at) {
                    batch.followers[lane.index()] = Some(id);
                }
                return Ok(id);
            };
            at = next;
        }
    }

    fn accepts(&mut self, id: Id, lane: Lane, bound: usize) -> bool {
        let (items, bytes) = (self.settings.items, self.settings.bytes);
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return false };
        if batch.stage != Stage::Gathering || batch.lane != lane || batch.items.len >= items {
            return false;
        }
        if batch.filled() + bound > bytes && 2 * batch.dead >= batch.filled() {
            batch.compact(&mut self.slots);
        }
        batch.items.len == 0 || batch.filled() + bound <= bytes
    }

    /// Pays for `bound` more bytes in batch `id`.
    fn make_room(&mut self, id: Id, bound: usize) -> Result<Id, Refused> {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else {
            return Err(Refused::Stopping);
        };
        let lane = batch.lane;
        if batch.window.as_ref().is_some_and(|window| window.spare() >= bound) {
            return Ok(id);
        }
        if batch.dead > 0 && 2 * batch.dead >= batch.filled() {
            batch.compact(&mut self.slots);
        }
        let charged = batch.charged;
        let Some(window) = &mut batch.window else {
            let window = self.window(lane, bound, 0)?;
            self.charge(id, window.charged());
            if let Some(batch) = self.batch_mut(id) {
                batch.window = Some(window);
            }
            return Ok(id);
        };
        let wanted = rounded(window.len() + bound) as u64;
        let more = wanted.saturating_sub(charged);
        if self.lanes[lane.index()].charged + more <= self.settings.lane_bytes
            && window.try_reserve(bound).is_ok()
        {
            let now = window.charged();
            self.charge(id, now);
            return Ok(id);
        }
        // A missing resource may be free once this batch is sent, so the batch does not linger.
        super::batch_due_now(Some(batch));
        self.nudged = true;
        Err(self.full(lane))
    }

    fn charge(&mut self, id: Id, charged: usize) {
        let Some(batch) = self.batch_mut(id) else { return };
        let (lane, before) = (batch.lane, batch.charged);
        batch.charged = charged as u64;
        let queues = self.lane_mut(lane);
        queues.charged = queues.charged - before + charged as u64;
    }

    /// A window for a body that begins with an item of `bound` bytes, with room for `usual` bytes if that leaves
    /// half of what the lane may hold to others.
    fn window(&mut self, lane: Lane, bound: usize, usual: usize) -> Result<Window, Refused> {
        let (first, most) = (lane.prefix().len() + bound, self.settings.lane_bytes);
        let wanted = rounded(first) as u64;
        if wanted > most {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Err(Refused::TooLarge { bytes: bound, most });
        }
        if self.lane(lane).charged + wanted > most {
            return Err(self.full(lane));
        }
        let share = self.settings.share;
        let roomy = usual > first && self.lane(lane).charged + rounded(usual) as u64 <= most / 2;
        let usual = if roomy { self.arena.try_window(share, usual).ok() } else { None };
        let mut window = match usual.map_or_else(|| self.arena.try_window(share, first), Ok) {
            Ok(window) => window,
            Err(Short::Never { most, .. }) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                return Err(Refused::TooLarge { bytes: bound, most });
            }
            Err(Short::Short | Short::Crowded) => return Err(self.full(lane)),
        };
        // Paid for above.
        let _ = window.append(lane.prefix());
        Ok(window)
    }

    /// A new batch with room for `bound` bytes, and better for `usual`.
    fn begin(&mut self, lane: Lane, bound: usize, usual: usize, after: Option<Id>) -> Result<Id, Refused> {
        if self.lane(lane).batches >= self.settings.batches {
            return Err(self.full(lane));
        }
        let window = self.window(lane, bound, usual)?;
        let now = clock::now();
        let id = self.spare(lane);
        let charged = window.charged();
        let batch = Batch {
            stage: Stage::Gathering,
            lane,
            window: Some(window),
            due: now + self.settings.interval,
            deadline: now + self.settings.deadline,
            after,
            ..Batch::free(now)
        };
        if let Some(spare) = self.batch_mut(id) {
            *spare = batch;
        }
        self.lane_mut(lane).batches += 1;
        self.charge(id, charged);
        self.nudged = true;
        Ok(id)
    }

    /// An unused place in the table for a batch of `lane`: those whose number is the lane's, modulo their number.
    fn spare(&mut self, lane: Lane) -> Id {
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

    /// Writes an item to the end of batch `id`, which has the room.
    fn write(&mut self, line: &Line<'_>, id: Id, key: Key, document: Option<u32>) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        let Some(window) = &mut batch.window else { return };
        let start = window.len();
        let len = line.write(window.spare_mut());
        window.advance(len);
        batch.unnamed |= line.unnamed();
        if let Some(slot) = self.slots.at_mut(key.slot) {
            // Bodies are at most half of what a `u32` counts: see `Settings::within_reason`.
            slot.start = u32::try_from(start).unwrap_or(u32::MAX);
            slot.len = u32::try_from(len).unwrap_or(u32::MAX);
            slot.document = document.unwrap_or(NONE);
            slot.unnamed = line.unnamed();
        }
        batch.items.push(&mut self.slots, key.slot);
        let full = batch.items.len >= self.settings.items || batch.filled() >= self.settings.bytes;
        self.lanes[line.lane().index()].depth += 1;
        if full {
            self.seal(id);
        }
    }

    /// The caller of `key` went away.
    pub(crate) fn leave(&mut self, key: Key) -> Left {
        let mut left = Left::default();
        let Some(slot) = self.slots.of(key) else { return left };
        let (id, answered) = (slot.batch, matches!(slot.phase, Phase::Answered(_)));
        if !answered {
            let Some(batch) = self.batches.get(usize::from(id)) else { return left };
            if batch.stage != Stage::Flying {
                return self.take_back(id, key.slot);
            }
            // The answer finds nobody.
            slot.phase = Phase::Abandoned;
            left.waker = slot.waker.take();
            left.in_flight = true;
            let lane = batch.lane;
            self.lane_mut(lane).counts.abandoned += 1;
            return left;
        }
        let (phase, waker) = self.release(key.slot);
        (left.phase, left.waker) = (Some(phase), waker);
        left
    }

    /// Takes an item that is not under way out of batch `id`.
    pub(super) fn take_back(&mut self, id: Id, slot: u32) -> Left {
        let mut left = Left::default();
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return left };
        batch.items.remove(&mut self.slots, slot);
        if let Some(item) = self.slots.at(slot) {
            let (start, len) = (item.start as usize, item.len as usize);
            match &mut batch.window {
                Some(window) if start + len == window.len() => window.truncate(start),
                _ => batch.dead += len,
            }
            self.documents.remove(item.document);
        }
        let (lane, empty) = (batch.lane, batch.items.len == 0);
        self.lane_mut(lane).counts.withdrawn += 1;
        let (phase, waker) = self.release(slot);
        (left.phase, left.waker) = (Some(phase), waker);
        if empty {
            left.window = self.emptied(id);
        }
        left
    }

    /// Everybody in batch `id`, which is not under way, went away.
    pub(super) fn emptied(&mut self, id: Id) -> Option<Window> {
        let batch = self.batch_mut(id)?;
        batch.dead = 0;
        if batch.after.is_some() {
            // It keeps its place in the order. Its memory it does not need.
            batch.stage = Stage::Gathering;
            let window = batch.window.take();
            self.charge(id, 0);
            return window;
        }
        if batch.stage == Stage::Gathering {
            // Kept for the next caller until it is due, so that callers who come and go cost no windows.
            let start = batch.lane.prefix().len();
            if let Some(window) = &mut batch.window {
                window.truncate(start);
            }
            return None;
        }
        self.complete(id)
    }

    /// A refusal for want of room in `lane`, with the delay after which there should be some.
    fn full(&self, lane: Lane) -> Refused {
        let (queues, now) = (self.lane(lane), clock::now());
        Refused::Full { retry_after: queues.drain.delay(queues.charged, self.oldest(lane), now) }
    }
}

/// The identity of the document of `line`.
pub(crate) fn hash_of(seed: u64, line: &Line<'_>) -> Option<u64> {
    line.ordered(|index, id| document::hash(seed, index, id))
}
