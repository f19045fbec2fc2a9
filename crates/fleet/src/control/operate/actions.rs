//! Actions: ordered for some agents, delivered when they check in, and shown with what the agents said.

use super::OperatorError;
use super::agents::unknown;
use crate::agent_id::AgentId;
use crate::control::Fleet;
use crate::control::acknowledge::results_prefix;
use crate::record::{ActionRecord, QueueRecord, ResultRecord, decode, encode};
use crate::store::{Expected, KeyRange, StoreError, Table, Write};
use crate::time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// The types of actions that agents know. A policy comes by itself.
const KINDS: [&str; 9] = [
    "CANCEL",
    "INPUT_ACTION",
    "POLICY_REASSIGN",
    "REQUEST_DIAGNOSTICS",
    "SETTINGS",
    "UNENROLL",
    "UPGRADE",
    "MIGRATE",
    "PRIVILEGE_LEVEL_CHANGE",
];
/// The longest data of an action, in bytes.
pub(crate) const LONGEST_DATA: usize = 64 << 10;
const LONGEST_INPUT_TYPE: usize = 256;
/// Writes of a batch.
pub(super) const TOGETHER: usize = 1000;
/// Results that are shown, and their bytes.
const MOST_RESULTS: usize = 200;
const LONGEST_RESULTS: usize = 128 << 10;
/// Entries of the state that are read at a time.
const PAGE: usize = 50;
/// The counter of actions.
const NUMBER: &[u8] = b"actions";
const ATTEMPTS: u32 = 8;
/// How long agents may be away when an upgrade begins, where the order does not say when it expires: agents take one with a time to begin
/// and without an expiration for expired.
const UPGRADE_WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest time over which agents begin.
const LONGEST_ROLLOUT: Duration = Duration::from_secs(90 * 24 * 3600);

/// An action that an operator orders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionOrder {
    /// One of the types that agents know, such as `UPGRADE`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The agents: these, or else all with the policy in `policy_id`.
    #[serde(default)]
    pub(crate) agents: Option<Vec<String>>,
    /// The policy of the agents.
    #[serde(default)]
    pub(crate) policy_id: Option<String>,
    /// Parameters of the action; which ones depends on its type.
    #[serde(default)]
    pub(crate) data: Option<Box<RawValue>>,
    /// Of an `INPUT_ACTION`.
    #[serde(default)]
    pub(crate) input_type: Option<String>,
    /// When an agent that has not got it does not get it any more (RFC 3339).
    #[serde(default)]
    pub(crate) expiration: Option<String>,
    /// When it begins (RFC 3339); at once without it. Of an `UPGRADE` alone: agents keep no other action for later.
    #[serde(default)]
    pub(crate) start_time: Option<String>,
    /// The agents begin one after the other, over this time. Of an `UPGRADE` alone.
    #[serde(default)]
    pub(crate) rollout_duration_seconds: Option<u64>,
}

/// An action as operators see it.
#[derive(Debug, Serialize)]
pub(crate) struct ActionView {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expiration: Option<String>,
    /// When it was found that no agent has it to do any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<String>,
    /// When it was cancelled, and the action of type `CANCEL` that tells agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancel_action: Option<String>,
    /// How many agents it is for.
    pub(crate) agents: u64,
    /// How many have acknowledged it; where one action is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acknowledged: Option<usize>,
    /// How many have cancelled it instead; where one action is shown that was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<RawValue>>,
    /// Agents' answers: at most [`MOST_RESULTS`], of [`LONGEST_RESULTS`] in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<ResultView>,
}

/// One agent's answer to an action.
#[derive(Debug, Serialize)]
pub(crate) struct ResultView {
    pub(crate) agent_id: String,
    pub(crate) at: String,
    /// Whether the agent has cancelled it: the event is about that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cancelled: bool,
    pub(crate) event: Box<RawValue>,
}

