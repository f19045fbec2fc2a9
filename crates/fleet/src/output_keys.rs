//! The API keys by which agents send to this gateway.
//!
//! A key is derived from a secret of the fleet and from what makes an agent this one: its id, and the hash of the key by which it
//! checks in. So none is stored, an agent gets the same one with each policy, and a key ends with the agent that it was made for.

use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::secrets::SECRET_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;

/// The prefix of an output key's id; the id of the agent follows.
const ID_PREFIX: &str = "fleet-";
/// The length of a key with its id, in bytes: prefix, UUID, colon, and 32 bytes in base64.
pub(crate) const TEXT_LEN: usize = ID_PREFIX.len() + 36 + 1 + 43;

/// Derives the keys.
pub(crate) struct OutputKeys(hmac::Key);

impl OutputKeys {
    /// Those of this secret.
    pub(crate) fn of(secret: &[u8; SECRET_BYTES]) -> OutputKeys {
        OutputKeys(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The key of an agent with its id, as policies have it.
    pub(crate) fn text(&self, agent: AgentId, agent_key: &KeyHash) -> String {
        format!("{ID_PREFIX}{agent}:{}", self.key(agent, agent_key))
    }

    /// Whether this is the key of the agent; takes as long whatever the answer.
    pub(crate) fn is_key_of(&self, agent: AgentId, agent_key: &KeyHash, presented: &[u8]) -> bool {
        self.key(agent, agent_key).as_bytes().ct_eq(presented).into()
    }

    fn key(&self, agent: AgentId, agent_key: &KeyHash) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&agent.to_bytes());
        context.update(agent_key.as_bytes());
        URL_SAFE_NO_PAD.encode(context.sign())
    }
}

/// The agent that the id of an output key names; `None` when it is no such id.
pub(crate) fn agent_of(id: &[u8]) -> Option<AgentId> {
    str::from_utf8(id).ok()?.strip_prefix(ID_PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key is that of one agent as it has enrolled, under one secret.
    #[test]
    fn a_key_belongs_to_one_enrolment() {
        let (keys, agent, enrolled) = (OutputKeys::of(&[1; 32]), AgentId::random(), KeyHash::of(b"a"));
        let text = keys.text(agent, &enrolled);
        assert_eq!(text.len(), TEXT_LEN);
        let (id, key) = text.split_once(':').unwrap();
        assert_eq!(agent_of(id.as_bytes()), Some(agent));
        assert!(keys.is_key_of(agent, &enrolled, key.as_bytes()));
        assert!(!keys.is_key_of(agent, &KeyHash::of(b"b"), key.as_bytes()));
        assert!(!keys.is_key_of(AgentId::random(), &enrolled, key.as_bytes()));
        assert!(!OutputKeys::of(&[2; 32]).is_key_of(agent, &enrolled, key.as_bytes()));
        assert!(!keys.is_key_of(agent, &enrolled, b""));
        assert_eq!(agent_of(b"beats-1"), None);
        assert_eq!(agent_of(b"fleet-1"), None);
    }
}
