//! Reads requests back, strictly enough to notice what a relay may have broken.

use super::proto::{Fields, Value, take_varint};
use super::{STALE, Version, key_of};
use crate::model::SampleKind;

/// One sample or histogram, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSample {
    /// The label set's key.
    pub key: u64,
    /// Its kind.
    pub kind: SampleKind,
    /// The value's bits, or the histogram's sum's.
    pub bits: u64,
    /// Its time.
    pub time_ms: i64,
}

impl ReceivedSample {
    /// Its number, when its value is one.
    pub fn number(&self) -> Option<u64> {
        let value = f64::from_bits(self.bits);
        (value >= 0.0 && value < (1u64 << 53) as f64 && value.fract() == 0.0).then_some(value as u64)
    }

    /// Whether it marks the end of its series.
    pub fn is_stale(&self) -> bool {
        self.bits == STALE
    }
}

/// The contents of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Series.
    pub series: u64,
    /// Float samples, stale markers among them.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars.
    pub exemplars: u64,
    /// Metadata entries.
    pub metadata: u64,
}

/// Why a request could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not a Snappy block, or a larger one than allowed.
    #[error("the body is not a Snappy block of the allowed size")]
    Snappy,
    /// The message ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A field has another wire type than its number says.
    #[error("a field has a wrong wire type")]
    Type,
    /// A field has the number 0, which no message may have.
    #[error("a field has the number 0")]
    Number,
    /// A reference points behind the table of symbols, or refs do not come in pairs.
    #[error("a reference points outside the table of symbols")]
    Reference,
    /// Labels are not strictly ascending by name, or a name or value is empty.
    #[error("a label set is empty, unsorted, doubled, or has an empty name or value")]
    Labels,
}

/// Decompresses a body of at most `max_bytes` and hands every sample and histogram to `visit`, in order.
///
/// # Errors
/// When the body breaks a rule; samples before that place were visited.
pub fn decode(
    version: Version,
    body: &[u8],
    max_bytes: usize,
    visit: &mut dyn FnMut(ReceivedSample),
) -> Result<RequestTotals, DecodeError> {
    let len = snap::raw::decompress_len(body).map_err(|_| DecodeError::Snappy)?;
    if len > max_bytes {
        return Err(DecodeError::Snappy);
    }
    let raw = snap::raw::Decoder::new().decompress_vec(body).map_err(|_| DecodeError::Snappy)?;
    let mut walk = RequestDecoder {
        labels: Vec::with_capacity(32),
        canonical: Vec::new(),
        totals: RequestTotals::default(),
        visit,
    };
    match version {
        Version::V1 => walk.request_v1(&raw)?,
        Version::V2 => walk.request_v2(&raw)?,
    }
    Ok(walk.totals)
}

/// Hands every sample and histogram of messages of series of 1.0 to `visit`, in order.
///
/// # Errors
/// When a series breaks a rule; samples before that place were visited.
#[cfg(feature = "drivers")]
pub(crate) fn decode_series<'a>(
    series: impl Iterator<Item = &'a [u8]>,
    visit: &mut dyn FnMut(ReceivedSample),
) -> Result<RequestTotals, DecodeError> {
    let totals = RequestTotals::default();
    let mut walk = RequestDecoder { labels: Vec::with_capacity(32), canonical: Vec::new(), totals, visit };
    for series in series {
        walk.series_v1(series)?;
    }
    Ok(walk.totals)
}

/// One walk over a message: what is used again from series to series, and what comes of it.
struct RequestDecoder<'a, 'v> {
    labels: Vec<(&'a [u8], &'a [u8])>,
    canonical: Vec<u8>,
    totals: RequestTotals,
    visit: &'v mut dyn FnMut(ReceivedSample),
}

