//! One walk over the series of a body: each is hashed, and copied to the requests of its members.

use super::{BodyInfo, Distributor};
use crate::batch::DropReason;
use crate::decoding::{END_SLACK, decode, state_bytes};
use crate::egress_budget::{BudgetError, Charged};
use crate::losses::Losses;
use crate::thanos_receive::request::OpenRequest;
use tidegate_arena::{PAGE, Window};
use tidegate_journal::{Encoding, Meta, Protocol, Tenant};
use tidegate_ledger::Dropped;
use tidegate_ring::{Replicas, RingRef, Unplaced};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::{Symbols, translate, v1, view_within};
use tidegate_wire::snappy;

/// Bytes of a body that are walked before others get their turn.
const TURN: usize = 128 << 10;
/// The memory for the symbol table of a body of 2.0, in bytes.
const SYMBOLS: usize = 64 << 10;

impl Distributor {
    /// Spreads a body as it came.
    pub(super) async fn spread_body(
        &mut self,
        meta: &Meta,
        body: Charged<Window>,
        info: BodyInfo,
    ) -> Result<Losses, DropReason> {
        let raw = match meta.encoding {
            Encoding::Identity => body,
            Encoding::Snappy => {
                let len = snappy::decoded_len(&body).map_err(|_| DropReason::Damaged)?;
                let mut raw = self.window(len).await?;
                let written = snappy::decode(&body, raw.spare_mut()).map_err(|_| DropReason::Damaged)?;
                raw.advance(written);
                self.release(body);
                raw
            }
            encoding => {
                let charge = self.charge(state_bytes(encoding)).await?;
                let mut raw = self.window((meta.raw_len as usize).saturating_add(END_SLACK)).await?;
                let len = decode(encoding, &body, raw.spare_mut()).await.map_err(|_| DropReason::Damaged)?;
                raw.advance(len);
                self.own = self.own.saturating_sub(charge.bytes());
                drop(charge);
                self.release(body);
                raw
            }
        };
        let (placed, untranslatable) = match meta.protocol {
            Protocol::RemoteWrite1 => (Box::pin(self.walk(&raw, info)).await?, None),
            Protocol::RemoteWrite2 => (Box::pin(self.walk_v2(&raw, info)).await?, None),
            Protocol::Otlp => {
                let (placed, untranslatable) = Box::pin(self.walk_otlp(&raw, info)).await?;
                (placed, Some(untranslatable))
            }
            _ => return Err(DropReason::Damaged),
        };
        // Metadata is an item of a body, and has no place in a request to an ingestor.
        let untranslatable = untranslatable
            .unwrap_or_else(|| u64::from(meta.items).saturating_sub(placed.items + placed.unplaced));
        let mut losses = Losses::of(Dropped::Untranslatable, untranslatable);
        losses.add(Dropped::Rejected, placed.unplaced);
        Ok(losses)
    }

    /// Spreads the series of a body of 1.0.
    pub(super) async fn walk(&mut self, raw: &[u8], info: BodyInfo) -> Result<Placed, DropReason> {
        let mut placed = Placed::default();
        let mut ring: KnownRing = None;
        let mut walked = 0;
        for series in v1::Request::new(raw).series() {
            let target = self.target(&series, info, &mut ring, &mut placed);
            for (slot, replica) in self.slots(&target, info) {
                if !self.copy_now(slot, &target, info) {
                    Box::pin(self.copy((slot, replica), &target, info)).await?;
                }
            }
            walked += series.message().len();
            if walked >= TURN {
                walked = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(placed)
    }

    /// The same of 2.0: each series is written as one of 1.0.
    async fn walk_v2(&mut self, raw: &[u8], info: BodyInfo) -> Result<Placed, DropReason> {
        let mut symbols = Symbols::new();
        let request = view_within(raw, SYMBOLS, &mut symbols).map_err(|_| DropReason::Damaged)?;
        let (mut placed, mut ring, mut walked) = (Placed::default(), None, 0);
        let mut scratch = self.window(PAGE).await?;
        for series in request.series() {
            loop {
                let mut out = SliceOutput::new(scratch.spare_mut());
                let written = translate::series_to_v1(std::iter::once(series), &mut out);
                let len = out.len();
                if written.is_ok() {
                    scratch.advance(len);
                    break;
                }
                let longer = 2 * scratch.bytes();
                self.release(scratch);
                scratch = self.window(longer).await?;
            }
            for series in v1::Request::new(&scratch).series() {
                let target = self.target(&series, info, &mut ring, &mut placed);
                for (slot, replica) in self.slots(&target, info) {
                    if !self.copy_now(slot, &target, info) {
                        Box::pin(self.copy((slot, replica), &target, info)).await?;
                    }
                }
            }
            scratch.clear();
            walked += series.message().len();
            if walked >= TURN {
                walked = 0;
                tokio::task::yield_now().await;
            }
        }
        self.release(scratch);
        Ok(placed)
    }

    /// Finds the members of one series.
    #[inline]
    fn target<'s>(
        &mut self,
        series: &v1::Series<'s>,
        info: BodyInfo,
        known: &mut KnownRing,
        placed: &mut Placed,
    ) -> Target<'s> {
        let label = self.context.settings.split_tenant_label.as_ref().map(String::as_bytes);
        let split = label.and_then(|label| {
            let (value, parts) = series.without_label(label)?;
            // A value that cannot be a tenant stays a label.
            Some((Tenant::new(str::from_utf8(value).ok()?)?, parts))
        });
        let skipped = label.filter(|_| split.is_some());
        let (tenant, parts) = split.unwrap_or((info.tenant, [series.message(), &[]]));
        self.hasher.tenant(tenant.as_str().as_bytes());
        let hasher = &mut self.hasher;
        let items = series.visit_labels(|label| {
            if skipped != Some(label.name) {
                hasher.label(label.name, label.value);
            }
        });
        let hash = self.hasher.finish();
        if known.as_ref().is_none_or(|(of, _)| *of != tenant) {
            *known = Some((tenant, self.rings.rings.for_tenant(tenant.as_str())));
        }
        let members = match known {
            Some((_, Ok(ring))) => ring.members(hash),
            Some((_, Err(unplaced))) => {
                placed.unplaced += items;
                let text = format!("tenant `{}`: {unplaced}", tenant.as_str());
                self.context.health.noted(&text);
                return Target { tenant, parts, items, members: Replicas::default() };
            }
            None => Replicas::default(),
        };
        placed.items += items;
        Target { tenant, parts, items, members }
    }

