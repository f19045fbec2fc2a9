//! The answers of OTLP: a `google.rpc.Status` in the request's own encoding, with the codes on which its
//! clients send again and no others.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/>, "Failures" of each transport.

mod prepared;

#[cfg(test)]
pub(crate) use prepared::BYTES as PREPARED_BYTES;
pub(crate) use prepared::prepare;
pub use prepared::{Ready, ready};

use crate::refused::{Refused, Words};
use crate::status::{Code, Detail, json, partial, protobuf, string};
use std::fmt::Write as _;
use tidegate_http1::Shape;
use tidegate_ledger::Refusal;

/// How an OTLP request over HTTP is written, and so its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

impl Media {
    /// The content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Media::Protobuf => "application/x-protobuf",
            Media::Json => "application/json",
        }
    }
}

/// What a success says of items that were left out: `partial_success`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// How many.
    pub refused: u64,
    /// What is wrong with the first of them.
    pub words: String,
}

impl Partial {
    /// An `Export…ServiceResponse` that says so. All signals have the same numbers; in JSON the count is called
    /// `rejected` and what the signal calls its `items`, such as `Spans`.
    pub fn response(&self, media: Media, items: &str) -> Vec<u8> {
        let mut out = Vec::new();
        match media {
            Media::Protobuf => partial(&mut out, self.refused, self.words.as_bytes()),
            Media::Json => {
                out.extend_from_slice(b"{\"partialSuccess\":{\"rejected");
                out.extend_from_slice(items.as_bytes());
                out.extend_from_slice(format!("\":\"{}\",\"errorMessage\":", self.refused).as_bytes());
                string(&mut out, &[self.words.as_bytes()]);
                out.extend_from_slice(b"}}");
            }
        }
        out
    }
}

/// The answer over HTTP/2: all of it but the headers that are always the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The `Status`, in the encoding that was asked for.
    pub body: Vec<u8>,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
}

/// The answer to a call of gRPC: what goes into its trailers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcAnswer {
    /// `grpc-status`
    pub code: Code,
    /// `grpc-message`, percent-encoded.
    pub message: String,
    /// `grpc-status-details-bin`, in base64: the whole `Status`. Where there are details.
    pub details: Option<String>,
}

/// The code of gRPC for a reason. Of these clients send again after `Unavailable`, `DeadlineExceeded` and
/// `Cancelled`; after `ResourceExhausted` only when told when: those beyond a limit are, and too large stays too
/// large.
const fn code(reason: Refusal) -> Code {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Share
        | Refusal::Internal => Code::Unavailable,
        Refusal::TooLarge | Refusal::RateLimited | Refusal::Concurrency => Code::ResourceExhausted,
        Refusal::Malformed | Refusal::Headers | Refusal::Tenant => Code::InvalidArgument,
        Refusal::Unauthorized => Code::Unauthenticated,
        Refusal::Forbidden => Code::PermissionDenied,
        Refusal::Unsupported | Refusal::Method | Refusal::NotFound => Code::Unimplemented,
        Refusal::Timeout => Code::DeadlineExceeded,
        Refusal::Abandoned => Code::Cancelled,
    }
}

/// The status of HTTP for a reason. Of these clients send again after 429 and 503; 408 and 500, which HTTP has for
/// what was too slow or failed here, would have them drop it.
pub(crate) const fn status(reason: Refusal) -> u16 {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Timeout
        | Refusal::Share
        | Refusal::Internal => 503,
        Refusal::RateLimited | Refusal::Concurrency => 429,
        Refusal::TooLarge => 413,
        Refusal::Malformed | Refusal::Headers | Refusal::Abandoned | Refusal::Tenant => 400,
        Refusal::Unauthorized => 401,
        Refusal::Forbidden => 403,
        Refusal::Unsupported => 415,
        Refusal::Method => 405,
        Refusal::NotFound => 404,
    }
}

