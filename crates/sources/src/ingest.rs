//! One listener for both versions of HTTP: the first bytes of a connection tell.

use crate::http::Http;
use crate::http2::{DECISIVE, Http2, is_http2, peer_of};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::sync::Arc;
use tidegate_http1::{ConnectionEnd, Reply, Server, Settings, Shutdown, reject};
use tidegate_tls::{AcceptError, TlsAcceptor, TlsStream};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

const NOT_TLS: &str = "this address speaks HTTPS, and nothing else\n";

/// The services behind the ingest listeners, on one worker.
pub struct Ingest {
    http1: Arc<Server<Http>>,
    http2: Http2,
    settings: Settings,
    shutdown: Shutdown,
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionProtocol {
    Http1,
    Http2,
}

impl Ingest {
    /// Serves connections with `http1` or `http2`, within the deadlines of `settings`, until `shutdown`
    /// begins.
    pub fn new(http1: Arc<Server<Http>>, http2: Http2, settings: Settings, shutdown: Shutdown) -> Ingest {
        Ingest { http1, http2, settings, shutdown }
    }

    /// Serves one connection to its end. Until it has sent its first bytes it costs a task and a timer; so nothing
    /// is handed down here that the socket knows.
    pub async fn serve(&self, stream: TcpStream) -> ConnectionEnd {
        match self.recognise(&stream).await {
            Ok(ConnectionProtocol::Http1) => {
                // Not matched on around the wait, or the task would keep it twice.
                let Ok(peer) = peer_of(&stream) else { return ConnectionEnd::Lost };
                self.http1.serve(stream, peer).await
            }
            // On the heap: it is much larger, and most connections are the other kind.
            Ok(ConnectionProtocol::Http2) => Box::pin(self.http2.serve(stream, &self.shutdown)).await,
            Err(ended) => ended,
        }
    }

    /// Serves one connection of a listener that speaks TLS to its end. On the heap, so that connections without it have
    /// no room for it in their tasks.
    pub fn serve_tls(
        &self,
        stream: TcpStream,
        acceptor: &TlsAcceptor,
    ) -> impl Future<Output = ConnectionEnd> + Send {
        Box::pin(async move {
            // So that what a handshake needs does not stay.
            let entered = match Box::pin(accept_tls(stream, acceptor, &self.shutdown, &self.settings)).await {
                Ok(entered) => entered,
                Err(ended) => return ended,
            };
            if entered.is_http2() {
                return Box::pin(self.http2.serve(entered, &self.shutdown)).await;
            }
            match entered.peer_addr() {
                Ok(peer) => self.http1.serve(entered, peer).await,
                Err(_) => ConnectionEnd::Lost,
            }
        })
    }

    /// Answers a connection that is one too many with `reply`, in its own version.
    pub async fn turn_away(&self, stream: TcpStream, reply: Reply) -> ConnectionEnd {
        let speaks = timeout(self.settings.linger, first_bytes(&stream)).await;
        match speaks {
            Ok(Ok(ConnectionProtocol::Http2)) => self.http2.turn_away(stream).await,
            _ => reject(stream, reply, &self.settings).await,
        }
    }

    /// Waits for the first bytes and leaves them where they are.
    async fn recognise(&self, stream: &TcpStream) -> Result<ConnectionProtocol, ConnectionEnd> {
        let speaks = first_bytes(stream);
        tokio::select! {
            biased;
            speaks = timeout(self.settings.idle, speaks) => match speaks {
                Ok(Ok(speaks)) => Ok(speaks),
                Ok(Err(_)) => Err(ConnectionEnd::Lost),
                Err(_) => Err(ConnectionEnd::Idle),
            },
            () = self.shutdown.begun() => Err(ConnectionEnd::Shutdown),
        }
    }
}

/// Does the handshake of a connection of an HTTPS listener. One that does not speak TLS is told so.
///
/// # Errors
/// How the connection has ended, when nothing came of it.
pub async fn accept_tls(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    shutdown: &Shutdown,
    settings: &Settings,
) -> Result<TlsStream, ConnectionEnd> {
    let peer = stream.peer_addr().ok();
    let entered = tokio::select! {
        biased;
        entered = acceptor.accept(stream) => entered,
        () = shutdown.begun() => return Err(ConnectionEnd::Shutdown),
    };
    let failure = match entered {
        Ok(entered) => return Ok(entered),
        Err(failure) => failure,
    };
    let (reason, failures) = acceptor.note(&failure);
    if let (Some(failures), Some(peer)) = (failures, peer) {
        let error = match &failure {
            AcceptError::Lost(error) => Some(error.to_string()),
            _ => None,
        };
        tracing::warn!(
            peer = %peer.ip(),
            reason = reason.name(),
            error,
            failures,
            "TLS handshakes fail, this is the last of them: {}",
            reason.advice()
        );
    }
    let ended = match failure {
        AcceptError::NotTls(stream) => reject(stream, Reply::new(400).text(NOT_TLS), settings).await,
        AcceptError::Late | AcceptError::Crowded => ConnectionEnd::Idle,
        AcceptError::Lost(_) => ConnectionEnd::Lost,
    };
    Err(ended)
}

/// Looks at the first bytes without taking them.
async fn first_bytes(stream: &TcpStream) -> io::Result<ConnectionProtocol> {
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        let looked = stream.try_io(Interest::READABLE, || {
            let mut bytes = [0; DECISIVE];
            let (len, _) = recv(stream, &mut bytes[..], RecvFlags::PEEK)?;
            match is_http2(bytes.get(..len).unwrap_or_default()) {
                Some(true) => Ok(ConnectionProtocol::Http2),
                Some(false) => Ok(ConnectionProtocol::Http1),
                // That was all, and HTTP/1.1 knows what to say to it.
                None if ready.is_read_closed() => Ok(ConnectionProtocol::Http1),
                // So that the next wait is for more than is there.
                None => Err(io::ErrorKind::WouldBlock.into()),
            }
        });
        match looked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            looked => return looked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_of<'a, F: Future>(_: impl Fn(&'a Ingest, TcpStream) -> F) -> usize {
        size_of::<F>()
    }

    /// The state of a connection's task: with its 160 bytes of overhead, it just fits one of the allocator's size
    /// classes. The next class has 256 bytes more, for each connection.
    #[test]
    fn a_connection_is_small() {
        let bytes = future_of(Ingest::serve);
        assert!(bytes <= 1376, "{bytes} bytes; a ticket {}", size_of::<crate::http::Ticket>());
    }
}
