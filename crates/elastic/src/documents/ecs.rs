//! Documents in the Elastic Common Schema, in the shapes and streams of Elastic APM.
//!
//! | OTLP | document | data stream |
//! |---|---|---|
//! | root span, span of a server or a consumer | `processor.event: transaction` | `traces-apm-<ns>` |
//! | other span | `processor.event: span` | `traces-apm-<ns>` |
//! | event of a span, log record | `processor.event: log` | `logs-apm.app.<service>-<ns>` |
//! | event or record of an exception | `processor.event: error` | `logs-apm.error-<ns>` |
//! | points of one time and attributes | `processor.event: metric` | `metrics-apm.app.<service>-<ns>` |
//!
//! Attributes with a field of their own get that; numbers go to `numeric_labels`, anything else to `labels`, where
//! dots become `_` and what is no scalar becomes JSON in a text.

mod logs;
mod metrics;
mod names;
mod spans;

pub(super) use metrics::is_nameable;

use super::data_stream::{NamePart, StreamNamePart, StreamOverride, is_routing};
use super::document_buffer::DocumentOutput;
use super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use super::fields::FieldValue;
use super::objects::ObjectWriter;
use crate::json;
use tidegate_wire::otlp::{AnyValue, Attributes};
use tidegate_wire::output::Full;

/// The properties of a resource that influence other fields.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ServiceInfo<'a> {
    pub(super) name: &'a [u8],
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// Puts the fields of the resource and the scope, which all of their documents have.
    pub(super) fn ecs_origin(&mut self, origin: &ScopeOrigin<'a>) -> ServiceInfo<'a> {
        self.fields.clear();
        let mut service = ServiceInfo::default();
        let resource = || origin.resource.attributes();
        for attribute in resource().filter(|attribute| !is_routing(attribute.key)) {
            let name = names::of_resource(attribute.key);
            match (attribute.key, attribute.value) {
                (b"service.name", AnyValue::Text(text)) => service.name = text,
                (b"host.name", AnyValue::Text(text)) => self.fields.text(b"host.name", text),
                (b"os.type", AnyValue::Text(text)) => {
                    if let Some(family) = os_family(text) {
                        self.fields.text(b"host.os.type", family.as_bytes());
                    }
                }
                _ => {}
            }
            match name.map(|name| (name, names::said(name, attribute.value))) {
                Some((_, Some((path, said)))) => self.fields.put(path.as_bytes(), said),
                Some((names::EcsField::Elsewhere, None)) => {}
                _ => self.fields.label(attribute.key, attribute.value),
            }
        }
        let text = |key: &[u8]| match resource().find(key) {
            Some(AnyValue::Text(text)) => text,
            _ => &[],
        };
        let (sdk, distro) = (text(b"telemetry.sdk.name"), text(b"telemetry.distro.name"));
        let language: &[u8] = match text(b"telemetry.sdk.language") {
            b"" if !distro.is_empty() => b"unknown",
            language => language,
        };
        let sdk = if sdk.is_empty() { b"otlp" } else { sdk };
        self.fields.put(b"agent.name", FieldValue::Path(sdk, language, distro));
        let version = match text(b"telemetry.distro.version") {
            b"" => text(b"telemetry.sdk.version"),
            version => version,
        };
        self.fields.text(b"agent.version", if version.is_empty() { b"unknown" } else { version });
        if service.name.is_empty() {
            self.fields.text(b"service.name", b"unknown");
        }
        for attribute in origin.scope.attributes().filter(|attribute| !is_routing(attribute.key)) {
            self.fields.label(attribute.key, attribute.value);
        }
        self.fields.text(b"service.framework.name", origin.scope.name);
        self.fields.text(b"service.framework.version", origin.scope.version);
        self.fields.end_resource();
        service
    }

    /// Puts fields and labels of an item's attributes, and says where they wish the document to go.
    fn ecs_attributes(
        &mut self,
        wishes: StreamOverride<'a>,
        attributes: Attributes<'a>,
        is_span: bool,
    ) -> StreamOverride<'a> {
        let mut wishes = wishes;
        for attribute in attributes {
            if is_routing(attribute.key) {
                if let AnyValue::Text(text) = attribute.value {
                    wishes.hear(attribute.key, text);
                }
                continue;
            }
            let name = names::of_item(attribute.key)
                .or_else(|| is_span.then(|| names::of_span(attribute.key)).flatten());
            match name.and_then(|name| names::said(name, attribute.value)) {
                Some((path, said)) => self.fields.put(path.as_bytes(), said),
                None => self.fields.label(attribute.key, attribute.value),
            }
        }
        wishes
    }

    /// Writes the line before and the document's members but for its end. `dataset` is that of the mapping, with the
    /// service's name behind it if it ends in a dot.
    #[expect(clippy::too_many_arguments, reason = "each is of another kind, and all documents have all")]
    pub(super) fn ecs_document(
        &mut self,
        kind: StreamKind,
        dataset: &str,
        service: ServiceInfo<'a>,
        wishes: StreamOverride<'a>,
        time: u64,
        extra: impl FnOnce(&mut Self) -> Result<(), Full>,
        mut other: impl FnMut(u32, &mut ObjectWriter<'a>, &mut S) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let dataset = match wishes.dataset {
            Some(dataset) => StreamNamePart::new(NamePart::Dataset, "", dataset, "", "generic"),
            None if dataset.ends_with('.') => {
                StreamNamePart::new(NamePart::Dataset, dataset, service.name, "", "unknown")
            }
            None => StreamNamePart::new(NamePart::Dataset, "", dataset.as_bytes(), "", "generic"),
        };
        let namespace = wishes.namespace.unwrap_or(self.settings.namespace.as_bytes());
        let namespace = StreamNamePart::new(NamePart::Namespace, "", namespace, "", "default");
        self.begin(kind, &dataset, &namespace, time, extra)?;
        self.out.put(br#"{"@timestamp":"#)?;
        json::rfc3339(time, self.out)?;
        self.out.put(br#","data_stream":{"type":""#)?;
        self.out.put(kind.name().as_bytes())?;
        self.out.put(br#"","dataset":"#)?;
        json::string(dataset.as_bytes(), self.out)?;
        self.out.put(br#","namespace":"#)?;
        json::string(namespace.as_bytes(), self.out)?;
        self.out.put(b"}")?;
        self.fields.write(&mut self.objects, self.out, &mut other)
    }

    /// The time of an item, or when it was received.
    fn ecs_time(&self, time: u64) -> u64 {
        if time > 0 { time } else { self.settings.received }
    }
}

fn os_family(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        b"linux" => "linux",
        b"windows" => "windows",
        b"darwin" => "macos",
        b"aix" | b"hpux" | b"solaris" => "unix",
        _ => return None,
    })
}

/// Microseconds, as `timestamp.us` has them.
fn microseconds(nanoseconds: u64) -> FieldValue<'static> {
    FieldValue::Int((nanoseconds / 1000).cast_signed())
}
