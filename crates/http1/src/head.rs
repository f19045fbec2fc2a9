//! The head of a request: the request line and the headers, borrowed from the window they arrived in.

mod parse;
mod scan;
mod target;

pub(crate) use parse::parse;
pub(crate) use scan::{HeadScanner, ScanProgress};

use crate::certificate::Certificate;
use crate::clock::coarse_ns;
use crate::refusal::Refusal;
use std::net::SocketAddr;

/// The most header lines of a request. The parser keeps its table on the stack, hence a constant.
pub const MAX_HEADERS: usize = 64;

/// A request's head, checked. It cannot be kept across an await.
#[derive(Debug)]
pub struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) host: &'a str,
    pub(crate) headers: &'a [httparse::Header<'a>],
    pub(crate) framing: Framing,
    pub(crate) peer: SocketAddr,
    pub(crate) certificate: Option<&'a Certificate>,
    pub(crate) received_ns: u64,
}

/// Parses a head that came in another way, another version of the protocol say, and shows it to `look`: by the same rules as
/// one that comes to a [`Server`](crate::Server), now.
///
/// # Errors
/// The error.
pub fn parse_head<R>(
    bytes: &[u8],
    peer: SocketAddr,
    certificate: Option<&Certificate>,
    look: impl FnOnce(&Head<'_>) -> R,
) -> Result<R, Refusal> {
    parse(bytes, peer, certificate, coarse_ns(), look)
}

/// The codec's view of a parsed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Bytes of the head.
    pub(crate) head: usize,
    pub(crate) length: BodyLength,
    /// The client waits for `100 Continue`.
    pub(crate) expects: bool,
    pub(crate) answer: AnswerFraming,
}

/// The properties of a request that its answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerFraming {
    pub(crate) version: Version,
    /// The method is HEAD: the answer has no body.
    pub(crate) bodiless: bool,
    /// The client allows another request on this connection.
    pub(crate) persistent: bool,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// By its `Content-BodyLength`; zero when there is no body.
    Sized(u64),
    /// By the last chunk.
    Chunked,
}

/// The version of the protocol that a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A header that must not be repeated is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a header that must be given once is given more than once")]
pub struct DuplicateHeader;

impl<'a> Head<'a> {
    /// The method, as sent: methods are case-sensitive.
    pub fn method(&self) -> &'a str {
        self.method
    }

    /// The path, as sent: not decoded, not normalised. `*` for `OPTIONS *`.
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// The query after the `?`, as sent.
    pub fn query(&self) -> Option<&'a str> {
        self.query
    }

    /// The requested host: from an absolute target, else from `Host`; may be empty.
    pub fn host(&self) -> &'a str {
        self.host
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.framing.answer.version
    }

    /// How the end of the body is known.
    pub fn length(&self) -> BodyLength {
        self.framing.length
    }

    /// Whether the client waits for `100 Continue` before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.framing.expects
    }

    /// Where the request came from.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// When it was complete, in nanoseconds of the system's monotonic clock, which is read late by some milliseconds:
    /// so nobody who decides about it has to ask again.
    pub fn received_ns(&self) -> u64 {
        self.received_ns
    }

    /// The names in the certificate that the peer has shown, where the listener asks for one.
    pub fn certificate(&self) -> Option<&'a Certificate> {
        self.certificate
    }

    /// The value of the first header of this name, in any case, without the white space around it.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// The value of the one header of this name.
    ///
    /// # Errors
    /// When there are several.
    pub fn sole_header(&self, name: &str) -> Result<Option<&'a [u8]>, DuplicateHeader> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() { Err(DuplicateHeader) } else { Ok(first) }
    }

    /// The values of all headers of this name.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| trimmed(header.value))
    }

    /// All headers, in the order sent.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.headers.iter().map(|header| (header.name, trimmed(header.value)))
    }
}

/// A value without the white space that may stand around it.
fn trimmed(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let from = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let to = value.iter().rposition(|byte| !blank(byte)).map_or(from, |last| last + 1);
    value.get(from..to).unwrap_or_default()
}
