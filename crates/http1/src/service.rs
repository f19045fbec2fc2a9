//! The interface between the codec and the services that answer requests.

use crate::head::Head;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::server::ConnectionEnd;
use crate::stream::Stream;
use crate::upgrade::Upgraded;
use std::fmt;
use std::net::SocketAddr;
use std::ops::{Deref, Range};
use std::pin::Pin;
use tidegate_arena::Window;

/// Answers requests. One value serves all connections of a [`Server`](crate::Server).
pub trait Service: Send + Sync + 'static {
    /// The state from the head that the body's handler needs: tenant, protocol version, route. It lives in the
    /// connection's task during a request, so keep it small. It is dropped without [`answer`](Self::answer) when the
    /// request is refused or its client disconnects.
    type RequestState: Send;

    /// A future that [`admit`](Self::admit) must await before it can decide: nearly always none. The codec asks once
    /// per request, and the future ends by itself.
    fn prepare(&self, _head: &Head<'_>) -> Option<AdmissionFuture> {
        None
    }

    /// Decides on the head alone, before a byte of the body is read or paid for. `100 Continue` is sent
    /// only after this said yes and the body's memory was charged.
    ///
    /// # Errors
    /// The answer to a request that is not let in. The codec discards its body.
    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Self::RequestState>, Reply>;

    /// Answers a request whose body is complete. The future lives in the connection's task: what it
    /// holds across an await is memory that every connection has, so keep it small.
    fn answer(&self, ticket: Self::RequestState, body: Body) -> impl Future<Output = Reply> + Send;

    /// Whether the body of this request may pause, as one does that is sent while things happen: then it may be
    /// as slow as it likes for as long as a body may take, and holds no more memory than what has arrived.
    fn is_patient(&self, _ticket: &Self::RequestState) -> bool {
        false
    }

    /// Whether a client that leaves takes this request back: its answer is dropped then, before it is complete. It takes
    /// some memory while the request is answered.
    fn is_withdrawn_by_leaving(&self, _ticket: &Self::RequestState) -> bool {
        false
    }

    /// Whether the body of this request may take `bytes` in all, as far as is known: asked before memory is taken for
    /// it. When it may not, the request is refused as if there were no memory.
    fn may_grow(&self, _ticket: &mut Self::RequestState, _bytes: usize) -> bool {
        true
    }

    /// Polls the answer to a request of `peer` with a body of so many `bytes`: calls `poll`, once. A service that must know while it answers whose the
    /// request is can keep that for the time of the call, instead of in each connection's task.
    fn poll_answer<R>(&self, _peer: SocketAddr, _bytes: u32, poll: impl FnOnce() -> R) -> R {
        poll()
    }

    /// Whether this request changes the protocol of its connection. The codec does not answer it: when its body is complete,
    /// [`upgraded`](Self::upgraded) takes the connection over.
    fn is_upgrade(&self, _ticket: &Self::RequestState) -> bool {
        false
    }

    /// Serves a connection to its end after a request that [is an upgrade](Self::is_upgrade), whose answer it sends itself. The future lives
    /// in the connection's task.
    fn upgraded<T: Stream>(
        &self,
        _ticket: Self::RequestState,
        _connection: Upgraded<'_, T>,
    ) -> impl Future<Output = ConnectionEnd> + Send {
        std::future::ready(ConnectionEnd::Refused)
    }

    /// The answer when the codec itself refuses. The codec knows the reason, the service its protocol's
    /// shape for it, and the books that count it. [`Refusal::reply`] is a plain one.
    fn refuse(&self, refusal: Refusal, context: RefusalContext<'_, Self::RequestState>) -> Reply;
}

/// Something to be waited for before a request is decided on.
pub type AdmissionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A request that was let in.
#[derive(Debug, Clone, Copy)]
pub struct Admitted<T> {
    /// The longest body this request may have, in bytes after removing the chunk framing. What a window
    /// can hold is a limit besides.
    pub max_body: usize,
    /// Handed to [`Service::answer`].
    pub ticket: T,
}

/// Properties of a request that the codec refuses.
#[derive(Debug, Clone, Copy)]
pub struct RefusalContext<'a, T> {
    /// The client.
    pub peer: SocketAddr,
    /// The decision of [`Service::admit`], if it was reached.
    pub ticket: Option<&'a T>,
    /// Bytes of it that were received, head included.
    pub received: usize,
}

/// A whole body, in the window it was received into. Derefs to the body's bytes.
pub struct Body {
    window: Window,
    start: usize,
}

impl Body {
    /// A body that fills `window` from `start` on, behind the head that it came with.
    pub fn received(window: Window, start: usize) -> Body {
        Body { window, start }
    }

    /// The window, and where in it the body is. Before the body is the head it came with.
    pub fn into_parts(self) -> (Window, Range<usize>) {
        let range = self.start..self.window.len();
        (self.window, range)
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.window.get(self.start..).unwrap_or_default()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}
