//! OTLP/JSON to the protobuf that it says, in one pass, without a tree and without the heap; and protobuf to JSON: see
//! [`Encoder`].
//!
//! The rules are those of the specification, where it differs from the usual mapping of protobuf to JSON:
//! ids are hexadecimal, enums are integers and never names, names are in lowerCamelCase and no other form,
//! fields that the schema does not know are ignored (and have to be JSON). 64-bit integers come as numbers or
//! strings and are exact; `null` is the same as leaving a field out; a field that is given twice, or two of
//! which only one may be given, are refused, since readers differ in what they make of that.
//!
//! Protobuf writes a message's length before it, and JSON does not know it. So room for the length is left,
//! as much as messages of that kind usually need (a byte for an attribute, two for a span), and where that
//! guess was wrong the message is moved by a byte or two when it ends. What comes out is what an ordinary
//! encoder writes: lengths in as few bytes as possible, and no zeros where the schema has no presence. The
//! alternative, a first pass that only measures, reads everything twice; the move touches a few messages.
//!
//! Profiles are not read as JSON: their schema is in development and its field numbers still change.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>, RFC 8259.

mod encode;
pub(crate) mod error;
mod message;
mod number;
pub(crate) mod reader;
pub mod records;
mod schema;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod value;
pub(crate) mod writer;

pub use encode::{ENCODER_BYTES, Encoder, GROWTH, Layout, Next, Progress};
pub use error::{OtlpJsonError, OtlpJsonErrorKind};

use super::Signal;

/// Most heap bytes of a translation: for deeply nested values.
pub(super) const DEEP_BYTES: usize = message::DEEP_BYTES;

/// The room in which the protobuf of `body` fits, while it is made and after.
///
/// A value is never longer in protobuf than in JSON, but for numbers: eight bytes for what may be one digit
/// and a comma. So commas are counted, which takes next to nothing.
#[must_use]
pub fn max_len(body: &[u8]) -> usize {
    let commas = memchr::memchr_iter(b',', body).count();
    body.len().saturating_add(commas.saturating_mul(7)).saturating_add(512)
}

/// The room in which the protobuf of `body` fits, while it is made and after, exactly: it takes the time of a
/// translation.
///
/// # Errors
/// As [`translate`].
pub fn measure(signal: Signal, body: &[u8]) -> Result<usize, OtlpJsonError> {
    message::measure(signal, body)
}

/// The translated part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// How long the protobuf is.
    pub len: usize,
    /// Items (spans, log records, points) that were left out, since there is something wrong in them.
    pub refused: u64,
    /// The first error.
    pub errors: Vec<OtlpJsonError>,
}

/// Writes the protobuf of `body` to the start of `out`, which should have [`max_len`] or what [`measure`]
/// says. An item in which something is wrong is left out, and does not cost the others.
///
/// The output is well-formed protobuf; [`check`](super::check) decides whether the request is valid.
///
/// # Errors
/// An [`OtlpJsonError`]: which field, which byte, and what is wrong, where that is not within an item, or hides where that ends.
pub fn translate(signal: Signal, body: &[u8], out: &mut [u8]) -> Result<Translated, OtlpJsonError> {
    message::translate(signal, body, out)
}
