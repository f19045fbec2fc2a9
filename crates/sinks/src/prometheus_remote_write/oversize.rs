//! Sends records that need more memory than the sink's own part: a piece at a time, each encoded with the turn to borrow
//! and sent without it.
//!
//! A record is read and decoded again for each piece, so that a peer that stalls costs others nothing.

use super::RemoteWriteProtocol;
use super::batching::{Batch, BatchMode};
use super::outbound_request::OutboundRequest;
use super::snappy_passthrough::PREAMBLE;
use crate::batch::DropReason;
use crate::delivery::{NextStep, OversizeOutcome, Pipeline};
use crate::egress_budget::BudgetError;
use crate::journal_consumer::Record;

impl RemoteWriteProtocol {
    /// Sends the next piece of a record, with nothing else in flight.
    pub(super) async fn send_oversize(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        record: &Record,
    ) -> OversizeOutcome {
        let mut outbound = match Box::pin(self.piece(pipeline, record)).await {
            Ok(outbound) => outbound,
            // With the turn, memory that is short is nobody's fault for long.
            Err(DropReason::Room(BudgetError::WithoutTurn)) => return OversizeOutcome::Unreadable,
            Err(why) => return OversizeOutcome::Lost(why.reason()),
        };
        if let Some(progress) = &mut outbound.progress {
            progress.release();
        }
        if outbound.lanes.is_empty() {
            self.settle(pipeline, outbound.records);
            return OversizeOutcome::Settled;
        }
        pipeline.return_turn();
        let next = match Box::pin(pipeline.attempt(outbound)).await {
            Ok(answered) => self.heard(pipeline, answered.request, answered.reservation, answered.answer),
            Err(outbound) => NextStep::Again(outbound),
        };
        match next {
            NextStep::Settled => return OversizeOutcome::Settled,
            NextStep::Prepare(work) => self.cut = Some(work),
            NextStep::Again(outbound) => self.cut = outbound.into_work(),
            NextStep::ReadAgain => {}
        }
        OversizeOutcome::Later
    }

    /// The next piece, or the record as it came.
    async fn piece(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        record: &Record,
    ) -> Result<OutboundRequest, DropReason> {
        let known = self.cut.take().filter(|work| work.records.sequences == [record.sequence]);
        let most = pipeline.most();
        // Of what is cut nothing passes.
        let within = if known.is_some() { 0 } else { most };
        let key = self.key_of(&record.meta, within).ok_or(DropReason::Damaged)?;
        let Pipeline { room, consumer, .. } = pipeline;
        let out_len = record.meta.raw_len as usize;
        let batch = Box::pin(Batch::of(record, key, PREAMBLE, out_len, 0, room, consumer)).await?;
        let is_new = self.shown.replace(record.sequence) != Some(record.sequence);
        if key.mode == BatchMode::Pass {
            let outbound = OutboundRequest::joined(batch).map_err(|_| DropReason::TooLong)?;
            if let (true, Some(lane)) = (is_new, outbound.lanes.first()) {
                consumer.show(record, &lane.request.body);
            }
            return Ok(outbound);
        }
        if is_new {
            consumer.show(record, batch.window.get(PREAMBLE..).unwrap_or_default());
        }
        let recoder = pipeline.tools.as_mut().ok_or(DropReason::Damaged)?;
        let begun = recoder.begin(batch, self.to(key.mode)).await.map_err(|(_, why)| why)?;
        let work = match known {
            Some(known) => recoder.resume(begun, known),
            None => begun,
        };
        Ok(recoder.next(work, most).await)
    }
}
