//! The body's format, from the request head.

use super::labels::Labels;
use crate::clock::now_ns;
use crate::otlp::encoding_over_http;
use tidegate_admission::Rejection;
use tidegate_arena::Arena;
use tidegate_http1::Head;
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;
use tidegate_wire::otlp::json::records::{Layout, Request};

/// How a body is to be read.
pub(super) struct BodyFormat {
    pub(super) layout: Layout,
    pub(super) encoding: Encoding,
    pub(super) labels: Labels,
}

impl BodyFormat {
    /// How the records of a request that came now are read.
    pub(super) fn request(&self) -> Request<'_> {
        Request { layout: self.layout, resource: self.labels.resource(), received_ns: now_ns() }
    }

    /// The form of a request, whose labels are kept in memory of `arena`.
    pub(super) fn of(head: &Head<'_>, arena: &Arena) -> Result<BodyFormat, Rejection> {
        if head.method() != "POST" {
            return Err(Rejection::new(Refusal::Method, "log records are sent with POST\n"));
        }
        let twice =
            |_| Rejection::new(Refusal::Headers, "Content-Type and Content-Encoding may be given once\n");
        let content_type = head.sole_header("content-type").map_err(twice)?;
        let encoding = head.sole_header("content-encoding").map_err(twice)?;
        let Some(layout) = content_type.map_or(Some(Layout::Text), layout_of) else {
            let words = "the Content-Type must be application/x-ndjson, application/json or text/plain\n";
            return Err(Rejection::new(Refusal::Unsupported, words));
        };
        let Some(encoding) = encoding.map_or(Some(Encoding::Identity), encoding_over_http) else {
            let words = "the Content-Encoding must be gzip, zstd or deflate, or none at all\n";
            return Err(Rejection::new(Refusal::Unsupported, words));
        };
        Ok(BodyFormat { layout, encoding, labels: Labels::of(head, arena)? })
    }
}

/// How a body of this Content-Type is divided; its parameters say nothing that matters.
fn layout_of(content_type: &[u8]) -> Option<Layout> {
    const NAMES: [(&[u8], Layout); 6] = [
        (b"", Layout::Text),
        (b"text/plain", Layout::Text),
        (b"application/json", Layout::Objects),
        (b"application/x-ndjson", Layout::Lines),
        (b"application/ndjson", Layout::Lines),
        (b"application/jsonl", Layout::Lines),
    ];
    let name = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, layout)| *layout)
}
