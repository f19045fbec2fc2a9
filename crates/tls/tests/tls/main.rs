//! The server's side of TLS, against clients that are not of this project.

#![allow(clippy::unwrap_used, reason = "helpers of tests may")]

mod connections;
mod handshakes;
mod identities;
mod resumption;
mod rig;
