//! One message.

use crate::time::Zone;
use crate::{rfc3164, rfc5424};

/// A message in pieces of what was received. Empty pieces are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message<'a> {
    /// 0 to 23, and what the PRI allows beyond; `None` without a PRI.
    pub facility: Option<u8>,
    /// 0 (emergency) to 7 (debug); `None` without a PRI.
    pub severity: Option<u8>,
    /// The version of RFC 5424; `None` for other messages.
    pub version: Option<u16>,
    /// The time, in nanoseconds since the Unix epoch.
    pub time_ns: Option<u64>,
    /// The host that sent it.
    pub hostname: &'a [u8],
    /// The program: APP-NAME, or the name in the TAG.
    pub app_name: &'a [u8],
    /// The process: PROCID, or the number in the TAG.
    pub proc_id: &'a [u8],
    /// The kind of message.
    pub msg_id: &'a [u8],
    /// The elements of STRUCTURED-DATA, which are well formed.
    pub structured_data: &'a [u8],
    /// The text.
    pub text: &'a [u8],
}

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// RFC 5424 where a message begins like that, otherwise RFC 3164.
    #[default]
    Auto,
    /// RFC 5424; other messages are text.
    Rfc5424,
    /// RFC 3164, whatever a message looks like.
    Rfc3164,
}

/// How messages are read.
#[derive(Debug, Clone)]
pub struct ParseSettings {
    /// Their format.
    pub format: Format,
    /// The zone of times without one.
    pub zone: Zone,
    /// Whether they come from programs of this host, which leave out its name.
    pub is_local: bool,
}

/// Reads a message that arrived at `now_ns`. What does not follow a format is text.
#[must_use]
pub fn parse<'a>(bytes: &'a [u8], settings: &ParseSettings, now_ns: u64) -> Message<'a> {
    let (pri, rest) = match pri(bytes) {
        Some((pri, rest)) => (Some(pri), rest),
        None => (None, bytes),
    };
    let message = match settings.format {
        Format::Rfc3164 => None,
        // Without a PRI it cannot be told from text that begins with a number.
        _ => pri.and_then(|_| rfc5424::parse(rest)),
    };
    let message = message.unwrap_or_else(|| match settings.format {
        Format::Rfc5424 => Message { text: rest, ..Message::default() },
        _ => rfc3164::parse(rest, settings, now_ns),
    });
    Message { facility: pri.map(|pri| pri >> 3), severity: pri.map(|pri| pri & 7), ..message }
}

/// The PRI, and what is behind it. RFC 5424 allows up to 191; what fits three bits and five is kept.
fn pri(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let rest = bytes.strip_prefix(b"<")?;
    let digits = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at_checked(digits)?;
    let number = std::str::from_utf8(digits).ok().filter(|digits| digits.len() <= 3)?;
    Some((number.parse().ok()?, rest.strip_prefix(b">")?))
}

/// Splits at the next space.
pub(crate) fn token(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests;
