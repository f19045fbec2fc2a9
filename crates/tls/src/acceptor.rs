//! The handshake: bounded in time, in number, in memory, and in the part of a thread's time that it takes.

use crate::handshake_failures::{HandshakeCounters, HandshakeFailure};
use crate::identity::ServerIdentity;
use crate::partial_record::MemoryAccount;
use crate::records::{HANDSHAKE, MAX_RECORD, RECORD_HEADER_LEN, RecordHeader, front, whole};
use crate::session::TlsSession;
use crate::stream::TlsStream;
use crate::{handshake_pacing, subject};
use rustix::net::{RecvFlags, recv};
use rustls::server::UnbufferedServerConnection;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_http1::Certificate;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Handshakes at a time, by all threads together.
const MAX_HANDSHAKES: usize = 256;
/// The charge per handshake: the client's bytes, the server's, and the key schedule.
const HANDSHAKE_BYTES: u64 = 48 << 10;
/// The most bytes of messages that are not whole: a client's certificates are the longest.
const MAX_PENDING_BYTES: usize = MAX_RECORD + (8 << 10);
/// Where more than half of the seats are taken, a handshake that takes longer than this gives up its own.
const CONTENDED_TIMEOUT: Duration = Duration::from_secs(2);
/// `internal_error`, fatal, before anything was agreed on (RFC 8446, section 6.2).
const INTERNAL_ERROR_ALERT: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

/// Makes connections with TLS of sockets.
pub struct TlsAcceptor {
    identity: ServerIdentity,
    arena: Arena,
    share: Share,
    limit: Duration,
    desk: Arc<AcceptorState>,
}

/// The state shared by all acceptors.
struct AcceptorState {
    seats: Semaphore,
    tally: HandshakeCounters,
}

/// Why a socket did not become a connection.
#[derive(Debug)]
pub enum AcceptError {
    /// It speaks something else. Its first bytes are where they were.
    NotTls(TcpStream),
    /// It took too long.
    Late,
    /// There was no room for it within its time.
    Crowded,
    /// The client went away, broke a rule, or had nothing acceptable to show.
    Lost(io::Error),
}

impl TlsAcceptor {
    /// Shows `identity`, charges `share` of `arena` for a handshake, and gives each as long as `limit`.
    pub fn new(identity: ServerIdentity, arena: Arena, share: Share, limit: Duration) -> TlsAcceptor {
        let desk = Arc::new(AcceptorState {
            seats: Semaphore::new(MAX_HANDSHAKES),
            tally: HandshakeCounters::default(),
        });
        TlsAcceptor { identity, arena, share, limit, desk }
    }

    /// Another one, which shows `identity` and has its handshakes within the same bounds and the same count.
    #[must_use]
    pub fn beside(&self, identity: ServerIdentity) -> TlsAcceptor {
        let TlsAcceptor { arena, share, limit, desk, .. } = self;
        TlsAcceptor { identity, arena: arena.clone(), share: *share, limit: *limit, desk: Arc::clone(desk) }
    }

    /// The certificate to present.
    pub fn identity(&self) -> &ServerIdentity {
        &self.identity
    }

    /// Does the handshake of a socket.
    ///
    /// # Errors
    /// When nothing comes of it. The client was told by an alert, where that was possible.
    pub async fn accept(&self, socket: TcpStream) -> Result<TlsStream, AcceptError> {
        let outcome = self.try_enter(socket).await;
        self.desk.tally.count(&outcome);
        outcome
    }

    async fn try_enter(&self, socket: TcpStream) -> Result<TlsStream, AcceptError> {
        let deadline = Instant::now() + self.limit;
        match timeout_at(deadline, begins_with_tls(&socket)).await {
            Err(_late) => return Err(AcceptError::Late),
            Ok(Err(error)) => return Err(AcceptError::Lost(error)),
            Ok(Ok(false)) => return Err(AcceptError::NotTls(socket)),
            Ok(Ok(true)) => {}
        }
        let admitted = timeout_at(deadline, async {
            let seat = self.desk.seats.acquire().await.ok()?;
            Some((seat, self.arena.charge(self.share, HANDSHAKE_BYTES).await.ok()?))
        });
        let Ok(Some(_held)) = admitted.await else {
            reject(socket).await;
            return Err(AcceptError::Crowded);
        };
        // On the heap, since what it holds is large and soon done with.
        let mut handshake = Box::pin(self.handshake(socket));
        let brief = (Instant::now() + CONTENDED_TIMEOUT).min(deadline);
        let outcome = match timeout_at(brief, &mut handshake).await {
            Err(_late) if self.desk.seats.available_permits() > MAX_HANDSHAKES / 2 => {
                timeout_at(deadline, handshake).await
            }
            outcome => outcome,
        };
        match outcome {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(AcceptError::Lost(error)),
            Err(_late) => Err(AcceptError::Late),
        }
    }

