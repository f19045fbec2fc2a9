//! Native histograms as points of either kind of histogram.

use super::message_writer::BoundedWriter;
use super::{CUSTOM, Kind, MOST_BUCKETS, times};
use crate::otlp::point::NO_RECORDED_VALUE;
use crate::output::{Full, Output};
use crate::proto::write;
use crate::remote_write::{Count, Histogram, STALE_NAN, Span};

/// Of a histogram that may fall.
const GAUGE_HINT: u32 = 3;

/// A point of either kind of histogram: most of their fields have the same numbers.
pub(super) fn histogram_point(
    histogram: &Histogram<'_>,
    kind: Kind,
    out: &mut BoundedWriter<'_>,
) -> Result<(), Full> {
    times(histogram.start_timestamp, histogram.timestamp, out)?;
    if histogram.sum_bits == STALE_NAN {
        return write::varint(out, 10, NO_RECORDED_VALUE.into());
    }
    write::fixed64(out, 4, int(histogram.count).unwrap_or(0))?;
    write::fixed64(out, 5, histogram.sum_bits)?;
    if kind == Kind::Histogram {
        let (first, counts) = positive(histogram);
        // Custom buckets count from 0, and there is one more than bounds.
        let (leading, all) = (usize::try_from(first).unwrap_or(0), histogram.custom_values().count() + 1);
        out.message(6, |out| {
            let counts = std::iter::repeat_n(0, leading).chain(counts).chain(std::iter::repeat(0));
            counts.take(all).try_for_each(|count| out.put(&count.to_le_bytes()))
        })?;
        return out
            .message(7, |out| histogram.custom_values().try_for_each(|bound| out.put(&bound.to_le_bytes())));
    }
    write::varint(out, 6, zigzag(histogram.schema))?;
    write::fixed64(out, 7, int(histogram.zero_count).unwrap_or(0))?;
    let (first, counts) = positive(histogram);
    buckets(8, first, counts, out)?;
    let (first, counts) = negative(histogram);
    buckets(9, first, counts, out)?;
    write::fixed64(out, 14, histogram.zero_threshold_bits)
}

/// Buckets of an exponential histogram; the first of them is `first` as Prometheus counts.
fn buckets(
    field: u32,
    first: i64,
    mut counts: impl Iterator<Item = u64>,
    out: &mut BoundedWriter<'_>,
) -> Result<(), Full> {
    out.message(field, |out| {
        // Prometheus names a bucket by its upper bound, OTLP by its lower.
        let offset = i32::try_from(first.saturating_sub(1)).unwrap_or_default();
        write::varint(out, 1, zigzag(offset))?;
        out.message(2, |out| counts.try_for_each(|count| write::raw_varint(out, count)))
    })
}

/// The number of the first bucket above zero, and the counts from there on, without gaps.
fn positive<'a>(histogram: &Histogram<'a>) -> (i64, impl Iterator<Item = u64> + use<'a>) {
    (first(histogram.positive_spans()), dense(histogram.positive_spans(), histogram.positive_deltas()))
}

fn negative<'a>(histogram: &Histogram<'a>) -> (i64, impl Iterator<Item = u64> + use<'a>) {
    (first(histogram.negative_spans()), dense(histogram.negative_spans(), histogram.negative_deltas()))
}

fn first(mut spans: impl Iterator<Item = Span>) -> i64 {
    spans.next().map_or(1, |span| span.offset.into())
}

fn dense(
    spans: impl Iterator<Item = Span>,
    mut deltas: impl Iterator<Item = i64>,
) -> impl Iterator<Item = u64> {
    let mut count = 0i64;
    let slots = spans.enumerate().flat_map(|(number, span)| {
        let gap = if number == 0 { 0 } else { usize::try_from(span.offset).unwrap_or(0) };
        let full = usize::try_from(span.length).unwrap_or(usize::MAX);
        std::iter::repeat_n(false, gap).chain(std::iter::repeat_n(true, full))
    });
    slots.take(MOST_BUCKETS).map(move |full| {
        if !full {
            return 0;
        }
        count = count.wrapping_add(deltas.next().unwrap_or(0));
        u64::try_from(count).unwrap_or(0)
    })
}

/// Whether OTLP has a form for it.
pub(super) fn is_translatable(histogram: &Histogram<'_>) -> bool {
    if histogram.sum_bits == STALE_NAN {
        return true;
    }
    let ints = [histogram.count, histogram.zero_count]
        .into_iter()
        .all(|count| !matches!(count, Some(Count::Float(_))));
    let fits = |spans: &mut dyn Iterator<Item = Span>| {
        let (first, mut end) = match spans.next() {
            Some(span) => (i64::from(span.offset), i64::from(span.offset) + i64::from(span.length)),
            None => return Some((0, 0)),
        };
        for span in spans {
            // Spans that run into each other say nothing that is known.
            end += i64::from(u32::try_from(span.offset).ok()?) + i64::from(span.length);
        }
        let fits = end - first <= MOST_BUCKETS as i64 && i32::try_from(first - 1).is_ok();
        (fits && i32::try_from(end).is_ok()).then_some((first, end))
    };
    let Some((first, end)) = fits(&mut histogram.positive_spans()) else { return false };
    let below = fits(&mut histogram.negative_spans());
    let shape = if histogram.schema == CUSTOM {
        let bounds = histogram.custom_values().count() as i64;
        first >= 0 && end <= bounds + 1 && below == Some((0, 0))
    } else {
        (-4..=8).contains(&histogram.schema) && below.is_some()
    };
    ints && shape && histogram.reset_hint != GAUGE_HINT
}

fn int(count: Option<Count>) -> Option<u64> {
    match count? {
        Count::Int(count) => Some(count),
        Count::Float(_) => None,
    }
}

fn zigzag(value: i32) -> u64 {
    u64::from((value << 1 ^ value >> 31).cast_unsigned())
}