    /// The slots of the requests that a series goes to, with their replicas.
    fn slots(&self, target: &Target<'_>, info: BodyInfo) -> impl Iterator<Item = (usize, u8)> + use<> {
        let replication = self.context.settings.ring.replication;
        let members = target.members;
        (0..members.len()).filter_map(move |index| {
            let (replica, member) = (u8::try_from(index).ok()?, *members.get(index)?);
            let is_wanted = info.replica.is_none_or(|wanted| wanted == replica);
            is_wanted.then_some((usize::from(member) * replication + index, replica))
        })
    }

    /// Copies a series to the request in a slot, if that takes it without a wait; says whether it did.
    #[inline]
    fn copy_now(&mut self, slot: usize, target: &Target<'_>, info: BodyInfo) -> bool {
        !self.is_full(slot, target, info) && matches!(self.try_copy(slot, target, info), Some(Ok(())))
    }

    /// Whether the request in a slot takes no more of this.
    fn is_full(&self, slot: usize, target: &Target<'_>, info: BodyInfo) -> bool {
        self.open.get(slot).and_then(Option::as_ref).is_some_and(|open| {
            *open.tenant() != target.tenant
                || open.raw_len() >= self.most
                || (open.is_full_of_records() && !open.has(info.origin))
        })
    }

    /// Copies a series to the request in a slot, however long it takes.
    async fn copy(
        &mut self,
        (slot, replica): (usize, u8),
        target: &Target<'_>,
        info: BodyInfo,
    ) -> Result<(), DropReason> {
        if self.is_full(slot, target, info) {
            self.seal(slot).await;
        }
        loop {
            let refused = match self.try_copy(slot, target, info) {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => error,
                None => match self.open(slot, target.tenant, replica, info).await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
            };
            self.make_room(refused).await?;
        }
    }

    /// Copies a series to an open request; nothing where none is open.
    fn try_copy(
        &mut self,
        slot: usize,
        target: &Target<'_>,
        info: BodyInfo,
    ) -> Option<Result<(), BudgetError>> {
        let open = self.open.get_mut(slot)?.as_mut()?;
        let is_new = !open.has(info.origin);
        let pushed = open.push(target.parts, target.items, info.origin, &mut self.coder);
        if pushed.is_ok() && is_new {
            match info.origin {
                super::Origin::Record(sequence) => self.context.settlement.add_request(sequence),
                super::Origin::Log => self.context.settlement.add_rerouted(),
            }
        }
        Some(pushed)
    }

    /// Opens a request.
    async fn open(
        &mut self,
        slot: usize,
        tenant: Tenant,
        replica: u8,
        info: BodyInfo,
    ) -> Result<(), BudgetError> {
        let room = &self.context.room;
        let windows = (room.window(PAGE).await?, room.window(PAGE).await?);
        let head = self.head(tenant, replica);
        let open = OpenRequest::new(self.context.settings.layout, head, windows, info.received_at_ns);
        if let Some(place) = self.open.get_mut(slot) {
            *place = Some(open);
        }
        Ok(())
    }
}

/// The ring of a tenant, looked up once for all its series in a row.
type KnownRing = Option<(Tenant, Result<RingRef, Unplaced>)>;

/// Where a series goes.
struct Target<'s> {
    tenant: Tenant,
    /// Its message, without the label that became its tenant.
    parts: [&'s [u8]; 2],
    items: u64,
    members: Replicas,
}

/// What became of the items of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Placed {
    /// Those that are in requests.
    pub(super) items: u64,
    /// Those of tenants without a ring.
    pub(super) unplaced: u64,
}
