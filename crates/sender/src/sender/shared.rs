//! The state shared by handles and the sending thread.

use super::scopes::Scopes;
use super::{Memory, UnsentEvents};
use crate::class::{Kind, Reason};
use crate::config::{Builder, ConfigError, Protocol};
use crate::counters::Stats;
use crate::http::AddressCache;
use crate::record::{Attributes, Scope};
use crate::ring::{Payload, Ring};
use crate::worker::{self, OtlpEndpoint, Worker};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// With the number of the fork, while a forked child sets itself up.
const RESETTING: u64 = 1 << 63;
/// Forks of forks of forks that can wake their thread, and adopt a resource. Deeper ones send when the time has
/// come.
const FORKS: usize = 16;

/// Of the sending thread: touched as far as it is needed, which TLS handshakes need most of.
const STACK: usize = 512 << 10;

pub(crate) struct Shared {
    pub(crate) ring: Ring,
    pub(crate) scopes: Scopes,
    pub(crate) protocol: Protocol,
    pub(crate) peer: OtlpEndpoint,
    pub(crate) work: Work,
    pub(crate) memory: Memory,
    /// Where the peer was found, by this process or the one that it was forked off from.
    pub(crate) known_addresses: Arc<AddressCache>,
    /// The fork that all of this is for.
    generation: AtomicU64,
    first_generation: u64,
    /// A place for each depth of forks, so that no process waits for one that a thread of its parent was
    /// filling at the fork.
    depths: [Depth; FORKS],
}

#[derive(Default)]
struct Depth {
    /// The sending thread.
    thread: OnceLock<Thread>,
    /// The prefix of bodies, if it has more than the builder's attributes.
    adopted: OnceLock<Vec<u8>>,
    /// Somebody is about to fill it.
    adopting: AtomicBool,
}

/// Requests to the sending thread. Atomics only: a lock could be held by a thread that a forked child does not have.
pub(crate) struct Work {
    /// Blocks opened before this are wanted now.
    pub(crate) flush: AtomicU64,
    /// The thread sleeps, and wants to hear when enough for a request is there.
    pub(crate) asleep: AtomicBool,
    /// No more events.
    pub(crate) closed: AtomicBool,
    /// The thread shall end, and until when it may go on trying.
    pub(crate) stop: AtomicBool,
    /// In nanoseconds after `epoch`; 0 when nobody said.
    stop_at: AtomicU64,
    epoch: Instant,
    /// Requests under way are to be called off.
    pub(crate) called_off: AtomicBool,
    pub(crate) ended: AtomicBool,
    /// The events left when the thread ended, written before `ended`.
    pub(crate) left_events: AtomicU64,
    pub(crate) left_bytes: AtomicU64,
    /// Bytes that make a request.
    pub(crate) batch_bytes: usize,
}

impl Shared {
    pub(super) fn start(builder: &Builder) -> Result<Arc<Shared>, ConfigError> {
        tidegate_sender_fork::watch();
        let mut mistakes = Vec::new();
        builder.check(&mut mistakes);
        let peer = OtlpEndpoint::new(builder, &mut mistakes);
        let (Some(peer), true) = (peer, mistakes.is_empty()) else {
            return Err(ConfigError { mistakes });
        };
        let ring = Ring::new(builder.ring_bytes, builder.event_bytes, builder.stripes);
        let batch_bytes = builder.batch_bytes.clamp(1, ring.bytes() / 2);
        let memory = Memory {
            ring: ring.memory(),
            buffers: worker::buffers_memory(&peer),
            tables: peer.memory() + Scopes::MEMORY + worker::tables_memory(&ring) + size_of::<Shared>(),
            tls: peer.tls_memory(),
        };
        let generation = tidegate_sender_fork::generation();
        let shared = Arc::new(Shared {
            ring,
            scopes: Scopes::new(&builder.scope.0, &builder.scope.1),
            protocol: builder.protocol,
            peer,
            work: Work::new(batch_bytes, builder.disabled),
            memory,
            known_addresses: Arc::default(),
            generation: AtomicU64::new(generation),
            first_generation: generation,
            depths: std::array::from_fn(|_| Depth::default()),
        });
        if !builder.disabled {
            shared.spawn(generation).map_err(|error| ConfigError {
                mistakes: vec![format!(
                    "starting the sending thread: {error}; allow the process one more thread"
                )],
            })?;
        }
        Ok(shared)
    }

