//! The services behind each listener: the sources on one, the console on the other.

use super::acceptor::Serve;
use super::admin_access::AdminAccess;
use super::idle_connections::{Evictable, IdleConnections};
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_admission::access::Access;
use tidegate_admission::{AnswerFormat, CannedRefusal, Gate, Rejection, answer};
use tidegate_console::Console;
use tidegate_http1::{
    AdmissionFuture, Admitted, Body, ConnectionEnd, Head, RefusalContext, Reply, Server, Service, reject,
};
use tidegate_ledger::Refusal;
use tidegate_sources::{self as sources, Http};
use tidegate_tap::Tap;
use tidegate_tls::TlsAcceptor;
use tokio::net::TcpStream;

/// The most connections to the admin port: scrapers, probes, and some people. They are counted among the
/// small things of the plan.
pub(crate) const ADMIN_CONNECTIONS: usize = 64;

/// The sources: a door for each worker, so that shutting down wakes each worker's connections on their own.
pub(crate) struct Ingest {
    doors: Vec<sources::Ingest>,
    http: Http,
    gate: Gate,
}

impl Ingest {
    pub(crate) fn new(doors: Vec<sources::Ingest>, http: Http, gate: Gate) -> Ingest {
        Ingest { doors, http, gate }
    }
}

impl Serve for Ingest {
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ConnectionEnd> + Send {
        // There is one for each worker, and at least one of those.
        self.doors[worker % self.doors.len()].serve(stream)
    }

    fn count_turned_away(&self) {
        self.http.refuse_stray(Refusal::Connections);
    }

    fn one_too_many(&self) -> Option<Reply> {
        let refused = Rejection::canned(CannedRefusal::Connections).retry_after(self.gate.memory_delay());
        Some(answer(refused, AnswerFormat::Http))
    }

    async fn turn_away(&self, worker: usize, stream: TcpStream) {
        if let (Some(door), Some(reply)) = (self.doors.get(worker), self.one_too_many()) {
            let _ended = door.turn_away(stream, reply).await;
        }
    }
}

/// The sources behind TLS. A kind of its own, so that connections without it have no room for it in their tasks.
pub(crate) struct IngestTls {
    ingest: Arc<Ingest>,
    acceptor: Arc<TlsAcceptor>,
}

impl IngestTls {
    pub(crate) fn new(ingest: Arc<Ingest>, acceptor: Arc<TlsAcceptor>) -> IngestTls {
        IngestTls { ingest, acceptor }
    }
}

impl Serve for IngestTls {
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = ConnectionEnd> + Send {
        let doors = &self.ingest.doors;
        doors[worker % doors.len()].serve_tls(stream, &self.acceptor)
    }

    fn count_turned_away(&self) {
        self.ingest.count_turned_away();
    }

    /// Saying it would take a handshake, which is what there are too many of.
    fn one_too_many(&self) -> Option<Reply> {
        None
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        tidegate_tls::reject(stream).await;
    }
}

/// The console, for those who may see it.
pub(crate) struct Guarded {
    console: Console,
    admins: Access,
    visitors: AdminAccess,
}

impl Guarded {
    /// Pages for process supervisors, which have no credentials.
    const PUBLIC: [&str; 2] = ["/health", "/ready"];
    const FROM_AFAR: &str =
        "without `access.admin_credentials_file` this is done from the machine itself only\n";

    pub(super) fn new(console: Console, admins: Access, visitors: AdminAccess) -> Guarded {
        Guarded { console, admins, visitors }
    }
}

impl Service for Guarded {
    type RequestState = <Console as Service>::RequestState;

    fn prepare(&self, head: &Head<'_>) -> Option<AdmissionFuture> {
        if self.admins.is_open() || Guarded::PUBLIC.contains(&head.path()) {
            return None;
        }
        self.admins.prepare(head.sole_header("authorization").unwrap_or_default(), head.peer().ip())
    }

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Self::RequestState>, Reply> {
        self.visitors.check(head)?;
        if !self.admins.is_open() && !Guarded::PUBLIC.contains(&head.path()) {
            // Shown twice it is as good as not at all.
            let shown = head.sole_header("authorization").unwrap_or_default();
            let checked = self.admins.check(shown, None, head.peer().ip());
            checked.map_err(|refused| answer(refused, AnswerFormat::Http))?;
        }
        // Whoever may look may not change anything from afar, unless it is known who that is.
        if self.console.is_for_operators(head)
            && self.admins.is_open()
            && !head.peer().ip().to_canonical().is_loopback()
        {
            return Err(answer(Rejection::new(Refusal::Forbidden, Self::FROM_AFAR), AnswerFormat::Http));
        }
        self.console.admit(head)
    }

    fn answer(&self, ticket: Self::RequestState, body: Body) -> impl Future<Output = Reply> + Send {
        self.console.answer(ticket, body)
    }

    fn is_withdrawn_by_leaving(&self, ticket: &Self::RequestState) -> bool {
        self.console.is_withdrawn_by_leaving(ticket)
    }

    fn refuse(
        &self,
        refusal: tidegate_http1::Refusal,
        context: RefusalContext<'_, Self::RequestState>,
    ) -> Reply {
        self.console.refuse(refusal, context)
    }
}

/// The admin address.
pub(crate) struct Admin {
    server: Arc<Server<Guarded>>,
    tap: Tap,
    idle: Arc<IdleConnections>,
}

/// A connection to the admin address, until it is gone: looks that are bound to it go with it.
struct Connected<'a> {
    tap: &'a Tap,
    peer: SocketAddr,
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.tap.gone(self.peer);
    }
}

impl Admin {
    pub(crate) fn new(server: Arc<Server<Guarded>>, tap: Tap) -> Admin {
        Admin { server, tap, idle: Arc::default() }
    }

    async fn serve_connection(&self, stream: TcpStream, turn: u64) -> ConnectionEnd {
        match stream.peer_addr() {
            Ok(peer) => {
                let _connected = Connected { tap: &self.tap, peer };
                self.server.serve(Evictable::new(stream, &self.idle, turn), peer).await
            }
            Err(_) => ConnectionEnd::Lost,
        }
    }
}

impl Serve for Admin {
    const GIVES_WAY: bool = true;

    async fn serve(&self, _worker: usize, stream: TcpStream) -> ConnectionEnd {
        self.serve_connection(stream, 0).await
    }

    fn count_turned_away(&self) {}

    fn one_too_many(&self) -> Option<Reply> {
        let words = "the console's connection limit is reached; try again\n";
        Some(answer(Rejection::new(Refusal::Connections, words).retry_after(1), AnswerFormat::Http))
    }

    /// Probes and scrapers, whoever has connected before.
    fn turn(&self) -> u64 {
        self.idle.turn()
    }

    async fn make_room(&self, turn: u64) {
        self.idle.evict_before(turn).await;
    }

    async fn serve_in_turn(&self, _worker: usize, stream: TcpStream, turn: u64) -> ConnectionEnd {
        self.serve_connection(stream, turn).await
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        if let Some(reply) = self.one_too_many() {
            reject(stream, reply, &Console::settings()).await;
        }
    }
}
