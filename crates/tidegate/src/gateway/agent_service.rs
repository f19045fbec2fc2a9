//! An address that agents connect to and stay at, for days, and the routes of those who operate it.

use super::acceptor::Serve;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_console::{AdminRequest, AdminRoutes};
use tidegate_fleet::OperatorRequest;
use tidegate_http1::{Body, ConnectionEnd, Reply, Server, Service, Settings, Shutdown, reject};
use tidegate_sources::accept_tls;
use tidegate_tls::TlsAcceptor;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Requests of agents that may be in progress at a time, waits aside, and that may wait for memory.
pub(super) const REQUESTS: usize = 1024;
/// So much of a request is looked at before its connection is turned away, in bytes.
const PROBE_BYTES: usize = 64;
/// Around a body: its head, and what is rounded up.
const AROUND_BODY: usize = 64 << 10;

/// The memory of agents' requests and answers: `total` bytes, of which neither can take all. `longest` is the longest body or answer.
pub(super) fn arena(total: u64, longest: usize) -> io::Result<Arena> {
    let floors = Floors::NONE.with(Share::Ingest, total / 4).with(Share::Egress, total / 4);
    let window = tidegate_arena::rounded(longest + AROUND_BODY);
    Arena::new(total, floors, window, REQUESTS, REQUESTS)
}

/// The routes of operators.
pub(super) trait AnswersOperators: Send + Sync + 'static {
    /// The prefix of the paths on the admin address.
    const PREFIX: &'static str;
    /// Whether pages of the console read what is at this path, which is the rest.
    fn is_for_pages(_path: &str) -> bool {
        false
    }
    /// Answers a request, whose path is the rest.
    fn answer(&self, request: OperatorRequest, body: Body) -> impl Future<Output = Reply> + Send;
}

/// Those routes on the admin address.
pub(super) struct OperatorRoutes<A>(pub(super) A);

impl<A: AnswersOperators> AdminRoutes for OperatorRoutes<A> {
    fn prefix(&self) -> &'static str {
        A::PREFIX
    }

    fn is_for_pages(&self, path: &str) -> bool {
        A::is_for_pages(path)
    }

    fn answer(&self, request: AdminRequest, body: Body) -> Pin<Box<dyn Future<Output = Reply> + Send + '_>> {
        let AdminRequest { method, path, query, is_compressed } = request;
        Box::pin(self.0.answer(OperatorRequest { method, path, query, is_compressed }, body))
    }
}

/// The routes of agents.
pub(super) trait AgentRoutes: Service {
    /// The answer to a connection that is one too many, in the shape that the agents understand.
    fn one_too_many() -> Reply;
    /// The answer to a request on such a connection that is answered in any case, by the first bytes of its head: a probe must not fail
    /// because agents are many.
    fn probed(_head: &[u8]) -> Option<Reply> {
        None
    }
    /// Counts a connection that was turned away.
    fn count_refused(&self);
}

/// The service without TLS.
pub(super) struct AgentService<R> {
    servers: Vec<Arc<Server<R>>>,
    shutdowns: Vec<Shutdown>,
    settings: Settings,
}

/// The same behind TLS. A kind of its own, so that connections without it have no room for it in their tasks.
pub(super) struct AgentTlsService<R> {
    service: AgentService<R>,
    acceptor: Arc<TlsAcceptor>,
}

impl<R: AgentRoutes> AgentService<R> {
    /// A server for each of `shutdowns`, one for each worker, with its own `routes`. Requests take the memory of `arena`.
    pub(super) fn new(
        settings: Settings,
        shutdowns: &[Shutdown],
        arena: &Arena,
        routes: impl Fn() -> R,
    ) -> AgentService<R> {
        let server = |shutdown: &Shutdown| Server::new(routes(), settings, arena.clone(), shutdown.clone());
        AgentService {
            servers: shutdowns.iter().map(server).collect(),
            shutdowns: shutdowns.to_vec(),
            settings,
        }
    }

    /// Behind TLS.
    pub(super) fn with_tls(self, acceptor: Arc<TlsAcceptor>) -> AgentTlsService<R> {
        AgentTlsService { service: self, acceptor }
    }
}

impl<R: AgentRoutes> Serve for AgentService<R> {
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ConnectionEnd> + Send {
        // There is one for each worker, and at least one of those. A connection that has no peer any more is
        // closed by its first read.
        let peer = stream.peer_addr().unwrap_or_else(|_| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
        self.servers[worker % self.servers.len()].serve(stream, peer)
    }

    fn one_too_many(&self) -> Option<Reply> {
        Some(R::one_too_many())
    }

    fn count_turned_away(&self) {
        self.servers.iter().take(1).for_each(|server| server.service().count_refused());
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        let mut first = [0; PROBE_BYTES];
        let seen = timeout(self.settings.linger, stream.peek(&mut first)).await;
        let seen = seen.ok().and_then(Result::ok).and_then(|len| first.get(..len)).unwrap_or_default();
        reject(stream, R::probed(seen).unwrap_or_else(R::one_too_many), &self.settings).await;
    }
}

impl<R: AgentRoutes> Serve for AgentTlsService<R> {
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ConnectionEnd> + Send {
        Box::pin(async move {
            let AgentService { servers, shutdowns, settings } = &self.service;
            let shutdown = &shutdowns[worker % shutdowns.len()];
            // So that what a handshake needs does not stay.
            let entered = match Box::pin(accept_tls(stream, &self.acceptor, shutdown, settings)).await {
                Ok(entered) => entered,
                Err(ended) => return ended,
            };
            match entered.peer_addr() {
                Ok(peer) => servers[worker % servers.len()].serve(entered, peer).await,
                Err(_) => ConnectionEnd::Lost,
            }
        })
    }

    /// Saying it would take a handshake, which is what there are too many of.
    fn one_too_many(&self) -> Option<Reply> {
        None
    }

    fn count_turned_away(&self) {
        self.service.count_turned_away();
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        tidegate_tls::reject(stream).await;
    }
}
