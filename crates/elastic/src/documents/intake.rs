//! Intake events of Elastic's agents as the documents that Elastic APM makes of them, in the data streams that it
//! puts them into.
//!
//! | event | `processor.event` | data stream |
//! |---|---|---|
//! | transaction, span | `transaction`, `span` | `traces-apm-<ns>`; of browsers and phones `traces-apm.rum-<ns>` |
//! | error | `error` | `logs-apm.error-<ns>` |
//! | log | `log` | `logs-apm.app.<service>-<ns>` |
//! | metricset of a breakdown, or of metrics that agents know | `metric` | `metrics-apm.internal-<ns>` |
//! | other metricset | `metric` | `metrics-apm.app.<service>-<ns>` |

mod event_fields;
mod frames;
mod grouping;
mod inferred;
mod internal;
mod paths;
mod special_mappings;
mod url;

pub(super) use special_mappings::{SpecialMapping, shaped};

use super::data_stream::StreamOverride;
use super::document_buffer::DocumentOutput;
use super::document_writer::{DocumentWriter, StreamKind};
use super::ecs::ServiceInfo;
use super::fields::FieldValue;
use super::{DocumentPosition, DocumentSettings, Product, WriteResult};
use event_fields::{EventFields, Paths};
use paths::EventProperty;
use tidegate_wire::intake::{self, Event, EventKinds, Object, Text, Value};
use tidegate_wire::output::Full;

pub(super) fn intake(
    kinds: EventKinds,
    raw: &[u8],
    from: DocumentPosition,
    prefix: &str,
    settings: &DocumentSettings<'_>,
    sheet: &mut impl DocumentOutput,
) -> Result<WriteResult, Full> {
    let mut pen = DocumentWriter::new(sheet, prefix, from, settings);
    let mut agent = AgentInfo::default();
    let mut count = 0;
    pen.fields.clear();
    for event in intake::events(raw) {
        if event.kind == intake::EventKind::Metadata {
            agent = pen.metadata(event.fields());
            continue;
        }
        count += 1;
        if count <= from.item {
            continue;
        }
        if !kinds.contains(event.kind) {
            pen.next(count);
            continue;
        }
        if pen.intake_event(agent, event).is_err() {
            return pen.finished(true);
        }
        pen.next(count);
    }
    pen.finished(false)
}

pub(super) fn past_event(kinds: EventKinds, raw: &[u8], place: DocumentPosition) -> DocumentPosition {
    let events = intake::events(raw).filter(|event| event.kind != intake::EventKind::Metadata);
    let mut behind = (1..).zip(events).skip_while(|(count, _)| *count <= place.item);
    match behind.find(|(_, event)| kinds.contains(event.kind)) {
        Some((count, _)) => DocumentPosition { item: count, part: 0 },
        None => place.past_item(),
    }
}

