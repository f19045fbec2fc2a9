//! Reads requests back, strictly enough to notice what a relay may have broken.

use super::proto::{Fields, Value, take_varint};
use super::{STALE, Version, key_of};
use crate::model::Kind;

/// One sample or histogram, as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The label set's key.
    pub key: u64,
    /// What it is.
    pub kind: Kind,
    /// The value's bits, or the histogram's sum's.
    pub bits: u64,
    /// Its time.
    pub time_ms: i64,
}

impl Arrival {
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

/// What a request carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
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
pub enum Fault {
    /// Not a Snappy block, or a larger one than allowed.
    #[error("the body is not a Snappy block of the allowed size")]
    Snappy,
    /// The message ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A field has another wire type than its number says.
    #[error("a field has a wrong wire type")]
    Type,
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
    visit: &mut dyn FnMut(Arrival),
) -> Result<Totals, Fault> {
    let len = snap::raw::decompress_len(body).map_err(|_| Fault::Snappy)?;
    if len > max_bytes {
        return Err(Fault::Snappy);
    }
    let raw = snap::raw::Decoder::new().decompress_vec(body).map_err(|_| Fault::Snappy)?;
    let mut totals = Totals::default();
    match version {
        Version::V1 => {
            for field in Fields(&raw) {
                match field? {
                    (1, message) => series_v1(message.bytes()?, &mut totals, visit)?,
                    (3, _) => totals.metadata += 1,
                    _ => {}
                }
            }
        }
        Version::V2 => {
            let fields = || Fields(&raw).filter_map(Result::ok);
            let symbols = fields().filter(|(field, _)| *field == 4).map(|(_, symbol)| symbol.bytes());
            let symbols = symbols.collect::<Result<Vec<_>, _>>()?;
            if symbols.first() != Some(&&b""[..]) {
                return Err(Fault::Reference);
            }
            for field in Fields(&raw) {
                if let (5, message) = field? {
                    series_v2(message.bytes()?, &symbols, &mut totals, visit)?;
                }
            }
        }
    }
    Ok(totals)
}

fn series_v1(message: &[u8], totals: &mut Totals, visit: &mut dyn FnMut(Arrival)) -> Result<(), Fault> {
    let mut labels = Vec::with_capacity(16);
    for field in Fields(message) {
        if let (1, label) = field? {
            labels.push(label_v1(label.bytes()?)?);
        }
    }
    let key = checked_key(&labels)?;
    totals.series += 1;
    for field in Fields(message) {
        match field? {
            (2, sample) => {
                totals.samples += 1;
                visit(arrival(key, Kind::Float, sample, 1, 2)?);
            }
            (3, _) => totals.exemplars += 1,
            (4, histogram) => {
                totals.histograms += 1;
                visit(arrival(key, Kind::Histogram, histogram, 3, 15)?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn label_v1(label: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
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

fn series_v2(
    message: &[u8],
    symbols: &[&[u8]],
    totals: &mut Totals,
    visit: &mut dyn FnMut(Arrival),
) -> Result<(), Fault> {
    let mut labels = Vec::with_capacity(16);
    for field in Fields(message) {
        if let (1, refs) = field? {
            let mut refs = refs.bytes()?;
            let mut symbol = || {
                let reference = usize::try_from(take_varint(&mut refs)?).map_err(|_| Fault::Reference)?;
                let symbol = symbols.get(reference).copied().ok_or(Fault::Reference)?;
                Ok((symbol, refs.is_empty()))
            };
            loop {
                let (name, odd) = symbol()?;
                if odd {
                    return Err(Fault::Reference);
                }
                let (value, end) = symbol()?;
                labels.push((name, value));
                if end {
                    break;
                }
            }
        }
    }
    let key = checked_key(&labels)?;
    totals.series += 1;
    for field in Fields(message) {
        match field? {
            (2, sample) => {
                totals.samples += 1;
                visit(arrival(key, Kind::Float, sample, 1, 2)?);
            }
            (3, histogram) => {
                totals.histograms += 1;
                visit(arrival(key, Kind::Histogram, histogram, 3, 15)?);
            }
            (4, _) => totals.exemplars += 1,
            (5, metadata) if !metadata.bytes()?.is_empty() => totals.metadata += 1,
            _ => {}
        }
    }
    Ok(())
}

fn checked_key(labels: &[(&[u8], &[u8])]) -> Result<u64, Fault> {
    let complete = labels.iter().all(|(name, value)| !name.is_empty() && !value.is_empty());
    if labels.is_empty() || !complete || !labels.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(Fault::Labels);
    }
    Ok(key_of(labels.iter().copied()))
}

/// Reads value and time from the fields with these numbers; the last of each counts, a missing one is zero.
fn arrival(key: u64, kind: Kind, message: Value<'_>, value: u64, time: u64) -> Result<Arrival, Fault> {
    let mut arrival = Arrival { key, kind, bits: 0, time_ms: 0 };
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
