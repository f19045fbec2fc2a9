//! `Time`: a time from a text.

use super::layout::{Field, Item, Layout, MONTHS, WEEKDAYS};
use super::{Civil, NS, OUT_OF_RANGE};
use crate::functions::{Prepared, all, converter, optional, required};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time that a text is in the format. Without an offset in the text it is in `location`, by default UTC. A text without a
/// year is of this year, or of the last when it would be more than a week ahead. No output.
pub(super) static TIME: Signature = Signature {
    prepare: |position, literal, _| match position {
        1 => Some(Layout::new(literal).map(Prepared::Layout)),
        2 if literal.is_empty() => Some(Ok(Prepared::Zone(TimeZone::UTC))),
        2 => Some(
            TimeZone::get(literal).map(Prepared::Zone).map_err(|_| format!("unknown time zone `{literal}`")),
        ),
        3 if literal == "en" || literal.starts_with("en-") => None,
        3 => Some(Err("names of months and weekdays are read in English only".into())),
        _ => None,
    },
    ..converter(
        "Time",
        &[
            required("time", Type::Text),
            required("format", Type::LiteralText),
            optional("location", Type::LiteralText),
            optional("locale", Type::LiteralText),
        ],
        Type::Time,
        |machine, arguments| {
            let [time, layout, location, _] = all(arguments)?;
            let Argument::Prepared(Prepared::Layout(layout)) = layout else {
                return Err(Failure::Invalid("the format is not a literal"));
            };
            let zone = match location {
                Argument::Prepared(Prepared::Zone(zone)) => Some(zone),
                _ => None,
            };
            let time = machine.text(time)?;
            let time = parse(machine.memory.get(time), layout, zone, machine.now_ns);
            Ok(Value::Time(time.ok_or(Failure::Invalid("the string is not a time of the format"))??))
        },
    )
};

/// The parts of a time that were read.
struct Read {
    at: Civil,
    /// The second half of the day, of a text with a clock of 12 hours.
    is_afternoon: Option<bool>,
    /// Seconds east of UTC.
    offset: Option<i64>,
}

/// Nanoseconds since 1970; nothing for a text that does not have the layout.
fn parse(text: &[u8], layout: &Layout, zone: Option<&TimeZone>, now_ns: i64) -> Option<Result<i64, Failure>> {
    let at = Civil { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0, nanosecond: 0, weekday: 0 };
    let mut read = Read { at, is_afternoon: None, offset: None };
    let mut rest = text;
    let mut items = layout.0.iter();
    while let Some(item) = items.next() {
        match item {
            Item::Literal(literal) => rest = skip(rest, literal.as_bytes())?,
            Item::Fraction(..) => (read.at.nanosecond, rest) = fraction(rest).unwrap_or((0, rest)),
            Item::Field(field) => {
                rest = read.field(*field, rest)?;
                // A second may have a fraction that the layout does not show.
                let next = items.clone().find(|item| !matches!(item, Item::Literal(_)));
                if *field == Field::Second && !matches!(next, Some(Item::Fraction(..))) {
                    (read.at.nanosecond, rest) = fraction(rest).unwrap_or((0, rest));
                }
            }
        }
    }
    if !rest.is_empty() {
        return None;
    }
    read.time(zone, now_ns)
}

impl Read {
    fn time(self, zone: Option<&TimeZone>, now_ns: i64) -> Option<Result<i64, Failure>> {
        let Read { mut at, is_afternoon, offset } = self;
        match is_afternoon {
            Some(true) if at.hour < 12 => at.hour += 12,
            Some(false) if at.hour == 12 => at.hour = 0,
            _ => {}
        }
        if at.day < 1 || at.day > days_of(at.year, at.month) {
            return None;
        }
        let now = Civil::of(now_ns);
        let has_year = at.year > 0;
        if !has_year {
            at.year = now.year;
        }
        let time = |at: &Civil| {
            let local = at.unix_seconds();
            let offset = offset.unwrap_or_else(|| zone.map_or(0, |zone| offset_at(zone, local)));
            let time = i128::from(local - offset) * i128::from(NS) + i128::from(at.nanosecond);
            i64::try_from(time).map_err(|_| OUT_OF_RANGE)
        };
        const WEEK: i64 = 7 * 86_400 * NS;
        if !has_year && time(&at).is_ok_and(|time| time > now_ns.saturating_add(WEEK)) {
            at.year -= 1;
        }
        Some(time(&at))
    }

