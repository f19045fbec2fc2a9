//! `GET /console/rejects`: the last refused requests, and how many were refused by reason.

use crate::gateway::Gateway;
use crate::page_buffer::PageBuffer;
use crate::status::raw;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use std::io::Write as _;
use std::time::{Duration, SystemTime};
use tidegate_ledger::{Balance, RecentRefusal, Refusal};

/// A refused request as the page gets it.
#[derive(Serialize)]
struct RejectedRequest<'a> {
    #[serde(serialize_with = "raw::moment")]
    at: SystemTime,
    source: &'a str,
    reason: &'static str,
    /// The reason in a sentence.
    meaning: &'static str,
    peer: Option<std::net::SocketAddr>,
    tenant: Option<&'a str>,
    bytes: Option<u64>,
    what: Option<&'a str>,
    detail: Option<&'a str>,
}

/// Writes `{"requests":[…],"by_reason":[{"reason":…,"count":…},…]}`: the newest requests first, the most frequent reasons first.
pub(crate) fn write_json(
    gateway: &dyn Gateway,
    books: &Balance,
    out: &mut PageBuffer,
) -> serde_json::Result<()> {
    let io = serde_json::Error::io;
    out.write_all(b"{\"requests\":[").map_err(io)?;
    let mut written = Ok(());
    let mut separator: &[u8] = b"";
    gateway.recent_refusals(&mut |refusal| {
        if written.is_ok() {
            written = out
                .write_all(separator)
                .map_err(io)
                .and_then(|()| serde_json::to_writer(&mut *out, &RejectedRequest::of(refusal)));
            separator = b",";
        }
    });
    written?;
    out.write_all(b"],\"by_reason\":").map_err(io)?;
    serde_json::to_writer(&mut *out, &ByReason::of(books))?;
    out.write_all(b"}").map_err(io)
}

impl<'a> RejectedRequest<'a> {
    fn of(refusal: &'a RecentRefusal) -> RejectedRequest<'a> {
        let known = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        RejectedRequest {
            at: SystemTime::UNIX_EPOCH + Duration::from_nanos(refusal.at_ns),
            source: refusal.source.as_str(),
            reason: refusal.reason.name(),
            meaning: refusal.reason.description(),
            peer: refusal.peer,
            tenant: known(refusal.tenant.as_str()),
            bytes: refusal.bytes,
            what: known(refusal.target.as_str()),
            detail: known(refusal.words.as_str()),
        }
    }
}

/// Refused requests since the start.
struct ByReason(Vec<(Refusal, u64)>);

impl ByReason {
    fn of(books: &Balance) -> ByReason {
        let of_reason = |reason: &Refusal| {
            let refused = books.sources.iter().flat_map(|source| &source.refused);
            (*reason, refused.filter(|(known, _)| known == reason).map(|(_, count)| count).sum())
        };
        let mut counts: Vec<(Refusal, u64)> =
            Refusal::ALL.iter().map(of_reason).filter(|(_, count)| *count > 0).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        ByReason(counts)
    }
}

impl Serialize for ByReason {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        struct Count(Refusal, u64);
        impl Serialize for Count {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                let mut map = out.serialize_map(Some(3))?;
                map.serialize_entry("reason", self.0.name())?;
                map.serialize_entry("meaning", self.0.description())?;
                map.serialize_entry("count", &self.1)?;
                map.end()
            }
        }
        out.collect_seq(self.0.iter().map(|(reason, count)| Count(*reason, *count)))
    }
}
