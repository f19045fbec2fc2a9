//! The sending thread: waits for enough events or the time, sends them, and tries again until they are there.

mod answer;
mod backoff;
mod peer;
mod request;

pub(crate) use peer::OtlpEndpoint;

use crate::class::{Class, Reason, Signal};
use crate::config::Protocol;
use crate::http::{Buffers, Connection, Resolver, Response};
use crate::ring::{Batch, Ring};
use crate::sender::{SCOPES, Shared};
use answer::Answer;
use backoff::Backoff;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

thread_local! {
    static SENDING: Cell<bool> = const { Cell::new(false) };
}

/// On the sending thread, where what is logged must not become a new event.
#[cfg_attr(not(any(feature = "tracing", feature = "log")), expect(dead_code, reason = "for these features"))]
pub(crate) fn on_sending_thread() -> bool {
    SENDING.get()
}

pub(crate) fn buffers_memory(peer: &OtlpEndpoint) -> usize {
    Buffers::memory(peer.gzip()) + Response::MEMORY
}

pub(crate) fn tables_memory(ring: &Ring) -> usize {
    Batch::new(ring, 0).memory() + SCOPES * size_of::<usize>()
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    buffers: Buffers,
    response: Response,
    batch: Batch,
    /// To the peer of each signal, or one for all.
    connections: [Option<Connection>; 3],
    names: Resolver,
    #[cfg(feature = "tls")]
    tls: Option<crate::http::TlsClient>,
    /// The prefix of each body: resource, or metadata.
    preamble: Vec<u8>,
    /// Bytes of events by scope, in the request under way.
    sums: Box<[usize]>,
    backoff: Backoff,
    /// The flush for which a failing peer has been tried out of turn.
    tried_for: u64,
    next_flush: Instant,
}

impl Worker {
    /// `forked`: in a child, whose parent has a sending thread of its own.
    pub(crate) fn new(shared: Arc<Shared>, forked: bool) -> Worker {
        let peer = &shared.peer;
        Worker {
            buffers: Buffers::new(peer.gzip()),
            response: Response::new(),
            batch: Batch::new(&shared.ring, shared.work.batch_bytes),
            connections: [None, None, None],
            names: Resolver::new(Arc::clone(&shared.known_addresses), forked),
            #[cfg(feature = "tls")]
            tls: peer.tls.as_ref().map(crate::http::Tls::client),
            preamble: peer.preamble(shared.protocol, None),
            sums: vec![0; SCOPES].into_boxed_slice(),
            backoff: Backoff::new(peer.backoff),
            tried_for: 0,
            next_flush: Instant::now() + peer.flush_interval,
            shared,
        }
    }

    pub(crate) fn run(mut self) {
        SENDING.set(true);
        while !self.shared.work.stop.load(Ordering::Acquire) {
            self.turn();
        }
        self.finish();
    }

    /// Sends what is due, and sleeps until something is.
    fn turn(&mut self) {
        let now = Instant::now();
        let wanted = self.shared.work.flush.load(Ordering::Relaxed);
        let flush = self.shared.ring.has_before(wanted);
        let out_of_turn = flush && wanted > self.tried_for && !self.backoff.asked_for;
        let time = now >= self.next_flush;
        let size = self.shared.ring.sealed_bytes() >= self.shared.work.batch_bytes;
        let retry = self.backoff.failures > 0 && self.shared.ring.oldest_sealed().is_some();
        if (flush || time || size || retry) && (out_of_turn || !self.backoff.is_waiting(now)) {
            if flush {
                self.tried_for = wanted;
            }
            self.drain(flush || time);
            self.next_flush = Instant::now() + self.shared.peer.flush_interval;
        }
        self.sleep();
    }

