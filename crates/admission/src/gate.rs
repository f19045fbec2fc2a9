//! The gate: the questions that a source asks, in the order in which it asks them.

mod places;
mod room;
mod turn;

use crate::access::Access;
use crate::caller::Caller;
use crate::deliverable::{Bound, Deliverable, Size};
use crate::passage::{self, Passage};
use crate::pressure::Pressure;
use crate::refused::{Refused, Words};
use crate::standing::Standing;
use crate::tenancy::Tenancy;
use arc_swap::ArcSwap;
use places::{Place, Places};
pub use room::{LIGHT, Room};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, Share, ShareUse};
use tidegate_journal::{Batch, Journal, Meta, Protocol, Refused as JournalRefused, Signal, Tenant};
use tidegate_ledger::{Counts, HandedOver, Open, Refusal};
use tidegate_limit::{Moment, Oversize, Table};
use tidegate_tap::{At, Tap};

/// Decides about every request of every source. Clones are the same gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>, Option<Arc<str>>);

struct Inner {
    arena: Arena,
    journal: Journal,
    /// Decides how long a request may wait for memory.
    memory_wait: Duration,
    memory: Pressure,
    /// Places in the journal's queue.
    places: Places,
    stopping: AtomicBool,
    /// Where what is handed to the journal can be looked at.
    tap: Option<Tap>,
    rules: Rules,
    /// What the sinks can deliver, as they are now.
    deliverable: ArcSwap<Deliverable>,
}

/// Who may send, whose it is, and how much that may be. By default everybody, nobody's, and anything.
#[derive(Clone, Default)]
pub struct Rules {
    /// Who may send.
    pub access: Access,
    /// Where a tenant's name is found; without it there are no tenants.
    pub tenancy: Option<Tenancy>,
    /// The limits of routes and tenants.
    pub limits: Option<Arc<Table>>,
}

impl Gate {
    /// A gate before `journal`, for requests that may wait for memory for as long as `memory_wait`.
    pub fn new(arena: Arena, journal: Journal, memory_wait: Duration) -> Gate {
        Gate::tapped(arena, journal, memory_wait, None)
    }

    /// The same, with a tap that sees every batch before the journal does.
    pub fn tapped(arena: Arena, journal: Journal, memory_wait: Duration, tap: Option<Tap>) -> Gate {
        Gate::ruled(arena, journal, memory_wait, tap, Rules::default())
    }

    /// The same, with rules.
    pub fn ruled(
        arena: Arena,
        journal: Journal,
        memory_wait: Duration,
        tap: Option<Tap>,
        rules: Rules,
    ) -> Gate {
        // So that the first flood finds its answers.
        crate::answer::prepare();
        let (memory, stopping) = (Pressure::default(), AtomicBool::new(false));
        let places = Places::of(&journal);
        let deliverable = ArcSwap::default();
        let inner = Inner { arena, journal, memory_wait, memory, places, stopping, tap, rules, deliverable };
        Gate(Arc::new(inner), None)
    }

