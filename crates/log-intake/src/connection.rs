//! Connections of protocols other than HTTP.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use tidegate_http1::Stream;

/// A connection being served: its task holds this.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves connections that the gateway accepts, within `limits.connections`, on the worker that has the fewest. TLS is
/// done before.
pub trait ConnectionService: Send + Sync + 'static {
    /// Serves one connection to its end, from its first byte; `peer` is missing on Unix sockets. It ends soon after the
    /// [shutdown](crate::LogIntake::shutdown) begins.
    fn serve(&self, stream: Box<dyn Stream>, peer: Option<SocketAddr>) -> Serving;

    /// Counts a connection that was closed because there were too many.
    fn count_refused(&self);
}

/// Waits until a read gives bytes, the end, or an error. Holds no buffer.
///
/// # Errors
/// When the stream has failed.
pub async fn readable(stream: &mut dyn Stream) -> io::Result<()> {
    poll_fn(|context| stream.poll_readable(context)).await
}

/// Reads at most `buffer.len()` bytes; zero is the end. TLS needs a buffer of 16 KiB, or fails with `WouldBlock`.
///
/// # Errors
/// When the stream has failed.
pub async fn read(stream: &mut dyn Stream, buffer: &mut [u8]) -> io::Result<usize> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

/// Writes all of `bytes`, and has them leave the stream.
///
/// # Errors
/// When the stream has failed.
pub async fn write_all(stream: &mut dyn Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| stream.poll_write(context, bytes)).await?;
        bytes = bytes.get(written..).filter(|_| written > 0).ok_or(io::ErrorKind::WriteZero)?;
    }
    poll_fn(|context| stream.poll_flush(context)).await
}
