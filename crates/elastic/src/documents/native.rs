//! Documents in OpenTelemetry's own words.
//!
//! | OTLP | document |
//! |---|---|
//! | time, else observed time, else when it was received | `@timestamp` |
//! | resource, scope | `resource`, `scope`: `attributes`, `schema_url`, `name`, `version`, `dropped_attributes_count` |
//! | attributes | `attributes`, with their dots |
//! | body: text and other scalars; maps and arrays | `body.text`; `body.structured` |
//! | severity, event name, ids, flags | `severity_text`, `severity_number`, `event_name`, `trace_id`, `span_id`, `flags` |
//! | span | `name`, `kind`, `duration` in nanoseconds, `parent_span_id`, `trace_state`, `status`, `links` |
//! | event of a span | a document of its own among the logs |
//! | points of one scope, time, unit and attributes | one document: `metrics.<name>`, `_metric_names_hash` |
//! | `data_stream.dataset`, `data_stream.namespace` | the data stream, `<type>-<dataset>.otel-<namespace>` |

mod logs;
mod metrics;
mod spans;

use super::data_stream::{StreamNamePart, StreamOverride, is_routing};
use super::document_buffer::DocumentOutput;
use super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use crate::json;
use tidegate_wire::otlp::{AnyValue, Attributes, KeyValue};
use tidegate_wire::output::{Full, Output};

/// The attributes of an item, on the stack, and where they say that it goes.
struct StreamAttributes<'a> {
    from: usize,
    wishes: StreamOverride<'a>,
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    fn own(&mut self, origin: &ScopeOrigin<'a>, attributes: Attributes<'a>) -> StreamAttributes<'a> {
        let mut wishes = origin.wishes;
        let from = self.objects.collect(attributes, |attribute| wanted(attribute, &mut wishes));
        StreamAttributes { from, wishes }
    }

    /// The line before, the document's time and its data stream.
    fn opened(
        &mut self,
        kind: StreamKind,
        time: u64,
        wishes: StreamOverride<'a>,
        extra: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let (dataset, namespace) = self.stream(wishes, self.settings.dataset);
        let time = if time > 0 { time } else { self.settings.received };
        self.begin(kind, &dataset, &namespace, time, extra)?;
        self.out.put(br#"{"@timestamp":"#)?;
        json::rfc3339(time, self.out)?;
        data_stream(kind, &dataset, &namespace, self.out)
    }

    /// A member that is a text, unless it is empty.
    fn text(&mut self, name: &str, text: &[u8]) -> Result<(), Full> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.put(name.as_bytes())?;
        json::string(text, self.out)
    }

    /// A member that is an id, unless there is none.
    fn id(&mut self, name: &str, id: &[u8]) -> Result<(), Full> {
        if id.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.out.put(name.as_bytes())?;
        self.out.put(b"\"")?;
        json::hex(id, self.out)?;
        self.out.put(b"\"")
    }

    /// A member that is a number, unless it is 0.
    fn number(&mut self, name: &str, number: i64) -> Result<(), Full> {
        if number == 0 {
            return Ok(());
        }
        self.out.put(name.as_bytes())?;
        json::int(number, self.out)
    }

    /// `attributes` of an item, if it has some, and takes them from the stack.
    fn attributes(&mut self, own: &StreamAttributes<'a>) -> Result<(), Full> {
        let mut done = Ok(());
        if !self.objects.since(own.from).is_empty() {
            done = self.out.put(br#","attributes":"#).and_then(|()| self.objects.top(own.from, self.out));
        }
        self.objects.drop_from(own.from);
        done
    }

    /// `resource` and `scope`: copied from the document before, if they were the same there.
    fn origin(&mut self, origin: &mut ScopeOrigin<'a>) -> Result<(), Full> {
        if let Some(said) = origin.said.clone() {
            return self.out.repeat(said);
        }
        let start = self.out.len();
        self.out.put(br#","resource":{"#)?;
        self.owner(
            origin.resource.attributes(),
            &[(r#""schema_url":"#, origin.resource_schema)],
            origin.resource.dropped_attributes,
        )?;
        self.out.put(br#"},"scope":{"#)?;
        let scope = origin.scope;
        let texts = [
            (r#""name":"#, scope.name),
            (r#""version":"#, scope.version),
            (r#""schema_url":"#, origin.scope_schema),
        ];
        self.owner(scope.attributes(), &texts, scope.dropped_attributes)?;
        self.out.put(b"}")?;
        origin.said = Some(start..self.out.len());
        Ok(())
    }

    /// The members of a resource or a scope.
    fn owner(
        &mut self,
        attributes: Attributes<'a>,
        texts: &[(&str, &[u8])],
        dropped: u32,
    ) -> Result<(), Full> {
        let mut comma = "";
        for (name, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            self.out.put(comma.as_bytes())?;
            self.out.put(name.as_bytes())?;
            json::string(text, self.out)?;
            comma = ",";
        }
        if dropped > 0 {
            self.out.put(comma.as_bytes())?;
            self.out.put(br#""dropped_attributes_count":"#)?;
            json::unsigned(dropped.into(), self.out)?;
            comma = ",";
        }
        let from = self.objects.collect(attributes, |attribute| !is_routing(attribute.key));
        let mut done = Ok(());
        if !self.objects.since(from).is_empty() {
            done = self.out.put(comma.as_bytes()).and_then(|()| {
                self.out.put(br#""attributes":"#)?;
                self.objects.top(from, self.out)
            });
        }
        self.objects.drop_from(from);
        done
    }
}

fn data_stream(
    kind: StreamKind,
    dataset: &StreamNamePart,
    namespace: &StreamNamePart,
    out: &mut impl Output,
) -> Result<(), Full> {
    out.put(br#","data_stream":{"type":""#)?;
    out.put(kind.name().as_bytes())?;
    out.put(br#"","dataset":"#)?;
    json::string(dataset.as_bytes(), out)?;
    out.put(br#","namespace":"#)?;
    json::string(namespace.as_bytes(), out)?;
    out.put(b"}")
}

/// Whether an attribute is part of the document; if not, it says where that goes.
#[inline]
fn wanted<'a>(attribute: &KeyValue<'a>, wishes: &mut StreamOverride<'a>) -> bool {
    if !is_routing(attribute.key) {
        return true;
    }
    if let AnyValue::Text(text) = attribute.value {
        wishes.hear(attribute.key, text);
    }
    false
}
