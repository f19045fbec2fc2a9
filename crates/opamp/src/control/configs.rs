//! Configurations, and which agents they are for.

use super::{Config, Opamp};
use crate::message::{Attributes, EncodedConfig};
use crate::record::{AgentRecord, ConfigRecord, Rollout, RolloutState};
use ring::digest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_arena::{ChargeError, Share};
use tidegate_fleet::{AgentId, KeyRange, StoreError, Table, Write, decode, encode};
use xxhash_rust::xxh3::xxh3_64;

/// The longest configuration, in bytes.
pub const LONGEST_CONFIG: usize = 256 << 10;
/// The most configurations: each message of a new agent is compared with all.
const MOST_CONFIGS: usize = 100;
const LONGEST_NAME: usize = 128;
const MOST_LABELS: usize = 8;
const LONGEST_LABEL: usize = 256;
/// All agents of a roll-out, in hundredths of a percent.
pub(super) const WHOLE: u32 = 10_000;
/// Agents that are read at a time.
const PAGE: usize = 200;
/// Around the texts of a configuration, in bytes.
const AROUND: usize = 4 << 10;

/// A configuration as an operator puts it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigOrder {
    pub(crate) body: String,
    #[serde(default, rename = "match")]
    pub(crate) labels: BTreeMap<String, String>,
    /// In percent.
    #[serde(default = "default_step")]
    pub(crate) step: u32,
    #[serde(default = "default_max_failed")]
    pub(crate) max_failed: u32,
}

/// Why an operator's wish is not fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OrderError {
    /// There is no such thing.
    #[error("there is no {0}")]
    Unknown(String),
    /// It cannot be done.
    #[error("{0}")]
    Invalid(String),
    /// There is no memory for it.
    #[error("there is no memory for it; raise `memory`")]
    Memory,
    /// The state is not available.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ChargeError> for OrderError {
    fn from(_: ChargeError) -> OrderError {
        OrderError::Memory
    }
}

fn default_step() -> u32 {
    10
}

fn default_max_failed() -> u32 {
    5
}

impl Config {
    /// The configuration of an agent that is assigned this one: the new revision, or before that has come so far, the one before. Where the
    /// roll-out has stopped, nobody else gets the new one.
    pub(crate) fn target(&self, id: AgentId, reported: Option<[u8; 16]>) -> Option<Arc<EncodedConfig>> {
        let is_stopped = self.record.rollout.state == RolloutState::Stopped;
        match self.is_released_to(id) && (!is_stopped || reported == Some(self.hash())) {
            true => Some(Arc::clone(&self.current)),
            false => self.previous.clone(),
        }
    }

    /// The hash of the new revision.
    pub(crate) fn hash(&self) -> [u8; 16] {
        self.current.hash
    }

    /// Whether the roll-out has reached an agent. It depends on nothing but its uid and the revision.
    pub(crate) fn is_released_to(&self, id: AgentId) -> bool {
        let seed = [&id.to_bytes()[..], &self.record.revision.to_le_bytes()].concat();
        xxh3_64(&seed) % u64::from(WHOLE) < u64::from(self.record.rollout.released)
    }
}

impl Opamp {
    /// A configuration ready to be sent, with the memory for it.
    pub(super) fn config(&self, record: ConfigRecord) -> Result<Config, ChargeError> {
        let texts = record.body.len() + record.previous.as_ref().map_or(0, String::len);
        // Each is there as text and encoded.
        let memory = self.memory.try_charge(Share::Ingest, (2 * texts + AROUND) as u64)?;
        let encoded = |body: &str| Arc::new(EncodedConfig::new(body.as_bytes(), hash(body)));
        let (current, previous) = (encoded(&record.body), record.previous.as_deref().map(encoded));
        Ok(Config { record, current, previous, _memory: memory })
    }

