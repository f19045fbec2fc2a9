//! The answer to a request while it is made.
//!
//! A type of its own, since an `async` block around the service's future would hold the request a second time in every connection's task.

use crate::service::Service;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project_lite::pin_project! {
    /// The answer to a request, which the service polls knowing whose it is.
    pub(super) struct AnswerFuture<'a, S, F> {
        pub(super) service: &'a S,
        pub(super) peer: &'a SocketAddr,
        pub(super) bytes: u32,
        #[pin]
        pub(super) answer: F,
    }
}

impl<S: Service, F: Future> Future for AnswerFuture<'_, S, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.service.poll_answer(**this.peer, *this.bytes, || this.answer.poll(context))
    }
}
