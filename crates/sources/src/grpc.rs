//! gRPC's framing of one message each way, without the rest of gRPC.
//!
//! Specification: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>, and beside it
//! `compression.md` and `statuscodes.md`, which say what is wrong with which code.

use crate::otlp::{BodyFormat, SERVICES, encoding_of};
use http::request::Parts;
use std::time::Duration;
use tidegate_admission::otlp::Media;
use tidegate_admission::{Code, Rejection};
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;

/// The bytes before a message: whether it is compressed, and its length.
pub(crate) const PREFIX: usize = 5;
/// The value of `grpc-encoding` in answers.
pub(crate) const ENCODINGS: &str = "identity,gzip,zstd";

/// Why a call is refused, with the code that gRPC has for it where that is not the reason's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) refused: Rejection,
    pub(crate) code: Option<Code>,
}

impl From<Rejection> for CallError {
    fn from(refused: Rejection) -> CallError {
        CallError { refused, code: None }
    }
}

/// Whether a request is a call: anything else is HTTP.
pub(crate) fn is_call(parts: &Parts) -> bool {
    let content_type = parts.headers.get("content-type").map(|value| value.as_bytes());
    content_type.and_then(|value| value.get(..16)).is_some_and(|start| start == b"application/grpc")
}

/// A call's metadata from its head. The message may be uncompressed, whatever the head claims.
pub(crate) fn form(parts: &Parts) -> Option<Result<BodyFormat, Rejection>> {
    let (signal, ..) = SERVICES.iter().find(|(_, _, method)| *method == parts.uri.path())?;
    let encoding = parts
        .headers
        .get("grpc-encoding")
        .map_or(Some(Encoding::Identity), |value| encoding_of(value.as_bytes()));
    let content_type = parts.headers.get("content-type").map(|value| value.as_bytes()).unwrap_or_default();
    let kind = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let form = match encoding {
        _ if parts.method != http::Method::POST => Err(Rejection::new(Refusal::Method, "a call is a POST\n")),
        _ if !matches!(kind, b"application/grpc" | b"application/grpc+proto") => {
            Err(Rejection::new(Refusal::Unsupported, "only protobuf messages are supported\n"))
        }
        None => Err(Rejection::new(Refusal::Unsupported, "grpc-encoding must be gzip, zstd or identity\n")),
        Some(encoding) => Ok(BodyFormat { signal: *signal, encoding, media: Media::Protobuf }),
    };
    Some(form)
}

/// How long the caller waits, by its `grpc-timeout`: at most eight digits and a unit. What is not that is
/// ignored.
pub(crate) fn timeout(parts: &Parts) -> Option<Duration> {
    let value = parts.headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// The prefix of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    compressed: bool,
    /// Bytes of the message.
    pub(crate) len: usize,
}

impl Prefix {
    /// The prefix at the start of `bytes`, when all of it is there.
    pub(crate) fn of(bytes: &[u8]) -> Option<Result<Prefix, CallError>> {
        let (&[flag, a, b, c, d], _) = bytes.split_first_chunk::<PREFIX>()?;
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        Some(match flag {
            0 | 1 => Ok(Prefix { compressed: flag == 1, len }),
            _ => Err(broken("the first byte of a message must be 0 or 1\n")),
        })
    }

    /// How the message is compressed, in a call that named `encoding`.
    pub(crate) fn encoding(self, encoding: Encoding) -> Result<Encoding, CallError> {
        match (self.compressed, encoding) {
            (true, Encoding::Identity) => {
                Err(broken("the message is marked as compressed, but the header grpc-encoding is missing\n"))
            }
            (true, encoding) => Ok(encoding),
            (false, _) => Ok(Encoding::Identity),
        }
    }
}

/// The framing itself breaks a rule.
pub(crate) fn broken(words: &'static str) -> CallError {
    CallError { refused: Rejection::new(Refusal::Malformed, words), code: Some(Code::Internal) }
}

/// A call carries another number of messages than one.
pub(crate) fn not_one_message(words: &'static str) -> CallError {
    CallError { refused: Rejection::new(Refusal::Malformed, words), code: Some(Code::Unimplemented) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(headers: &[(&'static str, &str)]) -> Parts {
        let mut request = http::Request::post(SERVICES[0].2);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn timeouts_are_read_as_the_specification_has_them() {
        let table = [
            ("1S", Some(Duration::from_secs(1))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("100m", Some(Duration::from_millis(100))),
            ("7u", Some(Duration::from_micros(7))),
            ("0n", Some(Duration::ZERO)),
            ("100000000S", None),
            ("S", None),
            ("1", None),
            ("-1S", None),
            ("+1S", None),
            ("1x", None),
            ("1é", None),
            ("", None),
        ];
        for (value, expected) in table {
            assert_eq!(timeout(&parts(&[("grpc-timeout", value)])), expected, "{value}");
        }
    }

    #[test]
    fn a_call_is_known_by_its_content_type() {
        for (value, call) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;x=y", true),
            ("application/json", false),
            ("application/x-protobuf", false),
        ] {
            assert_eq!(is_call(&parts(&[("content-type", value)])), call, "{value}");
        }
        assert!(!is_call(&parts(&[])));
    }

    #[test]
    fn a_message_is_compressed_when_its_own_flag_says_so() {
        let prefix = |bytes| Prefix::of(bytes).unwrap();
        let plain = prefix(b"\0\0\0\x01\0rest").unwrap();
        assert_eq!((plain.len, plain.encoding(Encoding::Gzip).unwrap()), (256, Encoding::Identity));
        let compressed = prefix(b"\x01\0\0\0\x07").unwrap();
        assert_eq!(compressed.encoding(Encoding::Zstd).unwrap(), Encoding::Zstd);
        assert_eq!(compressed.encoding(Encoding::Identity).unwrap_err().code, Some(Code::Internal));
        assert_eq!(prefix(b"\x02\0\0\0\0").unwrap_err().code, Some(Code::Internal));
        assert_eq!(Prefix::of(b"\0\0\0\0"), None, "not all of it is there");
    }
}
