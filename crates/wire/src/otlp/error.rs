//! Errors in an export request, in words that help the client.

use std::fmt;

use thiserror::Error;

use super::attribute::MAX_DEPTH;
use crate::proto::Malformed;
use crate::remote_write::Excerpt;

/// A body was refused: where, and why. Its text is meant for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    /// The enclosing messages, innermost first: at most one entry for each level of the schema.
    path: Vec<(&'static str, u64)>,
    offset: usize,
    reason: OtlpErrorKind,
}

/// Why a body was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OtlpErrorKind {
    /// Not the protobuf message that it should be.
    #[error("{0}")]
    Malformed(Malformed),
    /// A text is not UTF-8.
    #[error("{0} is not valid UTF-8: `{1}`")]
    Utf8(&'static str, Excerpt),
    /// An id has a length that ids do not have.
    #[error("{field} has {given} bytes instead of {wanted}")]
    IdLength {
        /// Which.
        field: &'static str,
        /// Its length.
        given: usize,
        /// The length of such ids.
        wanted: usize,
    },
    /// Arrays or maps in each other without end.
    #[error("a value nests more than {MAX_DEPTH} arrays and maps")]
    Depth,
    /// A message is there twice where the schema has one.
    #[error("{0} is there twice")]
    Twice(&'static str),
}

impl OtlpError {
    /// The enclosing messages, as kind and number among siblings: from the item outwards to the resource.
    #[must_use]
    pub fn path(&self) -> &[(&'static str, u64)] {
        &self.0.path
    }

    /// The byte of the decompressed body where it was noticed.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The error.
    #[must_use]
    pub fn kind(&self) -> &OtlpErrorKind {
        &self.0.reason
    }

    #[cold]
    pub(super) fn new(offset: usize, reason: OtlpErrorKind) -> Self {
        Self(Box::new(Inner { path: Vec::new(), offset, reason }))
    }

    /// Says what contains the place that was named so far.
    #[cold]
    pub(super) fn within(mut self, kind: &'static str, number: u64) -> Self {
        self.0.path.push((kind, number));
        self
    }
}

impl From<Malformed> for OtlpError {
    #[cold]
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.offset, OtlpErrorKind::Malformed(malformed))
    }
}

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, offset, reason } = &*self.0;
        for (index, (kind, number)) in path.iter().enumerate() {
            let joint = if index == 0 { "" } else { " of " };
            write!(f, "{joint}{kind} {number}")?;
        }
        if !path.is_empty() {
            f.write_str(": ")?;
        }
        match reason {
            OtlpErrorKind::Malformed(malformed) => write!(f, "{malformed}"),
            reason => write!(f, "{reason}, at byte {offset}"),
        }
    }
}

impl std::error::Error for OtlpError {}
