//! Receivers, senders and agents that take long to build, as they are used in production: `make test-real` builds and runs them.
//! `make test` compiles these tests and leaves them out.
//!
//! P2 and P4 hold before each receiver and sender: every acknowledged sample is at the receiver, whichever side is killed.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, which say what they saw")]

mod compliance;
mod kubernetes;
mod opamp_supervisor;
mod remote_write;
mod rotation;
mod telegraf;
mod thanos;
mod vector;
mod victoria_metrics;
