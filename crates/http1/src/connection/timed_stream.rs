//! The transport of a connection with its one timer: every wait has a deadline.

use crate::certificate::Certificate;
use crate::reply::{ConnectionHeaders, Content, ContentStream, Reply, render_head};
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::stream::Stream;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Bytes of an answer that are put together before they are written; also the size of the sink below.
pub(crate) const WRITE_BUFFER_LEN: usize = 4 << 10;
/// Bytes thrown away per read.
const DISCARD_CHUNK: usize = 16 << 10;

thread_local! {
    /// Where answers are put together. Used within one poll only.
    static WRITE_BUFFER: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(WRITE_BUFFER_LEN));
    /// Where what nobody wants is read into. Used within one poll only, and never looked at.
    static DISCARD_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; DISCARD_CHUNK].into_boxed_slice());
}

/// A stream and a timer that is set anew for every wait.
pub(crate) struct TimedStream<'a, T> {
    stream: &'a mut T,
    timer: Pin<&'a mut Sleep>,
}

/// The result of a read with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    Bytes(usize),
    End,
    Late,
    /// Nothing was taken, since there is too little room: so much is needed.
    Short(usize),
}

impl<'a, T: Stream> TimedStream<'a, T> {
    pub(crate) fn new(stream: &'a mut T, timer: Pin<&'a mut Sleep>) -> Self {
        TimedStream { stream, timer }
    }

    /// The stream and the timer.
    pub(crate) fn into_parts(self) -> (&'a mut T, Pin<&'a mut Sleep>) {
        (self.stream, self.timer)
    }