impl Fleet {
    /// Orders an action: it is durable, and on its way to its agents, when this returns.
    ///
    /// # Errors
    /// [`OperatorError`]. Where the state fails in the middle, some agents may have it.
    pub(crate) async fn order(&self, order: ActionOrder) -> Result<ActionView, OperatorError> {
        if !KINDS.contains(&order.kind.as_str()) {
            return Err(OperatorError::Invalid(format!(
                "agents know no action of type `{}`; the types are {}",
                order.kind,
                KINDS.join(", ")
            )));
        }
        if let Some(data) = &order.data {
            check_data(data)?;
        }
        if order.input_type.as_ref().is_some_and(|kind| kind.len() > LONGEST_INPUT_TYPE) {
            return Err(OperatorError::Invalid(format!(
                "`input_type` has at most {LONGEST_INPUT_TYPE} bytes"
            )));
        }
        let agents = self.targets(order.agents.as_deref(), order.policy_id.as_deref()).await?;
        let moment = |name: &str, text: &Option<String>| {
            text.as_deref()
                .map(|text| {
                    time::parse_text(text).ok_or_else(|| {
                        OperatorError::Invalid(format!("`{name}` is a time such as 2026-01-31T12:00:00Z"))
                    })
                })
                .transpose()
        };
        let (expires_ms, start_ms) =
            (moment("expiration", &order.expiration)?, moment("start_time", &order.start_time)?);
        let spread = order.rollout_duration_seconds.map(Duration::from_secs);
        let is_upgrade = order.kind == "UPGRADE";
        if !is_upgrade && (start_ms.is_some() || spread.is_some()) {
            return Err(OperatorError::Invalid(
                "agents keep nothing for later but an UPGRADE: `start_time` and `rollout_duration_seconds` are for that".to_owned(),
            ));
        }
        if spread.is_some_and(|spread| spread > LONGEST_ROLLOUT) {
            return Err(OperatorError::Invalid("`rollout_duration_seconds` is at most 90 days".to_owned()));
        }
        let created_ms = time::now_ms();
        let last_ms = start_ms.unwrap_or(created_ms).saturating_add(millis(spread.unwrap_or_default()));
        let begins_later = start_ms.is_some() || spread.is_some();
        if begins_later && expires_ms.is_some_and(|expires| expires <= last_ms) {
            return Err(OperatorError::Invalid(
                "`expiration` is before the last agent is to begin".to_owned(),
            ));
        }
        let expires_ms =
            expires_ms.or_else(|| is_upgrade.then(|| last_ms.saturating_add(millis(UPGRADE_WITHIN))));
        let id = AgentId::random().to_string();
        let mut record = ActionRecord {
            number: 0,
            kind: order.kind,
            data: order.data,
            created_ms,
            expires_ms,
            input_type: order.input_type,
            agents: agents.len() as u64,
            finished_ms: None,
            cancelled: None,
        };
        self.keep_numbered(|number| {
            record.number = number;
            vec![Write::put(Table::Actions, id.as_str(), encode(&record))]
        })
        .await?;
        let total = agents.len().max(1) as u64;
        self.queue_for(&agents, |at, agent| {
            let start_ms = match spread {
                Some(spread) => {
                    let later = millis(spread).saturating_mul(at as u64) / total;
                    Some(start_ms.unwrap_or(created_ms).saturating_add(later))
                }
                None => start_ms,
            };
            (*agent, QueueRecord { action_id: id.clone(), start_ms, cancels: None })
        })
        .await?;
        Ok(view(&id, record))
    }

