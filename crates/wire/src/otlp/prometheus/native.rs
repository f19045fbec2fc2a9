//! Exponential histograms as native histograms.
//!
//! Both have buckets between powers of one base; OTLP counts them by their lower bound and Prometheus by the
//! upper one, which is one more. A scale above 8, which Prometheus does not have, is brought down to 8 by
//! merging neighbours.

use crate::otlp::point::{Buckets, ExponentialPoint};
use crate::output::{Full, Output};
use crate::proto::Varints;
use crate::proto::write::{self, Encode};
use crate::remote_write::STALE_NAN;
use crate::remote_write::histogram::field;

/// The scales that native histograms can have.
const SCALES: std::ops::RangeInclusive<i32> = -4..=8;
/// The breadth of the zero bucket where none is given: 1e-128.
const ZERO_THRESHOLD: u64 = 1e-128_f64.to_bits();
/// The sum of a histogram without one: a NaN, but not the stale marker.
pub(super) const NO_SUM: u64 = 0x7ff8_0000_0000_0001;

/// A native histogram that has what an exponential histogram's point has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Native<'a> {
    point: ExponentialPoint<'a>,
    schema: i32,
    shift: u32,
    stale: bool,
    timestamp: i64,
    start_timestamp: i64,
}

impl<'a> Native<'a> {
    /// `None` when the scale is too coarse, or a bucket has an index that Prometheus cannot write.
    pub(super) fn new(
        point: ExponentialPoint<'a>,
        stale: bool,
        timestamp: i64,
        start_timestamp: i64,
    ) -> Option<Self> {
        let schema = point.scale.min(*SCALES.end());
        let shift = u32::try_from(i64::from(point.scale) - i64::from(schema)).ok()?;
        let native = Self { point, schema, shift: shift.min(63), stale, timestamp, start_timestamp };
        let indexes = [point.positive, point.negative].into_iter().flat_map(|side| native.merged(side));
        let writable = |index: i64| i32::try_from(index).is_ok() && i32::try_from(index + 1).is_ok();
        let within = SCALES.contains(&schema) && indexes.into_iter().all(|(index, _)| writable(index));
        within.then_some(native)
    }

    /// Without the start, for 1.0.
    pub(super) fn without_start(self) -> Self {
        Self { start_timestamp: 0, ..self }
    }

    fn merged(&self, side: Buckets<'a>) -> Merged<'a> {
        Merged { counts: side.counts(), index: i64::from(side.offset), shift: self.shift, pending: None }
    }

    fn put_side(
        &self,
        out: &mut impl Output,
        side: Buckets<'a>,
        spans: u32,
        deltas: u32,
    ) -> Result<(), Full> {
        let buckets = self.merged(side);
        if buckets.clone().next().is_none() {
            return Ok(());
        }
        for span in spans_of(buckets.clone()) {
            write::message(out, spans, &span)?;
        }
        let mut before = 0u64;
        let deltas_of = buckets.map(move |(_, count)| {
            let delta = count.wrapping_sub(before);
            before = count;
            zigzag(delta.cast_signed())
        });
        write::length(out, deltas, deltas_of.clone().map(write::varint_len).sum())?;
        deltas_of.into_iter().try_for_each(|delta| write::raw_varint(out, delta))
    }
}

impl Encode for Native<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let point = &self.point;
        if self.stale {
            // The sum alone says that the series is gone.
            write::varint(out, field::COUNT_INT, 0)?;
            write::fixed64(out, field::SUM, STALE_NAN)?;
            write::varint(out, field::SCHEMA, zigzag(self.schema.into()))?;
            return write::varint(out, field::TIMESTAMP, self.timestamp.cast_unsigned());
        }
        write::varint(out, field::COUNT_INT, point.count)?;
        write::fixed64(out, field::SUM, point.sum.unwrap_or(NO_SUM))?;
        write::varint(out, field::SCHEMA, zigzag(self.schema.into()))?;
        let threshold = if point.zero_threshold == 0 { ZERO_THRESHOLD } else { point.zero_threshold };
        write::fixed64(out, field::ZERO_THRESHOLD, threshold)?;
        write::varint(out, field::ZERO_COUNT_INT, point.zero_count)?;
        self.put_side(out, point.negative, field::NEGATIVE_SPANS, field::NEGATIVE_DELTAS)?;
        self.put_side(out, point.positive, field::POSITIVE_SPANS, field::POSITIVE_DELTAS)?;
        write::varint(out, field::TIMESTAMP, self.timestamp.cast_unsigned())?;
        match self.start_timestamp {
            0 => Ok(()),
            start => write::varint(out, field::START_TIMESTAMP, start.cast_unsigned()),
        }
    }
}

/// The buckets that have something, by Prometheus' index, after merging.
#[derive(Debug, Clone)]
struct Merged<'a> {
    counts: Varints<'a>,
    /// OTLP's index of the next.
    index: i64,
    shift: u32,
    pending: Option<(i64, u64)>,
}

impl Iterator for Merged<'_> {
    type Item = (i64, u64);

    fn next(&mut self) -> Option<(i64, u64)> {
        for count in self.counts.by_ref() {
            let index = (self.index >> self.shift) + 1;
            self.index += 1;
            if count == 0 {
                continue;
            }
            match &mut self.pending {
                Some((pending, sum)) if *pending == index => *sum = sum.saturating_add(count),
                pending => {
                    if let Some(complete) = pending.replace((index, count)) {
                        return Some(complete);
                    }
                }
            }
        }
        self.pending.take()
    }
}

/// A run of buckets.
struct Span {
    offset: i64,
    length: u64,
}

impl Encode for Span {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        write::varint(out, 1, zigzag(self.offset))?;
        write::varint(out, 2, self.length)
    }
}

/// Runs of buckets that have something, each with the gap to the one before.
fn spans_of(buckets: Merged<'_>) -> impl Iterator<Item = Span> {
    let mut buckets = buckets.map(|(index, _)| index).peekable();
    let mut end = 0;
    std::iter::from_fn(move || {
        let first = buckets.next()?;
        let mut next = first + 1;
        while buckets.next_if_eq(&next).is_some() {
            next += 1;
        }
        let span = Span { offset: first - end, length: (next - first).cast_unsigned() };
        end = next;
        Some(span)
    })
}

/// The zigzag encoding of `sint32` and `sint64`.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}
