//! HTTP/2: gRPC, and the same requests as over HTTP/1.1.
//!
//! The codec is `h2`, below hyper's server: the streams of a connection run in the connection's own task, so
//! that what was read is taken before more is read, which is what bounds the codec's memory ([`flow`]); and the
//! bodies of calls go past the codec, from the socket into their windows ([`frame_reader`]).
//! `design/otlp.md` has the argument.

mod answer;
mod bodies;
mod call;
mod connection;
mod deadlines;
mod flow;
mod frame_reader;
mod frames;
mod receive;
mod request;
mod server;
mod socket;
mod streams;
mod transport;
mod window_updates;

pub use server::Http2;
pub(crate) use server::{DECISIVE, is_http2};
pub(crate) use transport::peer_of;
