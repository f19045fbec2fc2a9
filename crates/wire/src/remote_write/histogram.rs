//! Native histograms: one message for both versions (2.0 adds the start timestamp).

use crate::proto::{Doubles, Reader, Varints, WireType, low32, zigzag};

/// Field numbers, the same in both versions.
pub(crate) mod field {
    pub(crate) const COUNT_INT: u32 = 1;
    pub(crate) const COUNT_FLOAT: u32 = 2;
    pub(crate) const SUM: u32 = 3;
    pub(crate) const SCHEMA: u32 = 4;
    pub(crate) const ZERO_THRESHOLD: u32 = 5;
    pub(crate) const ZERO_COUNT_INT: u32 = 6;
    pub(crate) const ZERO_COUNT_FLOAT: u32 = 7;
    pub(crate) const NEGATIVE_SPANS: u32 = 8;
    pub(crate) const NEGATIVE_DELTAS: u32 = 9;
    pub(crate) const NEGATIVE_COUNTS: u32 = 10;
    pub(crate) const POSITIVE_SPANS: u32 = 11;
    pub(crate) const POSITIVE_DELTAS: u32 = 12;
    pub(crate) const POSITIVE_COUNTS: u32 = 13;
    pub(crate) const RESET_HINT: u32 = 14;
    pub(crate) const TIMESTAMP: u32 = 15;
    pub(crate) const CUSTOM_VALUES: u32 = 16;
    pub(crate) const START_TIMESTAMP: u32 = 17;
}

/// A count of observations, in whichever of the two forms it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Of an integer histogram.
    Int(u64),
    /// Of a float histogram: the value's bits.
    Float(u64),
}

/// A run of consecutive buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Gap to the previous span, or the index of the first bucket for the first span.
    pub offset: i32,
    /// Number of buckets.
    pub length: u32,
}

/// One native histogram: its scalars read, its buckets still in the message.
#[derive(Debug, Clone, Copy)]
pub struct Histogram<'a> {
    pub(super) message: &'a [u8],
    /// All observations; `None` when the sender set neither form.
    pub count: Option<Count>,
    /// Bits of the sum of all observations; the stale marker is possible here.
    pub sum_bits: u64,
    /// The bucket schema; -53 for custom bounds.
    pub schema: i32,
    /// Bits of the zero bucket's breadth.
    pub zero_threshold_bits: u64,
    /// Observations in the zero bucket.
    pub zero_count: Option<Count>,
    /// 0 unknown, 1 reset, 2 no reset, 3 gauge.
    pub reset_hint: u32,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// When counting began, in milliseconds since the Unix epoch; 0 when unknown, always so in 1.0.
    pub start_timestamp: i64,
}

impl<'a> Histogram<'a> {
    /// Reads the scalars of one histogram message; `None` when it is malformed.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Option<Self> {
        let mut read = Self {
            message,
            count: None,
            sum_bits: 0,
            schema: 0,
            zero_threshold_bits: 0,
            zero_count: None,
            reset_hint: 0,
            timestamp: 0,
            start_timestamp: 0,
        };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            let reader = &mut reader;
            match key.field {
                field::COUNT_INT => read.count = Some(Count::Int(reader.varint(key).ok()?)),
                field::COUNT_FLOAT => read.count = Some(Count::Float(reader.fixed64(key).ok()?)),
                field::SUM => read.sum_bits = reader.fixed64(key).ok()?,
                field::SCHEMA => read.schema = sint32(reader.varint(key).ok()?),
                field::ZERO_THRESHOLD => read.zero_threshold_bits = reader.fixed64(key).ok()?,
                field::ZERO_COUNT_INT => read.zero_count = Some(Count::Int(reader.varint(key).ok()?)),
                field::ZERO_COUNT_FLOAT => {
                    read.zero_count = Some(Count::Float(reader.fixed64(key).ok()?));
                }
                field::RESET_HINT => read.reset_hint = low32(reader.varint(key).ok()?),
                field::TIMESTAMP => read.timestamp = reader.varint(key).ok()?.cast_signed(),
                field::START_TIMESTAMP if key.wire == WireType::Varint => {
                    read.start_timestamp = reader.varint(key).ok()?.cast_signed()
                }
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// The encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Runs of buckets above zero.
    pub fn positive_spans(&self) -> impl Iterator<Item = Span> + use<'a> {
        spans(self.message, field::POSITIVE_SPANS)
    }

    /// Runs of buckets below zero.
    pub fn negative_spans(&self) -> impl Iterator<Item = Span> + use<'a> {
        spans(self.message, field::NEGATIVE_SPANS)
    }

    /// Counts above zero of an integer histogram, each as the difference to the bucket before.
    pub fn positive_deltas(&self) -> impl Iterator<Item = i64> + use<'a> {
        Varints::new(self.message, field::POSITIVE_DELTAS).map(zigzag)
    }

    /// Counts below zero of an integer histogram, each as the difference to the bucket before.
    pub fn negative_deltas(&self) -> impl Iterator<Item = i64> + use<'a> {
        Varints::new(self.message, field::NEGATIVE_DELTAS).map(zigzag)
    }

    /// Bits of the counts above zero of a float histogram.
    #[must_use]
    pub fn positive_counts(&self) -> Doubles<'a> {
        Doubles::new(self.message, field::POSITIVE_COUNTS)
    }

    /// Bits of the counts below zero of a float histogram.
    #[must_use]
    pub fn negative_counts(&self) -> Doubles<'a> {
        Doubles::new(self.message, field::NEGATIVE_COUNTS)
    }

    /// Bits of the upper bounds of custom buckets.
    #[must_use]
    pub fn custom_values(&self) -> Doubles<'a> {
        Doubles::new(self.message, field::CUSTOM_VALUES)
    }
}

/// `sint32`: the low 32 bits, with the zigzag undone.
pub(super) fn sint32(value: u64) -> i32 {
    let low = low32(value);
    (low >> 1).cast_signed() ^ -(low & 1).cast_signed()
}

fn spans(message: &[u8], field: u32) -> impl Iterator<Item = Span> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        while let Some(key) = reader.key().ok()? {
            if key.field == field {
                return span(reader.message(key).ok()?);
            }
            reader.skip(key).ok()?;
        }
        None
    })
}

fn span(mut reader: Reader<'_>) -> Option<Span> {
    let mut span = Span::default();
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => span.offset = sint32(reader.varint(key).ok()?),
            2 => span.length = low32(reader.varint(key).ok()?),
            _ => reader.skip(key).ok()?,
        }
    }
    Some(span)
}
