//! Cells: the points of a series in one step, reduced to two numbers that do not depend on the order in which the points come.

use crate::query::Function;
use jiff::Timestamp;

/// Whether a point counts all since the beginning, or what is new since the point before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointKind {
    Cumulative,
    Delta,
}

/// The points of one step, reduced to two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// The time of the last point in nanoseconds, or how many points there are; 0 for none.
    weight: i64,
    value: f64,
}

/// Steps of the same length, counted from 1; step 0 is the time before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    from_ns: i128,
    step_ns: i128,
    count: usize,
}

impl Steps {
    pub(crate) fn new(from: Timestamp, step_ns: i128, count: usize) -> Steps {
        Steps { from_ns: from.as_nanosecond(), step_ns, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The step of a time; `None` behind the last one.
    pub(crate) fn of(&self, time_ns: i128) -> Option<usize> {
        if time_ns < self.from_ns {
            return Some(0);
        }
        let step = usize::try_from((time_ns - self.from_ns) / self.step_ns).ok()?;
        // What is left of the division belongs to the last one.
        Some(step.min(self.count.checked_sub(1)?) + 1)
    }

    /// When a step ends, in nanoseconds since the Unix epoch.
    pub(crate) fn end_ns(&self, step: usize) -> i128 {
        self.from_ns + self.step_ns * i128::try_from(step).unwrap_or(0)
    }

    /// How long a step is.
    fn seconds(&self) -> f64 {
        seconds(i64::try_from(self.step_ns).unwrap_or(i64::MAX))
    }

    /// The value of each step.
    pub(crate) fn values(&self, function: Function, kind: PointKind, cells: &[Cell]) -> Vec<Option<f64>> {
        let of_step = cells.iter().skip(1);
        match (function, kind) {
            (Function::Rate, PointKind::Delta) => {
                of_step.map(|cell| cell.get().map(|value| value / self.seconds())).collect()
            }
            (Function::Rate | Function::Increase | Function::Quantile, PointKind::Cumulative) => {
                rises(cells, function == Function::Rate)
            }
            (Function::Average, _) => {
                of_step.map(|cell| cell.get().map(|sum| sum / as_double(cell.weight))).collect()
            }
            _ => of_step.map(|cell| cell.get()).collect(),
        }
    }
}

/// By how much a counter has risen since the last point of an earlier step; in a second, where so asked.
fn rises(cells: &[Cell], in_a_second: bool) -> Vec<Option<f64>> {
    let mut before = cells.first().copied().filter(|cell| cell.weight != 0);
    let rise = |cell: &Cell| {
        cell.get()?;
        let before = before.replace(*cell)?;
        // A counter that is less than before began anew.
        let rise = if cell.value < before.value { cell.value } else { cell.value - before.value };
        let seconds = seconds(cell.weight.saturating_sub(before.weight));
        match in_a_second {
            true => (seconds > 0.0).then(|| rise / seconds),
            false => Some(rise),
        }
    };
    cells.iter().skip(1).map(rise).collect()
}

/// The rise of one bucket's count in each step, for histograms whose points list only the buckets that have values. `all` has the count of all
/// buckets. A bucket that is not in the last point of a step has no values.
pub(crate) fn rises_within(all: &[Cell], kind: PointKind, bucket: &[Cell]) -> Vec<Option<f64>> {
    if kind == PointKind::Delta {
        return bucket.iter().skip(1).map(|cell| cell.get()).collect();
    }
    let mut before: Option<(f64, f64)> = None;
    let rises = all.iter().zip(bucket).map(|(all, cell)| {
        let total = all.get()?;
        let count = if cell.weight == all.weight { cell.value } else { 0.0 };
        let (total_before, count_before) = before.replace((total, count))?;
        // One that has less values than before began anew.
        Some(if total < total_before { count } else { count - count_before })
    });
    rises.skip(1).collect()
}

impl Cell {
    pub(crate) const NONE: Cell = Cell { weight: 0, value: 0.0 };

    pub(crate) fn get(&self) -> Option<f64> {
        (self.weight != 0).then_some(self.value)
    }

    /// Adds a point.
    pub(crate) fn add(&mut self, function: Function, kind: PointKind, time_ns: i128, value: f64) {
        let time = i64::try_from(time_ns).unwrap_or(i64::MAX).max(1);
        let is_rise = matches!(function, Function::Rate | Function::Increase | Function::Quantile);
        let is_first = self.weight == 0;
        match function {
            _ if is_rise && kind == PointKind::Delta => {
                *self = Cell { weight: self.weight + 1, value: self.value + value }
            }
            Function::Average => *self = Cell { weight: self.weight + 1, value: self.value + value },
            Function::Minimum if !is_first => self.value = self.value.min(value),
            Function::Maximum if !is_first => self.value = self.value.max(value),
            _ if time >= self.weight => *self = Cell { weight: time, value },
            _ => {}
        }
    }
}

/// The value of several series of the same labels.
pub(crate) fn together(function: Function, values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut all) = (0_i64, None);
    for value in values {
        count += 1;
        all = Some(match (function, all) {
            (_, None) => value,
            (Function::Minimum, Some(all)) => value.min(all),
            (Function::Maximum, Some(all)) => value.max(all),
            (_, Some(all)) => value + all,
        });
    }
    let is_mean = matches!(function, Function::Average | Function::Last);
    all.map(|all| if is_mean { all / as_double(count) } else { all })
}

#[expect(clippy::cast_precision_loss, reason = "a plot has fewer digits")]
pub(super) fn as_double(number: i64) -> f64 {
    number as f64
}

fn seconds(ns: i64) -> f64 {
    as_double(ns) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Steps {
        Steps::new(Timestamp::from_second(100).unwrap(), 10_000_000_000, 3)
    }

    fn cells(function: Function, kind: PointKind, points: &[(i128, f64)]) -> Vec<Option<f64>> {
        let mut cells = vec![Cell::NONE; 4];
        for &(second, value) in points {
            let time = second * 1_000_000_000;
            cells[steps().of(time).unwrap()].add(function, kind, time, value);
        }
        steps().values(function, kind, &cells)
    }

    /// The order in which points come does not matter.
    #[test]
    fn a_counter_rises_from_its_last_point_in_an_earlier_step() {
        let points = [(125, 30.0), (95, 10.0), (109, 14.0), (101, 11.0), (129, 40.0)];
        let rate = cells(Function::Rate, PointKind::Cumulative, &points);
        assert_eq!(rate, [Some(4.0 / 14.0), None, Some(26.0 / 20.0)]);
        let increase = cells(Function::Increase, PointKind::Cumulative, &points);
        assert_eq!(increase, [Some(4.0), None, Some(26.0)]);
    }

    #[test]
    fn a_counter_that_begins_anew_rises_from_zero() {
        let increase =
            cells(Function::Increase, PointKind::Cumulative, &[(95, 100.0), (105, 7.0), (115, 9.0)]);
        assert_eq!(increase, [Some(7.0), Some(2.0), None]);
    }

    #[test]
    fn deltas_are_added_up() {
        let points = [(101, 5.0), (102, 5.0), (121, 1.0)];
        assert_eq!(cells(Function::Rate, PointKind::Delta, &points), [Some(1.0), None, Some(0.1)]);
        assert_eq!(cells(Function::Increase, PointKind::Delta, &points), [Some(10.0), None, Some(1.0)]);
    }

    #[test]
    fn gauges_have_their_average_least_most_and_last() {
        let points = [(109, 1.0), (101, 5.0), (105, -3.0)];
        let of = |function| cells(function, PointKind::Cumulative, &points)[0];
        assert_eq!(of(Function::Average), Some(1.0));
        assert_eq!((of(Function::Minimum), of(Function::Maximum)), (Some(-3.0), Some(5.0)));
        assert_eq!(of(Function::Last), Some(1.0));
        assert_eq!(together(Function::Sum, [1.0, 2.0].into_iter()), Some(3.0));
        assert_eq!(together(Function::Average, [1.0, 2.0].into_iter()), Some(1.5));
        assert_eq!(together(Function::Maximum, std::iter::empty()), None);
    }
}
