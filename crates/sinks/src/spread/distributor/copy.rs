//! Items are copied to the requests of their members.

use super::{BodyInfo, Distributor};
use crate::batch::DropReason;
use crate::egress_budget::BudgetError;
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::{OpenRequest, Origin, RequestHead};
use tidegate_ring::Replicas;

/// An item of the current tenant, and where it goes.
pub(crate) struct Target<'i, P: SpreadProtocol> {
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
    pub(crate) async fn place(&mut self, target: &Target<'_, P>, info: &BodyInfo) -> Result<(), DropReason> {
        match self.place_from(0, target, info) {
            None => Ok(()),
            Some(replica) => Box::pin(self.place_slowly(replica, target, info)).await,
        }
    }

    /// Copies an item to the requests of its members, from a replica on, while they take it without a wait; the first that does not.
    #[inline]
    fn place_from(&mut self, replica: usize, target: &Target<'_, P>, info: &BodyInfo) -> Option<usize> {
        let members = target.members.iter().enumerate().skip(replica);
        for (replica, member) in members.filter(|(replica, _)| info.wants(*replica)) {
            if !self.copy_now(self.slot(*member, replica), target, info) {
                return Some(replica);
            }
            self.count_rerouted(replica, target, info);
        }
        None
    }

    /// The same with all of them, however long it takes.
    async fn place_slowly(
        &mut self,
        replica: usize,
        target: &Target<'_, P>,
        info: &BodyInfo,
    ) -> Result<(), DropReason> {
        let mut next = Some(replica);
        while let Some(replica) = next {
            let Some(member) = target.members.get(replica) else { break };
            self.copy((self.slot(*member, replica), replica), target, info).await?;
            self.count_rerouted(replica, target, info);
            next = self.place_from(replica + 1, target, info);
        }
        Ok(())
    }

    /// Where the request for a replica of a member is.
    #[inline]
    fn slot(&self, member: u16, replica: usize) -> usize {
        usize::from(member) * self.context.settings.replication + replica
    }

    /// Notes that a replica of an item from a log is in a request. First replicas are what counts in the books.
    #[inline]
    fn count_rerouted(&mut self, replica: usize, target: &Target<'_, P>, info: &BodyInfo) {
        if matches!(info.origin, Origin::Log) && replica == 0 {
            self.rerouted += target.items;
        }
    }

    /// Copies an item to the request in a slot, if that takes it without a wait; says whether it did.
    #[inline]
    fn copy_now(&mut self, slot: usize, target: &Target<'_, P>, info: &BodyInfo) -> bool {
        !self.is_full(slot, target, info) && matches!(self.try_copy(slot, target, info), Some(Ok(())))
    }

    /// Whether the request in a slot takes no more of this.
    #[inline]
    fn is_full(&mut self, slot: usize, target: &Target<'_, P>, info: &BodyInfo) -> bool {
        let Some(open) = self.open.get_mut(slot).and_then(Option::as_mut) else { return false };
        !open.is_for(&self.current, target.form)
            || open.raw_len() >= self.most
            || open.copies() >= self.context.settings.max_request_items
            || (open.is_full_of_records() && !open.has(info.origin))
    }

    /// Copies an item to the request in a slot, however long it takes.
    async fn copy(
        &mut self,
        (slot, replica): (usize, usize),
        target: &Target<'_, P>,
        info: &BodyInfo,
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
    #[inline]
    fn try_copy(
        &mut self,
        slot: usize,
        target: &Target<'_, P>,
        info: &BodyInfo,
    ) -> Option<Result<(), BudgetError>> {
        let open = self.open.get_mut(slot)?.as_mut()?;
        let is_new = !open.has(info.origin);
        let pushed = open.push(&target.item, target.items, info.origin, &mut self.tools);
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
        (slot, replica): (usize, usize),
        target: &Target<'_, P>,
        info: &BodyInfo,
    ) -> Result<(), BudgetError> {
        // There are few replicas.
        let replica = u8::try_from(replica).unwrap_or(u8::MAX);
        let head = RequestHead { tenant: *self.current.tenant(), form: target.form, replica, copies: 0 };
        let last = self.last.get(slot).copied().unwrap_or_default();
        let message = self.context.protocol.open(&head, last, &self.context.room).await?;
        let open = OpenRequest::new(head, self.current.generation(), message, info.received_at_ns);
        if let Some(place) = self.open.get_mut(slot) {
            *place = Some(open);
        }
        Ok(())
    }
}
