//! Serves HTTP/1.1 and HTTP/2 on one address, as ordered.

use std::net::{SocketAddr, TcpListener as Listener};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::listener::{accept, hold, listen_again};
use crate::sink::Behaviour;

pub(crate) type Answer = hyper::Response<BoxBody<Bytes, std::convert::Infallible>>;

/// A request that is left without an answer; its connection ends.
#[derive(Debug, thiserror::Error)]
#[error("the receiver was told to behave differently")]
pub(crate) struct Abandoned;

/// Answers requests with what `respond` makes of them and of the orders, until nobody is left to give orders. While the order is
/// [`Behaviour::Refuse`], there are no connections.
pub(crate) async fn serve<R, F>(
    first: Listener,
    address: SocketAddr,
    mut orders: watch::Receiver<Behaviour>,
    respond: R,
) where
    R: Fn(hyper::Request<Incoming>, watch::Receiver<Behaviour>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Answer, Abandoned>> + Send + 'static,
{
    let mut listener = TcpListener::from_std(first).ok();
    // While nobody listens the port stays taken, so that nobody else is given it.
    let mut held = None;
    let mut connections = JoinSet::new();
    loop {
        if *orders.borrow_and_update() == Behaviour::Refuse {
            listener = None;
            held = held.or_else(|| hold(address).ok());
            connections.shutdown().await;
        } else if listener.is_none() {
            listener = Some(listen_again(held.take(), address).await);
        }
        tokio::select! {
            stream = accept(listener.as_ref()) => {
                let (orders, respond) = (orders.clone(), respond.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| respond(request, orders.clone()));
                    let mut server = auto::Builder::new(TokioExecutor::new());
                    server.http2().initial_stream_window_size(4 << 20).initial_connection_window_size(16 << 20);
                    // However a connection ends, the peer has noticed.
                    let _ended = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            changed = orders.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}
