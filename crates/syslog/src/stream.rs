//! Connections: TCP, TLS and Unix stream sockets.
//!
//! A connection waits without a buffer. When there is something to read it takes one of a few buffers, reads what is there,
//! appends it, and gives the buffer back. So it is read no further than what is durable plus one buffer, and the kernel tells
//! the sender to wait.

use crate::batch::{Messages, deliver, now_ns};
use crate::framing::{Framed, Framer, Framing};
use crate::half_messages::{HalfMessage, HalfMessages};
use crate::message::ParseSettings;
use crate::record::Origin;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tidegate_ledger::Refusal;
use tidegate_log_intake::{ConnectionService, LogIntake, Serving, Stopping, Stream, TaskGroup, readable};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The bytes that TLS needs to read a record into.
const RECORD: usize = 17 << 10;
/// How long a connection that has sent little gathers more, holding nothing.
const GATHER: Duration = Duration::from_millis(20);

/// The settings of a listener.
#[derive(Debug, Clone)]
pub struct StreamSettings {
    /// How messages are read.
    pub parse: ParseSettings,
    /// How they are told apart.
    pub framing: Framing,
    /// The longest message in bytes; a longer one is cut.
    pub max_message: usize,
    /// How long a half message may take to be completed.
    pub message_timeout: Duration,
    /// How long a connection may send nothing; none is for ever.
    pub idle_timeout: Option<Duration>,
    /// `tcp` or `unix`.
    pub transport: &'static str,
}

/// Receives the connections of one listener.
pub struct StreamReceiver(Arc<Receiver>);

struct Receiver {
    intake: LogIntake,
    settings: StreamSettings,
    buffers: Buffers,
    half: HalfMessages,
    /// For connections that wait for memory of a half message with a buffer in their hands: those whose messages would free that
    /// memory need buffers, too.
    waiting: Semaphore,
    tasks: TaskGroup,
}

/// Buffers that connections read into in turn.
struct Buffers {
    free: Semaphore,
    idle: Mutex<Vec<Box<[u8]>>>,
    len: usize,
}

/// A buffer in use.
struct Buffer<'a> {
    buffers: &'a Buffers,
    bytes: Box<[u8]>,
    _turn: tokio::sync::SemaphorePermit<'a>,
}

impl StreamReceiver {
    /// Buffers of a listener.
    const BUFFERS: usize = 8;
    /// Of these, so many may wait for memory of half messages.
    const WAITING: usize = Self::BUFFERS / 2;

    /// Heap of a listener's buffers for messages of at most `max_message` bytes.
    #[must_use]
    pub fn buffer_bytes(max_message: usize) -> usize {
        Self::BUFFERS * Self::buffer_len(max_message)
    }

    fn buffer_len(max_message: usize) -> usize {
        (2 * max_message).max(32 << 10) + RECORD
    }

    /// Gives the messages of connections to `intake`. Connections are counted in `tasks`; messages that have not ended are kept
    /// in the memory of `half`.
    #[must_use]
    pub fn new(
        intake: LogIntake,
        settings: StreamSettings,
        half: HalfMessages,
        tasks: TaskGroup,
    ) -> StreamReceiver {
        let len = Self::buffer_len(settings.max_message);
        let buffers = Buffers { free: Semaphore::new(Self::BUFFERS), idle: Mutex::default(), len };
        let waiting = Semaphore::new(Self::WAITING);
        StreamReceiver(Arc::new(Receiver { intake, settings, buffers, half, waiting, tasks }))
    }
}

impl ConnectionService for StreamReceiver {
    fn serve(&self, stream: Box<dyn Stream>, peer: Option<SocketAddr>) -> Serving {
        let receiver = Arc::clone(&self.0);
        let counted = self.0.tasks.count();
        Box::pin(async move {
            let _counted = counted;
            receiver.serve(stream, peer).await;
        })
    }

    fn count_refused(&self) {
        self.0.intake.refuse_connection();
    }
}

/// Why a connection ends.
enum Ended {
    ByPeer,
    Stopping,
    Refused(Refusal),
}

impl From<Stopping> for Ended {
    fn from(_: Stopping) -> Ended {
        Ended::Stopping
    }
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Ended {
        Ended::ByPeer
    }
}

impl Receiver {
    async fn serve(&self, mut stream: Box<dyn Stream>, peer: Option<SocketAddr>) {
        let mut connection = Connection {
            framer: Framer::new(self.settings.framing, self.settings.max_message),
            partial: None,
            is_busy: false,
        };
        let ended = loop {
            if let Err(ended) = self.read_once(&mut *stream, peer, &mut connection).await {
                break ended;
            }
        };
        if let Ended::Refused(reason) = ended {
            self.intake.refuse(reason, 1);
        }
    }

