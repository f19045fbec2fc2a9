//! Keeps the table up to date: one request after the other, for as long as it runs.

use crate::counters::Counters;
use crate::decoder::{Change, DecodeError, Decoder, Event, Failure};
use crate::pod::Fields;
use crate::synchronisation::{Ended, Synchronisation};
use crate::table::PodTable;
use std::time::Duration;
use tidegate_json_api::{Api, ApiError, ApiSettings, Response};
use tokio::time::{Instant, sleep, timeout};

/// The status of a version that the API server has forgotten.
const GONE: u16 = 410;
/// How long a server may go on for beyond the time that it was given.
const GRACE: Duration = Duration::from_secs(30);
/// How often deleted pods are forgotten when nothing happens.
const SWEEP: Duration = Duration::from_secs(10);

/// The watched pods, and the server that knows them.
#[derive(Debug, Clone)]
pub struct WatcherSettings {
    /// Where the API server is.
    pub api: ApiSettings,
    /// The node whose pods are watched.
    pub node: String,
    /// The fields that are kept.
    pub fields: Fields,
    /// How long a response may take to begin, and a list to go on.
    pub timeout: Duration,
    /// How long one watch goes on for. A shorter one notices a dead connection sooner.
    pub watch_timeout: Duration,
}

/// Watches the pods of a node.
pub struct Watcher {
    settings: WatcherSettings,
    api: Api,
    table: PodTable,
    has_failed: bool,
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("asking the Kubernetes API: {0}")]
    Api(#[from] ApiError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("the API server answered {}: {}", .0.code, .0.message)]
    Failed(Failure, Option<Duration>),
    #[error("the API server did not go on within {0:?}")]
    Timeout(Duration),
}

impl Watcher {
    /// A watcher that fills `table`.
    #[must_use]
    pub fn new(settings: WatcherSettings, table: PodTable) -> Watcher {
        let api = Api::new(settings.api.clone());
        Watcher { settings, api, table, has_failed: false }
    }

    /// The memory of a watcher beside its table, in bytes.
    #[must_use]
    pub fn planned_bytes(pod_bytes: usize) -> usize {
        Api::BYTES + 2 * pod_bytes + (16 << 10)
    }

    /// Watches until the future is dropped. It never ends by itself: what fails is tried again.
    pub async fn run(mut self) {
        let mut state = Synchronisation::default();
        loop {
            let ended = Box::pin(self.request(&state)).await;
            let wait = state.ended(ended);
            self.rest(wait).await;
        }
    }

