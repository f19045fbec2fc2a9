//! Hands a checked body to the journal.

use super::append_slots::AppendSlot;
use super::{Gate, stopping};
use crate::deliverable::Size;
use crate::permit::Permit;
use crate::rejection::Rejection;
use std::pin::Pin;
use tidegate_arena::Charge;
use tidegate_journal::{AppendError, AppendFuture, Batch, Meta, Tenant};
use tidegate_ledger::{Counts, OpenRequest, PipelineItems, SubmittedRequest};
use tidegate_limit::RequestTooLarge;
use tidegate_tap::TapPoint;

impl Gate {
    /// Passes the checked body of the request with this `permit` through the pipeline of its source, if that has one, hands
    /// what is left of it to the journal, and counts the outcome. Returns when it is durable. When the caller goes away
    /// after the pipeline, the body still counts as accepted, since it is written. What is for one sink alone was accepted
    /// before, and does not pass the pipeline again.
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
        let pipeline = match permit.recipient() {
            None => self.pipeline_of(&open, &batch.meta),
            Some(_) => None,
        };
        // Limits are about what clients send, so they come before the pipeline.
        let queued = match (self.fits(&open, &batch.meta), pipeline) {
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
                let batch = match permit.recipient() {
                    None => Ok(batch),
                    Some(sink) => batch.to_sink(sink),
                };
                match batch {
                    Ok(batch) => self.queue(open, counts, batch),
                    Err(unfit) => AppendState::Never(refuse(open, self.disk(unfit))),
                }
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
    pub(super) fn show(&self, open: &OpenRequest, batch: &Batch) {
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
    pub(super) async fn append_later(
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
}

/// The state of an append.
enum AppendState<'a> {
    Now(PendingAppend<'a>),
    Later(Pin<Box<dyn Future<Output = Result<(), Rejection>> + Send + 'a>>),
    Never(Rejection),
}

/// A body on its way to the disk.
pub(super) struct PendingAppend<'a> {
    // Dropped before the slot: the slot is free when the queue's is.
    queued: AppendFuture<'a>,
    place: AppendSlot<'a>,
    handed_over: SubmittedRequest,
    bytes: u64,
}

impl<'a> PendingAppend<'a> {
    /// Queues a body, unless the bounds became tighter since it was checked.
    pub(super) fn begin(
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

    pub(super) async fn outcome(self) -> Result<(), Rejection> {
        let PendingAppend { queued, place, handed_over, bytes } = self;
        let gate = place.0;
        let refused = match queued.await {
            Ok(_receipt) => {
                handed_over.accept();
                gate.0.memory.record(bytes);
                return Ok(());
            }
            Err(AppendError::Closed) => stopping().retry_after(gate.0.memory.spread(1)),
            Err(AppendError::Busy) => gate.no_memory(),
            Err(other) => gate.disk(other),
        };
        refused.close_submitted(handed_over);
        Err(refused)
    }
}

/// Counts a refusal.
pub(super) fn refuse(open: OpenRequest, refused: Rejection) -> Rejection {
    refused.close(open);
    refused
}
