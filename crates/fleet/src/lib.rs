//! The control plane of agents: who they are, what they are to do, and what they have done.
//!
//! [`Fleet`] is what happens, on a [`Store`] that keeps it. [`AgentApi`] is the HTTP service for Elastic Agents, and [`OperatorApi`] what
//! the command line and scripts use.
//!
//! It promises: what was acknowledged to an agent or an operator is in the store; an agent that waits costs its connection and an entry of
//! [`AGENT_BYTES`]; no lock is held across a wait; a policy is compressed once, and goes out as fast as memory for answers
//! comes back; a request without credentials costs a hash and a lookup.
//!
//! It leaves to others: connections and TLS (the gateway), who may use the operators' routes (the admin address).
//!
//! `design/fleet.md` has the argument.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod agent_api;
mod agent_id;
mod agent_memory;
mod api_key;
mod control;
mod files;
mod gunzip;
mod operator_api;
mod output_keys;
mod policy;
mod record;
mod registry;
mod replace_token;
mod rollout_progress;
mod secrets;
mod store;
mod time;
mod worker_thread;

pub use agent_api::{AgentApi, Ticket};
pub use agent_id::{AgentId, InvalidAgentId};
pub use agent_memory::AgentMemory;
pub use api_key::{KeyHash, NewSecret, random_id};
pub use control::{
    ACTION_ANSWERS, Fleet, FleetView, LONGEST_ACTION_ANSWER, LONGEST_ANSWER, MOST_VERSIONS, PolicyView,
    RETENTION_BYTES, Settings,
};
pub use files::{
    DOWNLOAD_BYTES, DOWNLOADS, FILE_STACK_BYTES, FileSettings, FleetFiles, LONGEST_PGP_KEY,
    OPERATOR_DOWNLOADS, PgpKey,
};
pub use gunzip::{GunzipError, THREAD_BYTES, gunzip};
pub use operator_api::{OperatorApi, OperatorRequest};
pub use policy::{CHANGE_BYTES, LONGEST_POLICY, OutputSettings};
pub use record::{decode, encode};
pub use registry::AGENT_BYTES;
pub use rollout_progress::RolloutView;
pub use store::{
    Batch, CACHE_BYTES, CONNECTION_BYTES, CONNECTIONS, Change, ChangedValue, Changes, EmbeddedStore,
    Expected, KeyRange, PostgresSettings, PostgresStore, STACK_BYTES, Store, StoreError, StoreFuture, Stored,
    Table, Write,
};