    /// Waits, and forgets deleted pods meanwhile.
    async fn rest(&self, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            self.table.forget_deleted(Instant::now());
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            sleep(left.min(SWEEP)).await;
        }
    }

    /// One request, to its end.
    async fn request(&mut self, state: &Synchronisation) -> Ended {
        let counters = self.table.counters();
        let is_watch = state.is_watch();
        let fields = self.settings.fields.clone();
        let mut decoder = if is_watch {
            Counters::add(&counters.watches, 1);
            Decoder::watch(&fields, self.table.limits().pod_bytes)
        } else {
            Decoder::list(&fields, self.table.limits().pod_bytes)
        };
        if state.is_first_page() {
            Counters::add(&counters.lists, 1);
            self.table.begin_list();
        }
        let target = state.target(&self.settings.node, self.settings.watch_timeout);
        let (mut progress, begin) = (Progress::default(), Instant::now());
        let result = self.follow(&target, is_watch, &mut decoder, &mut progress).await;
        Counters::add(&self.table.counters().left_out, decoder.left_out());
        let version = decoder.version().to_owned();
        match result {
            Ok(()) => {
                self.succeeded();
                match progress.page {
                    Some((version, next)) => {
                        if next.is_none() {
                            self.table.end_list(Instant::now());
                        }
                        Ended::Page { version, next }
                    }
                    None => {
                        Ended::Watch { version, was_useful: progress.events > 0 || begin.elapsed() >= SWEEP }
                    }
                }
            }
            Err(RequestError::Failed(Failure { code: GONE, .. }, _)) => {
                Counters::add(&self.table.counters().expired, 1);
                Ended::Expired
            }
            Err(error) => {
                self.failed(&error);
                let retry_after = match error {
                    RequestError::Failed(_, retry_after) => retry_after,
                    _ => None,
                };
                Ended::Failed { version, retry_after }
            }
        }
    }

    /// Sends the request and reads the response.
    async fn follow(
        &mut self,
        target: &str,
        is_watch: bool,
        decoder: &mut Decoder<'_>,
        progress: &mut Progress,
    ) -> Result<(), RequestError> {
        let patience = self.settings.timeout;
        let late = |_| RequestError::Timeout(patience);
        let mut response = timeout(patience, self.api.get(target)).await.map_err(late)??;
        if let Some(failure) = timeout(patience, failure(&mut response)).await.map_err(late)? {
            return Err(RequestError::Failed(failure, response.retry_after));
        }
        if is_watch {
            self.succeeded();
        }
        let end = Instant::now() + self.settings.watch_timeout + GRACE;
        loop {
            let wait = if is_watch {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(RequestError::Timeout(self.settings.watch_timeout + GRACE));
                }
                left.min(SWEEP)
            } else {
                patience
            };
            let chunk = match timeout(wait, response.chunk()).await {
                Ok(Some(chunk)) => chunk?,
                Ok(None) => return Ok(decoder.end()?),
                Err(_) if !is_watch => return Err(RequestError::Timeout(patience)),
                Err(_) => {
                    self.table.forget_deleted(Instant::now());
                    continue;
                }
            };
            let now = Instant::now();
            let table = &self.table;
            decoder.feed(&chunk, |event| progress.take(event, table, now))?;
            if let Some(failure) = progress.failure.take() {
                return Err(RequestError::Failed(failure, None));
            }
        }
    }

    fn succeeded(&mut self) {
        if std::mem::take(&mut self.has_failed) {
            tracing::info!(node = %self.settings.node, "the Kubernetes API answers again");
        }
    }

    /// Says so once, and counts on.
    fn failed(&mut self, error: &RequestError) {
        Counters::add(&self.table.counters().failures, 1);
        if std::mem::replace(&mut self.has_failed, true) {
            return;
        }
        let advice = match error {
            RequestError::Failed(Failure { code: 401, .. }, _) => "check the token of the service account",
            RequestError::Failed(Failure { code: 403, .. }, _) => {
                "let the service account get, list and watch pods"
            }
            _ => "it will be tried again",
        };
        tracing::warn!(node = %self.settings.node, %error, advice, "the Kubernetes API cannot be read; logs go on with the metadata known so far");
    }
}

/// The outcome of a response.
#[derive(Default)]
struct Progress {
    events: u64,
    page: Option<(String, Option<String>)>,
    failure: Option<Failure>,
}

impl Progress {
    fn take(&mut self, event: Event, table: &PodTable, now: Instant) {
        self.events += 1;
        match event {
            Event::Pod(change, pod) => {
                Counters::add(&table.counters().events, 1);
                match change {
                    Change::Applied => table.apply(*pod, now),
                    Change::Deleted => table.delete(*pod, now),
                }
            }
            Event::Bookmark => {}
            Event::Page { version, next } => self.page = Some((version, next)),
            Event::Failed(failure) => self.failure = Some(failure),
        }
    }
}

/// The failure that a response tells of by its status, with the beginning of its text.
async fn failure(response: &mut Response) -> Option<Failure> {
    const EXCERPT: usize = 1024;
    if response.status == 200 {
        return None;
    }
    let mut text = Vec::new();
    while text.len() < EXCERPT
        && let Some(Ok(chunk)) = response.chunk().await
    {
        text.extend(chunk.iter().take(EXCERPT - text.len()));
    }
    let message = String::from_utf8_lossy(&text).trim().to_owned();
    Some(Failure { code: response.status, message })
}
