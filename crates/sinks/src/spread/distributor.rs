//! Spreads the items of records over the requests of the members.

mod copy;
mod memory;
mod reroute;
mod spare;
mod tenant;

use super::member::{Member, MemberContext};
use super::protocol::SpreadProtocol;
use super::request::{OpenRequest, Origin, RequestLen, SealedRequest};
use crate::batch::DropReason;
use crate::decoding::{END_SLACK, decode, state_bytes};
use crate::egress_budget::{BorrowTurn, BudgetError, Charged};
use crate::journal_consumer::{JournalConsumer, Record};
use crate::losses::Losses;
use crate::pipeline_stage::Staged;
use crate::prometheus_remote_write::Relabeling;
pub(crate) use copy::Target;
pub(super) use memory::longest_request;
use spare::SpareWindows;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use tenant::CurrentTenant;
use tidegate_arena::Window;
use tidegate_journal::{Encoding, Meta, Tenant};
use tidegate_wire::snappy;
use tokio::time::Instant;

/// The shortest time between two looks at a request that waits behind others, whatever `linger` is: zero would keep the distributor busy.
const POSTPONEMENT: Duration = Duration::from_millis(10);

/// The members, and which keys each has.
pub(crate) struct Members<P: SpreadProtocol> {
    pub(crate) placement: P::Placement,
    /// The members, by their numbers in the placement.
    pub(super) list: Vec<Arc<Member<P>>>,
}

impl<P: SpreadProtocol> Members<P> {
    /// Whether one has this address.
    pub(super) fn has(&self, address: &str) -> bool {
        self.list.iter().any(|member| &*member.address == address)
    }
}

/// Takes records apart, and fills the requests of members.
pub(crate) struct Distributor<P: SpreadProtocol> {
    pub(crate) context: Arc<MemberContext<P>>,
    pub(crate) members: Members<P>,
    pub(crate) tools: P::Tools,
    /// The tenant of the items that are placed.
    pub(crate) current: CurrentTenant,
    /// Relabels series that OTLP was translated to.
    pub(super) relabeling: Option<Relabeling>,
    /// Requests that take more items: by member and replica.
    open: Vec<Option<OpenRequest<P>>>,
    /// How long the requests before them became.
    last: Vec<RequestLen>,
    /// The turn to borrow, for a record that needs more memory than the sink's own.
    turn: BorrowTurn,
    /// Memory of the record that is being distributed, in bytes.
    pub(super) own: usize,
    /// Windows of the record before.
    spare: SpareWindows,
    /// The most bytes of a request before compression.
    most: usize,
    /// Items of the log record that is being rerouted that are in requests and count in the books.
    rerouted: u64,
    /// Records before this one were in the journal at the start: they may have been sent before.
    pub(super) sent_before: u64,
}

/// A body's facts besides its bytes.
pub(crate) struct BodyInfo {
    pub(crate) tenant: Tenant,
    origin: Origin,
    received_at_ns: u64,
    /// The replica that its items are, where they were replicated before.
    replica: Option<u8>,
}

impl BodyInfo {
    /// Whether a replica of its items is to be sent.
    #[inline]
    fn wants(&self, replica: usize) -> bool {
        self.replica.is_none_or(|wanted| usize::from(wanted) == replica)
    }
}

impl<P: SpreadProtocol> Distributor<P> {
    pub(super) fn new(
        context: Arc<MemberContext<P>>,
        members: Members<P>,
        relabeling: Option<Relabeling>,
    ) -> Distributor<P> {
        let tools = context.protocol.tools();
        let turn = BorrowTurn::none();
        let (open, last) = (Vec::new(), Vec::new());
        let most = longest_request(context.room.part(), context.settings.max_request_bytes);
        let (own, rerouted, sent_before) = (0, 0, 0);
        let mut distributor = Distributor {
            context,
            members,
            tools,
            current: CurrentTenant::new(),
            relabeling,
            open,
            last,
            turn,
            own,
            spare: SpareWindows::default(),
            most,
            rerouted,
            sent_before,
        };
        distributor.make_slots();
        distributor
    }

    /// Uses other members from now on. No request is open.
    pub(super) fn set_members(&mut self, members: Members<P>) {
        self.members = members;
        self.make_slots();
    }

