//! What is behind each door: the sources on one listener, the console on the other.

use super::acceptor::Serve;
use std::sync::Arc;
use tidegate_admission::{Gate, Protocol, Refused, answer};
use tidegate_console::Console;
use tidegate_http1::{Ended, Reply, Server, turn_away};
use tidegate_ledger::Refusal;
use tidegate_sources::{self as sources, Http};
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
    fn serve(&self, worker: usize, stream: TcpStream) -> impl Future<Output = Ended> + Send {
        // There is one for each worker, and at least one of those.
        self.doors[worker % self.doors.len()].serve(stream)
    }

    fn count_turned_away(&self) {
        self.http.refuse_stray(Refusal::Connections);
    }

    fn one_too_many(&self) -> Reply {
        let words = "as many connections as are allowed are open; connect again later\n";
        let refused = Refused::new(Refusal::Connections, words).retry_after(self.gate.memory_delay());
        answer(refused, Protocol::Http)
    }

    async fn turn_away(&self, worker: usize, stream: TcpStream) {
        if let Some(door) = self.doors.get(worker) {
            let _ended = door.turn_away(stream, self.one_too_many()).await;
        }
    }
}

/// The console.
pub(crate) struct Admin {
    server: Arc<Server<Console>>,
}

impl Admin {
    pub(crate) fn new(server: Arc<Server<Console>>) -> Admin {
        Admin { server }
    }
}

impl Serve for Admin {
    async fn serve(&self, _worker: usize, stream: TcpStream) -> Ended {
        match stream.peer_addr() {
            Ok(peer) => self.server.serve(stream, peer).await,
            Err(_) => Ended::Lost,
        }
    }

    fn count_turned_away(&self) {}

    fn one_too_many(&self) -> Reply {
        let words = "as many connections as the console takes are open; try again\n";
        answer(Refused::new(Refusal::Connections, words).retry_after(1), Protocol::Http)
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        turn_away(stream, self.one_too_many(), &Console::settings()).await;
    }
}
