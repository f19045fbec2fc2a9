//! The body of a request: decompressed into memory that is paid for, and read as JSON.

use crate::control::Fleet;
use crate::gunzip::{GunzipError, gunzip};
use serde::Deserialize;
use tidegate_arena::Window;
use tidegate_http1::Body;

/// How a body was sent, and how long it may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyCoding {
    pub(super) is_compressed: bool,
    /// In bytes, as received and decompressed.
    pub(super) most: usize,
}

/// A body that can be read.
pub(super) enum RequestBody {
    AsReceived(Body),
    Decompressed(Window),
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error(
        "the body has more than the {0} bytes, once decompressed, that this route takes (`listen.fleet.max_body` at most)"
    )]
    TooLarge(usize),
    #[error("there is no memory for the body now")]
    Busy,
    #[error("the body is not valid: {0}")]
    Malformed(String),
}

impl RequestBody {
    /// Decompresses a body, where it is compressed.
    pub(super) fn of(fleet: &Fleet, body: Body, coding: BodyCoding) -> Result<RequestBody, BodyError> {
        if !coding.is_compressed {
            return Ok(RequestBody::AsReceived(body));
        }
        Ok(RequestBody::Decompressed(gunzip(fleet.arena(), &body, coding.most)?))
    }

    /// Reads it.
    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, BodyError> {
        let bytes = match self {
            RequestBody::AsReceived(body) => body,
            RequestBody::Decompressed(window) => &window[..],
        };
        serde_json::from_slice(bytes).map_err(|error| BodyError::Malformed(error.to_string()))
    }
}

impl From<GunzipError> for BodyError {
    fn from(error: GunzipError) -> BodyError {
        match error {
            GunzipError::TooLarge(most) => BodyError::TooLarge(most),
            GunzipError::Busy => BodyError::Busy,
            GunzipError::Malformed(error) => BodyError::Malformed(error),
        }
    }
}
