//! Telemetry as documents of Elasticsearch and OpenSearch: the lines of `_bulk` requests, a `create` and a document
//! by turns.
//!
//! [`from_otlp`] says OTLP in one of two [`Mapping`]s, [`from_intake`] what agents of Elastic send, and
//! [`to_otlp_logs`] reads documents as log records. `design/documents.md` argues what becomes of what.
//!
//! - Documents are written to a [`DocumentOutput`], whose memory the caller has charged. When it is full, the last, incomplete
//!   document is removed, and the translation goes on at a [`DocumentPosition`] with the next sheet.
//! - A document's `_id` is made of the caller's prefix and the place of the item, so the same body gives the same
//!   documents whenever and in whatever pieces it is sent, and a resend makes no duplicates.
//! - Parts that documents cannot express are counted in [`Untranslatable`].

mod data_stream;
mod dedup_keys;
mod document_buffer;
mod document_writer;
mod ecs;
mod fields;
mod group;
mod index_name;
mod intake;
mod logs;
mod native;
mod objects;
mod point;
#[cfg(test)]
mod tests;
mod walk;

pub use document_buffer::{DocumentBuffer, DocumentOutput};
pub use document_writer::WORKING_BYTES;
pub use index_name::{IndexTemplate, PatternPart};
pub use logs::{LogRequests, LogTranslation, to_otlp_logs, usual_logs_len};

use tidegate_wire::intake::EventKinds;
use tidegate_wire::otlp::Signal;
use tidegate_wire::output::Full;

/// The schema of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mapping {
    /// OpenTelemetry's own words: `resource.attributes`, `attributes`, `body.text`, as the Collector's exporter
    /// writes in its mode `otel`, to streams whose dataset ends in `.otel`.
    #[default]
    Otel,
    /// The Elastic Common Schema: `service.name`, `trace.id`, `message`, and `labels` for what it has no field for,
    /// to the streams and in the shapes of Elastic APM.
    Ecs,
}

/// The product that receives index templates and bulk requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Product {
    /// Elasticsearch 8 and 9: each metric names the template of its field.
    #[default]
    Elasticsearch,
    /// OpenSearch 2 and 3, which refuse a request that names such templates.
    OpenSearch,
}

/// The options of a translation.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSettings<'s> {
    /// The schema of documents.
    pub mapping: Mapping,
    /// The receiving product.
    pub flavour: Product,
    /// The dataset of what does not say one (`data_stream.dataset` among its attributes), nor has one by its mapping.
    pub dataset: &'s str,
    /// The namespace of what does not say one (`data_stream.namespace`).
    pub namespace: &'s str,
    /// Whether documents of metrics have an `_id`. Time series streams of Elasticsearch, which its own templates make
    /// of OTel-native metrics, refuse one: they make their own from dimensions and time, to the same end.
    pub metric_ids: bool,
    /// The pattern of the names of indexes, where documents do not go to data streams. Whether a document is there is
    /// then for its `_id` to say, which all have.
    pub index: Option<&'s IndexTemplate>,
    /// The tenant; empty if there is none.
    pub tenant: &'s str,
    /// When the body was received, in nanoseconds since the Unix epoch, for what has no time of its own.
    pub received: u64,
}

impl Default for DocumentSettings<'_> {
    fn default() -> Self {
        Self {
            mapping: Mapping::default(),
            flavour: Product::default(),
            dataset: "generic",
            namespace: "default",
            metric_ids: true,
            index: None,
            tenant: "",
            received: 0,
        }
    }
}

/// Where in a body a translation begins or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct DocumentPosition {
    /// The item: log record, span or point, counted over the body.
    item: u64,
    /// How many documents of it, or of the points from there on that are grouped together, are written already.
    part: u32,
}

impl DocumentPosition {
    /// The beginning.
    pub const START: Self = Self { item: 0, part: 0 };

    /// Behind the document that comes next, of points; the others of its group keep their places.
    #[must_use]
    pub fn past_document(self) -> Self {
        Self { part: self.part.saturating_add(1), ..self }
    }

    /// Behind the item that comes next, and all documents of it.
    #[must_use]
    pub fn past_item(self) -> Self {
        Self { item: self.item.saturating_add(1), part: 0 }
    }
}

/// The result of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteResult {
    /// Items of the body that are said: log records, spans, points.
    pub items: u64,
    /// Documents, of which spans may have several, and several points may have one.
    pub documents: u64,
    /// The parts left out.
    pub untranslatable: Untranslatable,
    /// Where to go on: the sheet was full.
    pub next: Option<DocumentPosition>,
}

/// The parts that documents cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Untranslatable {
    /// Items that are left out: points without a name or a number, histograms whose bounds do not ascend.
    pub items: u64,
    /// Parts of items that are said otherwise: numbers that are none, keys that come twice or are no names of fields,
    /// buckets of cumulative histograms, quantiles, exemplars.
    pub values: u64,
}

/// Writes the checked OTLP body `raw` as documents to `sheet`, beginning at `from`. `prefix` begins every `_id`: it
/// must be the same for the same body and no other, of at most 400 bytes, and be fit for JSON as it is.
///
/// Profiles have no documents; all of them are untranslatable.
///
/// # Errors
/// [`Full`] when not even one document fits.
pub fn from_otlp(
    signal: Signal,
    raw: &[u8],
    from: DocumentPosition,
    prefix: &str,
    settings: &DocumentSettings<'_>,
    sheet: &mut impl DocumentOutput,
) -> Result<WriteResult, Full> {
    walk::otlp(signal, raw, from, prefix, settings, sheet)
}

/// Writes the checked intake body `raw` (its metadata first) as the documents that Elastic APM makes of it, to
/// `sheet`, beginning at `from`. `prefix` is as in [`from_otlp`]; of the settings the mapping and the dataset mean
/// nothing here.
///
/// # Errors
/// [`Full`] when not even one document fits.
pub fn from_intake(
    raw: &[u8],
    from: DocumentPosition,
    prefix: &str,
    settings: &DocumentSettings<'_>,
    sheet: &mut impl DocumentOutput,
) -> Result<WriteResult, Full> {
    intake::intake(EventKinds::ALL, raw, from, prefix, settings, sheet)
}

/// As [`from_intake`], of events of these kinds only. The others keep their numbers, and count neither as said nor as
/// untranslatable.
///
/// # Errors
/// [`Full`] when not even one document fits.
pub fn from_intake_of(
    kinds: EventKinds,
    raw: &[u8],
    from: DocumentPosition,
    prefix: &str,
    settings: &DocumentSettings<'_>,
    sheet: &mut impl DocumentOutput,
) -> Result<WriteResult, Full> {
    intake::intake(kinds, raw, from, prefix, settings, sheet)
}

/// Behind the next event of these kinds of the checked intake body `raw`, from `place` on.
#[must_use]
pub fn past_event(kinds: EventKinds, raw: &[u8], place: DocumentPosition) -> DocumentPosition {
    intake::past_event(kinds, raw, place)
}
