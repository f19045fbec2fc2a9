//! How much of a connection's bytes may lie in the HTTP/2 codec, and who pays for them.
//!
//! The codec keeps on the heap what it has read and nobody has taken. So the socket gives it no more than
//! [`TURN`] bytes before the streams have taken theirs, nothing while one of them waits for memory, and
//! nothing at all before [`READING`] bytes are charged. They are given back when the connection falls quiet:
//! no stream is open, and no half frame lies in the codec. What its buffer has grown by stays charged.

use super::frames::Frames;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, Refused, Share};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// What the codec is given in one turn, about: one read more may begin.
pub(super) const TURN: usize = 16 << 10;
/// What is charged while a connection is being read: what one turn brings, and the headers that can be made
/// of it.
const READING: u64 = 48 << 10;
/// The codec's buffer, as it is made; longer frames make it grow for good.
const BUFFER: usize = 8 << 10;
/// What the codec's buffer takes when it has grown to the longest frame that is allowed.
const GROWN: u64 = 16 << 10;

/// What a connection's task, its streams and its socket know of each other. They all run in one task, so the
/// lock is never contended.
pub(super) struct Flow {
    state: Mutex<State>,
    /// A stream has begun to receive.
    begun: Notify,
}

struct State {
    /// What may still be read in this turn.
    allowance: usize,
    /// How many streams wait for memory.
    waiting: usize,
    /// How many have a window and are owed the rest of their body.
    receiving: usize,
    payment: Payment,
    /// For what the codec's buffer may have grown by.
    growth: Option<Charge>,
    frames: Frames,
    last_read: Instant,
    /// Since when the peer has taken nothing of what is to be written.
    blocked: Option<Instant>,
    /// Of calls that were answered, until the answers are written.
    answered: Vec<Charge>,
}

/// Whether what is read is paid for.
enum Payment {
    None,
    Waiting(Pin<Box<dyn Future<Output = Option<Charges>> + Send>>),
    Paid(#[expect(dead_code, reason = "held for what it pays for")] Charge),
    /// There was none in time. What the connection's own buffer holds is read all the same, so that calls
    /// can be answered: with a refusal.
    Refused,
}

/// For the turns, and for the growth of the codec's buffer where that is not charged yet.
type Charges = (Charge, Option<Charge>);

/// What a connection is waiting for, as far as its transport can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quiet {
    /// Nothing: whatever was begun is done.
    Idle,
    /// The rest of a frame, of which the first bytes came at this time at the latest.
    HalfFrame(Instant),
    /// The peer, since this time, to take what is written.
    Blocked(Instant),
}

impl Flow {
    pub(super) fn new() -> Arc<Flow> {
        let state = State {
            allowance: 0,
            waiting: 0,
            receiving: 0,
            payment: Payment::None,
            growth: None,
            frames: Frames::new(),
            last_read: Instant::now(),
            blocked: None,
            answered: Vec::new(),
        };
        Arc::new(Flow { state: Mutex::new(state), begun: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next turn's bytes in: the streams have taken what the last one brought.
    pub(super) fn begin_turn(&self) {
        self.state().allowance = TURN;
    }

    /// Whether what was read last is not paid for.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.state().payment, Payment::Refused)
    }

    /// Ends a turn: gives back what is not needed any more.
    pub(super) fn settle(&self, has_streams: bool) -> Quiet {
        let mut state = self.state();
        if state.blocked.is_none() {
            state.answered.clear();
        }
        let whole = state.frames.are_whole();
        if !has_streams && whole && !matches!(state.payment, Payment::Waiting(_)) {
            state.payment = Payment::None;
            if state.frames.longest() <= BUFFER {
                state.growth = None;
            }
        }
        match state.blocked {
            Some(since) => Quiet::Blocked(since),
            None if !whole => Quiet::HalfFrame(state.last_read),
            None => Quiet::Idle,
        }
    }

    /// Keeps what an answered call was charged until its answer is written.
    pub(super) fn keep(&self, charge: Charge) {
        self.state().answered.push(charge);
    }

    /// Nothing is read while what this gives is alive. To be asked for only while no other stream is
    /// [receiving](Self::receive): it would wait with its memory in hand.
    pub(super) fn pause(&self) -> Pause<'_> {
        self.state().waiting += 1;
        Pause(self)
    }

    /// From now on a stream has its window, and is owed the rest of its body while what this gives is alive.
    pub(super) fn receive(&self) -> Receiving<'_> {
        self.state().receiving += 1;
        self.begun.notify_waiters();
        Receiving(self)
    }

