//! TLS for those who connect.
//!
//! An [`ServerIdentity`] is the certificate that a listener shows and whom it trusts, read again when its files change. A
//! [`TlsAcceptor`] makes connections of sockets: [`TlsStream`]s, on which HTTP/1.1 or HTTP/2 is spoken.
//!
//! It promises: a connection that waits owns no buffer, since records are left with the kernel until there is
//! room for what is in them; handshakes have an end, a number, and a part of each thread's time that
//! they cannot exceed; their memory is charged; and who resumes a session is let in only as long as its certificate is
//! valid.
//!
//! It leaves to others: whether who has a valid certificate may send (`admission`), how many connections there may
//! be (the acceptor), and what is said over them.

mod acceptor;
mod expiry;
mod handshake_failures;
mod handshake_pacing;
mod identity;
mod partial_record;
mod records;
mod session;
mod stream;
mod subject;

pub use acceptor::{AcceptError, TlsAcceptor, reject};
pub use handshake_failures::{HandshakeCounters, HandshakeFailure};
pub use identity::{CertificateFiles, ClientAuth, ServerIdentity, TlsError};
pub use stream::{CONNECTION_BYTES, TlsStream, WORKER_BYTES};
pub use subject::{Validity, certificate, validity};
