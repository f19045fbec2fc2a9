//! Items are copied to the requests of their members.

use super::{BodyInfo, Distributor};
use crate::batch::DropReason;
use crate::egress_budget::BudgetError;
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::{OpenRequest, Origin, RequestHead};
use tidegate_journal::Tenant;
use tidegate_ring::Replicas;

/// An item, and where it goes.
pub(crate) struct Target<'i, P: SpreadProtocol> {
    pub(crate) tenant: Tenant,
    pub(crate) form: P::Form,
    pub(crate) item: P::Item<'i>,
    /// How many items it counts as.
    pub(crate) items: u64,
    /// The members that it goes to, the first replica first.
    pub(crate) members: Replicas,
}

impl<P: SpreadProtocol> Distributor<P> {
    /// Copies an item to the requests of its members. That needs no wait while they have room.
    ///
    /// # Errors
    /// When it is larger than the memory.
    #[inline]
    pub(crate) async fn place(&mut self, target: &Target<'_, P>, info: BodyInfo) -> Result<(), DropReason> {
        for (slot, replica) in self.slots(target, info) {
            if !self.copy_now(slot, target, info) {
                Box::pin(self.copy((slot, replica), target, info)).await?;
            }
            if matches!(info.origin, Origin::Log) && replica == 0 {
                self.rerouted += target.items;
            }
        }
        Ok(())
    }

    /// The slots of the requests that an item goes to, with their replicas.
    fn slots(&self, target: &Target<'_, P>, info: BodyInfo) -> impl Iterator<Item = (usize, u8)> + use<P> {
        let replication = self.context.settings.replication;
        let members = target.members;
        (0..members.len()).filter_map(move |index| {
            let (replica, member) = (u8::try_from(index).ok()?, *members.get(index)?);
            let is_wanted = info.replica.is_none_or(|wanted| wanted == replica);
            is_wanted.then_some((usize::from(member) * replication + index, replica))
        })
    }

    /// Copies an item to the request in a slot, if that takes it without a wait; says whether it did.
    #[inline]
    fn copy_now(&mut self, slot: usize, target: &Target<'_, P>, info: BodyInfo) -> bool {
        !self.is_full(slot, target, info) && matches!(self.try_copy(slot, target, info), Some(Ok(())))
    }

    /// Whether the request in a slot takes no more of this.
    fn is_full(&self, slot: usize, target: &Target<'_, P>, info: BodyInfo) -> bool {
        self.open.get(slot).and_then(Option::as_ref).is_some_and(|open| {
            !open.is_for(&target.tenant, target.form)
                || open.raw_len() >= self.most
                || open.copies() >= self.context.settings.max_request_items
                || (open.is_full_of_records() && !open.has(info.origin))
        })
    }

    /// Copies an item to the request in a slot, however long it takes.
    async fn copy(
        &mut self,
        (slot, replica): (usize, u8),
        target: &Target<'_, P>,
        info: BodyInfo,
    ) -> Result<(), DropReason> {
        if self.is_full(slot, target, info) {
            self.seal(slot).await;
        }
        loop {
            let refused = match self.try_copy(slot, target, info) {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => error,
                None => match self.open((slot, replica), target, info).await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
            };
            self.make_room(refused).await?;
        }
    }

    /// Copies an item to an open request; nothing where none is open.
    fn try_copy(
        &mut self,
        slot: usize,
        target: &Target<'_, P>,
        info: BodyInfo,
    ) -> Option<Result<(), BudgetError>> {
        let open = self.open.get_mut(slot)?.as_mut()?;
        let is_new = !open.has(info.origin);
        let pushed = open.push(target.item, target.items, info.origin, &mut self.tools);
        if pushed.is_ok() && is_new {
            match info.origin {
                Origin::Record(sequence) => self.context.settlement.add_request(sequence),
                Origin::Log => self.context.settlement.add_rerouted(),
            }
        }
        Some(pushed)
    }

    /// Opens a request.
    async fn open(
        &mut self,
        (slot, replica): (usize, u8),
        target: &Target<'_, P>,
        info: BodyInfo,
    ) -> Result<(), BudgetError> {
        let head = RequestHead { tenant: target.tenant, form: target.form, replica, copies: 0 };
        let last = self.last.get(slot).copied().unwrap_or_default();
        let message = self.context.protocol.open(&head, last, &self.context.room).await?;
        let open = OpenRequest::new(head, message, info.received_at_ns);
        if let Some(place) = self.open.get_mut(slot) {
            *place = Some(open);
        }
        Ok(())
    }
}
