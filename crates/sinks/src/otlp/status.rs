//! Parses the response to a rejected request: `google.rpc.Status`, and `RetryInfo` in its details.

use std::time::Duration;
use tidegate_wire::percent;
use tidegate_wire::proto::{Reader, WireType};

/// The end of the type of the detail that says when to come back.
const RETRY_INFO: &[u8] = b"google.rpc.RetryInfo";
/// The longest wait that is believed.
const LONGEST: Duration = Duration::from_secs(3600);

/// The understood parts of a `google.rpc.Status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The peer's words.
    pub(super) message: Option<String>,
    /// When to come back, where it says so.
    pub(super) retry: Option<Duration>,
}

impl Status {
    /// Reads as much of a status as there is: its beginning is enough. What is no status says nothing.
    pub(super) fn read(bytes: &[u8]) -> Status {
        let mut status = Status::default();
        let mut reader = Reader::new(bytes);
        while let Ok(Some(key)) = reader.key() {
            match (key.field, key.wire) {
                (2, WireType::Length) => {
                    let Ok(text) = reader.bytes(key) else { break };
                    status.message = str::from_utf8(text).ok().map(|text| text.trim().to_owned());
                }
                (3, WireType::Length) => {
                    let Ok(detail) = reader.bytes(key) else { break };
                    status.retry = retry_info(detail).or(status.retry);
                }
                (1, WireType::Varint) if reader.skip(key).is_ok() => {}
                // Fields that a status does not have: text that looks like protobuf.
                _ => return Status::default(),
            }
        }
        status
    }
}

/// The delay in a `google.protobuf.Any` that holds a `RetryInfo`; without one it is to be tried at once.
fn retry_info(any: &[u8]) -> Option<Duration> {
    let (mut name, mut value) = (&[][..], &[][..]);
    let mut reader = Reader::new(any);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => name = reader.bytes(key).ok()?,
            2 => value = reader.bytes(key).ok()?,
            _ => reader.skip(key).ok()?,
        }
    }
    if !name.ends_with(RETRY_INFO) {
        return None;
    }
    let mut delay = Duration::ZERO;
    let mut reader = Reader::new(value);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => delay = duration(reader.bytes(key).ok()?)?,
            _ => reader.skip(key).ok()?,
        }
    }
    Some(delay.min(LONGEST))
}

/// A `google.protobuf.Duration`; a negative one is none.
fn duration(bytes: &[u8]) -> Option<Duration> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some(key) = reader.key().ok()? {
        match key.field {
            1 => seconds = reader.varint(key).ok()?,
            2 => nanoseconds = reader.varint(key).ok()?,
            _ => reader.skip(key).ok()?,
        }
    }
    let seconds = u64::try_from(seconds.cast_signed()).unwrap_or(0);
    let nanoseconds = u32::try_from(nanoseconds.cast_signed()).unwrap_or(0).min(999_999_999);
    Some(Duration::new(seconds, nanoseconds))
}

/// `grpc-message`: percent-encoded UTF-8.
pub(super) fn percent_decoded(text: &[u8]) -> String {
    percent::decode(text).decode_utf8_lossy().into_owned()
}

/// `grpc-status-details-bin`: base64, with padding or without.
pub(super) fn base64_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.iter().filter(|byte| **byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            let [_, _, _, byte] = (bits >> count).to_be_bytes();
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A status as servers write it: code, message, and one detail.
    pub(super) fn status(message: &str, seconds: u8) -> Vec<u8> {
        let name = b"type.googleapis.com/google.rpc.RetryInfo";
        let mut any = vec![0x0a, name.len() as u8];
        any.extend(name);
        any.extend([0x12, 4, 0x0a, 2, 0x08, seconds]);
        let mut status = vec![0x08, 14, 0x12, message.len() as u8];
        status.extend(message.as_bytes());
        status.extend([0x1a, any.len() as u8]);
        status.extend(any);
        status
    }

    #[test]
    fn a_status_has_a_message_and_a_retry_delay() {
        let read = Status::read(&status("busy", 7));
        assert_eq!(read.message.as_deref(), Some("busy"));
        assert_eq!(read.retry, Some(Duration::from_secs(7)));
        assert_eq!(Status::read(b"<html>no</html>"), Status::default());
    }

    /// Only the beginning of a long one is kept, so only that may be there to be read.
    #[test]
    fn a_truncated_status_is_read_up_to_its_end() {
        let whole = status("busy", 7);
        for end in 0..whole.len() {
            let read = Status::read(&whole[..end]);
            assert_eq!(read.retry, None);
            assert_eq!(read.message.is_some(), end >= 8, "{end}");
        }
    }

    #[test]
    fn a_wait_is_at_most_an_hour_and_never_negative() {
        let info = |duration: &[u8]| {
            let mut any = vec![0x0a, 20];
            any.extend(RETRY_INFO);
            any.extend([0x12, duration.len() as u8 + 2, 0x0a, duration.len() as u8]);
            any.extend(duration);
            retry_info(&any)
        };
        assert_eq!(info(&[0x08, 0x80, 0x80, 0x80, 0x01]), Some(LONGEST));
        let minus_one = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(info(&minus_one), Some(Duration::ZERO));
        assert_eq!(info(&[0x10, 0x80, 0xca, 0xb5, 0xee, 0x01]), Some(Duration::from_millis(500)));
        assert_eq!(retry_info(&[0x0a, 1, b'x']), None);
    }

    #[test]
    fn texts_in_headers_are_decoded() {
        assert_eq!(percent_decoded(b"a%20b%C3%A9%2"), "a b\u{e9}%2");
        assert_eq!(base64_decoded(b"aGVsbG8=").unwrap(), b"hello");
        assert_eq!(base64_decoded(b"aGVsbG8").unwrap(), b"hello");
        assert_eq!(base64_decoded(b"a b"), None);
    }
}
