//! An engine's limits, and the memory declared for it.

use crate::document::ENTRY_BYTES;
use crate::lane::Lane;
use crate::outcome::MAX_REASON_BYTES;
use crate::slots::SLOT_BYTES;
use std::time::Duration;
use tidegate_arena::{Reservation, Share};

/// Bounds and times of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The arena's share that bodies and responses are charged to.
    pub share: Share,
    /// The most items that wait or are in flight.
    pub slots: u32,
    /// The most items of a request.
    pub batch_items: u32,
    /// The most bytes of a request's body, unless a single item is longer.
    pub batch_bytes: usize,
    /// The most bytes of an item, its action included.
    pub item_bytes: usize,
    /// How long an item waits for others to share its request.
    pub linger: Duration,
    /// The most requests of one lane in flight.
    pub max_in_flight: usize,
    /// The most batches of one lane, whether they gather, wait or are in flight.
    pub batches: usize,
    /// The most bytes of the bodies of one lane.
    pub lane_bytes: u64,
    /// The most bytes of a response that are read.
    pub answer_bytes: usize,
    /// The timeout of one request.
    pub timeout: Duration,
    /// How long after a batch began it may still be sent, retries included.
    pub deadline: Duration,
    /// How long after a batch began it may be sent again, when the server refused it or could not be reached. Callers learn
    /// of a failing server that much earlier than of a slow one.
    pub retry_for: Duration,
    /// The backoff before rejected items are sent again: at first, and at most.
    pub backoff: (Duration, Duration),
    /// How long the driver goes on sending after it was told to stop.
    pub grace: Duration,
    /// The engine forwards items and returns responses as the server wrote them: see
    /// [`Forward`](crate::Forward).
    pub forwards: bool,
}

impl Settings {
    /// Settings for an engine that holds at most `lane_bytes` for each lane in `share`.
    pub fn new(share: Share, lane_bytes: u64) -> Settings {
        Settings {
            share,
            slots: 8 << 10,
            batch_items: 2048,
            batch_bytes: 1 << 20,
            item_bytes: 4 << 20,
            linger: Duration::from_millis(50),
            max_in_flight: 4,
            batches: 16,
            lane_bytes,
            answer_bytes: 8 << 20,
            timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            retry_for: Duration::from_secs(60 * 60),
            backoff: (Duration::from_millis(100), Duration::from_secs(10)),
            grace: Duration::from_secs(5),
            forwards: false,
        }
    }

    /// Most bytes outside of the arena: the slots, with an error reason for each that failed.
    pub fn declared(&self) -> Reservation {
        let each = (SLOT_BYTES + ENTRY_BYTES + MAX_REASON_BYTES) as u64;
        let what = "callers of the bulk engine";
        Reservation { owner: "bulk", what, count: u64::from(self.slots), each, setting: None }
    }

    /// Most bytes outside of the arena for requests in flight.
    pub fn declared_in_flight(&self) -> Reservation {
        let what = "requests of the bulk engine in flight";
        let lanes = if self.forwards { Lane::WRITES } else { Lane::COUNT };
        let count = (self.max_in_flight * lanes) as u64;
        Reservation { owner: "bulk", what, count, each: REQUEST_BYTES, setting: None }
    }

    /// The same with every bound at least one, and none that its fields cannot count.
    pub(crate) fn clamped(mut self) -> Settings {
        self.slots = self.slots.clamp(1, 1 << 24);
        self.batch_items = self.batch_items.clamp(1, self.slots);
        self.max_in_flight = self.max_in_flight.clamp(1, 1 << 10);
        self.batches = self.batches.clamp(self.max_in_flight, MAX_BATCHES);
        self.max_in_flight = self.max_in_flight.min(self.batches);
        self.item_bytes = self.item_bytes.min(u32::MAX as usize / 2);
        self.batch_bytes = self.batch_bytes.min(u32::MAX as usize / 2);
        self
    }
}

/// The most batches of a lane. Letting go of a chain of them recurses.
const MAX_BATCHES: usize = 256;
/// One request in flight: its future, its replies and wakers, a part of a response, a connection's buffers.
const REQUEST_BYTES: u64 = 192 << 10;
