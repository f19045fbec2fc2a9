//! An engine's limits, and the memory declared for it.

use crate::document::ENTRY_BYTES;
use crate::lane::Lane;
use crate::outcome::REASON;
use crate::slots::SLOT_BYTES;
use std::time::Duration;
use tidegate_arena::{Reservation, Share};

/// Bounds and times of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The share charged for bodies and answers.
    pub share: Share,
    /// The most items that wait or are under way at a time.
    pub callers: u32,
    /// A request has at most this many items.
    pub items: u32,
    /// A request's body is at most this long, in bytes, unless a single item is longer.
    pub bytes: usize,
    /// A single item is at most this long, in bytes, its action included.
    pub item_bytes: usize,
    /// How long an item waits for company at most.
    pub interval: Duration,
    /// The most requests of one lane that are under way at a time.
    pub flights: usize,
    /// The most requests of one lane that gather, wait or are under way at a time.
    pub batches: usize,
    /// The most bytes that the bodies of one lane may hold, whatever the share has.
    pub lane_bytes: u64,
    /// The most bytes of an answer that are read.
    pub answer_bytes: usize,
    /// How long one request may take.
    pub timeout: Duration,
    /// Until when after it began to gather a request is sent, or sent again what was rejected of it.
    pub deadline: Duration,
    /// How long to wait before what was rejected is sent again: at first, and at most.
    pub backoff: (Duration, Duration),
    /// How long the engine goes on sending when it is told to end.
    pub grace: Duration,
    /// Items are forwarded ones, whose answers are wanted as the server wrote them: see [`Forward`](crate::Forward).
    pub forwards: bool,
}

impl Settings {
    /// Settings for an engine that holds at most `lane_bytes` for each lane in `share`.
    pub fn new(share: Share, lane_bytes: u64) -> Settings {
        Settings {
            share,
            callers: 8 << 10,
            items: 2048,
            bytes: 1 << 20,
            item_bytes: 4 << 20,
            interval: Duration::from_millis(50),
            flights: 4,
            batches: 16,
            lane_bytes,
            answer_bytes: 8 << 20,
            timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            backoff: (Duration::from_millis(100), Duration::from_secs(10)),
            grace: Duration::from_secs(5),
            forwards: false,
        }
    }

    /// Most bytes outside of the arena: the slots, with an error reason for each that failed.
    pub fn declared(&self) -> Reservation {
        let each = (SLOT_BYTES + ENTRY_BYTES + REASON) as u64;
        let what = "callers of the bulk engine";
        Reservation { owner: "bulk", what, count: u64::from(self.callers), each, setting: None }
    }

    /// Most bytes outside of the arena for its requests in flight.
    pub fn declared_flights(&self) -> Reservation {
        let what = "requests of the bulk engine in flight";
        let lanes = if self.forwards { Lane::WRITES } else { Lane::COUNT };
        let count = (self.flights * lanes) as u64;
        Reservation { owner: "bulk", what, count, each: FLIGHT_BYTES, setting: None }
    }

    /// The same with every bound at least one, and none that its fields cannot count.
    pub(crate) fn within_reason(mut self) -> Settings {
        self.callers = self.callers.clamp(1, 1 << 24);
        self.items = self.items.clamp(1, self.callers);
        self.flights = self.flights.clamp(1, 1 << 10);
        self.batches = self.batches.clamp(self.flights, MOST_BATCHES);
        self.flights = self.flights.min(self.batches);
        self.item_bytes = self.item_bytes.min(u32::MAX as usize / 2);
        self.bytes = self.bytes.min(u32::MAX as usize / 2);
        self
    }
}

/// The most batches of a lane. Letting go of a chain of them recurses.
const MOST_BATCHES: usize = 256;
/// One request under way: its future, its replies and wakers, a part of an answer, a connection's buffers.
const FLIGHT_BYTES: u64 = 192 << 10;
