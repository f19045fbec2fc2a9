//! Acknowledgements: what an agent has done.

use super::{ATTEMPTS, Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::record::{AgentRecord, MetadataPart, QueueRecord, ResultRecord, decode, encode};
use crate::store::{Expected, KeyRange, StoreError, Table, Write};
use crate::time;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// The longest event that is kept, in bytes; of a longer one only the action's end is.
const LONGEST_EVENT: usize = 8 << 10;
/// Queued actions that are looked at: they come to the agent in their order, so what it acknowledges is among the first.
const MOST_QUEUED: usize = 1000;
/// Events that are looked up although their action is not queued: an agent repeats at most the actions of a few answers.
const MOST_LOOK_UPS: usize = 100;
/// Events that are looked up before others have a turn.
const EVENTS_PER_YIELD: usize = 50;
/// Actions behind which an agent is gone.
const UNENROLLING_ACTIONS: [&str; 2] = ["UNENROLL", "MIGRATE"];

/// An event of an acknowledgement.
#[derive(Debug)]
pub(crate) struct AckEvent<'a> {
    pub(crate) action_id: &'a str,
    pub(crate) agent_id: &'a str,
    /// All of it, as it was sent.
    pub(crate) whole: &'a RawValue,
    /// Whether the agent says that it failed.
    pub(crate) has_failed: bool,
    /// Whether the agent says that it tries again, so that another event follows.
    pub(crate) will_retry: bool,
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckItem {
    pub(crate) status: u16,
    pub(crate) message: &'static str,
}

impl AckItem {
    const OK: AckItem = AckItem { status: 200, message: "OK" };
    const UNKNOWN: AckItem = AckItem { status: 404, message: "no such action for this agent" };
    const OF_ANOTHER: AckItem = AckItem { status: 400, message: "the event is for another agent" };
}

/// The effects of the events of one acknowledgement, collected before they are written.
struct Acknowledgement<'a> {
    id: AgentId,
    /// The agent's queued actions without those acknowledged so far; `None` if all events are about policies.
    queued: Option<HashMap<String, QueuedAction>>,
    /// The actions that it acknowledges here, and those that it has cancelled.
    done: HashSet<&'a str>,
    cancelled: HashSet<String>,
    /// Policies, and their revisions.
    revisions: Vec<(&'a str, u64)>,
    batch: Vec<Write>,
    look_ups: usize,
    /// Whether one of the actions ends the enrolment.
    leaves: bool,
}

/// The outcome that an event reports for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is over.
    End,
    /// It has failed, and is tried again.
    Retry,
    /// The agent has cancelled it.
    Cancellation,
}

/// An entry of an agent's queue.
#[derive(Debug)]
pub(super) struct QueuedAction {
    key: Vec<u8>,
    /// The number of the entry that it cancels.
    cancels: Option<u64>,
}

impl Fleet {
    /// Takes what an agent has acknowledged; the outcome of each event, in their order. All that succeeded is durable.
    ///
    /// # Errors
    /// [`FleetError`]; nothing was written then.
    pub(crate) async fn acknowledge(
        &self,
        id: AgentId,
        events: &[AckEvent<'_>],
    ) -> Result<Vec<AckItem>, FleetError> {
        let newest = self.registry.with(id, |agent| agent.newest);
        // Most acknowledgements are of policies, which are in no queue.
        let queued = match events.iter().any(|event| policy_of(event.action_id).is_none()) {
            true => Some(self.queued(id).await?),
            false => None,
        };
        let mut taken = Acknowledgement::of(id, queued);
        let mut items = Vec::with_capacity(events.len());
        for (at, event) in events.iter().enumerate() {
            if at % EVENTS_PER_YIELD == EVENTS_PER_YIELD - 1 {
                // Looking an event up waits for nothing, so others get their turn here.
                tokio::task::yield_now().await;
            }
            items.push(self.take_event(&mut taken, event).await?);
        }
        if taken.leaves {
            self.remove_agent(id, taken.batch).await?;
        } else {
            self.keep_acknowledged(id, &taken.revisions, taken.batch).await?;
            if taken.queued.is_some_and(|queued| queued.is_empty()) {
                self.registry.with(id, |agent| agent.none_is_queued(newest));
            }
        }
        self.counts.acknowledged.fetch_add(events.len() as u64, Relaxed);
        Ok(items)
    }

    async fn take_event<'a>(
        &self,
        taken: &mut Acknowledgement<'a>,
        event: &AckEvent<'a>,
    ) -> Result<AckItem, FleetError> {
        if !event.agent_id.is_empty() && event.agent_id.parse() != Ok(taken.id) {
            return Ok(AckItem::OF_ANOTHER);
        }
        if let Some(revision) = policy_of(event.action_id) {
            if !event.has_failed {
                taken.revisions.push(revision);
            }
            return Ok(AckItem::OK);
        }
        if event.will_retry
            && taken.queued.as_ref().is_some_and(|queued| queued.contains_key(event.action_id))
        {
            taken.put_result(event.action_id, event, Outcome::Retry);
            return Ok(AckItem::OK);
        }
        let entry = taken.queued.as_mut().and_then(|queued| queued.remove(event.action_id));
        let is_new = match &entry {
            Some(_) => true,
            None if taken.done.contains(event.action_id) => false,
            None if taken.look_ups >= MOST_LOOK_UPS => return Ok(AckItem::UNKNOWN),
            None => {
                taken.look_ups += 1;
                match self.result_record(event.action_id, taken.id).await? {
                    // Where it was too late to cancel it, what it came to counts.
                    Some(result) => result.is_cancelled,
                    None if taken.cancelled.contains(event.action_id) => true,
                    None => return Ok(AckItem::UNKNOWN),
                }
            }
        };
        // The answer to the first may have been lost.
        if is_new {
            taken.leaves |= !event.has_failed && self.ends(event.action_id).await?;
            taken.end(event, entry);
        }
        Ok(AckItem::OK)
    }

