//! Agents as senders of telemetry to this gateway: what they present there, and whether it is valid.

use super::Fleet;
use crate::agent_id::AgentId;
use crate::output_keys::{self, OutputKeys};
use crate::policy::Policy;
use crate::secrets::secret;
use crate::store::{Store, StoreError};
use std::sync::Arc;
use tidegate_admission::access::{ApiKeyIssuer, IssuedKey};

/// The secret that output keys are derived from, in the table of secrets.
const SECRET: &str = "output_keys";

/// The fleet as the issuer of its agents' output keys.
struct FleetIssuer(Arc<Fleet>);

impl Fleet {
    /// The issuer of the API keys that agents send with. A key is valid while its agent is enrolled and has a policy with an
    /// output to this gateway; the tenant is that of the policy.
    pub fn api_key_issuer(self: &Arc<Self>) -> Arc<dyn ApiKeyIssuer> {
        Arc::new(FleetIssuer(Arc::clone(self)))
    }

    /// The output key of an agent, with its id; empty where the policy has no place for it. `None` when the agent is gone.
    pub(crate) fn output_key(&self, agent: AgentId, policy: &Policy) -> Option<String> {
        if policy.sender.is_none() {
            return Some(String::new());
        }
        let agent_key = self.registry.with(agent, |known| known.key)?;
        Some(self.output_keys.text(agent, &agent_key))
    }
}

impl ApiKeyIssuer for FleetIssuer {
    fn verify(&self, id: &[u8], key: &[u8]) -> IssuedKey {
        let Some(agent) = output_keys::agent_of(id) else { return IssuedKey::Foreign };
        let fleet = &self.0;
        let known = fleet.registry.with(agent, |known| (known.key, Arc::clone(&known.policy)));
        let Some((agent_key, policy)) = known else { return IssuedKey::Invalid };
        if !fleet.output_keys.is_key_of(agent, &agent_key, key) {
            return IssuedKey::Invalid;
        }
        let sender = fleet.policy(&policy).and_then(|policy| policy.sender.clone());
        sender.map_or(IssuedKey::Invalid, IssuedKey::Valid)
    }
}

/// Reads the secret of output keys, or makes it.
///
/// # Errors
/// When the state cannot be read or written.
pub(super) async fn load_keys(store: &dyn Store) -> Result<OutputKeys, StoreError> {
    Ok(OutputKeys::of(&secret(store, SECRET).await?))
}
