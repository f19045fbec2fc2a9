//! Records of the state: JSON behind a byte that is the version of their format.

use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::replace_token::ReplaceToken;
use crate::secrets::SECRET_BYTES;
use crate::store::{StoreError, Table, Write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the format of all records.
const FORMAT: u8 = 1;

/// An agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentRecord {
    pub(crate) policy_id: String,
    /// The revision of its policy that it has acknowledged.
    pub(crate) revision: u64,
    pub(crate) key: KeyHash,
    pub(crate) enrolled_ms: u64,
    /// Of the agent, as it said last.
    pub(crate) version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) enrollment_id: Option<String>,
    /// With which another takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replace_token: Option<ReplaceToken>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// Hashes of its local metadata, and of its components with how an upgrade goes.
    pub(crate) metadata_hash: u64,
    pub(crate) components_hash: u64,
    /// Why it says that it is gone, if it does: `uninstall`, `orphaned` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) audit_unenrolled: Option<String>,
}

/// A part of an agent's metadata. Each has a key of its own, so that a change of one costs no more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataPart {
    Local,
    UserProvided,
    Components,
    /// How an upgrade goes.
    Upgrade,
}

impl MetadataPart {
    pub(crate) const ALL: [MetadataPart; 4] =
        [MetadataPart::Local, MetadataPart::UserProvided, MetadataPart::Components, MetadataPart::Upgrade];

    /// Its key in the table of metadata.
    pub(crate) fn key(self, id: AgentId) -> Vec<u8> {
        let part = match self {
            MetadataPart::Local => b'l',
            MetadataPart::UserProvided => b'u',
            MetadataPart::Components => b'c',
            MetadataPart::Upgrade => b'g',
        };
        [&id.to_bytes()[..], &[part]].concat()
    }

    /// Writes it.
    pub(crate) fn write(self, id: AgentId, json: &RawValue) -> Write {
        Write::put(Table::Metadata, self.key(id), encode(json))
    }
}

/// When an agent was seen last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenRecord {
    /// Seconds since 1970.
    pub(crate) at_s: u32,
    pub(crate) status: String,
}

/// The newest revision of a policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PolicyRecord {
    pub(crate) revision: u64,
    pub(crate) changed_ms: u64,
    /// As it was put, without `id` and `revision`.
    pub(crate) body: Box<RawValue>,
}

/// A token of enrolment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TokenRecord {
    pub(crate) policy_id: String,
    pub(crate) name: String,
    pub(crate) key: KeyHash,
    pub(crate) created_ms: u64,
}

/// An action on agents.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ActionRecord {
    /// Its place among all actions.
    pub(crate) number: u64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) data: Option<Box<RawValue>>,
    pub(crate) created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_type: Option<String>,
    pub(crate) agents: u64,
    /// When it was found that no agent has it to do any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finished_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled: Option<Cancellation>,
}

/// That an operator has cancelled an action: from then on no agent gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cancellation {
    pub(crate) at_ms: u64,
    /// The action of type `CANCEL` for agents that have got it before.
    pub(crate) action_id: String,
}

/// An action queued for an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct QueueRecord {
    pub(crate) action_id: String,
    /// Where a roll-out spreads it over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start_ms: Option<u64>,
    /// Of a cancellation: the number of the entry that it is about. Without that there is nothing to cancel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancels: Option<u64>,
}

impl QueueRecord {
    /// The key of the entry of an agent with this number.
    pub(crate) fn key(agent: AgentId, number: u64) -> Vec<u8> {
        [&agent.to_bytes()[..], &number.to_be_bytes()].concat()
    }

    /// The agent and the number in a key.
    pub(crate) fn place(key: &[u8]) -> Option<(AgentId, u64)> {
        let (agent, number) = key.split_first_chunk()?;
        Some((AgentId::from_bytes(*agent), u64::from_be_bytes(number.try_into().ok()?)))
    }
}

/// One agent's answer to an action.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ResultRecord {
    pub(crate) at_ms: u64,
    /// The event as the agent sent it.
    pub(crate) event: Box<RawValue>,
    /// The agent has cancelled it instead of doing it: the event is about that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cancelled: bool,
    /// The agent has failed and tries again: it is not the last that it says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) will_retry: bool,
}

/// A secret of the fleet as a whole.
#[derive(Serialize, Deserialize)]
pub(crate) struct SecretRecord {
    pub(crate) secret: [u8; SECRET_BYTES],
}

/// A record as the state keeps it.
pub fn encode(record: &(impl Serialize + ?Sized)) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    // Records are maps with texts as keys, and a vector takes everything.
    let written = serde_json::to_writer(&mut bytes, record);
    debug_assert!(written.is_ok());
    bytes
}

/// Reads a record of the state.
///
/// # Errors
/// When it is damaged, or of a format that this version does not know.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreError> {
    match bytes.split_first() {
        Some((&FORMAT, json)) => serde_json::from_slice(json)
            .map_err(|error| StoreError::Unusable(format!("a record of the fleet cannot be read: {error}"))),
        Some((format, _)) => Err(StoreError::Unusable(format!(
            "a record of the fleet has format {format}, and this version knows {FORMAT}: it was written by a newer tidegate"
        ))),
        None => Err(StoreError::Unusable("a record of the fleet is empty".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a later version is refused by its number, and one of this version is read again.
    #[test]
    fn a_newer_record_is_named() {
        let record = QueueRecord { action_id: "a".to_owned(), start_ms: Some(7), cancels: None };
        let mut bytes = encode(&record);
        let read: QueueRecord = decode(&bytes).unwrap();
        assert_eq!((read.action_id.as_str(), read.start_ms), ("a", Some(7)));
        bytes[0] = 9;
        let refused = decode::<QueueRecord>(&bytes).unwrap_err().to_string();
        assert!(refused.contains("has format 9, and this version knows 1"), "{refused}");
    }

    /// Records that were written before actions could be cancelled and agents replaced are read.
    #[test]
    fn older_records_are_read() {
        let result: ResultRecord = decode(b"\x01{\"at_ms\":1,\"event\":{}}").unwrap();
        assert!(!result.is_cancelled);
        let queued: QueueRecord = decode(b"\x01{\"action_id\":\"a\"}").unwrap();
        assert_eq!(queued.cancels, None);
        let action = br#"{"number":1,"type":"SETTINGS","data":null,"created_ms":1,"agents":2}"#;
        let action: ActionRecord = decode(&[&[FORMAT], &action[..]].concat()).unwrap();
        assert!(action.cancelled.is_none() && action.finished_ms.is_none());
        let key = serde_json::to_string(&KeyHash::of(b"k")).unwrap();
        let agent = format!(
            "{{\"policy_id\":\"p\",\"revision\":1,\"key\":{key},\"enrolled_ms\":1,\"version\":\"8.15.0\",\"metadata_hash\":1,\"components_hash\":1}}"
        );
        let agent: AgentRecord = decode(&[&[FORMAT], agent.as_bytes()].concat()).unwrap();
        assert!(agent.replace_token.is_none());
    }
}
