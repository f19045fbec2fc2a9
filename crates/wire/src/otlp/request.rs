//! The envelope, which is the same for every signal: resources, their scopes, and the items of those.

use super::attribute::{Resource, Scope};
use super::log::LogRecord;
use super::metric::Metric;
use super::profile::Profile;
use super::trace::Span;
use crate::proto::{Messages, Reader};
use std::marker::PhantomData;

/// Field numbers.
pub(super) mod field {
    /// Of the request.
    pub(crate) const RESOURCES: u32 = 1;
    /// Of a resource group: the resource; of a scope group: the scope.
    pub(crate) const OWNER: u32 = 1;
    /// Of a resource group: scope groups; of a scope group: items.
    pub(crate) const MEMBERS: u32 = 2;
    /// Of both groups.
    pub(crate) const SCHEMA_URL: u32 = 3;
}

/// The items of a scope: [`Span`], [`LogRecord`], [`Metric`] or [`Profile`].
pub trait Item<'a>: Sized {
    /// Reads one from its encoded message; `None` when that is malformed.
    fn read(message: &'a [u8]) -> Option<Self>;
}

/// An export request whose items are `T`.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a, T> {
    raw: &'a [u8],
    items: PhantomData<T>,
}

/// A request of traces.
pub type TracesRequest<'a> = Request<'a, Span<'a>>;
/// A request of metrics.
pub type MetricsRequest<'a> = Request<'a, Metric<'a>>;
/// A request of logs.
pub type LogsRequest<'a> = Request<'a, LogRecord<'a>>;
/// A request of profiles; its dictionary is not shown.
pub type ProfilesRequest<'a> = Request<'a, Profile<'a>>;

/// The items of one resource: `ResourceSpans`, `ResourceLogs` and so on.
#[derive(Debug, Clone, Copy)]
pub struct ResourceGroup<'a, T> {
    message: &'a [u8],
    /// The resource; one without attributes when it was not sent.
    pub resource: Resource<'a>,
    /// The schema of the resource's attributes.
    pub schema_url: &'a [u8],
    items: PhantomData<T>,
}

/// The items of one scope of a resource: `ScopeSpans`, `ScopeLogs` and so on.
#[derive(Debug, Clone, Copy)]
pub struct ScopeGroup<'a, T> {
    message: &'a [u8],
    /// The scope; one without a name when it was not sent.
    pub scope: Scope<'a>,
    /// The schema of the items.
    pub schema_url: &'a [u8],
    items: PhantomData<T>,
}

impl<'a, T: Item<'a>> Request<'a, T> {
    /// A view of the decompressed body `raw`. Over a body that was not checked it ends at the first
    /// malformed byte.
    #[must_use]
    pub fn new(raw: &'a [u8]) -> Self {
        Self { raw, items: PhantomData }
    }

    /// Its resources, in order.
    pub fn resources(&self) -> impl Iterator<Item = ResourceGroup<'a, T>> + Clone + use<'a, T> {
        Messages::new(self.raw, field::RESOURCES).read(ResourceGroup::read)
    }
}

impl<'a, T: Item<'a>> ResourceGroup<'a, T> {
    pub(crate) fn read(message: &'a [u8]) -> Option<Self> {
        let (resource, schema_url) = group(message)?;
        Some(Self { message, resource: Resource::read(resource)?, schema_url, items: PhantomData })
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its scopes, in order.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeGroup<'a, T>> + Clone + use<'a, T> {
        Messages::new(self.message, field::MEMBERS).read(ScopeGroup::read)
    }
}

impl<'a, T: Item<'a>> ScopeGroup<'a, T> {
    pub(crate) fn read(message: &'a [u8]) -> Option<Self> {
        let (scope, schema_url) = group(message)?;
        Some(Self { message, scope: Scope::read(scope)?, schema_url, items: PhantomData })
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its items, in order.
    pub fn items(&self) -> impl Iterator<Item = T> + Clone + use<'a, T> {
        Messages::new(self.message, field::MEMBERS).read(T::read)
    }
}

/// The owner and the schema of a group.
pub(super) fn group(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut owner, mut schema_url): (&[u8], &[u8]) = (&[], &[]);
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            field::OWNER => owner = reader.bytes(key).ok()?,
            field::SCHEMA_URL => schema_url = reader.bytes(key).ok()?,
            _ => reader.skip(key).ok()?,
        }
    }
    Some((owner, schema_url))
}
