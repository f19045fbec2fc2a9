//! Receives syslog: RFC 5424 and RFC 3164 over TCP, TLS, UDP and Unix sockets.
//!
//! [`parse`] reads one message, [`Framer`] finds messages in a stream (RFC 6587), and the receivers
//! ([`StreamReceiver`], [`DatagramReceiver`]) give them as OTLP log records to a
//! [`LogIntake`](tidegate_log_intake::LogIntake).
//!
//! Promises:
//! - no message is dropped because it breaks a rule: what cannot be read as a header is text;
//! - a connection is read no further than what is durable plus one buffer, so a sender notices when the gateway accepts
//!   nothing;
//! - memory is declared: idle connections hold no buffer, half messages are charged and have a deadline.
//!
//! Syslog has no acknowledgements. What a sender has given to its kernel when the gateway ends is lost, as with every
//! receiver.
#![deny(clippy::indexing_slicing)]

mod batch;
mod datagram;
mod framing;
mod half_messages;
mod kernel_drops;
mod message;
mod record;
mod rfc3164;
mod rfc5424;
mod stream;
mod time;

pub use datagram::{DatagramReceiver, DatagramSocket};
pub use framing::{Framed, Framer, Framing};
pub use half_messages::HalfMessages;
pub use message::{Format, Message, ParseSettings, parse};
pub use stream::{StreamReceiver, StreamSettings};
pub use time::Zone;

/// Heap of a thread that encodes messages, in bytes.
pub const THREAD_BYTES: usize = record::THREAD_BYTES;
