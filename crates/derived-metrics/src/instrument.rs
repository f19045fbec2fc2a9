//! The values of a metric in a flat table: so many words for each series.

use crate::settings::InstrumentKind;
use crate::{exponential, number};
use tidegate_pipeline::Number;

impl InstrumentKind {
    /// The words of its values. All zero is the value of nothing.
    pub(crate) fn words(&self) -> usize {
        match self {
            InstrumentKind::Count => 1,
            InstrumentKind::Sum { .. } | InstrumentKind::Gauge => 2,
            // A sum and the buckets; the count is their sum.
            InstrumentKind::Histogram { bounds } => bounds.len() + 2,
            InstrumentKind::ExponentialHistogram { max_size } => exponential::words(*max_size),
        }
    }

    /// Adds `count` observations of a value.
    #[inline]
    pub(crate) fn fold(&self, words: &mut [u64], value: Number, count: u64) {
        match (self, words) {
            (InstrumentKind::Count, [total, ..]) => *total = total.saturating_add(count),
            (InstrumentKind::Sum { .. }, [kind, bits]) => {
                let sum = number::from_words([*kind, *bits]).unwrap_or(Number::Int(0));
                [*kind, *bits] = number::to_words(add(sum, value, count));
            }
            (InstrumentKind::Gauge, [kind, bits]) => [*kind, *bits] = number::to_words(value),
            (InstrumentKind::Histogram { bounds }, [sum, buckets @ ..]) => {
                let Some(value) = number::finite(value) else { return };
                let bucket = bounds.partition_point(|bound| *bound < value);
                *sum = number::added(f64::from_bits(*sum), value, count).to_bits();
                if let Some(bucket) = buckets.get_mut(bucket) {
                    *bucket = bucket.saturating_add(count);
                }
            }
            (InstrumentKind::ExponentialHistogram { max_size }, words) => {
                if let Some(value) = number::finite(value) {
                    exponential::fold(words, *max_size, value, count);
                }
            }
            _ => {}
        }
    }

    /// Whether words from outside can be those of its values.
    pub(crate) fn is_valid(&self, words: &[u64]) -> bool {
        match self {
            InstrumentKind::ExponentialHistogram { max_size } => exponential::is_valid(words, *max_size),
            _ => true,
        }
    }
}

fn add(sum: Number, value: Number, count: u64) -> Number {
    match (sum, value) {
        (Number::Int(sum), Number::Int(value)) => {
            let times = i64::try_from(count).unwrap_or(i64::MAX);
            Number::Int(sum.saturating_add(value.saturating_mul(times)))
        }
        (sum, value) => match number::finite(value) {
            Some(value) => Number::Double(number::added(sum.as_f64(), value, count)),
            None => sum,
        },
    }
}
