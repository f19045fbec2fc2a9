//! The walk that decides whether a body is accepted, and counts what is in it.

mod attribute;
mod field;
mod log;
mod metric;
mod point;
mod profile;
mod retain_valid;
mod trace;

pub(super) use attribute::DEEP_BYTES;
pub use retain_valid::RetainedItems;
pub(super) use retain_valid::retain_valid;

use super::Signal;
use super::error::OtlpError;
use super::request::field::{MEMBERS, OWNER, RESOURCES, SCHEMA_URL};
use crate::proto::{Malformed, Reader};
use field::{SeenFields, text};

/// The contents of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The items of the books: spans, log records, data points of any kind, profiles.
    pub items: u64,
    /// Resources.
    pub resources: u64,
    /// Scopes.
    pub scopes: u64,
    /// Events of spans.
    pub events: u64,
    /// Links of spans.
    pub links: u64,
    /// Metrics.
    pub metrics: u64,
    /// Of the items: points of histograms, with bounds given or exponential.
    pub histograms: u64,
    /// Of the items: points of summaries.
    pub summaries: u64,
    /// Exemplars of points.
    pub exemplars: u64,
    /// The bytes of the largest item with all that encloses it: its resource, its scope and, of a point, what its
    /// metric says about all of them. A request that has no other item is no longer than that.
    pub largest_item: usize,
}

/// Checks a whole body.
pub(super) fn check(signal: Signal, raw: &[u8]) -> Result<Counts, OtlpError> {
    let mut counts = Counts::default();
    match signal {
        Signal::Traces => request(raw, "span", &mut counts, trace::span)?,
        Signal::Metrics => request(raw, "metric", &mut counts, metric::metric)?,
        Signal::Logs => request(raw, "log record", &mut counts, log::record)?,
        Signal::Profiles => request(raw, "profile", &mut counts, profile::profile)?,
    }
    Ok(counts)
}

/// The length of an item of `len` bytes: of one without fields, too, at least one, so that zero says that there is
/// none.
#[inline(always)]
fn whole(len: usize) -> usize {
    len.max(1)
}

/// Checks an item, counts it, and returns the length of its largest item with its enclosing messages.
trait CheckItem: Copy + Fn(Reader<'_>, &mut Counts) -> Result<usize, OtlpError> {}
impl<F: Copy + Fn(Reader<'_>, &mut Counts) -> Result<usize, OtlpError>> CheckItem for F {}

/// How much of a message its members take, and the largest item in one of them.
#[derive(Default)]
struct Members {
    bytes: usize,
    largest: usize,
}

impl Members {
    /// Notes a member that was `from` before its key, has `len` bytes without key and length, and in it an item of
    /// `largest` bytes; `reader` stands behind it.
    #[inline(always)]
    fn note(&mut self, from: usize, reader: &Reader<'_>, len: usize, largest: usize) {
        let bytes = from.saturating_sub(reader.rest().len());
        self.bytes += bytes;
        if largest > 0 {
            self.largest = self.largest.max(largest + bytes.saturating_sub(len));
        }
    }

    /// The largest item with what encloses it in a message of `len` bytes; zero when there is none.
    #[inline(always)]
    fn enclosed(&self, len: usize) -> usize {
        if self.largest == 0 { 0 } else { self.largest + len.saturating_sub(self.bytes) }
    }
}

#[inline(always)]
fn request(
    raw: &[u8],
    kind: &'static str,
    counts: &mut Counts,
    item: impl CheckItem,
) -> Result<(), OtlpError> {
    let mut reader = Reader::new(raw);
    let mut resources = 0;
    let mut members = Members::default();
    let mut from = raw.len();
    while let Some(key) = reader.key()? {
        match key.field {
            RESOURCES => {
                let group = reader.message(key)?;
                let largest = resource_group(group, kind, counts, item)
                    .map_err(|error| error.within("resource", resources))?;
                members.note(from, &reader, group.rest().len(), largest);
                resources += 1;
            }
            // Only requests of profiles have one.
            profile::DICTIONARY if kind == "profile" => profile::fields(reader.message(key)?)?,
            _ => reader.skip(key)?,
        }
        from = reader.rest().len();
    }
    counts.resources = resources;
    counts.largest_item = members.enclosed(raw.len());
    Ok(())
}

#[inline(always)]
fn resource_group(
    mut group: Reader<'_>,
    kind: &'static str,
    counts: &mut Counts,
    item: impl CheckItem,
) -> Result<usize, OtlpError> {
    let mut scopes = 0;
    let mut once = SeenFields::default();
    let mut members = Members::default();
    let len = group.rest().len();
    let mut from = len;
    while let Some(key) = group.key()? {
        match key.field {
            OWNER => {
                once.first(key, &group, "the resource")?;
                attribute::resource(group.message(key)?)?;
            }
            MEMBERS => {
                let scope = group.message(key)?;
                let largest =
                    scope_group(scope, kind, counts, item).map_err(|error| error.within("scope", scopes))?;
                members.note(from, &group, scope.rest().len(), largest);
                scopes += 1;
            }
            SCHEMA_URL => text(&mut group, key, "schema_url")?,
            _ => group.skip(key)?,
        }
        from = group.rest().len();
    }
    counts.scopes += scopes;
    Ok(members.enclosed(len))
}

#[inline(always)]
fn scope_group(
    mut group: Reader<'_>,
    kind: &'static str,
    counts: &mut Counts,
    item: impl CheckItem,
) -> Result<usize, OtlpError> {
    let mut items = 0;
    let mut once = SeenFields::default();
    let mut members = Members::default();
    let len = group.rest().len();
    let mut from = len;
    while let Some(key) = group.key()? {
        match key.field {
            OWNER => {
                once.first(key, &group, "the scope")?;
                attribute::scope(group.message(key)?)?;
            }
            MEMBERS => {
                let message: Result<Reader<'_>, Malformed> = group.message(key);
                let message = message?;
                let largest = item(message, counts).map_err(|error| error.within(kind, items))?;
                members.note(from, &group, message.rest().len(), largest);
                items += 1;
            }
            SCHEMA_URL => text(&mut group, key, "schema_url")?,
            _ => group.skip(key)?,
        }
        from = group.rest().len();
    }
    Ok(members.enclosed(len))
}
