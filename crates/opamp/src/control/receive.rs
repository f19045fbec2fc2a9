//! A message of an agent, and the answer to it.

use super::Opamp;
use super::configs::best;
use crate::message::{
    AgentToServer, Attributes, EncodedConfig, REQUEST_INSTANCE_UID, ServerToAgent,
    agent_capability as capability, config_files,
};
use crate::record::{AgentRecord, EffectiveRecord};
use crate::registry::{Agent, Attached, LONGEST_TEXT};
use crate::secrets::masked;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tidegate_arena::ChargeError;
use tidegate_fleet::{AgentId, Expected, StoreError, Table, Write, decode, encode};
use xxhash_rust::xxh3::xxh3_64;

/// An effective configuration is kept so far, in bytes.
const LONGEST_EFFECTIVE: usize = 64 << 10;
/// Files of it that are kept.
const MOST_FILES: usize = 16;
/// The error of a configuration is kept so far, in bytes.
const LONGEST_ERROR: usize = 1 << 10;
/// An agent that polls and has not reported a configuration is sent it again after this time.
const OFFER_AGAIN: Duration = Duration::from_secs(60);
/// How often a write that was decided on an older version is decided on again.
pub(super) const ATTEMPTS: u32 = 8;

/// The state of a WebSocket connection. Plain HTTP has none.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// The agent, and the number of the connection.
    pub(crate) agent: Option<(AgentId, u32)>,
    is_greeted: bool,
}

/// The answer to an agent.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// Behind those bytes.
    pub(crate) config: Option<Arc<EncodedConfig>>,
    /// Whom it is for, where it has a configuration.
    pub(crate) agent: Option<AgentId>,
}

/// Why an agent is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The message cannot be read.
    #[error("the message is malformed: {0}")]
    Malformed(String),
    /// There is no memory for another agent.
    #[error("there is no memory for another agent; try again later")]
    Memory,
    /// The state is not available.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ChargeError> for ReceiveError {
    fn from(_: ChargeError) -> ReceiveError {
        ReceiveError::Memory
    }
}

impl From<tidegate_wire::proto::Malformed> for ReceiveError {
    fn from(error: tidegate_wire::proto::Malformed) -> ReceiveError {
        ReceiveError::Malformed(error.to_string())
    }
}

/// What of a message is new, and goes to the state.
#[derive(Debug, Clone, Copy, Default)]
struct News {
    description: bool,
    status: bool,
    effective: bool,
    is_gap: bool,
}

