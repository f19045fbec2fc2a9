//! The cluster as the destination of forwarded items: the requests of the bulk engine, over the sink's connections.

use super::peer::Node;
use super::settings::Settings;
use crate::concurrency_limit::AdaptationRule;
use crate::delivery::StartError;
use crate::endpoints::{AttemptResult, Endpoints, Reservation};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_bulk::{Transport, TransportError, TransportRequest, TransportResponse};
use tokio::time::Instant;

/// How often a cluster that refuses the gateway's requests is named in the log, at most.
const WARNINGS: Duration = Duration::from_secs(60);

/// The nodes of a sink's cluster, for the bulk engine. Clones are the same nodes.
#[derive(Clone)]
pub struct Cluster(Arc<Mutex<ClusterState>>);

struct ClusterState {
    nodes: Arc<Mutex<Endpoints<Node>>>,
    /// When a refusal was last named in the log.
    warned: Option<Instant>,
    /// No node could be reached, and the log says so.
    is_lost: bool,
}

impl Cluster {
    /// The cluster that `settings` name, for at most `max_in_flight` requests at a time.
    ///
    /// # Errors
    /// When an address or the TLS settings cannot be used, or there is no address.
    pub fn new(settings: &Settings, max_in_flight: usize) -> Result<Cluster, StartError> {
        let nodes = Arc::new(Mutex::new(nodes(settings, max_in_flight)?));
        Ok(Cluster(Arc::new(Mutex::new(ClusterState { nodes, warned: None, is_lost: false }))))
    }

    /// The memory of the connections, in bytes: with their buffers and TLS sessions.
    pub fn bytes(settings: &Settings, max_in_flight: usize) -> usize {
        super::peer::bytes(&Settings { max_in_flight, ..settings.clone() })
    }

    /// Sends later requests to the cluster that `settings` name.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing has changed then.
    pub fn change(&self, settings: &Settings, max_in_flight: usize) -> Result<(), StartError> {
        let nodes = Arc::new(Mutex::new(nodes(settings, max_in_flight)?));
        self.state().nodes = nodes;
        Ok(())
    }

    /// How long until a node is tried again, where none can be reached.
    pub fn unreachable(&self) -> Option<Duration> {
        let nodes = Arc::clone(&self.state().nodes);
        let until = lock(&nodes).all_left_until();
        let now = Instant::now();
        // When that time has come, the next request is the trial.
        until.filter(|until| *until > now).map(|until| until.saturating_duration_since(now))
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        lock(&self.0)
    }

    /// Logs that no node can be reached, and that one can again.
    fn note(&self, lost: Option<&str>) {
        let was_lost = std::mem::replace(&mut self.state().is_lost, lost.is_some());
        match lost {
            Some(error) if !was_lost => {
                tracing::warn!(
                    error,
                    "the destination cannot be reached: clients of `_bulk` are answered 503"
                );
            }
            None if was_lost => tracing::info!("the destination can be reached again"),
            _ => {}
        }
    }

    /// Names in the log that the cluster refuses requests, now and then.
    fn warn(&self, answered: &TransportResponse) {
        let now = Instant::now();
        let mut state = self.state();
        if state.warned.is_some_and(|last| now.saturating_duration_since(last) < WARNINGS) {
            return;
        }
        state.warned = Some(now);
        let TransportResponse { status, excerpt, .. } = answered;
        tracing::warn!(
            status,
            said = excerpt,
            "the destination refuses requests with forwarded items: look at the sink's credentials and endpoints"
        );
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
        let mut words = "no node can be reached now".to_owned();
        // Each node once at most: one that fails is left alone.
        loop {
            let Some((reservation, peer)) = lock(&nodes).reserve(bytes, Instant::now()) else {
                if self.unreachable().is_some() {
                    self.note(Some(&words));
                }
                return Err(TransportError::NotSent(words));
            };
            let mut attempt = Attempt { nodes: &nodes, reservation: Some(reservation) };
            match peer.forward(&request, answer).await {
                Ok(answered) => {
                    attempt.end(verdict(&answered));
                    self.note(None);
                    if matches!(answered.status, 400..=499) && !matches!(answered.status, 400 | 413 | 429) {
                        self.warn(&answered);
                    }
                    return Ok(answered);
                }
                Err(TransportError::NotSent(why)) => {
                    attempt.end(AttemptResult::Failed(None));
                    words = why;
                }
                Err(broken) => {
                    attempt.end(AttemptResult::Failed(None));
                    return Err(broken);
                }
            }
        }
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
