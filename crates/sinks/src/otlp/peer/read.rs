//! Answers, read to their end and hardly kept: the status, what was rejected, and the beginning of a text.

use super::compressed;
use crate::http::{chain, delay};
use crate::otlp::answer::{Answer, Fault, Reason, Said, Status as Code};
use crate::otlp::response::Response as Taken;
use crate::otlp::status::{Status, base64_decoded, percent_decoded};
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER};

/// The longest answer: a longer one is a failure for good.
const LONGEST: usize = 4 << 20;
/// The most bytes of an answer that are kept, to find a status in them.
pub(in crate::otlp) const KEPT: usize = 4 << 10;
/// The most bytes of a text that is no status.
const EXCERPT: usize = 512;

/// What is kept of an answer's body.
#[derive(Default)]
struct Body {
    taken: Taken,
    start: Vec<u8>,
    len: usize,
    trailers: Option<HeaderMap>,
}

/// An answer could not be read.
enum Unread {
    Long,
    Broken(String),
}

impl Body {
    /// Reads a body, of which `prefix` bytes come before the message.
    async fn read(mut incoming: Incoming, prefix: usize) -> Result<Body, Unread> {
        let mut body = Body::default();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|error| Unread::Broken(chain(&error)))?;
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
                return Err(Unread::Long);
            }
        }
        Ok(body)
    }
}

impl Unread {
    fn into_answer(self, status: Code) -> Answer {
        match self {
            Unread::Broken(words) => Answer::lost(words),
            Unread::Long => {
                let words = format!("the answer is longer than {} MiB", LONGEST >> 20);
                Answer::Refused { reason: Reason { status, words }, fault: Fault::Other }
            }
        }
    }
}

/// The answer to a request over HTTP.
pub(super) async fn http(response: Response<Incoming>) -> Answer {
    let (head, incoming) = response.into_parts();
    let body = match Body::read(incoming, 0).await {
        Ok(body) => body,
        Err(unread) => return unread.into_answer(Code::Http(head.status)),
    };
    let retry = head.headers.get(RETRY_AFTER).and_then(delay);
    // Nobody asked for a compressed answer; one that comes all the same is taken as it is.
    let said = if head.headers.contains_key(CONTENT_ENCODING) {
        Said { retry, ..Said::default() }
    } else if head.status.is_success() {
        Said { words: body.taken.words(), rejected: body.taken.rejected(), retry: None }
    } else {
        let status = Status::read(&body.start);
        let words = status.message.unwrap_or_else(|| excerpt(&body.start));
        Said { words, retry: retry.or(status.retry), rejected: 0 }
    };
    Answer::of_http(head.status, said)
}

/// The answer to a unary call of gRPC.
pub(super) async fn grpc(response: Response<Incoming>) -> Answer {
    let (head, incoming) = response.into_parts();
    let body = match Body::read(incoming, super::PREFIX).await {
        Ok(body) => body,
        Err(unread) => return unread.into_answer(Code::Http(head.status)),
    };
    // An answer without a message has its status in the head.
    let ends = [body.trailers.as_ref(), Some(&head.headers)];
    let found = ends.into_iter().flatten().find_map(|end| Some((code(end)?, end)));
    let retry_after = head.headers.get(RETRY_AFTER).and_then(delay);
    let Some((code, end)) = found else {
        let said = Said { words: excerpt(&body.start), retry: retry_after, rejected: 0 };
        return Answer::of_foreign(head.status, said);
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
        return Answer::of_grpc(code, Said { words, rejected, retry: None });
    }
    let details = end.get("grpc-status-details-bin").and_then(|text| base64_decoded(text.as_bytes()));
    let retry = details.and_then(|details| Status::read(&details).retry).or(retry_after);
    let words = end.get("grpc-message").map(|text| percent_decoded(text.as_bytes())).unwrap_or_default();
    Answer::of_grpc(code, Said { words: excerpt(words.as_bytes()), retry, rejected: 0 })
}

fn code(end: &HeaderMap) -> Option<u16> {
    end.get("grpc-status")?.to_str().ok()?.trim().parse().ok()
}

/// The beginning of a text.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..EXCERPT).unwrap_or(bytes));
    text.trim().to_owned()
}
