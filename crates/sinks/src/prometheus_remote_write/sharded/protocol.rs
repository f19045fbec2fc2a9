//! Remote write, as the engine uses it.

use super::message::{Coder, Field, Form, Message};
use super::peer::Peer;
use super::settings::ShardBy;
use crate::batch::DropReason;
use crate::delivery::EndpointError;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::journal_consumer::JournalConsumer;
use crate::losses::Losses;
use crate::prometheus_remote_write::{Settings, Translation};
use crate::spread::series::SeriesProtocol;
use crate::spread::{BodyInfo, Distributor, RequestHead, RequestLen, RingSource, SpreadProtocol, Target};
use bytes::Bytes;
use tidegate_journal::{Meta, Protocol, Tenant};
use tidegate_ring::{Replicas, Ring, SeriesHasher, hash_bytes};
use tidegate_wire::remote_write::v1;

/// Receivers of remote write that each have a part of the series.
pub(super) struct ShardedProtocol {
    pub(super) settings: Settings,
    pub(super) shard_by: ShardBy,
}

/// The tools of a distributor.
pub(super) struct Tools {
    pub(super) coder: Coder,
    hasher: SeriesHasher,
}

impl SpreadProtocol for ShardedProtocol {
    const NOTE: u8 = 2;
    /// Prometheus answers 400 to a request with one sample out of order, and stores nothing of it.
    const REFUSES_WHOLE: bool = true;
    type Form = Form;
    type Item<'i> = Field<'i>;
    type Placement = Option<Ring>;
    type Source = RingSource;
    type Message = Message;
    type Peer = Peer;
    type Tools = Tools;

    fn tools(&self) -> Tools {
        Tools { coder: Coder::new(), hasher: SeriesHasher::new() }
    }

    /// None where receivers are not told.
    fn tenant(&self, tenant: Tenant) -> Tenant {
        if self.settings.tenant_header.is_some() { tenant } else { Tenant::NONE }
    }

    fn attached(&self, consumer: &mut JournalConsumer) {
        // There is no way from its metricsets to series.
        consumer.pass_over_all_of(Protocol::Intake);
    }

    fn peer(&self, target: &str) -> Result<Peer, EndpointError> {
        Peer::new(target, &self.settings)
    }

    async fn open(
        &self,
        _: &RequestHead<Form>,
        last: RequestLen,
        room: &EgressBudget,
    ) -> Result<Message, BudgetError> {
        Message::new(last, room).await
    }

    fn shares(&self, ring: &Option<Ring>, members: usize) -> Vec<Option<f64>> {
        let mut shares = vec![None; members];
        for (member, share) in ring.iter().flat_map(Ring::key_shares) {
            if let Some(place) = shares.get_mut(usize::from(member)) {
                *place = Some(share);
            }
        }
        shares
    }

    async fn spread(
        distributor: &mut Distributor<Self>,
        meta: &Meta,
        raw: &[u8],
        info: &BodyInfo,
    ) -> Result<Losses, DropReason> {
        distributor.spread_series(meta, raw, info).await
    }

    async fn spread_again(
        distributor: &mut Distributor<Self>,
        _: &RequestHead<Form>,
        body: Bytes,
        info: &BodyInfo,
    ) -> Result<u64, DropReason> {
        distributor.spread_block(body, info).await
    }
}

impl SeriesProtocol for ShardedProtocol {
    type Known = ();

    fn otlp(&self) -> &Translation {
        &self.settings.otlp
    }

    #[inline]
    fn target<'s>(
        distributor: &mut Distributor<Self>,
        series: &v1::Series<'s>,
        _: &BodyInfo,
        (): &mut (),
    ) -> Target<'s, Self> {
        let Distributor { context, members, tools, .. } = distributor;
        let (protocol, hasher) = (&context.protocol, &mut tools.hasher);
        let mut is_placed = false;
        let items = series.visit_labels(|label| {
            if protocol.shard_by.has(label.name) {
                hasher.label(label.name, label.value);
                is_placed = true;
            }
        });
        if !is_placed {
            // All of them at one receiver could be more than it takes.
            series.visit_labels(|label| hasher.label(label.name, label.value));
        }
        let hash = hasher.finish();
        let members = members.placement.as_ref().map_or_else(Replicas::default, |ring| ring.members(hash));
        let item = (v1::field::TIMESERIES, series.message());
        Target { form: Form::V1, item, items, members }
    }

    fn metadata<'s>(
        distributor: &Distributor<Self>,
        family: &[u8],
        message: &'s [u8],
    ) -> Option<Target<'s, Self>> {
        let ring = distributor.members.placement.as_ref()?;
        let item = (v1::field::METADATA, message);
        Some(Target { form: Form::V1, item, items: 1, members: ring.members(hash_bytes(family)) })
    }
}
