//! The items of a request in order, each with what encloses it.

use super::DATA;
use crate::otlp::Signal;
use crate::otlp::json::schema::{Field, Kind, LOGS, METRIC, METRICS, Message, TRACES};
use crate::otlp::request::group;
use crate::proto::{Messages, Reader};

const RESOURCES: u32 = 1;
/// Of a group: scopes, or items.
const MEMBERS: u32 = 2;
/// Of the data of a metric.
const POINTS: u32 = 1;

/// The next part at the outermost level.
pub(super) enum Item<'a> {
    /// All of a resource.
    Group(&'static Message, &'a [u8]),
    /// One item, and what encloses it.
    One {
        /// How the object begins.
        head: &'static str,
        /// Of points: the metric, and its data without the points.
        metric: Option<[(&'static Message, &'a [u8]); 2]>,
        item: (&'static Message, &'a [u8]),
        resource: (&'a [u8], &'a [u8]),
        scope: (&'a [u8], &'a [u8]),
    },
}

/// The items of a request, in order.
pub(super) struct Items<'a> {
    pub(super) signal: Signal,
    groups: Messages<'a>,
    resource: (&'a [u8], &'a [u8]),
    scopes: Messages<'a>,
    scope: (&'a [u8], &'a [u8]),
    members: Messages<'a>,
    metric: &'a [u8],
    data: Option<(&'static Field, &'a [u8])>,
    points: Messages<'a>,
}

impl<'a> Items<'a> {
    pub(super) fn new(signal: Signal, raw: &'a [u8]) -> Self {
        let none = Messages::new(&[], MEMBERS);
        let groups = if signal == Signal::Profiles { none.clone() } else { Messages::new(raw, RESOURCES) };
        Self {
            signal,
            groups,
            resource: (&[], &[]),
            scopes: none.clone(),
            scope: (&[], &[]),
            members: none.clone(),
            metric: &[],
            data: None,
            points: none,
        }
    }

    /// The next one: a resource with all that is in it, or an item.
    pub(super) fn next(&mut self, whole: bool) -> Option<Item<'a>> {
        let (request, head) = match self.signal {
            Signal::Traces => (&TRACES, "{\"signal\":\"traces\""),
            Signal::Metrics => (&METRICS, ""),
            Signal::Logs | Signal::Profiles => (&LOGS, "{\"signal\":\"logs\""),
        };
        let table = inner(request.fields.first())?;
        if whole {
            return Some(Item::Group(table, self.groups.next()?));
        }
        let member = inner(inner(table.fields.get(1))?.fields.get(1))?;
        let (item, metric, head) = loop {
            if let Some(point) = self.points.next() {
                let (field, data) = self.data?;
                let table = inner(Some(field))?;
                let item = (inner(table.fields.first())?, point);
                break (item, Some([(&METRIC, self.metric), (table, data)]), head_of_point(field.number));
            }
            if let Some(body) = self.members.next() {
                if self.signal != Signal::Metrics {
                    break ((member, body), None, head);
                }
                self.metric = body;
                self.data = data(body);
                self.points = Messages::new(self.data.map_or(&[], |(_, data)| data), POINTS);
            } else if let Some(scope) = self.scopes.next() {
                self.scope = group(scope).unwrap_or_default();
                self.members = Messages::new(scope, MEMBERS);
            } else {
                let resource = self.groups.next()?;
                self.resource = group(resource).unwrap_or_default();
                self.scopes = Messages::new(resource, MEMBERS);
            }
        };
        Some(Item::One { head, metric, item, resource: self.resource, scope: self.scope })
    }
}

/// The table of a message field.
fn inner(field: Option<&'static Field>) -> Option<&'static Message> {
    match field?.kind {
        Kind::Message(message) => Some(message),
        _ => None,
    }
}

/// The field with the data of a metric, and those: the last ones count.
fn data(metric: &[u8]) -> Option<(&'static Field, &[u8])> {
    let (mut reader, mut last) = (Reader::new(metric), None);
    while let Ok(Some(key)) = reader.key() {
        let is_data = |field: &&Field| field.choice == DATA && u32::from(field.number) == key.field;
        match METRIC.fields.iter().find(is_data) {
            Some(field) => last = Some((field, reader.bytes(key).ok()?)),
            None => reader.skip(key).ok()?,
        }
    }
    last
}

fn head_of_point(data: u8) -> &'static str {
    match data {
        5 => "{\"signal\":\"metrics\",\"type\":\"gauge\"",
        7 => "{\"signal\":\"metrics\",\"type\":\"sum\"",
        9 => "{\"signal\":\"metrics\",\"type\":\"histogram\"",
        10 => "{\"signal\":\"metrics\",\"type\":\"exponential_histogram\"",
        _ => "{\"signal\":\"metrics\",\"type\":\"summary\"",
    }
}
