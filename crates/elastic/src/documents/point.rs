//! Points of metrics as values of fields.

use crate::json;
use tidegate_wire::otlp::{
    Data, ExponentialPoint, HistogramPoint, NO_RECORDED_VALUE, Number, NumberPoint, SummaryPoint, temporality,
};
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::Messages;

/// The most buckets below zero, which are written in the other order than they are read.
pub(super) const MOST_BELOW: usize = 512;
/// Scales that OpenTelemetry has; beyond them bounds are no doubles or all the same.
const SCALES: std::ops::RangeInclusive<i32> = -11..=20;

/// The kind of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    Gauge,
    Counter,
    Histogram { cumulative: bool },
    Exponential { cumulative: bool },
    Summary,
}

impl MetricKind {
    /// The kind of a metric's points.
    pub(super) fn metric(data: &Data<'_>) -> Option<Self> {
        let cumulative = |temporality| temporality == temporality::CUMULATIVE;
        Some(match data {
            Data::Empty => return None,
            Data::Gauge(_) => Self::Gauge,
            Data::Sum(sum) if sum.is_monotonic => Self::Counter,
            Data::Sum(_) => Self::Gauge,
            Data::Histogram(of) => Self::Histogram { cumulative: cumulative(of.temporality) },
            Data::ExponentialHistogram(of) => Self::Exponential { cumulative: cumulative(of.temporality) },
            Data::Summary(_) => Self::Summary,
        })
    }
}

