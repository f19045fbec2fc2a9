//! Times: now, from numbers, and their parts. All are in UTC. No output.

mod format;
mod layout;
mod parse;

pub(crate) use layout::Layout;

use super::{all, converter, optional, required};
use crate::machine::Machine;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::json::write;
use tidegate_wire::output::{Full, Output};

pub(super) static CONVERTERS: &[&Signature] = &[
    &DAY,
    &format::FORMAT_TIME,
    &parse::TIME,
    &HOUR,
    &MINUTE,
    &MONTH,
    &NANOSECOND,
    &NOW,
    &SECOND,
    &TRUNCATE_TIME,
    &UNIX,
    &UNIX_MICRO,
    &UNIX_MILLI,
    &UNIX_NANO,
    &UNIX_SECONDS,
    &WEEKDAY,
    &YEAR,
];

const TIME: [Parameter; 1] = [required("time", Type::Time)];

const NS: i64 = 1_000_000_000;

/// The most seconds that a time can be away from 1970.
pub(super) const OUT_OF_RANGE: Failure = Failure::Invalid("the time is not between 1678 and 2262");

/// The time at which the pass over the body began.
static NOW: Signature = converter("Now", &[], Type::Time, |machine, _| Ok(Value::Time(machine.now_ns)));

static UNIX: Signature = converter(
    "Unix",
    &[required("seconds", Type::Int), optional("nanoseconds", Type::Int)],
    Type::Time,
    |machine, arguments| {
        let [seconds, nanoseconds] = all(arguments)?;
        let seconds = machine.int(seconds)?;
        let nanoseconds = match nanoseconds {
            Argument::Absent => 0,
            nanoseconds => machine.int(nanoseconds)?,
        };
        let time = i128::from(seconds) * i128::from(NS) + i128::from(nanoseconds);
        i64::try_from(time).map(Value::Time).map_err(|_| OUT_OF_RANGE)
    },
);

static UNIX_NANO: Signature =
    converter("UnixNano", &TIME, Type::Int, |machine, arguments| since_1970(machine, arguments, 1));

static UNIX_MICRO: Signature =
    converter("UnixMicro", &TIME, Type::Int, |machine, arguments| since_1970(machine, arguments, 1000));

static UNIX_MILLI: Signature =
    converter("UnixMilli", &TIME, Type::Int, |machine, arguments| since_1970(machine, arguments, 1_000_000));

static UNIX_SECONDS: Signature =
    converter("UnixSeconds", &TIME, Type::Int, |machine, arguments| since_1970(machine, arguments, NS));

fn since_1970(machine: &mut Machine<'_>, arguments: &[Argument], unit: i64) -> Result<Value, Failure> {
    let [time] = all(arguments)?;
    Ok(Value::Int(machine.time(time)?.div_euclid(unit)))
}

static YEAR: Signature =
    converter("Year", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.year));

static MONTH: Signature =
    converter("Month", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.month));

static DAY: Signature =
    converter("Day", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.day));

static HOUR: Signature =
    converter("Hour", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.hour));

static MINUTE: Signature =
    converter("Minute", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.minute));

static SECOND: Signature =
    converter("Second", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.second));

static NANOSECOND: Signature = converter("Nanosecond", &TIME, Type::Int, |machine, arguments| {
    part(machine, arguments, |at| at.nanosecond)
});

/// The day of the week: 0 is Sunday.
static WEEKDAY: Signature =
    converter("Weekday", &TIME, Type::Int, |machine, arguments| part(machine, arguments, |at| at.weekday));

fn part(machine: &mut Machine<'_>, arguments: &[Argument], part: fn(Civil) -> i64) -> Result<Value, Failure> {
    let [time] = all(arguments)?;
    Ok(Value::Int(part(Civil::of(machine.time(time)?))))
}

/// The last multiple of the duration since the year 1 that is not after the time; the time for no duration.
static TRUNCATE_TIME: Signature = converter(
    "TruncateTime",
    &[required("time", Type::Time), required("duration", Type::Duration)],
    Type::Time,
    |machine, arguments| {
        /// Seconds from the year 1 to 1970.
        const YEAR_1: i128 = 62_135_596_800;
        let [time, duration] = all(arguments)?;
        let (time, duration) = (machine.time(time)?, machine.duration(duration)?);
        if duration <= 0 {
            return Ok(Value::Time(time));
        }
        let beyond = (i128::from(time) + YEAR_1 * i128::from(NS)).rem_euclid(i128::from(duration));
        i64::try_from(i128::from(time) - beyond).map(Value::Time).map_err(|_| OUT_OF_RANGE)
    },
);

/// A time in the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    /// From 1.
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    pub(super) nanosecond: i64,
    /// From Sunday, 0.
    pub(super) weekday: i64,
}

impl Civil {
    /// In UTC. The days are counted in years that begin in March, so that a leap day ends one.
    pub(super) fn of(time: i64) -> Civil {
        let (days, rest) = (time.div_euclid(86_400 * NS), time.rem_euclid(86_400 * NS));
        let seconds = rest / NS;
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        Civil {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            nanosecond: rest % NS,
            weekday: (days + 4).rem_euclid(7),
        }
    }

    /// Seconds since 1970 in UTC. The day may be beyond the end of its month.
    pub(super) fn unix_seconds(&self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        ((days * 24 + self.hour) * 60 + self.minute) * 60 + self.second
    }
}

/// Appends a time as RFC 3339 has it, in UTC, with as many digits of the second as it takes.
pub(crate) fn rfc3339(time: i64, room: &mut Room<'_>) -> Result<(), Full> {
    let Civil { year, month, day, hour, minute, second, nanosecond, .. } = Civil::of(time);
    write::formatted(format_args!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"), room)?;
    fraction(nanosecond, b'.', 9, room)?;
    room.put(b"Z")
}

/// Appends the fraction of a second with so many digits, without zeros at its end; nothing when it has only zeros.
fn fraction(nanosecond: i64, separator: u8, most: usize, room: &mut Room<'_>) -> Result<(), Full> {
    let mut digits = [0; 9];
    let digits = write::decimal(nanosecond.cast_unsigned(), &mut digits);
    let digits = digits.get(..most).unwrap_or(digits);
    let Some(last) = digits.iter().rposition(|digit| *digit != b'0') else { return Ok(()) };
    room.put(&[separator])?;
    room.put(digits.get(..=last).unwrap_or_default())
}

/// Appends a time as `time.Time` of Go prints itself.
pub(super) fn text(time: i64, room: &mut Room<'_>) -> Result<(), Full> {
    let Civil { year, month, day, hour, minute, second, nanosecond, .. } = Civil::of(time);
    write::formatted(format_args!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"), room)?;
    fraction(nanosecond, b'.', 9, room)?;
    room.put(b" +0000 UTC")
}
