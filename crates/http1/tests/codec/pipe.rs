//! A connection in memory: what the client sends arrives in the pieces it was sent in, so that every split
//! can be tried.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tidegate_http1::Stream;

/// The server's end.
pub(crate) struct Pipe(Arc<Mutex<State>>);

/// The client's end. Dropping it does not close the connection.
#[derive(Clone)]
pub(crate) struct Client(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    arriving: VecDeque<Vec<u8>>,
    closed: bool,
    /// The most bytes of answers the client takes.
    room: usize,
    answers: Vec<u8>,
    /// How many writes they came in.
    writes: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// A connection whose client takes every answer.
pub(crate) fn pipe() -> (Client, Pipe) {
    let state = Arc::new(Mutex::new(State { room: usize::MAX, ..State::default() }));
    (Client(state.clone()), Pipe(state))
}

impl Client {
    /// Sends one piece.
    pub(crate) fn send(&self, piece: impl AsRef<[u8]>) {
        let mut state = self.0.lock().unwrap();
        state.arriving.push_back(piece.as_ref().to_vec());
        wake(state.reader.take());
    }

    /// Sends nothing any more; answers are still taken.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock().unwrap();
        state.closed = true;
        wake(state.reader.take());
    }

    /// Takes at most this many bytes of answers in all.
    pub(crate) fn take_at_most(&self, room: usize) {
        let mut state = self.0.lock().unwrap();
        state.room = room;
        wake(state.writer.take());
    }

    /// How many writes of the server brought that.
    pub(crate) fn writes(&self) -> usize {
        self.0.lock().unwrap().writes
    }

    /// The server's output so far.
    pub(crate) fn answers(&self) -> Vec<u8> {
        self.0.lock().unwrap().answers.clone()
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Stream for Pipe {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock().unwrap();
        if state.arriving.is_empty() && !state.closed {
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock().unwrap();
        let Some(piece) = state.arriving.front_mut() else {
            if state.closed {
                return Poll::Ready(Ok(0));
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        };
        assert!(!buffer.is_empty(), "a read into nothing looks like the end");
        let now = piece.len().min(buffer.len());
        buffer[..now].copy_from_slice(&piece[..now]);
        piece.drain(..now);
        if piece.is_empty() {
            state.arriving.pop_front();
        }
        Poll::Ready(Ok(now))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock().unwrap();
        let now = bytes.len().min(state.room.saturating_sub(state.answers.len()));
        if now == 0 {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.answers.extend_from_slice(&bytes[..now]);
        state.writes += 1;
        Poll::Ready(Ok(now))
    }

    fn poll_end(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
