//! Exponential histograms, which Prometheus calls native ones: their buckets as counts between two bounds.

use super::cells::as_double;
use crate::attributes::column;
use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;

/// The finest scale that is kept: four buckets in each doubling. Those of finer ones are put together, so that histograms of different
/// scales can be, and a series does not have hundreds of buckets.
const FINEST: i32 = 2;
/// The coarsest scale that makes sense: one bucket has all numbers above 1.
const COARSEST: i32 = -11;

/// An index beyond this has no bound that is a number.
const FARTHEST: i64 = 1 << 40;

/// How many values there are from `lower` to `upper`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) lower: f64,
    pub(super) upper: f64,
    pub(super) count: f64,
}

/// The columns of exponential histograms.
pub(super) struct NativeColumns<'r> {
    scale: &'r ArrayRef,
    zero_count: Counts<'r>,
    zero_threshold: &'r ArrayRef,
    positive: Side<'r>,
    negative: Side<'r>,
}

/// Whole numbers, or others where the histogram has such.
pub(super) struct Counts<'r> {
    pub(super) whole: &'r ArrayRef,
    pub(super) float: &'r ArrayRef,
}

/// The buckets on one side of zero.
struct Side<'r> {
    offset: &'r ArrayRef,
    spans: &'r ArrayRef,
    counts: Counts<'r>,
}

/// Those columns.
pub(super) const COLUMNS: [&str; 12] = [
    "scale",
    "zero_count",
    "zero_count_float",
    "zero_threshold",
    "positive_offset",
    "positive_spans",
    "positive_counts",
    "positive_counts_float",
    "negative_offset",
    "negative_spans",
    "negative_counts",
    "negative_counts_float",
];

impl<'r> NativeColumns<'r> {
    pub(super) fn of(rows: &'r RecordBatch) -> Result<NativeColumns<'r>, ArrowError> {
        let [
            scale,
            zero_count,
            zero_count_float,
            zero_threshold,
            offset,
            spans,
            counts,
            counts_float,
            below_offset,
            below_spans,
            below,
            below_float,
        ] = COLUMNS;
        let get = |name| column(rows, name);
        let numbers = |whole, float| Ok::<_, ArrowError>(Counts { whole: get(whole)?, float: get(float)? });
        Ok(NativeColumns {
            scale: get(scale)?,
            zero_count: numbers(zero_count, zero_count_float)?,
            zero_threshold: get(zero_threshold)?,
            positive: Side {
                offset: get(offset)?,
                spans: get(spans)?,
                counts: numbers(counts, counts_float)?,
            },
            negative: Side {
                offset: get(below_offset)?,
                spans: get(below_spans)?,
                counts: numbers(below, below_float)?,
            },
        })
    }

    /// The buckets of a row that have values; `None` if it is no exponential histogram.
    pub(super) fn parts(&self, row: usize) -> Option<Vec<Part>> {
        let scale = self.scale.is_valid(row).then(|| self.scale.as_primitive::<Int32Type>().value(row))?;
        let mut parts = Vec::new();
        self.negative.parts(row, scale, |Part { lower, upper, count }| {
            parts.push(Part { lower: -upper, upper: -lower, count });
        });
        if let Some(count) = self.zero_count.number(row).filter(|count| *count > 0.0) {
            let threshold = number(self.zero_threshold, row).unwrap_or(0.0);
            parts.push(Part { lower: -threshold, upper: threshold, count });
        }
        self.positive.parts(row, scale, |part| parts.push(part));
        Some(parts)
    }
}

impl Counts<'_> {
    /// One number.
    pub(super) fn number(&self, row: usize) -> Option<f64> {
        let whole = || as_double(self.whole.as_primitive::<Int64Type>().value(row));
        number(self.float, row).or_else(|| self.whole.is_valid(row).then(whole))
    }

    /// A list of them.
    pub(super) fn list(&self, row: usize) -> Vec<f64> {
        if self.float.is_valid(row) {
            return self.float.as_list::<i32>().value(row).as_primitive::<Float64Type>().values().to_vec();
        }
        let whole = self.whole.is_valid(row).then(|| self.whole.as_list::<i32>().value(row));
        let whole = whole.as_ref().map(|list| list.as_primitive::<Int64Type>().values());
        whole.into_iter().flatten().map(|count| as_double(*count)).collect()
    }
}