    /// The newest actions first, without their data.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn list_actions(&self, limit: usize) -> Result<Vec<ActionView>, OperatorError> {
        let mut newest: Vec<(u64, ActionView)> = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let range = KeyRange { prefix: b"", after: after.as_deref(), limit: PAGE };
            let page = self.store.list(Table::Actions, range).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (key, stored) in page {
                let record: ActionRecord = decode(&stored.value)?;
                let id = String::from_utf8_lossy(&key);
                newest.push((record.number, ActionView { data: None, ..view(&id, record) }));
            }
            newest.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
            newest.truncate(limit);
            // Reading waits for nothing, so others get their turn here.
            tokio::task::yield_now().await;
        }
        Ok(newest.into_iter().map(|(_, view)| view).collect())
    }

    /// An action, with what agents have said.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn show_action(&self, id: &str) -> Result<ActionView, OperatorError> {
        let stored = self.store.get(Table::Actions, id.as_bytes()).await?;
        let stored = stored.ok_or_else(|| unknown_action(id))?;
        let prefix = results_prefix(id);
        let action: ActionRecord = decode(&stored.value)?;
        let (mut results, mut bytes) = (Vec::new(), 0);
        let (mut acknowledged, mut cancelled) = (0, action.cancelled.as_ref().map(|_| 0));
        let mut after: Option<Vec<u8>> = None;
        loop {
            let range = KeyRange { prefix: &prefix, after: after.as_deref(), limit: PAGE };
            let page = self.store.list(Table::Results, range).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (key, stored) in page {
                let record: ResultRecord = decode(&stored.value)?;
                match (&mut cancelled, record.is_cancelled) {
                    (Some(cancelled), true) => *cancelled += 1,
                    _ => acknowledged += usize::from(!record.will_retry),
                }
                let agent = key.get(prefix.len()..).and_then(|agent| agent.first_chunk());
                if results.len() < MOST_RESULTS
                    && bytes + stored.value.len() <= LONGEST_RESULTS
                    && let Some(agent) = agent
                {
                    bytes += stored.value.len();
                    let ResultRecord { at_ms, event, is_cancelled, .. } = record;
                    let (agent_id, at) = (AgentId::from_bytes(*agent).to_string(), time::text(at_ms));
                    results.push(ResultView { agent_id, at, cancelled: is_cancelled, event });
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(ActionView { acknowledged: Some(acknowledged), cancelled, results, ..view(id, action) })
    }

    /// Queues for agents what `entry` makes of each and its place among all, and wakes those that wait.
    pub(super) async fn queue_for<T>(
        &self,
        targets: &[T],
        entry: impl Fn(usize, &T) -> (AgentId, QueueRecord),
    ) -> Result<(), StoreError> {
        for (first, some) in targets.chunks(TOGETHER).enumerate() {
            let entries = || (first * TOGETHER..).zip(some).map(|(at, target)| entry(at, target));
            let write = |number, (agent, record): (AgentId, QueueRecord)| {
                Write::put(Table::Queue, QueueRecord::key(agent, number), encode(&record))
            };
            // Each batch has a number of its own, taken in its transaction: so an agent whose newest number is known has no
            // older one still to come, whoever orders.
            let number =
                self.keep_numbered(|number| entries().map(|entry| write(number, entry)).collect()).await?;
            for (agent, _) in entries() {
                self.registry.with(agent, |agent| agent.queue(number));
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Writes what `writes` makes of a number that is higher than all before, which is taken in the same transaction; the number.
    pub(super) async fn keep_numbered(
        &self,
        mut writes: impl FnMut(u64) -> Vec<Write>,
    ) -> Result<u64, StoreError> {
        for _ in 0..ATTEMPTS {
            let last = self.store.get(Table::Counters, NUMBER).await?;
            let number = last.as_ref().and_then(|last| last.value.first_chunk());
            let number = number.map_or(0, |number| u64::from_be_bytes(*number)) + 1;
            let expected = last.map_or(Expected::Absent, |last| Expected::Version(last.version));
            let counter = Write::put(Table::Counters, NUMBER, number.to_be_bytes().to_vec());
            let mut batch = writes(number);
            batch.push(counter.expecting(expected));
            match self.store.commit(batch.into()).await {
                Err(StoreError::Conflict) => {}
                outcome => return outcome.map(|_| number),
            }
        }
        Err(StoreError::Conflict)
    }

    /// The agents of an action.
    async fn targets(
        &self,
        ids: Option<&[String]>,
        policy: Option<&str>,
    ) -> Result<Vec<AgentId>, OperatorError> {
        let mut agents = Vec::new();
        match (ids, policy) {
            (Some(ids), None) => {
                for id in ids {
                    let id: AgentId =
                        id.parse().map_err(|_| OperatorError::Unknown(format!("agent `{id:.80}`")))?;
                    if self.registry.with(id, |_| ()).is_none() && !self.find_agent(id).await? {
                        return Err(unknown(id));
                    }
                    agents.push(id);
                }
            }
            (None, Some(policy)) => {
                self.registry.each(|id, agent| {
                    if *agent.policy == *policy {
                        agents.push(id);
                    }
                });
            }
            _ => {
                let words = "an action is for either `agents` or the agents of `policy_id`";
                return Err(OperatorError::Invalid(words.to_owned()));
            }
        }
        agents.sort_unstable();
        agents.dedup();
        match agents.is_empty() {
            true => Err(OperatorError::Invalid(match policy {
                Some(policy) => format!("no agent has policy `{policy:.80}`"),
                None => "an action needs at least one agent".to_owned(),
            })),
            false => Ok(agents),
        }
    }
}

/// Agents read the data of an action as an object. What they cannot read they would get again and again.
fn check_data(data: &RawValue) -> Result<(), OperatorError> {
    if data.get().len() > LONGEST_DATA {
        return Err(OperatorError::Invalid(format!(
            "the data of an action has at most {LONGEST_DATA} bytes"
        )));
    }
    match serde_json::from_str(data.get()) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => Err(OperatorError::Invalid("the data of an action is an object".to_owned())),
        Err(error) => Err(OperatorError::Invalid(format!("the data of the action cannot be read: {error}"))),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn unknown_action(id: &str) -> OperatorError {
    OperatorError::Unknown(format!("action `{id:.80}`"))
}

fn view(id: &str, record: ActionRecord) -> ActionView {
    let (cancelled_at, cancel_action) =
        record.cancelled.map(|cancelled| (time::text(cancelled.at_ms), cancelled.action_id)).unzip();
    ActionView {
        id: id.to_owned(),
        kind: record.kind,
        created_at: time::text(record.created_ms),
        expiration: record.expires_ms.map(time::text),
        finished_at: record.finished_ms.map(time::text),
        cancelled_at,
        cancel_action,
        agents: record.agents,
        acknowledged: None,
        cancelled: None,
        data: record.data,
        results: Vec::new(),
    }
}
