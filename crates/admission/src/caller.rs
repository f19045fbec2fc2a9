//! Request metadata taken from the head.

use std::net::IpAddr;
use tidegate_http1::{BodyLength, Certificate, DuplicateHeader, Head};
use tidegate_limit::Moment;

/// The client and the head of a request.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// The names in the certificate that the connection was opened with.
    pub certificate: Option<&'a Certificate>,
    /// The request's headers.
    pub headers: &'a dyn Headers,
    /// How many bytes the body has, where the head says it.
    pub bytes: Option<u64>,
    /// When its head was complete.
    pub now: Moment,
    /// Whether a page of another site must not be able to have a browser send it: so it is with all that posts data,
    /// but for what is made for browsers.
    pub guarded: bool,
    /// Whether its body is for the journal, and so is refused while that accepts nothing.
    pub journalled: bool,
}

/// Headers, by name, in any case.
pub trait Headers {
    /// The value of the one header of this name.
    ///
    /// # Errors
    /// When there are several: whom should one believe?
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader>;
}

/// Whether a browser sends requests of this method for a page of another site without having asked whether it may. What
/// it does not ask for with `GET` and `HEAD` changes nothing here, and for all others it asks.
pub fn is_guarded(method: &str) -> bool {
    method == "POST"
}

impl Headers for Head<'_> {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        self.sole_header(name)
    }
}

impl<'a> Caller<'a> {
    /// The sender of a request over HTTP/1.1 that is not made for browsers.
    pub fn of(head: &'a Head<'_>) -> Caller<'a> {
        let bytes = match head.length() {
            BodyLength::Sized(bytes) => Some(bytes),
            BodyLength::Chunked => None,
        };
        Caller {
            peer: head.peer().ip(),
            certificate: head.certificate(),
            headers: head,
            bytes,
            now: Moment(head.received_ns()),
            guarded: is_guarded(head.method()),
            journalled: true,
        }
    }
}
