//! Data points, with what statements on their metric do to all of them.

use super::Walk;
use crate::record::message::FieldRanges;
use crate::record::shape::Shape;

impl Walk<'_> {
    /// Begins a data point in data of the kind `kind`, whose content begins at `data`. Returns the step that drops it instead.
    pub(super) fn begin_point(&mut self, kind: u32, data: usize, fields: FieldRanges) -> Option<usize> {
        let shape = match kind {
            9 => Shape::Histogram,
            10 => Shape::Exponential,
            11 => Shape::Summary,
            _ => Shape::Number,
        };
        let record = &mut *self.tools.record;
        record.inner.begin(shape, fields);
        let factors = record.data.factors();
        // Of several kinds of data, as no encoder writes them, the last counts.
        let is_multiplied =
            self.pass.access.multiplies && factors.len > 0 && record.data.content().start as usize == data;
        if !is_multiplied || record.inner.multiply(&mut self.memory, factors).is_ok() {
            return None;
        }
        record.inner.begin(shape, fields);
        self.too_large_of(|access| access.multiplies)
    }
}
