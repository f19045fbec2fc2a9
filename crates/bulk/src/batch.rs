//! A batch: items that go out in one request, and the bytes of that request.

use crate::lane::Lane;
use crate::slots::{NONE, SlotList, Slots};
use std::time::Instant;
use tidegate_arena::Window;

/// Which batch, by its place in the table.
pub(crate) type Id = u16;

/// The state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Unused.
    Free,
    /// Accepts items.
    Gathering,
    /// Full, but its predecessor is not finished.
    Blocked,
    /// Can be sent as soon as its lane may start another request.
    Ready,
    /// Its request is in flight.
    InFlight,
    /// Waits before rejected items are sent again.
    BackingOff,
}

/// Items of one lane in order of arrival, and their bytes one after the other.
///
/// Invariant: the batch has its window, except while its request is in flight (the request has it), when it was
/// emptied while waiting for its predecessor, or when it is unused. The items' bytes follow the lane's prefix
/// in the order of the list; `dead_bytes` among them belong to items that were withdrawn.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) stage: Stage,
    pub(crate) lane: Lane,
    pub(crate) window: Option<Window>,
    /// The charge of its window, wherever it is.
    pub(crate) charged: u64,
    pub(crate) items: SlotList,
    pub(crate) dead_bytes: usize,
    pub(crate) opened: Instant,
    /// When a batch that is not full is sent, or when rejected items are sent again.
    pub(crate) due: Instant,
    pub(crate) deadline: Instant,
    /// A batch with items for the same documents, which must finish first.
    pub(crate) predecessor: Option<Id>,
    /// The batches whose predecessor this is, by lane.
    pub(crate) followers: [Option<Id>; Lane::WRITES],
    /// How often it was rejected.
    pub(crate) rejections: u32,
    /// The status of the last rejection.
    pub(crate) status: u16,
    /// The most items of the next request: reduced after a request was too large or invalid.
    pub(crate) max_items: u32,
    /// The server assigns the id of at least one item.
    pub(crate) has_auto_ids: bool,
    pub(crate) progress: Progress,
}

/// The progress of a request in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) since: Instant,
    /// The length of its body in bytes.
    pub(crate) end: usize,
    /// How many items it has.
    pub(crate) sent: u32,
    /// How many of them are answered, and how many of those were rejected and may be sent again.
    pub(crate) answered: u32,
    pub(crate) rejected: u32,
    /// The first item without an answer.
    pub(crate) cursor: u32,
}

impl Progress {
    pub(crate) fn none(since: Instant) -> Progress {
        Progress { since, end: 0, sent: 0, answered: 0, rejected: 0, cursor: NONE }
    }
}

impl Batch {
    /// An unused one.
    pub(crate) fn free(now: Instant) -> Batch {
        Batch {
            stage: Stage::Free,
            lane: Lane::Write,
            window: None,
            charged: 0,
            items: SlotList::EMPTY,
            dead_bytes: 0,
            opened: now,
            due: now,
            deadline: now,
            predecessor: None,
            followers: [None; Lane::WRITES],
            rejections: 0,
            status: 0,
            max_items: u32::MAX,
            has_auto_ids: false,
            progress: Progress::none(now),
        }
    }

    /// How long the body is, holes included.
    pub(crate) fn body_len(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.len())
    }

    /// Moves the items together. Holes are gone.
    pub(crate) fn compact(&mut self, slots: &mut Slots) {
        if self.dead_bytes == 0 {
            return;
        }
        let Some(window) = &mut self.window else { return };
        let mut end = self.lane.prefix().len();
        let mut next = self.items.head;
        while let Some(slot) = slots.at_mut(next) {
            let start = slot.start as usize;
            if start != end {
                window.copy_within(start..start + slot.len as usize, end);
                slot.start = u32::try_from(end).unwrap_or(u32::MAX);
            }
            end += slot.len as usize;
            next = slot.next;
        }
        window.truncate(end);
        self.dead_bytes = 0;
    }

    /// Ends the body behind the first `most` items: how many they are and how long the body is.
    ///
    /// The last two bytes of an item of `_mget` separate it from the next one (` ,`); behind the last one they
    /// close the array and the object instead.
    pub(crate) fn close(&mut self, slots: &Slots) -> (u32, usize) {
        let (mut items, mut end) = (self.items.len, self.body_len());
        if self.max_items < items {
            (items, end) = (0, self.lane.prefix().len());
            let mut next = self.items.head;
            while let Some(slot) = slots.at(next).filter(|_| items < self.max_items) {
                (items, end, next) = (items + 1, end + slot.len as usize, slot.next);
            }
        }
        self.trailer(end, *b"]}");
        (items, end)
    }

    /// Takes back what [`close`](Self::close) wrote.
    pub(crate) fn reopen(&mut self) {
        self.trailer(self.progress.end, *b" ,");
    }

    fn trailer(&mut self, end: usize, with: [u8; 2]) {
        if self.lane == Lane::Get
            && let Some(window) = &mut self.window
            && let Some(last) = end.checked_sub(2).and_then(|start| window.get_mut(start..end))
        {
            last.copy_from_slice(&with);
        }
    }
}