    fn sleep(&self) {
        let work = &self.shared.work;
        let now = Instant::now();
        let until = match self.backoff.until {
            Some(until) if until > now => until,
            _ => {
                work.asleep.store(true, Ordering::Relaxed);
                // Whoever sealed a block before it could see that we sleep has left a count; who does so from
                // here on unparks. One that is missed all the same, for want of a fence on the callers' side,
                // waits for the flush interval.
                std::sync::atomic::fence(Ordering::SeqCst);
                if self.shared.ring.sealed_bytes() >= work.batch_bytes {
                    work.asleep.store(false, Ordering::Relaxed);
                    return;
                }
                // A producer is just writing behind an event that somebody wants to see sent.
                let wanted = self.shared.ring.has_before(work.flush.load(Ordering::Relaxed));
                if wanted { self.next_flush.min(now + Duration::from_millis(1)) } else { self.next_flush }
            }
        };
        if !work.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(until.saturating_duration_since(now));
        }
        work.asleep.store(false, Ordering::Relaxed);
    }

    /// Sends all sealed blocks, and before them seals the open ones if they are wanted too. False when the
    /// peer does not take them.
    fn drain(&mut self, mut open: bool) -> bool {
        loop {
            // While nothing gets through, open blocks are left to fill up: sealing them at each try would in
            // the end fill the ring with blocks that are nearly empty.
            if open && (self.backoff.failures == 0 || self.shared.ring.oldest_sealed().is_none()) {
                self.shared.ring.seal_open();
                open = false;
            }
            let Some(signal) = self.shared.ring.oldest_sealed() else { return true };
            let signal = (self.shared.protocol == Protocol::Otlp).then_some(signal);
            self.shared.ring.gather(signal, &mut self.batch);
            if self.batch.is_empty() {
                // A producer evicted it in the meantime.
                continue;
            }
            if !self.send(signal.unwrap_or(Signal::Traces)) {
                return false;
            }
        }
    }

    /// Sends the batch, and gives its blocks back: emptied, or as they were.
    fn send(&mut self, signal: Signal) -> bool {
        let answer = self.request(signal);
        let counters = &self.shared.ring.counters;
        match answer {
            Answer::Taken { rejected } => {
                counters.request();
                self.settle(rejected);
                self.backoff.succeeded();
                true
            }
            Answer::Refused { taken } => {
                let events =
                    self.shared.ring.classes(&self.batch).iter().map(|filled| filled.events).sum::<u64>();
                self.settle(events.saturating_sub(taken));
                self.backoff.succeeded();
                true
            }
            Answer::TooLarge if self.batch.shrink() => {
                counters.retry();
                self.shared.ring.put_back(&mut self.batch);
                true
            }
            Answer::TooLarge => {
                self.settle(u64::MAX);
                true
            }
            Answer::Later(after) => {
                counters.retry();
                self.shared.ring.put_back(&mut self.batch);
                self.backoff.failed(Instant::now(), after);
                false
            }
        }
    }

    /// Counts the batch as sent but for `rejected` events. Which ones the peer does not say: the least
    /// valuable are taken to be.
    fn settle(&mut self, mut rejected: u64) {
        let counters = &self.shared.ring.counters;
        for (class, filled) in Class::ALL.into_iter().zip(self.shared.ring.classes(&self.batch)) {
            let lost = filled.events.min(rejected);
            rejected -= lost;
            counters.dropped(class, Reason::Rejected, lost);
            let bytes = if lost == filled.events { 0 } else { filled.bytes };
            counters.sent(class, filled.events - lost, bytes);
        }
        self.shared.ring.release_all(&mut self.batch);
    }

    /// Sends what can be sent until the time is up, drops the rest, and says what that was.
    fn finish(&mut self) {
        // Without `shutdown`, all handles are gone: one try.
        let until = self.shared.work.stop_at();
        loop {
            self.shared.ring.seal_open();
            if self.drain(true) {
                break;
            }
            let now = Instant::now();
            let again = self.backoff.until.unwrap_or(now);
            let called_off = self.shared.work.called_off.load(Ordering::Relaxed);
            match until {
                Some(until) if again < until && !called_off => {
                    // A wake-up means that somebody is impatient, not that the peer is back.
                    std::thread::park_timeout(
                        again.saturating_duration_since(now).max(Duration::from_millis(1)),
                    );
                }
                _ => break,
            }
        }
        self.drop_rest();
        self.shared.work.ended.store(true, Ordering::Release);
    }

    fn drop_rest(&mut self) {
        let (mut events, mut bytes) = (0, 0);
        loop {
            self.shared.ring.seal_open();
            self.shared.ring.gather(None, &mut self.batch);
            if self.batch.is_empty() {
                break;
            }
            for (class, filled) in Class::ALL.into_iter().zip(self.shared.ring.classes(&self.batch)) {
                self.shared.ring.counters.dropped(class, Reason::Shutdown, filled.events);
                events += filled.events;
                bytes += filled.bytes;
            }
            self.shared.ring.release_all(&mut self.batch);
        }
        self.shared.work.left_events.store(events, Ordering::Relaxed);
        self.shared.work.left_bytes.store(bytes, Ordering::Relaxed);
    }
}
