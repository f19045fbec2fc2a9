//! The gate: the checks that a source asks for, in the order in which it asks.

mod append_slots;
mod decode_buffer;
mod decode_turn;
mod local;
mod rights;
mod source_pipeline;

use crate::access::{Access, AdmissionFuture, Certificate, Identity};
use crate::browser_guard;
use crate::caller::{Caller, Headers};
use crate::canned_refusal::CannedRefusal;
use crate::deliverable::{Deliverable, Size, SizeLimit};
use crate::drain_estimate::DrainEstimate;
use crate::permit::{self, Permit};
use crate::rejection::{Rejection, RejectionText};
use crate::source_pipelines::SourcePipelines;
use crate::tenancy::{Tenancy, TenantClaim};
use append_slots::{AppendSlot, AppendSlots};
use arc_swap::ArcSwap;
pub use decode_buffer::{DecodeBuffer, MAX_INLINE_BYTES, TranslationCharge};
pub use rights::{BulkDefaults, RESEND_HEADER};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, Share, ShareUse};
use tidegate_journal::{AppendError as JournalRefused, Batch, Journal, Meta, Protocol, Signal, Tenant};
use tidegate_ledger::{Counts, OpenRequest, PipelineItems, Refusal, SubmittedRequest};
use tidegate_limit::{AdmissionTable, Moment, RequestTooLarge};
use tidegate_tap::{Tap, TapPoint};

/// Decides about every request of every source. Clones share one gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>, Option<Arc<str>>);

struct Inner {
    arena: Arena,
    journal: Journal,
    /// How long a request may wait for memory.
    memory_wait: Duration,
    memory: DrainEstimate,
    /// Slots in the journal's queue.
    append_slots: AppendSlots,
    stopping: AtomicBool,
    /// Shows `tidegate tap` the batches that are handed to the journal.
    tap: Option<Tap>,
    rules: GateRules,
    /// The bounds of the configured sinks.
    deliverable: RwLock<Deliverable>,
}

/// Access control, tenancy and limits. Default: open access, no tenants, no limits.
#[derive(Clone, Default)]
pub struct GateRules {
    /// Authenticates senders.
    pub access: Access,
    /// How a request's tenant is found; `None` without tenants.
    pub tenancy: Option<Tenancy>,
    /// The limits of routes and tenants.
    pub limits: Option<Arc<AdmissionTable>>,
    /// Authenticates operators, who resend dead letters under their old tenant; open means nobody may.
    pub operators: Access,
    /// `_bulk` rights where the credentials have none of their own.
    pub bulk: Arc<ArcSwap<BulkDefaults>>,
    /// The pipelines of sources, which run before the journal.
    pub pipelines: SourcePipelines,
}

impl Gate {
    /// A gate in front of `journal`, whose requests wait at most `memory_wait` for memory.
    pub fn new(arena: Arena, journal: Journal, memory_wait: Duration) -> Gate {
        Gate::with_tap(arena, journal, memory_wait, None)
    }

    /// The same, with a tap that sees every batch before the journal does.
    pub fn with_tap(arena: Arena, journal: Journal, memory_wait: Duration, tap: Option<Tap>) -> Gate {
        Gate::with_rules(arena, journal, memory_wait, tap, GateRules::default())
    }

    /// The same, with rules.
    pub fn with_rules(
        arena: Arena,
        journal: Journal,
        memory_wait: Duration,
        tap: Option<Tap>,
        rules: GateRules,
    ) -> Gate {
        // Built now, so that the first flood allocates nothing for its answers.
        crate::answer::prepare();
        let (memory, stopping) = (DrainEstimate::default(), AtomicBool::new(false));
        let append_slots = AppendSlots::new(&journal);
        let deliverable = RwLock::default();
        let inner =
            Inner { arena, journal, memory_wait, memory, append_slots, stopping, tap, rules, deliverable };
        Gate(Arc::new(inner), None)
    }

    /// The same gate for one listening address, where a request without a tenant is `tenant`'s.
    #[must_use]
    pub fn with_default(&self, tenant: &str) -> Gate {
        Gate(Arc::clone(&self.0), Some(tenant.into()))
    }

    /// Its rules.
    pub fn rules(&self) -> &GateRules {
        &self.0.rules
    }

    /// The password hash to wait for before [`admit`](Self::admit) can decide on a request with these headers from `peer`.
    #[inline]
    pub fn prepare(&self, headers: &dyn Headers, peer: IpAddr) -> Option<AdmissionFuture> {
        let GateRules { access, operators, .. } = &self.0.rules;
        if access.is_open() && operators.is_open() {
            return None;
        }
        let asked = if let Ok(None) = headers.sole(RESEND_HEADER) { access } else { operators };
        asked.prepare(self.authorization(headers).ok()?, peer)
    }

