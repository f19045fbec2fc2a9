//! HTTP/1.1, the client's side, over blocking sockets and fixed buffers.

mod connection;
mod request;
mod resolver;
mod response;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use connection::{Connection, Deadline, Failure};
pub(crate) use request::{Body, Buffers};
pub(crate) use resolver::{AddressCache, Resolver};
pub(crate) use response::{Response, read_response};
#[cfg(feature = "tls")]
pub(crate) use tls::{Tls, TlsClient, TlsFiles};
