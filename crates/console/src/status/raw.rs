//! How values look in JSON: raw, in base units.

use jiff::Timestamp;
use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};
use tidegate_ledger::{Balance, Dropped};

/// A length of time, in seconds.
pub(crate) fn seconds<S: Serializer>(span: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(span.as_secs_f64())
}

/// A length of time in seconds, or null.
pub(crate) fn maybe_seconds<S: Serializer>(span: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(out)
}

/// A moment as RFC 3339; null where the calendar ends.
pub(crate) fn moment<S: Serializer>(at: &SystemTime, out: S) -> Result<S::Ok, S::Error> {
    match Timestamp::try_from(*at) {
        Ok(at) => out.collect_str(&at),
        Err(_) => out.serialize_none(),
    }
}

/// A moment as RFC 3339, or null.
pub(crate) fn maybe_moment<S: Serializer>(at: &Option<SystemTime>, out: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => moment(at, out),
        None => out.serialize_none(),
    }
}

/// Items by reason.
pub(crate) fn by_reason<S: Serializer>(dropped: &[(Dropped, u64)], out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(Some(dropped.len()))?;
    for (reason, items) in dropped {
        map.serialize_entry(reason.name(), items)?;
    }
    map.end()
}

/// Counts by name.
pub(crate) fn by_name<S: Serializer>(counts: &[(&'static str, u64)], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(counts.iter().copied())
}

/// The books, in the ledger's own words.
pub(crate) fn books<S: Serializer>(books: &Balance, out: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(books.json()).map_err(S::Error::custom)?.serialize(out)
}
