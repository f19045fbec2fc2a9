//! The transport of HTTP/2.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use tidegate_http1::Certificate;
use tidegate_tls::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection, with TLS or without.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ready when a read may give something.
    ///
    /// # Errors
    /// When the connection has failed.
    fn poll_read_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// The peer's address.
    ///
    /// # Errors
    /// When the connection is gone.
    fn peer(&self) -> io::Result<SocketAddr>;

    /// The names in the certificate that the peer has shown.
    fn certificate(&self) -> Option<Arc<Certificate>>;
}

/// The peer's address. One of a Unix socket has none, and is on this machine.
pub(crate) fn peer_of(stream: &TcpStream) -> io::Result<SocketAddr> {
    match stream.peer_addr() {
        // The standard library's value for an address that is not an internet address.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok((Ipv4Addr::LOCALHOST, 0).into()),
        peer => peer,
    }
}

impl Transport for TcpStream {
    fn poll_read_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        TcpStream::poll_read_ready(self, context)
    }

    fn peer(&self) -> io::Result<SocketAddr> {
        peer_of(self)
    }

    fn certificate(&self) -> Option<Arc<Certificate>> {
        None
    }
}

impl Transport for TlsStream {
    fn poll_read_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        TlsStream::poll_read_ready(self, context)
    }

    fn peer(&self) -> io::Result<SocketAddr> {
        self.peer_addr()
    }

    fn certificate(&self) -> Option<Arc<Certificate>> {
        self.shared_certificate()
    }
}
