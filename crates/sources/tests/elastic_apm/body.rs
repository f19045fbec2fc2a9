//! Bodies as agents send them.

use std::io::Read;

pub(crate) const PATH: &str = "/intake/v2/events";
pub(crate) const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
pub(crate) const METADATA: &str =
    "{\"metadata\":{\"service\":{\"name\":\"shop\",\"agent\":{\"name\":\"go\",\"version\":\"2.0\"}}}}\n";
pub(crate) const LOG: &str = "{\"log\":{\"message\":\"hello\"}}\n";

#[allow(clippy::disallowed_methods, reason = "what is read here was written here")]
pub(crate) fn gzip(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    flate2::read::GzEncoder::new(raw, flate2::Compression::new(6)).read_to_end(&mut body).unwrap();
    body
}

#[allow(clippy::disallowed_methods, reason = "what is read here was written here")]
pub(crate) fn deflate(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    flate2::read::ZlibEncoder::new(raw, flate2::Compression::new(6)).read_to_end(&mut body).unwrap();
    body
}
