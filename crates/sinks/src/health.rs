//! How a sink is doing, for `/status` and `/metrics`.

use crate::derive::DeriveReport;
use crate::spread::MemberReport;
use crate::thanos_receive::{Forwarding, ForwardingReport};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The most bytes of an error's text that are kept.
const LONGEST_ERROR: usize = 512;

/// A sink's activity. Clones share it; the sink writes, the pages read.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    requests: AtomicU64,
    failures: AtomicU64,
    bytes: AtomicU64,
    in_flight: AtomicU64,
    /// Requests that may be under way, in thousandths; zero where that is not adapted.
    limit: AtomicU64,
    /// Items of requests that were sent more than once: what a peer may have seen twice.
    resent: AtomicU64,
    restarts: AtomicU64,
    /// When a request was finished with success last, in nanoseconds since 1970; zero before the first.
    succeeded_at_ns: AtomicU64,
    trouble: Mutex<LastError>,
    held_up: Mutex<Vec<BlockedDestination>>,
    members: Mutex<Option<MemberList>>,
    forwarding: Mutex<Option<Arc<Forwarding>>>,
    derived: Mutex<Option<DeriveReport>>,
}

/// Reports of the members that a sink spreads items over.
struct MemberList(Box<dyn Fn() -> Vec<MemberReport> + Send>);

impl fmt::Debug for MemberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemberList")
    }
}

/// A sink's last error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastError {
    /// The last error, whether it is over or not.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<SystemTime>,
    /// When the next attempt is made, while one is waited for.
    pub retry_at: Option<SystemTime>,
    /// It ended unexpectedly, or could not be started again, and has sent nothing since.
    pub broken: bool,
}

/// The numbers of a sink since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    /// Requests (or files) finished with success.
    pub requests: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Bytes of payload sent with success.
    pub bytes: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Items of requests that had to be sent again.
    pub resent: u64,
    /// Times that it ended unexpectedly, or could not be started again.
    pub restarts: u64,
}

/// Something at the peer that takes nothing now, while everything else goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedDestination {
    /// Its name: an index.
    pub what: String,
    /// Records that wait for it, and items or documents of them.
    pub records: u64,
    /// See `records`.
    pub items: u64,
    /// Since when.
    pub since: SystemTime,
    /// The peer's message.
    pub reason: String,
}

/// Requests under way, until it is dropped.
pub(crate) struct InFlightGuard(Health, u64);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.0.in_flight.fetch_sub(self.1, Relaxed);
    }
}

impl Health {
    /// The numbers now.
    pub fn activity(&self) -> Activity {
        let state = &self.0;
        Activity {
            requests: state.requests.load(Relaxed),
            failures: state.failures.load(Relaxed),
            bytes: state.bytes.load(Relaxed),
            in_flight: state.in_flight.load(Relaxed),
            resent: state.resent.load(Relaxed),
            restarts: state.restarts.load(Relaxed),
        }
    }

    /// When a request or file was finished with success last, if one was.
    pub fn last_success(&self) -> Option<SystemTime> {
        let at = self.0.succeeded_at_ns.load(Relaxed);
        (at > 0).then(|| SystemTime::UNIX_EPOCH + Duration::from_nanos(at))
    }

    /// The current error, if any.
    pub fn trouble(&self) -> LastError {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Destinations at the peer that accept nothing now, and the size of their backlog: a few by name.
    pub fn waiting(&self) -> Vec<BlockedDestination> {
        self.0.held_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The members that the sink spreads items over; none if it does not.
    pub fn members(&self) -> Vec<MemberReport> {
        let members = self.0.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.as_ref().map(|MemberList(list)| list()).unwrap_or_default()
    }

    /// How many requests may be under way now, over all endpoints; nothing where that does not adapt.
    pub fn concurrency_limit(&self) -> Option<f64> {
        let thousandths = self.0.limit.load(Relaxed);
        (thousandths > 0).then_some(thousandths as f64 / 1000.0)
    }

    pub(crate) fn set_concurrency_limit(&self, requests: f64) {
        self.0.limit.store((requests * 1000.0) as u64, Relaxed);
    }

    /// Has the pages show what `list` gives.
    pub(crate) fn set_members(&self, list: impl Fn() -> Vec<MemberReport> + Send + 'static) {
        *self.0.members.lock().unwrap_or_else(PoisonError::into_inner) = Some(MemberList(Box::new(list)));
    }

    /// The numbers of forwarding to Thanos' ingestors; none for other sinks, and while it has no hashrings because it does not run.
    pub fn forwarding(&self) -> Option<ForwardingReport> {
        self.lock_forwarding().as_ref().map(|forwarding| forwarding.report())
    }

    /// Whether there are numbers of forwarding.
    pub fn has_forwarding(&self) -> bool {
        self.lock_forwarding().is_some()
    }

    pub(crate) fn show_forwarding(&self, forwarding: &Arc<Forwarding>) {
        *self.lock_forwarding() = Some(Arc::clone(forwarding));
    }

    /// Shows these numbers no longer.
    pub(crate) fn hide_forwarding(&self, forwarding: &Arc<Forwarding>) {
        self.lock_forwarding().take_if(|shown| Arc::ptr_eq(shown, forwarding));
    }

    fn lock_forwarding(&self) -> std::sync::MutexGuard<'_, Option<Arc<Forwarding>>> {
        self.0.forwarding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of derived metrics; none for other sinks, and while it does not run.
    pub fn derived(&self) -> Option<DeriveReport> {
        *self.0.derived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show_derived(&self, report: Option<DeriveReport>) {
        *self.0.derived.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    pub(crate) fn held_up(&self, held_up: Vec<BlockedDestination>) {
        *self.0.held_up.lock().unwrap_or_else(PoisonError::into_inner) = held_up;
    }

    /// So many requests are sent.
    pub(crate) fn under_way(&self, requests: u64) -> InFlightGuard {
        self.0.in_flight.fetch_add(requests, Relaxed);
        InFlightGuard(self.clone(), requests)
    }

    pub(crate) fn succeeded(&self, bytes: u64) {
        self.0.requests.fetch_add(1, Relaxed);
        self.0.bytes.fetch_add(bytes, Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.0.succeeded_at_ns.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        let mut trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        (trouble.retry_at, trouble.broken) = (None, false);
    }

    pub(crate) fn resent(&self, items: u64) {
        self.0.resent.fetch_add(items, Relaxed);
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, error: &str, retry_at: Option<SystemTime>) {
        self.0.failures.fetch_add(1, Relaxed);
        let broken = self.trouble().broken;
        self.enter(error, retry_at, broken);
    }

    /// The peer said something that is worth to be known, although it took the request.
    pub(crate) fn noted(&self, text: &str) {
        let LastError { retry_at, broken, .. } = self.trouble();
        self.enter(text, retry_at, broken);
    }

    /// The sink itself failed, and is started again at `retry_at`.
    pub(crate) fn broken(&self, error: &str, retry_at: Option<SystemTime>) {
        self.0.restarts.fetch_add(1, Relaxed);
        self.enter(error, retry_at, true);
    }

    fn enter(&self, error: &str, retry_at: Option<SystemTime>, broken: bool) {
        let end = error.floor_char_boundary(LONGEST_ERROR);
        let mut trouble = self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = LastError {
            last_error: error.get(..end).map(str::to_owned),
            last_error_at: Some(SystemTime::now()),
            retry_at,
            broken,
        };
    }
}
