//! Fluentd's forward protocol, as Fluentd, Fluent Bit and the Fluentd loggers speak it.
//!
//! A connection carries messages in MessagePack: a tag and one record, or a tag and many of them, packed or compressed.
//! [`Message`] reads one, [`encode`](records::RecordEncoder) makes OTLP logs of its records, [`Handshake`] checks who sends
//! them, and [`ForwardService`] does all of that for the connections that the gateway accepts.
//!
//! Promises:
//! - a message with the option `chunk` is acknowledged when all of its records are durable, and not before;
//! - a connection reads no further than one message beyond what is durable, so a peer waits while the journal does;
//! - no length that a peer declares is believed before its bytes are there, and nothing is nested deeper than
//!   [`MAX_DEPTH`](msgpack::MAX_DEPTH).
//!
//! Not spoken: heartbeats over UDP, and messages as JSON.
//!
//! Specification: <https://github.com/fluent/fluentd/wiki/Forward-Protocol-Specification-v1.5>.

mod connection;
mod handshake;
mod message;
pub mod msgpack;
pub mod records;
mod service;
#[cfg(test)]
mod testing;

pub use handshake::{Authentication, Handshake, HandshakeError, Nonces};
pub use message::{Entries, Entry, Message, MessageError, Packing};
pub use service::{ForwardMeters, ForwardService, Settings};
