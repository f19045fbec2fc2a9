//! The codec's requirements on a transport: readiness before it takes a buffer, and reads and writes without an
//! internal buffer.

use crate::certificate::Certificate;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A byte stream in both directions that can tell that it is readable without being given a buffer.
///
/// As with any poll function, `Pending` means that the task is woken when trying again may help.
pub trait Stream: Send + 'static {
    /// Ready when a read would give bytes, the end, or an error. It may be ready in vain.
    ///
    /// # Errors
    /// When the stream has failed.
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads at most `buffer.len()` bytes; zero is the end of the stream. A stream of which so little cannot be
    /// taken fails with `WouldBlock`, and says with [`room`](Self::room) how much it needs.
    ///
    /// # Errors
    /// When the stream has failed.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes some of `bytes`, at least one.
    ///
    /// # Errors
    /// When the stream has failed.
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Ready when nothing of what was written waits in the stream itself.
    ///
    /// # Errors
    /// When the stream has failed.
    fn poll_flush(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// How large a buffer the read needs that had too small a one.
    fn room(&self) -> usize {
        0
    }

    /// Whether part of something has been taken that cannot be read before the rest has come: then the rest is owed.
    fn has_begun(&self) -> bool {
        false
    }

    /// The certificate that the peer has shown, where it had to.
    fn certificate(&self) -> Option<&Certificate> {
        None
    }

    /// Ends the writing side; the peer can still send.
    ///
    /// # Errors
    /// When the stream has failed.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Stream for TcpStream {
    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        // Unlike `try_read` this notices that a read which did not fill the buffer emptied the socket, and
        // so spares the next wait a read in vain.
        let mut buffer = ReadBuf::new(buffer);
        ready!(AsyncRead::poll_read(Pin::new(self), context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(self), context, bytes)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(self), context)
    }
}
