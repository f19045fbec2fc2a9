//! TLS for those who connect.
//!
//! An [`Identity`] is the certificate that a listener shows and whom it trusts, read again when its files change. A
//! [`Doorway`] makes connections of sockets: [`TlsStream`]s, on which HTTP/1.1 or HTTP/2 is spoken.
//!
//! It promises: a connection that waits owns no buffer, since records are left with the kernel until there is
//! room for what is in them; handshakes have an end, a number, and a part of each thread's time that
//! they cannot exceed; their memory is charged; and who resumes a session is let in only as long as its certificate is
//! valid.
//!
//! It leaves to others: whether who has a valid certificate may send (`admission`), how many connections there may
//! be (the acceptor), and what is said over them.

mod doorway;
mod expiry;
mod failures;
mod identity;
mod pace;
mod part;
mod records;
mod session;
mod stream;
mod subject;

pub use doorway::{Doorway, Failure, turn_away};
pub use failures::{Reason, Tally};
pub use identity::{ClientAuth, Files, Identity, TlsError};
pub use stream::{CONNECTION_BYTES, TlsStream, WORKER_BYTES};
pub use subject::certificate;