impl Opamp {
    /// Takes a message, and answers it when what it says is in the state.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub(crate) async fn receive(
        &self,
        bytes: &[u8],
        session: Option<&mut Session>,
    ) -> Result<Answer, ReceiveError> {
        self.counts.messages.fetch_add(1, Relaxed);
        let mut message = AgentToServer::read(bytes)?;
        let uid: [u8; 16] = message
            .instance_uid
            .try_into()
            .map_err(|_| ReceiveError::Malformed("an instance uid has 16 bytes".to_owned()))?;
        let id = AgentId::from_bytes(uid);
        if message.flags & REQUEST_INSTANCE_UID != 0 || uid == [0; 16] {
            return Ok(self.renamed(id));
        }
        if self.registry.with(id, |_| ()).is_none() {
            self.registry.add(id, Agent::new())?;
        }
        let is_polling = session.is_none();
        let mut is_greeted = false;
        if let Some(session) = session {
            if session.agent.is_none_or(|(own, _)| own != id) {
                self.leave(session);
                match self.registry.attach(id, message.sequence) {
                    Attached::As(number) => session.agent = Some((id, number)),
                    Attached::Duplicate => return Ok(self.renamed(id)),
                    // It was removed just now.
                    Attached::Unknown => return Err(ReceiveError::Memory),
                }
            }
            is_greeted = std::mem::replace(&mut session.is_greeted, true);
        }
        let news = self.registry.with(id, |agent| news(agent, &mut message)).unwrap_or_default();
        if news.description || news.status || news.effective {
            // On the heap: most messages write nothing.
            if let Err(error) = Box::pin(self.save(id, &message, news)).await {
                // The same message again goes on; any other one has a gap before it, and what was not taken is asked for.
                self.registry.with(id, |agent| agent.sequence = Some(message.sequence.wrapping_sub(1)));
                return Err(error);
            }
        }
        Ok(self.answer(id, news.is_gap, is_greeted, is_polling))
    }

    /// What there is for an agent that has not sent anything: a configuration, or an order to restart.
    pub(crate) fn pushed(&self, id: AgentId) -> Option<Answer> {
        let answer = self.answer(id, false, true, false);
        let is_empty =
            answer.config.is_none() && answer.bytes == ServerToAgent::to(&id.to_bytes()).into_bytes();
        (!is_empty).then_some(answer)
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, session: &mut Session) {
        if let Some((id, number)) = session.agent.take() {
            self.registry.detach(id, number);
        }
    }

    /// The answer that gives an agent another uid.
    fn renamed(&self, id: AgentId) -> Answer {
        let mut message = ServerToAgent::to(&id.to_bytes());
        message.capabilities(self.offer.is_some());
        message.new_uid(&AgentId::random().to_bytes());
        Answer { bytes: message.into_bytes(), ..Answer::default() }
    }

    /// A configuration did not get as far as the agent: it is offered again.
    pub(crate) fn withdraw(&self, answer: &Answer) {
        if let Some(id) = answer.agent {
            self.registry.with(id, |agent| agent.offered = None);
        }
    }

    fn answer(&self, id: AgentId, is_gap: bool, is_greeted: bool, is_polling: bool) -> Answer {
        let mut message = ServerToAgent::to(&id.to_bytes());
        let configs = self.configs.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let config = self.registry.with(id, |agent| {
            let accepts = |bit: u64| agent.capabilities & bit != 0;
            if agent.restart && accepts(capability::ACCEPTS_RESTART_COMMAND) && (is_greeted || is_polling) {
                agent.restart = false;
                message.restart();
                // With a command nothing else counts: the rest comes with the next answer.
                return None;
            }
            if !is_greeted {
                message.capabilities(self.offer.is_some());
            }
            if is_gap {
                self.counts.full_states.fetch_add(1, Relaxed);
                agent.is_asked_for_all = true;
                message.report_full_state();
            }
            let own = capability::REPORTS_OWN_TRACES
                | capability::REPORTS_OWN_METRICS
                | capability::REPORTS_OWN_LOGS;
            if let Some(offer) = self.offer.as_ref().filter(|_| accepts(own) && !agent.is_telemetry_offered) {
                agent.is_telemetry_offered = true;
                message.offer(offer, agent.capabilities);
            }
            let config = agent
                .config
                .as_ref()
                .and_then(|name| configs.get(name))
                .and_then(|config| config.target(id, agent.reported))?;
            let is_wanted = accepts(capability::ACCEPTS_REMOTE_CONFIG) && agent.reported != Some(config.hash);
            let is_offered = agent.offered.is_some_and(|(hash, at)| {
                let again =
                    is_polling && accepts(capability::REPORTS_REMOTE_CONFIG) && at.elapsed() >= OFFER_AGAIN;
                hash == config.hash && !again
            });
            if !is_wanted || is_offered {
                return None;
            }
            agent.offered = Some((config.hash, Instant::now()));
            self.counts.configs_sent.fetch_add(1, Relaxed);
            Some(config)
        });
        let config = config.flatten();
        Answer { bytes: message.into_bytes(), agent: config.as_ref().map(|_| id), config }
    }

    /// Writes down what is new, and assigns a configuration where the agent is another now.
    async fn save(&self, id: AgentId, message: &AgentToServer<'_>, news: News) -> Result<(), ReceiveError> {
        let _turn = self.writes.acquire().await;
        let attributes = match message.description.filter(|_| news.description) {
            Some(description) => Some(Attributes::read(description)?),
            None => None,
        };
        let effective = match message.effective_config.filter(|_| news.effective) {
            Some(config) => Some(effective(config)?),
            None => None,
        };
        let key = id.to_bytes();
        let mut attempts = 0;
        loop {
            let stored = self.store.get(Table::OpampAgents, &key).await?;
            let expected =
                stored.as_ref().map_or(Expected::Absent, |stored| Expected::Version(stored.version));
            let mut record: AgentRecord =
                stored.map(|stored| decode(&stored.value)).transpose()?.unwrap_or_default();
            if let Some(attributes) = &attributes {
                record.attributes = attributes.clone();
                record.description_hash = xxh3_64(message.description.unwrap_or_default());
            }
            record.capabilities = message.capabilities;
            if let Some(status) = message.remote_config_status.filter(|_| news.status) {
                record.config_hash = status.hash.try_into().ok();
                record.config_status = status.status;
                record.config_error = masked_error(status.error, LONGEST_ERROR);
            }
            let mut writes = Vec::new();
            if let (Some(effective), Some(config)) = (&effective, message.effective_config) {
                record.effective_hash = xxh3_64(config);
                writes.push(Write::put(Table::OpampEffective, key, encode(effective)));
            }
            writes.push(Write::put(Table::OpampAgents, key, encode(&record)).expecting(expected));
            match self.store.commit(writes.into()).await {
                Err(StoreError::Conflict) if attempts < ATTEMPTS => attempts += 1,
                outcome => {
                    outcome?;
                    self.saved(id, message, news, &record);
                    return Ok(());
                }
            }
        }
    }

    /// What is in the state now counts.
    fn saved(&self, id: AgentId, message: &AgentToServer<'_>, news: News, record: &AgentRecord) {
        // Held to the end: a configuration that is put meanwhile counts here, or finds the agent as it is now.
        let configs = self.configs.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let config = news.description.then(|| best(&configs, &record.attributes));
        self.registry.with(id, |agent| {
            if let Some(config) = config {
                agent.description_hash = record.description_hash;
                agent.config = config;
            }
            if news.status {
                (agent.reported, agent.status) = (record.config_hash, record.config_status);
            }
            if let Some(config) = message.effective_config.filter(|_| news.effective) {
                agent.effective_hash = xxh3_64(config);
            }
        });
    }
}

