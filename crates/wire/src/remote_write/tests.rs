//! prost is the oracle: on the same bytes, check and views agree with what it decodes.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

mod accepts;
mod exemplars;
mod histograms;
mod intern;
mod join;
mod model;
mod mutations;
mod oracle;
mod refuses;
mod repairs;
mod split;
pub(crate) mod strategies;
mod translate;

use super::{Counts, Limits, RemoteWriteError, Symbols, Version};

/// Checks with the default limits and fresh scratch.
fn check(version: Version, raw: &[u8]) -> Result<Counts, RemoteWriteError> {
    super::check(version, raw, &Limits::default(), &mut Symbols::new())
}
