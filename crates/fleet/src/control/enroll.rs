//! Enrolment: an agent comes with a token, and gets an id and a key.

use super::{Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::api_key::NewSecret;
use crate::record::{AgentRecord, MetadataPart, decode, encode};
use crate::registry::{Agent, AgentVersion};
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
        let before = self.enrolled_before(request).await?;
        let id = request.id.or(before.map(|(id, _)| id)).unwrap_or_else(AgentId::random);
        let secret = NewSecret::random();
        let hash_of = |json: Option<&RawValue>| json.map_or(0, |json| xxh3_64(json.get().as_bytes()));
        let record = AgentRecord {
            policy_id,
            revision: 0,
            key: secret.hash(),
            enrolled_ms: time::now_ms(),
            version: request.version.to_string(),
            enrollment_id: request.enrollment_id.map(str::to_owned),
            tags: request.tags.clone(),
            metadata_hash: hash_of(request.local_metadata),
            components_hash: 0,
            audit_unenrolled: None,
        };
        let key = id.to_bytes();
        let expected = match before {
            Some((agent, version)) if agent == id => Expected::Version(version),
            _ => Expected::Absent,
        };
        let mut batch = vec![Write::put(Table::Agents, key, encode(&record)).expecting(expected)];
        batch.extend(request.local_metadata.map(|json| MetadataPart::Local.write(id, json)));
        batch.extend(request.user_provided_metadata.map(|json| MetadataPart::UserProvided.write(id, json)));
        if let Some(enrollment_id) = request.enrollment_id {
            batch.push(Write::put(Table::Enrollments, enrollment_id.as_bytes(), key.to_vec()));
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
                    StoreError::Conflict => {
                        FleetError::NotReplaceable("an agent with this id has enrolled already")
                    }
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

    /// The agent that has enrolled with the same id of enrolment and has never checked in, and the version of its record.
    async fn enrolled_before(&self, request: &Enrollment<'_>) -> Result<Option<(AgentId, u64)>, FleetError> {
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
        let Some(stored) = self.store.get(Table::Agents, &id.to_bytes()).await? else { return Ok(None) };
        let record: AgentRecord = decode(&stored.value)?;
        // When it was seen is written now and then, that it has acknowledged a policy at once.
        let is_it = record.enrollment_id.as_deref() == Some(enrollment_id) && record.revision == 0;
        Ok(is_it.then_some((id, stored.version)))
    }
}
