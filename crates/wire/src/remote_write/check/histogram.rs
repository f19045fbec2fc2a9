//! The structure of a native histogram, and the rules by which Prometheus validates one.
//!
//! The rules are those of `Histogram.Validate` and `FloatHistogram.Validate` in `model/histogram` of the Prometheus
//! project: a receiver refuses what breaks them, so it is refused here, where the client still hears of it. They are
//! checked in one walk, whatever the order of the fields.

use crate::proto::{Key, Malformed, Problem, Reader, WireType, low32, zigzag};
use crate::remote_write::error::{HistogramSide, RemoteWriteError, RemoteWriteErrorKind};
use crate::remote_write::histogram::{field, sint32};

/// Custom bounds in place of an exponential schema.
const CUSTOM_BUCKETS: i32 = -53;
/// The exponential schemas that Prometheus stores.
const EXPONENTIAL: std::ops::RangeInclusive<i32> = -4..=8;

/// Checks a histogram message; `with_start` says whether the version knows the start timestamp.
#[inline(never)]
pub(super) fn check(mut message: Reader<'_>, with_start: bool) -> Result<(), RemoteWriteError> {
    let start = message.offset();
    let mut seen = HistogramFields::default();
    while let Some(key) = message.key()? {
        match key.field {
            field::COUNT_INT => {
                seen.count = message.varint(key)?;
                seen.float = false;
            }
            field::COUNT_FLOAT => {
                seen.float_count = f64::from_bits(message.fixed64(key)?);
                seen.float = true;
            }
            field::SUM => seen.sum = f64::from_bits(message.fixed64(key)?),
            field::SCHEMA => seen.schema = sint32(message.varint(key)?),
            field::ZERO_THRESHOLD => seen.zero_threshold = f64::from_bits(message.fixed64(key)?),
            // The two are alternatives: the later one replaces the earlier.
            field::ZERO_COUNT_INT => {
                (seen.zero_count, seen.float_zero_count) = (message.varint(key)?, 0.0);
            }
            field::ZERO_COUNT_FLOAT => {
                (seen.zero_count, seen.float_zero_count) = (0, f64::from_bits(message.fixed64(key)?));
            }
            field::RESET_HINT | field::TIMESTAMP => drop(message.varint(key)?),
            field::START_TIMESTAMP if with_start => drop(message.varint(key)?),
            field::NEGATIVE_SPANS => seen.negative.span(message.message(key)?)?,
            field::NEGATIVE_DELTAS => each_varint(&mut message, key, |delta| seen.negative.delta(delta))?,
            field::NEGATIVE_COUNTS => each_double(&mut message, key, |count| seen.negative.count(count))?,
            field::POSITIVE_SPANS => seen.positive.span(message.message(key)?)?,
            field::POSITIVE_DELTAS => each_varint(&mut message, key, |delta| seen.positive.delta(delta))?,
            field::POSITIVE_COUNTS => each_double(&mut message, key, |count| seen.positive.count(count))?,
            field::CUSTOM_VALUES => each_double(&mut message, key, |bound| seen.bounds.push(bound))?,
            _ => message.skip(key)?,
        }
    }
    seen.judge().map_err(|reason| RemoteWriteError::new(start, reason))
}

/// The properties of a histogram, known after reading its message.
#[derive(Default)]
struct HistogramFields {
    /// Whether the counts are floats: the form of the total decides, as in Prometheus.
    float: bool,
    count: u64,
    float_count: f64,
    sum: f64,
    schema: i32,
    zero_threshold: f64,
    zero_count: u64,
    float_zero_count: f64,
    positive: Buckets,
    negative: Buckets,
    bounds: Bounds,
}

/// The spans and the buckets on one side of zero.
#[derive(Default)]
struct Buckets {
    spans: u64,
    /// Sum of the spans' lengths.
    covered: u64,
    /// Sum of the spans' offsets.
    offsets: i64,
    /// Number and offset of the first span with a negative offset, the first span of all and the later ones.
    negative_offset: [Option<(u64, i32)>; 2],
    deltas: u64,
    /// The count of the last bucket of an integer histogram.
    last: i64,
    /// The sum of the counts of an integer histogram.
    total: u64,
    counts: u64,
    /// The number of the first bucket with a negative count, of integers and of floats.
    negative: [Option<u64>; 2],
}

/// Upper bounds of custom buckets.
#[derive(Default)]
struct Bounds {
    number: u64,
    last: f64,
    wrong: Option<&'static str>,
}

impl HistogramFields {
    fn judge(&self) -> Result<(), RemoteWriteErrorKind> {
        let zero_count_is_zero = if self.float { self.float_zero_count == 0.0 } else { self.zero_count == 0 };
        if self.schema == CUSTOM_BUCKETS {
            self.bounds.judge()?;
            self.positive.judge(HistogramSide::Positive, self.float, true)?;
            let needed = self.positive.covered.cast_signed().saturating_add(self.positive.offsets);
            if self.bounds.number.cast_signed().saturating_add(1) < needed {
                return Err(RemoteWriteErrorKind::CustomBuckets(
                    "has fewer custom bounds than its spans need",
                ));
            }
            if !zero_count_is_zero || self.zero_threshold != 0.0 {
                return Err(RemoteWriteErrorKind::CustomBuckets("has custom buckets and a zero bucket"));
            }
            let Buckets { spans, deltas, counts, .. } = self.negative;
            if (spans, if self.float { counts } else { deltas }) != (0, 0) {
                return Err(RemoteWriteErrorKind::CustomBuckets("has custom buckets and negative ones"));
            }
        } else if EXPONENTIAL.contains(&self.schema) {
            self.positive.judge(HistogramSide::Positive, self.float, false)?;
            self.negative.judge(HistogramSide::Negative, self.float, false)?;
            if self.bounds.number > 0 {
                return Err(RemoteWriteErrorKind::CustomBuckets(
                    "has an exponential schema and custom bounds",
                ));
            }
        } else {
            return Err(RemoteWriteErrorKind::Schema(self.schema));
        }
        if self.float { self.judge_float() } else { self.judge_count() }
    }

