//! The request head: its route, and the encoding of its body.

use super::fields::Fields;
use crate::otlp::encoding_of;
use tidegate_admission::{CannedRefusal, Rejection, RejectionText};
use tidegate_http1::Head;
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;

/// Where a request leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(super) route: Route,
    /// How much of the path is the prefix.
    pub(super) prefix: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Documents.
    Bulk(Bulk),
    /// Something that clients ask, or set up, before they send.
    Probe,
}

/// How a `_bulk` is written, and what its answer is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bulk {
    pub(super) encoding: Encoding,
    pub(super) fields: Fields,
}

/// The API, from the first part of the path.
const APIS: [&str; 24] = [
    "_alias",
    "_aliases",
    "_cache",
    "_cat",
    "_cluster",
    "_component_template",
    "_data_stream",
    "_flush",
    "_forcemerge",
    "_ilm",
    "_index_template",
    "_ingest",
    "_license",
    "_mapping",
    "_mappings",
    "_nodes",
    "_opendistro",
    "_plugins",
    "_refresh",
    "_security",
    "_settings",
    "_stats",
    "_template",
    "_xpack",
];

/// The wildcard for all indices in a path.
const ALL: &str = "_all";

/// The headers of an answer to another method than a `_bulk` has.
pub(crate) const ALLOWED: &[(&str, &str)] = &[("Allow", "POST, PUT"), ("X-Elastic-Product", "Elasticsearch")];

const NOTHING: &str = "no handler found: tidegate serves `_bulk` and the requests that clients make before it; search the documents in the destination cluster\n";

impl RequestHead {
    /// The form of a request to `path`, in front of which are `prefix` bytes.
    pub(super) fn of(head: &Head<'_>, path: &str, prefix: usize) -> Result<RequestHead, Rejection> {
        let prefix = u16::try_from(prefix).unwrap_or(u16::MAX);
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let first = parts.next();
        let last = parts.next_back().or(first);
        let method = head.method();
        if last == Some("_bulk") {
            // An index may come before, and before Elasticsearch 7 also a type.
            if !matches!(method, "POST" | "PUT") {
                let words = "documents are sent to `_bulk` with POST or PUT\n";
                return Err(Rejection::new(Refusal::Method, words));
            }
            if first != last && parts.count() > 1 {
                return Err(Rejection::new(Refusal::NotFound, NOTHING));
            }
            return Ok(RequestHead { route: Route::Bulk(bulk(head)?), prefix });
        }
        let known = match first {
            None => matches!(method, "GET" | "HEAD"),
            Some(api) if api.starts_with('_') && api != ALL => {
                APIS.contains(&api) && matches!(method, "GET" | "HEAD" | "PUT" | "POST" | "DELETE")
            }
            // An index, or all of them: whether it is there, and making it.
            Some(_) => match parts.next().or(last.filter(|last| Some(*last) != first)) {
                None => matches!(method, "GET" | "HEAD" | "PUT"),
                Some(api) => APIS.contains(&api),
            },
        };
        if known {
            return Ok(RequestHead { route: Route::Probe, prefix });
        }
        Err(Rejection::new(Refusal::NotFound, NOTHING))
    }

    /// Whether the request is answered although documents would be refused so now: what clients ask before they send
    /// brings none, and those that are refused it take the node for dead.
    pub(crate) fn is_heard(&self, refused: &Rejection) -> bool {
        use CannedRefusal::{DiskFails, DiskFull, Quota, RouteBytes, RouteItems, TenantBytes, TenantItems};
        let RejectionText::CannedRefusal(standing) = refused.words else { return false };
        let of_documents = [Quota, DiskFull, DiskFails, RouteItems, RouteBytes, TenantItems, TenantBytes]
            .contains(&standing);
        self.route == Route::Probe && of_documents
    }
}

fn bulk(head: &Head<'_>) -> Result<Bulk, Rejection> {
    let repeated = |_| {
        let words = "Content-Type and Content-Encoding may be given once\n";
        Rejection::new(Refusal::Headers, words)
    };
    let content_type = head.sole_header("content-type").map_err(repeated)?;
    let encoding = head.sole_header("content-encoding").map_err(repeated)?;
    if !content_type.is_none_or(is_lines) {
        let words = "the Content-Type must be application/x-ndjson or application/json\n";
        return Err(Rejection::new(Refusal::Unsupported, words));
    }
    let Some(encoding) = encoding.map_or(Some(Encoding::Identity), encoding_of) else {
        let words = "the Content-Encoding must be gzip or zstd, or none at all\n";
        return Err(Rejection::new(Refusal::Unsupported, words));
    };
    Ok(Bulk { encoding, fields: Fields::of(head.query().unwrap_or_default()) })
}

/// Whether a Content-Type is one of JSON, or of lines of it, in Elasticsearch's own spelling or not.
fn is_lines(content_type: &[u8]) -> bool {
    let name = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let names: [&[u8]; 5] = [
        b"application/x-ndjson",
        b"application/json",
        b"application/ndjson",
        b"application/vnd.elasticsearch+x-ndjson",
        b"application/vnd.elasticsearch+json",
    ];
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}
