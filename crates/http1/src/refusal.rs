//! Why the codec itself refuses a request, with the status and the words for it.

use crate::reply::Reply;

/// Why the codec refused a request. What the answer looks like is the service's business:
/// [`Service::refuse`](crate::Service::refuse).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The request breaks the syntax, or could be read in two ways.
    Malformed(SyntaxError),
    /// The client stopped sending before the request was complete.
    Truncated,
    /// Not HTTP/1.0 or HTTP/1.1.
    Version,
    /// `CONNECT`: this is no proxy.
    Connect,
    /// `Expect` asks for something other than `100-continue`.
    Expectation,
    /// The request line is longer than the head may be.
    TargetTooLong {
        /// The most bytes of a head.
        limit: usize,
    },
    /// The head is longer than allowed.
    HeadTooLarge {
        /// The most bytes of a head.
        limit: usize,
    },
    /// There are more header lines than allowed.
    TooManyHeaders {
        /// The most header lines.
        limit: usize,
    },
    /// The body is longer than the service or the memory allows.
    BodyTooLarge {
        /// The most bytes of a body for this request.
        limit: usize,
    },
    /// The head did not arrive in time.
    HeadTooSlow,
    /// The body arrives too slowly, or stopped arriving.
    BodyTooSlow,
    /// There was no memory for the request within the time it may wait.
    Memory,
}

/// The error in a malformed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyntaxError {
    /// The first bytes are a TLS handshake.
    Tls,
    /// The first line is not `METHOD target HTTP/1.1`.
    RequestLine,
    /// The target holds a character that must be percent-encoded, or has no known form.
    Target,
    /// A line ends with a line feed alone, or holds a carriage return alone.
    LineEnd,
    /// A header line is not `name: value`; folded lines and spaces before the colon are among these.
    HeaderLine,
    /// A header value holds a control character.
    HeaderValue,
    /// HTTP/1.1 without exactly one valid `Host`.
    Host,
    /// `Content-Length` is not one number.
    ContentLength,
    /// `Transfer-Encoding` is not exactly `chunked`, or comes with HTTP/1.0.
    TransferEncoding,
    /// Both `Content-Length` and `Transfer-Encoding`.
    TwoLengths,
    /// The chunk framing breaks the syntax.
    Chunk,
    /// Chunk extensions or trailers beyond reason.
    ChunkExtras,
}

impl Refusal {
    /// The status that says it.
    pub const fn status(self) -> u16 {
        match self {
            Refusal::Malformed(_) | Refusal::Truncated => 400,
            Refusal::HeadTooSlow | Refusal::BodyTooSlow => 408,
            Refusal::BodyTooLarge { .. } => 413,
            Refusal::TargetTooLong { .. } => 414,
            Refusal::Expectation => 417,
            Refusal::HeadTooLarge { .. } | Refusal::TooManyHeaders { .. } => 431,
            Refusal::Connect => 501,
            Refusal::Memory => 503,
            Refusal::Version => 505,
        }
    }

    /// Its name as a label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Malformed(_) => "malformed",
            Refusal::Truncated => "truncated",
            Refusal::Version => "version",
            Refusal::Connect => "connect",
            Refusal::Expectation => "expectation",
            Refusal::TargetTooLong { .. } => "target_too_long",
            Refusal::HeadTooLarge { .. } => "head_too_large",
            Refusal::TooManyHeaders { .. } => "too_many_headers",
            Refusal::BodyTooLarge { .. } => "body_too_large",
            Refusal::HeadTooSlow => "head_too_slow",
            Refusal::BodyTooSlow => "body_too_slow",
            Refusal::Memory => "memory",
        }
    }

    /// A plain answer that says it in words, without an allocation. A service whose protocol has no
    /// shape of its own for errors can return this; `Retry-After` is the service's to add.
    pub fn reply(self) -> Reply {
        let reply = Reply::new(self.status());
        match self {
            Refusal::Malformed(flaw) => reply.text(flaw.text()),
            Refusal::Truncated => reply.text("the connection was closed before the request was complete\n"),
            Refusal::Version => {
                reply.text("this server speaks HTTP/1.1 and HTTP/1.0 here; tell the client to use HTTP/1.1\n")
            }
            Refusal::Connect => reply.text("CONNECT is not offered: this server is no proxy\n"),
            Refusal::Expectation => reply.text("the only expectation this server can meet is 100-continue\n"),
            Refusal::TargetTooLong { limit } => reply
                .sentence(&["the request line is too long; all of the head may take ", " bytes\n"], limit),
            Refusal::HeadTooLarge { limit } => {
                reply.sentence(&["the headers are too long; the head may take ", " bytes\n"], limit)
            }
            Refusal::TooManyHeaders { limit } => {
                reply.sentence(&["there are too many headers; at most ", " are taken\n"], limit)
            }
            Refusal::BodyTooLarge { limit } => reply.sentence(
                &["the body is too large; here at most ", " bytes are accepted: send smaller batches\n"],
                limit,
            ),
            Refusal::HeadTooSlow => reply.text("the headers did not arrive in time\n"),
            Refusal::BodyTooSlow => reply.text("the body arrived too slowly, or stopped arriving\n"),
            Refusal::Memory => reply.text("no memory is free for this request now; try again later\n"),
        }
    }
}

impl SyntaxError {
    /// The error, as a sentence that ends with a line feed.
    pub const fn text(self) -> &'static str {
        match self {
            SyntaxError::Tls => {
                "this port speaks plain HTTP, and the client began a TLS handshake; use http://\n"
            }
            SyntaxError::RequestLine => {
                "the first line is not a method, a target and HTTP/1.1, each set off by one space\n"
            }
            SyntaxError::Target => {
                "the target is neither a path nor an absolute URL, or holds a character that must be percent-encoded\n"
            }
            SyntaxError::LineEnd => {
                "every line of the head must end with CR LF, and neither may stand alone\n"
            }
            SyntaxError::HeaderLine => {
                "a header line is not 'name: value'; no space may precede the colon, and lines may not be folded\n"
            }
            SyntaxError::HeaderValue => "a header value holds a control character\n",
            SyntaxError::Host => "an HTTP/1.1 request needs exactly one valid Host header\n",
            SyntaxError::ContentLength => "Content-Length must be given once, as one number\n",
            SyntaxError::TransferEncoding => {
                "the only supported transfer coding is 'chunked', given once, and not with HTTP/1.0\n"
            }
            SyntaxError::TwoLengths => "Content-Length and Transfer-Encoding must not be given together\n",
            SyntaxError::Chunk => "the body breaks the syntax of chunked coding\n",
            SyntaxError::ChunkExtras => "the chunk extensions or trailers are too long\n",
        }
    }
}
