//! An answer, small enough to be kept in a connection's task and made without an allocation.

mod content_stream;
mod date;
mod prepared;
mod render;
#[cfg(test)]
mod tests;

pub use content_stream::{ContentPiece, ContentRange, ContentStream};
pub use prepared::PreparedReply;
pub(crate) use render::{ConnectionHeaders, render_head};

use crate::clock::coarse_ns;
use tidegate_arena::Window;

/// The most headers of a reply, besides `Retry-After`, whose value is a number.
const MAX_NUMERIC_HEADERS: usize = 3;

/// The answer to one request. The codec adds `Date`, `Content-Length` and `Connection`.
#[derive(Debug)]
pub struct Reply {
    status: u16,
    close: bool,
    content_type: &'static str,
    content: Content,
    retry_after: Option<u32>,
    names: &'static [&'static str],
    numbers: [u32; MAX_NUMERIC_HEADERS],
    headers: &'static [(&'static str, &'static str)],
    shape: Option<ErrorFormat>,
}

/// Puts the text of an answer, which is its three parts one after the other, into the form that a protocol
/// gives to it. It appends the same bytes each time.
pub type ErrorFormat = fn(&mut Vec<u8>, [&[u8]; 3]);

/// The body of an answer.
#[derive(Debug)]
pub enum Content {
    /// None.
    Empty,
    /// Text or bytes known when the program was built.
    Fixed(&'static [u8]),
    /// A sentence around a number.
    Sentence(&'static [&'static str; 2], u64),
    /// Bytes made for this answer: on the heap, so for small things only.
    Owned(Box<[u8]>),
    /// Bytes made for this answer in memory that is paid for.
    Window(Window),
    /// Bytes that are made while they are sent. Only HTTP/1.1 sends them.
    Stream(Box<dyn ContentStream>),
    /// The whole answer, put together at the start: what else the reply says but its delay is not looked at.
    Prepared(&'static PreparedReply),
}

impl Reply {
    /// The bytes of its content that come behind the head.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.content.bytes()
    }

    /// An answer without content.
    pub const fn new(status: u16) -> Reply {
        Reply {
            status,
            close: false,
            content_type: "text/plain; charset=utf-8",
            content: Content::Empty,
            retry_after: None,
            names: &[],
            numbers: [0; MAX_NUMERIC_HEADERS],
            headers: &[],
            shape: None,
        }
    }

    /// An answer that was put together before.
    #[inline]
    pub fn prepared(prepared: &'static PreparedReply) -> Reply {
        Reply { content: Content::Prepared(prepared), ..Reply::new(0) }
    }

    /// With plain text as its content.
    #[must_use]
    pub fn text(self, text: &'static str) -> Reply {
        self.content(Content::Fixed(text.as_bytes()))
    }

    /// With a plain sentence around a number as its content, made without an allocation.
    #[must_use]
    pub fn sentence(self, around: &'static [&'static str; 2], number: usize) -> Reply {
        self.content(Content::Sentence(around, number as u64))
    }

    /// With this content.
    #[must_use]
    pub fn content(mut self, content: impl Into<Content>) -> Reply {
        self.content = content.into();
        self
    }

    /// With content of this type; without this it is plain text.
    #[must_use]
    pub fn content_type(mut self, content_type: &'static str) -> Reply {
        self.content_type = content_type;
        self
    }

    /// With `Retry-After`, in seconds.
    #[inline]
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Reply {
        self.retry_after = Some(seconds);
        self
    }

    /// With headers whose values are numbers: at most three, in the order of their names.
    #[must_use]
    pub fn numbers(mut self, names: &'static [&'static str], values: [u32; MAX_NUMERIC_HEADERS]) -> Reply {
        debug_assert!(names.len() <= MAX_NUMERIC_HEADERS, "no room for {names:?}");
        (self.names, self.numbers) = (names, values);
        self
    }

    /// With these headers besides. They replace the ones given before.
    #[must_use]
    pub fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Reply {
        self.headers = headers;
        self
    }

    /// With its text in this shape, which is made when the answer is written, without an allocation. What
    /// has no text, or lies in a window, stays as it is.
    #[must_use]
    pub fn formatted(mut self, shape: ErrorFormat) -> Reply {
        self.shape = Some(shape);
        self
    }

    /// Ending the connection.
    #[must_use]
    pub fn closing(mut self) -> Reply {
        self.close = true;
        self
    }

    /// Appends its bytes, as they go out on a connection that stays open, for a request that was
    /// [received](crate::Head::received_ns) at `now_ns`.
    #[inline]
    pub fn put(&self, now_ns: u64, out: &mut Vec<u8>) {
        if render_head(
            self,
            ConnectionHeaders { close: false, keep_alive: false, bodiless: false },
            now_ns,
            out,
        ) {
            out.extend_from_slice(self.bytes());
        }
    }

    /// Appends its head as it goes out now over HTTP/1.1, and its content where that is not bytes of its own. Says
    /// whether the bytes of [`into_content`](Self::into_content) are to follow.
    pub fn put_head(&self, out: &mut Vec<u8>) -> bool {
        let ending = ConnectionHeaders { close: false, keep_alive: false, bodiless: false };
        render_head(self, ending, coarse_ns(), out)
    }

    /// Its content alone.
    pub fn into_content(self) -> Content {
        self.content
    }

    /// Its status.
    pub fn status(&self) -> u16 {
        match &self.content {
            Content::Prepared(prepared) => prepared.status(),
            _ => self.status,
        }
    }

    /// Whether it ends the connection.
    pub(crate) fn is_closing(&self) -> bool {
        self.close || matches!(&self.content, Content::Stream(stream) if stream.total_bytes().is_none())
    }

    /// Whether this status never comes with content (RFC 9110, section 6.4.1).
    fn is_bare(&self) -> bool {
        matches!(self.status, 204 | 304)
    }
}

impl Content {
    /// Its bytes, but for a sentence and a stream, which have none of their own.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Content::Empty | Content::Sentence(..) | Content::Stream(_) | Content::Prepared(_) => &[],
            Content::Fixed(bytes) => bytes,
            Content::Owned(bytes) => bytes,
            Content::Window(window) => window,
        }
    }
}

impl From<&'static str> for Content {
    fn from(text: &'static str) -> Content {
        Content::Fixed(text.as_bytes())
    }
}

impl From<&'static [u8]> for Content {
    fn from(bytes: &'static [u8]) -> Content {
        Content::Fixed(bytes)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Content {
        Content::Owned(text.into_bytes().into_boxed_slice())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        Content::Owned(bytes.into_boxed_slice())
    }
}

impl From<Box<dyn ContentStream>> for Content {
    fn from(stream: Box<dyn ContentStream>) -> Content {
        Content::Stream(stream)
    }
}

impl From<Window> for Content {
    fn from(window: Window) -> Content {
        Content::Window(window)
    }
}
