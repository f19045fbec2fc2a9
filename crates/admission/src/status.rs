//! Encodes `google.rpc.Status`, the body of OTLP's error responses, in protobuf and JSON.
//!
//! Messages come in three parts, as in [`ErrorFormat`](tidegate_http1::ErrorFormat), so that a constant message is encoded
//! without an allocation.

use std::convert::Infallible;
use tidegate_wire::json;
use tidegate_wire::proto::write::Varint;

/// The gRPC status codes in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// The client went away.
    Cancelled = 1,
    /// The request is invalid, and will be when it is sent again.
    InvalidArgument = 3,
    /// It took too long.
    DeadlineExceeded = 4,
    /// The client is known, and may not do this.
    PermissionDenied = 7,
    /// The request is too large, or beyond a limit.
    ResourceExhausted = 8,
    /// There is no such method, encoding or form of call.
    Unimplemented = 12,
    /// The message framing is invalid.
    Internal = 13,
    /// The gateway cannot accept the request now.
    Unavailable = 14,
    /// The client has no valid credentials.
    Unauthenticated = 16,
}

/// The `details` of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Nothing,
    /// `google.rpc.BadRequest`: the message again, as the violation of a rule.
    BadRequest,
    /// `google.rpc.RetryInfo`: the delay before a retry, in seconds.
    RetryIn(u32),
}

const BAD_REQUEST: &[u8] = b"type.googleapis.com/google.rpc.BadRequest";
const RETRY_INFO: &[u8] = b"type.googleapis.com/google.rpc.RetryInfo";

/// Length-delimited fields: `Status.message`, `Status.details`, `Any.type_url`, `Any.value`,
/// `RetryInfo.retry_delay`, `BadRequest.field_violations`, `FieldViolation.description`.
const TAG_1: u8 = 0x0a;
const TAG_2: u8 = 0x12;
const TAG_3: u8 = 0x1a;

/// Appends the status in protobuf.
pub(crate) fn protobuf(out: &mut Vec<u8>, code: Code, message: [&[u8]; 3], detail: Detail) {
    let message = without_line_feed(message);
    let text = message.iter().map(|part| part.len()).sum();
    // `Status.code`, `Duration.seconds` and the like: field 1, a number.
    out.extend_from_slice(&[0x08, code as u8]);
    open(out, TAG_2, text);
    message.iter().for_each(|part| out.extend_from_slice(part));
    match detail {
        Detail::Nothing => {}
        Detail::BadRequest => {
            let violation = field_len(text);
            let value = field_len(violation);
            open(out, TAG_3, field_len(BAD_REQUEST.len()) + field_len(value));
            open(out, TAG_1, BAD_REQUEST.len());
            out.extend_from_slice(BAD_REQUEST);
            open(out, TAG_2, value);
            open(out, TAG_1, violation);
            open(out, TAG_2, text);
            message.iter().for_each(|part| out.extend_from_slice(part));
        }
        Detail::RetryIn(seconds) => {
            let duration = 1 + varint_len(seconds as usize);
            let value = field_len(duration);
            open(out, TAG_3, field_len(RETRY_INFO.len()) + field_len(value));
            open(out, TAG_1, RETRY_INFO.len());
            out.extend_from_slice(RETRY_INFO);
            open(out, TAG_2, value);
            open(out, TAG_1, duration);
            out.push(0x08);
            varint(out, seconds as usize);
        }
    }
}

/// Appends the status in JSON, as protobuf's mapping has it.
pub(crate) fn json(out: &mut Vec<u8>, code: Code, message: [&[u8]; 3], detail: Detail) {
    let message = without_line_feed(message);
    out.extend_from_slice(b"{\"code\":");
    decimal(out, u32::from(code as u8));
    out.extend_from_slice(b",\"message\":");
    string(out, &message);
    match detail {
        Detail::Nothing => {}
        Detail::BadRequest => {
            out.extend_from_slice(b",\"details\":[{\"@type\":\"");
            out.extend_from_slice(BAD_REQUEST);
            out.extend_from_slice(b"\",\"fieldViolations\":[{\"description\":");
            string(out, &message);
            out.extend_from_slice(b"}]}]");
        }
        Detail::RetryIn(seconds) => {
            out.extend_from_slice(b",\"details\":[{\"@type\":\"");
            out.extend_from_slice(RETRY_INFO);
            out.extend_from_slice(b"\",\"retryDelay\":\"");
            decimal(out, seconds);
            out.extend_from_slice(b"s\"}]");
        }
    }
    out.push(b'}');
}

/// Appends a response in protobuf with a `partial_success`: how many items were rejected, and why.
pub(crate) fn partial(out: &mut Vec<u8>, rejected: u64, words: &[u8]) {
    let rejected = usize::try_from(rejected).unwrap_or(usize::MAX);
    open(out, TAG_1, 1 + varint_len(rejected) + field_len(words.len()));
    out.push(0x08);
    varint(out, rejected);
    open(out, TAG_2, words.len());
    out.extend_from_slice(words);
}

/// Removes the line feed at the end of a message, which a status does not have.
pub(crate) fn without_line_feed([before, middle, after]: [&[u8]; 3]) -> [&[u8]; 3] {
    let trimmed = |part: &'static [u8; 1], text| <[u8]>::strip_suffix(text, part.as_slice()).unwrap_or(text);
    match (middle, after) {
        ([], []) => [trimmed(b"\n", before), middle, after],
        (_, []) => [before, trimmed(b"\n", middle), after],
        _ => [before, middle, trimmed(b"\n", after)],
    }
}

fn varint_len(value: usize) -> usize {
    Varint::new(value as u64).as_bytes().len()
}

/// The length of a field with a payload of `len` bytes.
fn field_len(len: usize) -> usize {
    1 + varint_len(len) + len
}

fn open(out: &mut Vec<u8>, tag: u8, len: usize) {
    out.push(tag);
    varint(out, len);
}

fn varint(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(Varint::new(value as u64).as_bytes());
}

fn decimal(out: &mut Vec<u8>, value: u32) {
    if value >= 10 {
        decimal(out, value / 10);
    }
    // A remainder of ten fits a byte.
    out.push(b'0' + (value % 10) as u8);
}

/// A JSON string of these parts.
pub(crate) fn string(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.push(b'"');
    for part in parts {
        let Ok(()) = json::escape_into(part, |piece| {
            out.extend_from_slice(piece);
            Ok::<_, Infallible>(())
        });
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
