//! What handles and the sending thread have in common.

use super::scopes::Scopes;
use super::{Left, Memory};
use crate::class::{Kind, Reason};
use crate::config::{Builder, ConfigError, Protocol};
use crate::counters::Stats;
use crate::record::Scope;
use crate::ring::{Payload, Ring};
use crate::worker::{self, Peer, Worker};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// While a forked child sets itself up.
const RESETTING: u64 = u64::MAX;
/// Forks of forks of forks that can wake their thread. Deeper ones send when the time has come.
const FORKS: usize = 16;

/// Of the sending thread: touched as far as it is needed, which TLS handshakes need most of.
const STACK: usize = 512 << 10;

pub(crate) struct Shared {
    pub(crate) ring: Ring,
    pub(crate) scopes: Scopes,
    pub(crate) protocol: Protocol,
    pub(crate) peer: Peer,
    pub(crate) work: Work,
    pub(crate) memory: Memory,
    /// What bodies begin with, when somebody had more to say than the builder.
    pub(crate) adopted: OnceLock<Vec<u8>>,
    /// The fork that all of this is for.
    generation: AtomicU64,
    first_generation: u64,
    threads: [OnceLock<Thread>; FORKS],
}

/// What the sending thread is asked for. Atomics only: a lock could be held by a thread that a forked child
/// does not have.
pub(crate) struct Work {
    /// Blocks opened before this are wanted now.
    pub(crate) flush: AtomicU64,
    /// The thread sleeps, and wants to hear when enough for a request is there.
    pub(crate) asleep: AtomicBool,
    /// No more events.
    pub(crate) closed: AtomicBool,
    /// The thread shall end, and until when it may go on trying.
    pub(crate) stop: AtomicBool,
    pub(crate) stop_at: OnceLock<Instant>,
    /// Requests under way are to be called off.
    pub(crate) called_off: AtomicBool,
    pub(crate) ended: AtomicBool,
    /// What was left when the thread ended, written before `ended`.
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
        let peer = Peer::new(builder, &mut mistakes);
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
            adopted: OnceLock::new(),
            generation: AtomicU64::new(generation),
            first_generation: generation,
            threads: [const { OnceLock::new() }; FORKS],
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
            if self.generation.load(Ordering::Acquire) == RESETTING {
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
        if before == RESETTING
            || before == now
            || self
                .generation
                .compare_exchange(before, RESETTING, Ordering::AcqRel, Ordering::Relaxed)
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

    fn spawn(self: &Arc<Shared>, generation: u64) -> std::io::Result<()> {
        let worker = Worker::new(Arc::clone(self));
        let thread = std::thread::Builder::new()
            .name("tidegate-sender".to_owned())
            .stack_size(STACK)
            .spawn(move || worker.run())?;
        let depth = usize::try_from(generation.wrapping_sub(self.first_generation)).unwrap_or(FORKS);
        if let Some(place) = self.threads.get(depth) {
            let _ = place.set(thread.thread().clone());
        }
        Ok(())
    }

    pub(super) fn flush(self: &Arc<Shared>, timeout: Duration) -> Left {
        self.notice_fork();
        let until = Instant::now() + timeout;
        let mark = self.ring.mark();
        self.work.flush.fetch_max(mark, Ordering::Relaxed);
        self.wake();
        wait(until, || self.ring.filled_before(mark).events == 0 || self.work.ended.load(Ordering::Acquire));
        let filled = self.ring.filled_before(mark);
        Left { events: filled.events, bytes: filled.bytes }
    }

    pub(super) fn shutdown(self: &Arc<Shared>, timeout: Duration) -> Left {
        self.notice_fork();
        let until = Instant::now() + timeout;
        let _ = self.work.stop_at.set(until);
        self.stop();
        wait(until, || self.work.ended.load(Ordering::Acquire));
        self.work.called_off.store(true, Ordering::Relaxed);
        // Sockets look every tenth of a second whether they were called off.
        wait(Instant::now() + Duration::from_millis(300), || self.work.ended.load(Ordering::Acquire));
        if self.work.ended.load(Ordering::Acquire) {
            let events = self.work.left_events.load(Ordering::Relaxed);
            return Left { events, bytes: self.work.left_bytes.load(Ordering::Relaxed) };
        }
        let filled = self.ring.filled_before(u64::MAX);
        Left { events: filled.events, bytes: filled.bytes }
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
        let depth = self.generation.load(Ordering::Relaxed).wrapping_sub(self.first_generation);
        let thread = usize::try_from(depth).ok().and_then(|depth| self.threads.get(depth));
        if let Some(thread) = thread.and_then(OnceLock::get) {
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
            stop_at: OnceLock::new(),
            called_off: AtomicBool::new(false),
            ended: AtomicBool::new(disabled),
            left_events: AtomicU64::new(0),
            left_bytes: AtomicU64::new(0),
            batch_bytes,
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

/// Looks again and again, ever less often, whether something has come about. A condition variable would be
/// quicker by a millisecond, and could be left locked for ever by a fork.
fn wait(until: Instant, come_about: impl Fn() -> bool) {
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
