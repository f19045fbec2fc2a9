//! Thanos' protocol, as the engine uses it.

use super::coder::Coder;
use super::forwarding::Forwarding;
use super::hashrings::HashringSource;
use super::message::{Form, Message};
use super::peer::Peer;
use super::settings::Settings;
use crate::batch::DropReason;
use crate::delivery::EndpointError;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::health::Health;
use crate::journal_consumer::JournalConsumer;
use crate::losses::Losses;
use crate::prometheus_remote_write::Translation;
use crate::spread::series::SeriesProtocol;
use crate::spread::{BodyInfo, CurrentTenant, Distributor, RequestHead, RequestLen, SpreadProtocol, Target};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_journal::{Meta, Protocol, Tenant};
use tidegate_ring::{MultiRing, Replicas, RingRef, SeriesHasher};
use tidegate_wire::remote_write::v1;

/// Thanos' ingestors, as their routers serve them.
pub(super) struct ThanosProtocol(pub(super) Settings, pub(super) Arc<Forwarding>);

/// The tools of a distributor.
pub(super) struct Tools {
    pub(super) coder: Coder,
}

/// The ring and the hasher of one tenant, for consecutive series of that tenant.
pub(super) struct TenantRing {
    /// The generation of the current tenant in which it is.
    generation: u64,
    hasher: SeriesHasher,
    ring: Option<RingRef>,
}

impl TenantRing {
    /// The ring of the current tenant.
    #[cold]
    fn find(rings: &MultiRing, current: &CurrentTenant, health: &Health) -> TenantRing {
        let tenant = current.tenant().as_str();
        let ring = rings.for_tenant(tenant);
        if let Err(unplaced) = &ring {
            health.noted(&format!("tenant `{tenant}`: {unplaced}"));
        }
        let hasher = SeriesHasher::for_tenant(tenant.as_bytes());
        TenantRing { generation: current.generation(), hasher, ring: ring.ok() }
    }
}

impl SpreadProtocol for ThanosProtocol {
    const NOTE: u8 = 1;
    type Form = Form;
    /// A series as the parts of its message.
    type Item<'i> = [&'i [u8]; 2];
    type Placement = MultiRing;
    type Source = HashringSource;
    type Message = Message;
    type Peer = Peer;
    type Tools = Tools;

    fn tools(&self) -> Tools {
        Tools { coder: Coder::new(self.0.is_compressed) }
    }

    fn attached(&self, consumer: &mut JournalConsumer) {
        // There is no way from its metricsets to series.
        consumer.pass_over_all_of(Protocol::Intake);
    }

    fn peer(&self, address: &str) -> Result<Peer, EndpointError> {
        Peer::new(address, &self.0, &self.1)
    }

    async fn open(
        &self,
        head: &RequestHead<Form>,
        last: RequestLen,
        room: &EgressBudget,
    ) -> Result<Message, BudgetError> {
        Message::new(self.0.layout, *head, last, room).await
    }

    /// The part of the keys of the default tenant, by an even sample of all hashes.
    fn shares(&self, rings: &MultiRing, members: usize) -> Vec<Option<f64>> {
        const SAMPLES: u32 = 1 << 14;
        let mut counts = vec![0_u32; members];
        let Ok(ring) = rings.for_tenant(self.0.default_tenant.as_str()) else {
            return vec![None; counts.len()];
        };
        let step = u64::MAX / u64::from(SAMPLES);
        for sample in 0..SAMPLES {
            for member in ring.members(u64::from(sample) * step + u64::from(sample)).iter() {
                if let Some(count) = counts.get_mut(usize::from(*member)) {
                    *count += 1;
                }
            }
        }
        let share = |count: u32| (count > 0).then(|| f64::from(count) / f64::from(SAMPLES));
        counts.into_iter().map(share).collect()
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
        head: &RequestHead<Form>,
        body: Bytes,
        info: &BodyInfo,
    ) -> Result<u64, DropReason> {
        distributor.spread_message(head.form, body, info).await
    }
}

impl SeriesProtocol for ThanosProtocol {
    type Known = Option<Box<TenantRing>>;

    fn otlp(&self) -> &Translation {
        &self.0.otlp
    }

    #[inline]
    fn target<'s>(
        distributor: &mut Distributor<Self>,
        series: &v1::Series<'s>,
        info: &BodyInfo,
        known: &mut Self::Known,
    ) -> Target<'s, Self> {
        let Distributor { context, members, tools, current, .. } = distributor;
        let label = context.protocol.0.split_tenant_label.as_deref().map(str::as_bytes);
        let split = label.and_then(|label| {
            let (value, parts) = series.without_label(label)?;
            // A value that cannot be a tenant stays a label.
            Some((Tenant::new(str::from_utf8(value).ok()?)?, parts))
        });
        let skipped = label.filter(|_| split.is_some());
        let item = match split {
            Some((tenant, parts)) => {
                current.set(&tenant);
                parts
            }
            None => {
                if label.is_some() {
                    current.set(&info.tenant);
                }
                [series.message(), &[]]
            }
        };
        known.take_if(|known| known.generation != current.generation());
        let find = || Box::new(TenantRing::find(&members.placement, current, &context.health));
        let TenantRing { hasher, ring, .. } = &mut **known.get_or_insert_with(find);
        let items = series.visit_labels(|label| {
            if skipped != Some(label.name) {
                hasher.label(label.name, label.value);
            }
        });
        let hash = hasher.finish();
        let members = ring.as_ref().map_or_else(Replicas::default, |ring| ring.members(hash));
        Target { form: tools.coder.form(), item, items, members }
    }
}
