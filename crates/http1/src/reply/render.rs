//! An answer's bytes on the wire.

use super::date::with_date;
use super::{Content, ContentRange, ErrorFormat, Reply};

/// The parts of an answer that depend on the request and the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionHeaders {
    /// The connection ends with it.
    pub(crate) close: bool,
    /// The client has to be told that the connection does not end: it speaks HTTP/1.0.
    pub(crate) keep_alive: bool,
    /// The request was HEAD: headers as if there were content, and none.
    pub(crate) bodiless: bool,
}

/// The end of a head.
pub(super) const END: &[u8] = b"\r\n\r\n";

/// Appends all of `reply` but the bytes of [`Content::bytes`], with the date of `now_ns`, a moment of the coarse
/// monotonic clock. Returns whether those bytes are to follow.
#[inline]
pub(crate) fn render_head(reply: &Reply, ending: ConnectionHeaders, now_ns: u64, out: &mut Vec<u8>) -> bool {
    if let Content::Prepared(prepared) = &reply.content {
        prepared.render(reply.retry_after, ending, now_ns, out);
        return false;
    }
    opening(reply, out);
    with_date(now_ns, |date| out.extend_from_slice(date));
    fields(reply, out);
    connection(ending, out);
    delay(reply.retry_after, out);
    out.extend_from_slice(END);
    !ending.bodiless && !reply.is_bare() && !put_text(reply, out)
}

/// The status, up to where the date goes.
pub(super) fn opening(reply: &Reply, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    number(u64::from(reply.status), out);
    out.push(b' ');
    out.extend_from_slice(reason(reply.status).as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
}

/// The headers that this answer has and others have not, and those about its content.
pub(super) fn fields(reply: &Reply, out: &mut Vec<u8>) {
    for (name, value) in reply.names.iter().zip(&reply.numbers) {
        line(name, out);
        number(u64::from(*value), out);
    }
    for (name, value) in reply.headers {
        line(name, out);
        out.extend_from_slice(value.as_bytes());
    }
    if let Content::Stream(stream) = &reply.content
        && let Some(range) = stream.range()
    {
        content_range(range, out);
    }
    if reply.is_bare() {
        return;
    }
    let len = match reply.shape {
        Some(shape) if has_text(&reply.content) => shaped_length(shape, reply, out) as u64,
        _ => match &reply.content {
            Content::Stream(stream) => match stream.total_bytes() {
                Some(total) => total,
                None => return content_type(reply, out),
            },
            content => length(content),
        },
    };
    if len > 0 {
        content_type(reply, out);
    }
    line("Content-Length", out);
    number(len, out);
}

fn content_type(reply: &Reply, out: &mut Vec<u8>) {
    line("Content-Type", out);
    out.extend_from_slice(reply.content_type.as_bytes());
}

fn content_range(range: ContentRange, out: &mut Vec<u8>) {
    line("Content-Range", out);
    out.extend_from_slice(b"bytes ");
    let total = match range {
        ContentRange::Part { first, last, total } => {
            number(first, out);
            out.push(b'-');
            number(last, out);
            total
        }
        ContentRange::Unsatisfiable { total } => {
            out.push(b'*');
            total
        }
    };
    out.push(b'/');
    number(total, out);
}

/// The `Connection` header, if one is needed.
#[inline]
pub(super) fn connection(ending: ConnectionHeaders, out: &mut Vec<u8>) {
    if ending.close {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if ending.keep_alive {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
}

/// When to return, where that has to be said.
#[inline]
pub(super) fn delay(retry_after: Option<u32>, out: &mut Vec<u8>) {
    if let Some(seconds) = retry_after {
        out.extend_from_slice(b"\r\nRetry-After: ");
        number(seconds.into(), out);
    }
}

/// Appends the content where that is put together here, and says whether it is.
pub(super) fn put_text(reply: &Reply, out: &mut Vec<u8>) -> bool {
    match (reply.shape, &reply.content) {
        (Some(shape), content) if has_text(content) => put_shaped(shape, content, out),
        (_, Content::Sentence([before, after], value)) => {
            out.extend_from_slice(before.as_bytes());
            number(*value, out);
            out.extend_from_slice(after.as_bytes());
        }
        _ => return false,
    }
    true
}

/// Whether `content` is text, which may have a shape.
fn has_text(content: &Content) -> bool {
    matches!(content, Content::Fixed(_) | Content::Sentence(..) | Content::Owned(_))
}

/// How long the text is in its shape. It is measured by writing it: answers with a shape are refusals, and
/// short.
fn shaped_length(shape: ErrorFormat, reply: &Reply, out: &mut Vec<u8>) -> usize {
    let before = out.len();
    put_shaped(shape, &reply.content, out);
    let len = out.len().saturating_sub(before);
    out.truncate(before);
    len
}

fn put_shaped(shape: ErrorFormat, content: &Content, out: &mut Vec<u8>) {
    match content {
        Content::Sentence([before, after], value) => {
            let mut room = [0; DIGITS];
            shape(out, [before.as_bytes(), decimal(*value, &mut room), after.as_bytes()]);
        }
        other => shape(out, [other.bytes(), &[], &[]]),
    }
}

/// Appends `value` in decimal digits.
#[inline]
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    if value < 10 {
        // It fits a byte.
        return out.push(b'0' + value as u8);
    }
    out.extend_from_slice(decimal(value, &mut [0; DIGITS]));
}

/// The digits of the largest number.
const DIGITS: usize = 20;

/// `value` in decimal digits, at the end of `room`.
fn decimal(value: u64, room: &mut [u8; DIGITS]) -> &[u8] {
    let mut left = value;
    let mut start = DIGITS;
    for digit in room.iter_mut().rev() {
        // A remainder of ten fits a byte.
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
        start -= 1;
        if left == 0 {
            break;
        }
    }
    room.get(start..).unwrap_or_default()
}

fn line(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
}

fn length(content: &Content) -> u64 {
    match content {
        Content::Sentence([before, after], value) => (before.len() + digits(*value) + after.len()) as u64,
        other => other.bytes().len() as u64,
    }
}

fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The words for the statuses in use here; for others none, which is allowed.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}