    /// Removes an agent and all that is about it, with other writes; its key is nobody's from now on. What it said of actions
    /// stays. False when there is no such agent.
    pub(super) async fn remove_agent(&self, id: AgentId, batch: Vec<Write>) -> Result<bool, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some((record, version)) = self.agent_record(id).await? else {
                // A removal that failed may have reached the disk: then the agent is in memory alone.
                return Ok(self.registry.remove(id));
            };
            match self.remove_record(id, (record, version), batch.clone()).await {
                Err(StoreError::Conflict) => {}
                outcome => return outcome.map(|()| true),
            }
        }
        Err(StoreError::Conflict)
    }

    async fn remove_record(
        &self,
        id: AgentId,
        (record, version): (AgentRecord, u64),
        mut batch: Vec<Write>,
    ) -> Result<(), StoreError> {
        let key = id.to_bytes();
        batch.push(Write::remove(Table::Agents, key).expecting(Expected::Version(version)));
        batch.push(Write::remove(Table::Seen, key));
        batch.extend(MetadataPart::ALL.map(|part| Write::remove(Table::Metadata, part.key(id))));
        if let Some(enrollment_id) = record.enrollment_id {
            batch.push(Write::remove(Table::Enrollments, enrollment_id));
        }
        let range = KeyRange { prefix: &key, after: None, limit: MOST_QUEUED };
        let queued = self.store.list(Table::Queue, range).await?;
        batch.extend(queued.into_iter().map(|(key, _)| Write::remove(Table::Queue, key)));
        self.store.commit(batch.into()).await?;
        self.registry.remove(id);
        Ok(())
    }

    /// Takes note that an agent says that it was uninstalled. False when it has said so before.
    ///
    /// # Errors
    /// [`FleetError`].
    pub(crate) async fn audit_unenroll(&self, id: AgentId, reason: &str) -> Result<bool, FleetError> {
        let mut is_new = false;
        let is_there = self
            .change_agent(id, None, |record| {
                is_new = record.audit_unenrolled.is_none();
                record.audit_unenrolled = Some(reason.to_owned());
                is_new.then(Vec::new)
            })
            .await?;
        let is_known = self.registry.with(id, |agent| agent.audit_unenrolled = true).is_some();
        match is_there.is_some() && is_known {
            true => Ok(is_new),
            false => Err(FleetError::Unauthorized),
        }
    }

    /// Writes what was acknowledged: revisions of policies, of which only those of the agent's policy count, and `batch`.
    async fn keep_acknowledged(
        &self,
        id: AgentId,
        revisions: &[(&str, u64)],
        batch: Vec<Write>,
    ) -> Result<(), FleetError> {
        let newest_of = |policy: &str| {
            revisions.iter().filter(|(of, _)| *of == policy).map(|(_, revision)| *revision).max()
        };
        if revisions.is_empty() {
            if !batch.is_empty() {
                self.store.commit(batch.into()).await?;
            }
            return Ok(());
        }
        let version = self
            .change_agent(id, None, |record| {
                // The agent may have got another policy meanwhile.
                let revision = newest_of(&record.policy_id).unwrap_or(0);
                let is_newer = revision > record.revision;
                record.revision = record.revision.max(revision);
                (is_newer || !batch.is_empty()).then(|| batch.clone())
            })
            .await?;
        let version = version.ok_or(FleetError::Unauthorized)?;
        self.registry.with(id, |agent| {
            agent.advance(version);
            let acknowledged = newest_of(&agent.policy).unwrap_or(0);
            self.note_revision(agent, agent.revision.max(acknowledged));
        });
        Ok(())
    }

    /// An agent's queued actions, by action id.
    pub(super) async fn queued(&self, id: AgentId) -> Result<HashMap<String, QueuedAction>, FleetError> {
        let range = KeyRange { prefix: &id.to_bytes(), after: None, limit: MOST_QUEUED };
        let mut queued = HashMap::new();
        for (key, stored) in self.store.list(Table::Queue, range).await? {
            let record: QueueRecord = decode(&stored.value)?;
            queued.insert(record.action_id, QueuedAction { key, cancels: record.cancels });
        }
        Ok(queued)
    }

    /// An agent's answer to an action.
    pub(super) async fn result_record(
        &self,
        action_id: &str,
        id: AgentId,
    ) -> Result<Option<ResultRecord>, StoreError> {
        let stored = self.store.get(Table::Results, &result_key(action_id, id)).await?;
        stored.map(|stored| decode(&stored.value)).transpose()
    }

    /// Whether an agent is gone behind this action.
    async fn ends(&self, action_id: &str) -> Result<bool, FleetError> {
        let action = self.action_record(action_id).await?;
        Ok(action.is_some_and(|action| UNENROLLING_ACTIONS.contains(&action.kind.as_str())))
    }
}

