//! Enrolment: an agent comes with a token, and gets an id and a key.

use super::{Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::api_key::NewSecret;
use crate::record::{AgentRecord, MetadataPart, encode};
use crate::registry::{Agent, AgentVersion};
use crate::replace_token::ReplaceToken;
use crate::store::{Batch, Expected, StoreError, Table, Write};
use crate::time;
use serde_json::value::RawValue;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// A request to enrol.
#[derive(Debug)]
pub(crate) struct Enrollment<'a> {
    pub(crate) token: &'a str,
    pub(crate) version: AgentVersion,
    /// The id that the agent wishes.
    pub(crate) id: Option<AgentId>,
    /// By which the same agent is known again when it has lost the answer.
    pub(crate) enrollment_id: Option<&'a str>,
    /// With which another takes the place of the agent, if it knows its id, and with which this one does.
    pub(crate) replace_token: Option<&'a str>,
    pub(crate) local_metadata: Option<&'a RawValue>,
    pub(crate) user_provided_metadata: Option<&'a RawValue>,
    pub(crate) tags: Vec<String>,
}

/// An agent that has enrolled.
#[derive(Debug)]
pub(crate) struct Enrolled {
    pub(crate) id: AgentId,
    pub(crate) policy_id: Arc<str>,
    pub(crate) enrolled_ms: u64,
    /// The text that it presents from now on.
    pub(crate) access_api_key: String,
}

/// An agent whose place another takes, and the version of its record.
struct Replaced {
    id: AgentId,
    version: u64,
    record: AgentRecord,
}

const TAKEN: FleetError = FleetError::NotReplaceable("an agent with this id has enrolled already");

impl Fleet {
    /// Enrols an agent. It is durable when this returns.
    ///
    /// # Errors
    /// [`FleetError`]; nothing was changed then.
    pub(crate) async fn enroll(&self, request: &Enrollment<'_>) -> Result<Enrolled, FleetError> {
        let policy_id = {
            let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
            // It may have been revoked since the head was looked at.
            tokens.get(request.token).ok_or(FleetError::Unauthorized)?.policy_id.clone()
        };
        let policy = self.find_policy(&policy_id).await?.ok_or(FleetError::Unauthorized)?;
        let replaced = self.replaced(request).await?;
        let id = request.id.or(replaced.as_ref().map(|replaced| replaced.id)).unwrap_or_else(AgentId::random);
        let secret = NewSecret::random();
        let hash_of = |json: Option<&RawValue>| json.map_or(0, |json| xxh3_64(json.get().as_bytes()));
        let record = AgentRecord {
            policy_id,
            revision: 0,
            key: secret.hash(),
            enrolled_ms: time::now_ms(),
            version: request.version.to_string(),
            enrollment_id: request.enrollment_id.map(str::to_owned),
            replace_token: request.replace_token.map(ReplaceToken::of),
            tags: request.tags.clone(),
            metadata_hash: hash_of(request.local_metadata),
            components_hash: 0,
            audit_unenrolled: None,
        };
        let mut batch = replaced.as_ref().map(Replaced::removals).unwrap_or_default();
        let expected = replaced.map_or(Expected::Absent, |replaced| Expected::Version(replaced.version));
        batch.push(Write::put(Table::Agents, id.to_bytes(), encode(&record)).expecting(expected));
        batch.extend(request.local_metadata.map(|json| MetadataPart::Local.write(id, json)));
        batch.extend(request.user_provided_metadata.map(|json| MetadataPart::UserProvided.write(id, json)));
        if let Some(enrollment_id) = request.enrollment_id {
            batch.push(Write::put(Table::Enrollments, enrollment_id, id.to_bytes().to_vec()));
        }
        let metadata = [request.local_metadata, request.user_provided_metadata];
        let bytes = metadata.iter().flatten().map(|json| json.get().len()).sum();
        let batch = Batch { writes: batch, memory: Some(self.metadata_memory(bytes)?) };
        self.registry.reserve()?;
        let version = match self.store.commit(batch).await {
            Ok(version) => version,
            Err(error) => {
                self.registry.release();
                return Err(match error {
                    StoreError::Conflict => TAKEN,
                    error => error.into(),
                });
            }
        };
        let mut agent = Agent::new(record.key, Arc::clone(&policy.id));
        (agent.metadata_hash, agent.version) = (record.metadata_hash, request.version);
        agent.advance(version);
        self.registry.insert(id, agent);
        self.counts.enrolled.fetch_add(1, Relaxed);
        Ok(Enrolled {
            id,
            policy_id: Arc::clone(&policy.id),
            enrolled_ms: record.enrolled_ms,
            access_api_key: secret.token(&id.to_string()),
        })
    }

    /// The agent whose place the request takes, if it takes one.
    async fn replaced(&self, request: &Enrollment<'_>) -> Result<Option<Replaced>, FleetError> {
        let same = self.enrolled_before(request).await?;
        let Some(id) = request.id else { return Ok(same) };
        if same.as_ref().is_some_and(|same| same.id == id) {
            return Ok(same);
        }
        let Some((record, version)) = self.agent_record(id).await? else { return Ok(None) };
        let is_right =
            record.replace_token.as_ref().zip(request.replace_token).map(|(known, token)| known.is(token));
        match is_right {
            Some(true) => Ok(Some(Replaced { id, version, record })),
            Some(false) => {
                Err(FleetError::NotReplaceable("`replace_token` is not that of the agent with this id"))
            }
            None => Err(TAKEN),
        }
    }

    /// The agent that has enrolled with the same id of enrolment and has never checked in.
    async fn enrolled_before(&self, request: &Enrollment<'_>) -> Result<Option<Replaced>, FleetError> {
        let Some(enrollment_id) = request.enrollment_id else { return Ok(None) };
        let Some(found) = self.store.get(Table::Enrollments, enrollment_id.as_bytes()).await? else {
            return Ok(None);
        };
        let Some(id) = found.value.first_chunk().map(|bytes| AgentId::from_bytes(*bytes)) else {
            return Ok(None);
        };
        if self.store.is_shared() && self.registry.with(id, |_| ()).is_none() {
            self.find_agent(id).await?;
        }
        if self.registry.with(id, |agent| agent.seen_s != 0).unwrap_or(true) {
            return Ok(None);
        }
        let Some((record, version)) = self.agent_record(id).await? else { return Ok(None) };
        // When it was seen is written now and then, that it has acknowledged a policy at once.
        let is_it = record.enrollment_id.as_deref() == Some(enrollment_id) && record.revision == 0;
        Ok(is_it.then_some(Replaced { id, version, record }))
    }
}

impl Replaced {
    /// Removes what was said of the agent. What is queued for its id stays.
    fn removals(&self) -> Vec<Write> {
        let mut removals = vec![Write::remove(Table::Seen, self.id.to_bytes())];
        removals.extend(MetadataPart::ALL.map(|part| Write::remove(Table::Metadata, part.key(self.id))));
        if let Some(enrollment_id) = &self.record.enrollment_id {
            removals.push(Write::remove(Table::Enrollments, enrollment_id.as_str()));
        }
        removals
    }
}
