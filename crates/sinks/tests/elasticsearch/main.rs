//! The sink `elasticsearch` against a node that answers as it is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::large_futures, reason = "a test")]

mod failures;
mod node;
mod passing;
mod rig;
mod tenants;