impl<'a> Acknowledgement<'a> {
    fn of(id: AgentId, queued: Option<HashMap<String, QueuedAction>>) -> Acknowledgement<'a> {
        Acknowledgement {
            id,
            queued,
            done: HashSet::new(),
            cancelled: HashSet::new(),
            revisions: Vec::new(),
            batch: Vec::new(),
            look_ups: 0,
            leaves: false,
        }
    }

    /// Ends an action with an event, and takes its entry out of the queue.
    fn end(&mut self, event: &AckEvent<'a>, entry: Option<QueuedAction>) {
        self.done.insert(event.action_id);
        self.put_result(event.action_id, event, Outcome::End);
        let Some(QueuedAction { key, cancels }) = entry else { return };
        self.batch.push(Write::remove(Table::Queue, key));
        if let Some(target) = cancels.filter(|_| !event.has_failed) {
            self.end_cancelled(&QueueRecord::key(self.id, target), event);
        }
    }

    /// Ends the action that the agent has cancelled, if it has not answered that before.
    fn end_cancelled(&mut self, target: &[u8], event: &AckEvent<'a>) {
        let Some(queued) = &mut self.queued else { return };
        let Some(action_id) = queued.iter().find(|(_, entry)| entry.key == target).map(|(id, _)| id.clone())
        else {
            return;
        };
        queued.remove(&action_id);
        self.batch.push(Write::remove(Table::Queue, target));
        self.put_result(&action_id, event, Outcome::Cancellation);
        self.cancelled.insert(action_id);
    }

    fn put_result(&mut self, action_id: &str, event: &AckEvent<'_>, outcome: Outcome) {
        let event = match event.whole.get().len() <= LONGEST_EVENT {
            true => event.whole.to_owned(),
            false => RawValue::NULL.to_owned(),
        };
        let (is_cancelled, will_retry) = (outcome == Outcome::Cancellation, outcome == Outcome::Retry);
        let record = ResultRecord { at_ms: time::now_ms(), event, is_cancelled, will_retry };
        let key = result_key(action_id, self.id);
        self.batch.push(Write::put(Table::Results, key, encode(&record)));
    }
}

/// The key of what an agent has said of an action.
pub(super) fn result_key(action_id: &str, id: AgentId) -> Vec<u8> {
    [&results_prefix(action_id)[..], &id.to_bytes()].concat()
}

/// The beginning of the keys of all that agents have said of an action.
pub(super) fn results_prefix(action_id: &str) -> Vec<u8> {
    [action_id.as_bytes(), b"\0"].concat()
}

/// The policy and the revision in the id of an action that brings one: `policy:ID:REVISION`, and perhaps more, as older
/// servers wrote it.
fn policy_of(action_id: &str) -> Option<(&str, u64)> {
    let mut parts = action_id.strip_prefix("policy:")?.split(':');
    Some((parts.next()?, parts.next()?.parse().ok()?))
}
