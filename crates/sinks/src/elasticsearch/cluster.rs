//! The cluster as the destination of forwarded items: the requests of the bulk engine, over the sink's connections.

use super::peer::Node;
use super::settings::Settings;
use crate::concurrency_limit::AdaptationRule;
use crate::delivery::StartError;
use crate::endpoints::{AttemptResult, Endpoints, Reservation};
use crate::health::Health;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_bulk::{RequestFailure, Transport, TransportError, TransportRequest, TransportResponse};
use tokio::time::Instant;

/// The nodes of a sink's cluster, for the bulk engine. Clones are the same nodes.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<ClusterState>>);

struct ClusterState {
    nodes: Arc<Mutex<Endpoints<Node>>>,
    health: Health,
    /// When the first request failed after the last one that succeeded.
    failing_since: Option<SystemTime>,
    /// Why a node was left alone last, for the requests that find none to go to.
    last_failure: Option<String>,
}

/// Nodes that a [`Cluster`] can change to.
pub struct ClusterNodes(Arc<Mutex<Endpoints<Node>>>);

impl ClusterNodes {
    /// Those that `settings` name, for at most `max_in_flight` requests at a time.
    ///
    /// # Errors
    /// When an address or the TLS settings cannot be used, or there is no address.
    pub fn new(settings: &Settings, max_in_flight: usize) -> Result<ClusterNodes, StartError> {
        Ok(ClusterNodes(Arc::new(Mutex::new(nodes(settings, max_in_flight)?))))
    }
}

impl Cluster {
    /// The cluster that `settings` name, for at most `max_in_flight` requests at a time.
    ///
    /// # Errors
    /// As [`ClusterNodes::new`].
    pub fn new(settings: &Settings, max_in_flight: usize) -> Result<Cluster, StartError> {
        let ClusterNodes(nodes) = ClusterNodes::new(settings, max_in_flight)?;
        Ok(Cluster(Arc::new(Mutex::new(ClusterState {
            nodes,
            health: Health::default(),
            failing_since: None,
            last_failure: None,
        }))))
    }

    /// The memory of the connections, in bytes: with their buffers and TLS sessions.
    pub fn bytes(settings: &Settings, max_in_flight: usize) -> usize {
        super::peer::bytes(&Settings { max_in_flight, ..settings.clone() })
    }

    /// Sends later requests to these nodes.
    pub fn change(&self, ClusterNodes(nodes): ClusterNodes) {
        let mut state = self.state();
        // The failure was that of the cluster before.
        (state.nodes, state.failing_since) = (nodes, None);
    }

    /// How long until a node is tried again, where none can be reached.
    pub fn unreachable(&self) -> Option<Duration> {
        let nodes = Arc::clone(&self.state().nodes);
        let until = lock(&nodes).all_left_until();
        let now = Instant::now();
        // When that time has come, the next request is the trial.
        until.filter(|until| *until > now).map(|until| until.saturating_duration_since(now))
    }

    /// The request counts, the last success and the last error.
    pub fn health(&self) -> Health {
        self.state().health.clone()
    }

    /// Since when every request has failed, if the last one did.
    pub fn failing_since(&self) -> Option<SystemTime> {
        self.state().failing_since
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        lock(&self.0)
    }
}

impl ClusterState {
    /// Why there is no node to send to: none is tried again so soon after it failed.
    fn why_no_node(&self) -> String {
        let last = self.last_failure.as_deref();
        last.map_or_else(
            || "no node can be reached now".to_owned(),
            |last| format!("no node can be reached: {last}"),
        )
    }
}

impl Transport for Cluster {
    async fn send(
        &self,
        request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        let nodes = Arc::clone(&self.state().nodes);
        let bytes = request.body.as_ref().len();
        let _in_flight = self.health().under_way(1);
        // Each node once at most: one that fails is left alone.
        loop {
            let Some((reservation, peer)) = lock(&nodes).reserve(bytes, Instant::now()) else {
                return Err(TransportError::NotSent(self.state().why_no_node()));
            };
            let mut attempt = Attempt { nodes: &nodes, reservation: Some(reservation) };
            match peer.forward(&request, answer).await {
                Ok(answered) => {
                    attempt.end(verdict(&answered));
                    return Ok(answered);
                }
                Err(TransportError::NotSent(why)) => {
                    attempt.end(AttemptResult::Failed(None));
                    self.state().last_failure = Some(why);
                }
                Err(broken) => {
                    attempt.end(AttemptResult::Failed(None));
                    self.state().last_failure = Some(broken.to_string());
                    return Err(broken);
                }
            }
        }
    }

    fn ended(&self, result: Result<usize, RequestFailure>) {
        let health = self.health();
        match result {
            Ok(bytes) => {
                health.succeeded(bytes as u64);
                let mut state = self.state();
                (state.failing_since, state.last_failure) = (None, None);
            }
            Err(failure) => {
                health.failed(&words(&failure), None);
                self.state().failing_since.get_or_insert_with(SystemTime::now);
            }
        }
    }
}

/// A failure in the words of `/status` and the log.
fn words(failure: &RequestFailure) -> String {
    match failure {
        RequestFailure::NotSent(_) => format!("the cluster cannot be reached: {failure}"),
        // The key is the gateway's, so clients cannot mend it.
        RequestFailure::Refused { status: 401 | 403, .. } => {
            format!("the cluster refuses the gateway's requests: {failure}; look at the sink's credentials")
        }
        RequestFailure::Refused { status: 404 | 405, .. } => {
            format!("the cluster refuses the gateway's requests: {failure}; look at the sink's endpoints")
        }
        RequestFailure::Refused { .. } => format!("the cluster refuses requests: {failure}"),
        RequestFailure::Unanswered(_) => format!("the cluster did not answer: {failure}"),
        RequestFailure::RejectedItems { .. } => format!("the cluster rejects items: {failure}"),
    }
}

/// A request to a node, until its outcome is known. Dropping it without one says that the node failed.
struct Attempt<'a> {
    nodes: &'a Mutex<Endpoints<Node>>,
    reservation: Option<Reservation>,
}

impl Attempt<'_> {
    fn end(&mut self, verdict: AttemptResult) {
        if let Some(reservation) = self.reservation.take() {
            lock(self.nodes).give_back(reservation, verdict, Instant::now());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.end(AttemptResult::Failed(None));
    }
}

/// A response's verdict on its node. An overloaded node works: the engine waits before it sends the rest again.
fn verdict(answered: &TransportResponse) -> AttemptResult {
    match answered.status {
        429 | 503 => AttemptResult::Pressed,
        500.. => AttemptResult::Failed(answered.retry_after),
        _ => AttemptResult::Alive,
    }
}

fn nodes(settings: &Settings, max_in_flight: usize) -> Result<Endpoints<Node>, StartError> {
    let settings = Settings { max_in_flight, ..settings.clone() };
    let peers: Result<Vec<_>, _> = settings.endpoints.iter().map(|uri| Node::new(uri, &settings)).collect();
    let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
    // The engine bounds requests and their bytes.
    let law = AdaptationRule::Bytes { steps: max_in_flight, step: settings.max_request_bytes };
    Ok(Endpoints::new(peers, law, settings.backoff))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