    /// Whether part of something has come that cannot be read yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.stream.has_begun()
    }

    /// The names in the certificate that the peer has shown.
    pub(crate) fn certificate(&self) -> Option<&Certificate> {
        self.stream.certificate()
    }

    pub(crate) fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_closed(context)
    }

    pub(crate) fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_readable(context)
    }

    /// Ready once `deadline` has passed. The timer is left alone while it is set to an earlier time: it
    /// wakes the task once in vain, which costs less than setting it for every request.
    pub(crate) fn poll_late(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            if self.timer.deadline() > deadline || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(context));
            if self.timer.deadline() >= deadline {
                return Poll::Ready(());
            }
        }
    }

    /// Waits until there is something to read or the deadline has passed.
    pub(crate) async fn readable(&mut self, deadline: Instant) {
        poll_fn(|context| {
            if self.stream.poll_readable(context).is_ready() {
                return Poll::Ready(());
            }
            self.poll_late(context, deadline)
        })
        .await;
    }

    /// Reads what is there now.
    pub(crate) fn try_read(
        &mut self,
        into: &mut [u8],
    ) -> impl Future<Output = Poll<io::Result<ReadOutcome>>> {
        poll_fn(move |context| Poll::Ready(self.poll_read(context, into)))
    }

    fn poll_read(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<ReadOutcome>> {
        Poll::Ready(match ready!(self.stream.poll_read(context, into)) {
            Ok(0) => Ok(ReadOutcome::End),
            Ok(read) => Ok(ReadOutcome::Bytes(read)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(ReadOutcome::Short(self.stream.room().max(into.len() + 1)))
            }
            Err(error) => Err(error),
        })
    }

    pub(crate) fn read(
        &mut self,
        into: &mut [u8],
        deadline: Instant,
    ) -> impl Future<Output = io::Result<ReadOutcome>> {
        poll_fn(move |context| match self.poll_read(context, into) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending => self.poll_late(context, deadline).map(|()| Ok(ReadOutcome::Late)),
        })
    }

    /// Polls `future` until the deadline has passed.
    pub(crate) fn within<F: Future>(
        &mut self,
        mut future: Pin<&mut F>,
        deadline: Instant,
    ) -> impl Future<Output = Option<F::Output>> {
        poll_fn(move |context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll_late(context, deadline).map(|()| None),
        })
    }

    pub(crate) fn write_all(
        &mut self,
        bytes: &[u8],
        deadline: Instant,
    ) -> impl Future<Output = io::Result<()>> {
        let mut left = bytes;
        poll_fn(move |context| {
            while !left.is_empty() {
                match self.stream.poll_write(context, left)? {
                    Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(written) => left = left.get(written..).unwrap_or_default(),
                    Poll::Pending => {
                        ready!(self.poll_late(context, deadline));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Begins to send an answer. Nearly always that is all of it: one write of bytes put together in the
    /// thread's scratch. What the socket does not take at once is given back, for
    /// [`send_rest`](Self::send_rest).
    pub(crate) fn begin(
        &mut self,
        reply: Reply,
        ending: ConnectionHeaders,
        now_ns: u64,
    ) -> io::Result<Option<Box<UnsentAnswer>>> {
        with_scratch(|out| {
            let left = put(reply, ending, now_ns, out);
            self.send(out, left)
        })
    }

    /// Begins to send `out`, and then what is left of the content of the last answer in it.
    pub(crate) fn send(&mut self, out: &[u8], left: UnsentContent) -> io::Result<Option<Box<UnsentAnswer>>> {
        // Nobody has to be woken: whoever gets something back polls again.
        let mut context = Context::from_waker(Waker::noop());
        let written = match self.stream.poll_write(&mut context, out)? {
            Poll::Ready(written) => written,
            Poll::Pending => 0,
        };
        if written == out.len() && left.is_nothing() && self.stream.poll_flush(&mut context)?.is_ready() {
            return Ok(None);
        }
        Ok(Some(Box::new(UnsentAnswer { scratch: out.get(written..).unwrap_or_default().into(), left })))
    }

    /// Sends what is left of an answer.
    pub(crate) async fn send_rest(&mut self, unsent: &UnsentAnswer, deadline: Instant) -> io::Result<()> {
        self.write_all(&unsent.scratch, deadline).await?;
        self.write_all(unsent.left.bytes(), deadline).await?;
        self.flush(deadline).await
    }

    /// Sends content while it is made. Each of its pieces may take the client as long as `patience`. Content without a length
    /// ends when `shutdown` begins.
    pub(crate) async fn send_stream(
        &mut self,
        stream: &mut dyn ContentStream,
        patience: Duration,
        shutdown: &Shutdown,
    ) -> io::Result<()> {
        let Some(mut left) = stream.total_bytes() else {
            return self.send_until_end(stream, patience, shutdown).await;
        };
        while left > 0 {
            let piece = stream.next_piece().await?;
            left = match left.checked_sub(piece.len() as u64) {
                Some(rest) if !piece.is_empty() => rest,
                // It is not as long as its head says.
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            self.write_all(piece, Instant::now() + patience).await?;
        }
        self.flush(Instant::now() + patience).await
    }

    async fn send_until_end(
        &mut self,
        stream: &mut dyn ContentStream,
        patience: Duration,
        shutdown: &Shutdown,
    ) -> io::Result<()> {
        let mut begun = pin!(shutdown.begun());
        loop {
            let piece = {
                let mut next = stream.next_piece();
                poll_fn(|context| {
                    if let Poll::Ready(piece) = next.as_mut().poll(context) {
                        return Poll::Ready(Some(piece));
                    }
                    // Nothing is written meanwhile, which would tell.
                    if self.stream.poll_closed(context).is_ready() {
                        return Poll::Ready(None);
                    }
                    begun.as_mut().poll(context).map(|()| None)
                })
                .await
            };
            match piece.transpose()? {
                Some(piece) if !piece.is_empty() => {
                    self.write_all(piece, Instant::now() + patience).await?;
                    // Behind TLS nothing else would send the last of it before the next piece.
                    self.flush(Instant::now() + patience).await?;
                }
                _ => return Ok(()),
            }
        }
    }

    async fn flush(&mut self, deadline: Instant) -> io::Result<()> {
        poll_fn(|context| match self.stream.poll_flush(context) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => self.poll_late(context, deadline).map(|()| Err(io::ErrorKind::TimedOut.into())),
        })
        .await
    }

    /// Throws away what arrives, until that is `limit` bytes, or the end, or too little in the time that `settings` give;
    /// once `is_leaving` they give no more. Returns how much it was.
    pub(crate) fn discard(
        &mut self,
        limit: usize,
        settings: &Settings,
        is_leaving: impl Fn() -> bool,
    ) -> impl Future<Output = io::Result<usize>> {
        let begun = Instant::now();
        let (mut discarded, mut enough) = (0, settings.linger_least);
        let mut deadline = begun + settings.linger;
        poll_fn(move |context| {
            while discarded < limit {
                let read = DISCARD_BUFFER.with_borrow_mut(|nowhere| {
                    let room = nowhere.len().min(limit - discarded);
                    self.stream.poll_read(context, nowhere.get_mut(..room).unwrap_or_default())
                });
                let read = match read {
                    // The remaining limit is less than the available bytes: do not take them.
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                    read => read?,
                };
                match read {
                    Poll::Ready(0) => break,
                    Poll::Ready(read) => discarded += read,
                    Poll::Pending => {
                        ready!(self.poll_late(context, deadline));
                        break;
                    }
                }
                if discarded >= enough && !is_leaving() {
                    enough = discarded.saturating_add(settings.linger_least);
                    deadline = (Instant::now() + settings.linger).min(begun + settings.linger_total);
                }
            }
            Poll::Ready(Ok(discarded))
        })
    }

    /// Ends the connection so that the client can read the last answer: closing a socket that holds or
    /// gets bytes nobody reads sends a reset, which can overtake the answer. Many clients read none before all is
    /// sent, so it is read on for as long as they send.
    pub(crate) async fn linger(&mut self, settings: &Settings, is_leaving: impl Fn() -> bool) {
        let deadline = Instant::now() + settings.linger;
        let ended = poll_fn(|context| match self.stream.poll_end(context) {
            Poll::Ready(ended) => Poll::Ready(ended.is_ok()),
            Poll::Pending => self.poll_late(context, deadline).map(|()| false),
        });
        if ended.await {
            // Failing here is the client closing first, which is as well.
            let _ = self.discard(settings.linger_bytes, settings, is_leaving).await;
        }
    }
}

/// The rest after the first write of an answer.
#[derive(Debug)]
pub(crate) struct UnsentAnswer {
    /// Of what was put together.
    scratch: Box<[u8]>,
    left: UnsentContent,
}

/// The part of an answer's content that was not sent with its head.
#[derive(Debug)]
pub(crate) struct UnsentContent {
    content: Content,
    /// How much of the content needs no sending any more.
    sent: usize,
}

impl UnsentAnswer {
    /// The content that is still to be made, if it is such.
    pub(crate) fn stream(&mut self) -> Option<&mut dyn ContentStream> {
        match &mut self.left.content {
            Content::Stream(stream) => Some(&mut **stream),
            _ => None,
        }
    }
}

impl UnsentContent {
    pub(crate) const NOTHING: UnsentContent = UnsentContent { content: Content::Empty, sent: 0 };

    pub(crate) fn is_nothing(&self) -> bool {
        self.bytes().is_empty() && !matches!(self.content, Content::Stream(_))
    }

    fn bytes(&self) -> &[u8] {
        self.content.bytes().get(self.sent..).unwrap_or_default()
    }
}

/// Lends the place where answers are put together, empty.
pub(crate) fn with_scratch<R>(put: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    WRITE_BUFFER.with_borrow_mut(|out| {
        out.clear();
        put(out)
    })
}

/// Appends an answer to what is put together, but for the content that finds no room.
pub(crate) fn put(reply: Reply, ending: ConnectionHeaders, now_ns: u64, out: &mut Vec<u8>) -> UnsentContent {
    let follows = render_head(&reply, ending, now_ns, out);
    let content = reply.into_content();
    let mut sent = content.bytes().len();
    if follows {
        sent = sent.min(WRITE_BUFFER_LEN.saturating_sub(out.len()));
        out.extend_from_slice(content.bytes().get(..sent).unwrap_or_default());
    } else if matches!(content, Content::Stream(_)) {
        return UnsentContent::NOTHING;
    }
    UnsentContent { content, sent }
}
