//! The sink `blackhole`: takes everything and forgets it, for measuring and for trying things out.

use crate::batch::DropReason;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::journal_consumer::{AttachError, JournalConsumer, Record, SinkContext};
use crate::losses::Losses;
use crate::pipeline_stage::Staged;
use crate::stop::StopSignal;
use futures_util::FutureExt;
use tidegate_ledger::Dropped;

/// The most records that are settled together.
const TOGETHER: usize = 64;

/// Attaches the sink; the future runs it until the order to stop comes or the journal is closed. `room` is for records that
/// its pipeline has to read.
///
/// # Errors
/// When it cannot be attached to the journal.
pub fn blackhole(
    context: SinkContext<'_>,
    room: EgressBudget,
    stop: StopSignal,
) -> Result<impl Future<Output = ()> + Send + use<>, AttachError> {
    let health = context.health.clone();
    let mut consumer = context.attach()?;
    Ok(async move {
        while let Some(Some(first)) = stop.or(consumer.next()).await {
            let (mut next, mut taken, mut bytes, mut losses) = (first, 0, 0, Losses::NONE);
            let last = loop {
                let outcome = stop.or(Box::pin(take(next, &mut consumer, &room))).await;
                let Some((record_bytes, record_losses)) = outcome else { return };
                (taken, bytes, losses) = (taken + 1, bytes + record_bytes, losses.and(record_losses));
                // The cursor is written once for all that is there already.
                let following =
                    if taken < TOGETHER { consumer.next().now_or_never().flatten() } else { None };
                match following {
                    Some(record) => next = record,
                    None => break next,
                }
            };
            consumer.settle(&last, losses);
            health.succeeded(bytes);
        }
    })
}

/// Takes a record: its length as it goes out, and its items that are not delivered.
async fn take(mut record: Record, consumer: &mut JournalConsumer, room: &EgressBudget) -> (u64, Losses) {
    let mut staged = consumer.stage(&mut record, room).await;
    if staged == Err(DropReason::Room(BudgetError::WithoutTurn)) {
        let _turn = room.turn().await;
        staged = consumer.stage(&mut record, room).await;
        // The turn ends when what was borrowed is given back.
        consumer.release();
    }
    consumer.release();
    let losses = consumer.take_losses(&record);
    match staged {
        Ok(Staged::Ready) => {
            consumer.show_unread(&record);
            (u64::from(record.body_len), losses)
        }
        Ok(Staged::Empty) => (0, losses),
        // The journal counts it.
        Err(DropReason::Damaged) => (0, losses),
        Err(DropReason::Room(_) | DropReason::TooLong) => {
            (0, Losses::of(Dropped::TooLarge, u64::from(record.meta.items)))
        }
    }
}
