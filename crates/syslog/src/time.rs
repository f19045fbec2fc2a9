//! Times without a year or a zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The zone of times that name none.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// The zone of this name: `UTC`, `local` for that of the machine, an offset such as `+02:00`, or a name of the system's
    /// time zone database such as `Europe/Berlin`. `None` if there is no such zone.
    #[must_use]
    pub fn named(name: &str) -> Option<Zone> {
        match name {
            "UTC" => Some(Zone::UTC),
            "local" => Some(Zone(TimeZone::try_system().unwrap_or(TimeZone::UTC))),
            name if name.starts_with(['+', '-']) => offset(name),
            name => TimeZone::get(name).ok().map(Zone),
        }
    }
}

fn offset(name: &str) -> Option<Zone> {
    let (sign, digits) = name.split_at_checked(1)?;
    let (hours, minutes) = digits.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
    let seconds = if sign == "-" { -seconds } else { seconds };
    let offset = jiff::tz::Offset::from_seconds(seconds).ok()?;
    Some(Zone(TimeZone::fixed(offset)))
}

/// A time of day on a day of the year.
#[derive(Debug, Clone, Copy)]
pub(crate) struct YearlessTime {
    /// The year, where it is known.
    pub(crate) year: Option<i16>,
    /// 1 to 12.
    pub(crate) month: i8,
    /// 1 to 31.
    pub(crate) day: i8,
    pub(crate) hour: i8,
    pub(crate) minute: i8,
    pub(crate) second: i8,
    pub(crate) nanosecond: i32,
}

impl YearlessTime {
    /// The time in nanoseconds since the Unix epoch, of the year in which it is nearest to `now_ns`. `None` if there is no
    /// such time.
    pub(crate) fn resolve(&self, zone: &Zone, now_ns: u64) -> Option<u64> {
        let now = Timestamp::from_nanosecond(i128::from(now_ns)).ok()?;
        let this = Zoned::new(now, zone.0.clone()).year();
        let years = match self.year {
            Some(year) => year..=year,
            None => this.checked_sub(1)?..=this.checked_add(1)?,
        };
        let times = years.filter_map(|year| self.of_year(year, zone));
        times.min_by_key(|time| time.abs_diff(now_ns))
    }

    fn of_year(&self, year: i16, zone: &Zone) -> Option<u64> {
        // A leap second is the one before.
        let time = Time::new(self.hour, self.minute, self.second.min(59), self.nanosecond).ok()?;
        let date = Date::new(year, self.month, self.day).ok()?;
        let zoned = DateTime::from_parts(date, time).to_zoned(zone.0.clone()).ok()?;
        u64::try_from(zoned.timestamp().as_nanosecond()).ok()
    }
}
