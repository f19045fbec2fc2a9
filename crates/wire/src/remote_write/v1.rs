//! Views of `prometheus.WriteRequest`.

use super::histogram::Histogram;
use super::item::{Exemplar, Label, Metadata, Sample};
use crate::proto::{Messages, Reader, WireType, low32};

/// Field numbers.
pub mod field {
    /// Of the request.
    pub const TIMESERIES: u32 = 1;
    /// Of the request.
    pub const METADATA: u32 = 3;
    /// Of a series, and of an exemplar.
    pub const LABELS: u32 = 1;
    /// Of a series.
    pub const SAMPLES: u32 = 2;
    /// Of a series.
    pub const EXEMPLARS: u32 = 3;
    /// Of a series.
    pub const HISTOGRAMS: u32 = 4;
}

/// The tag of a series' labels.
pub(super) const LABELS_TAG: u8 = 0x0a;
pub(super) const SAMPLES_TAG: u8 = 0x12;

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    raw: &'a [u8],
}

/// One series of it.
#[derive(Debug, Clone, Copy)]
pub struct Series<'a> {
    message: &'a [u8],
}

/// The labels of a series or of an exemplar.
#[derive(Debug, Clone)]
pub struct Labels<'a>(Messages<'a>);

/// A field of a request.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A series.
    Series(Series<'a>),
    /// Metadata.
    Metadata {
        /// The metric family's name.
        family: &'a [u8],
        /// The encoded message.
        message: &'a [u8],
    },
}

impl<'a> Request<'a> {
    /// A view of the decompressed body `raw`.
    #[must_use]
    pub fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Its series, in order.
    pub fn series(&self) -> impl Iterator<Item = Series<'a>> + Clone + use<'a> {
        self.messages().map(Series::new)
    }

    /// Its series and its metadata, in order and in one walk.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut reader = Reader::new(self.raw);
        std::iter::from_fn(move || {
            loop {
                let key = reader.key().ok()??;
                match (key.field, key.wire) {
                    (field::TIMESERIES, WireType::Length) => {
                        return Some(Entry::Series(Series::new(reader.bytes(key).ok()?)));
                    }
                    (field::METADATA, WireType::Length) => {
                        let message = reader.bytes(key).ok()?;
                        return Some(Entry::Metadata { family: metadata(message)?.family, message });
                    }
                    // Requests of Thanos, which have series in the same field, have another one with this number.
                    _ => reader.skip(key).ok()?,
                }
            }
        })
    }

    /// The encoded messages of its series.
    pub(super) fn messages(&self) -> Messages<'a> {
        Messages::new(self.raw, field::TIMESERIES)
    }

    /// Its metadata, in order.
    pub fn metadata(&self) -> impl Iterator<Item = Metadata<'a>> + Clone + use<'a> {
        metadata_messages(self.raw).map_while(metadata)
    }
}