impl<'a> RequestDecoder<'a, '_> {
    fn request_v1(&mut self, raw: &'a [u8]) -> Result<(), DecodeError> {
        for field in Fields(raw) {
            match field? {
                (1, series) => self.series_v1(series.bytes()?)?,
                (3, _) => self.totals.metadata += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn series_v1(&mut self, series: &'a [u8]) -> Result<(), DecodeError> {
        self.labels.clear();
        for field in Fields(series) {
            if let (1, label) = field? {
                self.labels.push(label_v1(label.bytes()?)?);
            }
        }
        let key = self.checked_key()?;
        for field in Fields(series) {
            match field? {
                (2, sample) => self.sample(key, sample)?,
                (3, _) => self.totals.exemplars += 1,
                (4, histogram) => self.histogram(key, histogram)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn request_v2(&mut self, raw: &'a [u8]) -> Result<(), DecodeError> {
        let fields = Fields(raw).filter_map(Result::ok);
        let symbols = fields.filter(|(field, _)| *field == 4).map(|(_, symbol)| symbol.bytes());
        let symbols = symbols.collect::<Result<Vec<_>, _>>()?;
        if symbols.first() != Some(&&b""[..]) {
            return Err(DecodeError::Reference);
        }
        for field in Fields(raw) {
            if let (5, series) = field? {
                self.series_v2(series.bytes()?, &symbols)?;
            }
        }
        Ok(())
    }

    fn series_v2(&mut self, series: &'a [u8], symbols: &[&'a [u8]]) -> Result<(), DecodeError> {
        self.labels.clear();
        for field in Fields(series) {
            if let (1, refs) = field? {
                let mut refs = refs.bytes()?;
                while !refs.is_empty() {
                    let name = symbol(&mut refs, symbols)?;
                    self.labels.push((name, symbol(&mut refs, symbols)?));
                }
            }
        }
        let key = self.checked_key()?;
        for field in Fields(series) {
            match field? {
                (2, sample) => self.sample(key, sample)?,
                (3, histogram) => self.histogram(key, histogram)?,
                (4, _) => self.totals.exemplars += 1,
                (5, metadata) if !metadata.bytes()?.is_empty() => self.totals.metadata += 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn checked_key(&mut self) -> Result<u64, DecodeError> {
        let labels = &self.labels;
        let complete = labels.iter().all(|(name, value)| !name.is_empty() && !value.is_empty());
        if labels.is_empty() || !complete || !labels.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(DecodeError::Labels);
        }
        self.totals.series += 1;
        Ok(key_of(labels.iter().copied(), &mut self.canonical))
    }

    fn sample(&mut self, key: u64, sample: Value<'a>) -> Result<(), DecodeError> {
        self.totals.samples += 1;
        (self.visit)(arrival(key, SampleKind::Float, sample, 1, 2)?);
        Ok(())
    }

    fn histogram(&mut self, key: u64, histogram: Value<'a>) -> Result<(), DecodeError> {
        self.totals.histograms += 1;
        (self.visit)(arrival(key, SampleKind::Histogram, histogram, 3, 15)?);
        Ok(())
    }
}

fn label_v1(label: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (mut name, mut value) = (&b""[..], &b""[..]);
    for field in Fields(label) {
        match field? {
            (1, bytes) => name = bytes.bytes()?,
            (2, bytes) => value = bytes.bytes()?,
            _ => {}
        }
    }
    Ok((name, value))
}

/// The symbol that the next reference names.
fn symbol<'a>(refs: &mut &[u8], symbols: &[&'a [u8]]) -> Result<&'a [u8], DecodeError> {
    let reference = take_varint(refs).ok().and_then(|reference| usize::try_from(reference).ok());
    reference.and_then(|reference| symbols.get(reference).copied()).ok_or(DecodeError::Reference)
}

/// Reads value and time from the fields with these numbers; the last of each counts, a missing one is zero.
fn arrival(
    key: u64,
    kind: SampleKind,
    message: Value<'_>,
    value: u64,
    time: u64,
) -> Result<ReceivedSample, DecodeError> {
    let mut arrival = ReceivedSample { key, kind, bits: 0, time_ms: 0 };
    for field in Fields(message.bytes()?) {
        let (field, content) = field?;
        if field == value {
            arrival.bits = content.bits()?;
        } else if field == time {
            arrival.time_ms = content.uint()?.cast_signed();
        }
    }
    Ok(arrival)
}
