//! Values of fields.

use super::message::{Message, Slot, body};
use super::nested;
use super::shape::{Coding, Shape};
use crate::any_value;
use crate::memory::{Memory, Slice};
use crate::ottl::field::Field;
use crate::value::{Failure, Kind, Value};
use tidegate_wire::proto::{WireType, low32, zigzag};

const KINDS: [&str; 6] = ["Unspecified", "Internal", "Server", "Client", "Producer", "Consumer"];
const DEPRECATED_KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];

impl Message {
    /// The value of a field; `nil` when messages of this shape do not have it.
    pub(super) fn get(&mut self, memory: &mut Memory<'_>, field: Field) -> Result<Value, Failure> {
        let Some((number, coding)) = self.shape.place(field) else { return Ok(Value::Nil) };
        let slot = self.slot(memory, number);
        let bits = slot.map_or(0, |slot| slot.bits);
        let bytes = slot.map_or(Slice::EMPTY, |slot| slot.bytes);
        Ok(match coding {
            Coding::Text => Value::Text(bytes),
            Coding::Unsigned | Coding::Fixed32 => Value::Int(i64::from(low32(bits))),
            Coding::Enumeration => Value::Int(i64::from(low32(bits).cast_signed())),
            Coding::Flag => Value::Bool(bits != 0),
            Coding::Zigzag => Value::Int(zigzag(u64::from(low32(bits)))),
            Coding::Fixed64 | Coding::IntValue => Value::Int(bits.cast_signed()),
            Coding::Time => Value::Time(bits.cast_signed()),
            Coding::Double | Coding::DoubleValue => Value::Double(f64::from_bits(bits)),
            Coding::TraceId => Value::Id(id::<16>(memory, bytes)?),
            Coding::SpanId => Value::Id(id::<8>(memory, bytes)?),
            Coding::TraceIdText => Value::Text(hex::<16>(memory, bytes)?),
            Coding::SpanIdText => Value::Text(hex::<8>(memory, bytes)?),
            // The machine makes a text of it for `body.string`.
            Coding::Any | Coding::AnyText => any_value::read(memory, bytes),
            Coding::KindText => kind_name(memory, bits, &KINDS)?,
            Coding::KindDeprecatedText => kind_name(memory, bits, &DEPRECATED_KINDS)?,
            Coding::NestedText(inner) => Value::Text(nested::field(memory, bytes, inner).1),
            Coding::NestedEnumeration(inner) => {
                Value::Int(i64::from(low32(nested::field(memory, bytes, inner).0).cast_signed()))
            }
            Coding::NestedZigzag(inner) => {
                Value::Int(zigzag(u64::from(low32(nested::field(memory, bytes, inner).0))))
            }
            Coding::NestedVarints(inner) => Value::List(nested::varints(memory, bytes, inner)?),
            // Statements compare it with nil, and count it.
            Coding::Messages => Value::List(Slice::EMPTY),
            Coding::Integers | Coding::Doubles => {
                let is_double = coding == Coding::Doubles;
                let slot = slot.filter(|_| self.was_set(number)).map(|slot| slot.bytes);
                Value::List(nested::numbers(memory, &self.fields, slot, number, is_double)?)
            }
        })
    }

    /// How many messages a field has; `None` when messages of this shape do not have it.
    pub(super) fn count(&self, memory: &Memory<'_>, field: Field) -> Option<usize> {
        let (number, _) = self.shape.place(field).filter(|(_, coding)| *coding == Coding::Messages)?;
        Some(self.fields.ranges().map(|range| nested::count(memory, body(&range), number)).sum())
    }

    /// Whether a number or text within the message of a field is this one already.
    fn is_nested(&mut self, memory: &Memory<'_>, number: u32, inner: u32, bits: u64, text: Slice) -> bool {
        let message = self.slot(memory, number).map_or(Slice::EMPTY, |slot| slot.bytes);
        let (found, bytes) = nested::field(memory, message, inner);
        low32(found) == low32(bits) && memory.get(bytes) == memory.get(text)
    }

