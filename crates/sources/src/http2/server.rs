//! The entry: the connections that are served, and how many there may be.

use super::answer;
use super::connection;
use super::frames::PREFACE;
use super::transport::Transport;
use crate::connection_slots::ConnectionSlots;
use crate::http::Http;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidegate_arena::Arena;
use tidegate_http1::{ConnectionEnd, Settings, Shutdown};
use tidegate_ledger::Refusal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// Serves the sources over HTTP/2. Clones are the same server.
#[derive(Clone)]
pub struct Http2(Arc<Inner>);

pub(super) struct Inner {
    pub(super) http: Http,
    pub(super) settings: Settings,
    pub(super) arena: Arena,
    places: ConnectionSlots,
    open: AtomicUsize,
}

/// An open connection's count; dropping it counts it out.
struct StreamGuard<'a>(&'a AtomicUsize);

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Http2 {
    /// How many [`ConnectionSlots`] a connection takes beyond the one that every connection has. With 2 KiB each that is
    /// what an idle one keeps: three buffers of the codec, one of which is touched to its end in time, its tables for
    /// four streams at a time, and its task (`cargo run --release -p tidegate-sources --example idle_http2 -- 1000 200 200`); and the few bytes that it
    /// reads while there is no memory. While it is read it is charged for more, and for what its buffer has grown by.
    pub const PLACES: usize = 16;
    /// Temporary bytes for parsing the frames of one turn, on each thread that serves connections: header bytes given
    /// to the codec at a time, each an entry of its own. Plus a thread's buffers for answers.
    pub const WORKER_BYTES: usize = (1 << 20) + answer::WORKER_BYTES;

    /// A server that answers with the sources of `http`, within `settings`, from the memory of `arena`, for as
    /// many connections as there are `connection_slots`.
    pub fn new(http: Http, settings: Settings, arena: Arena, places: ConnectionSlots) -> Http2 {
        Http2(Arc::new(Inner { http, settings, arena, places, open: AtomicUsize::new(0) }))
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.0.open.load(Relaxed)
    }

    /// Serves one connection to its end, or until `shutdown` begins and what is in flight is answered. The
    /// future is large; whoever holds many of other kinds beside it should box it.
    pub(crate) async fn serve<T: Transport>(&self, stream: T, shutdown: &Shutdown) -> ConnectionEnd {
        let Some(_places) = self.0.places.take(Http2::PLACES) else {
            self.0.http.refuse_stray(Refusal::Connections);
            return self.turn_away(stream).await;
        };
        self.0.open.fetch_add(1, Relaxed);
        let _guest = StreamGuard(&self.0.open);
        connection::serve(&self.0, stream, shutdown).await
    }

    /// Answers a connection that is one too many, without a codec: settings, and the end, with the reason.
    pub(crate) async fn turn_away<T: Transport>(&self, mut stream: T) -> ConnectionEnd {
        let settings = &self.0.settings;
        let told = async {
            stream.write_all(&goodbye()).await?;
            stream.shutdown().await?;
            // Closing a socket with bytes unread sends a reset, which may overtake the answer.
            let (mut nowhere, mut left) = ([0; 1 << 10], settings.linger_bytes);
            while left > 0 {
                match stream.read(&mut nowhere).await? {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            io::Result::Ok(())
        };
        match timeout(settings.linger, told).await {
            Ok(Err(_)) => ConnectionEnd::Lost,
            Ok(Ok(())) | Err(_) => ConnectionEnd::Refused,
        }
    }
}

/// `SETTINGS` without any, and `GOAWAY` with `ENHANCE_YOUR_CALM` before the first stream: what the client has
/// begun was not looked at, and may be sent again elsewhere or later.
fn goodbye() -> Vec<u8> {
    const WORDS: &[u8] = b"as many connections as are allowed are open; connect again later";
    const ENHANCE_YOUR_CALM: u8 = 11;
    let mut bytes = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    // The words are shorter than 248 bytes.
    bytes.extend_from_slice(&[0, 0, 8 + WORDS.len() as u8, 7, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, ENHANCE_YOUR_CALM]);
    bytes.extend_from_slice(WORDS);
    bytes
}

/// Whether a connection that begins with `bytes` speaks HTTP/2; nothing while that is open.
pub(crate) fn is_http2(bytes: &[u8]) -> Option<bool> {
    // No method of HTTP/1.1 is called that, so the first bytes of the preface decide.
    let start = PREFACE.get(..DECISIVE).unwrap_or_default();
    let common = bytes.iter().zip(start).take_while(|(a, b)| a == b).count();
    match common {
        DECISIVE => Some(true),
        _ if common == bytes.len() => None,
        _ => Some(false),
    }
}

/// How many bytes tell the preface from every method.
pub(crate) const DECISIVE: usize = 4;