/// A point of any kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnyPoint<'a> {
    Number(NumberPoint<'a>),
    Histogram(HistogramPoint<'a>, bool),
    Exponential(ExponentialPoint<'a>, bool),
    Summary(SummaryPoint<'a>),
}

impl<'a> AnyPoint<'a> {
    pub(super) fn read(of: MetricKind, message: &'a [u8]) -> Option<Self> {
        Some(match of {
            MetricKind::Gauge | MetricKind::Counter => Self::Number(NumberPoint::read(message)?),
            MetricKind::Histogram { cumulative } => {
                Self::Histogram(HistogramPoint::read(message)?, cumulative)
            }
            MetricKind::Exponential { cumulative } => {
                Self::Exponential(ExponentialPoint::read(message)?, cumulative)
            }
            MetricKind::Summary => Self::Summary(SummaryPoint::read(message)?),
        })
    }

    pub(super) fn message(&self) -> &'a [u8] {
        match self {
            Self::Number(point) => point.message(),
            Self::Histogram(point, _) => point.message(),
            Self::Exponential(point, _) => point.message(),
            Self::Summary(point) => point.message(),
        }
    }

    /// Start and end, in nanoseconds since the Unix epoch.
    pub(super) fn times(&self) -> (u64, u64) {
        match self {
            Self::Number(point) => (point.start_time, point.time),
            Self::Histogram(point, _) => (point.start_time, point.time),
            Self::Exponential(point, _) => (point.start_time, point.time),
            Self::Summary(point) => (point.start_time, point.time),
        }
    }

    pub(super) fn attributes(&self) -> tidegate_wire::otlp::Attributes<'a> {
        match self {
            Self::Number(point) => point.attributes(),
            Self::Histogram(point, _) => point.attributes(),
            Self::Exponential(point, _) => point.attributes(),
            Self::Summary(point) => point.attributes(),
        }
    }

    /// Its attributes as they are encoded.
    pub(super) fn encoded_attributes(&self) -> Messages<'a> {
        match self {
            Self::Number(point) => Messages::new(point.message(), 7),
            Self::Histogram(point, _) => Messages::new(point.message(), 9),
            Self::Exponential(point, _) => Messages::new(point.message(), 1),
            Self::Summary(point) => Messages::new(point.message(), 7),
        }
    }

    /// Whether a field can hold it: it has a value, which is a number, and bounds ascend.
    pub(super) fn is_sayable(&self) -> bool {
        let is_number = |bits: u64| f64::from_bits(bits).is_finite();
        let is_there = |flags: u32| flags & NO_RECORDED_VALUE == 0;
        match self {
            Self::Number(point) => {
                let number = match point.value {
                    Some(Number::Int(_)) => true,
                    Some(Number::Double(bits)) => is_number(bits),
                    None => false,
                };
                number && is_there(point.flags)
            }
            Self::Histogram(point, cumulative) => {
                let sum =
                    point.sum.map_or(!cumulative && point.explicit_bounds().next().is_some(), is_number);
                is_there(point.flags) && sum && (*cumulative || has_order(point))
            }
            Self::Exponential(point, cumulative) => {
                let sum = point.sum.map_or(!cumulative, is_number);
                is_there(point.flags) && sum && (*cumulative || fits(point))
            }
            Self::Summary(point) => is_there(point.flags) && is_number(point.sum),
        }
    }

    /// The parts that no field can express: cumulative buckets, which Elasticsearch would add up repeatedly;
    /// quantiles; exemplars; the minimum, maximum and sum beside buckets.
    pub(super) fn unsaid(&self) -> u64 {
        let count = |number: usize| number as u64;
        let limits = |min: Option<u64>, max: Option<u64>| u64::from(min.is_some()) + u64::from(max.is_some());
        match self {
            Self::Number(point) => count(point.exemplars().count()),
            Self::Histogram(point, cumulative) => {
                let buckets = u64::from(*cumulative && point.explicit_bounds().next().is_some());
                let sum = u64::from(!cumulative && point.sum.is_some());
                count(point.exemplars().count()) + buckets + sum + limits(point.min, point.max)
            }
            Self::Exponential(point, cumulative) => {
                let sum = u64::from(*cumulative || point.sum.is_some());
                count(point.exemplars().count()) + sum + limits(point.min, point.max)
            }
            Self::Summary(point) => count(point.quantiles().count()),
        }
    }

    /// The name of the template of its field, as Elasticsearch's own templates have them.
    pub(super) fn template(&self, of: MetricKind) -> &'static str {
        match self {
            Self::Number(point) => match (of, point.value) {
                (MetricKind::Counter, Some(Number::Int(_))) => "counter_long",
                (MetricKind::Counter, _) => "counter_double",
                (_, Some(Number::Int(_))) => "gauge_long",
                _ => "gauge_double",
            },
            Self::Histogram(_, false) | Self::Exponential(_, false) => "histogram",
            _ => "summary",
        }
    }

    /// Writes the value of a point that is sayable.
    pub(super) fn write(&self, below: &mut Vec<u64>, out: &mut impl Output) -> Result<(), Full> {
        match self {
            Self::Number(point) => match point.value {
                Some(Number::Int(value)) => json::int(value, out),
                Some(Number::Double(bits)) => json::double(bits, out).map(drop),
                None => out.put(b"null"),
            },
            Self::Histogram(point, true) => summary(point.sum.unwrap_or_default(), point.count, out),
            Self::Exponential(point, true) => summary(point.sum.unwrap_or_default(), point.count, out),
            Self::Summary(point) => summary(point.sum, point.count, out),
            Self::Histogram(point, false) => histogram(point, out),
            Self::Exponential(point, false) => exponential(point, below, out),
        }
    }
}

/// Bounds that ascend, and one count more than bounds or none at all.
fn has_order(point: &HistogramPoint<'_>) -> bool {
    let bounds = || point.explicit_bounds().map(f64::from_bits);
    let ascend = bounds().zip(bounds().skip(1)).all(|(lower, upper)| lower < upper);
    let numbers = bounds().all(|bound| bound.is_finite() && (bound / 2.0).is_finite());
    // Two bounds may be next to each other, with nothing between them.
    let middles = bounds().zip(bounds().skip(1)).all(|(lower, upper)| {
        let middle = between(lower, upper);
        lower < middle && middle < upper
    });
    let first = bounds().next().is_none_or(|bound| bound <= 0.0 || bound / 2.0 < bound);
    let (counts, bounds) = (point.bucket_counts().count(), bounds().count());
    ascend && numbers && middles && first && (counts == 0 && bounds == 0 || counts == bounds + 1)
}

fn between(lower: f64, upper: f64) -> f64 {
    lower / 2.0 + upper / 2.0
}

