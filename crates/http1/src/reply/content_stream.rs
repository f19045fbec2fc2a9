//! Content that is made while it is sent, such as that of a file.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

/// Content of which only a piece is in memory at a time. The next one is asked for when the client has taken the one before.
pub trait ContentStream: Send + Sync + 'static {
    /// How long it is in all, in bytes. `None`: it goes on until it ends, the client leaves or the server shuts down, and
    /// the connection ends with it (RFC 9112, section 6.3, point 8), so the client cannot tell an end from a lost connection.
    fn total_bytes(&self) -> Option<u64>;

    /// Which part of something longer it is, if it is one.
    fn range(&self) -> Option<ContentRange> {
        None
    }

    /// Its next bytes; an empty piece is its end. That or an error ends the connection when the content has a length and is not
    /// complete: the client sees that some is missing.
    fn next_piece(&mut self) -> ContentPiece<'_>;
}

/// A piece of content that is waited for.
pub type ContentPiece<'a> = Pin<Box<dyn Future<Output = io::Result<&'a [u8]>> + Send + 'a>>;

/// Which part of something longer the content is, for `Content-Range` (RFC 9110, section 14.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRange {
    /// The bytes from the first to the last, of so many.
    Part {
        /// The first, counted from zero.
        first: u64,
        /// The last, which is part of it.
        last: u64,
        /// The length of the whole.
        total: u64,
    },
    /// The content is none of it: what was asked for is behind its end.
    Unsatisfiable {
        /// The length of the whole.
        total: u64,
    },
}

impl fmt::Debug for dyn ContentStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total_bytes() {
            Some(total) => write!(f, "ContentStream({total} bytes)"),
            None => f.write_str("ContentStream(without end)"),
        }
    }
}
