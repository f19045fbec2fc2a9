//! Data points, with what statements on their metric do to all of them.
//!
//! A point of a metric that is multiplied never passes as it was: its metric may have another unit by then, and the values of
//! its neighbours are multiplied. Where there is no room for the point it is dropped, whatever the steps do with failures.

use super::Walk;
use super::open::Container;
use crate::memory::{Mark, Slice};
use crate::record::data::{EXPONENTIAL, HISTOGRAM, SUMMARY};
use crate::record::message::FieldRanges;
use crate::record::shape::Shape;
use std::ops::Range;

impl Shape {
    /// The points in data of a kind.
    pub(crate) fn of_points(kind: u32) -> Shape {
        match kind {
            HISTOGRAM => Shape::Histogram,
            EXPONENTIAL => Shape::Exponential,
            SUMMARY => Shape::Summary,
            _ => Shape::Number,
        }
    }
}

impl Walk<'_> {
    /// Begins a data point in the current data, which is of the kind `kind`. Returns the step that drops it instead.
    pub(super) fn begin_point(&mut self, kind: u32, fields: FieldRanges) -> Option<usize> {
        let factors = self.factors();
        let record = &mut *self.tools.record;
        record.inner.begin(Shape::of_points(kind), fields);
        if record.inner.multiply(&mut self.memory, factors?).is_ok() {
            return None;
        }
        self.count_too_large(|access| access.multiplies).map(|too_large| too_large.step())
    }

    /// Factors for the values of the points in the current data, if there are any.
    pub(super) fn factors(&self) -> Option<Slice> {
        let (data, top) = (&self.tools.record.data, self.stack.get(self.depth)?);
        // Of several kinds of data, as no encoder writes them, the last counts.
        let is_current = top.kind == Container::Data && data.content().start as usize == top.start.offset();
        Some(data.factors()).filter(|factors| factors.len > 0 && is_current && self.pass.access.multiplies)
    }

    /// Writes the current point multiplied, without what else statements changed. `mark` is where its values begin in the
    /// temporary space, if they can go. Returns false when there is no room.
    pub(super) fn write_multiplied(
        &mut self,
        factors: Slice,
        field: u32,
        whole: &Range<usize>,
        mark: Option<Mark>,
    ) -> bool {
        self.tools.record.inner.begin_again();
        if let Some(mark) = mark {
            self.memory.release(mark);
        }
        let multiplied = self.tools.record.inner.multiply(&mut self.memory, factors);
        multiplied.is_ok() && self.write_changed(field, 3, whole)
    }
}
