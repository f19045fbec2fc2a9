//! Histograms out of rows of `metric_histograms`: OTLP's of both kinds, and native ones of remote write.

use super::Protocol;
use super::columns::{ColumnTypeError, Doubles, Ints, Longs, NumberLists};
use super::exemplars::ExemplarColumns;
use super::items::{RowError, RowReader};
use super::message::{Message, zigzag};
use super::request::Item;
use super::series::{MetricKind, Provenance, Series, SeriesColumns};
use arrow::array::RecordBatch;
use arrow::datatypes::{Float64Type, Int64Type};

/// Reads histograms.
#[derive(Default)]
pub(super) struct HistogramReader {
    columns: Option<HistogramColumns>,
    series: Series,
}

struct HistogramColumns {
    series: SeriesColumns,
    count: Longs,
    count_float: Doubles,
    sum: Doubles,
    min: Doubles,
    max: Doubles,
    bounds: NumberLists<Float64Type>,
    buckets: BucketColumns,
    scale: Ints,
    zero_count: Longs,
    zero_count_float: Doubles,
    zero_threshold: Doubles,
    positive: BucketColumns,
    negative: BucketColumns,
    temporality: Ints,
    reset_hint: Ints,
    exemplars: Option<ExemplarColumns>,
}

/// The columns of the buckets of one side, or of those with bounds given, which have counts only.
struct BucketColumns {
    offset: Ints,
    spans: NumberLists<Int64Type>,
    counts: NumberLists<Int64Type>,
    counts_float: NumberLists<Float64Type>,
}

impl BucketColumns {
    fn of(batch: &RecordBatch, side: &str, counts: &str) -> Result<BucketColumns, ColumnTypeError> {
        Ok(BucketColumns {
            offset: Ints::of(batch, &format!("{side}_offset"))?,
            spans: NumberLists::of(batch, &format!("{side}_spans"))?,
            counts: NumberLists::of(batch, &format!("{counts}_counts"))?,
            counts_float: NumberLists::of(batch, &format!("{counts}_counts_float"))?,
        })
    }
}

impl HistogramColumns {
    fn of(batch: &RecordBatch) -> Result<HistogramColumns, RowError> {
        Ok(HistogramColumns {
            series: SeriesColumns::of(batch)?,
            count: Longs::of(batch, "count")?,
            count_float: Doubles::of(batch, "count_float")?,
            sum: Doubles::of(batch, "sum")?,
            min: Doubles::of(batch, "min")?,
            max: Doubles::of(batch, "max")?,
            bounds: NumberLists::of(batch, "bounds")?,
            buckets: BucketColumns::of(batch, "bucket", "bucket")?,
            scale: Ints::of(batch, "scale")?,
            zero_count: Longs::of(batch, "zero_count")?,
            zero_count_float: Doubles::of(batch, "zero_count_float")?,
            zero_threshold: Doubles::of(batch, "zero_threshold")?,
            positive: BucketColumns::of(batch, "positive", "positive")?,
            negative: BucketColumns::of(batch, "negative", "negative")?,
            temporality: Ints::of(batch, "temporality")?,
            reset_hint: Ints::of(batch, "reset_hint")?,
            exemplars: ExemplarColumns::of(batch)?,
        })
    }
}

/// The fields of attributes in points of histograms.
const EXPLICIT_ATTRIBUTES: u32 = 9;
const EXPONENTIAL_ATTRIBUTES: u32 = 1;

impl RowReader for HistogramReader {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), RowError> {
        self.columns = Some(HistogramColumns::of(batch)?);
        Ok(())
    }

    fn read(&mut self, row: usize, item: &mut Item) -> Result<(), RowError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        // Remote write always has a reset hint, OTLP never.
        let is_native = columns.reset_hint.at(row).is_some();
        let provenance = if is_native { Provenance::RemoteWrite } else { Provenance::Otlp };
        let is_exponential = columns.scale.at(row).is_some();
        let attributes = if is_exponential { EXPONENTIAL_ATTRIBUTES } else { EXPLICIT_ATTRIBUTES };
        self.series.update(&columns.series, row, attributes, provenance)?;
        if self.series.came_by_remote_write() {
            let out = item.begin(Protocol::RemoteWrite);
            let histogram = out.begin(4);
            write_native(columns, row, out);
            out.end(histogram);
            if let Some(exemplars) = &columns.exemplars {
                exemplars.write_remote_write(row, out)?;
            }
            self.series.enclose_in_labels(item);
            return Ok(());
        }
        let temporality = columns.temporality.at(row).unwrap_or_default();
        let out = item.begin(Protocol::Otlp);
        let point = out.begin(1);
        out.put(self.series.attributes.as_bytes());
        let kind = if is_exponential {
            write_exponential(columns, row, out)?;
            MetricKind::ExponentialHistogram { temporality }
        } else {
            write_explicit(columns, row, out)?;
            MetricKind::Histogram { temporality }
        };
        out.end(point);
        self.series.enclose(kind, item);
        Ok(())
    }
}

/// The fields that both kinds of OTLP have under the same numbers.
fn write_common(columns: &HistogramColumns, row: usize, out: &mut Message) {
    out.fixed64_unless_0(2, columns.series.start.at(row).unwrap_or_default());
    out.fixed64_unless_0(3, columns.series.time.at(row).unwrap_or_default());
    out.fixed64_unless_0(4, columns.count.count_at(row));
    out.fixed64_if(5, columns.sum.bits_at(row));
    out.varint_unless_0(10, columns.series.otlp_flags(row));
}

