//! How much of a connection's bytes may lie in the HTTP/2 codec, and who pays for them.
//!
//! The codec keeps on the heap what it has read and nobody has taken. So the socket gives it no more than
//! [`TURN`] bytes before the streams have taken theirs, nothing while one of them waits for memory, and
//! nothing at all before [`READING`] bytes are charged. They are given back when the connection falls quiet:
//! no stream is open, and no half frame lies in the codec. What its buffer has grown by stays charged.
//! The bodies of calls go past the codec, into windows ([`frame_reader`](super::frame_reader)).

use super::bodies::DirectBodies;
use super::frame_reader::FrameReader;
use super::frames::{Frames, PREFACE};
use super::streams::Streams;
use super::window_updates::WindowUpdates;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, ChargeError, Share, Window};
use tidegate_http1::{BodyDeadlines, Settings};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// About the most bytes given to the codec in one turn: one more read may begin.
const TURN: usize = 16 << 10;
/// About the most bytes read in one turn, including those that bypass the codec: then other connections get their
/// turn.
const READ: usize = 512 << 10;
/// How often calls may be asked in one turn how their bodies go on.
const QUESTIONS: usize = 64;
/// The charge while a connection is read: one turn's bytes, the headers parsed from them, and the read buffer.
const READING: u64 = 48 << 10;
/// The window of a connection and of each stream. What lies in the codec is bounded by what is read of the socket
/// and not by this, so it is as large as most requests: they need no round trip.
pub(super) const WINDOW: u32 = 512 << 10;
/// The codec's buffer, as it is made; longer frames make it grow for good.
pub(super) const BUFFER: usize = 8 << 10;
/// The codec's buffer, grown to the longest allowed frame.
const GROWN: u64 = 16 << 10;

/// The state shared by a connection's task, its streams and its socket. They all run in one task, so the lock is
/// never contended.
pub(super) struct Flow {
    state: Mutex<FlowState>,
    /// A stream has begun to receive.
    begun: Notify,
}

pub(super) struct FlowState {
    /// The bytes that the codec may still get in this turn.
    pub(super) allowance: usize,
    /// The bytes that may still be read in this turn.
    pub(super) budget: usize,
    /// Something was read for a call that has to say first how it goes on; and how often that may be asked in
    /// this turn.
    pub(super) held: bool,
    asked: usize,
    pub(super) inflow: FrameReader,
    pub(super) bodies: DirectBodies,
    pub(super) window_updates: WindowUpdates,
    pub(super) streams: Streams,
    /// Since when an answer waits that the peer lets nobody send, and how many streams had ended then.
    unsent: Option<(Instant, u32)>,
    /// How many streams wait for memory.
    pub(super) waiting: usize,
    /// How many have a window and are owed the rest of their body.
    receiving: usize,
    payment: Payment,
    /// For what the codec's buffer may have grown by.
    growth: Option<Charge>,
    /// Those that the codec was given.
    pub(super) frames: Frames,
    pub(super) last_read: Instant,
    /// Since when the peer has taken nothing of what is to be written.
    pub(super) blocked: Option<Instant>,
    /// Of calls that were answered, until the answers are written.
    answered: Vec<Charge>,
}

/// Whether what is read is paid for.
enum Payment {
    None,
    Waiting(Pin<Box<dyn Future<Output = Option<Charges>> + Send>>),
    Paid(#[expect(dead_code, reason = "held for what it pays for")] Charge),
    /// There was none in time. What the connection's own buffer holds is read all the same, so that calls
    /// can be answered: with a refusal. Before each read it is asked again, without a wait.
    Refused,
}

/// For the turns, and for the growth of the codec's buffer where that is not charged yet.
type Charges = (Charge, Option<Charge>);

/// The reason why a connection waits, as known to its transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// Nothing: whatever was begun is done.
    Idle,
    /// Memory to read with what has come. That ends by itself.
    Memory,
    /// The rest of a frame, of which the first bytes came at this time at the latest.
    HalfFrame(Instant),
    /// The peer, since this time, to take what is written.
    Blocked(Instant),
}

