//! RFC 3164, behind the PRI, and what senders make of it.
//!
//! The RFC describes what was seen in 2001: `Mmm dd hh:mm:ss HOST TAG[PID]: TEXT`. Accepted besides: times of RFC 3339 (rsyslog), years
//! and fractions (Cisco), no host (programs of the same host), sequence numbers, marks of unsynchronised clocks and
//! `%FACILITY-SEVERITY-MNEMONIC:` (Cisco). Whatever is not found leaves its piece empty, and the text whole.

use crate::message::{Message, ParseSettings, token};
use crate::time::YearlessTime;
use tidegate_wire::time::parse_rfc3339;

/// The longest program name that is believed.
const MAX_TAG: usize = 128;
const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Reads a message.
pub(crate) fn parse<'a>(bytes: &'a [u8], settings: &ParseSettings, now_ns: u64) -> Message<'a> {
    let (origin, header) = cisco_front(bytes);
    let Some((time_ns, rest)) = time(header, settings, now_ns) else {
        // Without a time there is no header.
        let (app_name, proc_id, text) = tag(bytes).unwrap_or((&[], &[], bytes));
        return Message { app_name, proc_id, text, ..Message::default() };
    };
    let rest = rest.trim_ascii_start();
    if let Some(text) = cisco_text(rest) {
        return Message {
            time_ns: Some(time_ns),
            hostname: origin,
            msg_id: mnemonic(text),
            text,
            ..Message::default()
        };
    }
    let (hostname, rest) = match token(rest) {
        Some((host, after)) if is_hostname(host) && (!settings.is_local || tag(after).is_some()) => {
            (host, after)
        }
        _ => (origin, rest),
    };
    let rest = rest.trim_ascii_start();
    let (app_name, proc_id, text) = tag(rest).unwrap_or((&[], &[], rest));
    let msg_id = mnemonic(text);
    Message { time_ns: Some(time_ns), hostname, app_name, proc_id, msg_id, text, ..Message::default() }
}

/// Skips the sequence number and the origin that Cisco devices may put before the time, and returns the origin.
fn cisco_front(bytes: &[u8]) -> (&[u8], &[u8]) {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let numbered = bytes.get(digits..).and_then(|rest| rest.strip_prefix(b": ")).filter(|_| digits > 0);
    let rest = numbered.unwrap_or(bytes);
    let origin = token(rest).and_then(|(word, after)| {
        let name = word.strip_suffix(b":")?;
        (is_hostname(name) && starts_with_time(after)).then_some((name, after))
    });
    match origin {
        Some((name, after)) => (name, after),
        None if starts_with_time(rest) => (&[], rest),
        None => (&[], bytes),
    }
}

fn starts_with_time(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"*").or_else(|| bytes.strip_prefix(b".")).unwrap_or(bytes);
    bytes
        .split_at_checked(4)
        .is_some_and(|(month, _)| month.strip_suffix(b" ").is_some_and(|month| MONTHS.contains(&month)))
}

/// The time, and what is behind it.
fn time<'a>(bytes: &'a [u8], settings: &ParseSettings, now_ns: u64) -> Option<(u64, &'a [u8])> {
    if bytes.first().is_some_and(u8::is_ascii_digit) {
        let (time, rest) = token(bytes)?;
        return Some((parse_rfc3339(time.strip_suffix(b":").unwrap_or(time))?, rest));
    }
    let bytes = bytes.strip_prefix(b"*").or_else(|| bytes.strip_prefix(b".")).unwrap_or(bytes);
    let (month, rest) = token(bytes)?;
    let month = MONTHS.iter().position(|name| *name == month)?;
    let (day, rest) = number(rest.trim_ascii_start())?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii_start();
    let (first, after) = number(rest)?;
    let (year, hour, rest) = match after.first()? {
        b':' => (None, first, after),
        _ => {
            let (hour, after) = number(after.trim_ascii_start())?;
            (Some(i16::try_from(first).ok()?), hour, after)
        }
    };
    let (minute, rest) = number(rest.strip_prefix(b":")?)?;
    let (second, rest) = number(rest.strip_prefix(b":")?)?;
    let (nanosecond, rest) = fraction(rest)?;
    let small = |number: u32| i8::try_from(number).ok();
    let time = YearlessTime {
        year,
        month: i8::try_from(month + 1).ok()?,
        day: small(day)?,
        hour: small(hour)?,
        minute: small(minute)?,
        second: small(second)?,
        nanosecond,
    };
    let (zone, rest) = zone(rest);
    let zone = if zone == b"UTC" || zone == b"GMT" { &crate::Zone::UTC } else { &settings.zone };
    Some((time.resolve(zone, now_ns)?, rest))
}

