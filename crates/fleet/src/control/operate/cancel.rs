//! Cancels an action: agents that have not got it do not get it, and those that have got it are told.
//!
//! The mark on the action comes first and is durable: from then on no check-in delivers it. Then each agent that has not answered the
//! action gets a `CANCEL` behind it in its queue, and its next check-in says which of the two it has received: only with the first does it
//! get the second.

#[cfg(test)]
mod tests;

use super::OperatorError;
use super::actions::{TOGETHER, unknown_action};
use crate::agent_id::AgentId;
use crate::control::Fleet;
use crate::control::load::Pages;
use crate::record::{ActionRecord, Cancellation, QueueRecord, decode, encode};
use crate::store::{Expected, StoreError, Table, Write};
use crate::time;
use serde::Serialize;

const CANCEL: &str = "CANCEL";

/// A cancelled action as operators see it.
#[derive(Debug, Serialize)]
pub(crate) struct CancelledView {
    pub(crate) id: String,
    pub(crate) cancelled_at: String,
    /// The action of type `CANCEL` for the agents that have got it.
    pub(crate) cancel_action: String,
    /// Agents that have not answered it.
    pub(crate) unanswered: usize,
}

/// Agents with an action in their queues, and the numbers of the entries.
type Unanswered = Vec<(AgentId, u64)>;

impl Fleet {
    /// Cancels an action: it is durable when this returns. Again for one that is cancelled, it tells the agents that an attempt before
    /// did not come to.
    ///
    /// # Errors
    /// [`OperatorError`]. Where the state fails in the middle, the action may be cancelled without all agents being told.
    pub(crate) async fn cancel(&self, id: &str) -> Result<CancelledView, OperatorError> {
        let stored = self.store.get(Table::Actions, id.as_bytes()).await?;
        let stored = stored.ok_or_else(|| unknown_action(id))?;
        let action: ActionRecord = decode(&stored.value)?;
        let cancelled = match &action.cancelled {
            Some(cancelled) => cancelled.clone(),
            None => self.mark_cancelled(id, action, stored.version).await?,
        };
        let unanswered = self.queue_cancellations(id, &cancelled.action_id).await?;
        Ok(CancelledView {
            id: id.to_owned(),
            cancelled_at: time::text(cancelled.at_ms),
            cancel_action: cancelled.action_id,
            unanswered,
        })
    }

    /// Writes down that an action is cancelled, with the action that will say so.
    async fn mark_cancelled(
        &self,
        id: &str,
        action: ActionRecord,
        version: u64,
    ) -> Result<Cancellation, OperatorError> {
        if action.kind == CANCEL {
            return Err(OperatorError::Invalid(
                "a `CANCEL` cannot be cancelled; order the action anew".to_owned(),
            ));
        }
        let agents = self.count_queued(id).await?;
        if agents == 0 {
            return Err(OperatorError::InUse(format!(
                "action `{id}` is done: its agents have answered it, or are gone; `tidegate fleet action show {id}` has the answers"
            )));
        }
        let cancelled = Cancellation { at_ms: time::now_ms(), action_id: AgentId::random().to_string() };
        let data = serde_json::value::to_raw_value(&serde_json::json!({ "target_id": id }));
        let mut telling = ActionRecord {
            number: 0,
            kind: CANCEL.to_owned(),
            data: data.ok(),
            created_ms: cancelled.at_ms,
            // It is about what is in the queue: without that it goes by itself.
            expires_ms: None,
            input_type: None,
            agents,
            finished_ms: None,
            cancelled: None,
        };
        let marked = encode(&ActionRecord { cancelled: Some(cancelled.clone()), ..action });
        self.keep_numbered(|number| {
            telling.number = number;
            let mark = Write::put(Table::Actions, id, marked.clone());
            let telling = Write::put(Table::Actions, cancelled.action_id.as_str(), encode(&telling));
            vec![mark.expecting(Expected::Version(version)), telling]
        })
        .await?;
        Ok(cancelled)
    }

    /// Queues a `CANCEL` for each agent that has an action in its queue, and no such behind it; how many have the action there.
    async fn queue_cancellations(&self, id: &str, cancel_id: &str) -> Result<usize, StoreError> {
        let (mut untold, mut unanswered) = (Unanswered::new(), 0);
        let mut pages = Pages::of(self, Table::Queue);
        while let Some(page) = pages.next().await? {
            for (key, stored) in page {
                let queued: QueueRecord = decode(&stored.value)?;
                let Some((agent, number)) = QueueRecord::place(&key) else { continue };
                if queued.action_id == id {
                    unanswered += 1;
                    untold.push((agent, number));
                } else if queued.action_id == cancel_id {
                    untold.pop_if(|(last, _)| *last == agent);
                }
            }
            // What tells the last one may be on the next page.
            if untold.len() > TOGETHER
                && let Some(last) = untold.pop()
            {
                self.tell(&untold, cancel_id).await?;
                untold.clear();
                untold.push(last);
            }
            tokio::task::yield_now().await;
        }
        self.tell(&untold, cancel_id).await?;
        Ok(unanswered)
    }

    async fn tell(&self, untold: &Unanswered, cancel_id: &str) -> Result<(), StoreError> {
        self.queue_for(untold, |_, (agent, number)| {
            let action_id = cancel_id.to_owned();
            (*agent, QueueRecord { action_id, start_ms: None, cancels: Some(*number) })
        })
        .await
    }

    /// How many agents have an action in their queues.
    async fn count_queued(&self, id: &str) -> Result<u64, StoreError> {
        let mut agents = 0;
        let mut pages = Pages::of(self, Table::Queue);
        while let Some(page) = pages.next().await? {
            for (_, stored) in page {
                let queued: QueueRecord = decode(&stored.value)?;
                agents += u64::from(queued.action_id == id);
            }
            tokio::task::yield_now().await;
        }
        Ok(agents)
    }
}
