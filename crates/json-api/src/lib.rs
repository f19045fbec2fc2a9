//! GET requests to servers that answer in JSON, and their responses token by token.
//!
//! It promises: a response is handed on as it arrives, and no more of it is held than one string of at most
//! [`LONGEST_TEXT`] bytes and the buffers of the connection ([`Api::BYTES`]), whatever the server sends.
//!
//! It leaves to others: what a response means, time-outs, and trying again.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod client;
mod tokens;

pub use client::{Api, ApiError, ApiSettings, Response};
pub use tokens::{LONGEST_TEXT, SyntaxError, Text, Token, Tokenizer};
