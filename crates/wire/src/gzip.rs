//! gzip (RFC 1952), in steps over slices, with state that is used again.
//!
//! A body may be several members one after the other, which is also how bodies are joined without being
//! decompressed. Header and trailer are checked here, checksums included; the compressed data in between is
//! zlib-rs's. Bytes behind the last member are an error, and so is a body that ends before its trailer. A body of no bytes has no members, and is empty.

mod decode;
mod encode;
mod header;
mod splice;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, GzipError};
pub use encode::{Encoder, InvalidLevel};
pub use splice::{Piece, Section, splice, spliced_len};