    /// Sets a field.
    pub(super) fn set_field(
        &mut self,
        memory: &mut Memory<'_>,
        field: Field,
        value: Value,
    ) -> Result<(), Failure> {
        let Some((number, coding)) = self.shape.place(field) else {
            return Err(Failure::Invalid("this kind of data point does not have the field"));
        };
        // The flags of spans alone are checked in the Collector; others are cut to 32 bits.
        if let (Shape::Span, Field::Flags, Value::Int(flags)) = (self.shape, field, value)
            && u32::try_from(flags).is_err()
        {
            return Err(Failure::Invalid("the flags of a span are 32 bits"));
        }
        let slot = match coding {
            Coding::Text => bytes(text(value)?),
            Coding::Unsigned => bits(u64::from(low32(int(value)?.cast_unsigned())), WireType::Varint),
            Coding::Enumeration => {
                let number = low32(int(value)?.cast_unsigned()).cast_signed();
                bits(i64::from(number).cast_unsigned(), WireType::Varint)
            }
            Coding::Flag => match value {
                Value::Bool(flag) => bits(u64::from(flag), WireType::Varint),
                _ => return Err(wrong(Kind::Bool, value)),
            },
            Coding::Zigzag => bits(zigzagged(int(value)?), WireType::Varint),
            Coding::Fixed32 => bits(u64::from(low32(int(value)?.cast_unsigned())), WireType::Fixed32),
            Coding::Fixed64 | Coding::IntValue => bits(int(value)?.cast_unsigned(), WireType::Fixed64),
            Coding::Time => match value {
                Value::Time(time) => bits(time.cast_unsigned(), WireType::Fixed64),
                _ => return Err(wrong(Kind::Time, value)),
            },
            Coding::Double | Coding::DoubleValue => match value {
                Value::Double(number) => bits(number.to_bits(), WireType::Fixed64),
                _ => return Err(wrong(Kind::Double, value)),
            },
            Coding::TraceId | Coding::SpanId => bytes(id_to_set(memory, coding, value)?),
            Coding::TraceIdText => bytes(parse_id::<16>(memory, value)?),
            Coding::SpanIdText => bytes(parse_id::<8>(memory, value)?),
            Coding::AnyText => bytes(encode(memory, Value::Text(text(value)?))?),
            Coding::Any => bytes(encode(memory, value)?),
            Coding::KindText => bits(kind_of(memory, value, &KINDS)?, WireType::Varint),
            Coding::KindDeprecatedText => bits(kind_of(memory, value, &DEPRECATED_KINDS)?, WireType::Varint),
            Coding::NestedText(inner) => {
                let text = text(value)?;
                if self.is_nested(memory, number, inner, 0, text) {
                    return Ok(());
                }
                self.with_nested(memory, number, inner, |memory, start| {
                    any_value::write_head(inner, text.len as usize, memory)?;
                    memory.push_slice(text).map(|()| start)
                })?
            }
            Coding::NestedEnumeration(inner) => {
                let number_to_set =
                    i64::from(low32(int(value)?.cast_unsigned()).cast_signed()).cast_unsigned();
                if self.is_nested(memory, number, inner, number_to_set, Slice::EMPTY) {
                    return Ok(());
                }
                self.with_nested(memory, number, inner, |memory, start| {
                    nested::push_varint(memory, inner, number_to_set).map(|()| start)
                })?
            }
            Coding::NestedZigzag(inner) => {
                let number_to_set = zigzagged(int(value)?);
                if self.is_nested(memory, number, inner, number_to_set, Slice::EMPTY) {
                    return Ok(());
                }
                self.with_nested(memory, number, inner, |memory, start| {
                    nested::push_varint(memory, inner, number_to_set).map(|()| start)
                })?
            }
            Coding::Messages => return Err(Failure::Invalid("the messages can only be counted")),
            Coding::NestedVarints(inner) => {
                let list = list(value)?;
                let packed = nested::pack_varints(memory, list)?;
                self.with_nested(memory, number, inner, |memory, start| {
                    any_value::write_head(inner, packed.len as usize, memory)?;
                    memory.push_slice(packed).map(|()| start)
                })?
            }
            Coding::Integers | Coding::Doubles => {
                let packed = nested::pack_numbers(memory, list(value)?, coding == Coding::Doubles)?;
                self.replace(memory, number, bytes(packed));
                return Ok(());
            }
        };
        self.set(memory, number, slot);
        Ok(())
    }