/// A number of up to four digits.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let len = bytes.iter().take(5).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = bytes.split_at_checked(len).filter(|_| (1..=4).contains(&len))?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

fn fraction(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at_checked(len).filter(|_| (1..=9).contains(&len))?;
    let number: i32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number * 10_i32.pow(9 - u32::try_from(len).ok()?), rest))
}

/// The zone's abbreviation that Cisco devices write, as far as it is followed by a colon.
fn zone(bytes: &[u8]) -> (&[u8], &[u8]) {
    let after_colon = |rest: &'_ [u8]| rest.first() == Some(&b':');
    if after_colon(bytes) {
        return (&[], bytes.get(1..).unwrap_or_default());
    }
    let word = bytes.strip_prefix(b" ").unwrap_or(bytes);
    let len = word.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    match word.split_at_checked(len) {
        Some((name, [b':', rest @ ..])) if (3..=5).contains(&len) => (name, rest),
        _ => (&[], bytes),
    }
}

/// The text of a Cisco message, which has no host: `%LINK-3-UPDOWN: …`.
fn cisco_text(bytes: &[u8]) -> Option<&[u8]> {
    let text = bytes.strip_prefix(b": ").unwrap_or(bytes);
    (!mnemonic(text).is_empty()).then_some(text)
}

/// `LINK-3-UPDOWN` of `%LINK-3-UPDOWN: …`.
fn mnemonic(text: &[u8]) -> &[u8] {
    let name = text.strip_prefix(b"%").and_then(|rest| rest.get(..memchr::memchr(b':', rest)?));
    let is_name = |name: &&[u8]| {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        name.len() <= MAX_TAG && name.contains(&b'-') && name.iter().all(allowed)
    };
    name.filter(is_name).unwrap_or_default()
}

fn is_hostname(word: &[u8]) -> bool {
    // The colons are of IPv6 addresses.
    let allowed =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'@' | b'/');
    !word.is_empty() && word.len() <= 255 && !word.ends_with(b":") && word.iter().all(allowed)
}

/// The program, the process and the text of `TAG[PID]: TEXT` or `TAG: TEXT`.
fn tag(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let end = bytes.iter().take(MAX_TAG + 1).position(|byte| matches!(byte, b'[' | b':' | b' '))?;
    let (name, rest) = bytes.split_at_checked(end).filter(|(name, _)| {
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic()) && !name.starts_with(b"%")
    })?;
    let (proc_id, rest) = match rest.split_first()? {
        (b'[', inner) => {
            let end = inner.iter().take(MAX_TAG).position(|byte| matches!(byte, b']' | b' '))?;
            let (proc_id, rest) = inner.split_at_checked(end)?;
            (proc_id, rest.strip_prefix(b"]")?)
        }
        (b':', _) => (&[][..], rest),
        _ => return None,
    };
    // `std::foo` is text, and so is `http://…`.
    let rest = match rest {
        [b':', b' ', text @ ..] => text,
        [b':'] | [] => &[],
        [b':', text @ ..] if !proc_id.is_empty() => text,
        [b' ', text @ ..] if !proc_id.is_empty() => text,
        _ => return None,
    };
    Some((name, proc_id, rest))
}
