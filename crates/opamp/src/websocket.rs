//! WebSocket (RFC 6455) for a server: the handshake, frames, and a connection that owns no buffer while it is idle.

mod connection;
mod frame;
mod handshake;
#[cfg(test)]
mod tests;

pub(crate) use connection::{Event, WebSocket};
pub(crate) use frame::CloseCode;
pub(crate) use handshake::{accept_key, is_known_version, is_upgrade, switching_protocols};