    #[inline]
    pub(super) fn push<P: Payload + ?Sized>(
        self: &Arc<Shared>,
        kind: Kind,
        scope: Scope,
        event: &P,
    ) -> Result<(), Reason> {
        if tidegate_sender_fork::generation() != self.generation.load(Ordering::Acquire) {
            self.notice_fork();
            if self.generation.load(Ordering::Acquire) & RESETTING != 0 {
                // Another thread of the forked child is at it; its own first event is the only one that can
                // meet this, and does not wait.
                self.ring.counters.refused(kind.class(), Reason::Full);
                return Err(Reason::Full);
            }
        }
        if self.work.closed.load(Ordering::Relaxed) {
            self.ring.counters.refused(kind.class(), Reason::Shutdown);
            return Err(Reason::Shutdown);
        }
        let pushed = self.ring.push(kind, scope.0, event);
        if self.work.asleep.load(Ordering::Relaxed) && self.ring.sealed_bytes() >= self.work.batch_bytes {
            self.wake();
        }
        pushed
    }

    fn notice_fork(self: &Arc<Shared>) {
        if tidegate_sender_fork::generation() != self.generation.load(Ordering::Acquire) {
            self.start_anew();
        }
    }

    /// In a forked child: forgets what belongs to the parent, and starts a thread of its own.
    #[cold]
    pub(super) fn start_anew(self: &Arc<Shared>) {
        let now = tidegate_sender_fork::generation();
        let before = self.generation.load(Ordering::Acquire);
        // Done, or another thread of this process is at it. One of the parent's, which was at it when this
        // process was forked off, never ends: it left an older number.
        let done = before & !RESETTING == now;
        let resetting = now | RESETTING;
        if done
            || self
                .generation
                .compare_exchange(before, resetting, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        self.ring.reset();
        if self.work.reset() {
            // Without a thread the ring takes events, and lets the oldest go.
            let _ = self.spawn(now);
        }
        self.generation.store(now, Ordering::Release);
    }

    /// By `tidegate_sender_fork`, because the standard library's own way may wait for ever in a child.
    fn spawn(self: &Arc<Shared>, generation: u64) -> std::io::Result<()> {
        let worker = Worker::new(Arc::clone(self), generation != self.first_generation);
        let shared = Arc::clone(self);
        tidegate_sender_fork::spawn(c"tidegate-sender", STACK, move || {
            if let Some(depth) = shared.depths.get(shared.depth(generation)) {
                let _ = depth.thread.set(std::thread::current());
            }
            // See `wake`.
            std::sync::atomic::fence(Ordering::SeqCst);
            drop(shared);
            worker.run();
        })
    }

    fn depth(&self, generation: u64) -> usize {
        usize::try_from((generation & !RESETTING).wrapping_sub(self.first_generation)).unwrap_or(FORKS)
    }

    /// The prefix of bodies, as adopted by this process or its nearest ancestor.
    pub(crate) fn adopted(&self) -> Option<&Vec<u8>> {
        let own = self.depth(self.generation.load(Ordering::Relaxed)).min(FORKS - 1);
        let depths = self.depths.get(..=own).unwrap_or_default();
        depths.iter().rev().find_map(|depth| depth.adopted.get())
    }

    pub(super) fn adopt(self: &Arc<Shared>, attributes: &dyn Attributes) {
        self.notice_fork();
        let Some(depth) = self.depths.get(self.depth(self.generation.load(Ordering::Relaxed))) else {
            return;
        };
        if self.adopted().is_none() && !depth.adopting.swap(true, Ordering::Relaxed) {
            let _ = depth.adopted.set(self.peer.preamble(self.protocol, Some(attributes)));
        }
    }

    pub(super) fn flush(self: &Arc<Shared>, timeout: Duration) -> UnsentEvents {
        self.notice_fork();
        let until = after(timeout);
        let mark = self.ring.mark();
        self.work.flush.fetch_max(mark, Ordering::Relaxed);
        self.wake();
        let mut is_sent = false;
        wait(until, || {
            is_sent = self.ring.filled_before(mark).events == 0;
            is_sent || self.work.ended.load(Ordering::Acquire)
        });
        // A block that was empty then may have an event of another thread now, which came behind the call.
        if is_sent {
            return UnsentEvents::default();
        }
        let filled = self.ring.filled_before(mark);
        UnsentEvents { events: filled.events, bytes: filled.bytes }
    }

    pub(super) fn shutdown(self: &Arc<Shared>, timeout: Duration) -> UnsentEvents {
        self.notice_fork();
        let until = after(timeout);
        self.work.stop_at.store(
            u64::try_from((until - self.work.epoch).as_nanos()).unwrap_or(u64::MAX).max(1),
            Ordering::Relaxed,
        );
        self.stop();
        wait(until, || self.work.ended.load(Ordering::Acquire));
        self.work.called_off.store(true, Ordering::Relaxed);
        // Sockets look every tenth of a second whether they were called off.
        wait(Instant::now() + Duration::from_millis(300), || self.work.ended.load(Ordering::Acquire));
        if self.work.ended.load(Ordering::Acquire) {
            let events = self.work.left_events.load(Ordering::Relaxed);
            return UnsentEvents { events, bytes: self.work.left_bytes.load(Ordering::Relaxed) };
        }
        let filled = self.ring.filled_before(u64::MAX);
        UnsentEvents { events: filled.events, bytes: filled.bytes }
    }

    /// Takes no more, and lets the thread end by itself.
    pub(super) fn stop(&self) {
        self.work.closed.store(true, Ordering::Relaxed);
        self.work.stop.store(true, Ordering::Release);
        self.wake();
    }

    pub(super) fn stats(&self) -> Stats {
        let filled = self.ring.filled_before(u64::MAX);
        Stats {
            queued: filled.events,
            queued_bytes: filled.bytes,
            ring_bytes: self.ring.bytes() as u64,
            ..self.ring.counters.stats()
        }
    }

    fn wake(&self) {
        self.work.asleep.store(false, Ordering::Relaxed);
        // Either the thread has said who it is before we look, or it looks at what we want after it has.
        std::sync::atomic::fence(Ordering::SeqCst);
        let depth = self.depths.get(self.depth(self.generation.load(Ordering::Relaxed)));
        if let Some(thread) = depth.and_then(|depth| depth.thread.get()) {
            thread.unpark();
        }
    }
}

impl Work {
    fn new(batch_bytes: usize, disabled: bool) -> Work {
        Work {
            flush: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            closed: AtomicBool::new(disabled),
            stop: AtomicBool::new(false),
            stop_at: AtomicU64::new(0),
            epoch: Instant::now(),
            called_off: AtomicBool::new(false),
            ended: AtomicBool::new(disabled),
            left_events: AtomicU64::new(0),
            left_bytes: AtomicU64::new(0),
            batch_bytes,
        }
    }

    /// Until when the thread may go on trying, if `shutdown` said so.
    pub(crate) fn stop_at(&self) -> Option<Instant> {
        match self.stop_at.load(Ordering::Relaxed) {
            0 => None,
            nanos => self.epoch.checked_add(Duration::from_nanos(nanos)),
        }
    }

    /// For a forked child. False when the parent's sender was shut down, and so is the child's.
    fn reset(&self) -> bool {
        self.flush.store(0, Ordering::Relaxed);
        self.asleep.store(false, Ordering::Relaxed);
        let closed = self.closed.load(Ordering::Relaxed);
        self.ended.store(closed, Ordering::Relaxed);
        !closed
    }
}

/// From now; in a hundred years for what no clock can count.
fn after(timeout: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
    Instant::now() + timeout.min(LONGEST)
}

/// Looks again and again, ever less often, whether something has come about. A condition variable would be
/// quicker by a millisecond, and could be left locked for ever by a fork.
fn wait(until: Instant, mut come_about: impl FnMut() -> bool) {
    let mut pause = Duration::from_micros(50);
    while !come_about() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}
