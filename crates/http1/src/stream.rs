//! The codec's requirements on a transport: readiness before it takes a buffer, and reads and writes without an
//! internal buffer.

use crate::certificate::Certificate;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
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

    /// Ready when the peer has closed the connection, or its writing side, while nothing is read. It may be missed when
    /// the peer sends something before.
    fn poll_closed(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
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

    fn poll_closed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        poll_closed(self, context)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(self), context)
    }
}

/// Ready when the peer of a socket has closed it, or its writing side. Nothing is read.
pub fn poll_closed(socket: &TcpStream, context: &mut Context<'_>) -> Poll<()> {
    let mut byte = [0];
    match ready!(socket.poll_peek(context, &mut ReadBuf::new(&mut byte))) {
        Ok(0) | Err(_) => Poll::Ready(()),
        // Bytes that are not read yet may have the end behind them: the next request, or a farewell of TLS.
        Ok(_) => match pin!(socket.ready(Interest::READABLE)).poll(context) {
            Poll::Ready(Ok(ready)) if !ready.is_read_closed() => Poll::Pending,
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// The end is noticed, also behind bytes that nobody has read, and those are still there.
    #[tokio::test]
    async fn a_peer_that_leaves_is_noticed() {
        for sent in [&b""[..], b"GET / HTTP/1.1\r\n"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let pending = poll_fn(|context| Poll::Ready(server.poll_closed(context).is_pending()));
            assert!(pending.await, "it is there");
            client.write_all(sent).await.unwrap();
            drop(client);
            poll_fn(|context| server.poll_closed(context)).await;
            let mut read = vec![0; 64];
            let len = poll_fn(|context| Stream::poll_read(&mut server, context, &mut read)).await.unwrap();
            assert_eq!(&read[..len], sent);
        }
    }
}