impl Flow {
    pub(super) fn new(arena: Arena) -> Arc<Flow> {
        let state = FlowState {
            allowance: 0,
            budget: 0,
            held: false,
            asked: 0,
            inflow: FrameReader::after(PREFACE.len()),
            bodies: DirectBodies::default(),
            window_updates: WindowUpdates::new(),
            streams: Streams::new(arena),
            unsent: None,
            waiting: 0,
            receiving: 0,
            payment: Payment::None,
            growth: None,
            frames: Frames::after(PREFACE.len()),
            last_read: Instant::now(),
            blocked: None,
            answered: Vec::new(),
        };
        Arc::new(Flow { state: Mutex::new(state), begun: Notify::new() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FlowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next turn's bytes in: the streams have taken what the last one brought.
    pub(super) fn begin_turn(&self) {
        let mut state = self.state();
        (state.allowance, state.budget, state.held, state.asked) = (TURN, READ, false, 0);
        state.streams.begin();
    }

    /// Whether reading goes on once the calls have run. If not, but it could, the task is woken for another turn.
    pub(super) fn resumes(&self, context: &mut Context<'_>) -> bool {
        let state = &mut *self.state();
        let held = std::mem::take(&mut state.held);
        state.streams.sweep(|stream| state.bodies.has(stream));
        if !state.streams.takes_more() && !held {
            return false;
        }
        state.asked += 1;
        if state.asked > QUESTIONS {
            context.waker().wake_by_ref();
            return false;
        }
        state.allowance = TURN;
        state.streams.begin();
        true
    }

    /// Whether what was read last is not paid for.
    pub(super) fn is_refused(&self) -> bool {
        self.state().is_refused()
    }

    /// Ends a turn: gives back what is not needed any more.
    pub(super) fn settle(&self, has_streams: bool) -> WaitReason {
        let mut state = self.state();
        let FlowState { streams, bodies, .. } = &*state;
        // A peer that gives no window for an answer holds it as one does that reads nothing.
        let is_unsent = has_streams && streams.has_unsent(|stream| bodies.has(stream));
        let ends = streams.ends();
        let known = state.unsent.filter(|(_, before)| *before == ends);
        state.unsent = is_unsent.then(|| known.unwrap_or_else(|| (Instant::now(), ends)));
        if state.blocked.is_none() && !is_unsent {
            state.answered.clear();
        }
        let whole = state.frames.are_whole() && state.inflow.is_whole();
        if state.frames.are_whole() {
            state.streams.whole_heads();
        }
        if !has_streams && whole && !matches!(state.payment, Payment::Waiting(_)) {
            state.payment = Payment::None;
            state.inflow.rest();
            state.bodies.rest();
            state.streams.rest();
            state.answered.shrink_to(4);
            if state.frames.longest() <= BUFFER {
                state.growth = None;
            }
        }
        match state.blocked.into_iter().chain(state.unsent.map(|(since, _)| since)).min() {
            Some(since) => WaitReason::Blocked(since),
            None if matches!(state.payment, Payment::Waiting(_)) => WaitReason::Memory,
            None if !whole => WaitReason::HalfFrame(state.last_read),
            None => WaitReason::Idle,
        }
    }

    /// Whether its streams have left more behind than its places pay for. What its buffer has grown by does not count: that
    /// is so of every connection that brings large requests, and its client is about to send the next.
    pub(super) fn has_grown(&self) -> bool {
        self.state().streams.has_grown()
    }

    /// Takes in the body of a stream, which is that of a call if only its prefix is to go through the codec.
    pub(super) fn body(&self, stream: u32, call: bool) -> Body<'_> {
        self.state().bodies.add(stream, call);
        Body { flow: self, stream }
    }

    /// There is no call for a stream: it was answered by its head alone.
    pub(super) fn abandon(&self, stream: u32) {
        self.state().streams.abandon(stream);
    }

    /// When a call is to be woken next.
    pub(super) fn next_alarm(&self) -> Option<Instant> {
        self.state().bodies.next_alarm()
    }

    /// Wakes the calls whose time has come.
    pub(super) fn wake(&self, now: Instant) {
        self.state().bodies.wake(now);
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

/// A stream's body, for as long as its call lasts.
pub(super) struct Body<'a> {
    flow: &'a Flow,
    stream: u32,
}

impl Body<'_> {
    /// From now on the bytes go past the codec into `window`, until `whole` are in it. The peer may send them all.
    pub(super) fn open(&self, window: Window, whole: usize) {
        let mut state = self.flow.state();
        state.bodies.open(self.stream, window, whole);
        if let Some(more @ 1..) = whole.checked_sub(WINDOW as usize) {
            state.window_updates.stream(self.stream, more);
        }
    }

    /// Takes the window back.
    pub(super) fn close(&self) -> Option<Window> {
        let mut state = self.flow.state();
        let window = state.bodies.close(self.stream)?;
        state.inflow.leave(self.stream, window)
    }

    /// It may pause, as one does that is sent while things happen.
    pub(super) fn be_patient(&self) {
        self.flow.state().bodies.be_patient(self.stream);
    }

    /// Notes that bytes came through the codec.
    pub(super) fn hear(&self, bytes: usize) {
        self.flow.state().bodies.hear(self.stream, bytes);
    }

    /// Ready when the body comes too slowly.
    pub(super) fn poll_late(&self, context: &mut Context<'_>, settings: &Settings) -> Poll<()> {
        let pace = self.flow.state().bodies.pace(self.stream);
        pace.map_or(Poll::Pending, |pace: BodyDeadlines| self.poll_until(context, pace.deadline(settings)))
    }

    /// Ready at `deadline`. It costs no timer: the connection has one for all.
    pub(super) fn poll_until(&self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if deadline <= Instant::now() {
            return Poll::Ready(());
        }
        self.flow.state().bodies.alarm(self.stream, deadline, context.waker());
        Poll::Pending
    }
}

impl Drop for Body<'_> {
    fn drop(&mut self) {
        let mut state = self.flow.state();
        state.window_updates.forget(self.stream);
        if let Some(window) = state.bodies.remove(self.stream) {
            drop(state.inflow.leave(self.stream, window));
        }
        state.streams.abandon(self.stream);
    }
}

/// A stream's body that is owed its rest.
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

impl FlowState {
    /// Ready when what is read next is paid for, or cannot be.
    pub(super) fn poll_paid(&mut self, context: &mut Context<'_>, arena: &Arena, wait: Duration) -> Poll<()> {
        if matches!(self.payment, Payment::None | Payment::Refused) {
            let waits = matches!(self.payment, Payment::None);
            let reading = arena.try_charge(Share::Ingest, READING);
            let growth = match &self.growth {
                None => arena.try_charge(Share::Ingest, GROWN).map(Some),
                Some(_) => Ok(None),
            };
            match (reading, growth) {
                (Ok(reading), Ok(growth)) => self.paid(reading, growth),
                (Err(ChargeError::Short), _) | (_, Err(ChargeError::Short)) if waits => {
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

    /// Whether what is read is not paid for, since there was no memory in time.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.payment, Payment::Refused)
    }

    /// Whether what is read is paid for.
    pub(super) fn is_paid(&self) -> bool {
        matches!(self.payment, Payment::Paid(_))
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
