//! Decides from a response whether events were delivered, are retried, or are dropped.

use crate::config::Protocol;
use crate::http::Response;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Done, but for so many that the peer will never take.
    Taken { rejected: u64 },
    /// Never, but for so many that it took.
    Refused { taken: u64 },
    /// Perhaps in smaller pieces.
    TooLarge,
    /// Again, not before that.
    Later(Option<Duration>),
}

impl Answer {
    pub(super) fn of(protocol: Protocol, response: &Response) -> Answer {
        match response.status {
            200..=299 if protocol == Protocol::Otlp => Answer::Taken { rejected: rejected(response.body()) },
            200..=299 => Answer::Taken { rejected: 0 },
            413 => Answer::TooLarge,
            // The statuses that OTLP declares retryable, and no others.
            429 | 502 | 503 | 504 => Answer::Later(response.retry_after),
            _ if protocol == Protocol::ElasticApm => Answer::Refused { taken: accepted(response.body()) },
            _ => Answer::Refused { taken: 0 },
        }
    }
}

/// `partial_success.rejected_*` of an `Export…ServiceResponse`: field 1 in field 1, in all three.
fn rejected(body: &[u8]) -> u64 {
    let partial = field(body, 1).and_then(|found| match found {
        FieldValue::Bytes(bytes) => Some(bytes),
        FieldValue::Number(_) => None,
    });
    match partial.and_then(|partial| field(partial, 1)) {
        // Signed on the wire; a negative one means nothing.
        Some(FieldValue::Number(number)) => u64::try_from(number as i64).unwrap_or(0),
        _ => 0,
    }
}

enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The first field of that number, as far as the message is one.
fn field(mut message: &[u8], wanted: u64) -> Option<FieldValue<'_>> {
    loop {
        let tag = varint(&mut message)?;
        let found = match tag & 7 {
            0 => FieldValue::Number(varint(&mut message)?),
            1 => FieldValue::Bytes(take(&mut message, 8)?),
            2 => {
                let len = usize::try_from(varint(&mut message)?).ok()?;
                FieldValue::Bytes(take(&mut message, len)?)
            }
            5 => FieldValue::Bytes(take(&mut message, 4)?),
            _ => return None,
        };
        if tag >> 3 == wanted {
            return Some(found);
        }
    }
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(message: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(len)?;
    *message = rest;
    Some(taken)
}

/// `"accepted": 17` of an APM server's answer.
fn accepted(body: &[u8]) -> u64 {
    let name = b"\"accepted\"";
    let Some(at) = body.windows(name.len()).position(|window| window == name) else { return 0 };
    let after = body.get(at + name.len()..).unwrap_or_default();
    let digits = after.iter().skip_while(|byte| matches!(byte, b':' | b' ' | b'\t' | b'\n' | b'\r'));
    digits
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_says_how_many_were_rejected() {
        assert_eq!(rejected(&[]), 0);
        assert_eq!(rejected(&[0x0a, 0]), 0);
        assert_eq!(rejected(&[0x0a, 3, 0x08, 0xac, 0x02]), 300);
        assert_eq!(rejected(&[0x0a, 6, 0x12, 1, b'x', 0x08, 7, 0]), 7);
        assert_eq!(rejected(b"not protobuf at all"), 0);
    }

    #[test]
    fn the_accepted_count_of_an_apm_server_is_read() {
        assert_eq!(accepted(b"{\n  \"accepted\": 17,\n \"errors\":[]}"), 17);
        assert_eq!(accepted(b"{\"error\":\"authentication failed\"}"), 0);
    }
}
