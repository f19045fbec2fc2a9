//! The sink `elasticsearch` against a node that answers as it is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::large_futures, reason = "a test")]

mod delivery;
mod failures;
mod intake;
mod need;
mod node;
mod oversize;
mod pipelines;
mod remote_write;
mod rig;
mod tenants;
mod unavailable;
