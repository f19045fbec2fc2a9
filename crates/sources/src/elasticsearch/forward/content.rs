//! Checks the body of a request that is to be forwarded, and reads its parameters.

use crate::body::{InspectionError, Received, decode};
use crate::elasticsearch::answer::{Name, ReservedBytes};
use crate::elasticsearch::request::Request;
use crate::elasticsearch::request_head::Bulk;
use crate::elasticsearch::rewrite::Defaults;
use crate::elasticsearch::rights::Guard;
use crate::elasticsearch::{RequestHead, can_be_sent};
use std::time::Duration;
use tidegate_admission::access::BulkRights;
use tidegate_admission::{DecodeBuffer, Gate, Rejection};
use tidegate_bulk::Refresh;
use tidegate_ledger::Refusal;
use tidegate_wire::bulk::{Counts, items};

/// The longest that a request waits for its answers: what is not sent by then is not sent at all.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The contents of a checked body.
pub(super) struct Content {
    /// Items that are forwarded.
    pub(super) taken: Counts,
    pub(super) left_out: u64,
    pub(super) denied: u64,
    pub(super) as_sent: usize,
    /// How many bytes the short entries of all items take.
    pub(super) promised: usize,
    pub(super) defaults: Defaults,
    pub(super) refresh: Refresh,
    pub(super) wait: Duration,
}

/// Checks a body, and decompresses it into its own window, since a request that waits must not hold decode memory.
pub(super) fn look(
    (gate, rights): (&Gate, &BulkRights),
    form: RequestHead,
    bulk: Bulk,
    body: &mut Received,
    room: Option<&mut DecodeBuffer>,
    most: usize,
) -> Result<Content, InspectionError> {
    let as_sent = body.range.len();
    let room = match room {
        None => None,
        Some(room) => {
            decode::decode(gate, bulk.encoding, body, room, most)?;
            Some(&*room)
        }
    };
    let raw: &[u8] = match room {
        Some(room) => room,
        None => body.bytes(),
    };
    let head = body.window.get(..body.range.start).unwrap_or_default();
    let request = Request::of(head, form.prefix);
    let refresh = refresh_of(&request)?;
    can_be_shared(&request)?;
    let wait = wait_of(&request);
    let defaults = Defaults::of(&request);
    let (mut taken, mut left_out, mut denied, mut promised) = (Counts::default(), 0, 0, 0);
    {
        let mut guard = Guard::new(rights);
        guard.request(&defaults)?;
        for item in items(raw) {
            let item = item.map_err(Rejection::malformed)?;
            can_be_sent(&item, &defaults)?;
            promised += Name::of(&item, &defaults).entry_len();
            if item.check().is_err() {
                left_out += 1;
            } else if guard.look(&item, &defaults).is_some() {
                denied += 1;
            } else {
                taken.count(&item, defaults.missing_len(&item.action));
            }
        }
    }
    if taken.items + left_out + denied == 0 {
        return Err(Rejection::new(Refusal::Malformed, "request body is required\n").into());
    }
    if let Some(room) = room {
        let Received { window, range } = body;
        let beside = ReservedBytes { ingest: window.charged(), decode: room.charged(), len: room.len() };
        window.clear();
        window.append(room).map_err(|refused| beside.short(gate, refused, room.len()))?;
        *range = 0..window.len();
    }
    Ok(Content { taken, left_out, denied, as_sent, promised, defaults, refresh, wait })
}

/// When the items are to be seen by searches.
fn refresh_of(request: &Request<'_>) -> Result<Refresh, Rejection> {
    match request.parameter("refresh").as_deref() {
        None | Some("false") => Ok(Refresh::No),
        Some("" | "true") => Ok(Refresh::Now),
        Some("wait_for") => Ok(Refresh::Wait),
        Some(_) => Err(Rejection::new(Refusal::Malformed, "`refresh` is `true`, `false` or `wait_for`\n")),
    }
}

/// Refuses what asks for something that requests to the destination, which many clients share, do not ask for.
fn can_be_shared(request: &Request<'_>) -> Result<(), Rejection> {
    let asks = |name, usual: &str| request.parameter(name).is_some_and(|value| value != usual);
    let words = if asks("wait_for_active_shards", "1") {
        "`wait_for_active_shards` cannot be forwarded: the requests to the destination are shared by many clients\n"
    } else if ["_source", "_source_includes", "_source_excludes"].into_iter().any(|name| asks(name, "false"))
    {
        "`_source` in the URL cannot be forwarded: set it in the action of each update\n"
    } else {
        return Ok(());
    };
    Err(Rejection::new(Refusal::Malformed, words))
}

/// How long the request may wait: its `timeout`, but not for ever.
fn wait_of(request: &Request<'_>) -> Duration {
    let asked = request.parameter("timeout");
    asked.and_then(|asked| duration(&asked)).map_or(LONGEST_WAIT, |asked| asked.min(LONGEST_WAIT))
}

/// A time as Elasticsearch writes it: `500ms`, `1m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "nanos" => Some(Duration::from_nanos(number)),
        "micros" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.saturating_mul(60))),
        "h" => Some(Duration::from_secs(number.saturating_mul(3600))),
        "d" => Some(Duration::from_secs(number.saturating_mul(86_400))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_elasticsearch_writes_them() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!((duration("soon"), duration(""), duration("-1")), (None, None, None));
        let request = Request { query: "timeout=1h", ..Request::default() };
        assert_eq!(wait_of(&request), LONGEST_WAIT);
    }

    #[test]
    fn parameters_that_a_shared_request_cannot_have_are_refused() {
        let of = |query| can_be_shared(&Request { query, ..Request::default() }).is_ok();
        assert!(of("refresh=true&wait_for_active_shards=1&_source=false"));
        assert!(!of("wait_for_active_shards=all") && !of("_source=true") && !of("_source_includes=a"));
    }
}
