//! Errors in rewriting a checked body.

use thiserror::Error;

use super::error::RemoteWriteError;
use crate::output::Full;

/// Why a body could not be joined or translated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RewriteError {
    /// The output is full.
    #[error(transparent)]
    Full(#[from] Full),
    /// More distinct texts or more symbols than the scratch has room for.
    #[error("the scratch has room for {limit} symbols, and the bodies have more: join fewer or split them")]
    Scratch {
        /// The room that there is.
        limit: usize,
    },
    /// A body of 4 GiB or more.
    #[error("a body of 4 GiB or more cannot be rewritten")]
    TooLong,
    /// A body that would not have passed the check.
    #[error("the body was not checked: {0}")]
    Unchecked(#[from] RemoteWriteError),
}