/// The properties of the metadata that influence other fields.
#[derive(Debug, Clone, Copy, Default)]
struct AgentInfo<'a> {
    service: &'a [u8],
    is_rum: bool,
    /// Whether the source knew who sent the request.
    has_client: bool,
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// Puts the fields that all events have.
    fn metadata(&mut self, metadata: Object<'a>) -> AgentInfo<'a> {
        self.fields.clear();
        self.host(metadata);
        self.look(metadata, &mut EventFields::new(paths::of_metadata, &[]));
        self.fields.end_resource();
        let text = |path: &[&[u8]]| metadata.at(path).and_then(Value::text).and_then(Text::plain);
        let agent = text(&[b"service", b"agent", b"name"]).unwrap_or_default();
        AgentInfo {
            service: text(&[b"service", b"name"]).unwrap_or_default(),
            is_rum: is_rum(agent),
            has_client: metadata.at(&[b"tidegate", b"client"]).is_some(),
        }
    }

    /// Puts the names of the host, and of the node that was given none.
    fn host(&mut self, metadata: Object<'a>) {
        let text = |path: &[&[u8]]| metadata.at(path).and_then(Value::text).filter(|text| !text.is_empty());
        let of_system = |name: &[u8]| text(&[b"system", name]);
        let of_kubernetes = |path: [&[u8]; 2]| text(&[b"system", b"kubernetes", path[0], path[1]]);
        let configured = of_system(b"configured_hostname");
        let told = of_system(b"detected_hostname")
            .or_else(|| of_system(b"hostname").filter(|_| configured.is_none()));
        // In Kubernetes the name of a host is that of a pod, which is no host's.
        let is_in_pod = || {
            let pod = [of_kubernetes([b"pod", b"name"]), of_kubernetes([b"pod", b"uid"])];
            pod.iter().any(Option::is_some) || text(&[b"system", b"kubernetes", b"namespace"]).is_some()
        };
        let hostname = of_kubernetes([b"node", b"name"]).or_else(|| told.filter(|_| !is_in_pod()));
        let name = configured.or(hostname);
        let node = text(&[b"system", b"container", b"id"]).or(name);
        for (field, said) in
            [(&b"service.node.name"[..], node), (b"host.hostname", hostname), (b"host.name", name)]
        {
            if let Some(text) = said {
                self.fields.put(field, FieldValue::Escaped(text.raw()));
            }
        }
    }

    fn intake_event(&mut self, mut agent: AgentInfo<'a>, event: Event<'a>) -> Result<(), Full> {
        self.fields.begin();
        let fields = event.fields();
        let (paths, kind): (Paths, _) = match event.kind {
            intake::EventKind::Metadata => return Ok(()),
            intake::EventKind::Transaction => (paths::of_transaction, StreamKind::Traces),
            intake::EventKind::Span => (paths::of_span, StreamKind::Traces),
            intake::EventKind::Error => (paths::of_error, StreamKind::Logs),
            intake::EventKind::Metricset => (paths::of_metricset, StreamKind::Metrics),
            intake::EventKind::Log => (paths::of_log, StreamKind::Logs),
        };
        let mut seen = EventFields::new(paths, agent.service);
        seen.keeps_unknown = event.kind == intake::EventKind::Log;
        self.look(fields, &mut seen);
        if let Some(name) = seen.fact(EventProperty::AgentName).text().and_then(Text::plain) {
            agent.is_rum = is_rum(name);
        }
        self.inferred(agent, &seen);
        let (processor, dataset): (&[u8], _) = match event.kind {
            intake::EventKind::Transaction => {
                self.transaction(&seen);
                (b"transaction", if agent.is_rum { "apm.rum" } else { "apm" })
            }
            intake::EventKind::Span => {
                self.span(&seen);
                (b"span", if agent.is_rum { "apm.rum" } else { "apm" })
            }
            intake::EventKind::Error => {
                self.error(&seen);
                (b"error", "apm.error")
            }
            intake::EventKind::Metricset => (b"metric", self.metricset(fields, &seen)),
            _ if self.log(&seen) => (b"error", "apm.error"),
            _ => (b"log", "apm.app."),
        };
        self.fields.text(b"processor.event", processor);
        let time = self.time(&seen);
        if kind == StreamKind::Traces || processor == b"error" {
            self.fields.put(b"timestamp.us", FieldValue::Int((time / 1000).cast_signed()));
        }
        let service = ServiceInfo { name: seen.service };
        self.service = seen.service;
        self.ecs_document(
            kind,
            dataset,
            service,
            StreamOverride::default(),
            time,
            |pen| match (event.kind, pen.settings.flavour) {
                (intake::EventKind::Metricset, Product::Elasticsearch) => {
                    pen.out.put(br#","dynamic_templates":{"#)?;
                    pen.fields.templates(pen.out)?;
                    pen.out.put(b"}")
                }
                _ => Ok(()),
            },
            |_, _, _| Ok(()),
        )?;
        self.end(1)
    }
}

/// Whether an agent of this name is in a browser or a phone.
fn is_rum(agent: &[u8]) -> bool {
    matches!(agent, b"rum-js" | b"js-base" | b"iOS/swift")
}
