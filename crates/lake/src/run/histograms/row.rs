//! A histogram kept until it is written.

use crate::pool::ListRef;
use crate::run::RowKey;
use crate::table::BucketSide;
use tidegate_wire::remote_write::Count;

/// The buckets of one side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buckets {
    pub(super) offset: Option<i32>,
    pub(super) spans: ListRef,
    pub(super) ints: ListRef,
    pub(super) doubles: ListRef,
}

/// A histogram of OpenTelemetry, of either kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtlpHistogram<B> {
    pub(crate) head: RowKey,
    pub(crate) count: u64,
    /// Bits.
    pub(crate) sum: Option<u64>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) temporality: i32,
    pub(crate) buckets: B,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HistogramRow {
    pub(super) head: RowKey,
    pub(super) count: Option<Count>,
    pub(super) zero_count: Option<Count>,
    pub(super) sum: Option<u64>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) zero_threshold: Option<u64>,
    pub(super) scale: Option<i32>,
    pub(super) reset_hint: Option<i32>,
    pub(super) temporality: i32,
    pub(super) bounds: ListRef,
    /// With custom bounds the buckets are here, otherwise on the two sides.
    pub(super) custom: Buckets,
    pub(super) positive: Buckets,
    pub(super) negative: Buckets,
}

pub(super) const NO_ROW: HistogramRow = HistogramRow {
    head: RowKey::NONE,
    count: None,
    zero_count: None,
    sum: None,
    min: None,
    max: None,
    zero_threshold: None,
    scale: None,
    reset_hint: None,
    temporality: 0,
    bounds: ListRef::NONE,
    custom: NO_BUCKETS,
    positive: NO_BUCKETS,
    negative: NO_BUCKETS,
};
pub(super) const NO_BUCKETS: Buckets =
    Buckets { offset: None, spans: ListRef::NONE, ints: ListRef::NONE, doubles: ListRef::NONE };

impl HistogramRow {
    pub(super) fn side(&self, side: BucketSide) -> &Buckets {
        match side {
            BucketSide::Positive => &self.positive,
            BucketSide::Negative => &self.negative,
        }
    }

    pub(super) fn numbers(&self) -> usize {
        let sides = [self.custom, self.positive, self.negative];
        let all = sides.into_iter().flat_map(|side| [side.spans, side.ints, side.doubles]);
        all.chain([self.bounds]).map(ListRef::len).sum()
    }

    pub(super) fn of<B>(histogram: &OtlpHistogram<B>) -> HistogramRow {
        HistogramRow {
            head: histogram.head,
            count: Some(Count::Int(histogram.count)),
            sum: histogram.sum,
            min: histogram.min,
            max: histogram.max,
            temporality: histogram.temporality,
            ..NO_ROW
        }
    }
}
