//! The backlog of a member that left goes to the members that own it now.

use super::{BodyInfo, Distributor};
use crate::spread::member::Member;
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::{Origin, RequestHead};
use crate::spread::settlement::Outcome;
use tidegate_handoff::{ReadError, Record};
use tidegate_ledger::Dropped;

/// How a record of a log went.
enum Rerouted {
    /// It is with other members, or on disk for them.
    Done,
    /// The rest of it cannot be read, and counts as damaged.
    Damaged,
}

impl<P: SpreadProtocol> Distributor<P> {
    /// Sends the log of a member that left to the present members, record by record: each is completed when all of it is
    /// delivered or on disk elsewhere. New items wait meanwhile, so that none overtakes an older one.
    ///
    /// # Errors
    /// When the logs were closed.
    pub(in crate::spread) async fn reroute(&mut self, left: &Member<P>) -> Result<(), ReadError> {
        while let Some(record) = left.log.next().await? {
            self.rerouted = 0;
            let outcome = match Box::pin(self.reroute_record(left, &record)).await {
                Ok(Rerouted::Done) => None,
                Ok(Rerouted::Damaged) | Err(ReadError::WindowTooSmall) => {
                    Some(Outcome::Dropped(Dropped::Damaged))
                }
                Err(ReadError::Damaged | ReadError::Gone) => {
                    left.count_losses(&self.context);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.own = 0;
            // Its items were settled where they went to.
            let completed = left.log.complete(&record);
            if let Some(outcome) = outcome {
                self.context
                    .settlement
                    .settle_handed_off(completed.items.saturating_sub(self.rerouted), outcome);
            }
        }
        Ok(())
    }

    async fn reroute_record(&mut self, left: &Member<P>, record: &Record) -> Result<Rerouted, ReadError> {
        let Some(head) = RequestHead::of_note(&record.meta.note, P::NOTE) else {
            return Ok(Rerouted::Damaged);
        };
        let body = left.read(&self.context, record).await?;
        let info = BodyInfo {
            tenant: head.tenant,
            origin: Origin::Log,
            received_at_ns: record.meta.received_at_ns,
            replica: Some(head.replica),
        };
        self.current.set(&self.context.protocol.tenant(info.tenant));
        let spread = Box::pin(P::spread_again(self, &head, body, &info)).await;
        self.seal_all().await;
        while self.context.settlement.is_rerouting() {
            self.context.settlement.settled().await;
        }
        let Ok(unplaced) = spread else { return Ok(Rerouted::Damaged) };
        // There may be nobody for the tenant any more. Only first replicas count in the books.
        if head.replica == 0 {
            self.context.settlement.settle_handed_off(unplaced, Outcome::Dropped(Dropped::Rejected));
        }
        Ok(Rerouted::Done)
    }
}
