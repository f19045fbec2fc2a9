//! Writes pairs of lines, takes back what did not fit, and keeps the count.

use super::data_stream::{NamePart, StreamNamePart, StreamOverride};
use super::document_buffer::DocumentOutput;
use super::ecs::ServiceInfo;
use super::fields::FieldSet;
use super::group::PointGroup;
use super::index_name::IndexFields;
use super::objects::ObjectWriter;
use super::{DocumentPosition, DocumentSettings, Mapping, WriteResult};
use crate::json;
use std::ops::Range;
use tidegate_wire::otlp::{Resource, Scope};
use tidegate_wire::output::Full;

/// The most that a translation takes on the heap beyond its sheet, while it runs.
pub const WORKING_BYTES: usize = ObjectWriter::BYTES + PointGroup::BYTES + FieldSet::BYTES;

/// The document being written, and its state.
pub(super) struct DocumentWriter<'o, 'a, 's, S> {
    pub(super) out: &'o mut S,
    pub(super) settings: &'s DocumentSettings<'s>,
    pub(super) prefix: &'s str,
    pub(super) objects: ObjectWriter<'a>,
    pub(super) fields: FieldSet<'a>,
    pub(super) done: WriteResult,
    /// The name of the service, where names of indexes have it.
    pub(super) service: &'a [u8],
    /// Where the document at hand will be, and how many of its item are whole.
    pub(super) place: DocumentPosition,
    /// The end of the last document that is whole, and what was lost until then.
    whole: usize,
    lost: u64,
}

/// Which of the three kinds of data streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Logs,
    Traces,
    Metrics,
}

impl StreamKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }
}

/// A resource and a scope, and what is the same for all their items.
pub(super) struct ScopeOrigin<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) resource_schema: &'a [u8],
    pub(super) scope: Scope<'a>,
    pub(super) scope_schema: &'a [u8],
    pub(super) wishes: StreamOverride<'a>,
    /// Where their JSON was written last.
    pub(super) said: Option<Range<usize>>,
    /// The ECS fields of the resource, in that mapping.
    pub(super) service: Option<ServiceInfo<'a>>,
}

impl<'o, 'a, 's, S: DocumentOutput> DocumentWriter<'o, 'a, 's, S> {
    pub(super) fn new(
        out: &'o mut S,
        prefix: &'s str,
        from: DocumentPosition,
        settings: &'s DocumentSettings<'s>,
    ) -> Self {
        let whole = out.len();
        Self {
            out,
            settings,
            prefix,
            objects: ObjectWriter::new(),
            fields: FieldSet::new(),
            done: WriteResult::default(),
            service: &[],
            place: from,
            whole,
            lost: 0,
        }
    }

    /// The line before a document, with the beginning of its data stream's name; the document's opening brace.
    /// `extra` may put further members of the line, each with a comma before it.
    pub(super) fn begin(
        &mut self,
        kind: StreamKind,
        dataset: &StreamNamePart,
        namespace: &StreamNamePart,
        time: u64,
        extra: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        self.out.put(br#"{"create":{"_index":""#)?;
        match self.settings.index {
            None => {
                self.out.put(kind.name().as_bytes())?;
                self.out.put(b"-")?;
                json::escaped(dataset.as_bytes(), self.out)?;
                self.out.put(b"-")?;
                json::escaped(namespace.as_bytes(), self.out)?;
            }
            Some(index) => {
                let of = IndexFields {
                    kind: kind.name(),
                    dataset: dataset.as_bytes(),
                    namespace: namespace.as_bytes(),
                    service: self.service,
                    tenant: self.settings.tenant.as_bytes(),
                    time,
                };
                index.write(of, self.out)?;
            }
        }
        self.out.put(b"\"")?;
        let is_index = self.settings.index.is_some();
        if kind != StreamKind::Metrics || self.settings.metric_ids || is_index {
            self.out.put(br#","_id":""#)?;
            self.out.put(self.prefix.as_bytes())?;
            self.out.put(b"-")?;
            json::unsigned(self.place.item, self.out)?;
            if self.place.part > 0 {
                self.out.put(b"-")?;
                json::unsigned(self.place.part.into(), self.out)?;
            }
            self.out.put(b"\"")?;
        }
        // Their templates are data streams'.
        if !is_index {
            extra(self)?;
        }
        self.out.put(b"}}\n")
    }

    /// The end of a document that says `items`.
    pub(super) fn end(&mut self, items: u32) -> Result<(), Full> {
        self.out.put(b"}\n")?;
        self.whole = self.out.len();
        self.lost = self.objects.lost;
        self.place.part = self.place.part.saturating_add(1);
        self.done.documents += 1;
        self.done.items += u64::from(items);
        self.out.document(items);
        Ok(())
    }

    /// Goes on to the item that begins at `item`.
    pub(super) fn next(&mut self, item: u64) {
        self.place = DocumentPosition { item, part: 0 };
    }

    /// The result; `full` if it ended early.
    pub(super) fn finished(mut self, full: bool) -> Result<WriteResult, Full> {
        self.out.truncate(self.whole);
        self.done.untranslatable.values += if full { self.lost } else { self.objects.lost };
        if full {
            if self.done.documents == 0 {
                return Err(Full);
            }
            self.done.next = Some(self.place);
        }
        Ok(self.done)
    }

    /// Where documents go that wish so.
    pub(super) fn stream(
        &self,
        wishes: StreamOverride<'_>,
        fallback: &str,
    ) -> (StreamNamePart, StreamNamePart) {
        let suffix = if self.settings.mapping == Mapping::Otel { ".otel" } else { "" };
        let dataset = wishes.dataset.unwrap_or_default();
        let namespace = wishes.namespace.unwrap_or(self.settings.namespace.as_bytes());
        (
            StreamNamePart::new(NamePart::Dataset, "", dataset, suffix, fallback),
            StreamNamePart::new(NamePart::Namespace, "", namespace, "", "default"),
        )
    }
}
