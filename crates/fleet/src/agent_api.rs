//! The HTTP/1.1 API for agents: the part of Fleet Server's that makes an Elastic Agent work.
//!
//! Credentials are checked on the head, so a request without them costs a hash and a lookup. The wait of a check-in is in a future
//! of its own that holds the wait alone.

mod answers;
mod body;
mod file_answers;
mod file_routes;
mod limited;
mod requests;
mod routes;

use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::control::{CheckIn, CheckInStart, Fleet, FleetError};
use crate::files::FleetFiles;
use crate::registry::{AgentVersion, PollOutcome};
use answers::{ApiError, json_reply, refusal_reply};
pub(crate) use body::BodyError;
use body::{BodyCoding, RequestBody};
use requests::{AckRequest, AuditRequest, CheckInRequest, EnrollRequest};
pub use routes::Ticket;
use routes::{Route, route};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_arena::{ChargeError, Share, Window};
use tidegate_http1::{AdmissionFuture, Admitted, Body, Head, Refusal, RefusalContext, Reply, Service};

/// Requests of those who only ask how the fleet is.
const PROBES: [&[u8]; 2] = [b"GET /api/status ", b"GET /api/status?"];

/// The routes for agents.
pub struct AgentApi(Arc<Fleet>, Arc<FleetFiles>);

impl AgentApi {
    /// Those of this fleet and its files.
    pub fn new(fleet: Arc<Fleet>, files: Arc<FleetFiles>) -> AgentApi {
        AgentApi(fleet, files)
    }

    /// The answer to a probe, if this is the beginning of one: it takes neither memory nor credentials.
    pub fn probed(head: &[u8]) -> Option<Reply> {
        let is_probe = PROBES.iter().any(|probe| head.starts_with(probe));
        is_probe.then(|| answers::status(false))
    }

    /// Counts a connection that was turned away.
    pub fn count_refused(&self) {
        self.0.counts().refused.fetch_add(1, Relaxed);
    }

    fn refused(&self, answer: ApiError) -> Reply {
        self.count_refused();
        answer.reply()
    }
}

impl Service for AgentApi {
    // On the heap: a connection has room for it in several of its states.
    type RequestState = Box<Ticket>;

    fn prepare(&self, head: &Head<'_>) -> Option<AdmissionFuture> {
        file_routes::wait_for_turn(&self.0, &self.1, head)
    }

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Box<Ticket>>, Reply> {
        let (ticket, max_body) = route(&self.0, &self.1, head).map_err(|answer| self.refused(answer))?;
        Ok(Admitted { max_body, ticket: Box::new(ticket) })
    }

    fn answer(&self, ticket: Box<Ticket>, body: Body) -> impl Future<Output = Reply> + Send {
        let fleet = Arc::clone(&self.0);
        let Ticket { route, coding, takes_gzip, lookup } = *ticket;
        let takes_503 = takes_503(&route);
        let of_lookup = lookup.map(|lookup| (Arc::clone(&fleet), lookup));
        // On the heap, each in a future of its own: a connection has no room for what only some requests need, and a check-in
        // that waits none for what the others do.
        let answered: Boxed<ApiResult> = match route {
            Route::Status(is_known) => Box::pin(std::future::ready(Ok(answers::status(is_known)))),
            Route::CheckIn { id, key, version } => {
                let begun = Box::pin(begin_check_in(Arc::clone(&fleet), (id, key, version), coding, body));
                Box::pin(check_in(fleet, id, takes_gzip, begun))
            }
            Route::Enroll { token, version } => Box::pin(enroll(fleet, token, version, coding, body)),
            Route::Acks(id) => Box::pin(acknowledge(fleet, id, coding, body)),
            Route::AuditUnenroll(id) => Box::pin(audit_unenroll(fleet, id, coding, body)),
            Route::Files(route) => {
                Box::pin(file_answers::answer(fleet, Arc::clone(&self.1), *route, coding, body))
            }
        };
        let answered: Boxed<ApiResult> = match of_lookup {
            None => answered,
            // Nothing of the answer has begun before.
            Some((fleet, lookup)) => Box::pin(async move {
                fleet.look_up(*lookup).await?;
                answered.await
            }),
        };
        let answered: Boxed<ApiResult> = match takes_503 {
            true => answered,
            false => Box::pin(async { answered.await.map_err(ApiError::into_429) }),
        };
        async { answered.await.unwrap_or_else(|answer| answer.reply()) }
    }

    fn is_withdrawn_by_leaving(&self, ticket: &Box<Ticket>) -> bool {
        matches!(ticket.route, Route::CheckIn { .. })
    }

    fn refuse(&self, refusal: Refusal, context: RefusalContext<'_, Box<Ticket>>) -> Reply {
        self.count_refused();
        match (refusal, context.ticket) {
            (Refusal::Memory, Some(ticket)) if !takes_503(&ticket.route) => ApiError::BUSY.into_429().reply(),
            _ => refusal_reply(refusal),
        }
    }
}