    /// Whether a request by `caller`, counted as `open`, may send its body. Asked when its head is known, so that a
    /// refusal costs as little as possible. Checks where it comes
    /// from, the credentials, the tenant, whether the journal accepts data now, and
    /// the limits, in this order.
    ///
    /// # Errors
    /// The first check that fails. The request then holds nothing.
    #[inline]
    pub fn admit(&self, caller: &Caller<'_>, open: &mut OpenRequest) -> Result<Permit, Rejection> {
        self.admit_identified(caller, open).map(|(permit, _)| permit)
    }

    /// As [`admit`](Self::admit). Also returns who the caller is, for sources that check what it
    /// [may do](Self::bulk_rights).
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    #[inline]
    pub fn admit_identified(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, Identity), Rejection> {
        may_come(caller)?;
        let rules = &self.0.rules;
        if rules.access.is_open() && rules.tenancy.is_none() && rules.operators.is_open() {
            self.check_open_for(caller.journalled)?;
            let permit = match &rules.limits {
                Some(table) if table.is_active() => self.limited(Demand::of(caller), open, table, None)?,
                _ => Permit::default(),
            };
            return Ok((permit, Identity::default()));
        }
        self.identified(caller, open)
    }

    /// As [`admit`](Self::admit), for endpoints that accept anonymous clients. Also returns whether the client is
    /// anonymous: it sent no credentials where some are asked for, and so cannot choose its tenant.
    ///
    /// # Errors
    /// As [`admit`](Self::admit). Credentials that are sent must be valid.
    pub fn admit_anonymous(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, bool), Rejection> {
        may_come(caller)?;
        let rules = &self.0.rules;
        let shows = caller.certificate.is_some() || self.authorization(caller.headers)?.is_some();
        if rules.access.is_open() || shows {
            return Ok((self.admit(caller, open)?, false));
        }
        let name = self.tenant(caller, TenantClaim::Anonymous)?;
        Ok((self.named(Demand::of(caller), open, name)?, true))
    }

    /// Checks the credentials and finds the tenant, then checks the rest.
    fn identified(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, Identity), Rejection> {
        let authorization = self.authorization(caller.headers)?;
        if let Some(of) = rights::resend_tenant(caller)? {
            return self.admit_resent(caller, open, authorization, of);
        }
        let granted = self.0.rules.access.check(authorization, caller.certificate, caller.peer)?;
        let name = self.tenant(caller, TenantClaim::Identified(&granted))?;
        let permit = self.named(Demand::of(caller), open, name)?;
        Ok((permit, granted))
    }

