//! The record of a file, and its name in the state and in the folder.

use crate::agent_id::AgentId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest id of an artifact, in bytes. With its kind and hash it is a name that file systems take.
const LONGEST_ARTIFACT_ID: usize = 128;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// An upload of an agent.
    Upload,
    /// What policies list.
    Artifact,
    /// What actions name.
    ForAgents,
}

/// The name of a file: its kind, and its id or what it is found by. Its characters need no escapes anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileName(String);

/// A file all of which is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) name: String,
    pub(crate) mime_type: String,
    pub(crate) size: u64,
    /// Of its bytes, in hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) created_ms: u64,
    /// Of an upload: who sent it, and for which action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) action_id: Option<String>,
}

impl FileKind {
    fn prefix(self) -> &'static str {
        match self {
            FileKind::Upload => "u-",
            FileKind::Artifact => "a-",
            FileKind::ForAgents => "f-",
        }
    }
}

impl FileName {
    /// That of a new upload. The agent comes first, so that its uploads are found together.
    pub(crate) fn new_upload(agent: AgentId) -> FileName {
        FileName(format!("{}{agent}.{}", FileKind::Upload.prefix(), AgentId::random()))
    }

    /// What the names of an agent's uploads begin with.
    pub(super) fn uploads_of(agent: AgentId) -> String {
        format!("{}{agent}.", FileKind::Upload.prefix())
    }

    /// That of a new file for agents.
    pub(crate) fn new_for_agents() -> FileName {
        FileName(format!("{}{}", FileKind::ForAgents.prefix(), AgentId::random()))
    }

    /// That of the upload with this id, if it can be one.
    pub(crate) fn of_upload(id: &str) -> Option<FileName> {
        let (agent, own) = id.split_once('.')?;
        let (agent, own): (AgentId, AgentId) = (agent.parse().ok()?, own.parse().ok()?);
        Some(FileName(format!("{}{agent}.{own}", FileKind::Upload.prefix())))
    }

    /// That of the file for agents with this id, if it can be one.
    pub(crate) fn of_file(id: &str) -> Option<FileName> {
        let id: AgentId = id.parse().ok()?;
        Some(FileName(format!("{}{id}", FileKind::ForAgents.prefix())))
    }

    /// That of an artifact, if this can be one: what it is called, and the hash in its path.
    pub(crate) fn of_artifact(id: &str, sha256: &str) -> Option<FileName> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_id = (1..=LONGEST_ARTIFACT_ID).contains(&id.len()) && id.bytes().all(is_plain);
        let is_hash = sha256.len() == 64
            && sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (is_id && is_hash).then(|| FileName(format!("{}{id}-{sha256}", FileKind::Artifact.prefix())))
    }

    /// What files of a kind begin with.
    pub(crate) fn prefix(kind: FileKind) -> &'static [u8] {
        kind.prefix().as_bytes()
    }

    /// Reads a name as [`as_str`](Self::as_str) gives it.
    pub(crate) fn read(text: &str) -> Option<FileName> {
        let (kind, id) = text.split_at_checked(2)?;
        match kind {
            "a-" => id.rsplit_once('-').and_then(|(id, sha256)| FileName::of_artifact(id, sha256)),
            "f-" => FileName::of_file(id),
            "u-" => FileName::of_upload(id),
            _ => None,
        }
    }

    /// The name in the state, where it was written by [`as_str`](Self::as_str).
    pub(super) fn stored(key: &[u8]) -> FileName {
        FileName(String::from_utf8_lossy(key).into_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Without the kind.
    pub(crate) fn id(&self) -> &str {
        self.0.get(2..).unwrap_or_default()
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
