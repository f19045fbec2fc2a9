//! The holder's names in a certificate's subject, and its expiry (RFC 5280, sections 4.1.2.5 and 4.1.2.6).
//!
//! The certificate's signature has been checked, so what is here was signed by an authority that is trusted. It is
//! read as if it were not: lengths are minimal and definite, and whatever could be read in two ways is not read.

use tidegate_http1::Certificate;

/// The longest name, in bytes.
const MAX_NAME_LEN: usize = 150;
/// The most organisations, and units.
const MAX_NAMES: usize = 8;

const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// The names in a certificate, in DER; nothing when it is none. Names that are too long, that are not text, or that
/// have control characters are left out, and so is a common name that is there twice. Its end is that of this certificate
/// alone.
pub fn certificate(der: &[u8]) -> Option<Certificate> {
    let (_validity, mut subject) = validity_and_subject(der)?;
    let (mut common, mut organizations, mut units) = (Vec::new(), Vec::new(), Vec::new());
    while !subject.is_empty() {
        let (mut set, others) = tagged(subject, SET)?;
        subject = others;
        while !set.is_empty() {
            let (attribute, others) = tagged(set, SEQUENCE)?;
            set = others;
            let (kind, value) = tagged(attribute, OID)?;
            let names = match kind {
                // 2.5.4.3, 2.5.4.10, 2.5.4.11
                [0x55, 4, 3] => &mut common,
                [0x55, 4, 10] => &mut organizations,
                [0x55, 4, 11] => &mut units,
                _ => continue,
            };
            let (tag, text, _) = element(value)?;
            if let Some(name) = name(tag, text)
                && names.len() < MAX_NAMES
            {
                names.push(name);
            }
        }
    }
    let common_name = if common.len() == 1 { common.pop() } else { None };
    Some(Certificate {
        common_name,
        organizations: organizations.into(),
        organizational_units: units.into(),
        valid_until: not_after(der),
    })
}

/// The time in which a certificate is valid: its first and its last second, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub not_before: u64,
    /// Its last second.
    pub not_after: u64,
}

/// When a certificate, in DER, is valid; nothing when it is none.
pub fn validity(der: &[u8]) -> Option<Validity> {
    let (validity, _) = validity_and_subject(der)?;
    let (tag, not_before, _) = element(validity)?;
    Some(Validity { not_before: seconds(tag, not_before)?, not_after: not_after(der)? })
}

/// The last second in which a certificate, in DER, is valid, since 1970; nothing when it is none.
pub(crate) fn not_after(der: &[u8]) -> Option<u64> {
    let (validity, _) = validity_and_subject(der)?;
    let (_tag, _not_before, rest) = element(validity)?;
    let (tag, time, _) = element(rest)?;
    seconds(tag, time)
}

/// A time, in seconds since 1970.
fn seconds(tag: u8, time: &[u8]) -> Option<u64> {
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits(time, 2)?;
            // RFC 5280, section 4.1.2.5.1.
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => digits(time, 4)?,
        _ => return None,
    };
    let (month, rest) = digits(rest, 2)?;
    let (day, rest) = digits(rest, 2)?;
    let (hour, rest) = digits(rest, 2)?;
    let (minute, rest) = digits(rest, 2)?;
    let (second, rest) = digits(rest, 2)?;
    let is_time = rest == b"Z" && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_time || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days(year, month, day)?.checked_mul(86_400)?;
    // Whatever ended before 1970 has ended.
    Some(u64::try_from(seconds + hour * 3600 + minute * 60 + second).unwrap_or(0))
}

/// Days since 1970 of a date in the Gregorian calendar, by years that begin in March.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365_i64.checked_mul(year)? + leap + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// The number in the first `count` digits, and what follows them.
fn digits(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (number, rest) = text.split_at_checked(count)?;
    let number = number.iter().try_fold(0_i64, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })?;
    Some((number, rest))
}

/// The validity and the subject of a certificate.
fn validity_and_subject(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (whole, _) = tagged(der, SEQUENCE)?;
    let (to_be_signed, _) = tagged(whole, SEQUENCE)?;
    let rest = match tagged(to_be_signed, VERSION) {
        Some((_, rest)) => rest,
        None => to_be_signed,
    };
    let (_serial, rest) = tagged(rest, INTEGER)?;
    let (_algorithm, rest) = tagged(rest, SEQUENCE)?;
    let (_issuer, rest) = tagged(rest, SEQUENCE)?;
    let (validity, rest) = tagged(rest, SEQUENCE)?;
    let (subject, _) = tagged(rest, SEQUENCE)?;
    Some((validity, subject))
}

fn name(tag: u8, text: &[u8]) -> Option<Box<str>> {
    let text = match tag {
        UTF8 => std::str::from_utf8(text).ok()?,
        PRINTABLE | IA5 if text.is_ascii() => std::str::from_utf8(text).ok()?,
        _ => return None,
    };
    let fits = (1..=MAX_NAME_LEN).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then(|| text.into())
}

/// The content of the element in front, if it has this tag, and what follows it.
fn tagged(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// The element in front: its tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    // A tag of several bytes stands for nothing that is looked for.
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81 => {
            let (len, rest) = rest.split_first()?;
            (usize::from(*len).checked_sub(0x80).map(|over| over + 0x80)?, rest)
        }
        0x82 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*len)).checked_sub(0x100).map(|over| over + 0x100)?, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests;
