//! The client of the request that is being served, for those who look at refused requests.
//!
//! A body is refused far from where its connection is known. Handing the client down would cost every connection memory, since each state of its
//! task on the way would have room for it. So a thread-local holds the client and the length of the body while a request is polled.

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

/// Restores the origin of before, also when the work panics: the thread goes on with other requests then.
struct Restore(Option<RequestOrigin>);

impl Drop for Restore {
    fn drop(&mut self) {
        ORIGIN.set(self.0);
    }
}

/// Does some `work` on a request of `peer`, with a body of so many `bytes` if it has come: what is refused meanwhile is this request. A
/// length that is [noted](note_body_length) meanwhile is in `bytes` afterwards.
pub fn with_origin<R>(peer: SocketAddr, bytes: &mut u32, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(ORIGIN.replace(Some(RequestOrigin { peer, bytes: *bytes })));
    let done = work();
    *bytes = ORIGIN.get().map_or(0, |origin| origin.bytes);
    done
}

/// Does all of the `work` on a request of `peer`.
pub async fn from_peer<F: Future>(peer: SocketAddr, work: F) -> F::Output {
    let (mut work, mut bytes) = (pin!(work), 0);
    poll_fn(|context| with_origin(peer, &mut bytes, || work.as_mut().poll(context))).await
}

/// Notes that the body of the request that is being polled has so many bytes, compressed as it is.
pub fn note_body_length(bytes: usize) {
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[tokio::test]
    async fn each_request_has_its_own() {
        assert_eq!(current(), (None, None));
        let serve = |port: u16, bytes: usize| {
            from_peer(peer(port), async move {
                note_body_length(bytes);
                tokio::task::yield_now().await;
                current()
            })
        };
        let (first, second) = tokio::join!(serve(1, 100), serve(2, 0));
        assert_eq!(first, (Some(peer(1)), Some(100)));
        assert_eq!(second, (Some(peer(2)), None));
        assert_eq!(current(), (None, None));
    }

    #[test]
    fn the_one_of_before_is_back_afterwards() {
        with_origin(peer(1), &mut 7, || {
            with_origin(peer(2), &mut 8, || assert_eq!(current(), (Some(peer(2)), Some(8))));
            assert_eq!(current(), (Some(peer(1)), Some(7)));
        });
        let work = || with_origin(peer(1), &mut 7, || panic!("a request that cannot be served"));
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        assert_eq!(current(), (None, None));
    }
}
