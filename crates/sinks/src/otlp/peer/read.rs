//! Answers, read to their end and hardly kept: the status, what was rejected, and the beginning of a text.

use super::{compressed, loki};
use crate::delivery::client::redirect;
use crate::http_peer::{chain, delay};
use crate::otlp::answer::{ErrorDetails, OtlpAnswer, RejectionCause, RejectionReason, Status as Code};
use crate::otlp::response::Response as Taken;
use crate::otlp::status::{Status, base64_decoded, percent_decoded};
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER};
use tidegate_wire::intake::Value;
use tidegate_wire::otlp::json::Layout;

/// How much of an answer is read. What is longer says nothing more by that; over HTTP its status has said all.
const LONGEST: usize = 16 << 20;
/// The most bytes of an answer that are kept, to find a status in them.
pub(in crate::otlp) const KEPT: usize = 4 << 10;
/// The most bytes of a text that is no status.
const EXCERPT: usize = 512;

/// The kept part of an answer's body.
#[derive(Default)]
pub(super) struct Body {
    taken: Taken,
    pub(super) start: Vec<u8>,
    len: usize,
    trailers: Option<HeaderMap>,
    /// It is longer than what is read of it.
    is_long: bool,
}

impl Body {
    /// Reads a body, of which `prefix` bytes come before the message. An error says why it could not be read.
    pub(super) async fn read(mut incoming: Incoming, prefix: usize) -> Result<Body, String> {
        let mut body = Body::default();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| chain(&error))?;
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(frame) => {
                    body.trailers = frame.into_trailers().ok();
                    continue;
                }
            };
            let missing = prefix.saturating_sub(body.len);
            body.taken.read(data.get(missing..).unwrap_or_default());
            let wanted = KEPT.saturating_sub(body.start.len()).min(data.len());
            body.start.extend(data.iter().take(wanted));
            body.len = body.len.saturating_add(data.len());
            if body.len > LONGEST {
                body.is_long = true;
                break;
            }
        }
        Ok(body)
    }
}

/// The kind of receiver that answers over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Responder {
    Otlp,
    /// A receiver of JSON in this layout.
    Json(Layout),
    Loki,
}

/// The answer to a request over HTTP.
pub(super) async fn http(response: Response<Incoming>, responder: Responder) -> OtlpAnswer {
    let (head, incoming) = response.into_parts();
    let body = match Body::read(incoming, 0).await {
        Ok(body) => body,
        Err(words) => return OtlpAnswer::lost(words),
    };
    let retry = head.headers.get(RETRY_AFTER).and_then(delay);
    // Nobody asked for a compressed answer; one that comes all the same is taken as it is.
    let said = if head.headers.contains_key(CONTENT_ENCODING) {
        ErrorDetails { retry, ..ErrorDetails::default() }
    } else if head.status.is_success() {
        match responder {
            Responder::Otlp => {
                ErrorDetails { words: body.taken.words(), rejected: body.taken.rejected(), retry: None }
            }
            Responder::Json(Layout::Request) => partial_success(&body.start),
            Responder::Json(Layout::Lines | Layout::Array) | Responder::Loki => ErrorDetails::default(),
        }
    } else if let Some(words) = redirect::words(head.status, &head.headers) {
        ErrorDetails { words, retry, rejected: 0 }
    } else if responder != Responder::Otlp {
        let rejected = if responder == Responder::Loki { loki::ignored(&body.start) } else { 0 };
        ErrorDetails { words: excerpt(&body.start), retry, rejected }
    } else {
        let status = Status::read(&body.start);
        let words = status.message.unwrap_or_else(|| excerpt(&body.start));
        ErrorDetails { words, retry: retry.or(status.retry), rejected: 0 }
    };
    match responder {
        Responder::Otlp => OtlpAnswer::of_http(head.status, said),
        Responder::Json(_) => OtlpAnswer::of_any_http(head.status, said),
        Responder::Loki => loki::answer(head.status, said),
    }
}

