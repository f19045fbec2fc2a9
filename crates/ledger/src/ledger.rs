use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_meters::Registry;

use crate::balance::{Balance, JournalBalance, SinkBalance, SourceBalance};
use crate::journal::JournalItems;
use crate::recent::{RecentRefusal, RecentRefusals};
use crate::sink::SinkAccount;
use crate::sink_ledger::SinkLedger;
use crate::source::Source;
use crate::tenant::{MAX_TENANT_NAME, TenantHandle, TenantTotals};
use crate::{metrics, signal};

/// The most sources that the books have pages for.
pub const MAX_SOURCES: usize = 32;

/// The most sinks that the books have pages for.
pub const MAX_SINKS: usize = 64;

/// The most tenants that the books can have pages for: as many as can be shown in one answer with their longest
/// names. How many they do have is up to whoever opens them.
pub const MAX_TENANTS: usize = 256;

/// All pages of the books. Clones share them.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<LedgerState>);

#[derive(Debug)]
struct LedgerState {
    head: JournalItems,
    pages: Mutex<Accounts>,
    recent: Arc<RecentRefusals>,
}

#[derive(Debug, Default)]
struct Accounts {
    sources: Vec<Source>,
    sinks: Vec<SinkAccount>,
    tenants: Vec<TenantHandle>,
}

/// There is no page left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the books have pages for {limit} {of}; configure fewer")]
pub struct TooMany {
    of: &'static str,
    limit: usize,
}

impl Ledger {
    /// Opens the books of a journal that holds `items_total` items, ever, and publishes them.
    pub fn new(registry: &Registry, items_total: u64) -> Self {
        let head = JournalItems::new(items_total);
        let ledger = Self(Arc::new(LedgerState { head, pages: Mutex::default(), recent: Arc::default() }));
        metrics::publish(registry, &ledger);
        ledger
    }

    /// The journal's column.
    pub fn head(&self) -> JournalItems {
        self.0.head.clone()
    }

    /// The page of the source with this name; a new one when there is none.
    ///
    /// # Errors
    /// When there would be more than [`MAX_SOURCES`].
    pub fn source(&self, name: &str) -> Result<Source, TooMany> {
        let sources = &mut self.pages().sources;
        if let Some(source) = sources.iter().find(|source| source.name() == name) {
            return Ok(source.clone());
        }
        if sources.len() == MAX_SOURCES {
            return Err(TooMany { of: "sources", limit: MAX_SOURCES });
        }
        let source = Source::new(name, Arc::clone(&self.0.recent));
        sources.push(source.clone());
        Ok(source)
    }

    /// Opens a sink's page with what stood beside its cursor: the book, the items before the cursor, and
    /// the items behind it that are done already. A new sink comes with `SinkLedger::new(position)`. A page
    /// with the same name is replaced.
    ///
    /// # Errors
    /// When there would be more than [`MAX_SINKS`].
    pub fn attach(
        &self,
        name: &str,
        book: SinkLedger,
        position: u64,
        ahead: u64,
    ) -> Result<SinkAccount, TooMany> {
        let sink = SinkAccount::new(name, book, position, ahead);
        let sinks = &mut self.pages().sinks;
        sinks.retain(|page| page.name() != name);
        if sinks.len() == MAX_SINKS {
            return Err(TooMany { of: "sinks", limit: MAX_SINKS });
        }
        sinks.push(sink.clone());
        Ok(sink)
    }

    /// Closes the page of a sink that is no longer configured.
    pub fn detach(&self, name: &str) {
        self.pages().sinks.retain(|sink| sink.name() != name);
    }

    /// Opens a page for a tenant. To be called once for each name.
    ///
    /// # Errors
    /// When there would be more than [`MAX_TENANTS`].
    pub fn tenant(&self, name: &str) -> Result<TenantHandle, TooMany> {
        let tenants = &mut self.pages().tenants;
        if tenants.len() == MAX_TENANTS {
            return Err(TooMany { of: "tenants", limit: MAX_TENANTS });
        }
        let tenant = TenantHandle::new(name);
        tenants.push(tenant.clone());
        Ok(tenant)
    }

    /// All books as they stand at one moment.
    pub fn balance(&self) -> Balance {
        let pages = self.pages();
        // All at once, always in this order: entries wait for the few additions that this takes.
        let sources: Vec<_> = pages.sources.iter().map(|source| (source.name(), source.book())).collect();
        let head = self.0.head.columns();
        let sinks: Vec<_> = pages.sinks.iter().map(|sink| (sink.name(), sink.columns())).collect();

        let accepted = sources.iter().flat_map(|(_, book)| &book.items).sum();
        let handed_over = sources.iter().map(|(_, book)| book.handed_over).sum();
        Balance {
            sources: sources.iter().map(|(name, book)| SourceBalance::of(name, book)).collect(),
            journal: JournalBalance::of(&head, accepted, handed_over),
            sinks: sinks.iter().map(|(name, columns)| SinkBalance::of(name, columns, head.now)).collect(),
        }
    }

    /// Visits the last refused requests, the newest first: at most [`MOST_RECENT_REFUSALS`](crate::MOST_RECENT_REFUSALS). What is refused
    /// meanwhile is not kept, so `visit` should be quick.
    pub fn recent_refusals(&self, visit: impl FnMut(&RecentRefusal)) {
        self.0.recent.visit(visit);
    }

    /// Heap bytes that the books take at most: a line of the memory plan.
    pub const fn size_bytes() -> usize {
        let name = 64;
        let source = 256 + 8 * (signal::Signal::ALL.len() + 2 * crate::Refusal::COUNT) + name;
        let sink = 256 + SinkLedger::LEN + name;
        MAX_SOURCES * source + MAX_SINKS * sink + RecentRefusals::BYTES
    }

    /// Heap bytes that the books take at most for each tenant: a line of the memory plan.
    pub const fn tenant_bytes() -> usize {
        128 + size_of::<TenantTotals>() + 2 * MAX_TENANT_NAME
    }

    pub(crate) fn each_tenant(&self, mut visit: impl FnMut(&TenantHandle)) {
        self.pages().tenants.iter().for_each(&mut visit);
    }

    pub(crate) fn each_source(&self, mut visit: impl FnMut(&Source)) {
        self.pages().sources.iter().for_each(&mut visit);
    }

    pub(crate) fn each_sink(&self, mut visit: impl FnMut(&SinkAccount)) {
        self.pages().sinks.iter().for_each(&mut visit);
    }

    fn pages(&self) -> MutexGuard<'_, Accounts> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
