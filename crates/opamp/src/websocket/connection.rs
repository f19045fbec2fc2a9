//! A connection: waits without a buffer, reads one message into a window, writes whole messages.

use super::frame::{CloseCode, Header, LONGEST_CONTROL, Opcode, put_header, unmask};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tidegate_arena::{PAGE, Share, Window};
use tidegate_http1::{ReceivedBehind, Stream, Upgraded};
use tokio::time::Instant;

/// How long a message may take from its first byte to its last.
const MESSAGE_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to receive what is sent.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// How long a message may wait for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(2);
/// How long a client may take to answer a close.
const CLOSE_TIME: Duration = Duration::from_secs(1);
/// What is thrown away then.
const CLOSE_SCRATCH: usize = 512;

/// A WebSocket connection of a client.
pub(crate) struct WebSocket<'a, T> {
    link: Upgraded<'a, T>,
    /// What was received and not looked at yet.
    unread: Option<Window>,
    /// The longest message, in bytes.
    longest: usize,
}

/// What has happened on a connection.
pub(crate) enum Event<P> {
    /// A whole binary message; it fills the window.
    Message(Window),
    /// Control frames alone: the client is there.
    Alive,
    /// What was waited for besides.
    Pushed(P),
    /// The client has sent nothing for too long, not even a pong.
    Silent,
    /// The server shuts down.
    Shutdown,
    /// The client has closed the connection, or it is lost.
    Closed,
    /// It must be closed, with this code.
    Failed(CloseCode),
}

/// Why a message was not received.
enum ReadError {
    Failed(CloseCode),
    Closed,
    /// There is none: only control frames have come.
    None,
}

impl From<CloseCode> for ReadError {
    fn from(code: CloseCode) -> ReadError {
        ReadError::Failed(code)
    }
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> ReadError {
        ReadError::Closed
    }
}

