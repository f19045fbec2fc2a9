//! Spreads the series of records over the requests of the members.

mod memory;
pub(super) mod otlp;
mod reroute;
mod walk;

use super::coder::Coder;
use super::member::{Member, MemberContext};
use super::request::{OpenRequest, Origin, RequestHead, SealedRequest};
use crate::batch::DropReason;
use crate::egress_budget::{BorrowTurn, BudgetError};
use crate::journal_consumer::{JournalConsumer, Record};
use crate::losses::Losses;
use crate::pipeline_stage::Staged;
use std::sync::Arc;
use tidegate_journal::Tenant;
use tidegate_ring::{MultiRing, SeriesHasher};
use tokio::time::Instant;

/// The rings with their members.
pub(super) struct Rings {
    pub(super) rings: MultiRing,
    /// The members, by their numbers in the rings.
    pub(super) members: Vec<Arc<Member>>,
}

/// Takes records apart, and fills the requests of members.
pub(super) struct Distributor {
    pub(super) context: Arc<MemberContext>,
    pub(super) rings: Rings,
    coder: Coder,
    hasher: SeriesHasher,
    /// Requests that take more series: by member and replica.
    open: Vec<Option<OpenRequest>>,
    /// The turn to borrow, for a record that needs more memory than the sink's own.
    turn: BorrowTurn,
    /// Memory of the record that is being distributed, in bytes.
    own: usize,
    /// The most bytes of a request before compression.
    most: usize,
}

/// What is known of a body besides its bytes.
#[derive(Clone, Copy)]
struct BodyInfo {
    tenant: Tenant,
    origin: Origin,
    received_at_ns: u64,
    /// The replica that its series are, where they were replicated before.
    replica: Option<u8>,
}

impl Distributor {
    pub(super) fn new(context: Arc<MemberContext>, rings: Rings) -> Distributor {
        let coder = Coder::new(context.settings.is_compressed);
        let turn = BorrowTurn::none();
        let open = Vec::new();
        let most = memory::longest_request(&context);
        let mut distributor =
            Distributor { context, rings, coder, hasher: SeriesHasher::new(), open, turn, own: 0, most };
        distributor.make_slots();
        distributor
    }

    /// Uses other rings from now on. No request is open.
    pub(super) fn set_rings(&mut self, rings: Rings) {
        self.rings = rings;
        self.make_slots();
    }

    fn make_slots(&mut self) {
        let slots = self.rings.members.len() * self.context.settings.ring.replication;
        self.open.clear();
        self.open.resize_with(slots, || None);
    }

    /// Spreads a record that the consumer has just given. What of it cannot be sent is in the losses of the record then.
    pub(super) async fn distribute(&mut self, consumer: &mut JournalConsumer, mut record: Record) {
        let sequence = record.sequence;
        self.context.settlement.begin(sequence);
        let losses = match Box::pin(self.spread(consumer, &mut record)).await {
            Ok(losses) => losses,
            Err(why) => {
                self.context
                    .health
                    .noted("a record cannot be distributed: it is damaged, or larger than the memory");
                Losses::of(why.reason(), u64::from(record.meta.items))
            }
        };
        self.own = 0;
        self.context.settlement.distributed(sequence, losses);
        if self.turn.is_some() {
            self.seal_all().await;
        }
    }

    async fn spread(
        &mut self,
        consumer: &mut JournalConsumer,
        record: &mut Record,
    ) -> Result<Losses, DropReason> {
        let staged = loop {
            let room = self.context.room.clone();
            match consumer.stage(record, &room).await {
                Err(DropReason::Room(error)) => self.make_room(error).await?,
                staged => break staged?,
            }
        };
        if let Staged::Empty = staged {
            return Ok(Losses::NONE);
        }
        let mut body = self.window(record.body_len as usize).await?;
        consumer.read_into(record, &mut body)?;
        let tenant = match record.meta.tenant {
            Tenant::NONE => self.context.settings.default_tenant,
            tenant => tenant,
        };
        let origin = Origin::Record(record.sequence);
        let info = BodyInfo { tenant, origin, received_at_ns: record.meta.received_at_ns, replica: None };
        Box::pin(self.spread_body(&record.meta, body, info)).await
    }

    /// When the first open request has waited long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        let oldest = self.open.iter().flatten().map(|open| open.opened).min()?;
        oldest.checked_add(self.context.settings.linger)
    }

    /// Seals requests that have waited long enough.
    pub(super) async fn seal_old(&mut self) {
        let (now, linger) = (Instant::now(), self.context.settings.linger);
        for slot in 0..self.open.len() {
            let is_old = |open: &OpenRequest| open.opened.checked_add(linger).is_none_or(|due| due <= now);
            if self.open.get(slot).and_then(Option::as_ref).is_some_and(is_old) {
                self.seal(slot).await;
            }
        }
        self.return_turn().await;
    }

    /// Seals everything.
    pub(super) async fn seal_all(&mut self) {
        for slot in 0..self.open.len() {
            self.seal(slot).await;
        }
        self.return_turn().await;
    }

    /// Seals a request and gives it to its member.
    async fn seal(&mut self, slot: usize) {
        let Some(mut open) = self.open.get_mut(slot).and_then(Option::take) else { return };
        loop {
            match open.seal(&mut self.coder) {
                Ok(sealed) => return self.give(slot, sealed),
                Err(unsealed) => {
                    open = unsealed;
                    if self.make_room(BudgetError::WithoutTurn).await.is_err() {
                        self.wait_for_memory().await;
                    }
                }
            }
        }
    }

    /// Seals a request if that needs no wait; says whether it was.
    fn try_seal(&mut self, slot: usize) -> bool {
        let Some(open) = self.open.get_mut(slot).and_then(Option::take) else { return false };
        match open.seal(&mut self.coder) {
            Ok(sealed) => {
                self.give(slot, sealed);
                true
            }
            Err(unsealed) => {
                if let Some(place) = self.open.get_mut(slot) {
                    *place = Some(unsealed);
                }
                false
            }
        }
    }

    fn give(&self, slot: usize, sealed: SealedRequest) {
        let member = slot / self.context.settings.ring.replication.max(1);
        if let Some(member) = self.rings.members.get(member) {
            member.queue.push(sealed);
        }
    }

    /// The head of a new request.
    fn head(&self, tenant: Tenant, replica: u8) -> RequestHead {
        RequestHead { tenant, replica, is_compressed: self.coder.is_compressed(), copies: 0 }
    }
}
