//! The control plane: takes reports of agents, assigns configurations and rolls them out.

mod configs;
mod load;
mod receive;
mod rollout;
#[cfg(test)]
mod tests;
mod tokens;
mod upkeep;

pub use configs::LONGEST_CONFIG;
pub(crate) use configs::{ConfigOrder, OrderError};
pub(crate) use receive::{Answer, ReceiveError, Session};

pub use rollout::OpampView;

use crate::message::{EncodedConfig, TelemetryOffer};
use crate::record::{ConfigRecord, TokenRecord};
use crate::registry::Registry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tidegate_arena::{Arena, Charge};
use tidegate_fleet::Store;
use tokio::sync::{Mutex, Semaphore};

/// Says what is wrong with a text that is to be YAML.
pub type ConfigCheck = fn(&str) -> Result<(), String>;

/// The settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The longest message of an agent, as received and decompressed, in bytes.
    pub max_message: usize,
    /// Whether agents need a token.
    pub needs_token: bool,
    /// Where agents are told to send their own telemetry, if they are.
    pub own_telemetry: Option<String>,
    /// An agent that was not seen for so long is forgotten.
    pub forget_after: Duration,
    /// Checks the text of a configuration.
    pub check: ConfigCheck,
}

/// The control plane of agents that speak OpAMP.
pub struct Opamp {
    store: Arc<dyn Store>,
    registry: Registry,
    configs: RwLock<BTreeMap<Arc<str>, Arc<Config>>>,
    tokens: RwLock<HashMap<String, TokenRecord>>,
    /// Held while configurations are changed: the decision and its write.
    changing: Mutex<()>,
    /// All agents have the configuration that is for them; not while that is changed, or where it failed half-way.
    is_assigned: AtomicBool,
    /// Turns of writes about agents, whose records are on the heap: [`WRITES`].
    writes: Semaphore,
    /// The memory of messages.
    arena: Arena,
    /// The memory that agents and configurations are charged to.
    memory: Arena,
    offer: Option<TelemetryOffer>,
    settings: Settings,
    is_stopped: AtomicBool,
    counts: Counts,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) messages: AtomicU64,
    pub(crate) configs_sent: AtomicU64,
    pub(crate) full_states: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// A configuration, ready to be sent.
pub(crate) struct Config {
    pub(crate) record: ConfigRecord,
    current: Arc<EncodedConfig>,
    previous: Option<Arc<EncodedConfig>>,
    /// Of its texts.
    _memory: Charge,
}

/// Writes about agents at a time.
pub(crate) const WRITES: usize = 64;
/// Heap of writes about agents in progress: a record and an effective configuration, each as it is and as it is written, in bytes.
pub const HEAP_BYTES: usize = WRITES * (160 << 10);

impl Opamp {
    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The memory of messages.
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The state.
    pub(crate) fn state(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}
