//! OpAMP: its agents, and what has happened.

use std::sync::Arc;
use tidegate_meters::{Kind, Name, Registry, Value};
use tidegate_opamp::{Opamp, OpampView};

const AGENTS: Name = Name::plain("opamp_agents", "Agents that are known");
const CONNECTED: Name = Name::plain("opamp_agents_connected", "Agents with a WebSocket connection");
const UNHEALTHY: Name = Name::plain("opamp_agents_unhealthy", "Agents that say that they are not well");
const BY_STATUS: Name = Name::plain(
    "opamp_agents_by_config_status",
    "Agents, by what they say of the configuration that they were sent last",
);
const MESSAGES: Name = Name::plain("opamp_messages", "Messages of agents");
const SENT: Name = Name::plain("opamp_configs_sent", "Configurations sent to agents");
const FULL_STATES: Name =
    Name::plain("opamp_full_states_requested", "Answers that asked an agent for its full state");
const REFUSED: Name = Name::plain(
    "opamp_requests_refused",
    "Requests and connections that were refused before they were looked into",
);
/// The words for the status of a configuration.
const STATUSES: usize = 4;

/// Reads a meter from what it is about.
type Read = fn(&OpampView) -> u64;

/// Publishes OpAMP.
pub(in crate::gateway) fn publish(registry: &Registry, opamp: &Arc<Opamp>) {
    let levels: [(Name, Read); 3] = [
        (AGENTS, |view| view.agents),
        (CONNECTED, |view| view.connected),
        (UNHEALTHY, |view| view.unhealthy),
    ];
    for (name, read) in levels {
        let opamp = Arc::downgrade(opamp);
        registry.computed(name, Kind::Gauge, [], 1, move |emit| {
            let Some(opamp) = opamp.upgrade() else { return };
            emit([], level(read(&opamp.view())));
        });
    }
    let totals: [(Name, Read); 4] = [
        (MESSAGES, |view| view.messages),
        (SENT, |view| view.configs_sent),
        (FULL_STATES, |view| view.full_states_requested),
        (REFUSED, |view| view.refused),
    ];
    for (name, read) in totals {
        let opamp = Arc::downgrade(opamp);
        registry.computed(name, Kind::Counter, [], 1, move |emit| {
            let Some(opamp) = opamp.upgrade() else { return };
            emit([], Value::Counter(read(&opamp.totals())));
        });
    }
    let opamp = Arc::downgrade(opamp);
    registry.computed(BY_STATUS, Kind::Gauge, ["status"], STATUSES, move |emit| {
        let Some(opamp) = opamp.upgrade() else { return };
        opamp.view().by_config_status.iter().for_each(|(status, agents)| emit([*status], level(*agents)));
    });
}

fn level(value: u64) -> Value {
    Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
}
