//! The socket as the codec sees it.

use super::flow::{BUFFER, Flow, FlowState};
use super::frame_reader::{ReadStep, UNPAID};
use super::transport::Transport;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tidegate_arena::Arena;
use tidegate_http1::Settings;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How many pieces are written at a time, the first of them not the codec's.
const SLICES: usize = 8;

/// Gives the codec what is for it, and takes what it writes.
pub(super) struct Socket<T> {
    stream: T,
    flow: Arc<Flow>,
    arena: Arena,
    settings: Settings,
    /// Once nothing more is written.
    linger: Option<Linger>,
}

/// Closing a socket with bytes unread sends a reset, which may overtake the goodbye. So what the peer still sends is read
/// and thrown away, until it closes too, or until it has had its time.
struct Linger {
    until: Pin<Box<Sleep>>,
    /// The most bytes.
    left: usize,
}

impl<T: Transport> Socket<T> {
    pub(super) fn new(stream: T, flow: Arc<Flow>, arena: Arena, settings: Settings) -> Socket<T> {
        Socket { stream, flow, arena, settings, linger: None }
    }
}

impl Linger {
    fn poll(&mut self, stream: &mut impl Transport, context: &mut Context<'_>) -> Poll<()> {
        let mut nowhere = [0; 1 << 10];
        while self.left > 0 && self.until.as_mut().poll(context).is_pending() {
            let mut nowhere = ReadBuf::new(&mut nowhere);
            match ready!(Pin::new(&mut *stream).poll_read(context, &mut nowhere)) {
                Ok(()) if !nowhere.filled().is_empty() => {
                    self.left = self.left.saturating_sub(nowhere.filled().len());
                }
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<T: Transport> AsyncRead for Socket<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Socket { stream, flow, arena, settings, .. } = self.get_mut();
        let state = &mut *flow.state();
        if state.waiting > 0 {
            // When that wait ends this task is woken, and tries again.
            return Poll::Pending;
        }
        let before = out.filled().len();
        while state.allowance > 0 && state.budget > 0 {
            let FlowState { inflow, bodies, window_updates: owed, streams, .. } = state;
            match inflow.step(out, bodies, owed, streams) {
                ReadStep::Held => (state.allowance, state.held) = (0, true),
                // Until a stream ends, which this task does.
                ReadStep::Crowded => state.allowance = 0,
                ReadStep::Never => return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into())),
                ReadStep::Hungry | ReadStep::Full => {}
            }
            let fed = out.filled().get(before..).unwrap_or_default();
            if !fed.is_empty() {
                state.allowance = state.allowance.saturating_sub(fed.len());
                state.frames.follow(fed);
                return Poll::Ready(Ok(()));
            }
            if state.allowance == 0 {
                break;
            }
            if state.is_refused() && state.inflow.whole() > BUFFER {
                // No head that is allowed is as long as this, and the codec's buffer would grow for it.
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
            if !state.is_paid() {
                // Nothing is taken for a connection that says nothing.
                ready!(stream.poll_read_ready(context))?;
                ready!(state.poll_paid(context, arena, settings.memory_wait));
            }
            if ready!(state.poll_fill(stream, context, out))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
        if !state.held && !state.streams.is_crowded() {
            // It goes on in the next turn.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl FlowState {
    /// Reads from `stream`: to where it is looked at, or straight to the codec what is for the codec alone.
    fn poll_fill(
        &mut self,
        stream: &mut impl Transport,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let paid = self.is_paid();
        let most = if paid { out.remaining() } else { out.remaining().min(UNPAID) };
        let direct = self.inflow.direct().min(most);
        let room = match direct {
            0 => self.inflow.room(&mut self.bodies, paid),
            _ => out.initialize_unfilled_to(direct),
        };
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(stream).poll_read(context, &mut room))?;
        let read = room.filled().len();
        if direct > 0 {
            out.advance(read);
            self.inflow.passed(read);
        } else {
            self.inflow.filled(read);
        }
        self.budget = self.budget.saturating_sub(read);
        self.last_read = Instant::now();
        Poll::Ready(Ok(read))
    }

    /// Notes whether the peer takes what is written.
    fn noted<T>(&mut self, outcome: Poll<T>) -> Poll<T> {
        match outcome {
            Poll::Pending => _ = self.blocked.get_or_insert_with(Instant::now),
            Poll::Ready(_) => self.blocked = None,
        }
        outcome
    }

    /// Writes what is owed, and then of `slices`; gives how much of them.
    fn poll_put(
        &mut self,
        stream: &mut impl Transport,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let due = self.window_updates.due(slices.is_empty());
            if due.is_empty() && slices.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let mut all = [IoSlice::new(due); SLICES];
            let first = usize::from(!due.is_empty());
            let count = all.iter_mut().skip(first).zip(slices).map(|(to, from)| *to = *from).count();
            let all = all.get(..first + count).unwrap_or_default();
            let ours = due.len();
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(context, all))?;
            let ours = written.min(ours);
            self.window_updates.paid(ours);
            if written == 0 || written > ours {
                let codec = written - ours;
                self.follow(slices, codec);
                return Poll::Ready(Ok(codec));
            }
        }
    }

    fn follow(&mut self, slices: &[IoSlice<'_>], mut written: usize) {
        for slice in slices {
            let some = written.min(slice.len());
            let streams = &mut self.streams;
            self.window_updates.follow(slice.get(..some).unwrap_or_default(), |head| streams.written(head));
            written -= some;
        }
    }
}

impl<T: Transport> AsyncWrite for Socket<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Socket { stream, flow, .. } = self.get_mut();
        let mut state = flow.state();
        let written = state.poll_put(stream, context, slices);
        state.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Socket { stream, flow, .. } = self.get_mut();
        let mut state = flow.state();
        let owed = state.poll_put(stream, context, &[]);
        ready!(state.noted(owed))?;
        Pin::new(stream).poll_flush(context)
    }

    /// The codec calls this when it has written its goodbye, and is done when it is ready.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Socket { stream, linger, settings, .. } = self.get_mut();
        if linger.is_none() {
            ready!(Pin::new(&mut *stream).poll_shutdown(context))?;
        }
        let begin = || Linger { until: Box::pin(sleep(settings.linger)), left: settings.linger_bytes };
        linger.get_or_insert_with(begin).poll(stream, context).map(Ok)
    }
}
