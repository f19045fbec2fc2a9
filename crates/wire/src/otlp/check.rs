//! The walk that decides whether a body is accepted, and counts what is in it.

mod attribute;
mod field;
mod log;
mod metric;
mod point;
mod profile;
mod trace;

use super::Signal;
use super::fault::Fault;
use super::request::field::{MEMBERS, OWNER, RESOURCES, SCHEMA_URL};
use crate::proto::{Malformed, Reader};
use field::{Once, text};

/// What a body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// What the books count: spans, log records, data points of any kind, profiles.
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
}

/// Checks a whole body.
pub(super) fn check(signal: Signal, raw: &[u8]) -> Result<Counts, Fault> {
    let mut counts = Counts::default();
    match signal {
        Signal::Traces => request(raw, "span", &mut counts, trace::span)?,
        Signal::Metrics => request(raw, "metric", &mut counts, metric::metric)?,
        Signal::Logs => request(raw, "log record", &mut counts, log::record)?,
        Signal::Profiles => request(raw, "profile", &mut counts, profile::profile)?,
    }
    Ok(counts)
}

/// What checks an item, and counts it.
trait CheckItem: Copy + Fn(Reader<'_>, &mut Counts) -> Result<(), Fault> {}
impl<F: Copy + Fn(Reader<'_>, &mut Counts) -> Result<(), Fault>> CheckItem for F {}

#[inline(always)]
fn request(raw: &[u8], kind: &'static str, counts: &mut Counts, item: impl CheckItem) -> Result<(), Fault> {
    let mut reader = Reader::new(raw);
    let mut resources = 0;
    while let Some(key) = reader.key()? {
        match key.field {
            RESOURCES => {
                resource_group(reader.message(key)?, kind, counts, item)
                    .map_err(|fault| fault.within("resource", resources))?;
                resources += 1;
            }
            // Only requests of profiles have one.
            profile::DICTIONARY if kind == "profile" => profile::fields(reader.message(key)?)?,
            _ => reader.skip(key)?,
        }
    }
    counts.resources = resources;
    Ok(())
}

#[inline(always)]
fn resource_group(
    mut group: Reader<'_>,
    kind: &'static str,
    counts: &mut Counts,
    item: impl CheckItem,
) -> Result<(), Fault> {
    let mut scopes = 0;
    let mut once = Once::default();
    while let Some(key) = group.key()? {
        match key.field {
            OWNER => {
                once.take(key, &group, "the resource")?;
                attribute::resource(group.message(key)?)?;
            }
            MEMBERS => {
                scope_group(group.message(key)?, kind, counts, item)
                    .map_err(|fault| fault.within("scope", scopes))?;
                scopes += 1;
            }
            SCHEMA_URL => text(&mut group, key, "schema_url")?,
            _ => group.skip(key)?,
        }
    }
    counts.scopes += scopes;
    Ok(())
}

#[inline(always)]
fn scope_group(
    mut group: Reader<'_>,
    kind: &'static str,
    counts: &mut Counts,
    item: impl CheckItem,
) -> Result<(), Fault> {
    let mut items = 0;
    let mut once = Once::default();
    while let Some(key) = group.key()? {
        match key.field {
            OWNER => {
                once.take(key, &group, "the scope")?;
                attribute::scope(group.message(key)?)?;
            }
            MEMBERS => {
                let message: Result<Reader<'_>, Malformed> = group.message(key);
                item(message?, counts).map_err(|fault| fault.within(kind, items))?;
                items += 1;
            }
            SCHEMA_URL => text(&mut group, key, "schema_url")?,
            _ => group.skip(key)?,
        }
    }
    Ok(())
}
