//! Collectors that speak OpAMP: what they are, how they are, and the configurations assigned to them.
//!
//! [`Opamp`] is what happens, on the [`Store`](tidegate_fleet::Store) of the fleet. [`AgentApi`] is the service for agents over WebSocket and
//! plain HTTP, and [`OperatorApi`] what the command line and scripts use.
//!
//! It promises: what was answered is in the store; an idle connection owns no buffer; an agent gets a configuration only when it
//! accepts one and has reported another hash; no lock is held across a wait.
//!
//! It leaves to others: connections and TLS (the gateway), who may use the operators' routes (the admin address).
//!
//! `design/opamp.md` has the argument.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod agent_api;
mod control;
mod message;
mod operator_api;
mod record;
mod registry;
mod secrets;
mod websocket;

pub use agent_api::{AgentApi, Ticket};
pub use control::{ConfigCheck, HEAP_BYTES, LONGEST_CONFIG, Opamp, OpampView, Settings};
pub use operator_api::{LONGEST_ANSWER, OperatorApi};
pub use registry::AGENT_BYTES;
