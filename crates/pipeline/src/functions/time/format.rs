//! `FormatTime`: a time as a text.

use super::layout::{Field, Item, Layout, MONTHS, Padding, WEEKDAYS};
use super::{Civil, OUT_OF_RANGE};
use crate::functions::{Prepared, all, converter, required};
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::json::write::formatted;
use tidegate_wire::output::{Full, Output};

/// A time in UTC as the format has it. Output: at most 24 bytes for each directive, and the text between.
pub(super) static FORMAT_TIME: Signature = Signature {
    prepare: |position, literal, _| (position == 1).then(|| Layout::new(literal).map(Prepared::Layout)),
    ..converter(
        "FormatTime",
        &[required("time", Type::Time), required("format", Type::LiteralText)],
        Type::Text,
        |machine, arguments| {
            let [time, layout] = all(arguments)?;
            let Argument::Prepared(Prepared::Layout(layout)) = layout else {
                return Err(Failure::Invalid("the format is not a literal"));
            };
            let at = Civil::of(machine.time(time)?);
            let mark = machine.memory.mark();
            let (_, mut room) = machine.memory.split();
            for item in &layout.0 {
                match item {
                    Item::Literal(text) => room.put(text.as_bytes())?,
                    Item::Fraction(separator, digits) => {
                        super::fraction(at.nanosecond, *separator, *digits, &mut room)?
                    }
                    Item::Field(field) => write(*field, &at, &mut room)?.ok_or(OUT_OF_RANGE)?,
                }
            }
            Ok(Value::Text(machine.memory.since(mark)))
        },
    )
};

/// Appends a field; nothing for a month or day that does not exist.
fn write(field: Field, at: &Civil, room: &mut Room<'_>) -> Result<Option<()>, Full> {
    let name = |names: &'static [&'static str], number: i64| {
        usize::try_from(number).ok().and_then(|number| names.get(number)).copied()
    };
    let text = match field {
        Field::Year | Field::YearOfDate => return formatted(format_args!("{:04}", at.year), room).map(Some),
        Field::YearOfCentury => return two(at.year.rem_euclid(100), Padding::Zero, room).map(Some),
        Field::Month(Padding::Space) => return formatted(format_args!("_{}", at.month), room).map(Some),
        Field::Month(padding) => return two(at.month, padding, room).map(Some),
        Field::Day(padding) => return two(at.day, padding, room).map(Some),
        Field::Hour => return two(at.hour, Padding::Zero, room).map(Some),
        Field::Hour12(padding) => return two((at.hour + 11) % 12 + 1, padding, room).map(Some),
        Field::Minute => return two(at.minute, Padding::Zero, room).map(Some),
        Field::Second => return two(at.second, Padding::Zero, room).map(Some),
        Field::MonthLong => name(&MONTHS, at.month - 1),
        Field::MonthShort => name(&MONTHS, at.month - 1).and_then(|name| name.get(..3)),
        Field::WeekdayLong => name(&WEEKDAYS, at.weekday),
        Field::WeekdayShort => name(&WEEKDAYS, at.weekday).and_then(|name| name.get(..3)),
        Field::HalfUpper => Some(if at.hour < 12 { "AM" } else { "PM" }),
        Field::HalfLower => Some(if at.hour < 12 { "am" } else { "pm" }),
        Field::ZoneName => Some("UTC"),
        Field::Zone => Some("Z"),
        Field::Offset(colons, parts) => {
            let zeros = if colons { "+00:00:00" } else { "+000000" };
            zeros.get(..1 + 2 * parts + if colons { parts - 1 } else { 0 })
        }
    };
    match text {
        Some(text) => room.put(text.as_bytes()).map(Some),
        None => Ok(None),
    }
}

/// A number of one or two digits.
fn two(number: i64, padding: Padding, room: &mut Room<'_>) -> Result<(), Full> {
    match padding {
        Padding::None => formatted(format_args!("{number}"), room),
        Padding::Zero => formatted(format_args!("{number:02}"), room),
        Padding::Space => formatted(format_args!("{number:2}"), room),
    }
}
