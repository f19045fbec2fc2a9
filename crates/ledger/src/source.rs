use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::forwarded::ForwardedBook;
use crate::pipeline::{PipelineBook, PipelineItems};
use crate::reason::Refusal;
use crate::recent::{RecentRefusals, RefusalDetails};
use crate::signal::{Counts, Signal};
use crate::tenant::TenantHandle;

/// One source's page in the books. Clones write on the same page.
#[derive(Clone)]
pub struct Source(Arc<SourceState>);

struct SourceState {
    name: Box<str>,
    /// Shared by all sources.
    recent: Arc<RecentRefusals>,
    // One lock per request, held for a few additions: dearer than loose counters by some nanoseconds, but
    // a reader never sees half an entry, so a difference is never an artefact of reading.
    columns: Mutex<SourceTotals>,
}

/// The columns of a source's page, since the process started.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceTotals {
    pub(crate) received: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: [u64; Refusal::COUNT],
    pub(crate) open: u64,
    pub(crate) items: [u64; Signal::ALL.len()],
    /// Items refused of requests that were accepted, or without a request.
    pub(crate) items_refused: [u64; Refusal::COUNT],
    pub(crate) bytes: u64,
    /// Items given to the journal whose verdict is not in yet.
    pub(crate) handed_over: u64,
    /// Items that are forwarded instead of journalled.
    pub(crate) forwarded: ForwardedBook,
    /// Items that passed its pipeline.
    pub(crate) pipeline: PipelineBook,
}

/// A request that was received and not yet answered. Dropping it without a verdict refuses it as
/// [`Refusal::Abandoned`], so no path through the code can leave the books open.
#[must_use = "a request that is dropped without a verdict counts as abandoned"]
pub struct OpenRequest {
    source: Option<Source>,
    tenant: Option<TenantHandle>,
    left_out: RefusedItems,
}

/// Why items are refused of a request whose others may be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemRefusal {
    /// [`Refusal::Malformed`]
    Malformed,
    /// [`Refusal::Forbidden`]
    Forbidden,
}

/// How many items were refused of a request whose others may be accepted. Small, since each connection has room for it.
#[derive(Clone, Copy, Default)]
pub(crate) struct RefusedItems {
    malformed: u32,
    forbidden: u32,
}

/// A request whose items were given to the journal. From here on they may be written even when nobody
/// waits for it any more, so dropping it without a verdict accepts it.
#[must_use = "items that are dropped without a verdict count as accepted"]
pub struct SubmittedRequest {
    entry: Option<(Source, Counts)>,
    tenant: Option<TenantHandle>,
    left_out: RefusedItems,
    /// In a box, since few requests have it and each connection has room for this.
    pipeline_items: Option<Box<PipelineItems>>,
}

impl Source {
    pub(crate) fn new(name: &str, recent: Arc<RecentRefusals>) -> Self {
        Self(Arc::new(SourceState { name: name.into(), recent, columns: Mutex::default() }))
    }

