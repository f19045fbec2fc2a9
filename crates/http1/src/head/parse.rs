//! Parses the bytes of a whole head into a checked [`Head`].

use super::target::{is_authority, target};
use super::{AnswerFraming, BodyLength, Framing, Head, MAX_HEADERS, Version, trimmed};
use crate::certificate::Certificate;
use crate::refusal::{Refusal, SyntaxError};
use std::mem::MaybeUninit;
use std::net::SocketAddr;

/// Parses a whole head and shows it to `look`. The table of headers is on the stack of this call, and so
/// never part of a waiting connection.
pub(crate) fn parse<R>(
    bytes: &[u8],
    peer: SocketAddr,
    certificate: Option<&Certificate>,
    received_ns: u64,
    look: impl FnOnce(&Head<'_>) -> R,
) -> Result<R, Refusal> {
    let mut table = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let head = match request.parse_with_uninit_headers(bytes, &mut table) {
        Ok(httparse::Status::Complete(len)) => len,
        // The scan found an empty line, so only a parser that disagrees on line ends can want more.
        Ok(httparse::Status::Partial) => return Err(Refusal::Malformed(SyntaxError::LineEnd)),
        Err(error) => return Err(refusal_of(error, bytes)),
    };
    let malformed = Refusal::Malformed;
    if head != bytes.len() {
        return Err(malformed(SyntaxError::LineEnd));
    }
    let (Some(method), Some(raw)) = (request.method, request.path) else {
        return Err(malformed(SyntaxError::RequestLine));
    };
    let version = if request.version == Some(1) { Version::Http11 } else { Version::Http10 };
    if method == "CONNECT" {
        return Err(Refusal::Connect);
    }
    let target = target(method, raw).ok_or(malformed(SyntaxError::Target))?;
    let known = CodecHeaders::of(request.headers, version)?;
    let framing = Framing {
        head,
        length: known.length(version)?,
        expects: known.expects && version == Version::Http11,
        answer: AnswerFraming {
            version,
            bodiless: method == "HEAD",
            persistent: match version {
                Version::Http11 => !known.close,
                Version::Http10 => known.keep_alive && !known.close,
            },
        },
    };
    let host = target.authority.or(known.host).unwrap_or_default();
    let head = Head {
        method,
        path: target.path,
        query: target.query,
        host,
        headers: request.headers,
        framing,
        peer,
        certificate,
        received_ns,
    };
    Ok(look(&head))
}

/// Translates httparse's errors. `bytes` begin with the request line.
pub(super) fn refusal_of(error: httparse::Error, bytes: &[u8]) -> Refusal {
    use httparse::Error;
    Refusal::Malformed(match error {
        Error::TooManyHeaders => return Refusal::TooManyHeaders { limit: MAX_HEADERS },
        Error::Version if names_http(bytes) => return Refusal::Version,
        Error::Version | Error::Token | Error::Status => SyntaxError::RequestLine,
        Error::NewLine => SyntaxError::LineEnd,
        Error::HeaderName => SyntaxError::HeaderLine,
        Error::HeaderValue => SyntaxError::HeaderValue,
    })
}

/// Whether the request line ends with `HTTP/` and a digit: another version, not another protocol.
fn names_http(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let version = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    version.strip_prefix(b"HTTP/").and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit)
}

/// The headers that the codec itself obeys.
#[derive(Default)]
struct CodecHeaders<'a> {
    host: Option<&'a str>,
    content_length: Option<u64>,
    chunked: bool,
    expects: bool,
    close: bool,
    keep_alive: bool,
}

impl<'a> CodecHeaders<'a> {
    fn of(headers: &[httparse::Header<'a>], version: Version) -> Result<CodecHeaders<'a>, Refusal> {
        let mut known = CodecHeaders::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let value = trimmed(header.value);
            // By length first, so that most headers cost one comparison.
            match header.name.len() {
                4 if is("host") => known.host(value)?,
                6 if is("expect") => known.expect(value)?,
                10 if is("connection") => known.connection(value),
                14 if is("content-length") => known.content_length(value)?,
                17 if is("transfer-encoding") => known.transfer_encoding(value)?,
                _ => {}
            }
        }
        if known.host.is_none() && version == Version::Http11 {
            return Err(Refusal::Malformed(SyntaxError::Host));
        }
        Ok(known)
    }

    fn host(&mut self, value: &'a [u8]) -> Result<(), Refusal> {
        let host = std::str::from_utf8(value).ok().filter(|host| is_authority(host));
        match (self.host, host) {
            (None, Some(_)) => self.host = host,
            _ => return Err(Refusal::Malformed(SyntaxError::Host)),
        }
        Ok(())
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::Expectation);
        }
        self.expects = true;
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(trimmed) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Repeats and lists are refused even where all agree: nobody sends them, and someone on the way may
    /// have read them otherwise.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        if !digits || self.content_length.is_some() {
            return Err(Refusal::Malformed(SyntaxError::ContentLength));
        }
        // A number too large for 64 bits is a number, and too large for any limit.
        let number = value
            .iter()
            .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
        self.content_length = Some(number.unwrap_or(u64::MAX));
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Refusal::Malformed(SyntaxError::TransferEncoding));
        }
        self.chunked = true;
        Ok(())
    }

    fn length(&self, version: Version) -> Result<BodyLength, Refusal> {
        match (self.content_length, self.chunked) {
            (Some(_), true) => Err(Refusal::Malformed(SyntaxError::TwoLengths)),
            (None, true) if version == Version::Http10 => {
                Err(Refusal::Malformed(SyntaxError::TransferEncoding))
            }
            (None, true) => Ok(BodyLength::Chunked),
            (length, false) => Ok(BodyLength::Sized(length.unwrap_or(0))),
        }
    }
}
