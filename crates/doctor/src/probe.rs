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
/// How many are asked at once.
const AT_ONCE: usize = 16;

/// What became of asking one peer.
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
    let attempt = Box::pin(attempt(peer, &step, &mut path));
    let outcome = match tokio::time::timeout(limit, attempt).await {
        Ok(Ok(answer)) => Outcome::Answered(answer),
        Ok(Err(failure)) => Outcome::Failed(failure),
        Err(_) => {
            let reason = format!("no answer within {limit:?}");
            let looks_like = (step.get() > Step::Connect).then_some(LooksLike::Silent);
            Outcome::Failed(Failure { step: step.get(), reason, looks_like })
        }
    };
    PeerReport { outcome, took: begun.elapsed(), path }
}

async fn attempt(peer: &Peer, step: &Cell<Step>, path: &mut NetworkPath) -> Result<Answer, Failure> {
    let probe = &peer.probe;
    let connection = connect(probe, step, path).await?;
    step.set(Step::Request);
    let (is_forwarded, credentials) = (connection.is_forwarded, connection.credentials.clone());
    let request = exchange::request(probe, is_forwarded, credentials);
    let answered = match probe.is_http2() {
        true => exchange::ask_http2(connection.stream, request).await,
        false => Box::pin(exchange::ask_http1(connection.stream, request)).await,
    };
    match answered {
        Ok(answer) => {
            let excerpt = exchange::shortened(&probe.mask(&answer.excerpt));
            Ok(Answer { excerpt, ..answer })
        }
        Err(error) => {
            let looks_like = exchange::guess(&error, probe, connection.is_secure, path.address).await;
            let reason = probe.mask(&exchange::chain(&*error));
            Err(Failure { step: Step::Request, reason, looks_like })
        }
    }
}

/// The clock of the peer, by its answer.
pub(crate) fn date(report: &PeerReport) -> Option<SystemTime> {
    match &report.outcome {
        Outcome::Answered(answer) => answer.date,
        Outcome::Failed(_) | Outcome::NotAsked => None,
    }
}