/// What puts the words of a refusal into a `Status`.
pub(crate) const fn shape(reason: Refusal, media: Media) -> Shape {
    /// The shape of one code: the code is in the function, since a reply has room for no more than that.
    macro_rules! of {
        ($code:ident, $detail:ident) => {
            match media {
                Media::Protobuf => |out, text| protobuf(out, Code::$code, text, Detail::$detail),
                Media::Json => |out, text| json(out, Code::$code, text, Detail::$detail),
            }
        };
    }
    match code(reason) {
        Code::Cancelled => of!(Cancelled, Nothing),
        Code::InvalidArgument => of!(InvalidArgument, BadRequest),
        Code::DeadlineExceeded => of!(DeadlineExceeded, Nothing),
        Code::ResourceExhausted => of!(ResourceExhausted, Nothing),
        Code::Unimplemented => of!(Unimplemented, Nothing),
        Code::Internal => of!(Internal, Nothing),
        Code::PermissionDenied => of!(PermissionDenied, Nothing),
        Code::Unauthenticated => of!(Unauthenticated, Nothing),
        Code::Unavailable => of!(Unavailable, Nothing),
    }
}

/// The answer to `refused` over HTTP/2.
pub fn http(refused: &Refused, media: Media) -> HttpAnswer {
    let mut body = Vec::new();
    let (code, detail) = (code(refused.reason), detail(refused));
    with_parts(&refused.words, |text| match media {
        Media::Protobuf => protobuf(&mut body, code, text, detail),
        Media::Json => json(&mut body, code, text, detail),
    });
    HttpAnswer { status: status(refused.reason), body, retry_after: refused.retry_after }
}

/// The answer to `refused` over gRPC; `code` where gRPC has one of its own for this.
pub fn grpc(refused: &Refused, own: Option<Code>) -> GrpcAnswer {
    let code = own.unwrap_or(code(refused.reason));
    let detail = match code {
        Code::InvalidArgument | Code::ResourceExhausted | Code::Unavailable => detail(refused),
        _ => Detail::Nothing,
    };
    let mut answer = GrpcAnswer { code, message: String::new(), details: None };
    with_parts(&refused.words, |text| {
        let parts = text.iter().copied().flatten();
        percent_encode(parts, &mut answer.message);
        if detail != Detail::Nothing {
            let mut status = Vec::new();
            protobuf(&mut status, code, text, detail);
            answer.details = Some(base64(&status));
        }
    });
    answer
}

fn detail(refused: &Refused) -> Detail {
    match (refused.retry_after, code(refused.reason)) {
        (Some(seconds), Code::Unavailable | Code::ResourceExhausted) => Detail::RetryIn(seconds),
        (_, Code::InvalidArgument) => Detail::BadRequest,
        _ => Detail::Nothing,
    }
}

fn with_parts(words: &Words, put: impl FnOnce([&[u8]; 3])) {
    match words {
        Words::Fixed(text) => put([text.as_bytes(), &[], &[]]),
        Words::Standing(standing) => put([standing.words().as_bytes(), &[], &[]]),
        Words::Around([before, after], number) => {
            put([before.as_bytes(), number.to_string().as_bytes(), after.as_bytes()])
        }
        Words::Own(text) => put([text.as_bytes(), &[], &[]]),
    }
}

/// `Percent-Encoded` of gRPC's protocol over HTTP/2. The line feed at the end of words is left out.
fn percent_encode<'a>(bytes: impl Iterator<Item = &'a u8>, out: &mut String) {
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'%' => out.push(char::from(*byte)),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    if out.ends_with("%0A") {
        out.truncate(out.len() - 3);
    }
}

/// RFC 4648, section 4, without the padding, which gRPC says not to send.
fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let (digits, count) = digits(chunk);
        out.extend(digits.into_iter().take(count).map(char::from));
    }
    out
}

/// The digits of up to three bytes, and how many they are.
fn digits(chunk: &[u8]) -> ([u8; 4], usize) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut group = [0; 3];
    for (to, from) in group.iter_mut().zip(chunk) {
        *to = *from;
    }
    let [a, b, c] = group;
    let bits = u32::from_be_bytes([0, a, b, c]);
    let digit = |at: u32| DIGITS.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'=');
    ([digit(0), digit(1), digit(2), digit(3)], (chunk.len() + 1).min(4))
}

#[cfg(test)]
mod tests;
