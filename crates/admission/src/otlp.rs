//! OTLP error responses: a `google.rpc.Status` in the request's own encoding, with a code that makes clients retry
//! exactly where a retry can help.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/>, "Failures" of each transport.

mod prepared;

#[cfg(test)]
pub(crate) use prepared::BYTES as PREPARED_BYTES;
pub(crate) use prepared::prepare;
pub use prepared::{PreparedRefusal, ready};

use crate::rejection::{Rejection, RejectionText};
use crate::status::{Code, Detail, json, partial, protobuf, string, without_line_feed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use tidegate_http1::ErrorFormat;
use tidegate_ledger::Refusal;

/// The encoding of an OTLP request over HTTP, and of its response.
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

/// The `partial_success` of a response: items that were rejected while the rest was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialSuccess {
    /// How many.
    pub refused: u64,
    /// The reasons of the first ones.
    pub words: String,
}

impl PartialSuccess {
    /// The `Export…ServiceResponse` with it. The field numbers are the same for all signals; in JSON the name of the
    /// count is `rejected` and the signal's `items`, such as `Spans`.
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

/// The response to a gRPC call: its trailers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcAnswer {
    /// `grpc-status`
    pub code: Code,
    /// `grpc-message`, percent-encoded.
    pub message: String,
    /// `grpc-status-details-bin`: the whole `Status` in base64 without padding, as gRPC asks for, if it has details.
    pub details: Option<String>,
}

/// The gRPC code for a reason. Clients retry after `Unavailable`, `DeadlineExceeded` and `Cancelled`; after
/// `ResourceExhausted` only with a `RetryInfo`, which requests beyond a limit get and those that are too large do not.
const fn code(reason: Refusal) -> Code {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Share
        | Refusal::Destination
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

/// The HTTP status for a reason. Clients retry after 429 and 503; after 408 and 500, HTTP's own statuses for a timeout
/// and an internal failure, they would drop the data.
pub(crate) const fn status(reason: Refusal) -> u16 {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Timeout
        | Refusal::Share
        | Refusal::Destination
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

/// The function that encodes a refusal's message as a `Status`.
pub(crate) const fn shape(reason: Refusal, media: Media) -> ErrorFormat {
    /// The function for one code. The code is part of the function, since a prepared reply stores nothing else.
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

/// The response to a refused gRPC call; `own` replaces the code that follows from the reason.
pub fn grpc(refused: &Rejection, own: Option<Code>) -> GrpcAnswer {
    let code = own.unwrap_or(code(refused.reason));
    let detail = match code {
        Code::InvalidArgument | Code::ResourceExhausted | Code::Unavailable => detail(refused),
        _ => Detail::Nothing,
    };
    let mut answer = GrpcAnswer { code, message: String::new(), details: None };
    with_parts(&refused.words, |text| {
        for part in without_line_feed(text) {
            answer.message.extend(percent_encode(part, ENCODED));
        }
        if detail != Detail::Nothing {
            let mut status = Vec::new();
            protobuf(&mut status, code, text, detail);
            answer.details = Some(STANDARD_NO_PAD.encode(&status));
        }
    });
    answer
}

fn detail(refused: &Rejection) -> Detail {
    match (refused.retry_after, code(refused.reason)) {
        (Some(seconds), Code::Unavailable | Code::ResourceExhausted) => Detail::RetryIn(seconds),
        (_, Code::InvalidArgument) => Detail::BadRequest,
        _ => Detail::Nothing,
    }
}

fn with_parts(words: &RejectionText, put: impl FnOnce([&[u8]; 3])) {
    match words {
        RejectionText::Fixed(text) => put([text.as_bytes(), &[], &[]]),
        RejectionText::CannedRefusal(standing) => put([standing.words().as_bytes(), &[], &[]]),
        RejectionText::Around([before, after], number) => {
            put([before.as_bytes(), number.to_string().as_bytes(), after.as_bytes()])
        }
        RejectionText::Own(text) => put([text.as_bytes(), &[], &[]]),
    }
}

/// Bytes that gRPC over HTTP/2 percent-encodes, in addition to all non-ASCII ones.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

#[cfg(test)]
mod tests;
