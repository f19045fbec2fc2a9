//! W3C trace states with OpenTelemetry's member `ot`.
//!
//! Specifications: <https://www.w3.org/TR/trace-context/#tracestate-header> and
//! <https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/>.

use super::threshold::{HexText, Randomness, Threshold};

/// The longest trace state that is read, in bytes.
const LONGEST: usize = 1024;
/// One member more than are read.
const MEMBERS: usize = 32;
const LONGEST_KEY: usize = 256;
const LONGEST_TENANT: usize = 241;
const LONGEST_SYSTEM: usize = 14;
const LONGEST_VALUE: usize = 256;

/// A valid trace state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct TraceState<'a> {
    text: &'a [u8],
    otel: OtelMember<'a>,
}

/// The value of the member `ot`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct OtelMember<'a> {
    text: &'a [u8],
    randomness: Option<(Randomness, HexText)>,
    threshold: Option<(Threshold, HexText)>,
}

impl<'a> TraceState<'a> {
    /// Reads a trace state; `None` if it is not valid.
    pub(crate) fn parse(text: &'a [u8]) -> Option<TraceState<'a>> {
        if text.len() > LONGEST {
            return None;
        }
        let mut otel = OtelMember::default();
        let mut pieces = 0;
        for piece in pieces_of(text, b',') {
            let piece = trimmed(piece);
            pieces += 1;
            if pieces >= MEMBERS {
                return None;
            }
            if piece.is_empty() {
                continue;
            }
            let (key, value) = cut(piece, b'=')?;
            if !is_key(key) || !is_value(value) {
                return None;
            }
            if key == b"ot" {
                otel = OtelMember::parse(value)?;
            }
        }
        Some(TraceState { text, otel })
    }

    /// Whether it says anything about sampling.
    pub(crate) const fn has_sampling(&self) -> bool {
        self.otel.randomness.is_some() || self.otel.threshold.is_some()
    }

    pub(crate) fn randomness(&self) -> Option<Randomness> {
        self.otel.randomness.map(|(value, _)| value)
    }

    pub(crate) fn threshold(&self) -> Option<Threshold> {
        self.otel.threshold.map(|(value, _)| value)
    }

    pub(crate) fn set_randomness(&mut self, randomness: Randomness) {
        self.otel.randomness = Some((randomness, randomness.text()));
    }

    pub(crate) fn clear_threshold(&mut self) {
        self.otel.threshold = None;
    }

    /// Sets the threshold, unless it is lower than the one that is there.
    pub(crate) fn raise_threshold(&mut self, threshold: Threshold) {
        if self.threshold().is_none_or(|known| known <= threshold) {
            self.otel.threshold = Some((threshold, threshold.text()));
        }
    }

    /// Writes it, with `ot` first, in pieces.
    pub(crate) fn write<E>(&self, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut is_first = true;
        let others = || pieces_of(self.otel.text, b';').filter_map(|piece| cut(piece, b':')).filter(is_other);
        let hex = |value: Option<HexText>| value.filter(|text| !text.as_bytes().is_empty());
        let randomness = hex(self.otel.randomness.map(|(_, text)| text));
        let threshold = hex(self.otel.threshold.map(|(_, text)| text));
        let known = [(b"rv", randomness), (b"th", threshold)];
        for (key, text) in &known {
            if let Some(text) = text {
                put(if is_first { b"ot=" } else { b";" })?;
                put(*key)?;
                put(b":")?;
                put(text.as_bytes())?;
                is_first = false;
            }
        }
        for (key, value) in others() {
            put(if is_first { b"ot=" } else { b";" })?;
            put(key)?;
            put(b":")?;
            put(value)?;
            is_first = false;
        }
        for piece in pieces_of(self.text, b',') {
            let piece = trimmed(piece);
            if !piece.is_empty() && !piece.starts_with(b"ot=") {
                if !is_first {
                    put(b",")?;
                }
                put(piece)?;
                is_first = false;
            }
        }
        Ok(())
    }
}

fn is_other((key, _): &(&[u8], &[u8])) -> bool {
    !matches!(*key, b"rv" | b"th")
}

impl<'a> OtelMember<'a> {
    fn parse(text: &'a [u8]) -> Option<OtelMember<'a>> {
        if text.is_empty() || text.len() > LONGEST_VALUE || text.ends_with(b";") {
            return None;
        }
        let mut member = OtelMember { text, ..OtelMember::default() };
        for piece in pieces_of(text, b';') {
            let (key, value) = cut(piece, b':')?;
            let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
            let is_key = key.first().is_some_and(u8::is_ascii_lowercase)
                && key.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
            if !is_key || !value.iter().all(is_plain) {
                return None;
            }
            match key {
                b"rv" => member.randomness = Some(Randomness::original(value)?),
                b"th" => member.threshold = Some(Threshold::original(value)?),
                _ => {}
            }
        }
        Some(member)
    }
}

/// The parts between separators. An empty text has none, and one that ends with a separator has no empty part behind it.
fn pieces_of(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(&[separator]).unwrap_or(text);
    let is_empty = text.is_empty();
    text.split(move |byte| *byte == separator).filter(move |_| !is_empty)
}

/// Without blanks and tabs around it.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// The parts before and behind the first `equality`; the part before it is not empty.
fn cut(text: &[u8], equality: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(equality, text).filter(|at| *at > 0)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

fn is_key(key: &[u8]) -> bool {
    let is_lower = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    let is_low = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let are_rest = |text: &[u8]| text.iter().all(|byte| is_low(byte) || b"_-*/".contains(byte));
    if key.len() > LONGEST_KEY {
        return false;
    }
    match memchr::memchr(b'@', key).and_then(|at| Some((key.get(..at)?, key.get(at + 1..)?))) {
        Some((tenant, system)) => {
            tenant.first().is_some_and(is_low)
                && is_lower(system.first())
                && tenant.len() <= LONGEST_TENANT
                && system.len() <= LONGEST_SYSTEM
                && are_rest(tenant)
                && are_rest(system)
        }
        None => is_lower(key.first()) && are_rest(key),
    }
}

fn is_value(value: &[u8]) -> bool {
    let is_char = |byte: &u8| matches!(byte, b' '..=b'~') && !b",=".contains(byte);
    value.len() <= LONGEST_VALUE
        && value.last().is_some_and(|last| *last != b' ')
        && value.iter().all(is_char)
}