    /// The message in field `number`, with its field `inner` as `add` writes it.
    fn with_nested(
        &mut self,
        memory: &mut Memory<'_>,
        number: u32,
        inner: u32,
        add: impl FnOnce(&mut Memory<'_>, crate::memory::Mark) -> Result<crate::memory::Mark, Failure>,
    ) -> Result<Slot, Failure> {
        let old = self.slot(memory, number).map_or(Slice::EMPTY, |slot| slot.bytes);
        let start = memory.mark();
        nested::push_others(memory, old, inner)?;
        let start = add(memory, start)?;
        Ok(bytes(memory.since(start)))
    }
}

fn bits(bits: u64, wire: WireType) -> Slot {
    Slot { bits, bytes: Slice::EMPTY, wire }
}

fn bytes(bytes: Slice) -> Slot {
    Slot { bits: 0, bytes, wire: WireType::Length }
}

fn wrong(wanted: Kind, value: Value) -> Failure {
    Failure::Type { wanted, found: value.kind() }
}

fn int(value: Value) -> Result<i64, Failure> {
    if let Value::Int(number) = value { Ok(number) } else { Err(wrong(Kind::Int, value)) }
}

fn text(value: Value) -> Result<Slice, Failure> {
    if let Value::Text(text) = value { Ok(text) } else { Err(wrong(Kind::Text, value)) }
}

/// The elements of a list; `nil` is a list without any.
fn list(value: Value) -> Result<Slice, Failure> {
    match value {
        Value::List(list) => Ok(list),
        Value::Nil => Ok(Slice::EMPTY),
        other => Err(wrong(Kind::List, other)),
    }
}

/// A `sint32`.
fn zigzagged(number: i64) -> u64 {
    let number = low32(number.cast_unsigned()).cast_signed();
    u64::from(((number << 1) ^ (number >> 31)).cast_unsigned())
}

/// An id of `N` bytes: zeros when the field is empty.
fn id<const N: usize>(memory: &mut Memory<'_>, bytes: Slice) -> Result<Slice, Failure> {
    if bytes.len as usize == N { Ok(bytes) } else { memory.store(&[0; N]) }
}

/// An id in hexadecimal digits, in the temporary space.
fn hex<const N: usize>(memory: &mut Memory<'_>, bytes: Slice) -> Result<Slice, Failure> {
    let mut id = [0; N];
    if let Some(bytes) = memory.get(bytes).first_chunk::<N>() {
        id = *bytes;
    }
    let mark = memory.mark();
    for byte in id {
        let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        memory.push(&[digit(byte >> 4), digit(byte & 15)])?;
    }
    Ok(memory.since(mark))
}

/// An id of zeros is an empty field.
fn id_to_set(memory: &Memory<'_>, coding: Coding, value: Value) -> Result<Slice, Failure> {
    let wanted = if coding == Coding::TraceId { 16 } else { 8 };
    match value {
        Value::Id(id) if id.len == wanted => {
            Ok(if memory.get(id).iter().all(|byte| *byte == 0) { Slice::EMPTY } else { id })
        }
        Value::Id(_) if wanted == 16 => Err(Failure::Invalid("expected a trace id, got a span id")),
        Value::Id(_) => Err(Failure::Invalid("expected a span id, got a trace id")),
        _ => Err(wrong(Kind::Id, value)),
    }
}

fn parse_id<const N: usize>(memory: &mut Memory<'_>, value: Value) -> Result<Slice, Failure> {
    let digits = memory.get(text(value)?);
    if digits.len() / 2 != N {
        return Err(Failure::Invalid(match N {
            16 => "trace ids must be 32 hex characters",
            _ => "span ids must be 16 hex characters",
        }));
    }
    let mut id = [0; N];
    for (byte, pair) in id.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        let [high, low] = pair else { return Err(Failure::Invalid("an odd number of hex characters")) };
        let (Some(high), Some(low)) = (digit(high), digit(low)) else {
            return Err(Failure::Invalid("ids must be hex characters"));
        };
        // Both are below 16.
        *byte = (high << 4 | low) as u8;
    }
    if !digits.len().is_multiple_of(2) {
        return Err(Failure::Invalid("an odd number of hex characters"));
    }
    if id == [0; N] { Ok(Slice::EMPTY) } else { memory.store(&id) }
}

/// The `AnyValue` message of a value.
fn encode(memory: &mut Memory<'_>, value: Value) -> Result<Slice, Failure> {
    let mark = memory.mark();
    any_value::write(value, memory)?;
    Ok(memory.since(mark))
}

fn kind_name(memory: &mut Memory<'_>, bits: u64, names: &[&str; 6]) -> Result<Value, Failure> {
    let name = usize::try_from(bits).ok().and_then(|kind| names.get(kind)).copied().unwrap_or_default();
    memory.store(name.as_bytes()).map(Value::Text)
}

fn kind_of(memory: &Memory<'_>, value: Value, names: &[&str; 6]) -> Result<u64, Failure> {
    let name = memory.get(text(value)?);
    let place = names.iter().position(|known| known.as_bytes() == name);
    place.map(|place| place as u64).ok_or(Failure::Invalid("unknown span kind"))
}