    /// The same gate for those who come to one address: what does not name its tenant is `tenant`'s there.
    #[must_use]
    pub fn with_default(&self, tenant: &str) -> Gate {
        Gate(Arc::clone(&self.0), Some(tenant.into()))
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// Whether a request by `caller`, which is entered as `open`, may send its body at all. Asked when its head is
    /// known, so that what cannot be taken is refused before it costs anything: who it is, whose data it brings,
    /// whether the journal takes anything now, and whether that is more than is allowed, in this order.
    ///
    /// # Errors
    /// The first of these that forbids it. Whatever it would have held is given back.
    #[inline]
    pub fn enter(&self, caller: &Caller<'_>, open: &mut Open) -> Result<Passage, Refused> {
        let rules = &self.0.rules;
        if rules.access.is_open() && rules.tenancy.is_none() {
            self.head()?;
            return match &rules.limits {
                Some(table) if table.is_active() => self.limited(caller, open, table, None),
                _ => Ok(Passage::default()),
            };
        }
        self.identified(caller, open)
    }

    /// As [`enter`](Self::enter), for what is taken from strangers too. Says besides whether it is one: who shows nothing
    /// where something is asked for, and has therefore no say in whose its data is.
    ///
    /// # Errors
    /// As [`enter`](Self::enter). Credentials that are shown have to be right.
    pub fn enter_openly(&self, caller: &Caller<'_>, open: &mut Open) -> Result<(Passage, bool), Refused> {
        let rules = &self.0.rules;
        let shows = caller.certificate.is_some() || self.authorization(caller)?.is_some();
        if rules.access.is_open() || shows {
            return Ok((self.enter(caller, open)?, false));
        }
        let name =
            rules.tenancy.as_ref().map(|tenancy| tenancy.of_strangers(self.1.as_deref())).transpose()?;
        Ok((self.named(caller, open, name)?, true))
    }

    /// Asks who it is and whose it is, and then the rest.
    fn identified(&self, caller: &Caller<'_>, open: &mut Open) -> Result<Passage, Refused> {
        let rules = &self.0.rules;
        let authorization = self.authorization(caller)?;
        let granted = rules.access.check(authorization, caller.certificate, caller.peer)?;
        let default = self.1.as_deref();
        let name =
            rules.tenancy.as_ref().map(|tenancy| tenancy.name(caller, &granted, default)).transpose()?;
        self.named(caller, open, name)
    }

    /// Asks the rest of a request that is `name`'s.
    fn named(&self, caller: &Caller<'_>, open: &mut Open, name: Option<&str>) -> Result<Passage, Refused> {
        let rules = &self.0.rules;
        let table = rules.limits.as_ref().filter(|table| table.is_active());
        let tenants = table.and_then(|table| table.tenants());
        let tenant = tenants.zip(name).map(|(tenants, name)| (tenants.find(name), tenants, name));
        if let Some((id, tenants, name)) = tenant
            && let Some(page) = tenants.page(id, name)
        {
            open.belongs_to(page);
        }
        self.head()?;
        match table {
            Some(table) => self.limited(caller, open, table, tenant.map(|(id, ..)| id)),
            None => Ok(Passage::default()),
        }
    }

    /// What the caller shows: in `Authorization`, or in the header that stands in for it.
    fn authorization<'a>(&self, caller: &Caller<'a>) -> Result<Option<&'a [u8]>, Refused> {
        let twice = |_| Refused::new(Refusal::Headers, "who sends it may be said once\n");
        let shown = caller.headers.sole("authorization").map_err(twice)?;
        match (shown, self.0.rules.access.header()) {
            (None, Some(header)) => caller.headers.sole(header).map_err(twice),
            (shown, _) => Ok(shown),
        }
    }

    #[inline]
    fn limited(
        &self,
        caller: &Caller<'_>,
        open: &Open,
        table: &Arc<Table>,
        tenant: Option<tidegate_limit::TenantId>,
    ) -> Result<Passage, Refused> {
        let Some(route) = open.source().and_then(|books| table.route(books)) else {
            return Ok(Passage::default());
        };
        let free = if tenant.is_some() { self.0.arena.free(Share::Ingest) } else { u64::MAX };
        let hold = table.enter(caller.now, route, tenant, caller.bytes.unwrap_or(0), free);
        hold.map(|hold| Passage(Some(hold))).map_err(|denied| passage::refused(denied, &self.0.memory))
    }

    /// The body of a request turns out to have `bytes`, as far as is known.
    ///
    /// # Errors
    /// When that is more than its route or its tenant may have now; it has what it had then.
    #[inline]
    pub fn grow(&self, passage: &Passage, bytes: usize) -> Result<(), Refused> {
        match &passage.0 {
            Some(hold) if bytes as u64 > hold.bytes() => {
                let grown = hold.grow(Moment::now(), bytes as u64, self.0.arena.free(Share::Ingest));
                grown.map_err(|denied| {
                    let refused = passage::refused(denied, &self.0.memory);
                    if let Words::Standing(standing) = refused.words {
                        passage.deny(standing);
                    }
                    refused
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether anything can be taken now.
    ///
    /// # Errors
    /// When the gateway is stopping, or the journal is known not to take anything now.
    #[inline]
    pub fn head(&self) -> Result<(), Refused> {
        if self.0.stopping.load(Relaxed) {
            return Err(stopping().retry_after(self.0.memory.spread(1)));
        }
        match self.0.journal.barred() {
            None => Ok(()),
            Some(refused) => Err(self.disk(refused)),
        }
    }

    /// The most bytes that a body may decompress to, whatever a source allows.
    pub fn most_decoded(&self) -> usize {
        let ceiling = usize::try_from(self.0.arena.ceiling(Share::Decode)).unwrap_or(usize::MAX);
        ceiling.min(self.0.arena.window_len())
    }

    /// From now on the sinks can deliver this.
    pub fn set_deliverable(&self, deliverable: Deliverable) {
        self.0.deliverable.store(Arc::new(deliverable));
    }

    /// The bound on records of this protocol and signal: what every sink can deliver, and what can be received at all.
    pub fn bound(&self, protocol: Protocol, signal: Signal) -> Bound {
        let bound = self.0.deliverable.load().bound(protocol, signal);
        let ceiling = usize::try_from(self.0.arena.ceiling(Share::Ingest)).unwrap_or(usize::MAX);
        Bound { most: bound.most.min(ceiling).min(self.most_decoded()), ..bound }
    }

    /// Whether every sink can deliver a checked body of this size. Asked before it is given to the journal.
    ///
    /// # Errors
    /// `too_large` when one of them never could.
    pub fn judge(&self, protocol: Protocol, signal: Signal, size: Size) -> Result<(), Refused> {
        Ok(self.bound(protocol, signal).judge(size)?)
    }

    /// Gives a checked body to the journal and enters the verdict in the books. Returns when the body is
    /// durable. When the caller goes away meanwhile, the body still counts as accepted, since it is
    /// written.
    ///
    /// # Errors
    /// When the journal does not take it.
    pub fn append(
        &self,
        open: Open,
        counts: Counts,
        mut batch: Batch,
    ) -> impl Future<Output = Result<(), Refused>> + Send + '_ {
        if let Some(tenant) = open.tenant() {
            // Its name was found to be one when the request came in.
            batch.meta.tenant = Tenant::new(tenant.name()).unwrap_or(Tenant::NONE);
        }
        let fits = self.fits(&open, &batch.meta);
        if let Some(tap) = self.0.tap.as_ref().filter(|_| fits.is_ok()) {
            let body = batch.from.checked_add(batch.len).and_then(|end| batch.window.get(batch.from..end));
            tap.offer(At::Source, &batch.meta, body);
        }
        let queued = match (fits, self.place()) {
            // Queued here and not when the future is first polled: so a connection's task has room for the wait
            // alone, and not for the batch.
            (Ok(()), Some(place)) => Queued::Now(Appending::begin(place, open, counts, batch)),
            (Ok(()), None) => match self.paid_wait() {
                Some(paid) => Queued::Later(Box::pin(self.append_later(paid, open, counts, batch))),
                None => Queued::Never(refuse(open, self.no_memory())),
            },
            (Err(refused), _) => Queued::Never(refuse(open, refused)),
        };
        async move {
            match queued {
                Queued::Now(appending) => appending.outcome().await,
                Queued::Later(appending) => appending.await,
                Queued::Never(refused) => Err(refused),
            }
        }
    }

    /// The same when there is a place for it.
    async fn append_later(
        &self,
        paid: Charge,
        open: Open,
        counts: Counts,
        batch: Batch,
    ) -> Result<(), Refused> {
        let place = self.next_place().await;
        drop(paid);
        match place {
            Some(place) => Appending::begin(place, open, counts, batch).outcome().await,
            None => Err(refuse(open, self.no_memory())),
        }
    }

    /// Whether one request may have that much.
    fn fits(&self, open: &Open, meta: &Meta) -> Result<(), Refused> {
        let Some((table, books)) =
            self.0.rules.limits.as_ref().filter(|table| table.is_active()).zip(open.source())
        else {
            return Ok(());
        };
        let tenant = open.tenant().map(|tenant| tenant.name());
        table.fits(books, tenant, meta.raw_len.into(), meta.items.into()).map_err(|oversize| {
            let whole = |most: u64| usize::try_from(most).unwrap_or(usize::MAX);
            match oversize {
                Oversize::Bytes(most) => Refused::too_large(whole(most)),
                Oversize::Items(most) => Refused::too_many(whole(most)),
            }
        })
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Relaxed)
    }

    /// When a request that found no memory should return, in seconds: after what is charged now has
    /// passed through.
    pub fn memory_delay(&self) -> u32 {
        let usage = self.0.arena.usage();
        let receiving = |share: &&ShareUse| matches!(share.share, Share::Ingest | Share::Decode);
        self.0.memory.delay(usage.shares.iter().filter(receiving).map(|share| share.used).sum())
    }

    /// No new request is let in from now on.
    pub fn stop(&self) {
        self.0.stopping.store(true, Relaxed);
    }

    /// To be called once a second.
    pub fn tick(&self) {
        self.0.memory.tick();
        if let Some(tap) = &self.0.tap {
            tap.tick();
        }
    }

    /// The answer to a request for which there is no memory now: that it should return, and when.
    pub fn no_memory(&self) -> Refused {
        Refused::standing(Standing::Memory).retry_after(self.memory_delay())
    }

    fn disk(&self, refused: JournalRefused) -> Refused {
        let standing = match refused {
            JournalRefused::Disk { trouble: tidegate_journal::Trouble::Quota, .. } => Standing::Quota,
            JournalRefused::Disk { trouble: tidegate_journal::Trouble::Full, .. } => Standing::DiskFull,
            JournalRefused::Unfit => return Refused::too_large(self.most_decoded()),
            _ => Standing::DiskFails,
        };
        let seconds = match refused {
            JournalRefused::Disk { retry_after, .. } => retry_after.as_secs(),
            _ => 1,
        };
        Refused::standing(standing).retry_after(self.0.memory.spread(seconds))
    }
}

/// How an append is going.
enum Queued<'a> {
    Now(Appending<'a>),
    Later(Pin<Box<dyn Future<Output = Result<(), Refused>> + Send + 'a>>),
    Never(Refused),
}

/// A body on its way to the disk.
struct Appending<'a> {
    // Before the place, which is free when the queue's is.
    queued: tidegate_journal::Appending<'a>,
    place: Place<'a>,
    handed_over: HandedOver,
    bytes: u64,
}

impl<'a> Appending<'a> {
    fn begin(place: Place<'a>, open: Open, counts: Counts, batch: Batch) -> Appending<'a> {
        // In the books before it can be in the journal.
        let handed_over = open.hand_over(counts);
        let queued = place.0.0.journal.append(batch);
        Appending { queued, place, handed_over, bytes: counts.bytes }
    }

    async fn outcome(self) -> Result<(), Refused> {
        let Appending { queued, place, handed_over, bytes } = self;
        let gate = place.0;
        let refused = match queued.await {
            Ok(_receipt) => {
                handed_over.accept();
                gate.0.memory.passed(bytes);
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

/// Enters a refusal in the books.
fn refuse(open: Open, refused: Refused) -> Refused {
    open.refuse(refused.reason);
    refused
}

const fn stopping() -> Refused {
    Refused::standing(Standing::Stopping)
}

#[cfg(test)]
mod tests;