    fn make_slots(&mut self) {
        let slots = self.members.list.len() * self.context.settings.replication;
        self.open.clear();
        self.open.resize_with(slots, || None);
        self.last.clear();
        self.last.resize(slots, RequestLen::default());
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
        // Joined with a record that was sent before a crash, others would be refused with it.
        let is_alone = P::REFUSES_WHOLE && sequence < self.sent_before;
        if self.turn.is_some() || is_alone {
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
        let raw = Box::pin(self.decoded(&record.meta, body)).await?;
        self.current.set(&self.context.protocol.tenant(info.tenant));
        let spread = Box::pin(P::spread(self, &record.meta, &raw, &info)).await;
        self.keep_spare(raw);
        spread
    }

    /// A body before compression.
    async fn decoded(&mut self, meta: &Meta, body: Charged<Window>) -> Result<Charged<Window>, DropReason> {
        let raw = match meta.encoding {
            Encoding::Identity => return Ok(body),
            Encoding::Snappy => {
                let len = snappy::decoded_len(&body).map_err(|_| DropReason::Damaged)?;
                let mut raw = self.window(len).await?;
                let written = snappy::decode(&body, raw.spare_mut()).map_err(|_| DropReason::Damaged)?;
                raw.advance(written);
                raw
            }
            encoding => {
                let charge = self.charge(state_bytes(encoding)).await?;
                let mut raw = self.window((meta.raw_len as usize).saturating_add(END_SLACK)).await?;
                let len = decode(encoding, &body, raw.spare_mut()).await.map_err(|_| DropReason::Damaged)?;
                raw.advance(len);
                self.own = self.own.saturating_sub(charge.bytes());
                raw
            }
        };
        self.keep_spare(body);
        Ok(raw)
    }

    /// When the first open request has waited long enough, or the windows that are kept for the next record.
    pub(super) fn due(&self) -> Option<Instant> {
        let opened = self.open.iter().flatten().map(|open| open.opened);
        let oldest = opened.chain(self.spare.since()).min()?;
        oldest.checked_add(self.context.settings.linger)
    }

    /// Seals requests that have waited long enough, and gives up windows that were kept for as long. A request goes on filling while others
    /// wait for its member: it would only wait behind them, and a short one takes a page.
    pub(super) async fn seal_old(&mut self) {
        let (now, linger) = (Instant::now(), self.context.settings.linger);
        for slot in 0..self.open.len() {
            let is_next = self.is_next(slot);
            let Some(open) = self.open.get_mut(slot).and_then(Option::as_mut) else { continue };
            if open.opened.checked_add(linger).is_some_and(|due| due > now) {
                continue;
            }
            if is_next {
                self.seal(slot).await;
            } else {
                open.opened = now + POSTPONEMENT.saturating_sub(linger);
            }
        }
        if self.spare.since().and_then(|since| since.checked_add(linger)).is_some_and(|due| due <= now) {
            self.spare.clear();
        }
        self.return_turn().await;
    }

    /// Seals everything.
    pub(super) async fn seal_all(&mut self) {
        self.spare.clear();
        for slot in 0..self.open.len() {
            self.seal(slot).await;
        }
        self.return_turn().await;
    }

    /// Seals a request and gives it to its member.
    async fn seal(&mut self, slot: usize) {
        let Some(mut open) = self.open.get_mut(slot).and_then(Option::take) else { return };
        let raw = open.raw_len();
        loop {
            match open.seal(&mut self.tools) {
                Ok(sealed) => return self.give(slot, raw, sealed),
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
        let raw = open.raw_len();
        match open.seal(&mut self.tools) {
            Ok(sealed) => {
                self.give(slot, raw, sealed);
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

    /// Whether a request that is sealed now would be the next one of its member.
    fn is_next(&self, slot: usize) -> bool {
        self.member(slot).is_none_or(|member| member.queue.is_empty())
    }

    /// The member of the requests in a slot.
    fn member(&self, slot: usize) -> Option<&Member<P>> {
        let member = slot / self.context.settings.replication.max(1);
        self.members.list.get(member).map(Arc::as_ref)
    }

    fn give(&mut self, slot: usize, raw: usize, sealed: SealedRequest<P::Form>) {
        if let Some(last) = self.last.get_mut(slot) {
            *last = RequestLen { raw, sealed: sealed.body.len() };
        }
        if let Some(member) = self.member(slot) {
            member.queue.push(sealed);
        }
    }
}
