//! Promise P3 for OTLP: every reason has an answer in each of the three forms, clients send again after those
//! that time can mend, and no others; and it says when.

use super::*;
use crate::answer::{Protocol, answer};
use tidegate_http1::Content;

fn refused(reason: Refusal) -> Refused {
    let refused = Refused::new(reason, "these are 100 % \"words\"\n");
    if is_mended_by_time(reason) { refused.retry_after(17) } else { refused }
}

fn is_mended_by_time(reason: Refusal) -> bool {
    use Refusal::{Concurrency, Connections, Disk, Internal, Memory, RateLimited, Share, Shutdown, Timeout};
    let limits = matches!(reason, RateLimited | Concurrency | Share);
    limits || matches!(reason, Memory | Disk | Connections | Shutdown | Internal | Timeout)
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

#[test]
fn only_what_time_can_mend_is_sent_again() {
    for reason in Refusal::ALL.iter().copied() {
        let name = reason.name();
        let refused = refused(reason);
        for media in [Media::Protobuf, Media::Json] {
            let answer = http(&refused, media);
            assert_eq!(is_retried_over_http(answer.status), is_mended_by_time(reason), "{name}");
            assert_eq!(answer.retry_after.is_some(), is_mended_by_time(reason), "{name}");
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

/// The answers over HTTP/1.1 are those over HTTP/2, but that they were put together without an allocation.
#[test]
fn both_versions_of_http_are_answered_alike() {
    for reason in Refusal::ALL.iter().copied() {
        for media in [Media::Protobuf, Media::Json] {
            let name = format!("{} {media:?}", reason.name());
            // When to return is in the header alone there, so it is left out here.
            let asked = Refused { retry_after: None, ..refused(reason) };
            let expected = http(&asked, media);
            let reply = answer(asked, Protocol::Otlp(media));
            assert_eq!(reply.status(), expected.status, "{name}");
            let mut body = Vec::new();
            let Content::Fixed(text) = reply.into_content() else { panic!("{name}: fixed words") };
            shape(reason, media)(&mut body, [text, &[], &[]]);
            assert_eq!(body, expected.body, "{name}");
        }
    }
}

#[test]
fn a_number_in_the_words_is_in_the_message() {
    let refused = Refused::too_large(1024);
    assert!(grpc(&refused, None).message.contains("at most 1024 bytes are accepted"));
    let json = http(&refused, Media::Json);
    assert_eq!(json.status, 413);
    let body = String::from_utf8(json.body).unwrap();
    assert!(body.starts_with("{\"code\":8,\"message\":\"") && body.contains(" 1024 bytes"), "{body}");
    assert!(!body.contains("details"), "nothing that would have it sent again");
}

#[test]
fn details_are_base64_as_rfc_4648_has_it() {
    let table =
        [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")];
    for (plain, encoded) in table {
        assert_eq!(base64(plain.as_bytes()), encoded);
    }
    assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
}