fn write_explicit(columns: &HistogramColumns, row: usize, out: &mut Message) -> Result<(), RowError> {
    write_common(columns, row, out);
    write_fixed(6, columns.buckets.counts.at(row).unwrap_or_default(), |count| count.cast_unsigned(), out);
    write_fixed(7, columns.bounds.at(row).unwrap_or_default(), f64::to_bits, out);
    if let Some(exemplars) = &columns.exemplars {
        exemplars.write_otlp(row, 8, out)?;
    }
    out.fixed64_if(11, columns.min.bits_at(row));
    out.fixed64_if(12, columns.max.bits_at(row));
    Ok(())
}

fn write_exponential(columns: &HistogramColumns, row: usize, out: &mut Message) -> Result<(), RowError> {
    write_common(columns, row, out);
    out.sint32_unless_0(6, columns.scale.at(row).unwrap_or_default());
    out.fixed64_unless_0(7, columns.zero_count.count_at(row));
    for (field, side) in [(8, &columns.positive), (9, &columns.negative)] {
        let mut buckets = Message::default();
        buckets.sint32_unless_0(1, side.offset.at(row).unwrap_or_default());
        let counts = side.counts.at(row).unwrap_or_default();
        write_varints(2, counts.iter().map(|count| count.cast_unsigned()), &mut buckets);
        out.bytes_unless_empty(field, buckets.as_bytes());
    }
    if let Some(exemplars) = &columns.exemplars {
        exemplars.write_otlp(row, 11, out)?;
    }
    out.fixed64_if(12, columns.min.bits_at(row));
    out.fixed64_if(13, columns.max.bits_at(row));
    out.fixed64_unless_0(14, columns.zero_threshold.bits_at(row).unwrap_or_default());
    Ok(())
}

/// The schema number of remote write that stands for custom bounds.
const CUSTOM: i32 = -53;

fn write_native(columns: &HistogramColumns, row: usize, out: &mut Message) {
    match (columns.count_float.bits_at(row), columns.count.at(row)) {
        (Some(bits), _) => out.fixed64(2, bits),
        (None, Some(count)) => out.varint(1, count.cast_unsigned()),
        (None, None) => {}
    }
    out.fixed64_unless_0(3, columns.sum.bits_at(row).unwrap_or_default());
    let scale = columns.scale.at(row);
    out.sint32_unless_0(4, scale.unwrap_or(CUSTOM));
    out.fixed64_unless_0(5, columns.zero_threshold.bits_at(row).unwrap_or_default());
    match (columns.zero_count_float.bits_at(row), columns.zero_count.at(row)) {
        (Some(bits), _) => out.fixed64(7, bits),
        (None, Some(count)) => out.varint(6, count.cast_unsigned()),
        (None, None) => {}
    }
    write_side(&columns.negative, row, [8, 9, 10], columns.negative.offset.at(row), out);
    // With custom bounds the buckets begin with the first bound.
    let (positive, offset) = match scale {
        Some(_) => (&columns.positive, columns.positive.offset.at(row)),
        None => (&columns.buckets, Some(-1)),
    };
    write_side(positive, row, [11, 12, 13], offset, out);
    out.int32_unless_0(14, columns.reset_hint.at(row).unwrap_or_default());
    out.varint_unless_0(15, columns.series.time.millis_at(row).unwrap_or_default().cast_unsigned());
    if scale.is_none() {
        write_fixed(16, columns.bounds.at(row).unwrap_or_default(), f64::to_bits, out);
    }
}

/// Writes spans, differences and counts of one side in these fields. Without spans of its own it has one of all counts,
/// which begins behind `offset` as remote write counts.
fn write_side(
    side: &BucketColumns,
    row: usize,
    [spans, deltas, counts]: [u32; 3],
    offset: Option<i32>,
    out: &mut Message,
) {
    let (ints, floats) =
        (side.counts.at(row).unwrap_or_default(), side.counts_float.at(row).unwrap_or_default());
    let write_span = |offset: i64, length: u64, out: &mut Message| {
        let span = out.begin(spans);
        out.varint_unless_0(1, zigzag(offset));
        out.varint_unless_0(2, length);
        out.end(span);
    };
    let kept = side.spans.at(row).unwrap_or_default();
    for span in kept.chunks_exact(2) {
        if let [offset, length] = span {
            write_span(*offset, length.cast_unsigned(), out);
        }
    }
    let buckets = ints.len().max(floats.len());
    if kept.is_empty() && buckets > 0 {
        write_span(i64::from(offset.unwrap_or(-1)) + 1, buckets as u64, out);
    }
    let mut before = 0_i64;
    let differences = ints.iter().map(|&count| {
        let difference = count.wrapping_sub(before);
        before = count;
        zigzag(difference)
    });
    write_varints(deltas, differences, out);
    write_fixed(counts, floats, f64::to_bits, out);
}

/// Writes a packed field of eight bytes each.
fn write_fixed<T: Copy>(field: u32, numbers: &[T], bits: impl Fn(T) -> u64, out: &mut Message) {
    if !numbers.is_empty() {
        let packed = out.begin(field);
        numbers.iter().for_each(|&number| out.put(&bits(number).to_le_bytes()));
        out.end(packed);
    }
}

/// Writes a packed field of numbers in base 128.
fn write_varints(field: u32, numbers: impl ExactSizeIterator<Item = u64>, out: &mut Message) {
    if numbers.len() > 0 {
        let packed = out.begin(field);
        numbers.for_each(|number| out.raw_varint(number));
        out.end(packed);
    }
}
