//! The sink `thanos_receive` behind a real journal and before members that answer as they are told.

#![allow(clippy::unwrap_used, clippy::large_futures, clippy::indexing_slicing, reason = "tests")]

mod answers;
mod failures;
mod member;
mod memory;
mod messages;
mod placement;
mod quota;
mod rig;
mod rings;
mod stop;
mod tenants;
mod tls;
mod write_request;