    /// Reads a field; returns what is behind it.
    fn field<'t>(&mut self, field: Field, text: &'t [u8]) -> Option<&'t [u8]> {
        let at = &mut self.at;
        match field {
            Field::Year => {
                let (year, rest) = digits(text.trim_ascii_start(), 4)?;
                at.year = year;
                Some(rest)
            }
            Field::YearOfDate => {
                let text = text.trim_ascii_start();
                let (year, rest) = digits(text, 4).or_else(|| century(text))?;
                at.year = year;
                Some(rest)
            }
            Field::YearOfCentury => {
                let (year, rest) = century(text.trim_ascii_start())?;
                at.year = year;
                Some(rest)
            }
            Field::Month(_) => number(text, 1..=12, &mut at.month),
            Field::Day(_) => number(text, 0..=31, &mut at.day),
            Field::Hour => number(text, 0..=23, &mut at.hour),
            Field::Hour12(_) => number(text, 0..=12, &mut at.hour),
            Field::Minute => number(text, 0..=59, &mut at.minute),
            Field::Second => number(text, 0..=59, &mut at.second),
            Field::MonthLong | Field::MonthShort => {
                let (month, rest) = named(text, &MONTHS, field == Field::MonthShort)?;
                at.month = month + 1;
                Some(rest)
            }
            Field::WeekdayLong | Field::WeekdayShort => {
                named(text, &WEEKDAYS, field == Field::WeekdayShort).map(|(_, rest)| rest)
            }
            Field::HalfUpper | Field::HalfLower => {
                let (half, rest) = text.split_at_checked(2)?;
                let letters: [&[u8]; 2] =
                    if field == Field::HalfUpper { [b"AM", b"PM"] } else { [b"am", b"pm"] };
                self.is_afternoon = Some(letters.iter().position(|letters| *letters == half)? == 1);
                Some(rest)
            }
            Field::ZoneName => {
                let (offset, rest) = zone_name(text)?;
                self.offset = Some(offset);
                Some(rest)
            }
            Field::Zone => {
                let text = text.trim_ascii_start();
                let (offset, rest) = match text {
                    [b'Z', rest @ ..] => (0, rest),
                    text => offset(text, false, 2)
                        .or_else(|| offset(text, true, 2))
                        .or_else(|| offset(text, false, 1))?,
                };
                self.offset = Some(offset);
                Some(rest)
            }
            Field::Offset(colons, parts) => {
                let (offset, rest) = offset(text, colons, parts)?;
                self.offset = Some(offset);
                Some(rest)
            }
        }
    }
}

/// The rest behind a literal. Where it has a space, the text may have any number of them.
fn skip<'t>(mut text: &'t [u8], mut literal: &[u8]) -> Option<&'t [u8]> {
    let spaces = |text: &[u8]| text.iter().take_while(|byte| **byte == b' ').count();
    while let Some((first, behind)) = literal.split_first() {
        if *first == b' ' {
            if !text.is_empty() && !text.starts_with(b" ") {
                return None;
            }
            literal = literal.get(spaces(literal)..)?;
            text = text.get(spaces(text)..)?;
            continue;
        }
        text = text.strip_prefix(std::slice::from_ref(first))?;
        literal = behind;
    }
    Some(text)
}

/// The number that so many digits are.
fn digits(text: &[u8], len: usize) -> Option<(i64, &[u8])> {
    let (digits, rest) = text.split_at_checked(len)?;
    let number = digits
        .iter()
        .try_fold(0, |number, digit| Some(number * 10 + i64::from(char::from(*digit).to_digit(10)?)))?;
    Some((number, rest))
}

/// A year of two digits: from 1969 to 2068.
fn century(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = digits(text, 2)?;
    Some((if year >= 69 { 1900 + year } else { 2000 + year }, rest))
}

/// Reads a number of one digit or two, with spaces before it.
fn number<'t>(text: &'t [u8], range: std::ops::RangeInclusive<i64>, into: &mut i64) -> Option<&'t [u8]> {
    let text = text.trim_ascii_start();
    let (number, rest) = digits(text, 2).or_else(|| digits(text, 1))?;
    *into = number;
    range.contains(&number).then_some(rest)
}

/// The place of a name, of its first three letters if it is short, whatever their case.
fn named<'t>(text: &'t [u8], names: &[&str], is_short: bool) -> Option<(i64, &'t [u8])> {
    names.iter().enumerate().find_map(|(place, name)| {
        let name = if is_short { name.get(..3)? } else { name };
        let (begin, rest) = text.split_at_checked(name.len())?;
        begin.eq_ignore_ascii_case(name.as_bytes()).then_some((place as i64, rest))
    })
}

/// A point or comma and the digits of nanoseconds behind it.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let behind = text.strip_prefix(b".").or(text.strip_prefix(b","))?;
    let len = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (all, rest) = behind.split_at_checked(len).filter(|_| len > 0)?;
    let kept = all.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some((kept.fold(0, |number, digit| number * 10 + i64::from(digit & 15)), rest))
}

/// Seconds east of UTC, of hours and so many parts more.
fn offset(text: &[u8], colons: bool, parts: usize) -> Option<(i64, &[u8])> {
    let (sign, mut rest) = text.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut seconds = 0;
    for (part, (unit, most)) in [(3600, 24), (60, 59), (1, 59)].into_iter().take(parts).enumerate() {
        if part > 0 && colons {
            rest = rest.strip_prefix(b":")?;
        }
        let (number, behind) = digits(rest, 2)?;
        if number > most {
            return None;
        }
        seconds += number * unit;
        rest = behind;
    }
    Some((sign * seconds, rest))
}

/// The offset of an abbreviation: UTC, GMT, and those that mean one zone in the tz database.
fn zone_name(text: &[u8]) -> Option<(i64, &[u8])> {
    let (name, rest) = text.split_first_chunk::<3>()?;
    if rest.first().is_some_and(u8::is_ascii_uppercase) && name != b"UTC" {
        return None;
    }
    let hours = match name {
        b"UTC" => 0,
        b"GMT" => {
            // Go reads the hours behind it, and does not count them.
            let Some((b'+' | b'-', hours)) = rest.split_first() else { return Some((0, rest)) };
            let (_, rest) = digits(hours, 2).or_else(|| digits(hours, 1))?;
            return Some((0, rest));
        }
        b"EST" => -5,
        b"MST" => -7,
        b"HST" => -10,
        _ => return None,
    };
    Some((hours * 3600, rest))
}

/// The offset of a zone at a local time, as `time.Date` of Go finds it where it is ambiguous.
fn offset_at(zone: &TimeZone, local: i64) -> i64 {
    let at = |seconds: i64| {
        let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        i64::from(zone.to_offset(time).seconds())
    };
    match at(local) {
        0 => 0,
        offset => at(local - offset),
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