    /// The tenant of a request.
    fn tenant<'a>(
        &'a self,
        caller: &Caller<'a>,
        sender: TenantClaim<'a>,
    ) -> Result<Option<&'a str>, Rejection> {
        let Some(tenancy) = &self.0.rules.tenancy else { return Ok(None) };
        tenancy.of(caller, sender, self.1.as_deref())
    }

    /// Checks the rest for a request of the tenant `name`.
    fn named(&self, demand: Demand, open: &mut OpenRequest, name: Option<&str>) -> Result<Permit, Rejection> {
        let rules = &self.0.rules;
        let table = rules.limits.as_ref().filter(|table| table.is_active());
        let tenants = table.and_then(|table| table.tenants());
        let tenant = tenants.zip(name).map(|(tenants, name)| (tenants.find(name), tenants, name));
        if let Some((id, tenants, name)) = tenant
            && let Some(page) = tenants.ledger(id, name)
        {
            open.belongs_to(page);
        }
        self.check_open_for(demand.journalled)?;
        match table {
            Some(table) => self.limited(demand, open, table, tenant.map(|(id, ..)| id)),
            None => Ok(Permit::default()),
        }
    }

    /// The caller's credentials: from `Authorization`, or from the configured header that replaces it.
    fn authorization<'a>(&self, headers: &'a dyn Headers) -> Result<Option<&'a [u8]>, Rejection> {
        let twice = |_| {
            Rejection::new(Refusal::Headers, "the request has several `Authorization` headers: send one\n")
        };
        let shown = headers.sole("authorization").map_err(twice)?;
        match (shown, self.0.rules.access.header()) {
            (None, Some(header)) => headers.sole(header).map_err(twice),
            (shown, _) => Ok(shown),
        }
    }

    #[inline]
    fn limited(
        &self,
        demand: Demand,
        open: &OpenRequest,
        table: &Arc<AdmissionTable>,
        tenant: Option<tidegate_limit::TenantId>,
    ) -> Result<Permit, Rejection> {
        let Some(route) = open.source().and_then(|books| table.route(books)) else {
            return Ok(Permit::default());
        };
        let free = if tenant.is_some() { self.0.arena.free(Share::Ingest) } else { u64::MAX };
        let hold = table.admit(demand.now, route, tenant, demand.bytes, free);
        hold.map(|hold| Permit(Some(hold))).map_err(|denied| permit::refused(denied, &self.0.memory))
    }

    /// Raises what a request is known to hold to `bytes`, as its body arrives.
    ///
    /// # Errors
    /// When its route or its tenant may not hold that much now; the request then holds what it held before.
    #[inline]
    pub fn grow(&self, permit: &Permit, bytes: usize) -> Result<(), Rejection> {
        match &permit.0 {
            Some(hold) if bytes as u64 > hold.bytes() => {
                let grown = hold.grow(Moment::now(), bytes as u64, self.0.arena.free(Share::Ingest));
                grown.map_err(|denied| {
                    let refused = permit::refused(denied, &self.0.memory);
                    if let RejectionText::CannedRefusal(canned) = refused.words {
                        permit.deny(canned);
                    }
                    refused
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether a request of this kind can be accepted now.
    fn check_open_for(&self, journalled: bool) -> Result<(), Rejection> {
        match self.check_open() {
            Err(refused) if refused.reason == Refusal::Disk && !journalled => Ok(()),
            decided => decided,
        }
    }

    /// Whether anything can be accepted now.
    ///
    /// # Errors
    /// When the gateway is stopping, or the journal is known to accept nothing now.
    #[inline]
    pub fn check_open(&self) -> Result<(), Rejection> {
        if self.0.stopping.load(Relaxed) {
            return Err(stopping().retry_after(self.0.memory.spread(1)));
        }
        match self.0.journal.append_error() {
            None => Ok(()),
            Some(refused) => Err(self.disk(refused)),
        }
    }

    /// The longest body after decompression that any source can accept, in bytes.
    pub fn most_decoded(&self) -> usize {
        let ceiling = usize::try_from(self.0.arena.ceiling(Share::Decode)).unwrap_or(usize::MAX);
        ceiling.min(self.0.arena.window_len())
    }

    /// Replaces the bounds of what the sinks can deliver. When this returns, no record is handed to the journal any more that
    /// was held against the old ones only.
    pub fn set_deliverable(&self, deliverable: Deliverable) {
        // Appends hold the lock while they queue a body, which takes microseconds.
        *self.0.deliverable.write().unwrap_or_else(PoisonError::into_inner) = deliverable;
    }

    /// The bounds of what the sinks can deliver.
    pub fn deliverable(&self) -> Deliverable {
        self.bounds().clone()
    }

    fn bounds(&self) -> RwLockReadGuard<'_, Deliverable> {
        self.0.deliverable.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bound on records of this protocol and signal: the tighter of what every sink can deliver and what can be
    /// received.
    pub fn size_limit(&self, protocol: Protocol, signal: Signal) -> SizeLimit {
        let bound = self.bounds().size_limit(protocol, signal);
        let ceiling = usize::try_from(self.0.arena.ceiling(Share::Ingest)).unwrap_or(usize::MAX);
        SizeLimit { most: bound.most.min(ceiling).min(self.most_decoded()), ..bound }
    }

    /// Whether every sink can deliver a checked body of this size. Asked before the body is handed to the journal.
    ///
    /// # Errors
    /// `too_large` when some sink never could.
    pub fn check_deliverable(&self, protocol: Protocol, signal: Signal, size: Size) -> Result<(), Rejection> {
        Ok(self.size_limit(protocol, signal).check(size)?)
    }

    /// Passes the checked body of the request with this `permit` through the pipeline of its source, if that has one, hands
    /// what is left of it to the journal, and counts the outcome. Returns when it is durable. When the caller goes away
    /// after the pipeline, the body still counts as accepted, since it is written.
    ///
    /// # Errors
    /// When there is no memory for the pipeline, or the journal does not accept it.
    pub fn append<'a>(
        &'a self,
        permit: &'a Permit,
        open: OpenRequest,
        counts: Counts,
        mut batch: Batch,
    ) -> impl Future<Output = Result<(), Rejection>> + Send + 'a {
        if let Some(tenant) = open.tenant() {
            // The name was checked when the request came in.
            batch.meta.tenant = Tenant::new(tenant.name()).unwrap_or(Tenant::NONE);
        }
        // Limits are about what clients send, so they come before the pipeline.
        let queued = match (self.fits(&open, &batch.meta), self.pipeline_of(&open, &batch.meta)) {
            (Err(refused), _) => AppendState::Never(refuse(open, refused)),
            (Ok(()), Some(pipeline)) => match self.charge_turn() {
                Some(waiting_charge) => {
                    let passing =
                        self.append_through_pipeline(waiting_charge, pipeline, permit, open, counts, batch);
                    AppendState::Later(Box::pin(passing))
                }
                None => AppendState::Never(refuse(open, self.no_memory())),
            },
            (Ok(()), None) => {
                self.show(&open, &batch);
                self.queue(open, counts, batch)
            }
        };
        async move {
            match queued {
                AppendState::Now(appending) => appending.outcome().await,
                AppendState::Later(appending) => appending.await,
                AppendState::Never(refused) => Err(refused),
            }
        }
    }

    /// Queues a body for the disk: now and not when the future is first polled, so a connection's task has room for the wait
    /// alone, and not for the batch.
    fn queue(&self, open: OpenRequest, counts: Counts, batch: Batch) -> AppendState<'_> {
        match self.try_append_slot() {
            Some(place) => match PendingAppend::begin(place, open, counts, None, batch) {
                Ok(appending) => AppendState::Now(appending),
                Err(refused) => AppendState::Never(refused),
            },
            None => match self.charge_wait() {
                Some(paid) => AppendState::Later(Box::pin(self.append_later(paid, open, counts, batch))),
                None => AppendState::Never(refuse(open, self.no_memory())),
            },
        }
    }

    /// Shows the tap what goes to the journal.
    fn show(&self, open: &OpenRequest, batch: &Batch) {
        if let (Some(tap), Some(source)) = (&self.0.tap, open.source()) {
            let body = batch.from.checked_add(batch.len).and_then(|end| batch.window.get(batch.from..end));
            tap.offer(TapPoint::Source(source.name()), &batch.meta, body);
        }
    }

    /// Whether a checked body that is forwarded instead of journalled is within the limits of its request. Shows it to
    /// the tap.
    ///
    /// # Errors
    /// `too_large` when it is not.
    pub fn forward(&self, open: &OpenRequest, mut meta: Meta, body: &[u8]) -> Result<(), Rejection> {
        if let Some(tenant) = open.tenant() {
            meta.tenant = Tenant::new(tenant.name()).unwrap_or(Tenant::NONE);
        }
        self.fits(open, &meta)?;
        if let (Some(tap), Some(source)) = (&self.0.tap, open.source()) {
            tap.offer(TapPoint::Source(source.name()), &meta, Some(body));
        }
        Ok(())
    }

    /// Appends when a slot in the journal's queue is free.
    async fn append_later(
        &self,
        paid: Charge,
        open: OpenRequest,
        counts: Counts,
        batch: Batch,
    ) -> Result<(), Rejection> {
        let place = self.append_slot().await;
        drop(paid);
        match place {
            Some(place) => PendingAppend::begin(place, open, counts, None, batch)?.outcome().await,
            None => Err(refuse(open, self.no_memory())),
        }
    }

    /// Whether the request is within its limits of bytes and items.
    fn fits(&self, open: &OpenRequest, meta: &Meta) -> Result<(), Rejection> {
        let Some((table, books)) =
            self.0.rules.limits.as_ref().filter(|table| table.is_active()).zip(open.source())
        else {
            return Ok(());
        };
        let tenant = open.tenant().map(|tenant| tenant.name());
        table.fits(books, tenant, meta.raw_len.into(), meta.items.into()).map_err(|oversize| {
            let whole = |most: u64| usize::try_from(most).unwrap_or(usize::MAX);
            match oversize {
                RequestTooLarge::Bytes(most) => Rejection::too_large(whole(most)),
                RequestTooLarge::Items(most) => Rejection::too_many(whole(most)),
            }
        })
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Relaxed)
    }

    /// When a request that found no memory should be retried, in seconds: after what is charged now has passed through.
    pub fn memory_delay(&self) -> u32 {
        let usage = self.0.arena.usage();
        let receiving = |share: &&ShareUse| matches!(share.share, Share::Ingest | Share::Decode);
        self.0.memory.delay(usage.shares.iter().filter(receiving).map(|share| share.used).sum())
    }

    /// A delay of `seconds` for a client, somewhat more for some than for others.
    pub fn spread(&self, seconds: u64) -> u32 {
        self.0.memory.spread(seconds.max(1))
    }

    /// Refuses all new requests from now on.
    pub fn stop(&self) {
        self.0.stopping.store(true, Relaxed);
    }

    /// Updates the measured rates; to be called once a second.
    pub fn tick(&self) {
        self.0.memory.tick();
        if let Some(tap) = &self.0.tap {
            tap.tick();
        }
    }

    /// The refusal of a request for which there is no memory now, with the time to retry.
    pub fn no_memory(&self) -> Rejection {
        Rejection::canned(CannedRefusal::Memory).retry_after(self.memory_delay())
    }

    fn disk(&self, refused: JournalRefused) -> Rejection {
        let canned = match refused {
            JournalRefused::Disk { trouble: tidegate_journal::DiskError::Quota, .. } => CannedRefusal::Quota,
            JournalRefused::Disk { trouble: tidegate_journal::DiskError::Full, .. } => {
                CannedRefusal::DiskFull
            }
            JournalRefused::Unfit => return Rejection::too_large(self.most_decoded()),
            _ => CannedRefusal::DiskFails,
        };
        let seconds = match refused {
            JournalRefused::Disk { retry_after, .. } => retry_after.as_secs(),
            _ => 1,
        };
        Rejection::canned(canned).retry_after(self.0.memory.spread(seconds))
    }
}

