//! A batch: items that go out in one request, and the bytes of that request.

use crate::lane::Lane;
use crate::slots::{NONE, Queue, Slots};
use std::time::Instant;
use tidegate_arena::Window;

/// Which batch, by its place in the table.
pub(crate) type Id = u16;

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Unused.
    Free,
    /// Takes items.
    Gathering,
    /// Full, and waits for the batch that it comes after.
    Held,
    /// Waits for its turn to be sent.
    Ready,
    /// Under way.
    Flying,
    /// Waits before what was rejected is sent again.
    Resting,
}

/// Items of one lane, in the order in which they came, and their bytes one after the other.
///
/// Invariant: its window is here unless it is under way (then the flight has it), was emptied while it waits for
/// another batch, or is unused. The items' bytes lie behind the lane's prefix in the order of the list; between
/// them lie `dead` bytes of items that left.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) stage: Stage,
    pub(crate) lane: Lane,
    pub(crate) window: Option<Window>,
    /// The charge of its window, wherever it is.
    pub(crate) charged: u64,
    pub(crate) items: Queue,
    pub(crate) dead: usize,
    pub(crate) opened: Instant,
    /// When it is sent though it is not full, or sent again.
    pub(crate) due: Instant,
    pub(crate) deadline: Instant,
    /// It holds documents that this one holds too, so it must not be sent before that one is done.
    pub(crate) after: Option<Id>,
    /// The predecessors that must be done before it is sent, by lane.
    pub(crate) followers: [Option<Id>; Lane::WRITES],
    /// How often it was rejected.
    pub(crate) rejections: u32,
    /// The status of the last rejection.
    pub(crate) status: u16,
    /// The most items of one request: fewer after one was too large, or was not understood.
    pub(crate) most: u32,
    /// The server chooses the id of one of its items.
    pub(crate) unnamed: bool,
    pub(crate) flight: Progress,
}

/// How far a request under way is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) since: Instant,
    /// How long its body is.
    pub(crate) end: usize,
    /// How many items it has.
    pub(crate) sent: u32,
    /// How many of them are answered, and how many of those were rejected and may be sent again.
    pub(crate) answered: u32,
    pub(crate) rejected: u32,
    /// The first item that is not answered.
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
            items: Queue::EMPTY,
            dead: 0,
            opened: now,
            due: now,
            deadline: now,
            after: None,
            followers: [None; Lane::WRITES],
            rejections: 0,
            status: 0,
            most: u32::MAX,
            unnamed: false,
            flight: Progress::none(now),
        }
    }

    /// How long the body is, holes included.
    pub(crate) fn filled(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.len())
    }

    /// Moves the items together. Holes are gone.
    pub(crate) fn compact(&mut self, slots: &mut Slots) {
        if self.dead == 0 {
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
        self.dead = 0;
    }

    /// Ends the body behind the first `most` items: how many they are and how long the body is.
    ///
    /// The last two bytes of an item of `_mget` separate it from the next one (` ,`); behind the last one they
    /// close the array and the object instead.
    pub(crate) fn close(&mut self, slots: &Slots) -> (u32, usize) {
        let (mut items, mut end) = (self.items.len, self.filled());
        if self.most < items {
            (items, end) = (0, self.lane.prefix().len());
            let mut next = self.items.head;
            while let Some(slot) = slots.at(next).filter(|_| items < self.most) {
                (items, end, next) = (items + 1, end + slot.len as usize, slot.next);
            }
        }
        self.trailer(end, *b"]}");
        (items, end)
    }

    /// Takes back what [`close`](Self::close) wrote.
    pub(crate) fn reopen(&mut self) {
        self.trailer(self.flight.end, *b" ,");
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
