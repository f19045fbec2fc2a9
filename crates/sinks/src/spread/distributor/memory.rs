//! Memory for what the distributor does. Where it is short, requests are sealed; where that is not enough, the member that holds most
//! has what waits for it handed off.

use super::Distributor;
use crate::batch::DropReason;
use crate::egress_budget::{BorrowTurn, BudgetError, Charged};
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::OpenRequest;
use std::time::Duration;
use tidegate_arena::{Charge, Window};

/// How long memory is waited for before what waits for a member goes to disk.
const PRESS_AFTER: Duration = Duration::from_millis(100);
/// A request takes at most this part of the sink's memory, so that those of several members and records of logs find room.
const RESERVED: usize = 8;
/// Where memory is short, requests are sealed that have this part of their most bytes.
const WORTHWHILE: usize = 2;

impl<P: SpreadProtocol> Distributor<P> {
    /// A window of `bytes` for the record that is being distributed, which waits for it.
    ///
    /// # Errors
    /// When there is never as much.
    pub(crate) async fn window(&mut self, bytes: usize) -> Result<Charged<Window>, DropReason> {
        if let Some(window) = self.spare.take(bytes) {
            self.own += window.bytes();
            return Ok(window);
        }
        loop {
            let room = self.context.room.clone();
            match room.window(bytes).await {
                Ok(window) => {
                    self.own += window.bytes();
                    return Ok(window);
                }
                Err(error) => self.make_room(error).await?,
            }
        }
    }

    /// Pays for `bytes` on the heap, as [`window`](Self::window) does; they are the record's own until it is spread.
    ///
    /// # Errors
    /// When there is never as much.
    pub(super) async fn charge(&mut self, bytes: usize) -> Result<Charged<Charge>, DropReason> {
        loop {
            let room = self.context.room.clone();
            match room.charge(bytes).await {
                Ok(charge) => {
                    self.own += charge.bytes();
                    return Ok(charge);
                }
                Err(error) => self.make_room(error).await?,
            }
        }
    }

    /// Gives up a window that [`window`](Self::window) gave.
    pub(crate) fn release(&mut self, window: Charged<Window>) {
        self.own = self.own.saturating_sub(window.bytes());
    }

    /// Gives up a window of the record. It is kept for the next record, unless this sink has the turn to borrow.
    pub(super) fn keep_spare(&mut self, window: Charged<Window>) {
        self.own = self.own.saturating_sub(window.bytes());
        if !self.turn.is_some() {
            self.spare.keep(window);
        }
    }

    /// Makes room after a refusal, or says that there is none.
    pub(crate) async fn make_room(&mut self, error: BudgetError) -> Result<(), DropReason> {
        if self.spare.clear() {
            return Ok(());
        }
        if error == BudgetError::Never {
            return Err(DropReason::Room(error));
        }
        if self.seal_largest(self.most / WORTHWHILE) {
            return Ok(());
        }
        // A record that fills the part leaves no room for requests that are worth an exchange.
        if !self.turn.is_some() && self.own > self.context.room.part() / 2 {
            self.turn = self.context.room.turn().await;
            return Ok(());
        }
        // What short requests give back is soon taken by as many others, each an exchange of its own: answers give back more.
        if self.is_answer_near() && self.falls_within(PRESS_AFTER).await {
            return Ok(());
        }
        if self.seal_next() {
            return Ok(());
        }
        let open: usize = self.open.iter().flatten().map(OpenRequest::held).sum();
        let is_with_others = self.context.room.held() > self.own + open;
        if is_with_others && (self.wait_for_memory().await || self.is_anything_sent()) {
            return Ok(());
        }
        if self.turn.is_some() {
            // With the turn there is no more to be had than this.
            return Err(DropReason::Room(BudgetError::Never));
        }
        self.turn = self.context.room.turn().await;
        Ok(())
    }

    /// Seals the open request that holds most of those with so many bytes of items; says whether there was one that could be sealed.
    fn seal_largest(&mut self, at_least: usize) -> bool {
        self.seal_largest_where(|open, _| open.raw_len() >= at_least)
    }

    /// Seals the open request that holds most of those that would be the next ones of their members, and says whether there was one. Behind
    /// others a request gives nothing back, but goes on filling: what they give back would soon be taken by requests of an item or
    /// two, each with a page of its own. An empty request is what a refusal was for: sent, it would be opened again, without end.
    fn seal_next(&mut self) -> bool {
        self.seal_largest_where(|open, is_next| is_next && open.raw_len() > 0)
    }

    /// Seals the open request that holds most of those that are chosen by what they are, and by whether each would be the next one of its member.
    fn seal_largest_where(&mut self, is_chosen: impl Fn(&OpenRequest<P>, bool) -> bool) -> bool {
        let open = self.open.iter().enumerate().filter_map(|(slot, open)| Some((open.as_ref()?, slot)));
        let chosen = open.filter(|(open, slot)| is_chosen(open, self.is_next(*slot)));
        let most = chosen.map(|(open, slot)| (open.held(), slot)).max();
        most.is_some_and(|(_, slot)| self.try_seal(slot))
    }

    /// Whether a member that takes what comes has a request, which gives memory back when it is answered.
    fn is_answer_near(&self) -> bool {
        self.members.list.iter().any(|member| member.is_busy() && !member.is_behind())
    }

    /// Waits until something is given back; says whether it was in time.
    async fn falls_within(&self, time: Duration) -> bool {
        let room = &self.context.room;
        let less = room.held().saturating_sub(1);
        tokio::time::timeout(time, room.falls_to(less)).await.is_ok()
    }

    /// Whether a member has a request that gives memory back when it is answered. If none has, all that is held is the distributor's,
    /// and waiting for it never ends.
    fn is_anything_sent(&self) -> bool {
        self.members.list.iter().any(|member| member.is_busy())
    }

    /// Waits until something is given back; says whether it was. What waits for a member that takes nothing goes to disk.
    pub(super) async fn wait_for_memory(&mut self) -> bool {
        if self.falls_within(PRESS_AFTER).await {
            return true;
        }
        let most = self.members.list.iter().max_by_key(|member| member.queue.bytes());
        if let Some(member) = most.filter(|member| member.queue.bytes() > 0) {
            member.press();
        }
        // A connection may hold what a peer that answered early has not read.
        let is_less = self.falls_within(10 * PRESS_AFTER).await;
        if !is_less {
            self.members.list.iter().for_each(|member| member.hang_up());
        }
        is_less
    }

    /// Gives back the turn to borrow, if this sink has it: others wait for it, so what was borrowed is on its way, or on disk,
    /// before.
    pub(super) async fn return_turn(&mut self) {
        if self.turn.is_some() {
            self.spare.clear();
            let room = self.context.room.clone();
            while room.is_over() {
                self.wait_for_memory().await;
            }
            self.turn = BorrowTurn::none();
        }
    }
}

/// The most bytes of a request before compression, in a sink that has so much memory.
pub(in crate::spread) fn longest_request(part: usize, max_request_bytes: usize) -> usize {
    max_request_bytes.min((part / RESERVED).max(64 << 10))
}
