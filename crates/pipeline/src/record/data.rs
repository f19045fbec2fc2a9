//! The data of a metric: its kind, what it says about all of its points, and what statements do to them.

use super::message::{FieldRanges, Message, Slot};
use super::point_attributes::PointAttributes;
use super::shape::Shape;
use crate::memory::{Memory, Slice};
use crate::ottl::field::Field;
use crate::value::Failure;
use tidegate_wire::proto::WireType;

/// The kinds of data, by their field in the metric.
pub(crate) const GAUGE: u32 = 5;
pub(crate) const SUM: u32 = 7;
pub(crate) const HISTOGRAM: u32 = 9;
pub(crate) const EXPONENTIAL: u32 = 10;
pub(crate) const SUMMARY: u32 = 11;

const TEMPORALITY: u32 = 2;
const MONOTONIC: u32 = 3;

/// The data of the current metric. Its points are not here: a walk meets them one by one.
#[derive(Debug)]
pub(crate) struct Data {
    /// Its fields without the points.
    pub(crate) message: Message,
    /// Its field in the metric; 0 where there is none.
    kind: u32,
    /// The kind in the body.
    came: u32,
    /// All of it, in the body.
    content: Slice,
    /// How many points it has in the body. It is known only where statements ask for it.
    pub(crate) points: usize,
    /// The attributes of its points that statements ask for.
    pub(crate) attributes: PointAttributes,
    /// Factors for the values of its points, one after the other: doubles of eight bytes.
    factors: Slice,
}

impl Data {
    /// A metric's data, with room for so many keys of points' attributes.
    pub(super) fn new(keys: usize) -> Data {
        Data {
            message: Message::new(Shape::Data, false),
            kind: 0,
            came: 0,
            content: Slice::EMPTY,
            points: 0,
            attributes: PointAttributes::new(keys),
            factors: Slice::EMPTY,
        }
    }

    /// Begins another metric's, which is `content` of the body. Statements ask its points for the attributes `keys`.
    pub(crate) fn begin(&mut self, kind: u32, content: Slice, keys: &[Slice]) {
        self.attributes.begin(keys);
        self.message.begin(Shape::Data, FieldRanges::NONE);
        (self.kind, self.came, self.content) = (kind, kind, content);
        (self.points, self.factors) = (0, Slice::EMPTY);
    }

    /// Its field in the metric, as it is now.
    pub(crate) fn kind(&self) -> u32 {
        self.kind
    }

    /// All of it as it came.
    pub(crate) fn content(&self) -> Slice {
        self.content
    }

    /// Whether a statement changed something beside its points.
    pub(crate) fn is_changed(&self) -> bool {
        self.kind != self.came || self.message.is_changed()
    }

    /// How often statements changed it: what they made for that is needed as long as the metric is.
    pub(crate) fn changes(&self) -> u64 {
        self.message.changes() + u64::from(self.factors.len)
    }

    /// Makes a gauge of a sum.
    pub(crate) fn become_gauge(&mut self, memory: &Memory<'_>) {
        if self.kind == SUM {
            self.kind = GAUGE;
            self.message.remove(memory, TEMPORALITY);
            self.message.remove(memory, MONOTONIC);
        }
    }

    /// Makes a sum of a gauge.
    pub(crate) fn become_sum(&mut self, memory: &Memory<'_>, temporality: u64, is_monotonic: bool) {
        if self.kind != GAUGE {
            return;
        }
        self.kind = SUM;
        // In place of all occurrences: a gauge may have unknown fields with these numbers, of whatever type.
        let number = |bits| Slot { bits, bytes: Slice::EMPTY, wire: WireType::Varint };
        self.message.replace(memory, TEMPORALITY, number(temporality));
        self.message.replace(memory, MONOTONIC, number(u64::from(is_monotonic)));
    }

    /// Has the values of all points multiplied.
    pub(crate) fn multiply(&mut self, memory: &mut Memory<'_>, factor: f64) -> Result<(), Failure> {
        let before = self.factors;
        self.factors = memory.build(|memory| {
            memory.push_slice(before)?;
            memory.push(&factor.to_le_bytes())
        })?;
        Ok(())
    }

    /// Leaves the values of its points as they are.
    pub(crate) fn forget_factors(&mut self) {
        self.factors = Slice::EMPTY;
    }

    /// The factors for its points, one after the other.
    pub(crate) fn factors(&self) -> Slice {
        self.factors
    }

    /// `METRIC_DATA_TYPE_…`.
    pub(super) fn metric_type(&self) -> i64 {
        match self.kind {
            GAUGE => 1,
            SUM => 2,
            HISTOGRAM => 3,
            EXPONENTIAL => 4,
            SUMMARY => 5,
            _ => 0,
        }
    }

    /// Whether the kind has this field.
    pub(super) fn has(&self, field: Field) -> bool {
        match field {
            Field::IsMonotonic => self.kind == SUM,
            _ => matches!(self.kind, SUM | HISTOGRAM | EXPONENTIAL),
        }
    }
}