/// Takes what stays in memory, and says what does not.
fn news(agent: &mut Agent, message: &mut AgentToServer<'_>) -> News {
    let is_first = agent.sequence.is_none();
    // An agent that is met for the first time, here or since the start, and says what it is, has said all.
    let is_gap = match agent.sequence {
        Some(last) => message.sequence != last.wrapping_add(1),
        None => message.description.is_none(),
    };
    agent.sequence = Some(message.sequence);
    agent.seen = Instant::now();
    if message.capabilities == 0 {
        // A message that says nothing but its uid: all agents report their status.
        message.capabilities = agent.capabilities;
    }
    let has_other_capabilities = agent.capabilities != message.capabilities;
    agent.capabilities = message.capabilities;
    let has_said_all =
        message.description.is_some() && (std::mem::take(&mut agent.is_asked_for_all) || is_first);
    if has_said_all {
        // A configuration that it does not mention it does not have, whatever it was sent.
        agent.offered = None;
        message.remote_config_status.get_or_insert_default();
    }
    if let Some(health) = message.health {
        agent.is_healthy = Some(health.is_healthy);
        let text = if health.last_error.is_empty() { health.status } else { health.last_error };
        let text = masked_error(text, LONGEST_TEXT);
        if *agent.health_text != *text {
            agent.health_text = text.into();
        }
    }
    if message.is_disconnect {
        agent.is_healthy = None;
    }
    let status = message
        .remote_config_status
        .is_some_and(|status| (agent.reported, agent.status) != (status.hash.try_into().ok(), status.status));
    News {
        description: message.description.is_some_and(|bytes| xxh3_64(bytes) != agent.description_hash),
        status: status || (has_other_capabilities && agent.description_hash != 0),
        effective: message.effective_config.is_some_and(|bytes| xxh3_64(bytes) != agent.effective_hash),
        is_gap,
    }
}

/// An effective configuration as it is kept.
fn effective(config: &[u8]) -> Result<EffectiveRecord, ReceiveError> {
    let mut files = BTreeMap::new();
    let mut left = LONGEST_EFFECTIVE;
    config_files(config, |name, body| {
        if left > 0 && files.len() < MOST_FILES {
            // Only the beginning is looked at; the mask may make it longer, up to the bound.
            let text =
                String::from_utf8_lossy(body.get(..body.len().min(LONGEST_EFFECTIVE)).unwrap_or_default());
            let masked = masked(&text, left);
            left = left.saturating_sub(masked.len() + name.len());
            files.insert(cut(name, LONGEST_TEXT).to_owned(), masked);
        }
    })?;
    Ok(EffectiveRecord(files))
}

/// The beginning of an error, without secrets: agents quote their configuration in it.
fn masked_error(text: &str, most: usize) -> String {
    // The mask may be longer than what it hides, and needs what stands behind a secret.
    let masked = masked(cut(text, LONGEST_ERROR), 2 * LONGEST_ERROR);
    cut(masked.trim_end(), most).to_owned()
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}
