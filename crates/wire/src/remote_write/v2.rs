//! Views of `io.prometheus.write.v2.Request`, with its symbols resolved.

use super::histogram::Histogram;
use super::item::{Exemplar, Label, Metadata, Sample};
pub use super::symbols::Table;
use crate::proto::{Messages, Reader, Varints, low32};

/// Field numbers.
pub mod field {
    /// Of the request.
    pub const TIMESERIES: u32 = 5;
    /// Of a series, and of an exemplar.
    pub const LABELS_REFS: u32 = 1;
    /// Of a series.
    pub const SAMPLES: u32 = 2;
    /// Of a series.
    pub const HISTOGRAMS: u32 = 3;
    /// Of a series.
    pub const EXEMPLARS: u32 = 4;
    /// Of a series.
    pub const METADATA: u32 = 5;
    /// Of a series, until release candidate 3 of the specification; samples carry it since.
    pub const CREATED_TIMESTAMP: u32 = 6;
    /// Of the metadata.
    pub const HELP_REF: u32 = 3;
    /// Of the metadata.
    pub const UNIT_REF: u32 = 4;
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    raw: &'a [u8],
    symbols: Table<'a>,
}

/// One series of it.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    message: &'a [u8],
    symbols: Table<'a>,
}

/// The labels of a series or of an exemplar.
#[derive(Debug, Clone)]
pub struct Labels<'a> {
    references: Varints<'a>,
    symbols: Table<'a>,
}

impl<'a> Request<'a> {
    /// A view of the decompressed body `raw`, whose symbols are `symbols`.
    #[must_use]
    pub fn new(raw: &'a [u8], symbols: Table<'a>) -> Self {
        Self { raw, symbols }
    }

    /// Its symbols.
    #[must_use]
    pub fn symbols(&self) -> Table<'a> {
        self.symbols
    }

    /// The series in `part`, some whole fields of the body.
    pub fn series_in(&self, part: &'a [u8]) -> impl Iterator<Item = Series<'a>> + Clone + use<'a> {
        Self { raw: part, symbols: self.symbols }.series()
    }

    /// Its series, in order.
    pub fn series(&self) -> impl Iterator<Item = Series<'a>> + Clone + use<'a> {
        let symbols = self.symbols;
        self.messages().map(move |message| Series::new(message, symbols))
    }

    /// The encoded messages of its series.
    pub(super) fn messages(&self) -> Messages<'a> {
        Messages::new(self.raw, field::TIMESERIES)
    }
}

impl<'a> Series<'a> {
    pub(super) fn new(message: &'a [u8], symbols: Table<'a>) -> Self {
        Self { message, symbols }
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The symbols that it refers to.
    pub(super) fn symbols(&self) -> Table<'a> {
        self.symbols
    }

    /// Its labels, in the sender's order, which is by name in a checked body.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        Labels { references: Varints::new(self.message, field::LABELS_REFS), symbols: self.symbols }
    }

    /// Its float samples. One without a start timestamp of its own has the series' created timestamp.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + Clone + use<'a> {
        let created = self.created_timestamp();
        Messages::new(self.message, field::SAMPLES).read(move |message| sample(message, created))
    }

    /// Its native histograms. One without a start timestamp of its own has the series' created timestamp.
    pub fn histograms(&self) -> impl Iterator<Item = Histogram<'a>> + Clone + use<'a> {
        let created = self.created_timestamp();
        Messages::new(self.message, field::HISTOGRAMS).read(move |message| {
            let mut histogram = Histogram::new(message)?;
            if histogram.start_timestamp == 0 {
                histogram.start_timestamp = created;
            }
            Some(histogram)
        })
    }

    /// Its exemplars.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<Labels<'a>>> + Clone + use<'a> {
        let symbols = self.symbols;
        Messages::new(self.message, field::EXEMPLARS).read(move |message| exemplar(message, symbols))
    }

    /// Its metadata, if any was sent; the family is the series' metric name.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata<'a>> {
        let mut found = None;
        // A message field that is there twice is merged, which is why this does not stop at the first.
        for message in Messages::new(self.message, field::METADATA) {
            let metadata = found.get_or_insert_with(Metadata::default);
            merge_metadata(metadata, message, self.symbols);
        }
        let mut metadata = found?;
        metadata.family = self.labels().find(|label| label.name == b"__name__")?.value;
        Some(metadata)
    }

    /// When the series was created, as senders before release candidate 4 say it; 0 when unknown.
    #[must_use]
    pub fn created_timestamp(&self) -> i64 {
        let mut reader = Reader::new(self.message);
        let mut created = 0;
        while let Ok(Some(key)) = reader.key() {
            let read = match key.field {
                field::CREATED_TIMESTAMP => reader.varint(key).map(|value| created = value.cast_signed()),
                _ => reader.skip(key),
            };
            if read.is_err() {
                break;
            }
        }
        created
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    #[inline]
    fn next(&mut self) -> Option<Label<'a>> {
        let name = self.symbols.get(self.references.next()?)?;
        let value = self.symbols.get(self.references.next()?)?;
        Some(Label { name, value })
    }
}

fn sample(message: &[u8], created: i64) -> Option<Sample> {
    let mut sample = Sample::default();
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => sample.bits = reader.fixed64(key).ok()?,
            2 => sample.timestamp = reader.varint(key).ok()?.cast_signed(),
            3 => sample.start_timestamp = reader.varint(key).ok()?.cast_signed(),
            _ => reader.skip(key).ok()?,
        }
    }
    if sample.start_timestamp == 0 {
        sample.start_timestamp = created;
    }
    Some(sample)
}

fn exemplar<'a>(message: &'a [u8], symbols: Table<'a>) -> Option<Exemplar<Labels<'a>>> {
    let labels = Labels { references: Varints::new(message, field::LABELS_REFS), symbols };
    let mut exemplar = Exemplar { labels, bits: 0, timestamp: 0 };
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            2 => exemplar.bits = reader.fixed64(key).ok()?,
            3 => exemplar.timestamp = reader.varint(key).ok()?.cast_signed(),
            _ => reader.skip(key).ok()?,
        }
    }
    Some(exemplar)
}

fn merge_metadata<'a>(metadata: &mut Metadata<'a>, message: &'a [u8], symbols: Table<'a>) -> Option<()> {
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => metadata.kind = low32(reader.varint(key).ok()?),
            field::HELP_REF => metadata.help = symbols.get(reader.varint(key).ok()?)?,
            field::UNIT_REF => metadata.unit = symbols.get(reader.varint(key).ok()?)?,
            _ => reader.skip(key).ok()?,
        }
    }
    Some(())
}
