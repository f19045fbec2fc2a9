//! Where rows come from: resources and scopes, each kept once per run and found again by their bytes.

use super::RowRejection;
use super::texts::{Text, Texts};
use crate::json::{self, ByteCounter, Stack};
use crate::pool::{Chunks, Pool};
use tidegate_wire::otlp::{self, AnyValue, Attributes, KeyValue};
use xxhash_rust::xxh64::xxh64;

/// Resource attributes that rows may have columns for: the most that a table promotes.
const PROMOTED: usize = 6;

/// A resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource {
    /// Its message and its schema's address, by which it is found again.
    raw: Text,
    pub(crate) schema_url: Text,
    /// Its attributes as canonical JSON.
    pub(crate) json: Text,
    pub(crate) service: Text,
    /// The values of those of the table's promoted attributes that it has, where they are strings.
    pub(crate) promoted: [Text; PROMOTED],
    /// xxh64 (seed 0) of the JSON.
    pub(crate) hash: u64,
    /// A bit for each promoted attribute that it has, of whatever type.
    pub(crate) has: u8,
}

/// A scope within a resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    raw: Text,
    pub(crate) schema_url: Text,
    pub(crate) resource: u32,
    pub(crate) name: Text,
    pub(crate) version: Text,
    pub(crate) attributes: Text,
}

/// The resources and scopes of one run.
#[derive(Debug)]
pub(crate) struct Origins {
    promoted: &'static [&'static str],
    resources: Chunks<Resource>,
    scopes: Chunks<Scope>,
    /// Places + 1 by hash, the last one of each.
    recent_resources: Vec<u32>,
    recent_scopes: Vec<u32>,
}

const RECENT: usize = 512;

/// A message, its schema's address and the number of what it is in.
#[derive(Clone, Copy)]
struct OriginKey<'a> {
    raw: &'a [u8],
    schema_url: &'a [u8],
    within: u32,
}

impl Origins {
    pub(crate) fn new(pool: &Pool, promoted: &'static [&'static str]) -> Self {
        Origins {
            promoted,
            resources: Chunks::sparse(pool),
            scopes: Chunks::sparse(pool),
            recent_resources: vec![0; RECENT],
            recent_scopes: vec![0; RECENT],
        }
    }

    /// The place of a resource, which is new when it was not seen lately.
    pub(crate) fn resource<'a>(
        &mut self,
        texts: &mut Texts,
        from: &otlp::Resource<'a>,
        schema_url: &[u8],
        stack: &mut Stack<'a>,
    ) -> Result<u32, RowRejection> {
        let raw = from.message();
        let slot = slot(&OriginKey { raw, schema_url, within: 0 });
        let known = self.recent_resources.get(slot).and_then(|place| place.checked_sub(1));
        if let Some((known, resource)) = known.and_then(|at| Some((at, self.resources.get(at as usize)?)))
            && texts.get(resource.raw) == raw
            && texts.get(resource.schema_url) == schema_url
        {
            return Ok(known);
        }
        let mut resource = Resource {
            raw: texts.add(raw)?,
            schema_url: optional(texts, schema_url)?,
            json: write_attributes(texts, from.attributes(), |_| true, stack)?,
            service: Text::EMPTY,
            hash: 0,
            promoted: [Text::NONE; PROMOTED],
            has: 0,
        };
        resource.hash = xxh64(texts.get(resource.json), 0);
        for attribute in from.attributes() {
            if let (b"service.name", AnyValue::Text(name)) = (attribute.key, attribute.value) {
                resource.service = keep_utf8(texts, name)?;
            }
            if let Some(place) = self.promoted.iter().position(|name| name.as_bytes() == attribute.key) {
                resource.has |= 1 << place;
                if let (Some(text), AnyValue::Text(value)) =
                    (resource.promoted.get_mut(place), attribute.value)
                {
                    *text = keep_utf8(texts, value)?;
                }
            }
        }
        let place = u32::try_from(self.resources.len()).unwrap_or(u32::MAX);
        self.resources.push(resource)?;
        if let Some(recent) = self.recent_resources.get_mut(slot) {
            *recent = place + 1;
        }
        Ok(place)
    }

    /// The place of a scope within a resource.
    pub(crate) fn scope<'a>(
        &mut self,
        texts: &mut Texts,
        resource: u32,
        from: &otlp::Scope<'a>,
        schema_url: &[u8],
        stack: &mut Stack<'a>,
    ) -> Result<u32, RowRejection> {
        let raw = from.message();
        let slot = slot(&OriginKey { raw, schema_url, within: resource });
        let known = self.recent_scopes.get(slot).and_then(|place| place.checked_sub(1));
        if let Some((known, scope)) = known.and_then(|at| Some((at, self.scopes.get(at as usize)?)))
            && scope.resource == resource
            && texts.get(scope.raw) == raw
            && texts.get(scope.schema_url) == schema_url
        {
            return Ok(known);
        }
        let has_attributes = from.attributes().next().is_some();
        let scope = Scope {
            raw: texts.add(raw)?,
            schema_url: optional(texts, schema_url)?,
            resource,
            name: optional(texts, from.name)?,
            version: optional(texts, from.version)?,
            attributes: if has_attributes {
                write_attributes(texts, from.attributes(), |_| true, stack)?
            } else {
                Text::NONE
            },
        };
        let place = u32::try_from(self.scopes.len()).unwrap_or(u32::MAX);
        self.scopes.push(scope)?;
        if let Some(recent) = self.recent_scopes.get_mut(slot) {
            *recent = place + 1;
        }
        Ok(place)
    }

    #[inline]
    pub(crate) fn scope_at(&self, place: u32) -> Option<&Scope> {
        self.scopes.get(place as usize)
    }

    #[inline]
    pub(crate) fn resource_at(&self, place: u32) -> Option<&Resource> {
        self.resources.get(place as usize)
    }

    /// The resource of a scope.
    #[inline]
    pub(crate) fn resource_of(&self, scope: u32) -> Option<&Resource> {
        self.resource_at(self.scope_at(scope)?.resource)
    }

    /// Bytes of the pool that they hold.
    pub(crate) fn held(&self) -> usize {
        self.resources.held() + self.scopes.held()
    }

    pub(crate) fn clear(&mut self) {
        self.resources.clear();
        self.scopes.clear();
        self.recent_resources.fill(0);
        self.recent_scopes.fill(0);
    }
}

