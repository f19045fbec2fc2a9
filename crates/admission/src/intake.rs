//! The answers of APM Server: `{"accepted", "errors"}` about what was sent, `{"error"}` about who sent it and when.
//!
//! Agents drop what was answered with any status but 202, and those that come back at all do so when they have
//! something else to send. So the words are for people, and the delay for whoever heeds it.

use crate::status::{string, without_line_feed};
use tidegate_http1::ErrorFormat;
use tidegate_ledger::Refusal;

/// The status of HTTP for a reason. Of APM Server's own: what is wrong with a request is 400, whatever it is.
pub(crate) const fn status(reason: Refusal) -> u16 {
    match reason {
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Share
        | Refusal::Connections
        | Refusal::Shutdown
        | Refusal::Timeout
        | Refusal::Destination
        | Refusal::Internal => 503,
        Refusal::RateLimited | Refusal::Concurrency => 429,
        Refusal::TooLarge => 413,
        Refusal::Malformed
        | Refusal::Headers
        | Refusal::Abandoned
        | Refusal::Tenant
        | Refusal::Unsupported
        | Refusal::Method => 400,
        Refusal::Unauthorized => 401,
        Refusal::Forbidden => 403,
        Refusal::NotFound => 404,
    }
}

/// Formats a refusal as an intake answer.
pub(crate) const fn shape(reason: Refusal) -> ErrorFormat {
    match status(reason) {
        400 | 413 => |out, text| {
            out.extend_from_slice(b"{\n  \"accepted\": 0,\n  \"errors\": [\n    {\n      \"message\": ");
            string(out, &without_line_feed(text));
            out.extend_from_slice(b"\n    }\n  ]\n}\n");
        },
        _ => |out, text| {
            out.extend_from_slice(b"{\n  \"error\": ");
            string(out, &without_line_feed(text));
            out.extend_from_slice(b"\n}\n");
        },
    }
}

/// The content type of answers: JSON in any case, and said to be that to who takes it.
pub const fn content_type(takes_json: bool) -> &'static str {
    if takes_json { "application/json" } else { "text/plain; charset=utf-8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P3: every refusal is JSON of the one shape or the other.
    #[test]
    fn refusals_are_json() {
        for reason in Refusal::ALL {
            let mut out = Vec::new();
            shape(*reason)(&mut out, [b"no \"room\" for ", b"17", b" bytes\n"]);
            let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let words = "no \"room\" for 17 bytes";
            let expected = match status(*reason) {
                400 | 413 => serde_json::json!({"accepted": 0, "errors": [{"message": words}]}),
                _ => serde_json::json!({"error": words}),
            };
            assert_eq!(json, expected, "{}", reason.name());
        }
    }
}