    /// How many streams are owed the rest of their bodies.
    pub(super) fn receiving(&self) -> usize {
        self.state().receiving
    }

    /// Resolves when a stream begins to receive.
    pub(super) fn begun(&self) -> Notified<'_> {
        self.begun.notified()
    }
}

/// A stream's body on its way in.
pub(super) struct Receiving<'a>(&'a Flow);

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.0.state().receiving -= 1;
    }
}

/// A stream's wait for memory.
pub(super) struct Pause<'a>(&'a Flow);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

/// The socket as the codec sees it.
pub(super) struct Socket {
    stream: TcpStream,
    flow: Arc<Flow>,
    arena: Arena,
    memory_wait: Duration,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, flow: Arc<Flow>, arena: Arena, memory_wait: Duration) -> Socket {
        Socket { stream, flow, arena, memory_wait }
    }
}

impl State {
    /// Ready when what is read next is paid for, or cannot be.
    fn poll_paid(&mut self, context: &mut Context<'_>, arena: &Arena, wait: Duration) -> Poll<()> {
        if matches!(self.payment, Payment::None) {
            let reading = arena.try_charge(Share::Ingest, READING);
            let growth = match &self.growth {
                None => arena.try_charge(Share::Ingest, GROWN).map(Some),
                Some(_) => Ok(None),
            };
            match (reading, growth) {
                (Ok(reading), Ok(growth)) => self.paid(reading, growth),
                (Err(Refused::Short), _) | (_, Err(Refused::Short)) => {
                    self.payment =
                        Payment::Waiting(Box::pin(pay(arena.clone(), self.growth.is_none(), wait)));
                }
                _ => self.payment = Payment::Refused,
            }
        }
        if let Payment::Waiting(charging) = &mut self.payment {
            match ready!(charging.as_mut().poll(context)) {
                Some((reading, growth)) => self.paid(reading, growth),
                None => self.payment = Payment::Refused,
            }
        }
        Poll::Ready(())
    }

    fn paid(&mut self, reading: Charge, growth: Option<Charge>) {
        self.payment = Payment::Paid(reading);
        self.growth = growth.or(self.growth.take());
    }
}

/// Waits for what is to be paid before anything is read; nothing when it takes too long.
async fn pay(arena: Arena, grows: bool, wait: Duration) -> Option<Charges> {
    let charges = async {
        let reading = arena.charge(Share::Ingest, READING).await.ok()?;
        let growth = if grows { Some(arena.charge(Share::Ingest, GROWN).await.ok()?) } else { None };
        Some((reading, growth))
    };
    tokio::time::timeout(wait, charges).await.ok()?
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Socket { stream, flow, arena, memory_wait } = self.get_mut();
        let mut state = flow.state();
        if state.waiting > 0 {
            // When that wait ends this task is woken, and tries again.
            return Poll::Pending;
        }
        if state.allowance == 0 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !matches!(state.payment, Payment::Paid(_)) {
            // Nothing is taken for a connection that says nothing.
            ready!(stream.poll_read_ready(context))?;
            ready!(state.poll_paid(context, arena, *memory_wait));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        state.allowance = state.allowance.saturating_sub(read.len());
        state.frames.follow(read);
        state.last_read = Instant::now();
        Poll::Ready(Ok(()))
    }
}

impl Socket {
    /// Notes whether the peer takes what is written.
    fn noted<T>(&self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let mut state = self.flow.state();
        match outcome {
            Poll::Pending => _ = state.blocked.get_or_insert_with(Instant::now),
            Poll::Ready(_) => state.blocked = None,
        }
        drop(state);
        outcome
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