/// The part of a request that limits are about.
#[derive(Clone, Copy)]
struct Demand {
    now: Moment,
    /// The bytes of the body, where they are known.
    bytes: u64,
    journalled: bool,
}

impl Demand {
    #[inline]
    fn of(caller: &Caller<'_>) -> Demand {
        Demand { now: caller.now, bytes: caller.bytes.unwrap_or(0), journalled: caller.journalled }
    }
}

const EXPIRED: Rejection = Rejection::new(
    Refusal::Unauthorized,
    "the client's certificate has expired since this connection was opened; connect again with one that is valid\n",
);

/// Checks every request of every source, whatever the rules are.
#[inline]
fn may_come(caller: &Caller<'_>) -> Result<(), Rejection> {
    // Connections end with their certificates; this is for the request that crosses that.
    if caller.certificate.is_some_and(Certificate::has_expired) {
        return Err(EXPIRED);
    }
    browser_guard::check(caller)
}

/// The state of an append.
enum AppendState<'a> {
    Now(PendingAppend<'a>),
    Later(Pin<Box<dyn Future<Output = Result<(), Rejection>> + Send + 'a>>),
    Never(Rejection),
}

/// A body on its way to the disk.
struct PendingAppend<'a> {
    // Dropped before the slot: the slot is free when the queue's is.
    queued: tidegate_journal::AppendFuture<'a>,
    place: AppendSlot<'a>,
    handed_over: SubmittedRequest,
    bytes: u64,
}