impl<'a, T: Stream> WebSocket<'a, T> {
    /// Takes a connection over, and sends the answer to its handshake.
    ///
    /// # Errors
    /// When it is lost.
    pub(crate) async fn open(
        mut link: Upgraded<'a, T>,
        answer: &[u8],
        longest: usize,
    ) -> io::Result<WebSocket<'a, T>> {
        let unread = match std::mem::replace(&mut link.received, ReceivedBehind::Nothing) {
            ReceivedBehind::Nothing => None,
            ReceivedBehind::Bytes(window) => Some(window),
            ReceivedBehind::Lost => return Err(io::ErrorKind::OutOfMemory.into()),
        };
        let mut socket = WebSocket { link, unread, longest };
        socket.write(answer).await?;
        Ok(socket)
    }

    /// Waits for a message, for `pushed`, or for the end; without a buffer until bytes are there.
    pub(crate) async fn next<P>(
        &mut self,
        silence: Duration,
        mut pushed: impl FnMut(&mut Context<'_>) -> Poll<P>,
    ) -> Event<P> {
        if self.unread.is_none() {
            let deadline = Instant::now() + silence;
            let woken = poll_fn(|context| {
                if self.link.stream.poll_readable(context).is_ready() {
                    return Poll::Ready(None);
                }
                if let Poll::Ready(pushed) = pushed(context) {
                    return Poll::Ready(Some(Event::Pushed(pushed)));
                }
                if self.link.shutdown.has_begun() || self.link.signal.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Some(Event::Shutdown));
                }
                self.poll_late(context, deadline).map(|()| Some(Event::Silent))
            });
            if let Some(event) = woken.await {
                return event;
            }
        }
        // On the heap: what is needed while a message arrives would be in every idle connection.
        match Box::pin(self.message()).await {
            Ok(message) => Event::Message(message),
            Err(ReadError::Failed(code)) => Event::Failed(code),
            Err(ReadError::Closed) => Event::Closed,
            Err(ReadError::None) => Event::Alive,
        }
    }

    /// Sends a binary message, which is the parts one after the other.
    ///
    /// # Errors
    /// When the client is gone, or does not take it in time.
    pub(crate) async fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let len = parts.iter().map(|part| part.len()).sum();
        let mut head = Vec::new();
        put_header(&mut head, Opcode::Binary, len);
        let mut parts = parts.iter();
        // Nearly always they are short, and there is one write.
        while let Some(next) = parts.as_slice().first().filter(|next| head.len() + next.len() <= PAGE) {
            head.extend_from_slice(next);
            parts.next();
        }
        self.write(&head).await?;
        for part in parts {
            self.write(part).await?;
        }
        Ok(())
    }

    /// Asks the client whether it is there.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.control(Opcode::Ping, &[]).await
    }

    /// Lets this time pass, or less when the gateway stops: clients that are closed come back at once.
    pub(crate) async fn pause(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        drop(self.unread.take());
        poll_fn(|context| {
            if self.link.shutdown.has_begun() || self.link.signal.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            self.poll_late(context, deadline)
        })
        .await;
    }

    /// Closes the connection, and lets the client say so too, for a short time.
    pub(crate) async fn close(mut self, code: CloseCode) {
        if self.control(Opcode::Close, &code.to_bytes()).await.is_err() {
            return;
        }
        let deadline = Instant::now() + CLOSE_TIME;
        // Behind TLS it may have to wait for the client.
        poll_fn(|context| match self.link.stream.poll_end(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => self.poll_late(context, deadline),
        })
        .await;
        drop(self.unread.take());
        poll_fn(|context| {
            let mut scratch = [0; CLOSE_SCRATCH];
            loop {
                match self.link.stream.poll_read(context, &mut scratch) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return self.poll_late(context, deadline),
                }
            }
        })
        .await;
    }

    /// Receives a message; answers pings on the way. The payloads of fragments are moved together at the front of the window.
    async fn message(&mut self) -> Result<Window, ReadError> {
        let deadline = Instant::now() + MESSAGE_TIME;
        let mut window = match self.unread.take() {
            Some(unread) => unread,
            None => self.first_bytes().await?,
        };
        // The window has the payload so far, bytes that are done with, and from `at` on the next frame.
        let (mut whole, mut at) = (0_usize, 0_usize);
        let mut is_begun = false;
        loop {
            let unread = window.get(at..).unwrap_or_default();
            // A control frame alone is no message: nothing is waited for with a window in hand.
            if unread.is_empty() && !is_begun {
                return Err(ReadError::None);
            }
            let header = Header::read(unread)?;
            let payload_len = header.map_or(Ok(0), |header| usize::try_from(header.payload_len));
            let payload_len = payload_len.map_err(|_| CloseCode::TooLarge)?;
            let start = at + header.map_or(0, |header| header.header_len);
            let end = start.saturating_add(payload_len);
            let is_data = header.is_some_and(|header| !header.opcode.is_control());
            if is_data && whole.saturating_add(payload_len) > self.longest {
                return Err(CloseCode::TooLarge.into());
            }
            let Some(header) = header.filter(|_| window.len() >= end) else {
                // A frame is moved at most once: after that it begins where the payload ends.
                remove(&mut window, whole, at);
                let missing = (end - at).saturating_sub(window.len() - whole).max(1);
                at = whole;
                self.read(&mut window, missing, deadline).await?;
                continue;
            };
            let payload = window.get_mut(start..end).unwrap_or_default();
            unmask(payload, header.mask);
            match (header.opcode, is_begun) {
                (Opcode::Text, _) => return Err(CloseCode::Unsupported.into()),
                (Opcode::Binary, false) | (Opcode::Continuation, true) => {
                    window.copy_within(start..end, whole);
                    (whole, is_begun) = (whole + payload_len, true);
                }
                (Opcode::Binary | Opcode::Continuation, _) => return Err(CloseCode::Protocol.into()),
                (Opcode::Ping, _) => {
                    let mut pong = [0; LONGEST_CONTROL];
                    let pong = pong.get_mut(..payload.len()).ok_or(CloseCode::Protocol)?;
                    pong.copy_from_slice(payload);
                    self.control(Opcode::Pong, pong).await?;
                }
                (Opcode::Pong, _) => {}
                (Opcode::Close, _) => {
                    let code = close_answer(payload);
                    let _answered = self.control(Opcode::Close, &code.to_bytes()).await;
                    return Err(ReadError::Closed);
                }
            }
            at = end;
            if is_data && header.is_final {
                self.keep_unread(&window, at)?;
                window.truncate(whole);
                return Ok(window);
            }
        }
    }

    /// What there is to read; [`ReadError::None`] where the wait ended in vain.
    async fn first_bytes(&mut self) -> Result<Window, ReadError> {
        let mut window = self.window().await?;
        let read =
            poll_fn(|context| Poll::Ready(self.link.stream.poll_read(context, window.spare_mut()))).await;
        match read {
            Poll::Ready(Ok(0)) => Err(ReadError::Closed),
            Poll::Ready(Ok(read)) => {
                window.advance(read);
                Ok(window)
            }
            Poll::Ready(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error.into()),
            Poll::Pending if !self.link.stream.has_begun() => Err(ReadError::None),
            _ => {
                self.read(&mut window, 1, Instant::now() + MESSAGE_TIME).await?;
                Ok(window)
            }
        }
    }

    /// Keeps what was received behind a message.
    fn keep_unread(&mut self, window: &Window, from: usize) -> Result<(), ReadError> {
        let rest = window.get(from..).unwrap_or_default();
        if !rest.is_empty() {
            let kept = self.link.arena.try_window(Share::Ingest, rest.len());
            let kept = kept.and_then(|mut kept| kept.append(rest).map(|()| kept));
            self.unread = Some(kept.map_err(|_| CloseCode::TryAgain)?);
        }
        Ok(())
    }

    /// A window for a message, which is waited for.
    async fn window(&mut self) -> Result<Window, ReadError> {
        let arena = self.link.arena;
        if let Ok(window) = arena.try_window(Share::Ingest, PAGE) {
            return Ok(window);
        }
        let deadline = Instant::now() + MEMORY_WAIT;
        let mut waiting = pin!(arena.window(Share::Ingest, PAGE));
        let window = poll_fn(|context| match waiting.as_mut().poll(context) {
            Poll::Ready(window) => Poll::Ready(window.ok()),
            Poll::Pending => self.poll_late(context, deadline).map(|()| None),
        });
        window.await.ok_or(ReadError::Failed(CloseCode::TryAgain))
    }

    /// Reads at least a byte; charges room for `missing` before.
    async fn read(
        &mut self,
        window: &mut Window,
        missing: usize,
        deadline: Instant,
    ) -> Result<(), ReadError> {
        let mut room = missing;
        loop {
            if window.spare() < room && window.try_reserve(room).is_err() {
                return Err(CloseCode::TryAgain.into());
            }
            let read = poll_fn(|context| match self.link.stream.poll_read(context, window.spare_mut()) {
                Poll::Ready(read) => Poll::Ready(Some(read)),
                Poll::Pending => self.poll_late(context, deadline).map(|()| None),
            });
            match read.await {
                Some(Ok(0)) => return Err(ReadError::Closed),
                Some(Ok(read)) => {
                    window.advance(read);
                    return Ok(());
                }
                // A stream of records that must be taken whole.
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    room = self.link.stream.room().max(window.spare() + 1);
                }
                Some(Err(error)) => return Err(error.into()),
                None => return Err(CloseCode::Policy.into()),
            }
        }
    }

    async fn control(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        let mut frame = Vec::new();
        put_header(&mut frame, opcode, payload.len());
        frame.extend_from_slice(payload);
        self.write(&frame).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + WRITE_TIME;
        let mut left = bytes;
        poll_fn(|context| {
            loop {
                let sent = match left.is_empty() {
                    true => self.link.stream.poll_flush(context)?.map(|()| 0),
                    false => self.link.stream.poll_write(context, left)?,
                };
                match sent {
                    Poll::Ready(_) if left.is_empty() => return Poll::Ready(Ok(())),
                    Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(sent) => left = left.get(sent..).unwrap_or_default(),
                    Poll::Pending => {
                        ready!(self.poll_late(context, deadline));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
        })
        .await
    }

    fn poll_late(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        if self.link.timer.deadline() != deadline {
            self.link.timer.as_mut().reset(deadline);
        }
        self.link.timer.as_mut().poll(context)
    }
}

/// Removes the bytes of a range from a window.
fn remove(window: &mut Window, from: usize, to: usize) {
    window.copy_within(to.., from);
    window.truncate(window.len() - (to - from));
}

/// The code that answers the payload of a close frame.
fn close_answer(payload: &[u8]) -> CloseCode {
    match payload.split_first_chunk() {
        None if payload.is_empty() => CloseCode::Normal,
        None => CloseCode::Protocol,
        Some((code, reason)) => match u16::from_be_bytes(*code) {
            1000..=1003 | 1007..=1014 | 3000..=4999 if str::from_utf8(reason).is_ok() => CloseCode::Normal,
            1000..=1003 | 1007..=1014 | 3000..=4999 => CloseCode::Invalid,
            _ => CloseCode::Protocol,
        },
    }
}
