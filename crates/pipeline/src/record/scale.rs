//! Multiplies the values of a data point, as `scale_metric` does: in a histogram the sum, the extremes, the bounds and the exemplars;
//! in a summary the sum and the quantiles.

use super::message::{Message, Slot};
use super::shape::Shape;
use crate::any_value::{self, Elements};
use crate::machine::arguments::go_int;
use crate::memory::{Memory, Slice};
use crate::ottl::field::Field;
use crate::value::{Failure, Value};
use tidegate_wire::proto::{Reader, WireType};

impl Message {
    /// Multiplies the values of a data point with `factors`, doubles of eight bytes, one after the other.
    ///
    /// # Errors
    /// When there is no room for the new values. The point is to be given up then.
    pub(crate) fn multiply(&mut self, memory: &mut Memory<'_>, factors: Slice) -> Result<(), Failure> {
        match self.shape {
            Shape::Number => {
                self.multiply_number(memory, 4, factors, multiplied);
                self.multiply_number(memory, 6, factors, multiplied_int);
                Ok(())
            }
            Shape::Histogram => {
                // The sum, the least and the greatest value.
                for number in [5, 11, 12] {
                    self.multiply_number(memory, number, factors, multiplied);
                }
                self.multiply_bounds(memory, factors)?;
                // Exemplars: a double or an integer.
                self.multiply_messages(memory, 8, factors, &[(3, multiplied), (6, multiplied_int)])
            }
            Shape::Summary => {
                self.multiply_number(memory, 5, factors, multiplied);
                self.multiply_messages(memory, 6, factors, &[(2, multiplied)])
            }
            _ => Ok(()),
        }
    }

    fn multiply_number(&mut self, memory: &Memory<'_>, number: u32, factors: Slice, by: Multiply) {
        if let Some(slot) = self.slot(memory, number).filter(|slot| slot.wire == WireType::Fixed64) {
            let bits = by(slot.bits, memory.get(factors));
            self.set(memory, number, Slot { bits, ..slot });
        }
    }

    fn multiply_bounds(&mut self, memory: &mut Memory<'_>, factors: Slice) -> Result<(), Failure> {
        let Value::List(bounds) = self.get(memory, Field::ExplicitBounds)? else { return Ok(()) };
        if bounds.len == 0 {
            return Ok(());
        }
        let packed = memory.build(|memory| {
            let mut elements = Elements::new(bounds);
            while let Some(element) = elements.next(memory) {
                let Value::Double(bound) = element else { continue };
                memory.push(&multiplied(bound.to_bits(), memory.get(factors)).to_le_bytes())?;
            }
            Ok(())
        })?;
        self.replace(memory, 7, Slot { bits: 0, bytes: packed, wire: WireType::Length });
        Ok(())
    }

    /// Multiplies numbers of eight bytes, by their fields, in the messages of a repeated field. Their lengths stay.
    fn multiply_messages(
        &mut self,
        memory: &mut Memory<'_>,
        number: u32,
        factors: Slice,
        numbers: &[(u32, Multiply)],
    ) -> Result<(), Failure> {
        let fields = self.fields;
        let all = memory.build(|memory| {
            for range in fields.ranges() {
                let mut messages = any_value::RepeatedField::new(super::message::body(&range), number);
                while let Some((raw, payload)) = messages.next(memory) {
                    let mark = memory.mark();
                    memory.push_slice(raw)?;
                    let from = (payload.start - raw.start) as usize;
                    let mut reader = Reader::new(memory.body.get(range_of(payload)).unwrap_or_default());
                    while let Ok(Some(key)) = reader.key() {
                        let known = numbers.iter().find(|(number, _)| *number == key.field);
                        let (Some((_, by)), WireType::Fixed64) = (known, key.wire) else {
                            if reader.skip(key).is_err() {
                                break;
                            }
                            continue;
                        };
                        let Ok(bits) = reader.fixed64(key) else { break };
                        let end = from + reader.offset();
                        let bits = by(bits, memory.get(factors)).to_le_bytes();
                        if let Some(place) = memory.since_mut(mark).get_mut(end - bits.len()..end) {
                            place.copy_from_slice(&bits);
                        }
                    }
                }
            }
            Ok(())
        })?;
        if all.len > 0 {
            self.replace(memory, number, Slot::whole_fields(all));
        }
        Ok(())
    }
}

/// Multiplies the bits of a number with doubles of eight bytes, one after the other.
type Multiply = fn(u64, &[u8]) -> u64;

fn multiplied(bits: u64, factors: &[u8]) -> u64 {
    each(factors).fold(f64::from_bits(bits), |value, factor| value * factor).to_bits()
}

fn multiplied_int(bits: u64, factors: &[u8]) -> u64 {
    let product = |value: i64, factor| go_int(value as f64 * factor);
    each(factors).fold(bits.cast_signed(), product).cast_unsigned()
}

fn each(factors: &[u8]) -> impl Iterator<Item = f64> {
    factors.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}

fn range_of(slice: Slice) -> std::ops::Range<usize> {
    slice.start as usize..slice.start as usize + slice.len as usize
}
