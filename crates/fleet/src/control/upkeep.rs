//! Periodic work: ends polls that are over, and stores when agents were last seen.

use super::Fleet;
use crate::agent_id::AgentId;
use crate::record::{SeenRecord, encode};
use crate::registry::{PollOutcome, Registry};
use crate::store::{StoreError, Table, Write};
use crate::time;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A round over all agents takes so much of the time that a poll lasts, and not longer than this.
const POLL_FRACTION: u32 = 16;
const LONGEST_ROUND: Duration = Duration::from_secs(8);
/// How often the state learns when agents were seen.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);
/// Writes of a batch.
const TOGETHER: usize = 500;

impl Fleet {
    /// Ends polls, until the fleet stops.
    pub async fn end_polls(self: Arc<Self>) {
        let round = (self.settings.long_poll / POLL_FRACTION).min(LONGEST_ROUND);
        let step = round / u32::try_from(Registry::shards()).unwrap_or(1);
        while !self.is_stopped() {
            for shard in 0..Registry::shards() {
                // A pace, not a wait: so the agents of a round are spread over its time.
                tokio::time::sleep(step).await;
                self.registry.end_polls(shard, time::uptime_s());
            }
        }
    }

    /// Writes down now and then when agents were seen, until the fleet stops. Apart from the polls, whose ends need no disk.
    pub async fn keep_seen(self: Arc<Self>) {
        while !self.is_stopped() {
            tokio::time::sleep(SAVE_INTERVAL).await;
            if let Err(error) = self.save_seen().await {
                tracing::warn!(%error, "could not save when agents were last seen; retrying in 30 s");
            }
        }
    }

    /// Ends all polls, each with an answer, and lets nobody wait any more. What agents were told is written down by
    /// [`save_seen`](Self::save_seen), for which the store must still be open.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.registry.each(|_, agent| {
            agent.wake(PollOutcome::Stopped);
        });
    }

    /// Writes down when agents were seen, and how they were.
    ///
    /// # Errors
    /// When the state cannot be written; what was not is written the next time.
    pub async fn save_seen(&self) -> Result<(), StoreError> {
        for shard in 0..Registry::shards() {
            let mut unsaved: Vec<(AgentId, SeenRecord)> = Vec::new();
            self.registry.each_of(shard, |id, agent| {
                if std::mem::take(&mut agent.is_unsaved) {
                    let status = agent.status.name().to_owned();
                    unsaved.push((id, SeenRecord { at_s: agent.seen_s, status }));
                }
            });
            for (at, some) in unsaved.chunks(TOGETHER).enumerate() {
                let write =
                    |(id, seen): &(AgentId, SeenRecord)| Write::put(Table::Seen, id.to_bytes(), encode(seen));
                if let Err(error) = self.store.commit(some.iter().map(write).collect::<Vec<_>>().into()).await
                {
                    for (id, _) in unsaved.get(at * TOGETHER..).unwrap_or_default() {
                        self.registry.with(*id, |agent| agent.is_unsaved = true);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
