//! The sink `prometheus_remote_write` between a real journal and a peer that checks what arrives, sample by
//! sample.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

mod dead_letters;
mod failures;
mod lanes;
mod limits;
mod memory;
mod passing;
mod restarts;
mod rig;
mod versions;