    /// The source's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether this is the same page.
    pub fn is(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Enters a request as received. To be called as soon as there is one, before anything can fail.
    pub fn open(&self) -> OpenRequest {
        let mut book = self.book();
        book.received += 1;
        book.open += 1;
        OpenRequest { source: Some(self.clone()), tenant: None, left_out: RefusedItems::default() }
    }

    /// Enters items that were lost or refused at the door without a request of their own, such as datagrams for which the
    /// kernel had no room.
    pub fn refuse_items(&self, reason: Refusal, items: u64) {
        if let Some(refused) = self.book().items_refused.get_mut(reason as usize) {
            *refused += items;
        }
    }

    /// Items accepted so far, those that its pipeline dropped, and forwarded items that were sent: what a limit of items counts.
    pub fn items(&self) -> u64 {
        let book = self.book();
        book.items.iter().sum::<u64>() + book.pipeline.dropped() + book.forwarded.sent()
    }

    fn note(&self, reason: Refusal, tenant: Option<&TenantHandle>, details: &RefusalDetails<'_>) {
        let tenant = tenant.map_or("", TenantHandle::name);
        self.0.recent.note(reason, &self.0.name, tenant, details);
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, SourceTotals> {
        self.0.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SourceTotals {
    pub(crate) fn accept(
        &mut self,
        counts: Counts,
        left_out: RefusedItems,
        pipeline_items: Option<PipelineItems>,
    ) {
        self.open -= 1;
        self.accepted += 1;
        counts.add_to(&mut self.items);
        self.bytes += counts.bytes();
        self.items_refused[Refusal::Malformed as usize] += u64::from(left_out.malformed);
        self.items_refused[Refusal::Forbidden as usize] += u64::from(left_out.forbidden);
        if let Some(pipeline_items) = pipeline_items {
            self.pipeline.enter(pipeline_items, counts.items());
        }
    }

    pub(crate) fn refuse(&mut self, reason: Refusal) {
        self.open -= 1;
        self.refused[reason as usize] += 1;
    }
}

impl OpenRequest {
    /// The request is this tenant's, and is entered on its page too. To be called once, as soon as that is known.
    pub fn belongs_to(&mut self, tenant: TenantHandle) {
        if self.source.is_some() && self.tenant.is_none() {
            tenant.open();
            self.tenant = Some(tenant);
        }
    }

    /// Where it was received.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// The tenant, if known.
    pub fn tenant(&self) -> Option<&TenantHandle> {
        self.tenant.as_ref()
    }

    /// The request was refused, and nothing of it will go anywhere.
    pub fn refuse(self, reason: Refusal) {
        self.refuse_with(reason, &RefusalDetails::default());
    }

    /// As [`refuse`](Self::refuse), with what is known of the request, for those who look at the last refusals.
    pub fn refuse_with(mut self, reason: Refusal, details: &RefusalDetails<'_>) {
        self.close(reason, details);
    }

    /// So many of its items are refused for this reason, and the others may be accepted: it counts if they are.
    pub fn refuse_items(&mut self, reason: ItemRefusal, items: u64) {
        // As many as a body can have.
        let items = u32::try_from(items).unwrap_or(u32::MAX);
        match reason {
            ItemRefusal::Malformed => self.left_out.malformed = items,
            ItemRefusal::Forbidden => self.left_out.forbidden = items,
        }
    }

    /// The request is given to the journal: to be called before the journal gets it. The verdict follows.
    pub fn submit(mut self, counts: Counts) -> SubmittedRequest {
        let source = self.source.take();
        if let Some(source) = &source {
            source.book().handed_over += counts.items();
        }
        let entry = source.map(|source| (source, counts));
        SubmittedRequest { entry, tenant: self.tenant.take(), left_out: self.left_out, pipeline_items: None }
    }

    /// As [`submit`](Self::submit), for a request whose items passed the source's pipeline: `counts` are of those that are
    /// left.
    pub fn submit_from_pipeline(self, counts: Counts, pipeline_items: PipelineItems) -> SubmittedRequest {
        let mut submitted = self.submit(counts);
        submitted.pipeline_items = Some(Box::new(pipeline_items));
        submitted
    }

    /// The request carried nothing for the journal (such as an empty body) and was answered with success.
    pub fn accept_empty(self, signal: Signal) {
        self.submit(Counts::of(signal, 0, 0)).accept();
    }

    /// Its parts, for who gives the verdict.
    pub(crate) fn take(&mut self) -> (Option<Source>, Option<TenantHandle>, RefusedItems) {
        (self.source.take(), self.tenant.take(), self.left_out)
    }

    fn close(&mut self, reason: Refusal, details: &RefusalDetails<'_>) {
        if let Some(source) = self.source.take() {
            source.book().refuse(reason);
            source.note(reason, self.tenant.as_ref(), details);
        }
        if let Some(tenant) = self.tenant.take() {
            tenant.refuse(reason);
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.close(Refusal::Abandoned, &RefusalDetails::default());
    }
}

impl SubmittedRequest {
    /// The journal has it for good. To be called even when the client can no longer be told.
    pub fn accept(mut self) {
        self.close(None, &RefusalDetails::default());
    }

    /// The journal did not take it.
    pub fn refuse(self, reason: Refusal) {
        self.refuse_with(reason, &RefusalDetails::default());
    }

    /// As [`refuse`](Self::refuse), with what is known of the request, for those who look at the last refusals.
    pub fn refuse_with(mut self, reason: Refusal, details: &RefusalDetails<'_>) {
        self.close(Some(reason), details);
    }

    fn close(&mut self, refused: Option<Refusal>, details: &RefusalDetails<'_>) {
        if let Some((source, counts)) = self.entry.take() {
            let pipeline_items = self.pipeline_items.take().map(|items| *items);
            let mut book = source.book();
            book.handed_over -= counts.items();
            match refused {
                None => book.accept(counts, self.left_out, pipeline_items),
                Some(reason) => book.refuse(reason),
            }
            drop(book);
            if let Some(reason) = refused {
                source.note(reason, self.tenant.as_ref(), details);
            }
            match (self.tenant.take(), refused) {
                (None, _) => {}
                (Some(tenant), None) => tenant.accept(counts, pipeline_items),
                (Some(tenant), Some(reason)) => tenant.refuse(reason),
            }
        }
    }
}

impl Drop for SubmittedRequest {
    fn drop(&mut self) {
        self.close(None, &RefusalDetails::default());
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source {}", self.name())
    }
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Open")
    }
}

impl fmt::Debug for SubmittedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandedOver")
    }
}
