//! Metrics: what their points have in common.

use super::attribute::Attributes;
use super::point::{ExponentialPoint, HistogramPoint, NumberPoint, SummaryPoint};
use super::request::Item;
use crate::proto::{Messages, Reader, low32};

/// The values of `temporality`.
pub mod temporality {
    /// Points tell what came since the point before.
    pub const DELTA: i32 = 1;
    /// Points tell what came since their start time.
    pub const CUMULATIVE: i32 = 2;
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    message: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Its description.
    pub description: &'a [u8],
    /// In UCUM notation.
    pub unit: &'a [u8],
    /// Its points.
    pub data: Data<'a>,
}

/// The points of a metric.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// None, or of a kind that the schema does not know.
    Empty,
    /// Values as they are.
    Gauge(Gauge<'a>),
    /// Sums.
    Sum(Sum<'a>),
    /// Histograms with bounds given.
    Histogram(Histogram<'a>),
    /// Histograms with exponential bounds.
    ExponentialHistogram(ExponentialHistogram<'a>),
    /// Quantiles.
    Summary(Summary<'a>),
}

/// Values as they are.
#[derive(Debug, Clone, Copy)]
pub struct Gauge<'a> {
    message: &'a [u8],
}

/// Sums.
#[derive(Debug, Clone, Copy)]
pub struct Sum<'a> {
    message: &'a [u8],
    /// One of [`temporality`].
    pub temporality: i32,
    /// Whether it only ever grows.
    pub is_monotonic: bool,
}

/// Histograms with bounds given.
#[derive(Debug, Clone, Copy)]
pub struct Histogram<'a> {
    message: &'a [u8],
    /// One of [`temporality`].
    pub temporality: i32,
}

/// Histograms with exponential bounds.
#[derive(Debug, Clone, Copy)]
pub struct ExponentialHistogram<'a> {
    message: &'a [u8],
    /// One of [`temporality`].
    pub temporality: i32,
}

/// Quantiles.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    message: &'a [u8],
}

/// The field of each kind's points.
const POINTS: u32 = 1;

impl<'a> Item<'a> for Metric<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, name: &[], description: &[], unit: &[], data: Data::Empty };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.name = reader.bytes(key).ok()?,
                2 => read.description = reader.bytes(key).ok()?,
                3 => read.unit = reader.bytes(key).ok()?,
                5 | 7 | 9 | 10 | 11 => read.data = Data::read(key.field, reader.bytes(key).ok()?)?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

impl<'a> Metric<'a> {
    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Further metadata.
    #[must_use]
    pub fn metadata(&self) -> Attributes<'a> {
        Attributes::new(self.message, 12)
    }
}

impl<'a> Data<'a> {
    /// How many points there are.
    #[must_use]
    pub fn points(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Gauge(Gauge { message })
            | Self::Sum(Sum { message, .. })
            | Self::Histogram(Histogram { message, .. })
            | Self::ExponentialHistogram(ExponentialHistogram { message, .. })
            | Self::Summary(Summary { message }) => Messages::new(message, POINTS).count(),
        }
    }

    fn read(field: u32, message: &'a [u8]) -> Option<Self> {
        let (mut temporality, mut is_monotonic) = (0, false);
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match (field, key.field) {
                (7 | 9 | 10, 2) => temporality = low32(reader.varint(key).ok()?).cast_signed(),
                (7, 3) => is_monotonic = reader.varint(key).ok()? != 0,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(match field {
            5 => Self::Gauge(Gauge { message }),
            7 => Self::Sum(Sum { message, temporality, is_monotonic }),
            9 => Self::Histogram(Histogram { message, temporality }),
            10 => Self::ExponentialHistogram(ExponentialHistogram { message, temporality }),
            11 => Self::Summary(Summary { message }),
            _ => Self::Empty,
        })
    }
}

impl<'a> Gauge<'a> {
    /// Its points, in order.
    pub fn points(&self) -> impl Iterator<Item = NumberPoint<'a>> + Clone + use<'a> {
        Messages::new(self.message, POINTS).read(NumberPoint::read)
    }
}

impl<'a> Sum<'a> {
    /// Its points, in order.
    pub fn points(&self) -> impl Iterator<Item = NumberPoint<'a>> + Clone + use<'a> {
        Messages::new(self.message, POINTS).read(NumberPoint::read)
    }
}

impl<'a> Histogram<'a> {
    /// Its points, in order.
    pub fn points(&self) -> impl Iterator<Item = HistogramPoint<'a>> + Clone + use<'a> {
        Messages::new(self.message, POINTS).read(HistogramPoint::read)
    }
}

impl<'a> ExponentialHistogram<'a> {
    /// Its points, in order.
    pub fn points(&self) -> impl Iterator<Item = ExponentialPoint<'a>> + Clone + use<'a> {
        Messages::new(self.message, POINTS).read(ExponentialPoint::read)
    }
}

impl<'a> Summary<'a> {
    /// Its points, in order.
    pub fn points(&self) -> impl Iterator<Item = SummaryPoint<'a>> + Clone + use<'a> {
        Messages::new(self.message, POINTS).read(SummaryPoint::read)
    }
}
