//! Metrics: a name, and points of one of four shapes.

use super::{Attributes, Nanos, NoAttributes, Scope};

/// A metric with its points.
#[derive(Clone, Copy)]
pub struct Metric<'a> {
    /// The name of the measurement: `http.server.request.duration`.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// In what, as UCUM writes it: `By`, `ms`, `1`.
    pub unit: &'a str,
    /// The measurements.
    pub points: Points<'a>,
    /// Which library made it.
    pub scope: Scope,
}

/// Measurements of one shape.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Points<'a> {
    /// the last value
    Gauge(&'a dyn PointsOf<NumberPoint<'static>>),
    /// a sum
    Sum {
        /// The measurements.
        points: &'a dyn PointsOf<NumberPoint<'static>>,
        /// Since when.
        temporality: Temporality,
        /// It never falls.
        monotonic: bool,
    },
    /// counts by ranges given one by one
    Histogram {
        /// The measurements.
        points: &'a dyn PointsOf<HistogramPoint<'static>>,
        /// Since when.
        temporality: Temporality,
    },
    /// counts by ranges that grow by a factor
    Exponential {
        /// The measurements.
        points: &'a dyn PointsOf<ExponentialPoint<'static>>,
        /// Since when.
        temporality: Temporality,
    },
}

/// A list of points. `P` names the kind of point with `'static`; what is shown lives as long as the call.
pub trait PointsOf<P: Point> {
    /// Shows each in order, and the same ones each time it is asked.
    fn each(&self, visit: &mut dyn FnMut(&P::At<'_>));

    /// How many there are.
    fn count(&self) -> usize {
        let mut count = 0;
        self.each(&mut |_| count += 1);
        count
    }

    /// Shows the one at `index`, if there is one.
    fn nth(&self, index: usize, visit: &mut dyn FnMut(&P::At<'_>)) {
        let mut at = 0;
        self.each(&mut |point| {
            if at == index {
                visit(point);
            }
            at += 1;
        });
    }
}

impl Points<'_> {
    /// How many points there are.
    pub fn count(&self) -> usize {
        match self {
            Points::Gauge(points) | Points::Sum { points, .. } => points.count(),
            Points::Histogram { points, .. } => points.count(),
            Points::Exponential { points, .. } => points.count(),
        }
    }
}

/// One of the kinds of points.
pub trait Point: 'static {
    /// The same kind, borrowed for less long.
    type At<'a>;
}

/// Since when a sum or histogram counts. The numbers are OTLP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temporality {
    /// since the last report
    Delta = 1,
    /// since the start
    Cumulative = 2,
}

/// A number that is whole, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// whole
    Int(i64),
    /// not
    Double(f64),
}

/// One number.
#[derive(Clone, Copy)]
pub struct NumberPoint<'a> {
    /// Which series it belongs to.
    pub attributes: &'a dyn Attributes,
    /// Since when it counts; 0 is unknown.
    pub start: Nanos,
    /// When it was measured.
    pub time: Nanos,
    /// The number.
    pub value: Number,
}

/// Counts by ranges.
#[derive(Clone, Copy)]
pub struct HistogramPoint<'a> {
    /// Which series it belongs to.
    pub attributes: &'a dyn Attributes,
    /// Since when it counts; 0 is unknown.
    pub start: Nanos,
    /// When it was measured.
    pub time: Nanos,
    /// How many values.
    pub count: u64,
    /// Their sum, if it is known.
    pub sum: Option<f64>,
    /// The smallest, if it is known.
    pub min: Option<f64>,
    /// The largest, if it is known.
    pub max: Option<f64>,
    /// The upper ends of all ranges but the last, ascending.
    pub bounds: &'a [f64],
    /// How many values in each range: one more than there are bounds, or none.
    pub counts: &'a [u64],
}

/// Counts by ranges that grow by `2^(2^-scale)`.
#[derive(Clone, Copy)]
pub struct ExponentialPoint<'a> {
    /// Which series it belongs to.
    pub attributes: &'a dyn Attributes,
    /// Since when it counts; 0 is unknown.
    pub start: Nanos,
    /// When it was measured.
    pub time: Nanos,
    /// How many values.
    pub count: u64,
    /// Their sum, if it is known.
    pub sum: Option<f64>,
    /// The smallest, if it is known.
    pub min: Option<f64>,
    /// The largest, if it is known.
    pub max: Option<f64>,
    /// How fine the ranges are.
    pub scale: i32,
    /// Values within `zero_threshold` of 0.
    pub zero_count: u64,
    /// The width of the zero bucket.
    pub zero_threshold: f64,
    /// Values above 0.
    pub positive: Buckets<'a>,
    /// Values below 0, by their size.
    pub negative: Buckets<'a>,
}

/// Counts of neighbouring ranges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Buckets<'a> {
    /// The index of the first.
    pub offset: i32,
    /// How many values in each.
    pub counts: &'a [u64],
}

impl Point for NumberPoint<'static> {
    type At<'a> = NumberPoint<'a>;
}

impl Point for HistogramPoint<'static> {
    type At<'a> = HistogramPoint<'a>;
}

impl Point for ExponentialPoint<'static> {
    type At<'a> = ExponentialPoint<'a>;
}

impl<const N: usize> PointsOf<NumberPoint<'static>> for [NumberPoint<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(&NumberPoint<'_>)) {
        self.iter().for_each(visit);
    }
}

impl<const N: usize> PointsOf<HistogramPoint<'static>> for [HistogramPoint<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(&HistogramPoint<'_>)) {
        self.iter().for_each(visit);
    }
}

impl<const N: usize> PointsOf<ExponentialPoint<'static>> for [ExponentialPoint<'_>; N] {
    fn each(&self, visit: &mut dyn FnMut(&ExponentialPoint<'_>)) {
        self.iter().for_each(visit);
    }
}

impl Default for NumberPoint<'_> {
    fn default() -> Self {
        NumberPoint { attributes: &NoAttributes, start: 0, time: 0, value: Number::Int(0) }
    }
}

impl Default for HistogramPoint<'_> {
    fn default() -> Self {
        HistogramPoint {
            attributes: &NoAttributes,
            start: 0,
            time: 0,
            count: 0,
            sum: None,
            min: None,
            max: None,
            bounds: &[],
            counts: &[],
        }
    }
}

impl Default for ExponentialPoint<'_> {
    fn default() -> Self {
        ExponentialPoint {
            attributes: &NoAttributes,
            start: 0,
            time: 0,
            count: 0,
            sum: None,
            min: None,
            max: None,
            scale: 0,
            zero_count: 0,
            zero_threshold: 0.0,
            positive: Buckets::default(),
            negative: Buckets::default(),
        }
    }
}
