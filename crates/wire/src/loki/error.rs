//! Errors in a push request, in words for the client.

use crate::otlp::json::error::ErrorAtOffset;
use crate::otlp::json::{OtlpJsonError, OtlpJsonErrorKind};
use crate::proto::Malformed;
use crate::remote_write::Excerpt;
use thiserror::Error;

/// A push request was refused: where, and why. Its text is meant for the answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LokiError {
    /// The JSON is not a push request.
    #[error("{0}")]
    Json(OtlpJsonError),
    /// The protobuf is not a `PushRequest`.
    #[error("the push request is malformed: {0}")]
    Protobuf(#[from] Malformed),
    /// The labels of a stream.
    #[error("couldn't parse labels: stream {stream}: {error}")]
    Labels {
        /// The index of the stream; the first is 0.
        stream: usize,
        /// The mistake.
        error: LabelError,
    },
    /// The time of an entry.
    #[error("stream {stream}, entry {entry}: the timestamp is not between 1970 and 2554")]
    Time {
        /// The index of the stream; the first is 0.
        stream: usize,
        /// The index of the entry in its stream; the first is 0.
        entry: usize,
    },
    /// The output has no room.
    #[error("the request is longer as OTLP than what was granted for it")]
    Full,
}

/// A mistake in the labels of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LabelError {
    /// They do not read `{name="value", …}`.
    #[error("there should be {expected} at byte {at} of `{labels}`")]
    Syntax {
        /// The part that is missing.
        expected: &'static str,
        /// The offset in the labels, in bytes.
        at: usize,
        /// Their beginning.
        labels: Excerpt,
    },
    /// A name is not one.
    #[error("`{0}` is not a label name: it has letters, digits and underscores, and no digit in front")]
    Name(Excerpt),
    /// A name comes twice.
    #[error("the label `{0}` is given twice")]
    Twice(Excerpt),
    /// There are too many.
    #[error("a stream may have {most} labels", most = super::MAX_LABELS)]
    TooMany,
}

/// Why reading stopped, before it is known in which stream.
pub(super) enum ReadError {
    /// In a value of JSON, or for want of room.
    At(ErrorAtOffset),
    Labels(LabelError),
    Time,
    Protobuf(Malformed),
}

impl From<ErrorAtOffset> for ReadError {
    fn from(error: ErrorAtOffset) -> Self {
        Self::At(error)
    }
}

impl From<LabelError> for ReadError {
    fn from(error: LabelError) -> Self {
        Self::Labels(error)
    }
}

impl From<Malformed> for ReadError {
    fn from(error: Malformed) -> Self {
        Self::Protobuf(error)
    }
}

impl ReadError {
    /// The error, in this stream and this entry of it.
    #[cold]
    pub(super) fn within(self, stream: usize, entry: Option<usize>) -> LokiError {
        match self {
            Self::At(error) if error.is_full() => LokiError::Full,
            Self::At(error) => LokiError::Json(error.at(match entry {
                Some(entry) => format!("streams[{stream}].values[{entry}]"),
                None => format!("streams[{stream}]"),
            })),
            Self::Labels(error) => LokiError::Labels { stream, error },
            Self::Time => LokiError::Time { stream, entry: entry.unwrap_or(0) },
            Self::Protobuf(error) => LokiError::Protobuf(error),
        }
    }

    /// The error, in no stream.
    #[cold]
    pub(super) fn outside(self) -> LokiError {
        match self {
            Self::At(error) if !error.is_full() => LokiError::Json(error.at(String::new())),
            error => error.within(0, None),
        }
    }
}

/// That something else than `expected` was found at `at`.
#[cold]
pub(super) fn wrong_number(at: usize, found: &[u8], expected: &'static str) -> ReadError {
    ErrorAtOffset::new(at, OtlpJsonErrorKind::Number { found: Excerpt::new(found), expected }).into()
}