    /// Waits for bytes and appends the messages in them.
    async fn read_once(
        &self,
        stream: &mut dyn Stream,
        peer: Option<SocketAddr>,
        connection: &mut Connection,
    ) -> Result<(), Ended> {
        let shutdown = self.intake.shutdown();
        let settings = &self.settings;
        let limit =
            connection.partial.as_ref().map_or(settings.idle_timeout, |partial| Some(partial.patience));
        let waiting = async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, readable(stream)).await.map_err(|_late| ()),
                None => Ok(readable(stream).await),
            }
        };
        let began = Instant::now();
        let is_readable = tokio::select! {
            biased;
            () = shutdown.begun() => return Err(Ended::Stopping),
            is_readable = waiting => is_readable,
        };
        match is_readable {
            Ok(result) => result?,
            Err(()) if connection.partial.is_some() => return Err(Ended::Refused(Refusal::Timeout)),
            Err(()) => return Err(Ended::ByPeer),
        }
        let waited = began.elapsed();
        if !connection.is_busy && tokio::time::timeout(GATHER, shutdown.begun()).await.is_ok() {
            return Err(Ended::Stopping);
        }
        let mut buffer = self.buffers.take().await.ok_or(Ended::Stopping)?;
        let (mut filled, mut patience) = (0, settings.message_timeout);
        if let Some(partial) = connection.partial.take() {
            let front = buffer.bytes.get_mut(..partial.bytes.len()).ok_or(Ended::ByPeer)?;
            front.copy_from_slice(&partial.bytes);
            filled = partial.bytes.len();
            patience = partial.patience.saturating_sub(waited);
        }
        let (read, is_end) = fill(stream, buffer.bytes.get_mut(filled..).unwrap_or_default()).await;
        connection.is_busy = read == buffer.bytes.len() - filled;
        filled += read;
        let received = buffer.bytes.get(..filled).unwrap_or_default();
        let origin = Origin { peer, transport: settings.transport, now_ns: now_ns() };
        let messages =
            StreamMessages { framer: connection.framer.clone(), bytes: received, at: 0, is_end, origin };
        let mut behind = messages.clone();
        while behind.next().is_some() {}
        deliver(&self.intake, &settings.parse, messages).await?;
        let is_broken = behind.is_broken();
        connection.framer = behind.framer;
        let rest = received.get(behind.at..).unwrap_or_default();
        if is_broken {
            return Err(Ended::Refused(Refusal::Malformed));
        }
        if is_end {
            return Err(Ended::ByPeer);
        }
        if !rest.is_empty() {
            // Of the same message as before, or of the next.
            let patience = if behind.at == 0 { patience } else { settings.message_timeout };
            connection.partial = Some(self.partial(rest, patience).await?);
        }
        Ok(())
    }

    /// Keeps a half message, as soon as there is memory for it. Who would have to wait beside too many others is refused.
    async fn partial(&self, rest: &[u8], patience: Duration) -> Result<HalfMessage, Ended> {
        const REFUSED: Ended = Ended::Refused(Refusal::Memory);
        let mut keeping = pin!(self.half.keep(rest, patience));
        let at_once = poll_fn(|context| Poll::Ready(keeping.as_mut().poll(context))).await;
        if let Poll::Ready(kept) = at_once {
            return kept.map_err(|_| REFUSED);
        }
        let _turn = self.waiting.try_acquire().map_err(|_| REFUSED)?;
        tokio::select! {
            biased;
            () = self.intake.shutdown().begun() => Err(Ended::Stopping),
            kept = tokio::time::timeout(self.settings.message_timeout, keeping) => match kept {
                Ok(Ok(half)) => Ok(half),
                Ok(Err(_)) | Err(_) => Err(REFUSED),
            }
        }
    }
}

/// The state of a connection between two reads.
struct Connection {
    framer: Framer,
    /// The beginning of a message.
    partial: Option<HalfMessage>,
    /// It had more than one buffer holds: it need not gather.
    is_busy: bool,
}

/// Reads what is there without waiting for more. Says how much it was, and whether the stream has ended.
async fn fill(stream: &mut dyn Stream, buffer: &mut [u8]) -> (usize, bool) {
    let mut filled = 0;
    poll_fn(|context| {
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match stream.poll_read(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready((filled, true)),
                Poll::Ready(Ok(read)) => filled += read,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                Poll::Ready(Err(_)) => return Poll::Ready((filled, true)),
                Poll::Pending => break,
            }
        }
        Poll::Ready((filled, false))
    })
    .await
}

/// The messages in what was read of a connection.
#[derive(Clone)]
struct StreamMessages<'a> {
    framer: Framer,
    bytes: &'a [u8],
    at: usize,
    is_end: bool,
    origin: Origin,
}

impl StreamMessages<'_> {
    fn is_broken(&mut self) -> bool {
        self.framer.next(self.bytes.get(self.at..).unwrap_or_default(), self.is_end) == Framed::Broken
    }
}

impl Messages for StreamMessages<'_> {
    fn next(&mut self) -> Option<(&[u8], Origin)> {
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            match self.framer.next(rest, self.is_end) {
                Framed::Message { bytes: message, used, .. } => {
                    self.at += used;
                    if !message.is_empty() {
                        return Some((message, self.origin));
                    }
                }
                Framed::Skipped(used) => self.at += used,
                Framed::Partial | Framed::Broken => return None,
            }
        }
    }

    fn used(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }
}

impl Buffers {
    async fn take(&self) -> Option<Buffer<'_>> {
        let turn = self.free.acquire().await.ok()?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = idle.unwrap_or_else(|| vec![0; self.len].into_boxed_slice());
        Some(Buffer { buffers: self, bytes, _turn: turn })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.buffers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}
