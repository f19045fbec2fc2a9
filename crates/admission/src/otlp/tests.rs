//! Promise P3 for OTLP: every reason has an answer in each form, clients send again after those
//! that time can mend, and no others; and it says when.

use super::*;
use crate::answer::{AnswerFormat, answer};

fn refused(reason: Refusal) -> Rejection {
    let refused = Rejection::new(reason, "these are 100 % \"words\"\n");
    if is_mended_by_time(reason) { refused.retry_after(17) } else { refused }
}

fn is_mended_by_time(reason: Refusal) -> bool {
    use Refusal::{
        Concurrency, Connections, Destination, Disk, Internal, Memory, RateLimited, Share, Shutdown, Timeout,
    };
    let limits = matches!(reason, RateLimited | Concurrency | Share);
    limits || matches!(reason, Memory | Disk | Connections | Shutdown | Destination | Internal | Timeout)
}

/// Of OTLP's client: "Failures", "Retryable response codes".
fn is_retried_over_http(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

fn is_retried_over_grpc(answer: &GrpcAnswer) -> bool {
    // `RetryInfo` is what it has details for.
    let is_told_when = answer.code == Code::ResourceExhausted && answer.details.is_some();
    is_told_when || matches!(answer.code, Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable)
}

/// The status of the answer over HTTP, and all of it.
fn over_http(refused: Rejection, media: Media) -> (u16, String) {
    let reply = answer(refused, AnswerFormat::Otlp(media));
    let mut bytes = Vec::new();
    reply.put(0, &mut bytes);
    (reply.status(), String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn only_temporary_refusals_are_retryable() {
    for reason in Refusal::ALL.iter().copied() {
        let name = reason.name();
        let refused = refused(reason);
        for media in [Media::Protobuf, Media::Json] {
            let (status, text) = over_http(refused.clone(), media);
            assert_eq!(is_retried_over_http(status), is_mended_by_time(reason), "{name}");
            assert_eq!(text.contains("\r\nRetry-After: 17\r\n"), is_mended_by_time(reason), "{name}: {text}");
        }
        let answer = grpc(&refused, None);
        // Nobody hears the answer to what was abandoned.
        let retried = is_mended_by_time(reason) || reason == Refusal::Abandoned;
        assert_eq!(is_retried_over_grpc(&answer), retried, "{name}");
        assert_eq!(answer.message, "these are 100 %25 \"words\"", "{name}");
        let is_told_when = answer.code == Code::ResourceExhausted && is_mended_by_time(reason);
        let has_details = is_told_when || matches!(answer.code, Code::Unavailable | Code::InvalidArgument);
        assert_eq!(answer.details.is_some(), has_details, "{name}");
    }
}

#[test]
fn a_number_in_the_words_is_in_the_message() {
    let refused = Rejection::too_large(1024);
    assert!(grpc(&refused, None).message.contains("at most 1024 bytes are accepted"));
    let (status, text) = over_http(refused, Media::Json);
    assert_eq!(status, 413);
    assert!(text.contains("{\"code\":8,\"message\":\"") && text.contains(" 1024 bytes"), "{text}");
    assert!(!text.contains("details"), "nothing that would have it sent again");
}