/// Whether agents try again on 503. Enrolments of some versions and uploads of all end with it, and are tried again on 429.
fn takes_503(route: &Route) -> bool {
    !matches!(route, Route::Enroll { .. } | Route::Files(_))
}

/// The longest answer that is left on the heap, in bytes: any socket takes it at once.
const SHORT_ANSWER: usize = 4 << 10;

/// A future on the heap.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// The response to a request, or its refusal.
type ApiResult = Result<Reply, ApiError>;

/// The answer to a check-in, whose beginning is a future of its own: what waits holds the wait.
#[expect(clippy::manual_async_fn, reason = "an async function would have its arguments twice")]
fn check_in(
    fleet: Arc<Fleet>,
    id: AgentId,
    takes_gzip: bool,
    begun: Boxed<Result<CheckInStart, ApiError>>,
) -> impl Future<Output = ApiResult> + Send {
    async move {
        let parked = match begun.await? {
            CheckInStart::Wait(parked) => parked,
            CheckInStart::Actions => return Box::pin(actions(&fleet, id)).await,
        };
        match parked.await {
            PollOutcome::Policy(mut window, policy) => {
                let output_key = fleet.output_key(id, &policy).ok_or(ApiError::UNAUTHORIZED)?;
                let envelope = policy.envelope(id, fleet.ack_token(id), output_key);
                let written = policy.write(&envelope, takes_gzip, &mut window);
                written.map_err(|_| ApiError::BUSY)?;
                Ok(answers::json_window(200, window, takes_gzip))
            }
            PollOutcome::Actions => Box::pin(actions(&fleet, id)).await,
            PollOutcome::TimedOut | PollOutcome::Superseded | PollOutcome::Stopped => {
                Ok(answers::nothing_to_do(fleet.ack_token(id)))
            }
            PollOutcome::Gone => Err(ApiError::UNAUTHORIZED),
        }
    }
}

async fn begin_check_in(
    fleet: Arc<Fleet>,
    (id, key, version): (AgentId, Option<KeyHash>, AgentVersion),
    coding: BodyCoding,
    body: Body,
) -> Result<CheckInStart, ApiError> {
    let body = RequestBody::of(&fleet, body, coding)?;
    let request: CheckInRequest<'_> = body.json()?;
    let said = CheckIn { key, ..request.check_in(version)? };
    Ok(fleet.check_in(id, &said).await?)
}

async fn actions(fleet: &Fleet, id: AgentId) -> ApiResult {
    // The text is on the heap until there is memory for it, so only some are put together at a time, however many agents an
    // action wakes.
    let _turn = fleet.action_turn().await;
    let text = fleet.actions_for(id).await?;
    let window = fleet.arena().window(Share::Egress, text.len()).await;
    let mut window = window.map_err(|error| match error {
        ChargeError::Never { .. } => {
            ApiError::new(500, "InternalServerError", "the actions are too long for an answer")
        }
        _ => ApiError::BUSY,
    })?;
    window.append(text.as_bytes()).map_err(|_| ApiError::BUSY)?;
    Ok(answers::json_window(200, window, false))
}

async fn enroll(
    fleet: Arc<Fleet>,
    token: Box<str>,
    version: AgentVersion,
    coding: BodyCoding,
    body: Body,
) -> ApiResult {
    let body = RequestBody::of(&fleet, body, coding)?;
    let request: EnrollRequest<'_> = body.json()?;
    let enrollment = request.enrollment(&token, version)?;
    // Before anything is changed, since the answer has what the agent has said of itself.
    let window = answer_window(&fleet, answers::enrolled_len(&enrollment)).await?;
    let enrolled = fleet.enroll(&enrollment).await?;
    answer_in(window, 200, answers::enrolled(&enrollment, &enrolled))
}

async fn acknowledge(fleet: Arc<Fleet>, id: AgentId, coding: BodyCoding, body: Body) -> ApiResult {
    let body = RequestBody::of(&fleet, body, coding)?;
    let request: AckRequest<'_> = body.json()?;
    let events = request.events()?;
    let items = fleet.acknowledge(id, &events).await?;
    let (status, text) = answers::acknowledged(&items);
    // Where there is no memory for the answer, the agent acknowledges again, which changes nothing.
    answer_in(answer_window(&fleet, text.len()).await?, status, text)
}

/// Memory for an answer of this length; none for a short one, which is left on the heap. It is waited for with the body in hand: no
/// answer waits for the memory of bodies.
async fn answer_window(fleet: &Fleet, len: usize) -> Result<Option<Window>, ApiError> {
    if len <= SHORT_ANSWER {
        return Ok(None);
    }
    let window = fleet.arena().window(Share::Egress, len).await;
    Ok(Some(window.map_err(|_| ApiError::BUSY)?))
}

