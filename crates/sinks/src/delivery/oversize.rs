//! Sends records that need more memory than the sink's own part, or go out in pieces: one at a time, when nothing else
//! is in flight, with the turn to borrow.
//!
//! No memory is held over a wait: before another attempt it is all released, and the record is read from the journal
//! again. The protocol remembers how far it came.

use super::{Delivery, SinkProtocol};
use crate::journal_consumer::PASSING;
use tidegate_ledger::Dropped;

/// The outcome of an attempt to send a record on its own.
pub(crate) enum Alone {
    /// Everything in it is settled.
    Settled,
    /// What is left of it is sent later.
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
        let turn = pipeline.room.turn().await;
        let known = *P::record(&oversize);
        let outcome = match pipeline.consumer.recall(known.sequence) {
            Ok(Some(record)) => Box::pin(protocol.send_alone(pipeline, &oversize, &record)).await,
            // What the quota dropped was counted there, and is not counted again.
            Ok(None) => Alone::Lost(Dropped::Damaged),
            Err(error) => {
                pipeline.consumer.unreadable(&error);
                Alone::Unreadable
            }
        };
        // The turn ends when what was borrowed is given back.
        pipeline.let_go_to(0).await;
        drop(turn);
        match outcome {
            Alone::Settled => {}
            Alone::Later => {
                pipeline.drain.alone(oversize);
            }
            Alone::Unreadable => {
                tokio::time::sleep(PASSING).await;
                pipeline.drain.alone(oversize);
            }
            Alone::Lost(why) => {
                let items = u64::from(known.meta.items);
                if why == Dropped::TooLarge {
                    let bytes = known.body_len.max(known.meta.raw_len) as usize;
                    pipeline.report.too_large(known.sequence, &known.meta, items, bytes);
                }
                protocol.lost(pipeline, &oversize);
                pipeline.lose(known.sequence, why, items);
            }
        }
    }
}
