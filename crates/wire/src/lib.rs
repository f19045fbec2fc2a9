//! Wire formats as views over borrowed bytes: checks, joins and translations. No I/O.
//!
//! Promises:
//! - nothing that comes from outside can make it panic, read past its input, recurse without a bound, or
//!   allocate in proportion to what the input *claims* (only to what it *is*, and only where a method says
//!   so beforehand);
//! - what a check accepts, a view shows exactly as an ordinary protobuf decoder would;
//! - sample values are carried as bits: a NaN's payload, the stale marker among them, is never touched.
//!
//! Left to others: reading and writing sockets, paying for memory (methods say how much is needed), and
//! deciding what to answer to a body that was refused.
#![deny(clippy::indexing_slicing)]

pub mod base64;
pub mod bulk;
pub mod coding;
#[cfg(test)]
mod damage;
pub mod gzip;
pub mod intake;
pub mod json;
pub mod loki;
pub mod otlp;
pub mod output;
pub mod percent;
pub mod proto;
pub mod remote_write;
pub mod snappy;
pub mod time;
mod utf8;
pub mod zlib;
pub mod zstd;