fn slot(of: &OriginKey<'_>) -> usize {
    let hash = xxh64(of.raw, of.schema_url.len() as u64 + (u64::from(of.within) << 32));
    (hash % RECENT as u64) as usize
}

/// Those attributes that `wanted` says yes to, as an object.
#[inline]
pub(crate) fn write_attributes<'a>(
    texts: &mut Texts,
    attributes: Attributes<'a>,
    mut wanted: impl FnMut(&KeyValue<'a>) -> bool,
    stack: &mut Stack<'a>,
) -> Result<Text, RowRejection> {
    let from = stack.len();
    if !json::collect(attributes.clone(), &mut wanted, stack) {
        let all = || attributes.clone();
        let mut counter = ByteCounter::default();
        json::write_unsorted(all().filter(&mut wanted), &mut counter, stack);
        return write_utf8(texts, counter.0, |out| {
            json::write_unsorted(all().filter(&mut wanted), out, stack);
        });
    }
    let mut most = json::bound(from, stack);
    if most > SMALL {
        let mut counter = ByteCounter::default();
        json::write_collected(from, &mut counter, stack);
        most = counter.0;
    }
    let text = write_utf8(texts, most, |out| json::write_collected(from, out, stack));
    stack.truncate(from);
    text
}

/// Up to so many bytes of room are asked for without counting first.
pub(crate) const SMALL: usize = 6 << 10;

/// Adds what `write` writes, when it is UTF-8.
pub(crate) fn write_utf8(
    texts: &mut Texts,
    most: usize,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<Text, RowRejection> {
    let mark = texts.mark();
    let text = texts.write(most, write)?;
    if std::str::from_utf8(texts.get(text)).is_err() {
        texts.truncate(mark);
        return Err(RowRejection::Malformed);
    }
    Ok(text)
}

/// Adds a text, or finds it among the last ones, when it is UTF-8.
pub(crate) fn keep_utf8(texts: &mut Texts, text: &[u8]) -> Result<Text, RowRejection> {
    match std::str::from_utf8(text) {
        Ok(_) => texts.keep(text),
        Err(_) => Err(RowRejection::Malformed),
    }
}

/// The same, but no text where it is empty.
pub(crate) fn optional(texts: &mut Texts, text: &[u8]) -> Result<Text, RowRejection> {
    if text.is_empty() { Ok(Text::NONE) } else { keep_utf8(texts, text) }
}
