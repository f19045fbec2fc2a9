//! Sends records that need more memory than the sink's own part, or go out in pieces: one at a time, when nothing else
//! is in flight, with the turn to borrow.
//!
//! No memory is held over a wait: before another attempt it is all released, and the record is read from the journal
//! again. The protocol remembers how far it came.

use super::{Delivery, Pipeline, SinkProtocol};
use crate::egress_budget::BorrowTurn;
use crate::journal_consumer::{PASSING, Record};
use crate::losses::Losses;
use crate::other_events::OtherEvents;
use crate::pipeline_stage::Staged;
use tidegate_ledger::Dropped;

/// The outcome of an attempt to send a record on its own.
pub(crate) enum OversizeOutcome {
    /// Everything in it is settled.
    Settled,
    /// The rest of it is sent later.
    Later,
    /// The journal cannot be read now.
    Unreadable,
    /// It is lost: the engine enters it in the books.
    Lost(Dropped),
}

impl<P: SinkProtocol> Delivery<P> {
    /// Sends a record on its own.
    pub(super) async fn send_alone(&mut self, oversize: P::Oversize) {
        let Delivery { protocol, pipeline, .. } = self;
        if let Some(at) = protocol.resumes_at(&oversize) {
            tokio::time::sleep_until(at).await;
        }
        pipeline.endpoints.opens().await;
        pipeline.let_go_to(0).await;
        pipeline.turn = pipeline.room.turn().await;
        let mut known = *P::record(&oversize);
        let outcome = match pipeline.consumer.recall(known.sequence) {
            Ok(Some(mut record)) => match pipeline.consumer.stage(&mut record, &pipeline.room).await {
                Ok(Staged::Ready) => {
                    known = record;
                    Box::pin(protocol.send_alone(pipeline, &oversize, &record)).await
                }
                Ok(Staged::Empty) => {
                    pipeline.settle([known.sequence], Losses::NONE);
                    OversizeOutcome::Settled
                }
                Err(why) => {
                    known = record;
                    OversizeOutcome::Lost(why.reason())
                }
            },
            // Records dropped by the quota were counted there, and are not counted again.
            Ok(None) => OversizeOutcome::Lost(Dropped::Damaged),
            Err(error) => {
                pipeline.consumer.unreadable(&error);
                OversizeOutcome::Unreadable
            }
        };
        pipeline.consumer.release();
        let others = match outcome {
            OversizeOutcome::Lost(_) => Box::pin(pipeline.others(&known)).await.unwrap_or(0),
            _ => 0,
        };
        // The turn ends when what was borrowed is given back.
        pipeline.let_go_to(0).await;
        pipeline.turn = BorrowTurn::none();
        match outcome {
            OversizeOutcome::Settled => {}
            OversizeOutcome::Later => {
                pipeline.drain.alone(oversize);
            }
            OversizeOutcome::Unreadable => {
                tokio::time::sleep(PASSING).await;
                pipeline.drain.alone(oversize);
            }
            OversizeOutcome::Lost(why) => {
                let items = u64::from(known.meta.items).saturating_sub(others);
                if why == Dropped::TooLarge {
                    let bytes = known.body_len.max(known.meta.raw_len) as usize;
                    pipeline.report.too_large(known.sequence, &known.meta, items, bytes);
                }
                protocol.lost(pipeline, &oversize);
                pipeline.settle([known.sequence], Losses::of(why, items).and(Losses::passed_over(others)));
            }
        }
    }
}

impl<P: SinkProtocol> Pipeline<P> {
    /// How many items of a lost record the sink is not configured to take, where that can be told.
    async fn others(&mut self, record: &Record) -> Option<u64> {
        let taken = self.consumer.signals_within(&record.meta);
        OtherEvents::of(&record.meta, taken, &[])?;
        let _decoder = self.room.charge(OtherEvents::BYTES).await.ok()?;
        let mut body = self.room.window(record.body_len as usize).await.ok()?;
        self.consumer.recall(record.sequence).ok()??;
        self.consumer.read_recalled(&mut body).ok()?;
        let mut events = OtherEvents::of(&record.meta, taken, &body)?;
        loop {
            if let Some(others) = events.step().ok()? {
                return Some(others);
            }
            tokio::task::yield_now().await;
        }
    }
}
