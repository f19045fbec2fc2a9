//! Errors in a JSON body, in words that help the client.

use std::fmt;

use thiserror::Error;

use crate::remote_write::Excerpt;

/// A body was refused: where, and why. Its text is meant for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpJsonError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    path: Box<str>,
    offset: usize,
    reason: OtlpJsonErrorKind,
}

/// Why a body was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OtlpJsonErrorKind {
    /// Not UTF-8.
    #[error("the text is not valid UTF-8")]
    Utf8,
    /// Something else than what must come here.
    #[error("there is {found} instead of {expected}")]
    Unexpected {
        /// The actual value.
        found: FoundToken,
        /// The required value.
        expected: &'static str,
    },
    /// Bytes behind the request.
    #[error("the request ends before this, and {0} follows")]
    Trailing(FoundToken),
    /// A control character within a string.
    #[error("a string has the control character {0:#04x}, which must be escaped")]
    Control(u8),
    /// A backslash with something that it cannot have.
    #[error("a string has an escape that JSON does not know")]
    Escape,
    /// A character of two halves of which one is missing.
    #[error("a string has one half of a surrogate pair")]
    Surrogate,
    /// A field comes again, or one that excludes it came before.
    #[error("this was given before, or something that excludes it")]
    Twice,
    /// An id of a wrong length.
    #[error("{given} hexadecimal digits instead of {wanted}")]
    IdLength {
        /// How many characters it has.
        given: usize,
        /// How many it must have.
        wanted: usize,
    },
    /// An id with other characters.
    #[error("`{0}` is not hexadecimal")]
    Hexadecimal(Excerpt),
    /// Bytes that are not base64.
    #[error("`{0}` is not base64")]
    Base64(Excerpt),
    /// An enum by name.
    #[error("`{0}` is a name: enums are integers in OTLP/JSON")]
    EnumName(Excerpt),
    /// A number that its field cannot hold.
    #[error("`{found}` is not {expected}")]
    Number {
        /// The actual value.
        found: Excerpt,
        /// The field's valid types.
        expected: &'static str,
    },
    /// Messages, arrays or maps in each other without end.
    #[error("this nests too deeply")]
    Depth,
    /// The output has no room.
    #[error("the request is longer in protobuf than what was granted for it")]
    Full,
    /// Profiles.
    #[error("profiles are read as protobuf only: their schema is still in development")]
    Profiles,
}

/// The unexpected value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundToken {
    /// Nothing.
    End,
    /// Something that begins with this.
    Byte(u8),
}

impl fmt::Display for FoundToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the end of the body"),
            Self::Byte(b'"') => f.write_str("a string"),
            Self::Byte(b'0'..=b'9' | b'-') => f.write_str("a number"),
            Self::Byte(byte @ b' '..=b'~') => write!(f, "`{}`", char::from(*byte)),
            Self::Byte(byte) => write!(f, "the byte {byte:#04x}"),
        }
    }
}

/// An error before it is known which field it is in.
#[derive(Debug)]
pub(crate) struct ErrorAtOffset(Box<(usize, OtlpJsonErrorKind)>);

/// The result of reading.
pub(crate) type ReadResult<T> = Result<T, ErrorAtOffset>;

impl ErrorAtOffset {
    #[cold]
    pub(crate) fn new(offset: usize, reason: OtlpJsonErrorKind) -> Self {
        Self(Box::new((offset, reason)))
    }

    /// Whether it is the output that has no room.
    pub(crate) fn is_full(&self) -> bool {
        matches!(*self.0, (_, OtlpJsonErrorKind::Full))
    }

    /// The error, in the field at `path`.
    #[cold]
    pub(crate) fn at(self, path: String) -> OtlpJsonError {
        let (offset, reason) = *self.0;
        OtlpJsonError(Box::new(Inner { path: path.into(), offset, reason }))
    }
}

impl OtlpJsonError {
    /// The field, as in `resourceSpans[0].scopeSpans[0].spans[3].traceId`; empty for the whole body. Only the
    /// beginning, if it is long.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The byte of the decompressed body where it was noticed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The error.
    #[must_use]
    pub fn kind(&self) -> &OtlpJsonErrorKind {
        &self.0.reason
    }
}

impl fmt::Display for OtlpJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, offset, reason } = &*self.0;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        match reason {
            OtlpJsonErrorKind::Profiles => write!(f, "{reason}"),
            reason => write!(f, "{reason}, at byte {offset}"),
        }
    }
}

impl std::error::Error for OtlpJsonError {}