    /// The total of an integer histogram is the sum of its buckets; observations of NaN are in no bucket, and make
    /// the sum of all observations NaN.
    fn judge_count(&self) -> Result<(), RemoteWriteErrorKind> {
        let found = self.positive.total.wrapping_add(self.negative.total).wrapping_add(self.zero_count);
        let fits = if self.sum.is_nan() { found <= self.count } else { found == self.count };
        if fits { Ok(()) } else { Err(RemoteWriteErrorKind::Count { count: self.count, found }) }
    }

    /// Sums of floats are not exact, so they are not compared.
    fn judge_float(&self) -> Result<(), RemoteWriteErrorKind> {
        if self.float_count < 0.0 || self.float_zero_count < 0.0 {
            Err(RemoteWriteErrorKind::NegativeCount)
        } else {
            Ok(())
        }
    }
}

impl Buckets {
    fn span(&mut self, mut message: Reader<'_>) -> Result<(), Malformed> {
        let (mut offset, mut length) = (0, 0);
        while let Some(key) = message.key()? {
            match key.field {
                1 => offset = sint32(message.varint(key)?),
                2 => length = low32(message.varint(key)?),
                _ => message.skip(key)?,
            }
        }
        if offset < 0 {
            let [first, later] = &mut self.negative_offset;
            let found = if self.spans == 0 { first } else { later };
            found.get_or_insert((self.spans + 1, offset));
        }
        self.spans += 1;
        self.covered += u64::from(length);
        self.offsets = self.offsets.saturating_add(offset.into());
        Ok(())
    }

    fn delta(&mut self, delta: u64) {
        self.deltas += 1;
        self.last = self.last.wrapping_add(zigzag(delta));
        if self.last < 0 {
            self.negative[0].get_or_insert(self.deltas);
        }
        self.total = self.total.wrapping_add(self.last.cast_unsigned());
    }

    fn count(&mut self, count: f64) {
        self.counts += 1;
        if count < 0.0 {
            self.negative[1].get_or_insert(self.counts);
        }
    }

    /// Whether spans and buckets agree. The first span begins anywhere, but with custom bounds.
    fn judge(&self, side: HistogramSide, float: bool, custom: bool) -> Result<(), RemoteWriteErrorKind> {
        let [first, later] = self.negative_offset;
        if let Some((span, offset)) = first.filter(|_| custom).or(later) {
            return Err(RemoteWriteErrorKind::SpanOffset { side, span, offset });
        }
        let (given, [negative, negative_float]) =
            (if float { self.counts } else { self.deltas }, self.negative);
        if self.covered != given {
            return Err(RemoteWriteErrorKind::Buckets { side, covered: self.covered, given });
        }
        match if float { negative_float } else { negative } {
            Some(bucket) => Err(RemoteWriteErrorKind::NegativeBucket { side, bucket }),
            None => Ok(()),
        }
    }
}

impl Bounds {
    fn push(&mut self, bound: f64) {
        if bound.is_nan() {
            self.wrong.get_or_insert("has a custom bound that is not a number");
        } else if self.number > 0 && bound <= self.last {
            self.wrong.get_or_insert("has custom bounds that do not increase");
        }
        (self.number, self.last) = (self.number + 1, bound);
    }

    fn judge(&self) -> Result<(), RemoteWriteErrorKind> {
        match self.wrong {
            Some(wrong) => Err(RemoteWriteErrorKind::CustomBuckets(wrong)),
            None if self.number > 0 && self.last == f64::INFINITY => {
                Err(RemoteWriteErrorKind::CustomBuckets("has a custom bound of +Inf, which is implied"))
            }
            None => Ok(()),
        }
    }
}

/// Gives the numbers behind `key`, packed or not, to `take`.
fn each_varint(message: &mut Reader<'_>, key: Key, mut take: impl FnMut(u64)) -> Result<(), Malformed> {
    if key.wire == WireType::Varint {
        return message.varint(key).map(take);
    }
    let mut packed = message.message(key)?;
    while !packed.rest().is_empty() {
        take(packed.raw_varint(key.field)?);
    }
    Ok(())
}

/// Gives the doubles behind `key`, packed or not, to `take`.
fn each_double(message: &mut Reader<'_>, key: Key, mut take: impl FnMut(f64)) -> Result<(), Malformed> {
    if key.wire == WireType::Fixed64 {
        return message.fixed64(key).map(|bits| take(f64::from_bits(bits)));
    }
    let packed = message.message(key)?;
    let (numbers, rest) = packed.rest().as_chunks();
    if !rest.is_empty() {
        return Err(packed.malformed(key.field, Problem::Truncated));
    }
    numbers.iter().for_each(|number| take(f64::from_le_bytes(*number)));
    Ok(())
}
