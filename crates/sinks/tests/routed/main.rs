//! The sink `otlp` with `route_by`, behind a real journal and before receivers that answer as they are told.

#![allow(clippy::unwrap_used, clippy::large_futures, clippy::indexing_slicing, reason = "tests")]

mod answers;
mod failures;
mod members;
mod receiver;
mod rig;
mod routes;
