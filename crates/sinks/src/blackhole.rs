//! The sink `blackhole`: takes everything and forgets it, for measuring and for trying things out.

use crate::journal_consumer::{AttachError, SinkContext};
use crate::losses::Losses;
use crate::stop::StopSignal;
use futures_util::FutureExt;

/// The most records that are settled together.
const TOGETHER: usize = 64;

/// Attaches the sink; the future runs it until the order to stop comes or the journal is closed.
///
/// # Errors
/// When it cannot be attached to the journal.
pub fn blackhole(
    context: SinkContext<'_>,
    stop: StopSignal,
) -> Result<impl Future<Output = ()> + Send + use<>, AttachError> {
    let health = context.health.clone();
    let mut consumer = context.attach()?;
    Ok(async move {
        while let Some(Some(mut last)) = stop.or(consumer.next()).await {
            consumer.show_unread(&last);
            let mut bytes = u64::from(last.body_len);
            // The cursor is written once for all that is there already.
            for _ in 1..TOGETHER {
                let Some(Some(next)) = consumer.next().now_or_never() else { break };
                consumer.show_unread(&next);
                bytes += u64::from(next.body_len);
                last = next;
            }
            consumer.settle(&last, Losses::NONE);
            health.succeeded(bytes);
        }
    })
}