impl Side<'_> {
    /// The buckets that have values, with their bounds as those above zero have them.
    fn parts(&self, row: usize, scale: i32, mut each: impl FnMut(Part)) {
        let kept = scale.clamp(COARSEST, FINEST);
        // A sender may claim any scale: an impossible one gives bounds without meaning, and costs no more.
        let finer = u32::try_from(scale.saturating_sub(kept)).unwrap_or(0).min(63);
        let mut open: Option<(i64, f64)> = None;
        let mut close = |(index, count): (i64, f64)| {
            if count > 0.0 {
                each(Part { lower: bound(index, kept), upper: bound(index.saturating_add(1), kept), count });
            }
        };
        let counts = self.counts.list(row);
        for (index, count) in self.indices(row, counts.len()).into_iter().zip(counts) {
            let index = index >> finer;
            match &mut open {
                Some((same, sum)) if *same == index => *sum += count,
                _ => {
                    if let Some(done) = open.replace((index, count)) {
                        close(done);
                    }
                }
            }
        }
        if let Some(done) = open {
            close(done);
        }
    }

    /// The index of each of so many buckets, as OpenTelemetry counts: that with index 0 begins at 1.
    fn indices(&self, row: usize, buckets: usize) -> Vec<i64> {
        if !self.spans.is_valid(row) {
            let offset =
                self.offset.is_valid(row).then(|| self.offset.as_primitive::<Int32Type>().value(row));
            let first = i64::from(offset.unwrap_or(0));
            return (first..).take(buckets).collect();
        }
        let spans = self.spans.as_list::<i32>().value(row);
        // Prometheus counts from one more, and from the end of the span before.
        let (mut next, mut indices) = (-1_i64, Vec::with_capacity(buckets));
        for span in spans.as_primitive::<Int64Type>().values().chunks_exact(2) {
            if let [offset, length] = span {
                next = next.saturating_add(*offset).clamp(-FARTHEST, FARTHEST);
                let left = buckets - indices.len();
                let length = usize::try_from(*length).unwrap_or(0).min(left);
                indices.extend((next..).take(length));
                next = next.saturating_add(i64::try_from(length).unwrap_or(0));
            }
        }
        indices
    }
}

/// Where a bucket begins: 2 to the power of its index by 2 to the power of the scale.
fn bound(index: i64, scale: i32) -> f64 {
    (as_double(index) * f64::from(-scale).exp2()).exp2().min(f64::MAX)
}

fn number(column: &ArrayRef, row: usize) -> Option<f64> {
    column.is_valid(row).then(|| column.as_primitive::<Float64Type>().value(row))
}

/// The quantile of buckets that do not overlap. Within one, values are taken to be spread as its bounds are: each further one by the same
/// factor, as Prometheus does; evenly in that around zero.
pub(super) fn quantile(mut parts: Vec<Part>, quantile: f64) -> Option<f64> {
    parts.retain(|part| part.count > 0.0);
    parts.sort_by(|a, b| a.upper.total_cmp(&b.upper));
    let all: f64 = parts.iter().map(|part| part.count).sum();
    let rank = quantile * all;
    let mut below = 0.0;
    for part in &parts {
        if below + part.count >= rank {
            let Part { lower, upper, count } = *part;
            let share = ((rank - below) / count).clamp(0.0, 1.0);
            let is_around_zero = lower <= 0.0 && upper >= 0.0;
            return Some(if is_around_zero {
                lower + (upper - lower) * share
            } else {
                lower * (upper / lower).powf(share)
            });
        }
        below += part.count;
    }
    parts.last().map(|part| part.upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(lower: f64, upper: f64, count: f64) -> Part {
        Part { lower, upper, count }
    }

    #[test]
    fn a_quantile_is_within_its_bucket() {
        let parts = || vec![part(1.0, 2.0, 2.0), part(4.0, 16.0, 2.0), part(-2.0, -1.0, 0.0)];
        assert_eq!(quantile(parts(), 0.25), Some(2_f64.sqrt()));
        assert_eq!(quantile(parts(), 0.5), Some(2.0));
        assert_eq!(quantile(parts(), 0.75), Some(8.0));
        assert_eq!(quantile(parts(), 1.0), Some(16.0));
        assert_eq!(quantile(vec![part(-4.0, -1.0, 2.0), part(-0.5, 0.5, 2.0)], 0.25), Some(-2.0));
        assert_eq!(quantile(vec![part(-4.0, -1.0, 2.0), part(-0.5, 0.5, 2.0)], 0.75), Some(0.0));
        assert_eq!(quantile(vec![part(1.0, 2.0, -1.0)], 0.5), None);
    }

    #[test]
    fn bounds_of_different_scales_are_the_same_numbers() {
        for index in -40..40 {
            assert_eq!(bound(index * 4, 2).to_bits(), bound(index, 0).to_bits());
        }
        assert_eq!((bound(0, 2), bound(4, 2), bound(-1, 0)), (1.0, 2.0, 0.5));
        assert_eq!((bound(i64::MAX, -11), bound(i64::MIN, -11)), (f64::MAX, 0.0));
    }
}
