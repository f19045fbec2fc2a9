//! A connection that leaves HTTP: what the service that takes it over gets.

use crate::shutdown::Shutdown;
use std::net::SocketAddr;
use std::pin::Pin;
use tidegate_arena::{Arena, Window};
use tokio::time::Sleep;

/// A connection after a request that changes its protocol. Nothing of it was answered.
pub struct Upgraded<'a, T> {
    /// The stream.
    pub stream: &'a mut T,
    /// The connection's timer, set to any time.
    pub timer: Pin<&'a mut Sleep>,
    /// Resolves when the server shuts down; see [`shutdown`](Self::shutdown) besides.
    pub signal: Pin<&'a mut (dyn Future<Output = ()> + Send + 'a)>,
    /// The signal itself.
    pub shutdown: &'a Shutdown,
    /// The arena of requests.
    pub arena: &'a Arena,
    /// The client.
    pub peer: SocketAddr,
    /// What was received behind the request.
    pub received: ReceivedBehind,
}

/// Bytes received behind the request that changed the protocol.
pub enum ReceivedBehind {
    /// None.
    Nothing,
    /// These.
    Bytes(Window),
    /// Some, for which there was no memory.
    Lost,
}
