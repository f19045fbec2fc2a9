//! The refusals that come by the thousand, as gRPC has them: put together at the start, so that only the seconds are put in.

use super::{GrpcAnswer, grpc};
use crate::canned_refusal::CannedRefusal;
use crate::rejection::{Rejection, RejectionText};
use crate::status::{Code, Detail, protobuf};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::sync::LazyLock;
use tidegate_wire::proto::write::Varint;

/// Most bytes: a part of [`PREPARED_BYTES`](crate::PREPARED_BYTES).
#[cfg(test)]
pub(crate) const BYTES: usize = 24 << 10;
/// The seconds that are put in have at most so many bytes as protobuf has them: that is four hours and a half.
const LONGEST: usize = 2;

/// A refusal that is ready but for the seconds.
#[derive(Clone, Copy)]
pub struct PreparedRefusal {
    parts: &'static PreparedParts,
    seconds: u32,
}

struct PreparedParts {
    code: Code,
    message: Box<str>,
    /// By the bytes of the seconds.
    statuses: [EncodedStatus; LONGEST],
}

/// The `EncodedStatus` in protobuf, in which the seconds are the last bytes; and the same in base64.
struct EncodedStatus {
    raw: Box<[u8]>,
    text: Box<[u8]>,
}

/// By what is refused.
static ALL: LazyLock<Box<[PreparedParts]>> =
    LazyLock::new(|| CannedRefusal::ALL.iter().map(|canned| PreparedParts::of(*canned)).collect());

/// Puts them together. Otherwise the first that is needed does it.
pub(crate) fn prepare() {
    LazyLock::force(&ALL);
}

/// The prepared answer for such a refusal.
pub fn ready(refused: &Rejection) -> Option<PreparedRefusal> {
    match (&refused.words, refused.retry_after) {
        (RejectionText::CannedRefusal(canned), Some(seconds)) if seconds < 1 << (7 * LONGEST) => {
            // There is one for each, in this order.
            ALL.get(*canned as usize).map(|parts| PreparedRefusal { parts, seconds })
        }
        _ => None,
    }
}

impl PreparedRefusal {
    /// `grpc-status`
    pub fn code(self) -> Code {
        self.parts.code
    }

    /// `grpc-message`, percent-encoded.
    pub fn message(self) -> &'static str {
        &self.parts.message
    }

    /// `grpc-status-details-bin`, in base64, in pieces.
    pub fn details(self, mut put: impl FnMut(&[u8])) {
        let seconds = Varint::new(self.seconds.into());
        let (bytes, len) = (seconds.as_bytes(), seconds.as_bytes().len());
        let Some(EncodedStatus { raw, text }) = self.parts.of_len(len) else { return };
        // Up to the last three bytes that stay the same, and from there on anew.
        let same = (raw.len() - len) / 3 * 3;
        let mut tail = [0; 2 + LONGEST];
        let kept = raw.get(same..raw.len() - len).unwrap_or_default();
        let behind = kept.iter().chain(bytes);
        let tail_len = tail.iter_mut().zip(behind).map(|(to, from)| *to = *from).count();
        put(text.get(..same / 3 * 4).unwrap_or_default());
        let mut digits = [0; (2 + LONGEST).div_ceil(3) * 4];
        // There is room for all of them.
        let count = STANDARD_NO_PAD.encode_slice(tail.get(..tail_len).unwrap_or_default(), &mut digits);
        put(digits.get(..count.unwrap_or_default()).unwrap_or_default());
    }
}

impl PreparedParts {
    /// Cut out of what the ordinary code says.
    fn of(canned: CannedRefusal) -> PreparedParts {
        let refused = Rejection::canned(canned).retry_after(0);
        let GrpcAnswer { code, message, .. } = grpc(&refused, None);
        let statuses = [0, 0x80].map(|seconds| {
            let mut raw = Vec::new();
            protobuf(&mut raw, code, [canned.words().as_bytes(), &[], &[]], Detail::RetryIn(seconds));
            let text = STANDARD_NO_PAD.encode(&raw).into_bytes();
            EncodedStatus { raw: raw.into(), text: text.into() }
        });
        PreparedParts { code, message: message.into(), statuses }
    }

    fn of_len(&self, len: usize) -> Option<&EncodedStatus> {
        self.statuses.get(len.checked_sub(1)?)
    }

    #[cfg(test)]
    fn size(&self) -> usize {
        let statuses: usize = self.statuses.iter().map(|status| status.raw.len() + status.text.len()).sum();
        size_of::<PreparedParts>() + self.message.len() + statuses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prepared answer equals the rendered one byte for byte, for every refusal and any number of digits in the
    /// delay.
    #[test]
    fn prepared_statuses_equal_rendered_ones() {
        for canned in CannedRefusal::ALL {
            for seconds in [0, 1, 9, 10, 99, 100, 127, 128, 300, 9999, 10_000, 16_383] {
                let refused = Rejection::canned(*canned).retry_after(seconds);
                let ready = ready(&refused).unwrap();
                let said = grpc(&refused, None);
                let mut details = Vec::new();
                ready.details(|part| details.extend_from_slice(part));
                assert_eq!(String::from_utf8(details).ok(), said.details, "{canned:?} {seconds}");
                assert_eq!((ready.code(), ready.message()), (said.code, said.message.as_str()));
            }
        }
    }

    /// Rare refusals are rendered by the ordinary code.
    #[test]
    fn rare_refusals_have_no_prepared_status() {
        let canned = Rejection::canned(CannedRefusal::Memory);
        assert!(ready(&canned).is_none());
        assert!(ready(&canned.clone().retry_after(16_384)).is_none());
        assert!(ready(&Rejection::too_large(1).retry_after(1)).is_none());
    }

    #[test]
    fn they_fit_the_space_that_is_declared_for_them() {
        let bytes: usize = ALL.iter().map(PreparedParts::size).sum();
        assert!(bytes <= BYTES, "{bytes} bytes");
    }
}