/// The answer with this JSON, in its memory.
fn answer_in(window: Option<Window>, status: u16, text: String) -> ApiResult {
    let Some(mut window) = window else { return Ok(json_reply(status, text)) };
    window.append(text.as_bytes()).map_err(|_| ApiError::BUSY)?;
    Ok(answers::json_window(status, window, false))
}

async fn audit_unenroll(fleet: Arc<Fleet>, id: AgentId, coding: BodyCoding, body: Body) -> ApiResult {
    let body = RequestBody::of(&fleet, body, coding)?;
    let request: AuditRequest = body.json()?;
    match fleet.audit_unenroll(id, request.reason()?).await? {
        true => Ok(json_reply(200, "{}".to_owned())),
        false => Err(ApiError::new(409, "AuditUnenrolled", "the agent has said so already")),
    }
}

impl From<FleetError> for ApiError {
    fn from(error: FleetError) -> ApiError {
        match error {
            FleetError::Unauthorized => ApiError::UNAUTHORIZED,
            FleetError::Busy => ApiError::BUSY,
            FleetError::NotReplaceable(words) => ApiError::new(403, "AgentNotReplaceable", words),
            FleetError::Memory => {
                ApiError::owned(503, "ServiceUnavailable", error.to_string()).retry_after(60)
            }
            FleetError::Store(error) => {
                ApiError::owned(503, "ServiceUnavailable", error.to_string()).retry_after(10)
            }
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> ApiError {
        match error {
            BodyError::TooLarge(_) => ApiError::owned(413, "RequestEntityTooLarge", error.to_string()),
            BodyError::Busy => ApiError::BUSY,
            BodyError::Malformed(_) => ApiError::owned(400, "BadRequest", error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Settings;
    use crate::files::{FileSettings, PgpKey};
    use crate::policy::OutputSettings;
    use crate::store::EmbeddedStore;
    use std::net::SocketAddr;
    use std::time::Duration;
    use tidegate_arena::{Arena, Floors};
    use tidegate_http1::Server;
    use tokio::net::TcpStream;

    fn bytes_of<F: Future>(
        _: impl FnOnce(Arc<Fleet>, AgentId, bool, Boxed<Result<CheckInStart, ApiError>>) -> F,
    ) -> usize {
        size_of::<F>()
    }

    /// Heap of a waiting check-in, beside its connection and its entry.
    #[test]
    fn a_check_in_that_waits_is_small() {
        let bytes = bytes_of(check_in);
        assert!(bytes <= 192, "{bytes} bytes");
    }

    /// Without memory for the body, routes on which agents give up at 503 answer 429, and the others 503; both say when to come again.
    #[test]
    fn a_lack_of_memory_is_answered_as_agents_retry_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let store = Arc::new(EmbeddedStore::open(&folder.path().join("state.redb")).unwrap());
            let arena = || Arena::new(8 << 20, Floors::NONE, 1 << 20, 64, 64).unwrap();
            let outputs = OutputSettings { hosts: Vec::new(), has_tenants: false };
            let hour = Duration::from_secs(3600);
            let settings = Settings { long_poll: hour, max_body: 1 << 20, keep_actions: hour, outputs };
            let fleet = Fleet::load(store.clone(), settings, (arena(), arena())).await.unwrap();
            let files = FileSettings { quota: 1 << 20, max_body: 1 << 20, memory: 1 << 20 };
            let place = folder.path().join("files");
            let files = FleetFiles::open(&place, store, (files, PgpKey::default()), arena()).await.unwrap();
            let api = AgentApi::new(fleet, files);
            let version = AgentVersion { major: 9, minor: 1, patch: 0 };
            let routes = [
                (Route::Enroll { token: "t".into(), version }, 429),
                (Route::CheckIn { id: AgentId::random(), key: None, version }, 503),
                (Route::Acks(AgentId::random()), 503),
            ];
            for (route, status) in routes {
                let coding = BodyCoding { is_compressed: false, most: 1 };
                let ticket = Box::new(Ticket { route, coding, takes_gzip: false, lookup: None });
                let peer = SocketAddr::from(([127, 0, 0, 1], 1));
                let context = RefusalContext { peer, ticket: Some(&ticket), received: 0 };
                let reply = api.refuse(Refusal::Memory, context);
                assert_eq!(reply.status(), status);
                let mut answer = Vec::new();
                reply.put(0, &mut answer);
                assert!(String::from_utf8_lossy(&answer).contains("Retry-After: "));
            }
        });
    }

    /// A connection of an agent, with the codec's state.
    #[test]
    fn a_connection_is_small() {
        fn bytes_of<F: Future>(_: impl FnOnce(Arc<Server<AgentApi>>, TcpStream, SocketAddr) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = bytes_of(|server, stream, peer| server.serve(stream, peer));
        assert!(bytes <= 1024, "{bytes} bytes");
    }
}