/// Whether the middles of all buckets are doubles, in order.
fn fits(point: &ExponentialPoint<'_>) -> bool {
    let sides = [(point.positive, usize::MAX), (point.negative, MOST_BELOW)];
    SCALES.contains(&point.scale)
        && sides.iter().all(|(buckets, most)| {
            let counts = || buckets.counts().enumerate().filter(|(_, count)| *count > 0);
            let middles = || counts().map(|(index, _)| middle(point.scale, buckets.offset, index));
            middles().all(|middle| middle.is_finite() && middle > 0.0)
                && middles().zip(middles().skip(1)).all(|(one, next)| one < next)
                && buckets.counts().nth(*most).is_none()
        })
}

/// The middle of a bucket of an exponential histogram.
fn middle(scale: i32, offset: i32, index: usize) -> f64 {
    let index = f64::from(offset) + u32::try_from(index).map_or(f64::INFINITY, f64::from);
    let base = (-f64::from(scale)).exp2();
    let bound = |index: f64| (index * base).exp2();
    between(bound(index), bound(index + 1.0))
}

/// Numbers that Elasticsearch adds up.
fn summary(sum: u64, count: u64, out: &mut impl Output) -> Result<(), Full> {
    out.put(br#"{"sum":"#)?;
    json::double(sum, out)?;
    out.put(br#","value_count":"#)?;
    json::unsigned(count.min(i64::MAX.cast_unsigned()), out)?;
    out.put(b"}")
}

/// Counts of the buckets that have some, and their middles; the outermost buckets have one bound only, which stands
/// for them, or its half for the one from zero.
fn histogram(point: &HistogramPoint<'_>, out: &mut impl Output) -> Result<(), Full> {
    let bounds = || point.explicit_bounds().map(f64::from_bits);
    if bounds().next().is_none() {
        let sum = f64::from_bits(point.sum.unwrap_or_default());
        let mean = (point.count > 0).then(|| (sum / point.count as f64, point.count));
        return buckets(mean.into_iter(), out);
    }
    let lower = std::iter::once(None).chain(bounds().map(Some));
    let upper = bounds().map(Some).chain(std::iter::once(None));
    let middles = lower.zip(upper).map(|(lower, upper)| match (lower, upper) {
        (None, Some(upper)) if upper > 0.0 => upper / 2.0,
        (Some(lower), Some(upper)) => between(lower, upper),
        (one, other) => one.or(other).unwrap_or_default(),
    });
    buckets(middles.zip(point.bucket_counts()), out)
}

fn exponential(
    point: &ExponentialPoint<'_>,
    below: &mut Vec<u64>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let ExponentialBuckets { positive, negative, scale } =
        ExponentialBuckets { positive: point.positive, negative: point.negative, scale: point.scale };
    below.clear();
    below.extend(negative.counts().take(MOST_BELOW));
    let under =
        below.iter().enumerate().rev().map(|(index, count)| (-middle(scale, negative.offset, index), *count));
    let zero = std::iter::once((0.0, point.zero_count));
    let over =
        positive.counts().enumerate().map(|(index, count)| (middle(scale, positive.offset, index), count));
    buckets(under.chain(zero).chain(over), out)
}

struct ExponentialBuckets<'a> {
    positive: tidegate_wire::otlp::Buckets<'a>,
    negative: tidegate_wire::otlp::Buckets<'a>,
    scale: i32,
}

/// Both lists of those buckets that have a count.
fn buckets(all: impl Iterator<Item = (f64, u64)> + Clone, out: &mut impl Output) -> Result<(), Full> {
    let all = all.filter(|(_, count)| *count > 0);
    out.put(br#"{"counts":["#)?;
    for (place, (_, count)) in all.clone().enumerate() {
        if place > 0 {
            out.put(b",")?;
        }
        json::unsigned(count.min(i64::MAX.cast_unsigned()), out)?;
    }
    out.put(br#"],"values":["#)?;
    for (place, (value, _)) in all.enumerate() {
        if place > 0 {
            out.put(b",")?;
        }
        json::double(value.to_bits(), out)?;
    }
    out.put(b"]}")
}
