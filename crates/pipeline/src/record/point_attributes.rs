//! Attributes that statements on a metric ask its points for: the scan before its points finds them, so that no statement has to
//! go through all points.

use crate::any_value::{RepeatedField, read_pair};
use crate::memory::{Memory, Slice};
use crate::value::Value;

/// The attributes of the current metric's points that a pass asks for.
#[derive(Debug)]
pub(crate) struct PointAttributes {
    /// The keys, in the order of their places in the constants, with the value at the first point that has it.
    found: Vec<(Slice, Option<Value>)>,
    /// How many have no value yet.
    open: usize,
}

impl PointAttributes {
    /// The bytes of a key.
    pub(super) const BYTES: usize = size_of::<(Slice, Option<Value>)>();

    pub(super) fn new(keys: usize) -> PointAttributes {
        PointAttributes { found: Vec::with_capacity(keys), open: 0 }
    }

    /// Begins another metric, whose points are asked for these keys.
    pub(super) fn begin(&mut self, keys: &[Slice]) {
        self.found.clear();
        // The record has room for the keys of each pass.
        self.found.extend(keys.iter().take(self.found.capacity()).map(|key| (*key, None)));
        self.open = self.found.len();
    }

    /// How many keys were at no point so far.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Looks at another point, whose attributes are its fields `number`.
    pub(crate) fn look(&mut self, memory: &Memory<'_>, point: Slice, number: u32) {
        let mut pairs = RepeatedField::new(point, number);
        while let Some((_, pair)) = pairs.next(memory) {
            let (name, value) = read_pair(memory, pair);
            let name = memory.get(name);
            // Equal literals are one.
            let mut open = self.found.iter_mut().filter(|(_, found)| found.is_none());
            if let Some((_, found)) = open.find(|(key, _)| memory.get(*key) == name) {
                *found = Some(value);
                self.open -= 1;
                if self.open == 0 {
                    return;
                }
            }
        }
    }

    /// The attribute of the first point that has it.
    pub(crate) fn get(&self, key: Slice) -> Option<Value> {
        let place = self.found.binary_search_by_key(&order(key), |(key, _)| order(*key)).ok()?;
        self.found.get(place)?.1
    }
}

/// Orders keys by their places in the constants: an empty one has the place of the next.
pub(crate) fn order(key: Slice) -> (u32, u32) {
    (key.start, key.len)
}
