//! The sink `blackhole`: takes everything and forgets it, for measuring and for trying things out.

use crate::inbox::{AttachError, Sinkable};
use crate::losses::Losses;
use crate::stop::Stop;

/// Attaches the sink; the future runs it until the order to stop comes or the journal is closed.
///
/// # Errors
/// When it cannot be attached to the journal.
pub fn blackhole(
    sinkable: Sinkable<'_>,
    stop: Stop,
) -> Result<impl Future<Output = ()> + Send + use<>, AttachError> {
    let health = sinkable.health.clone();
    let mut inbox = sinkable.attach()?;
    Ok(async move {
        while let Some(Some(record)) = stop.or(inbox.next()).await {
            inbox.settle(&record, Losses::NONE);
            health.succeeded(u64::from(record.body_len));
        }
    })
}
