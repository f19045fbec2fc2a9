//! Routing by a key: takes a request apart into runs of items with one key, and puts runs together to requests.
//!
//! One walk over the encoded body; nothing is decoded. An item is a span, a log record or a metric with all its points.

mod write;

pub use write::RouteWriter;

use super::Signal;
use super::split::{Level, items_at, next_member};
use crate::proto::{Reader, WireType};
use xxhash_rust::xxh64::{Xxh64, xxh64};

/// The most bytes of a run, but for its first item.
const LONGEST_RUN: usize = 64 << 10;
const SERVICE_NAME: &[u8] = b"service.name";

/// The key that decides where an item goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKey {
    /// The trace id of a span or a log record. Items without one go by their resource.
    TraceId,
    /// The attribute `service.name` of the resource, as far as it is a string; resources without it have the empty name.
    Service,
    /// All attributes of the resource, in any order.
    Resource,
    /// The name of a metric.
    MetricName,
}

impl RouteKey {
    /// Whether items of this signal have the key.
    #[must_use]
    pub const fn is_of(self, signal: Signal) -> bool {
        match (self, signal) {
            // A profile refers to a table of its request.
            (_, Signal::Profiles) => false,
            (RouteKey::TraceId, signal) => matches!(signal, Signal::Traces | Signal::Logs),
            (RouteKey::MetricName, signal) => matches!(signal, Signal::Metrics),
            (RouteKey::Service | RouteKey::Resource, _) => true,
        }
    }
}

/// Items in a row that have one key, one resource and one scope.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The hash of their key.
    pub hash: u64,
    /// How many items they are, as [`check`](super::check) counts them: of metrics their points.
    pub items: u64,
    signal: Signal,
    resource: Group<'a>,
    scope: Group<'a>,
    /// Whole fields of the scope, as they stand in the body.
    members: &'a [u8],
}

/// A message around items, and its number in the body.
#[derive(Debug, Clone, Copy)]
struct Group<'a> {
    level: Level<'a>,
    number: u32,
}

impl Run<'_> {
    /// The bytes of its items.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a run is never empty")]
    pub fn len(&self) -> usize {
        self.members.len()
    }
}

/// The runs of a body.
#[derive(Debug, Clone)]
pub struct Route<'a> {
    signal: Signal,
    key: RouteKey,
    request: Reader<'a>,
    resource: Option<(Group<'a>, Reader<'a>)>,
    /// The key of the present resource, once it is known.
    resource_hash: Option<u64>,
    scope: Option<(Group<'a>, Reader<'a>)>,
    number: u32,
}

/// Takes the checked body `raw` apart. Resources and scopes without items are left out. A key that the items of this signal do not have
/// ([`RouteKey::is_of`]) is the same for all of them.
#[must_use]
pub fn route(signal: Signal, raw: &[u8], key: RouteKey) -> Route<'_> {
    let request = Reader::new(raw);
    Route { signal, key, request, resource: None, resource_hash: None, scope: None, number: 0 }
}

impl<'a> Iterator for Route<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        loop {
            let Some((scope, mut reader)) = self.scope else {
                self.enter_scope()?;
                continue;
            };
            let Some(run) = self.run(scope, &mut reader) else {
                self.scope = None;
                continue;
            };
            self.scope = Some((scope, reader));
            return Some(run);
        }
    }
}

impl<'a> Route<'a> {
    /// Goes to the next scope; nothing when there is none.
    fn enter_scope(&mut self) -> Option<()> {
        loop {
            if let Some((_, reader)) = &mut self.resource
                && let Some(member) = next_member(self.signal, 1, reader)
            {
                let level = Level::new(self.signal, 2, member.payload, member.field);
                let group = Group { level, number: self.next_number() };
                self.scope = Some((group, Reader::new(member.payload)));
                return Some(());
            }
            let member = next_member(self.signal, 0, &mut self.request)?;
            let level = Level::new(self.signal, 1, member.payload, member.field);
            let group = Group { level, number: self.next_number() };
            self.resource = Some((group, Reader::new(member.payload)));
            self.resource_hash = None;
        }
    }

    fn next_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// The next run of a scope.
    fn run(&mut self, scope: Group<'a>, reader: &mut Reader<'a>) -> Option<Run<'a>> {
        let (resource, _) = self.resource?;
        let first = next_member(self.signal, 2, reader)?;
        let hash = self.hash(&resource, first.payload);
        let mut items = items_at(self.signal, 3, first.payload);
        let mut ahead = *reader;
        while let Some(member) = next_member(self.signal, 2, &mut ahead) {
            let is_adjacent = member.before.offset() == reader.offset();
            let is_short = first.before.until(&ahead).len() <= LONGEST_RUN;
            if !is_adjacent || !is_short || self.hash(&resource, member.payload) != hash {
                break;
            }
            items += items_at(self.signal, 3, member.payload);
            *reader = ahead;
        }
        let members = first.before.until(reader);
        Some(Run { hash, items, signal: self.signal, resource, scope, members })
    }

    /// The hash of an item's key.
    fn hash(&mut self, resource: &Group<'a>, item: &[u8]) -> u64 {
        let own = match self.key {
            RouteKey::TraceId => trace_id(self.signal, item),
            RouteKey::MetricName => Some(last_bytes(item, 1)),
            RouteKey::Service | RouteKey::Resource => None,
        };
        match own {
            Some(key) => xxh64(key, 0),
            None => *self.resource_hash.get_or_insert_with(|| match self.key {
                RouteKey::Service => xxh64(service_name(resource.level.message), 0),
                _ => identity(resource.level.message),
            }),
        }
    }
}

/// A valid trace id of a span or a log record.
fn trace_id(signal: Signal, item: &[u8]) -> Option<&[u8]> {
    let field = match signal {
        Signal::Traces => 1,
        Signal::Logs => 9,
        Signal::Metrics | Signal::Profiles => return None,
    };
    let id = last_bytes(item, field);
    id.iter().any(|byte| *byte != 0).then_some(id)
}

/// The field of bytes with this number; the last one, as the rules of protobuf have it.
fn last_bytes(message: &[u8], field: u32) -> &[u8] {
    fields(message, field).last().unwrap_or_default()
}

/// The fields of bytes with this number.
fn fields(message: &[u8], field: u32) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            let key = reader.key().ok()??;
            if key.field == field && key.wire == WireType::Length {
                return reader.bytes(key).ok();
            }
            reader.skip(key).ok()?;
        }
    })
}

/// The attributes of the resource that a group is of.
fn attributes(group: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(group, 1).flat_map(|resource| fields(resource, 1))
}

fn service_name(group: &[u8]) -> &[u8] {
    let value = attributes(group).find(|attribute| last_bytes(attribute, 1) == SERVICE_NAME);
    value.map(|attribute| last_bytes(last_bytes(attribute, 2), 1)).unwrap_or_default()
}

/// The hash of all attributes of a group's resource, which their order does not change.
fn identity(group: &[u8]) -> u64 {
    let (mut sum, mut count) = (0_u64, 0_u64);
    for attribute in attributes(group) {
        sum = sum.wrapping_add(xxh64(attribute, 0));
        count += 1;
    }
    let mut hasher = Xxh64::new(0);
    hasher.update(&sum.to_le_bytes());
    hasher.update(&count.to_le_bytes());
    hasher.digest()
}

#[cfg(test)]
mod tests;
