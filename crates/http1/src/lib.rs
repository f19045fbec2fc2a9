//! The HTTP/1.1 server codec: strict, and without a buffer while a connection is idle.
//!
//! A [`Server`] serves connections for a [`Service`], each in one future. A connection takes a window of
//! the arena when its socket becomes readable and gives it back when the request is answered, so an idle
//! one costs its task and nothing else.
//!
//! It promises: a body is charged before it is read; what could be read in two ways is refused; every
//! refusal is an answer; and answering a request on an open connection allocates nothing.
//!
//! It leaves to others: who is let in and what an answer says (the service), how many connections there
//! may be (the acceptor, with [`reject`] for those beyond), and running the futures (the worker).
//!
//! `design/http1.md` lists refused requests and the reasons.

mod certificate;
mod chunked;
mod clock;
mod connection;
mod head;
mod refusal;
mod reply;
mod server;
mod service;
mod settings;
mod shutdown;
mod stream;
mod upgrade;

pub use certificate::Certificate;
pub use connection::BodyDeadlines;
pub use head::{BodyLength, DuplicateHeader, Head, MAX_HEADERS, Version, parse_head};
pub use refusal::{Refusal, SyntaxError};
pub use reply::{Content, ContentPiece, ContentRange, ContentStream, ErrorFormat, PreparedReply, Reply};
pub use server::{ConnectionEnd, Server, reject, reply_and_close};
pub use service::{AdmissionFuture, Admitted, Body, RefusalContext, Service};
pub use settings::Settings;
pub use shutdown::Shutdown;
pub use stream::{Stream, poll_closed};
pub use upgrade::{ReceivedBehind, Upgraded};
