//! The books: what was given to the sender, and what became of it.

use crate::class::{Class, Reason};
use crate::sync::{AtomicU64, Ordering};

const CLASSES: usize = Class::ALL.len();
const REASONS: usize = Reason::ALL.len();

/// The counts so far. While no call is in progress, `enqueued == sent + dropped + queued`, for each class and in
/// total; [`Stats::balance`] is the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Events given to the sender, taken or not, by class in the order of [`Class::ALL`].
    pub enqueued: [u64; CLASSES],
    /// Events that a peer has acknowledged, by class.
    pub sent: [u64; CLASSES],
    /// Events lost, by class and then by reason in the order of [`Reason::ALL`].
    pub dropped: [[u64; REASONS]; CLASSES],
    /// Events in the ring now, counted there.
    pub queued: u64,
    /// Bytes of those events.
    pub queued_bytes: u64,
    /// Bytes that the ring holds.
    pub ring_bytes: u64,
    /// Requests acknowledged.
    pub requests: u64,
    /// Requests that failed and were, or will be, tried again.
    pub retries: u64,
    /// Bytes of acknowledged events, before compression.
    pub sent_bytes: u64,
    /// Bytes written to sockets, after compression, with repeated ones and without TLS.
    pub wire_bytes: u64,
    /// Connections opened.
    pub connections: u64,
}

impl Stats {
    /// Events given to the sender.
    pub fn enqueued_total(&self) -> u64 {
        self.enqueued.iter().sum()
    }

    /// Events acknowledged.
    pub fn sent_total(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Events lost.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().flatten().sum()
    }

    /// Events of one class lost for one reason.
    pub fn dropped(&self, class: Class, reason: Reason) -> u64 {
        self.dropped
            .get(class as usize)
            .and_then(|reasons| reasons.get(reason as usize))
            .copied()
            .unwrap_or(0)
    }

    /// `enqueued - sent - dropped - queued`: 0 but for calls that are under way.
    pub fn balance(&self) -> i64 {
        let there = self.sent_total() + self.dropped_total() + self.queued;
        self.enqueued_total().wrapping_sub(there) as i64
    }
}

/// The counters that [`Stats`] is a copy of. What every event touches is per stripe; the rest is rare.
pub(crate) struct Counters {
    stripes: Box<[Stripe]>,
    sent: [AtomicU64; CLASSES],
    dropped: [[AtomicU64; REASONS]; CLASSES],
    requests: AtomicU64,
    retries: AtomicU64,
    sent_bytes: AtomicU64,
    wire_bytes: AtomicU64,
    connections: AtomicU64,
}

/// Alone on its lines of cache.
#[repr(align(128))]
struct Stripe([AtomicU64; CLASSES]);

impl Counters {
    pub(crate) fn new(stripes: usize) -> Counters {
        Counters {
            stripes: (0..stripes.max(1)).map(|_| Stripe(zeros())).collect(),
            sent: zeros(),
            dropped: std::array::from_fn(|_| zeros()),
            requests: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            wire_bytes: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.stripes.len() * size_of::<Stripe>()
    }

    pub(crate) fn enqueued(&self, stripe: usize, class: Class) {
        let counter = self.stripes.get(stripe).and_then(|stripe| stripe.0.get(class as usize));
        add(counter, 1);
    }

    /// For an event that never came near the ring.
    pub(crate) fn refused(&self, class: Class, reason: Reason) {
        self.enqueued(0, class);
        self.dropped(class, reason, 1);
    }

    pub(crate) fn dropped(&self, class: Class, reason: Reason, events: u64) {
        add(self.dropped.get(class as usize).and_then(|reasons| reasons.get(reason as usize)), events);
    }

    pub(crate) fn sent(&self, class: Class, events: u64, bytes: u64) {
        add(self.sent.get(class as usize), events);
        add(Some(&self.sent_bytes), bytes);
    }

    pub(crate) fn request(&self) {
        add(Some(&self.requests), 1);
    }

    pub(crate) fn retry(&self) {
        add(Some(&self.retries), 1);
    }

    pub(crate) fn wire(&self, bytes: usize) {
        add(Some(&self.wire_bytes), bytes as u64);
    }

    pub(crate) fn connection(&self) {
        add(Some(&self.connections), 1);
    }

    /// All but what is in the ring, which the ring counts.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats {
            sent: read(&self.sent),
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            wire_bytes: self.wire_bytes.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            ..Stats::default()
        };
        for (copy, reasons) in stats.dropped.iter_mut().zip(&self.dropped) {
            *copy = read(reasons);
        }
        for stripe in &self.stripes {
            for (sum, counter) in stats.enqueued.iter_mut().zip(&stripe.0) {
                *sum += counter.load(Ordering::Relaxed);
            }
        }
        stats
    }

    pub(crate) fn reset(&self) {
        let one = [&self.requests, &self.retries, &self.sent_bytes, &self.wire_bytes, &self.connections];
        let all = self.stripes.iter().flat_map(|stripe| &stripe.0);
        for counter in all.chain(&self.sent).chain(self.dropped.iter().flatten()).chain(one) {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn read<const N: usize>(counters: &[AtomicU64; N]) -> [u64; N] {
    std::array::from_fn(|at| counters.get(at).map_or(0, |counter| counter.load(Ordering::Relaxed)))
}

fn add(counter: Option<&AtomicU64>, amount: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}
