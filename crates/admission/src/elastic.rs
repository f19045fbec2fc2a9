//! The answers of Elasticsearch: an error with its type and reason in JSON, with the statuses on which its
//! clients send again and no others.
//!
//! Beats, Logstash, Fluent Bit, Vector and the clients of Elasticsearch send again after 429, 502, 503 and 504,
//! and give up after any other status below 500. So all that time can mend is one of those.

use crate::status::{string, without_line_feed};
use tidegate_http1::ErrorFormat;
use tidegate_ledger::Refusal;

/// The header by which clients know with whom they speak.
pub const HEADERS: &[(&str, &str)] = &[("X-Elastic-Product", "Elasticsearch")];
/// The same, where credentials are missing.
pub(crate) const CHALLENGE: &[(&str, &str)] =
    &[("X-Elastic-Product", "Elasticsearch"), ("WWW-Authenticate", crate::access::CHALLENGE)];

/// The status of HTTP for a reason.
pub(crate) const fn status(reason: Refusal) -> u16 {
    match reason {
        // Pressure, which is what 429 is for there.
        Refusal::Memory
        | Refusal::Disk
        | Refusal::Share
        | Refusal::RateLimited
        | Refusal::Concurrency
        | Refusal::Timeout => 429,
        Refusal::Connections | Refusal::Shutdown | Refusal::Destination | Refusal::Internal => 503,
        Refusal::TooLarge => 413,
        Refusal::Malformed | Refusal::Headers | Refusal::Abandoned | Refusal::Tenant => 400,
        Refusal::Unauthorized => 401,
        Refusal::Forbidden => 403,
        Refusal::Unsupported => 415,
        Refusal::Method => 405,
        Refusal::NotFound => 404,
    }
}

/// Formats a refusal as an Elasticsearch error.
pub(crate) const fn shape(reason: Refusal) -> ErrorFormat {
    /// The shape of one type: it is in the function, since a reply has room for no more than that.
    macro_rules! of {
        ($kind:literal, $status:literal) => {
            |out, text| error(out, $kind, $status, text)
        };
    }
    match status(reason) {
        429 => of!("es_rejected_execution_exception", "429"),
        503 => of!("cluster_block_exception", "503"),
        413 => of!("content_too_long_exception", "413"),
        401 => of!("security_exception", "401"),
        403 => of!("security_exception", "403"),
        404 => of!("resource_not_found_exception", "404"),
        405 => of!("method_not_allowed_exception", "405"),
        415 => of!("media_type_header_exception", "415"),
        _ => of!("illegal_argument_exception", "400"),
    }
}

/// Appends the error.
fn error(out: &mut Vec<u8>, kind: &str, status: &str, text: [&[u8]; 3]) {
    let text = without_line_feed(text);
    for (before, behind) in [("{\"error\":{\"root_cause\":[{", "}],"), ("", "},\"status\":")] {
        put(out, &[before, "\"type\":\"", kind, "\",\"reason\":"]);
        string(out, &text);
        put(out, &[behind]);
    }
    put(out, &[status, "}"]);
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P3: what time can mend is answered with a status that clients retry, and everything else is not.
    #[test]
    fn only_temporary_refusals_are_retryable() {
        for reason in Refusal::ALL {
            let mendable = matches!(
                reason,
                Refusal::Memory
                    | Refusal::Disk
                    | Refusal::Share
                    | Refusal::RateLimited
                    | Refusal::Concurrency
                    | Refusal::Timeout
                    | Refusal::Connections
                    | Refusal::Shutdown
                    | Refusal::Destination
                    | Refusal::Internal
            );
            assert_eq!(matches!(status(*reason), 429 | 503), mendable, "{}", reason.name());
        }
    }

    /// Clients read the type and the reason, and some the status, from the body.
    #[test]
    fn an_error_is_the_json_that_clients_expect() {
        for reason in Refusal::ALL {
            let mut out = Vec::new();
            shape(*reason)(&mut out, [b"no \"room\" for ", b"17", b" bytes\n"]);
            let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(json["status"], status(*reason), "{}", reason.name());
            assert_eq!(json["error"]["reason"], "no \"room\" for 17 bytes");
            assert_eq!(json["error"]["root_cause"][0]["type"], json["error"]["type"]);
        }
        let mut out = Vec::new();
        shape(Refusal::Memory)(&mut out, [b"later", b"", b""]);
        assert!(
            out.starts_with(b"{\"error\":{\"root_cause\":[{\"type\":\"es_rejected_execution_exception\"")
        );
    }
}
