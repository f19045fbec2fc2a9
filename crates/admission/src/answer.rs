//! The answer to a refused request, in the shape that the protocol's clients understand.

use crate::access;
use crate::canned_refusal::CannedRefusal;
use crate::elastic;
use crate::intake;
use crate::otlp::{self, Media};
use crate::rejection::{Rejection, RejectionText};
use std::sync::LazyLock;
use tidegate_http1::{Content, PreparedReply, Reply, SyntaxError};
use tidegate_ledger::Refusal;

/// The protocol format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    /// Plain text, as any HTTP client reads it.
    Http,
    /// Prometheus remote write: plain text, and how many items were written (none).
    RemoteWrite,
    /// OTLP over HTTP: a `google.rpc.Status` in the request's encoding.
    Otlp(Media),
    /// Elasticsearch: an error in JSON.
    Elastic,
    /// APM Server: in JSON, which it says to those who take it.
    Intake {
        /// Whether this client takes `application/json`.
        json: bool,
    },
}

/// How many samples of a request were written (Remote-Write 2.0, "Required Written Response Headers").
pub const WRITTEN: &[&str] = &[
    "X-Prometheus-Remote-Write-Samples-Written",
    "X-Prometheus-Remote-Write-Histograms-Written",
    "X-Prometheus-Remote-Write-Exemplars-Written",
];

/// The answer to `rejection`, for a client of `protocol`.
#[inline]
pub fn answer(refused: Rejection, protocol: AnswerFormat) -> Reply {
    if let RejectionText::CannedRefusal(canned) = refused.words {
        let reply = Reply::prepared(prepared(canned, protocol));
        return if let Some(seconds) = refused.retry_after { reply.retry_after(seconds) } else { reply };
    }
    shaped(refused.reason, refused.words.into(), refused.retry_after, protocol)
}

/// Puts the answers together that are needed often. Otherwise the first of them does it.
pub fn prepare() {
    LazyLock::force(&PREPARED);
    otlp::prepare();
}

/// Most bytes of the prepared answers: a line of the memory plan.
pub const PREPARED_BYTES: usize = 64 << 10;

/// By protocol, and then by what is refused.
static PREPARED: LazyLock<Box<[PreparedReply]>> = LazyLock::new(|| {
    let of = |protocol| {
        CannedRefusal::ALL.iter().map(move |canned| {
            let content = Content::Fixed(canned.words().as_bytes());
            PreparedReply::new(&shaped(canned.reason(), content, None, protocol))
        })
    };
    AnswerFormat::ALL.into_iter().flat_map(of).collect()
});

#[inline]
fn prepared(canned: CannedRefusal, protocol: AnswerFormat) -> &'static PreparedReply {
    // One for each of both, in this order.
    &PREPARED[protocol.index() * CannedRefusal::ALL.len() + canned as usize]
}

impl AnswerFormat {
    /// Each shape once, in the order of its number.
    const ALL: [AnswerFormat; 7] = [
        AnswerFormat::Http,
        AnswerFormat::RemoteWrite,
        AnswerFormat::Otlp(Media::Protobuf),
        AnswerFormat::Otlp(Media::Json),
        AnswerFormat::Elastic,
        AnswerFormat::Intake { json: false },
        AnswerFormat::Intake { json: true },
    ];

    const fn index(self) -> usize {
        match self {
            AnswerFormat::Http => 0,
            AnswerFormat::RemoteWrite => 1,
            AnswerFormat::Otlp(Media::Protobuf) => 2,
            AnswerFormat::Otlp(Media::Json) => 3,
            AnswerFormat::Elastic => 4,
            AnswerFormat::Intake { json: false } => 5,
            AnswerFormat::Intake { json: true } => 6,
        }
    }
}

/// The answer to what the codec refused, for a client of `protocol`, and the reason for the books.
/// `retry_after` is for a refusal that time can mend.
pub fn codec(refusal: tidegate_http1::Refusal, protocol: AnswerFormat, retry_after: u32) -> (Reply, Refusal) {
    use tidegate_http1::Refusal as Codec;
    let reason = match refusal {
        Codec::Malformed(SyntaxError::Chunk | SyntaxError::ChunkExtras) => Refusal::Malformed,
        Codec::Malformed(_)
        | Codec::Version
        | Codec::Connect
        | Codec::Expectation
        | Codec::TargetTooLong { .. }
        | Codec::HeadTooLarge { .. }
        | Codec::TooManyHeaders { .. } => Refusal::Headers,
        Codec::Truncated => Refusal::Abandoned,
        Codec::BodyTooLarge { .. } => Refusal::TooLarge,
        Codec::HeadTooSlow | Codec::BodyTooSlow => Refusal::Timeout,
        Codec::Memory => Refusal::Memory,
    };
    let mendable = reason == Refusal::Memory || (reason == Refusal::Timeout && !is_plain(protocol));
    let retry_after = mendable.then_some(retry_after);
    let reply = match protocol {
        // The codec's statuses say more than those of the reasons do.
        AnswerFormat::Http | AnswerFormat::RemoteWrite => {
            let reply = refusal.reply();
            let reply = if let Some(seconds) = retry_after { reply.retry_after(seconds) } else { reply };
            counted(reply, protocol)
        }
        AnswerFormat::Otlp(_) | AnswerFormat::Elastic | AnswerFormat::Intake { .. } => {
            shaped(reason, refusal.reply().into_content(), retry_after, protocol)
        }
    };
    (reply, reason)
}

