//! OTLP, as the engine uses it.

use super::message::{Form, Message, RoutedRun};
use super::peer::Peer;
use crate::batch::DropReason;
use crate::delivery::EndpointError;
use crate::delivery::compressor::Compressor;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::journal_consumer::JournalConsumer;
use crate::losses::Losses;
use crate::otlp::peer::PREFIX;
use crate::otlp::{Settings, wire_signal};
use crate::spread::{BodyInfo, Distributor, RequestHead, RequestLen, RingSource, SpreadProtocol, Target};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_journal::{Meta, Protocol, Signal, Tenant};
use tidegate_ledger::Dropped;
use tidegate_ring::Ring;
use tidegate_wire::otlp::route::{RouteKey, route};
use tokio::sync::Mutex;

/// Bytes of a body that are walked before others get their turn.
const TURN: usize = 128 << 10;

/// Receivers of OTLP that each have a part of the keys.
pub(super) struct RoutedProtocol {
    pub(super) settings: Settings,
    pub(super) key: RouteKey,
    pub(super) compressor: Arc<Mutex<Compressor>>,
}

impl SpreadProtocol for RoutedProtocol {
    const NOTE: u8 = 3;
    type Form = Form;
    type Item<'i> = RoutedRun<'i>;
    type Placement = Option<Ring>;
    type Source = RingSource;
    type Message = Message;
    type Peer = Peer;
    /// The number of the present body.
    type Tools = u64;

    fn tools(&self) -> u64 {
        0
    }

    fn attached(&self, consumer: &mut JournalConsumer) {
        for protocol in [Protocol::RemoteWrite1, Protocol::RemoteWrite2, Protocol::Intake, Protocol::Bulk] {
            consumer.pass_over_all_of(protocol);
        }
    }

    /// None where receivers are not told.
    fn tenant(&self, tenant: Tenant) -> Tenant {
        if self.settings.tenant_header.is_some() { tenant } else { Tenant::NONE }
    }

    fn peer(&self, target: &str) -> Result<Peer, EndpointError> {
        Peer::new(target, self)
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
        let unplaced = Box::pin(distributor.route(meta.signal, raw, info)).await?;
        Ok(Losses::of(Dropped::Rejected, unplaced))
    }

    async fn spread_again(
        distributor: &mut Distributor<Self>,
        head: &RequestHead<Form>,
        body: Bytes,
        info: &BodyInfo,
    ) -> Result<u64, DropReason> {
        let Form(signal) = head.form;
        Box::pin(distributor.route(signal, body.get(PREFIX..).unwrap_or_default(), info)).await
    }
}

impl Distributor<RoutedProtocol> {
    /// Spreads the items of a request; returns those without a receiver.
    ///
    /// # Errors
    /// When the rest of it cannot be sent.
    async fn route(&mut self, signal: Signal, raw: &[u8], info: &BodyInfo) -> Result<u64, DropReason> {
        let protocol = &self.context.protocol;
        let key = protocol.key;
        let signal_of_body =
            wire_signal(signal).filter(|signal| key.is_of(*signal)).ok_or(DropReason::Damaged)?;
        self.tools = self.tools.wrapping_add(1);
        let body = self.tools;
        let (mut unplaced, mut walked) = (0, 0);
        for run in route(signal_of_body, raw, key) {
            let Some(ring) = &self.members.placement else {
                unplaced += run.items;
                continue;
            };
            let members = ring.members(run.hash);
            let item = RoutedRun { run, body };
            let target = Target { form: Form(signal), item, items: run.items, members };
            Box::pin(self.place(&target, info)).await?;
            walked += run.len();
            if walked >= TURN {
                walked = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(unplaced)
    }
}
