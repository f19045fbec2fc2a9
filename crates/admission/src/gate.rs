//! The gate: the checks that a source asks for, in the order in which it asks.

mod admission;
mod append;
mod append_slots;
mod decode_buffer;
mod decode_turn;
mod head_series;
mod local;
mod rights;
mod source_pipeline;

use crate::access::Access;
use crate::canned_refusal::CannedRefusal;
use crate::deliverable::{Deliverable, Size, SizeLimit};
use crate::drain_estimate::DrainEstimate;
use crate::rejection::Rejection;
use crate::source_pipelines::SourcePipelines;
use crate::tenancy::Tenancy;
use append_slots::AppendSlots;
use arc_swap::ArcSwap;
pub use decode_buffer::{DecodeBuffer, MAX_INLINE_BYTES, TranslationCharge};
pub use head_series::HeadSeriesGate;
pub use rights::{BulkDefaults, RESEND_HEADER, SINK_HEADER};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tidegate_arena::{Arena, Share, ShareUse};
use tidegate_journal::{AppendError, DiskError, Journal, Protocol, Signal};
use tidegate_limit::AdmissionTable;
use tidegate_tap::Tap;

/// Decides about every request of every source. Clones share one gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>, Option<Arc<AddressTenancy>>);

/// How one listening address finds the tenant of a request, where it differs from the others.
#[derive(Debug)]
enum AddressTenancy {
    /// By the common rules, with a default tenant of its own.
    Default(Box<str>),
    /// By rules of its own.
    Own(Tenancy),
}

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
    /// The series of each tenant in the store behind, where they are limited.
    pub head_series: Option<Arc<HeadSeriesGate>>,
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
        Gate(Arc::clone(&self.0), Some(Arc::new(AddressTenancy::Default(tenant.into()))))
    }

    /// The same gate for one listening address with tenant rules of its own. It must be a gate with tenants.
    #[must_use]
    pub fn with_tenancy(&self, tenancy: Tenancy) -> Gate {
        Gate(Arc::clone(&self.0), Some(Arc::new(AddressTenancy::Own(tenancy))))
    }

    /// Its rules.
    pub fn rules(&self) -> &GateRules {
        &self.0.rules
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

    fn disk(&self, refused: AppendError) -> Rejection {
        let canned = match refused {
            AppendError::Disk { trouble: DiskError::Quota, .. } => CannedRefusal::Quota,
            AppendError::Disk { trouble: DiskError::Full, .. } => CannedRefusal::DiskFull,
            AppendError::Unfit => return Rejection::too_large(self.most_decoded()),
            _ => CannedRefusal::DiskFails,
        };
        let seconds = match refused {
            AppendError::Disk { retry_after, .. } => retry_after.as_secs(),
            _ => 1,
        };
        Rejection::canned(canned).retry_after(self.0.memory.spread(seconds))
    }
}

const fn stopping() -> Rejection {
    Rejection::canned(CannedRefusal::Stopping)
}

#[cfg(test)]
mod tests;