impl<'a> PendingAppend<'a> {
    /// Queues a body, unless the bounds became tighter since it was checked.
    fn begin(
        place: AppendSlot<'a>,
        open: OpenRequest,
        counts: Counts,
        pipeline_items: Option<PipelineItems>,
        batch: Batch,
    ) -> Result<PendingAppend<'a>, Rejection> {
        let gate: &'a Gate = place.0;
        // Held until the body is queued: `set_deliverable` waits for that.
        let bounds = gate.bounds();
        let Meta { protocol, signal, .. } = batch.meta;
        if let Err(refused) =
            bounds.size_limit(protocol, signal).check(Size::of_record(&batch.meta, batch.len))
        {
            return Err(refuse(open, refused.into()));
        }
        // Counted before it can be in the journal.
        let handed_over = match pipeline_items {
            Some(pipeline_items) => open.submit_from_pipeline(counts, pipeline_items),
            None => open.submit(counts),
        };
        let queued = gate.0.journal.append(batch);
        drop(bounds);
        Ok(PendingAppend { queued, place, handed_over, bytes: counts.bytes() })
    }

    async fn outcome(self) -> Result<(), Rejection> {
        let PendingAppend { queued, place, handed_over, bytes } = self;
        let gate = place.0;
        let refused = match queued.await {
            Ok(_receipt) => {
                handed_over.accept();
                gate.0.memory.record(bytes);
                return Ok(());
            }
            Err(JournalRefused::Closed) => stopping().retry_after(gate.0.memory.spread(1)),
            Err(JournalRefused::Busy) => gate.no_memory(),
            Err(other) => gate.disk(other),
        };
        handed_over.refuse(refused.reason);
        Err(refused)
    }
}

/// Counts a refusal.
fn refuse(open: OpenRequest, refused: Rejection) -> Rejection {
    open.refuse(refused.reason);
    refused
}

const fn stopping() -> Rejection {
    Rejection::canned(CannedRefusal::Stopping)
}

#[cfg(test)]
mod tests;
