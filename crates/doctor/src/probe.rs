//! Asks the peers of sinks whether they take what is sent, step by step: name, connection, proxy, TLS, request.
//!
//! Peers are asked at the same time, some at once; each has [`PEER_LIMIT`], and all of them together [`ALL_LIMIT`].

mod connection;
mod exchange;

pub(crate) use connection::Step;
pub(crate) use exchange::{Answer, ask_http1_keeping, chain};

use crate::subject::Peer;
use connection::connect;
use futures_util::StreamExt as _;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::{Builder, Runtime};

/// How long everything about one peer may take.
pub const PEER_LIMIT: Duration = Duration::from_secs(5);
/// How long everything about all of them may take.
const ALL_LIMIT: Duration = Duration::from_secs(30);
/// How long may be spent at least on guessing what a peer is that broke off.
const GUESS_LIMIT: Duration = Duration::from_secs(1);
/// How many are asked at once.
const AT_ONCE: usize = 16;

/// The outcome of asking one peer.
#[derive(Debug, Clone)]
pub(crate) struct PeerReport {
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) took: Duration,
    /// What is known of the way to it.
    pub(crate) path: NetworkPath,
}

/// What is known of the way to a peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkPath {
    /// The address that was connected to.
    pub(crate) address: Option<std::net::SocketAddr>,
    /// The proxy, by the variable that names it.
    pub(crate) proxy: Option<String>,
    /// The last second of the peer's certificate, since 1970.
    pub(crate) certificate_until: Option<u64>,
}

/// The end of asking.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The peer answered.
    Answered(Answer),
    /// It did not, for something at this step.
    Failed(Failure),
    /// There was no time left for it.
    NotAsked,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) reason: String,
    /// Words of whoever refused; empty if there are none.
    pub(crate) said: String,
    /// What the other side seems to be.
    pub(crate) looks_like: Option<LooksLike>,
}

/// The protocol that a peer speaks instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LooksLike {
    /// TLS, where it was spoken to without.
    Tls,
    /// No TLS, where it was spoken to with.
    Plain,
    /// HTTP/1.1, where it was spoken to in HTTP/2.
    Http1,
    /// HTTP/2, where it was spoken to in HTTP/1.1.
    Http2,
    /// It accepts connections and says nothing.
    Silent,
}

impl Failure {
    /// One at this step, of which no more is known.
    pub(crate) fn at(step: Step, reason: String) -> Failure {
        Failure { step, reason, said: String::new(), looks_like: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.reason)
    }
}

/// Asks all of them, each for `limit` at most; the reports are in their order.
pub(crate) fn ask_all(peers: &[&Peer], limit: Duration) -> Vec<PeerReport> {
    let unasked =
        || PeerReport { outcome: Outcome::NotAsked, took: Duration::ZERO, path: NetworkPath::default() };
    let mut reports: Vec<PeerReport> = peers.iter().map(|_| unasked()).collect();
    let Ok(runtime) = runtime() else { return reports };
    runtime.block_on(async {
        let asked =
            peers.iter().enumerate().map(|(number, peer)| async move { (number, ask(peer, limit).await) });
        let mut asked = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
        let deadline = tokio::time::Instant::now() + ALL_LIMIT;
        while let Ok(Some((number, report))) = tokio::time::timeout_at(deadline, asked.next()).await {
            if let Some(place) = reports.get_mut(number) {
                *place = report;
            }
        }
    });
    // A name server that does not answer keeps a thread busy for longer than anybody waits.
    runtime.shutdown_background();
    reports
}

/// A runtime on this thread, which its owner has to shut down in the background.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn ask(peer: &Peer, limit: Duration) -> PeerReport {
    let (begun, step) = (Instant::now(), Cell::new(Step::Resolve));
    let mut path = NetworkPath::default();
    let attempt = tokio::time::timeout(limit, Box::pin(attempt(peer, &step, &mut path))).await;
    let outcome = match attempt {
        Ok(Ok(answer)) => Outcome::Answered(answer),
        Ok(Err(Ended::Before(failure))) => Outcome::Failed(failure),
        Ok(Err(Ended::InExchange { error, is_secure })) => {
            let reason = peer.probe.mask(&exchange::chain(&*error));
            // What the other side is may be hard to find out, and matters less than the failure.
            let left = limit.saturating_sub(begun.elapsed()).max(GUESS_LIMIT);
            let guess = Box::pin(exchange::guess(&error, &peer.probe, is_secure, path.address));
            let looks_like = tokio::time::timeout(left, guess).await.ok().flatten();
            Outcome::Failed(Failure { looks_like, ..Failure::at(Step::Request, reason) })
        }
        Err(_) => {
            let reason = format!("no answer within {limit:?}");
            let is_connected = matches!(step.get(), Step::Proxy | Step::Tls | Step::Request);
            let looks_like = (is_connected && path.address.is_some()).then_some(LooksLike::Silent);
            Outcome::Failed(Failure { looks_like, ..Failure::at(step.get(), reason) })
        }
    };
    PeerReport { outcome, took: begun.elapsed(), path }
}

/// How an attempt without an answer ended.
enum Ended {
    /// Before the request was sent.
    Before(Failure),
    /// With this error of the exchange.
    InExchange { error: exchange::ExchangeError, is_secure: bool },
}

async fn attempt(peer: &Peer, step: &Cell<Step>, path: &mut NetworkPath) -> Result<Answer, Ended> {
    let probe = &peer.probe;
    let connection = connect(probe, step, path).await.map_err(Ended::Before)?;
    step.set(Step::Request);
    let (is_secure, is_forwarded) = (connection.is_secure, connection.is_forwarded);
    let request = exchange::request(probe, is_forwarded, connection.credentials.clone());
    let answered = match probe.is_http2() {
        true => exchange::ask_http2(connection.stream, request).await,
        false => Box::pin(exchange::ask_http1(connection.stream, request)).await,
    };
    let answer = answered.map_err(|error| Ended::InExchange { error, is_secure })?;
    let excerpt = exchange::shortened(&probe.mask(&answer.excerpt));
    Ok(Answer { excerpt, ..answer })
}

/// The clock of the peer, by its answer.
pub(crate) fn date(report: &PeerReport) -> Option<SystemTime> {
    match &report.outcome {
        Outcome::Answered(answer) => answer.date,
        Outcome::Failed(_) | Outcome::NotAsked => None,
    }
}
