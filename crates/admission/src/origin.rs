//! Where the request that is being served comes from, for those who look at refused requests.
//!
//! A body is refused far from where its connection is known, and each connection would have room for the client once more in
//! every state of its task on the way there. So it is said beside: to the thread, for as long as the request is being worked on.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;

thread_local! {
    static ORIGIN: Cell<Option<RequestOrigin>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct RequestOrigin {
    peer: SocketAddr,
    /// The length of the body, as far as it goes into this; 0 where none has come.
    bytes: u32,
}

/// Does some `work` on a request of `peer`, with a body of so many `bytes` if it has come: what is refused meanwhile is this request.
pub fn within<R>(peer: SocketAddr, bytes: &mut u32, work: impl FnOnce() -> R) -> R {
    ORIGIN.set(Some(RequestOrigin { peer, bytes: *bytes }));
    let done = work();
    *bytes = ORIGIN.take().map_or(0, |origin| origin.bytes);
    done
}

/// Does all of the `work` on a request of `peer`.
pub async fn from_peer<F: Future>(peer: SocketAddr, work: F) -> F::Output {
    let (mut work, mut bytes) = (pin!(work), 0);
    poll_fn(|context| within(peer, &mut bytes, || work.as_mut().poll(context))).await
}

/// Notes that a body of so many bytes has come for the request that is being worked on, compressed as it is.
pub fn body_came(bytes: usize) {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    ORIGIN.set(ORIGIN.get().map(|origin| RequestOrigin { bytes, ..origin }));
}

/// The client and the length of its body, as far as they are known.
pub(crate) fn current() -> (Option<SocketAddr>, Option<u64>) {
    let Some(RequestOrigin { peer, bytes }) = ORIGIN.get() else { return (None, None) };
    (Some(peer), (bytes > 0).then_some(bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_request_has_its_own() {
        assert_eq!(current(), (None, None));
        let serve = |port: u16, bytes: usize| {
            let peer = SocketAddr::from(([127, 0, 0, 1], port));
            from_peer(peer, async move {
                body_came(bytes);
                tokio::task::yield_now().await;
                current()
            })
        };
        let (first, second) = tokio::join!(serve(1, 100), serve(2, 0));
        assert_eq!(first, (Some(SocketAddr::from(([127, 0, 0, 1], 1))), Some(100)));
        assert_eq!(second, (Some(SocketAddr::from(([127, 0, 0, 1], 2))), None));
        assert_eq!(current(), (None, None));
    }
}
