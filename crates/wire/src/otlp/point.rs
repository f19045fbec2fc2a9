//! The points of metrics. Doubles are kept as bits: equality is of bits, and a NaN's payload survives.

use super::attribute::Attributes;
use crate::proto::{Doubles, Messages, Reader, Varints, low32};

/// The flag of a point that says only that there is no value any more.
pub const NO_RECORDED_VALUE: u32 = 1;

/// A number as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// The bits of a double.
    Double(u64),
}

/// A point of a gauge or a sum.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberPoint<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 when unknown.
    pub start_time: u64,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The value; `None` when none was sent.
    pub value: Option<Number>,
    /// See [`NO_RECORDED_VALUE`].
    pub flags: u32,
}

/// A point of a histogram with bounds given.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistogramPoint<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 when unknown.
    pub start_time: u64,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// All observations.
    pub count: u64,
    /// Bits of their sum.
    pub sum: Option<u64>,
    /// Bits of the least.
    pub min: Option<u64>,
    /// Bits of the greatest.
    pub max: Option<u64>,
    /// See [`NO_RECORDED_VALUE`].
    pub flags: u32,
}

/// A point of a histogram with exponential bounds.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExponentialPoint<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 when unknown.
    pub start_time: u64,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// All observations.
    pub count: u64,
    /// Bits of their sum.
    pub sum: Option<u64>,
    /// The bounds are the powers of 2^(2^-scale).
    pub scale: i32,
    /// Observations as near to zero as the threshold.
    pub zero_count: u64,
    /// Bits of the threshold.
    pub zero_threshold: u64,
    /// Above zero.
    pub positive: Buckets<'a>,
    /// Below zero.
    pub negative: Buckets<'a>,
    /// Bits of the least.
    pub min: Option<u64>,
    /// Bits of the greatest.
    pub max: Option<u64>,
    /// See [`NO_RECORDED_VALUE`].
    pub flags: u32,
}

/// Consecutive buckets of an exponential histogram.
#[derive(Debug, Clone, Copy, Default)]
pub struct Buckets<'a> {
    message: &'a [u8],
    /// The index of the first.
    pub offset: i32,
}

/// A point of a summary.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryPoint<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch; 0 when unknown.
    pub start_time: u64,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// All observations.
    pub count: u64,
    /// Bits of their sum.
    pub sum: u64,
    /// See [`NO_RECORDED_VALUE`].
    pub flags: u32,
}

/// A quantile of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quantile {
    /// Bits of the quantile, 0 to 1.
    pub quantile: u64,
    /// Bits of its value.
    pub value: u64,
}

/// One of the measurements behind a point.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exemplar<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The value; `None` when none was sent.
    pub value: Option<Number>,
    /// 16 bytes or none.
    pub trace_id: &'a [u8],
    /// 8 bytes or none.
    pub span_id: &'a [u8],
}

impl<'a> NumberPoint<'a> {
    /// Reads one from its encoded message; `None` when that is malformed.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.start_time = reader.fixed64(key).ok()?,
                3 => read.time = reader.fixed64(key).ok()?,
                4 => read.value = Some(Number::Double(reader.fixed64(key).ok()?)),
                6 => read.value = Some(Number::Int(reader.fixed64(key).ok()?.cast_signed())),
                8 => read.flags = low32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The attributes of the measurement.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 7)
    }

    /// Its exemplars, in order.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<'a>> + Clone + use<'a> {
        Messages::new(self.message, 5).map_while(Exemplar::read)
    }
}

impl<'a> HistogramPoint<'a> {
    /// Reads one from its encoded message; `None` when that is malformed.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.start_time = reader.fixed64(key).ok()?,
                3 => read.time = reader.fixed64(key).ok()?,
                4 => read.count = reader.fixed64(key).ok()?,
                5 => read.sum = Some(reader.fixed64(key).ok()?),
                10 => read.flags = low32(reader.varint(key).ok()?),
                11 => read.min = Some(reader.fixed64(key).ok()?),
                12 => read.max = Some(reader.fixed64(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The attributes of the measurement.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 9)
    }

    /// Observations in each bucket: one more than there are bounds, or none at all.
    #[must_use]
    pub fn bucket_counts(&self) -> Doubles<'a> {
        Doubles::new(self.message, 6)
    }

    /// Bits of the upper bounds of the buckets, each included in its bucket.
    #[must_use]
    pub fn explicit_bounds(&self) -> Doubles<'a> {
        Doubles::new(self.message, 7)
    }

    /// Its exemplars, in order.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<'a>> + Clone + use<'a> {
        Messages::new(self.message, 8).map_while(Exemplar::read)
    }
}

impl<'a> ExponentialPoint<'a> {
    /// Reads one from its encoded message; `None` when that is malformed.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            let reader = &mut reader;
            match key.field {
                2 => read.start_time = reader.fixed64(key).ok()?,
                3 => read.time = reader.fixed64(key).ok()?,
                4 => read.count = reader.fixed64(key).ok()?,
                5 => read.sum = Some(reader.fixed64(key).ok()?),
                6 => read.scale = sint32(reader.varint(key).ok()?),
                7 => read.zero_count = reader.fixed64(key).ok()?,
                8 => read.positive = Buckets::read(reader.bytes(key).ok()?)?,
                9 => read.negative = Buckets::read(reader.bytes(key).ok()?)?,
                10 => read.flags = low32(reader.varint(key).ok()?),
                12 => read.min = Some(reader.fixed64(key).ok()?),
                13 => read.max = Some(reader.fixed64(key).ok()?),
                14 => read.zero_threshold = reader.fixed64(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The attributes of the measurement.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 1)
    }

    /// Its exemplars, in order.
    pub fn exemplars(&self) -> impl Iterator<Item = Exemplar<'a>> + Clone + use<'a> {
        Messages::new(self.message, 11).map_while(Exemplar::read)
    }
}

impl<'a> Buckets<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, offset: 0 };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.offset = sint32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Observations in each bucket.
    #[must_use]
    pub fn counts(&self) -> Varints<'a> {
        Varints::new(self.message, 2)
    }
}

impl<'a> SummaryPoint<'a> {
    /// Reads one from its encoded message; `None` when that is malformed.
    #[must_use]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.start_time = reader.fixed64(key).ok()?,
                3 => read.time = reader.fixed64(key).ok()?,
                4 => read.count = reader.fixed64(key).ok()?,
                5 => read.sum = reader.fixed64(key).ok()?,
                8 => read.flags = low32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// The attributes of the measurement.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 7)
    }

    /// Its quantiles, in order.
    pub fn quantiles(&self) -> impl Iterator<Item = Quantile> + Clone + use<'a> {
        Messages::new(self.message, 6).map_while(Quantile::read)
    }
}

impl Quantile {
    fn read(message: &[u8]) -> Option<Self> {
        let mut read = Self::default();
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.quantile = reader.fixed64(key).ok()?,
                2 => read.value = reader.fixed64(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

impl<'a> Exemplar<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.time = reader.fixed64(key).ok()?,
                3 => read.value = Some(Number::Double(reader.fixed64(key).ok()?)),
                4 => read.span_id = reader.bytes(key).ok()?,
                5 => read.trace_id = reader.bytes(key).ok()?,
                6 => read.value = Some(Number::Int(reader.fixed64(key).ok()?.cast_signed())),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Attributes of the measurement that the point does not have.
    #[must_use]
    pub fn filtered_attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 7)
    }
}

/// `sint32`: the low 32 bits, with the zigzag undone.
fn sint32(value: u64) -> i32 {
    let low = low32(value);
    (low >> 1).cast_signed() ^ -(low & 1).cast_signed()
}