/// Parses a response of OTLP/JSON: `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"…"}}`.
fn partial_success(body: &[u8]) -> ErrorDetails {
    const REJECTED: [&[u8]; 3] = [b"rejectedSpans", b"rejectedLogRecords", b"rejectedDataPoints"];
    let of = |name| Value::of(body).object()?.at(&[b"partialSuccess", name]);
    // A number of 64 bits is a text, or a number all the same.
    let number = |value| match value {
        Value::Text(text) => str::from_utf8(text.plain()?).ok()?.parse().ok(),
        Value::Number(number) => u64::try_from(number.integer()?).ok(),
        _ => None,
    };
    let rejected = REJECTED.into_iter().filter_map(of).find_map(number).unwrap_or(0);
    let mut words = Vec::new();
    if let Some(Value::Text(text)) = of(b"errorMessage") {
        text.pieces(|piece| words.extend_from_slice(piece));
    }
    ErrorDetails { words: excerpt(&words), rejected, retry: None }
}

/// The answer to a unary call of gRPC.
pub(super) async fn grpc(response: Response<Incoming>) -> OtlpAnswer {
    let (head, incoming) = response.into_parts();
    let body = match Body::read(incoming, super::PREFIX).await {
        Ok(body) => body,
        Err(words) => return OtlpAnswer::lost(words),
    };
    // An answer without a message has its status in the head.
    let ends = [body.trailers.as_ref(), Some(&head.headers)];
    let found = ends.into_iter().flatten().find_map(|end| Some((code(end)?, end)));
    let retry_after = head.headers.get(RETRY_AFTER).and_then(delay);
    let Some((code, end)) = found else {
        if body.is_long {
            // The status would have come behind it, and does not come in front of it the next time either.
            let words = format!("the answer is longer than {} MiB", LONGEST >> 20);
            let reason = RejectionReason { status: Code::Http(head.status), words };
            return OtlpAnswer::Refused { reason, fault: RejectionCause::Other };
        }
        let said = ErrorDetails { words: excerpt(&body.start), retry: retry_after, rejected: 0 };
        return OtlpAnswer::of_foreign(head.status, said);
    };
    if code == 0 {
        let taken = match body.start.split_at_checked(super::PREFIX) {
            Some(([1, ..], message)) => {
                let encoding =
                    head.headers.get(super::GRPC_ENCODING).map_or(&[][..], |value| value.as_bytes());
                compressed::response(encoding, message)
            }
            _ => body.taken,
        };
        let (words, rejected) = (taken.words(), taken.rejected());
        return OtlpAnswer::of_grpc(code, ErrorDetails { words, rejected, retry: None });
    }
    let details = end.get("grpc-status-details-bin").and_then(|text| base64_decoded(text.as_bytes()));
    let retry = details.and_then(|details| Status::read(&details).retry).or(retry_after);
    let words = end.get("grpc-message").map(|text| percent_decoded(text.as_bytes())).unwrap_or_default();
    OtlpAnswer::of_grpc(code, ErrorDetails { words: excerpt(words.as_bytes()), retry, rejected: 0 })
}

fn code(end: &HeaderMap) -> Option<u16> {
    end.get("grpc-status")?.to_str().ok()?.trim().parse().ok()
}

/// The beginning of a text.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..EXCERPT).unwrap_or(bytes));
    text.trim().to_owned()
}

/// The end of a unary call of gRPC whose response has nothing of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrpcAnswer {
    /// The status; none where the call was lost, or something else than gRPC answered.
    pub(crate) code: Option<u16>,
    /// The peer's words, or why it was lost.
    pub(crate) words: String,
    /// How long the peer asks to stay away.
    pub(crate) after: Option<std::time::Duration>,
}

impl GrpcAnswer {
    /// There was no answer.
    pub(crate) fn lost(words: String) -> GrpcAnswer {
        GrpcAnswer { code: None, words, after: None }
    }
}

/// Reads the answer to a unary call whose response has nothing of interest.
pub(crate) async fn grpc_answer(response: Response<Incoming>) -> GrpcAnswer {
    let (head, incoming) = response.into_parts();
    let body = match Body::read(incoming, super::PREFIX).await {
        Ok(body) => body,
        Err(words) => return GrpcAnswer::lost(words),
    };
    let ends = [body.trailers.as_ref(), Some(&head.headers)];
    let found = ends.into_iter().flatten().find_map(|end| Some((code(end)?, end)));
    let after = head.headers.get(RETRY_AFTER).and_then(delay);
    let Some((code, end)) = found else {
        let words = format!("{}: {}", head.status, excerpt(&body.start));
        return GrpcAnswer { code: None, words, after };
    };
    let words = end.get("grpc-message").map(|text| percent_decoded(text.as_bytes())).unwrap_or_default();
    GrpcAnswer { code: Some(code), words: excerpt(words.as_bytes()), after }
}