    /// Puts a configuration, and rolls it out. One that has not changed keeps its revision and its roll-out, which goes on where it had stopped
    /// if the order allows more failures.
    pub(crate) async fn put_config(&self, name: &str, order: ConfigOrder) -> Result<Arc<Config>, OrderError> {
        self.check(name, &order)?;
        let _changing = self.changing.lock().await;
        let before = self.find_config(name);
        if let Some(before) = &before
            && before.record.body == order.body
            && before.record.labels == order.labels
        {
            return self.continue_config(name, before, &order).await;
        }
        if before.is_none() && self.list_configs().len() >= MOST_CONFIGS {
            return Err(OrderError::Invalid(format!(
                "there are {MOST_CONFIGS} configurations, which is as many as there may be"
            )));
        }
        let old = before.as_ref().map(|before| &before.record);
        let previous = old.and_then(|old| match old.rollout.state {
            RolloutState::Done => Some(old.body.clone()),
            _ => old.previous.clone(),
        });
        // Where it is for fewer agents and the same for those, nobody gets anything new that could fail.
        let is_narrower = old
            .is_some_and(|old| old.labels.iter().all(|(name, value)| order.labels.get(name) == Some(value)));
        let is_new = !is_narrower
            || old.is_none_or(|old| old.body != order.body || old.rollout.state != RolloutState::Done);
        let step = order.step * 100;
        let rollout = Rollout {
            state: if is_new { RolloutState::Running } else { RolloutState::Done },
            released: if is_new { step } else { WHOLE },
            step,
            max_failed: order.max_failed,
        };
        let record = ConfigRecord {
            revision: old.map_or(1, |old| old.revision + 1),
            changed_ms: now_ms(),
            labels: order.labels,
            body: order.body,
            // To those that it was not for, the one before is as new.
            previous: previous.filter(|_| is_new && is_narrower),
            rollout,
        };
        let config = self.store_config(name, record).await?;
        self.assign_all(name).await?;
        Ok(config)
    }

    /// Takes the settings of a roll-out whose configuration has not changed.
    async fn continue_config(
        &self,
        name: &str,
        before: &Arc<Config>,
        order: &ConfigOrder,
    ) -> Result<Arc<Config>, OrderError> {
        if !self.is_assigned.load(Acquire) {
            self.assign_all(name).await?;
        }
        let (step, max_failed, old) = (order.step * 100, order.max_failed, before.record.rollout);
        if (old.step, old.max_failed) == (step, max_failed) {
            return Ok(Arc::clone(before));
        }
        let goes_on = old.state == RolloutState::Stopped && max_failed > old.max_failed;
        let state = if goes_on { RolloutState::Running } else { old.state };
        let mut record = before.record.clone();
        record.rollout = Rollout { state, step, max_failed, ..old };
        let config = self.store_config(name, record).await?;
        if goes_on {
            self.registry.each(|_, agent| {
                if agent.config.as_deref() == Some(name) {
                    // While it stood still nobody was to answer.
                    agent.awaited = None;
                    agent.wake();
                }
            });
        }
        Ok(config)
    }

    /// Removes a configuration. Its agents keep what they have, unless another one is for them.
    pub(crate) async fn remove_config(&self, name: &str) -> Result<(), OrderError> {
        let _changing = self.changing.lock().await;
        if self.find_config(name).is_none() {
            // Where a removal failed half-way, it ends now.
            if !self.is_assigned.load(Acquire) {
                self.assign_all(name).await?;
            }
            return Err(OrderError::Unknown(format!("configuration `{name:.80}`")));
        }
        self.store.commit(vec![Write::remove(Table::OpampConfigs, name)].into()).await?;
        self.configs.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.assign_all(name).await
    }

    /// Writes a configuration down; from then on it counts.
    pub(super) async fn store_config(
        &self,
        name: &str,
        record: ConfigRecord,
    ) -> Result<Arc<Config>, OrderError> {
        let value = encode(&record);
        // Before it is written: it must not be written and then not be had.
        let config = Arc::new(self.config(record)?);
        self.store.commit(vec![Write::put(Table::OpampConfigs, name, value)].into()).await?;
        let mut configs = self.configs.write().unwrap_or_else(PoisonError::into_inner);
        configs.insert(name.into(), Arc::clone(&config));
        Ok(config)
    }

