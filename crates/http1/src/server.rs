//! The entry: a server, the connections it serves, and the ones it turns away.

use crate::clock::coarse_ns;
use crate::connection::{Connection, TimedStream};
use crate::reply::{ConnectionHeaders, Reply, render_head};
use crate::service::Service;
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::stream::Stream;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tidegate_arena::Arena;
use tokio::time::{Instant, sleep_until};

/// The state shared by all connections of a listener.
pub struct Server<S> {
    pub(crate) service: S,
    pub(crate) settings: Settings,
    pub(crate) arena: Arena,
    pub(crate) shutdown: Shutdown,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionEnd {
    /// The client closed it between two requests.
    ByClient,
    /// It was idle for too long.
    Idle,
    /// The server is shutting down.
    Shutdown,
    /// After an answer: the client, the service or the limit on requests wished it so.
    Answered,
    /// After a refusal.
    Refused,
    /// The transport failed, or the client did not take its answer.
    Lost,
}

impl<S: Service> Server<S> {
    /// A server that answers with `service`, within `settings`, from the memory of `arena`, until
    /// `shutdown` begins.
    pub fn new(service: S, settings: Settings, arena: Arena, shutdown: Shutdown) -> Arc<Server<S>> {
        Arc::new(Server { service, settings, arena, shutdown })
    }

    /// The service that answers.
    pub fn service(&self) -> &S {
        &self.service
    }

    /// The arena that requests are received into.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Serves one connection to its end. The future runs on a tokio runtime with its timer; dropping it
    /// closes the connection.
    ///
    /// A TCP stream should have `TCP_NODELAY` set, as an answer is written whole.
    pub fn serve<T: Stream>(
        self: &Arc<Self>,
        mut stream: T,
        peer: SocketAddr,
    ) -> impl Future<Output = ConnectionEnd> + Send + use<S, T> {
        let server = Arc::clone(self);
        // Everything below borrows from what this block owns: moving it into a function would keep each
        // of these twice in the future.
        async move {
            let timer = pin!(sleep_until(Instant::now() + server.settings.idle));
            let signal = pin!(server.shutdown.notified());
            let link = TimedStream::new(&mut stream, timer);
            let mut connection = Connection::new(&server, link, signal, &peer);
            let ended = connection.run().await;
            match connection.into_upgrade() {
                Some((ticket, upgraded)) => server.service.upgraded(ticket, upgraded).await,
                None => ended,
            }
        }
    }
}

/// Answers a connection that is one too many: waits for its first bytes for as long as `settings` linger,
/// answers, and closes it so that the client can read the answer. Takes no window. The caller bounds how
/// many of these run.
pub async fn reject<T: Stream>(mut stream: T, reply: Reply, settings: &Settings) -> ConnectionEnd {
    let timer = pin!(sleep_until(Instant::now() + settings.linger));
    let mut link = TimedStream::new(&mut stream, timer);
    link.readable(Instant::now() + settings.linger).await;
    let ending = ConnectionHeaders { close: true, keep_alive: false, bodiless: false };
    let unsent = match link.begin(reply, ending, coarse_ns()) {
        Ok(unsent) => unsent,
        Err(_) => return ConnectionEnd::Lost,
    };
    if let Some(unsent) = unsent
        && link.send_rest(&unsent, Instant::now() + settings.write).await.is_err()
    {
        return ConnectionEnd::Lost;
    }
    link.linger(settings, || false).await;
    ConnectionEnd::Refused
}

/// Answers and closes a connection at once, without waiting for anything: what is left when even
/// [`reject`] has too many to wait for. A client that is still sending may see a reset.
///
/// # Errors
/// When the answer could not be written whole.
pub fn reply_and_close(mut stream: std::net::TcpStream, reply: &Reply) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(1 << 10);
    let ending = ConnectionHeaders { close: true, keep_alive: false, bodiless: false };
    if render_head(reply, ending, coarse_ns(), &mut bytes) {
        bytes.extend_from_slice(reply.bytes());
    }
    stream.set_nonblocking(true)?;
    stream.write_all(&bytes)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    // Drain the received bytes: closing a socket with unread bytes sends a reset after the answer.
    let mut sink = [0; 4 << 10];
    for _ in 0..16 {
        match stream.read(&mut sink) {
            Ok(1..) => {}
            _ => break,
        }
    }
    Ok(())
}
