//! An answer's bytes on the wire.

use super::date::with_date;
use super::{Content, Reply, Shape};

/// What the request and the connection add to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The connection ends with it.
    pub(crate) close: bool,
    /// The client has to be told that the connection does not end: it speaks HTTP/1.0.
    pub(crate) keep_alive: bool,
    /// The request was HEAD: headers as if there were content, and none.
    pub(crate) bodiless: bool,
}

/// Appends all of `reply` but the bytes of [`Content::bytes`]. Returns whether those are to follow.
pub(crate) fn render_head(reply: &Reply, ending: Ending, out: &mut Vec<u8>) -> bool {
    if let Content::Prepared(prepared) = &reply.content {
        prepared.render(reply.retry_after, ending, out);
        return false;
    }
    opening(reply, out);
    with_date(|date| out.extend_from_slice(date));
    if let Some(seconds) = reply.retry_after {
        line("Retry-After", out);
        number(u64::from(seconds), out);
    }
    head(reply, out);
    connection(ending, out);
    let from = out.len();
    let content = from + rest(reply, out);
    if ending.bodiless {
        out.truncate(content);
    }
    // What has no bytes of its own is there already.
    !ending.bodiless && out.len() == content && !reply.is_bare()
}

/// The status, up to where the date goes.
pub(super) fn opening(reply: &Reply, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    number(u64::from(reply.status), out);
    out.push(b' ');
    out.extend_from_slice(reason(reply.status).as_bytes());
    out.extend_from_slice(b"\r\nDate: ");
}

/// The headers that this answer has and others have not.
pub(super) fn head(reply: &Reply, out: &mut Vec<u8>) {
    for (name, value) in reply.names.iter().zip(&reply.numbers) {
        line(name, out);
        number(u64::from(*value), out);
    }
    for (name, value) in reply.headers {
        line(name, out);
        out.extend_from_slice(value.as_bytes());
    }
}

/// What becomes of the connection, where that has to be said.
pub(super) fn connection(ending: Ending, out: &mut Vec<u8>) {
    if ending.close {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if ending.keep_alive {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
}

/// The headers about the content, the end of the head, and the content where it is put together here. Returns where
/// the content begins, counted from where this began.
pub(super) fn rest(reply: &Reply, out: &mut Vec<u8>) -> usize {
    let from = out.len();
    if reply.is_bare() {
        out.extend_from_slice(b"\r\n\r\n");
        return out.len() - from;
    }
    let shape = reply.shape.filter(|_| has_text(&reply.content));
    let len = shape.map_or_else(|| length(&reply.content), |shape| shaped_length(shape, reply, out));
    if len > 0 {
        line("Content-Type", out);
        out.extend_from_slice(reply.content_type.as_bytes());
    }
    line("Content-Length", out);
    number(len as u64, out);
    out.extend_from_slice(b"\r\n\r\n");
    let content = out.len() - from;
    match (shape, &reply.content) {
        (Some(shape), content) => put_shaped(shape, content, out),
        (None, Content::Sentence([before, after], value)) => {
            out.extend_from_slice(before.as_bytes());
            number(*value, out);
            out.extend_from_slice(after.as_bytes());
        }
        _ => {}
    }
    content
}

/// Whether `content` is text, which may have a shape.
fn has_text(content: &Content) -> bool {
    matches!(content, Content::Fixed(_) | Content::Sentence(..) | Content::Owned(_))
}

/// How long the text is in its shape. It is measured by writing it: answers with a shape are refusals, and
/// short.
fn shaped_length(shape: Shape, reply: &Reply, out: &mut Vec<u8>) -> usize {
    let before = out.len();
    put_shaped(shape, &reply.content, out);
    let len = out.len().saturating_sub(before);
    out.truncate(before);
    len
}

fn put_shaped(shape: Shape, content: &Content, out: &mut Vec<u8>) {
    match content {
        Content::Sentence([before, after], value) => {
            let mut room = [0; DIGITS];
            shape(out, [before.as_bytes(), decimal(*value, &mut room), after.as_bytes()]);
        }
        other => shape(out, [other.bytes(), &[], &[]]),
    }
}

/// Appends `value` in decimal digits.
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
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

fn length(content: &Content) -> usize {
    match content {
        Content::Sentence([before, after], value) => before.len() + digits(*value) + after.len(),
        other => other.bytes().len(),
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
        417 => "Expectation Failed",
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