    /// A configuration by name.
    pub(crate) fn find_config(&self, name: &str) -> Option<Arc<Config>> {
        self.configs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All configurations by name.
    pub(crate) fn list_configs(&self) -> Vec<(Arc<str>, Arc<Config>)> {
        let configs = self.configs.read().unwrap_or_else(PoisonError::into_inner);
        configs.iter().map(|(name, config)| (Arc::clone(name), Arc::clone(config))).collect()
    }

    /// The configuration for an agent with these attributes.
    pub(super) fn config_for(&self, attributes: &Attributes) -> Option<Arc<str>> {
        best(&self.configs.read().unwrap_or_else(PoisonError::into_inner), attributes)
    }

    /// Has the connected agents of a configuration look whether there is something for them.
    pub(super) fn wake_agents_of(&self, name: &str) {
        self.registry.each(|_, agent| {
            if agent.config.as_deref() == Some(name) {
                agent.wake();
            }
        });
    }

    /// Assigns anew after `changed` was, and wakes whoever is connected and has that or another one now.
    async fn assign_all(&self, changed: &str) -> Result<(), OrderError> {
        self.is_assigned.store(false, Release);
        let mut last: Option<Vec<u8>> = None;
        loop {
            let range = KeyRange { prefix: b"", after: last.as_deref(), limit: PAGE };
            let page = self.store.list(Table::OpampAgents, range).await?;
            let Some((key, _)) = page.last() else { break };
            last = Some(key.clone());
            for (key, stored) in page {
                let Some(bytes) = key.first_chunk() else { continue };
                let record: AgentRecord = decode(&stored.value)?;
                let config = self.config_for(&record.attributes);
                self.registry.with(AgentId::from_bytes(*bytes), |agent| {
                    // One that has said something else meanwhile has been assigned by that.
                    // One that has not said what it is has none.
                    let is_same =
                        agent.description_hash == record.description_hash && record.description_hash != 0;
                    if is_same && (agent.config != config || config.as_deref() == Some(changed)) {
                        agent.config = config;
                        agent.awaited = None;
                        agent.wake();
                    }
                });
            }
        }
        self.is_assigned.store(true, Release);
        Ok(())
    }

    fn check(&self, name: &str, order: &ConfigOrder) -> Result<(), OrderError> {
        let invalid = |text: String| Err(OrderError::Invalid(text));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
            return invalid(format!(
                "a configuration's name has letters, digits, `-`, `_` and `.`, and at most {LONGEST_NAME} of them"
            ));
        }
        if order.body.len() > LONGEST_CONFIG {
            return invalid(format!(
                "the configuration has {} bytes; at most {LONGEST_CONFIG} are taken",
                order.body.len()
            ));
        }
        let is_bad = |(key, value): (&String, &String)| {
            let is_long = key.len().max(value.len()) > LONGEST_LABEL;
            key.is_empty() || is_long || key.chars().chain(value.chars()).any(char::is_control)
        };
        if order.labels.len() > MOST_LABELS || order.labels.iter().any(is_bad) {
            return invalid(format!(
                "there may be {MOST_LABELS} labels, whose keys and values have at most {LONGEST_LABEL} bytes each and no control characters"
            ));
        }
        if !(1..=100).contains(&order.step) || order.max_failed > 100 {
            return invalid("`step` is 1 to 100 percent, and `max_failed` 0 to 100".to_owned());
        }
        (self.settings.check)(&order.body).map_err(OrderError::Invalid)
    }
}

/// The configuration for an agent with these attributes: of those whose labels it has, the one with the most, and the first by name of
/// several.
pub(super) fn best(configs: &BTreeMap<Arc<str>, Arc<Config>>, attributes: &Attributes) -> Option<Arc<str>> {
    let fitting = configs.iter().filter(|(_, config)| attributes.have_all(&config.record.labels));
    // The last of several maxima is taken, hence from the end.
    fitting.rev().max_by_key(|(_, config)| config.record.labels.len()).map(|(name, _)| Arc::clone(name))
}

/// The hash by which an agent identifies a configuration.
fn hash(body: &str) -> [u8; 16] {
    let digest = digest::digest(&digest::SHA256, body.as_bytes());
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