const fn is_plain(protocol: AnswerFormat) -> bool {
    matches!(protocol, AnswerFormat::Http | AnswerFormat::RemoteWrite)
}

/// 5xx where a client should send the same again: Prometheus retries those, but by default not 429.
const fn status(reason: Refusal) -> u16 {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Share
        | Refusal::Destination => 503,
        Refusal::TooLarge => 413,
        Refusal::Malformed | Refusal::Headers | Refusal::Abandoned | Refusal::Tenant => 400,
        Refusal::Unauthorized => 401,
        Refusal::Forbidden => 403,
        // Refusals by configuration, in the operator's terms: clients that should retry get a delay.
        Refusal::RateLimited | Refusal::Concurrency => 429,
        Refusal::Unsupported => 415,
        Refusal::Timeout => 408,
        Refusal::Method => 405,
        Refusal::NotFound => 404,
        Refusal::Internal => 500,
    }
}

fn shaped(reason: Refusal, content: Content, retry_after: Option<u32>, protocol: AnswerFormat) -> Reply {
    let reply = match protocol {
        AnswerFormat::Http | AnswerFormat::RemoteWrite => Reply::new(status(reason)),
        AnswerFormat::Otlp(media) => Reply::new(otlp::status(reason))
            .content_type(media.content_type())
            .formatted(otlp::shape(reason, media)),
        AnswerFormat::Elastic => Reply::new(elastic::status(reason))
            .content_type("application/json")
            .headers(elastic::HEADERS)
            .formatted(elastic::shape(reason)),
        AnswerFormat::Intake { json } => Reply::new(intake::status(reason))
            .content_type(intake::content_type(json))
            .formatted(intake::shape(reason)),
    };
    // RFC 9110, section 15.5.2: who is told to say who it is must be told how.
    let reply = match (reason, protocol) {
        (Refusal::Unauthorized, AnswerFormat::Elastic) => reply.headers(elastic::CHALLENGE),
        (Refusal::Unauthorized, _) => reply.headers(&[("WWW-Authenticate", access::CHALLENGE)]),
        _ => reply,
    };
    let reply = reply.content(content);
    let reply = if let Some(seconds) = retry_after { reply.retry_after(seconds) } else { reply };
    counted(reply, protocol)
}

fn counted(reply: Reply, protocol: AnswerFormat) -> Reply {
    if protocol == AnswerFormat::RemoteWrite { reply.numbers(WRITTEN, [0; 3]) } else { reply }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every refusal that comes often has an answer in each shape, which is that of its reason, in the space that is
    /// declared for all of them.
    #[test]
    fn prepared_answers_equal_rendered_ones() {
        let mut bytes = 0;
        for (at, protocol) in AnswerFormat::ALL.into_iter().enumerate() {
            assert_eq!(protocol.index(), at);
            for canned in CannedRefusal::ALL {
                let refused = Rejection::canned(*canned);
                let content: Content = refused.words.clone().into();
                let plain = shaped(refused.reason, content, None, protocol);
                let ready = prepared(*canned, protocol);
                assert_eq!(answer(refused, protocol).status(), plain.status());
                let text = String::from_utf8_lossy(ready.content()).into_owned();
                let words = canned.words().trim_end().split('\'').next().unwrap_or_default();
                assert!(text.contains(words), "{text}");
                bytes += ready.size() + size_of::<PreparedReply>();
            }
        }
        let beside = otlp::PREPARED_BYTES;
        assert!(bytes + beside < PREPARED_BYTES, "{bytes} bytes, and {beside} over HTTP/2");
    }

    /// An unauthenticated client gets instructions, in every format.
    #[test]
    fn refusals_for_want_of_credentials_say_how_to_give_them() {
        for protocol in AnswerFormat::ALL {
            let reply = answer(Rejection::new(Refusal::Unauthorized, "no\n"), protocol);
            assert_eq!(reply.status(), 401);
            let text = format!("{reply:?}");
            assert!(text.contains("WWW-Authenticate"), "{text}");
        }
    }

    /// P3: what time can mend is answered with a status that clients retry, and everything else is not.
    #[test]
    fn only_temporary_refusals_are_retryable() {
        for reason in Refusal::ALL {
            let retryable = matches!(
                reason,
                Refusal::Memory
                    | Refusal::Disk
                    | Refusal::Connections
                    | Refusal::Shutdown
                    | Refusal::Share
                    | Refusal::Destination
                    | Refusal::Internal
            );
            assert_eq!(status(*reason) >= 500, retryable, "{}", reason.name());
        }
    }
}
