//! Writes OTLP logs as events of Splunk's HTTP Event Collector (HEC): one JSON object for each record, one behind the other.
//!
//! ```json
//! {"time":1763884800.000000001,"host":"web-1","sourcetype":"app","event":"paid","fields":{"http.status":200}}
//! ```
//!
//! - `event` is the body: a text, or the JSON of what it is. Splunk refuses an empty event, so a record without a body has the
//!   name of its event there, or `{}`.
//! - `host`, `source`, `sourcetype` and `index` come from attributes that [`Metadata`] names, of the record before the resource;
//!   those attributes are not repeated in `fields`.
//! - `fields` holds the other attributes, of the resource and of the record. Splunk takes texts, numbers, booleans and lists of
//!   those; anything deeper is a text with its JSON, which `spath` reads. An attribute without a value is left out.
//! - `time` has seconds with up to nine digits behind the point; without a time of the record it is left out, and Splunk puts
//!   its own.
//!
//! An event is written whole or not at all: one that does not fit is begun again with more space.
//!
//! Specification: "Format events for HTTP Event Collector", <https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector>.

mod event;
#[cfg(test)]
mod tests;
mod value;

pub use value::VALUE_BYTES;

use super::attribute::{AnyValue, Attributes, Resource, Scope};
use super::json::{Next, Progress};
use super::log::LogRecord;
use super::request::{Item, group};
use crate::output::SliceOutput;
use crate::proto::Messages;
use value::ValueWriter;

/// About how many bytes are written in one part.
const TURN: usize = 64 << 10;
/// Of a request: resources.
const RESOURCES: u32 = 1;
/// Of a group: scopes, or records.
const MEMBERS: u32 = 2;

/// Where the metadata of events comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The machine that the event is from.
    pub host: MetadataField,
    /// The file or the stream that it was read from.
    pub source: MetadataField,
    /// The format, which decides how Splunk reads it.
    pub sourcetype: MetadataField,
    /// The index that it goes to.
    pub index: MetadataField,
}

/// The origin of one member of an event's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataField {
    /// The attribute with the value.
    pub attribute: String,
    /// The value of events without that attribute; without either, Splunk puts its own.
    pub default: Option<String>,
}

impl Default for Metadata {
    /// The attributes of the Collector's exporter `splunk_hec`, without default values.
    fn default() -> Metadata {
        let of = |attribute: &str| MetadataField { attribute: attribute.to_owned(), default: None };
        Metadata {
            host: of("host.name"),
            source: of("com.splunk.source"),
            sourcetype: of("com.splunk.sourcetype"),
            index: of("com.splunk.index"),
        }
    }
}

impl Metadata {
    /// The members by name, in the order of [`MetadataValues`].
    fn fields(&self) -> [(&'static str, &MetadataField); 4] {
        [
            ("host", &self.host),
            ("source", &self.source),
            ("sourcetype", &self.sourcetype),
            ("index", &self.index),
        ]
    }

    /// The member that the attribute `key` fills.
    fn position(&self, key: &[u8]) -> Option<usize> {
        self.fields().iter().position(|(_, field)| field.attribute.as_bytes() == key)
    }
}

/// The values of `host`, `source`, `sourcetype` and `index`, where attributes have them.
type MetadataValues<'a> = [Option<&'a [u8]>; 4];

/// Writes one request as events, a part at a time.
pub struct Encoder<'a> {
    metadata: &'a Metadata,
    groups: Messages<'a>,
    resource: Resource<'a>,
    of_resource: MetadataValues<'a>,
    resource_attributes: usize,
    scopes: Messages<'a>,
    scope: Scope<'a>,
    records: Messages<'a>,
    /// A record that did not fit.
    pending: Option<LogRecord<'a>>,
    values: ValueWriter<'a>,
}

impl<'a> Encoder<'a> {
    /// Writes the checked request of logs `raw`.
    #[must_use]
    pub fn new(raw: &'a [u8], metadata: &'a Metadata) -> Self {
        let none = Messages::new(&[], MEMBERS);
        Self {
            metadata,
            groups: Messages::new(raw, RESOURCES),
            resource: Resource::default(),
            of_resource: MetadataValues::default(),
            resource_attributes: 0,
            scopes: none.clone(),
            scope: Scope::default(),
            records: none,
            pending: None,
            values: ValueWriter::default(),
        }
    }

    /// Writes on, to the start of `space`.
    pub fn write(&mut self, space: &mut [u8]) -> Progress {
        let mut written = 0;
        loop {
            let Some(record) = self.pending.take().or_else(|| self.next_record()) else {
                return Progress { written, next: Next::Done };
            };
            let mut out = SliceOutput::new(space.get_mut(written..).unwrap_or_default());
            if self.event(&record, &mut out).is_err() {
                self.pending = Some(record);
                return Progress { written, next: Next::Space };
            }
            written += out.len();
            if written >= TURN {
                return Progress { written, next: Next::More };
            }
        }
    }

    fn next_record(&mut self) -> Option<LogRecord<'a>> {
        loop {
            if let Some(record) = self.records.next() {
                return LogRecord::read(record);
            }
            if let Some(scope) = self.scopes.next() {
                self.scope = Scope::read(group(scope)?.0)?;
                self.records = Messages::new(scope, MEMBERS);
                continue;
            }
            let resource = self.groups.next()?;
            self.resource = Resource::read(group(resource)?.0)?;
            self.resource_attributes = self.resource.attributes().count();
            self.of_resource = metadata_values(self.metadata, self.resource.attributes());
            self.scopes = Messages::new(resource, MEMBERS);
        }
    }
}

/// The metadata in these attributes: only texts, of which the last counts.
fn metadata_values<'a>(metadata: &Metadata, attributes: Attributes<'a>) -> MetadataValues<'a> {
    let mut values = MetadataValues::default();
    for attribute in attributes {
        if let AnyValue::Text(text) = attribute.value
            && !text.is_empty()
            && let Some(value) =
                metadata.position(attribute.key).and_then(|position| values.get_mut(position))
        {
            *value = Some(text);
        }
    }
    values
}