    async fn handshake(&self, socket: TcpStream) -> io::Result<TlsStream> {
        let tls = UnbufferedServerConnection::new(self.identity.config()).map_err(io::Error::other)?;
        let mut socket = socket;
        let mut session = Box::new(TlsSession::new(tls));
        // Messages may be in pieces, which have to stay until they are whole.
        let mut pending = Vec::new();
        while session.tls().is_handshaking() {
            socket.readable().await?;
            handshake_pacing::turn().await;
            if pending.len() > MAX_PENDING_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            receive(&mut socket, &mut pending).await?;
            let opened = handshake_pacing::work(|| session.open(&mut pending, &mut [], &mut Vec::new()));
            let sent = socket.write_all(&session.unsent).await;
            session.unsent = Vec::new();
            pending.drain(..opened?.used);
            sent?;
            if session.ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if !pending.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let shown = session.tls().peer_certificates().and_then(<[_]>::first);
        let certificate = shown.map(|shown| subject::certificate(shown).unwrap_or_default());
        let valid_until = session.valid_until.second();
        let certificate = certificate.map(|names| Certificate { valid_until, ..names });
        Ok(TlsStream::new(
            socket,
            session,
            certificate,
            MemoryAccount { arena: self.arena.clone(), share: self.share },
        ))
    }

    /// How handshakes end, those of the acceptors [beside](Self::beside) included.
    pub fn tally(&self) -> &HandshakeCounters {
        &self.desk.tally
    }

    /// Why it failed, and how many did so that a line in the log should speak of, where it is time for one.
    pub fn note(&self, failure: &AcceptError) -> (HandshakeFailure, Option<u64>) {
        let reason = HandshakeFailure::of(failure);
        (reason, self.desk.tally.note(reason))
    }
}

/// Waits for the first byte, and leaves it where it is.
async fn begins_with_tls(socket: &TcpStream) -> io::Result<bool> {
    loop {
        socket.readable().await?;
        let looked = socket.try_io(Interest::READABLE, || {
            let mut first = [0; 1];
            let (len, _) = recv(socket, &mut first[..], RecvFlags::PEEK)?;
            if len == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(first == [HANDSHAKE]) }
        });
        match looked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            looked => return looked,
        }
    }
}

/// Receives one record: what comes behind the handshake stays where it is.
async fn receive(socket: &mut TcpStream, pending: &mut Vec<u8>) -> io::Result<()> {
    let before = pending.len();
    pending.resize(before + RECORD_HEADER_LEN, 0);
    socket.read_exact(pending.get_mut(before..).unwrap_or_default()).await?;
    let record = pending.get(before..).unwrap_or_default();
    if front(record, 1, MAX_RECORD) == RecordHeader::Broken {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let whole = whole(record).unwrap_or(RECORD_HEADER_LEN);
    pending.resize(before + whole, 0);
    socket.read_exact(pending.get_mut(before + RECORD_HEADER_LEN..).unwrap_or_default()).await?;
    Ok(())
}

/// Tells who wants to do a handshake that it cannot be done now, and does not wait for that to be heard.
pub async fn reject(mut socket: TcpStream) {
    // A new connection has room for seven bytes.
    let _ = socket.write(INTERNAL_ERROR_ALERT).now_or_pending().await;
    let _ = socket.shutdown().now_or_pending().await;
}

/// One try, without waiting.
trait NowOrPending: Future + Sized {
    async fn now_or_pending(self) -> Option<Self::Output> {
        let mut future = std::pin::pin!(self);
        poll_fn(|context| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}

impl<F: Future> NowOrPending for F {}
