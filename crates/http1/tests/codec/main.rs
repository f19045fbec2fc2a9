//! The codec from outside: each file holds the tests of one promise.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod deadlines;
mod memory;
mod oracle;
mod pipe;
mod record;
mod streams;
mod strict;
mod tcp;
mod together;