impl<'a> Series<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { message }
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its labels, in the sender's order, which is by name in a checked body.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        Labels(Messages::new(self.message, field::LABELS))
    }

    /// Calls `visit` with each label, in the sender's order, and counts samples, exemplars and histograms, all in one walk.
    #[inline]
    pub fn visit_labels(&self, mut visit: impl FnMut(Label<'a>)) -> u64 {
        let (mut reader, mut items) = (Reader::new(self.message), 0);
        loop {
            if let Some(message) = reader.take_short(LABELS_TAG) {
                if let Some(label) = plain_label(message).map(|(label, _)| label).or_else(|| label(message)) {
                    visit(label);
                }
                continue;
            }
            if reader.take_short(SAMPLES_TAG).is_some() {
                items += 1;
                continue;
            }
            // Whatever is long, or seldom there.
            let Ok(Some(key)) = reader.key() else { break };
            match (key.field, key.wire) {
                (field::LABELS, WireType::Length) => {
                    let Ok(message) = reader.bytes(key) else { break };
                    if let Some(label) = label(message) {
                        visit(label);
                    }
                }
                (field, _) => {
                    items += u64::from((field::SAMPLES..=field::HISTOGRAMS).contains(&field));
                    if reader.skip(key).is_err() {
                        break;
                    }
                }
            }
        }
        items
    }

    /// The value of a label, and the message without it in two parts.
    #[must_use]
    pub fn without_label(&self, name: &[u8]) -> Option<(&'a [u8], [&'a [u8]; 2])> {
        let mut reader = Reader::new(self.message);
        let mut start = reader.offset();
        while let Some(key) = reader.key().ok()? {
            if key.field == field::LABELS && key.wire == WireType::Length {
                let found = label(reader.bytes(key).ok()?)?;
                if found.name == name {
                    let parts = [self.message.get(..start)?, self.message.get(reader.offset()..)?];
                    return Some((found.value, parts));
                }
            } else {
                reader.skip(key).ok()?;
            }
            start = reader.offset();
        }
        None
    }

    /// Its float samples.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + Clone + use<'a> {
        Messages::new(self.message, field::SAMPLES).read(sample)
    }

    /// Its native histograms.
    pub fn histograms(&self) -> impl Iterator<Item = Histogram<'a>> + Clone + use<'a> {
        // 1.0 does not know the start timestamp: whatever is in that field means something else.
        Messages::new(self.message, field::HISTOGRAMS)
            .read(|message| Some(Histogram { start_timestamp: 0, ..Histogram::new(message)? }))
    }

    /// Its exemplars.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<Labels<'a>>> + Clone + use<'a> {
        Messages::new(self.message, field::EXEMPLARS).read(exemplar)
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = Label<'a>;

    #[inline]
    fn next(&mut self) -> Option<Label<'a>> {
        let message = self.0.next()?;
        plain_label(message).map(|(label, _)| label).or_else(|| label(message))
    }
}

/// A label encoded as every known sender does it: name, value, both shorter than 128 bytes, nothing else.
/// Returned with what begins at its name.
#[inline(always)]
pub(super) fn plain_label(message: &[u8]) -> Option<(Label<'_>, &[u8])> {
    let (&[0x0a, name_len], tail) = message.split_first_chunk()? else { return None };
    let (name, rest) = tail.split_at_checked(usize::from(name_len))?;
    let (&[0x12, value_len], value) = rest.split_first_chunk()? else { return None };
    let plain = name_len < 0x80 && value_len < 0x80 && value.len() == usize::from(value_len);
    plain.then_some((Label { name, value }, tail))
}

fn label(message: &[u8]) -> Option<Label<'_>> {
    let mut label = Label { name: &[], value: &[] };
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => label.name = reader.bytes(key).ok()?,
            2 => label.value = reader.bytes(key).ok()?,
            _ => reader.skip(key).ok()?,
        }
    }
    Some(label)
}

fn sample(message: &[u8]) -> Option<Sample> {
    let mut sample = Sample::default();
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => sample.bits = reader.fixed64(key).ok()?,
            2 => sample.timestamp = reader.varint(key).ok()?.cast_signed(),
            _ => reader.skip(key).ok()?,
        }
    }
    Some(sample)
}

fn exemplar(message: &[u8]) -> Option<Exemplar<Labels<'_>>> {
    let labels = Labels(Messages::new(message, field::LABELS));
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

/// The encoded metadata entries of a request.
pub(super) fn metadata_messages(raw: &[u8]) -> Messages<'_> {
    Messages::new(raw, field::METADATA)
}

/// Reads one metadata entry.
pub(super) fn metadata(message: &[u8]) -> Option<Metadata<'_>> {
    let mut metadata = Metadata::default();
    let mut reader = Reader::new(message);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => metadata.kind = low32(reader.varint(key).ok()?),
            2 => metadata.family = reader.bytes(key).ok()?,
            4 => metadata.help = reader.bytes(key).ok()?,
            5 => metadata.unit = reader.bytes(key).ok()?,
            _ => reader.skip(key).ok()?,
        }
    }
    Some(metadata)
}
