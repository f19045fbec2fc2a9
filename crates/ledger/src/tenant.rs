use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pipeline::PipelineItems;
use crate::reason::Refusal;
use crate::signal::{Counts, Signal};

/// The longest name of a tenant, in bytes.
pub const MAX_TENANT_NAME: usize = 128;

/// One tenant's page in the books, with the name under which its requests go on. Clones write on the same page.
#[derive(Clone)]
pub struct TenantHandle(Arc<TenantName>);

struct TenantName {
    name: Box<str>,
    page: Arc<TenantState>,
}

struct TenantState {
    title: Box<str>,
    columns: Mutex<TenantTotals>,
}

/// The columns of a tenant's page, since the process started. For each tenant, requests received = accepted +
/// refused + open. A request that was refused before it was known whose it is has no page here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantTotals {
    /// Requests received.
    pub received: u64,
    /// Requests accepted.
    pub accepted: u64,
    /// Requests refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::COUNT],
    /// Requests received and not answered.
    pub open: u64,
    /// Items accepted, in the order of [`Signal::ALL`].
    pub items: [u64; Signal::ALL.len()],
    /// Items of accepted requests that the pipelines of sources dropped.
    pub dropped: u64,
    /// Bytes of accepted bodies, as received.
    pub bytes: u64,
}

impl TenantHandle {
    pub(crate) fn new(name: &str) -> Self {
        let page = Arc::new(TenantState { title: name.into(), columns: Mutex::default() });
        Self(Arc::new(TenantName { name: name.into(), page }))
    }

    /// The same page under another name: of a tenant that there is no page for, on the page of the others.
    #[must_use]
    pub fn called(&self, name: &str) -> Self {
        Self(Arc::new(TenantName { name: name.into(), page: Arc::clone(&self.0.page) }))
    }

    /// The name under which its requests go on.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The name that its page has.
    pub fn title(&self) -> &str {
        &self.0.page.title
    }

    /// The current values of its page.
    pub fn book(&self) -> TenantTotals {
        self.columns().clone()
    }

    /// Items accepted so far, and those that the pipelines of sources dropped: what a limit of items counts.
    pub fn items(&self) -> u64 {
        let book = self.columns();
        book.items.iter().sum::<u64>() + book.dropped
    }

    /// Enters a request that was received and turned out to be this tenant's.
    pub(crate) fn open(&self) {
        let mut book = self.columns();
        book.received += 1;
        book.open += 1;
    }

    pub(crate) fn accept(&self, counts: Counts, pipeline_items: Option<PipelineItems>) {
        let mut book = self.columns();
        book.open -= 1;
        book.accepted += 1;
        counts.add_to(&mut book.items);
        book.dropped += pipeline_items.map_or(0, PipelineItems::dropped);
        book.bytes += counts.bytes();
    }

    pub(crate) fn refuse(&self, reason: Refusal) {
        let mut book = self.columns();
        book.open -= 1;
        book.refused[reason as usize] += 1;
    }

    fn columns(&self) -> MutexGuard<'_, TenantTotals> {
        self.0.page.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantTotals {
    /// The difference of received and its outcomes: 0 unless the program has a bug.
    pub fn difference(&self) -> u64 {
        let settled = self.accepted + self.refused.iter().sum::<u64>() + self.open;
        self.received.abs_diff(settled)
    }
}

impl fmt::Debug for TenantHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tenant {}", self.name())
    }
}
