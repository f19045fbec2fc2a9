//! The labels of a request: attributes of the resource of all its records.

use std::borrow::Cow;
use tidegate_admission::{CannedRefusal, Rejection};
use tidegate_arena::{Arena, Charge, Share};
use tidegate_http1::Head;
use tidegate_ledger::Refusal;
use tidegate_wire::otlp::json::records::resource;
use tidegate_wire::percent;

/// Where labels are, besides the parameters of the query that begin with [`PARAMETER`].
const HEADER: &str = "x-tidegate-labels";
const PARAMETER: &[u8] = b"label.";
/// How many there may be, and how many bytes they may have together.
const MOST: usize = 64;
const MOST_BYTES: usize = 4 << 10;

/// Labels as a `Resource` of OTLP.
pub(super) struct Labels(Option<(Box<[u8]>, Charge)>);

impl Labels {
    /// The labels that a request has: those of its query, and then those of its header. Of several with the same name, the
    /// first.
    pub(super) fn of(head: &Head<'_>, arena: &Arena) -> Result<Labels, Rejection> {
        let query = head.query().unwrap_or_default().as_bytes().split(|byte| *byte == b'&');
        let query =
            query.filter_map(|parameter| parameter.strip_prefix(PARAMETER)).map(|label| (label, true));
        let header = head.values(HEADER).flat_map(|value| value.split(|byte| *byte == b','));
        let header = header.map(|label| (label.trim_ascii(), false)).filter(|(label, _)| !label.is_empty());
        let (mut labels, mut bytes) = (Vec::<(String, String)>::new(), 0);
        for (label, is_of_query) in query.chain(header) {
            bytes += label.len();
            if bytes > MOST_BYTES || labels.len() == MOST {
                return Err(refused("a request may have 64 labels, and 4 KiB of them\n"));
            }
            let Some((name, value)) = pair(label, is_of_query) else { return Err(refused(FORM)) };
            if !labels.iter().any(|(known, _)| *known == name) {
                labels.push((name, value));
            }
        }
        if labels.is_empty() {
            return Ok(Labels(None));
        }
        let resource = resource(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let charge = arena.try_charge(Share::Ingest, resource.len() as u64);
        let charge = charge.map_err(|_| Rejection::canned(CannedRefusal::Memory).retry_after(1))?;
        Ok(Labels(Some((resource.into(), charge))))
    }

    /// The resource; empty without labels.
    pub(super) fn resource(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |(resource, _charge)| resource)
    }
}

const FORM: &str = "labels are given as `label.NAME=VALUE` in the query, or as `X-Tidegate-Labels: NAME=VALUE,NAME=VALUE`, \
                    in UTF-8, percent-encoded where needed\n";

fn refused(words: &'static str) -> Rejection {
    Rejection::new(Refusal::Headers, words)
}

/// The name and the value of a label, as people read them.
fn pair(label: &[u8], is_of_query: bool) -> Option<(String, String)> {
    let split = label.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (label.get(..split)?.trim_ascii(), label.get(split + 1..)?.trim_ascii());
    let text = |bytes: &[u8]| {
        // In queries, `+` is a space.
        let plus = |byte: &u8| if is_of_query && *byte == b'+' { b' ' } else { *byte };
        let bytes: Vec<u8> = bytes.iter().map(plus).collect();
        percent::decode(&bytes).decode_utf8().ok().map(Cow::into_owned)
    };
    Some((text(name)?, text(value)?)).filter(|(name, _)| !name.is_empty())
}
