//! The body's format, from the request head.

use crate::otlp::encoding_over_http;
use tidegate_admission::Rejection;
use tidegate_http1::Head;
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;
use tidegate_wire::loki::Format;

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyFormat {
    pub(super) format: Format,
    pub(super) encoding: Encoding,
}

impl BodyFormat {
    /// The format of a request. As in Loki, everything that is not `application/json` is protobuf in Snappy, whether or not
    /// it says so.
    pub(super) fn of(head: &Head<'_>) -> Result<BodyFormat, Rejection> {
        if head.method() != "POST" {
            return Err(Rejection::new(Refusal::Method, "log lines are pushed with POST\n"));
        }
        let twice =
            |_| Rejection::new(Refusal::Headers, "Content-Type and Content-Encoding may be given once\n");
        let content_type = head.sole_header("content-type").map_err(twice)?.unwrap_or_default();
        let encoding = head.sole_header("content-encoding").map_err(twice)?.unwrap_or_default();
        let media = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if media.eq_ignore_ascii_case(b"application/json") {
            let encoding = encoding_over_http(encoding).ok_or(Rejection::new(
                Refusal::Unsupported,
                "the Content-Encoding of JSON must be gzip, zstd or deflate, or none at all\n",
            ))?;
            return Ok(BodyFormat { format: Format::Json, encoding });
        }
        if !encoding.trim_ascii().is_empty() && !encoding.eq_ignore_ascii_case(b"snappy") {
            let words = "the Content-Encoding of protobuf must be snappy, in the block format\n";
            return Err(Rejection::new(Refusal::Unsupported, words));
        }
        Ok(BodyFormat { format: Format::Protobuf, encoding: Encoding::Snappy })
    }
}
