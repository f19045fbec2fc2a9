//! A group of records written with one call: synced by one thread while the next group is written, and settled in
//! the order of writing.

use crate::append::AppendResult;
use crate::checkpoints::Checkpoints;
use crate::segment::SegmentHead;
use crate::segment_index::Head;
use crate::settings::Durability;
use crate::shared::Shared;
use crate::sync::lock;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use tidegate_files::folder::File;

/// A group that was written, until it is settled. Kept by one thread and used again and again.
pub(crate) struct WriteGroup {
    shared: Arc<Shared>,
    /// Which of the threads keeps it.
    pub(super) hand: usize,
    /// Where in the order it is, while it is on its way.
    number: Option<u64>,
    /// The open file description that it syncs, used by no other thread. The kernel reports a writeback error once
    /// per description; with a shared one, a thread could receive the error of another's group, and the other none.
    file: Option<Arc<dyn File>>,
    /// Where it ends in its segment, and what the head is behind it.
    end: u64,
    head: Head,
    first: SegmentHead,
    synced: io::Result<()>,
    took_ns: Option<u64>,
    /// Its slots, and what they are answered when all went well.
    pub(super) outcomes: Vec<(u32, AppendResult)>,
    /// The checkpoints of its records, in their order.
    pub(super) checkpoints: Vec<Checkpoints>,
    wakers: Vec<Waker>,
}

impl WriteGroup {
    pub(crate) fn new(shared: Arc<Shared>, hand: usize) -> WriteGroup {
        let slots = shared.settings.queue;
        WriteGroup {
            shared,
            hand,
            number: None,
            file: None,
            end: 0,
            head: Head::default(),
            first: SegmentHead { items_before: 0, received_at_ns: 0 },
            synced: Ok(()),
            took_ns: None,
            outcomes: Vec::with_capacity(slots),
            checkpoints: Vec::new(),
            wakers: Vec::with_capacity(slots),
        }
    }

    /// The group was written. Nothing may be written behind it before this was called.
    pub(super) fn start_sync(&mut self, file: Arc<dyn File>, end: u64, head: Head, first: SegmentHead) {
        self.number = Some(self.shared.order.register());
        (self.end, self.head, self.first) = (end, head, first);
        (self.file, self.synced, self.took_ns) = (Some(file), Ok(()), None);
    }

    /// Makes the group durable, where that is asked for.
    pub(crate) fn sync(&mut self) {
        let Some(file) = &self.file else { return };
        if self.shared.settings.durability == Durability::Fsync {
            let before = self.shared.clock.monotonic_ns();
            self.synced = file.sync();
            self.took_ns = Some(self.shared.clock.monotonic_ns().saturating_sub(before));
        }
    }

    /// Waits for the groups before it, then acknowledges it or refuses it.
    pub(crate) fn settle(&mut self) {
        let Some(number) = self.number.take() else { return };
        self.file = None;
        let mut broken = self.shared.order.await_turn(number);
        let synced = std::mem::replace(&mut self.synced, Ok(()));
        if let (None, Err(error)) = (broken, &synced) {
            broken = Some(self.shared.failed(error));
        }
        // It is nobody else's turn until this one leaves, so nothing is locked meanwhile.
        match broken {
            None => self.publish(),
            Some(trouble) => {
                self.checkpoints.clear();
                let refused = Err(self.shared.refusal(trouble));
                self.outcomes.iter_mut().for_each(|(_, outcome)| *outcome = refused);
                self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
            }
        }
        self.shared.order.leave(broken);
    }

    /// Lets sinks read the group and acknowledges it.
    fn publish(&mut self) {
        let mut index = lock(&self.shared.index);
        if let Some(took) = self.took_ns {
            let counters = &mut index.counters;
            counters.syncs += 1;
            counters.sync_ns += took;
            counters.last_sync_ns = took;
        }
        // With the head, so that a saved table has the notes of exactly the records before it.
        self.checkpoints.drain(..).for_each(|checkpoints| index.checkpoints.apply(checkpoints.note()));
        index.grow(self.end, self.head, self.first);
        index.wakers(&mut self.wakers);
        drop(index);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }
}
