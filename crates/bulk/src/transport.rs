//! The way to the server: one request out of a window, and the answer in pieces.

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::Window;

/// Sends requests. Implemented over HTTP in [`http`](crate::http), and by servers in memory in tests.
pub trait Transport: Sync {
    /// Sends `request` and waits for the response. If its status is 200, passes the body to `on_chunk` piece by
    /// piece until that breaks off.
    ///
    /// It should release the request's body before it returns: retries are sent from the same memory.
    fn send(
        &self,
        request: TransportRequest,
        on_chunk: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> impl Future<Output = Result<TransportResponse, TransportError>> + Send;

    /// Learns how a request ended, after its items have their answers: with success and its number of bytes, or with a
    /// failure. Called once for each request. Does nothing by default.
    fn ended(&self, _result: Result<usize, RequestFailure>) {}
}

/// A request that failed as a whole. A request that the server refuses because of its contents (400, 413) has not failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// Nothing of it reached a server.
    #[error("{0}")]
    NotSent(String),
    /// The response did not come, broke off, cannot be read, or lacks items.
    #[error("{0}")]
    Unanswered(String),
    /// The server refused all of it.
    #[error("status {status}{}{excerpt}", if excerpt.is_empty() { "" } else { ": " })]
    Refused {
        /// The status of the request.
        status: u16,
        /// The beginning of the response.
        excerpt: String,
    },
    /// The server accepted the request and rejected each item, because it is overloaded or failing.
    #[error("each of {items} items was rejected with status {status}")]
    RejectedItems {
        /// The status of the last item.
        status: u16,
        /// How many there were.
        items: u32,
    },
}

/// A POST.
#[derive(Debug, Clone)]
pub struct TransportRequest {
    /// The path with its query.
    pub path: &'static str,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Payload,
    /// How many items it carries.
    pub items: u32,
    /// Whether it changes anything: what does may only be sent twice if the first was not carried out.
    pub writes: bool,
}

/// A request's body, in memory of the arena.
#[derive(Debug, Clone)]
pub struct Payload {
    pub(crate) window: Arc<Window>,
    pub(crate) end: usize,
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.window.get(..self.end).unwrap_or_default()
    }
}

/// The server answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransportResponse {
    /// The status of the whole request.
    pub status: u16,
    /// How long the server asks to stay away.
    pub retry_after: Option<Duration>,
    /// The beginning of the body, if the status is not 200.
    pub excerpt: String,
}

/// The server did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Nothing of the request reached a server.
    #[error("no server could be reached: {0}")]
    NotSent(String),
    /// It may have arrived, or the answer broke off.
    #[error("the connection broke: {0}")]
    Broken(String),
}
