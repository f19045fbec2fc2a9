//! Layouts of times: the directives of `strptime` and `strftime` that the Collector has.

/// A compiled layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout(pub(super) Box<[Item]>);

/// A piece of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Literal(Box<str>),
    Field(Field),
    /// The fraction of the second with the point or comma before it, of at most so many digits.
    Fraction(u8, usize),
}

/// A field of a time. Numbers are read with one digit or two, whatever is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Year,
    YearOfCentury,
    /// Read with four digits or two, written with four.
    YearOfDate,
    Month(Padding),
    MonthShort,
    MonthLong,
    Day(Padding),
    WeekdayShort,
    WeekdayLong,
    Hour,
    Hour12(Padding),
    Minute,
    Second,
    /// `AM` and `PM`.
    HalfUpper,
    /// `am` and `pm`.
    HalfLower,
    ZoneName,
    /// `Z` or an offset.
    Zone,
    /// An offset: whether it has colons, and how many of hours, minutes and seconds.
    Offset(bool, usize),
}

/// How a number of one digit is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    None,
    Zero,
    Space,
}

impl Layout {
    /// Reads a format.
    pub(crate) fn new(format: &str) -> Result<Layout, String> {
        if format.is_empty() {
            return Err("the format is empty".into());
        }
        if format.contains(|character: char| character.is_ascii_digit()) {
            return Err("a format has no digits: write directives like `%Y`".into());
        }
        let mut items = Vec::new();
        let mut literal = String::new();
        let mut rest = format;
        while let Some((before, behind)) = rest.split_once('%') {
            literal.push_str(before);
            let Some(directive) = behind.chars().next() else {
                literal.push('%');
                rest = "";
                break;
            };
            rest = behind.get(directive.len_utf8()..).unwrap_or_default();
            if let Some(digits) = fraction(directive) {
                let separator = literal.pop().filter(|last| matches!(last, '.' | ','));
                let separator = separator.ok_or(format!("`%{directive}` needs `.` or `,` before it"))?;
                flush(&mut literal, &mut items);
                items.push(Item::Fraction(separator as u8, digits));
                continue;
            }
            let parts = parts(directive).ok_or(format!("unknown directive `%{directive}`"))?;
            for part in parts {
                match part {
                    Part::Text(text) => literal.push_str(text),
                    Part::Field(field) => {
                        flush(&mut literal, &mut items);
                        items.push(Item::Field(*field));
                    }
                }
            }
        }
        literal.push_str(rest);
        flush(&mut literal, &mut items);
        Ok(Layout(items.into()))
    }
}

fn flush(literal: &mut String, items: &mut Vec<Item>) {
    if !literal.is_empty() {
        items.push(Item::Literal(std::mem::take(literal).into()));
    }
}

fn fraction(directive: char) -> Option<usize> {
    Some(match directive {
        'L' => 3,
        'f' => 6,
        's' => 9,
        _ => return None,
    })
}

enum Part {
    Text(&'static str),
    Field(Field),
}

/// Meaning of a directive.
fn parts(directive: char) -> Option<&'static [Part]> {
    use Field::*;
    use Part::{Field as F, Text as T};
    const DATE: &[Part] = &[F(Month(Padding::Zero)), T("/"), F(Day(Padding::Zero)), T("/"), F(YearOfDate)];
    const CLOCK: &[Part] = &[F(Hour), T(":"), F(Minute), T(":"), F(Second)];
    Some(match directive {
        'Y' => &[F(Year)],
        'y' => &[F(YearOfCentury)],
        'm' => &[F(Month(Padding::Zero))],
        // Go's layout for it begins with an underscore that it takes for itself.
        'o' => &[F(Month(Padding::Space))],
        'q' => &[F(Month(Padding::None))],
        'b' | 'h' => &[F(MonthShort)],
        'B' => &[F(MonthLong)],
        'd' => &[F(Day(Padding::Zero))],
        'e' => &[F(Day(Padding::Space))],
        'g' => &[F(Day(Padding::None))],
        'a' => &[F(WeekdayShort)],
        'A' => &[F(WeekdayLong)],
        'H' => &[F(Hour)],
        'l' => &[F(Hour12(Padding::None))],
        'I' => &[F(Hour12(Padding::Zero))],
        'p' => &[F(HalfUpper)],
        'P' => &[F(HalfLower)],
        'M' => &[F(Minute)],
        'S' => &[F(Second)],
        'Z' => &[F(ZoneName)],
        'z' => &[F(Zone)],
        'w' => &[F(Offset(false, 3))],
        'i' => &[F(Offset(false, 1))],
        'j' => &[F(Offset(true, 2))],
        'k' => &[F(Offset(true, 3))],
        'D' | 'x' => DATE,
        'F' => &[F(Year), T("-"), F(Month(Padding::Zero)), T("-"), F(Day(Padding::Zero))],
        'T' | 'X' => CLOCK,
        'r' => &[F(Hour12(Padding::Zero)), T(":"), F(Minute), T(":"), F(Second), T(" "), F(HalfLower)],
        'R' => &[F(Hour), T(":"), F(Minute)],
        'n' => &[T("\n")],
        't' => &[T("\t")],
        '%' => &[T("%")],
        'c' => &[
            F(WeekdayShort),
            T(" "),
            F(MonthShort),
            T(" "),
            F(Day(Padding::Zero)),
            T(" "),
            F(Hour),
            T(":"),
            F(Minute),
            T(":"),
            F(Second),
            T(" "),
            F(Year),
        ],
        _ => return None,
    })
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
