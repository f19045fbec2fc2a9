//! prost, with the schemas as the OpenTelemetry project compiles them, is the oracle: on the same bytes,
//! check and views agree with what it decodes.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

pub(in crate::otlp) mod captured;
pub(in crate::otlp) mod normal;
mod oracle;
pub(in crate::otlp) mod refuses;
mod retain_valid;
mod shown;
mod split;
pub(in crate::otlp) mod strategies;
