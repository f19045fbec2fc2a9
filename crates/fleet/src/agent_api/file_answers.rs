//! The answers about files: uploads in chunks, artifacts, files of actions, the key that packages are verified with.

use super::ApiResult;
use super::answers::{self, ApiError, DOWNLOAD_HEADERS, json_reply};
use super::body::{BodyCoding, RequestBody};
use super::file_routes::FileRoute;
use super::limited::ShortText;
use crate::agent_id::AgentId;
use crate::control::Fleet;
use crate::files::{
    ChunkTurn, Client, ContentHash, FileError, FileName, FileOrder, FileRecord, FleetFiles, NoSuchRange,
    OpenedFile,
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tidegate_arena::Share;
use tidegate_http1::{Body, Content, ContentStream, Reply};

const BYTES: &str = "application/octet-stream";
/// Where an upload comes from: the agent itself, or Elastic Defend on its host.
const SOURCES: [&str; 2] = ["agent", "endpoint"];

#[derive(Debug, Deserialize)]
struct BeginRequest {
    action_id: ShortText,
    agent_id: ShortText,
    src: ShortText,
    file: UploadedFile,
}

#[derive(Debug, Deserialize)]
struct UploadedFile {
    name: ShortText,
    size: u64,
    #[serde(default)]
    mime_type: Option<ShortText>,
}

#[derive(Debug, Deserialize)]
struct EndRequest {
    transithash: TransitHash,
}

#[derive(Debug, Deserialize)]
struct TransitHash {
    sha256: ShortText,
}

/// Answers a request about files.
pub(super) async fn answer(
    fleet: Arc<Fleet>,
    files: Arc<FleetFiles>,
    route: FileRoute,
    coding: BodyCoding,
    body: Body,
) -> ApiResult {
    match route {
        FileRoute::Begin(agent) => {
            let request: BeginRequest = RequestBody::of(&fleet, body, coding)?.json()?;
            begin(&fleet, &files, agent, request).await
        }
        FileRoute::Chunk { of, number, hash, turn } => {
            if coding.is_compressed {
                return Err(ApiError::new(415, "UnsupportedMediaType", "a chunk is sent as it is"));
            }
            files.write_chunk(&of, number, Some(hash), ChunkBody { body, _turn: turn }).await?;
            Ok(answers::chunk_received())
        }
        FileRoute::End(agent, file) => {
            let request: EndRequest = RequestBody::of(&fleet, body, coding)?.json()?;
            let hash = ContentHash::parse(&request.transithash.sha256.0).ok_or(ApiError::new(
                400,
                "BadRequest",
                "`transithash.sha256` has 64 hexadecimal digits",
            ))?;
            files.finish(&file, Client::Agent(agent), Some(hash)).await?;
            Ok(json_reply(200, json!({"status": "ok"}).to_string()))
        }
        FileRoute::Artifact { agent, file, path } => {
            if !fleet.is_artifact_of(agent, &path) {
                return Err(ApiError::new(
                    403,
                    "Forbidden",
                    "the agent's policy does not list this artifact",
                ));
            }
            Ok(sent(files.download(&file, None, Client::Agent(agent)).await?))
        }
        FileRoute::File { agent, file, range } => {
            // So that a file which is not there is not taken for one of others.
            files.record(&file).await?;
            if !fleet.is_file_for(agent, file.id()).await? {
                return Err(ApiError::new(403, "Forbidden", "no action of this agent names this file"));
            }
            Ok(sent(files.download(&file, range, Client::Agent(agent)).await?))
        }
        FileRoute::PgpKey => pgp_key(&fleet, &files).await,
    }
}

async fn begin(fleet: &Fleet, files: &FleetFiles, agent: AgentId, request: BeginRequest) -> ApiResult {
    let BeginRequest { action_id, agent_id, src, file } = request;
    if agent_id.0.parse() != Ok(agent) {
        return Err(ApiError::new(403, "AgentIdentity", "the API key is that of another agent"));
    }
    if !SOURCES.contains(&src.0.as_str()) {
        return Err(ApiError::new(400, "BadRequest", "`src` is agent or endpoint"));
    }
    if !fleet.may_upload(agent, &action_id.0).await? {
        let words = "uploads are for actions that the agent was given: diagnostics, and those of inputs";
        return Err(ApiError::new(403, "Forbidden", words));
    }
    let client = Client::Agent(agent);
    let name = FileName::new_upload(agent);
    let record = FileRecord {
        name: file.name.0,
        mime_type: file.mime_type.map_or_else(|| BYTES.to_owned(), |mime_type| mime_type.0),
        size: file.size,
        sha256: String::new(),
        created_ms: 0,
        agent_id: Some(agent.to_string()),
        action_id: Some(action_id.0),
    };
    files.begin(FileOrder { client, file: name.clone(), record }).await?;
    let answer = json!({"upload_id": name.id(), "chunk_size": files.chunk_bytes(client)});
    Ok(json_reply(200, answer.to_string()))
}

async fn pgp_key(fleet: &Fleet, files: &FleetFiles) -> ApiResult {
    let settings = files.pgp();
    if !settings.has_tls {
        let words = "the key for verifying packages is only given out by TLS: set `listen.tls`";
        return Err(ApiError::new(501, "NotImplemented", words));
    }
    let Some(key) = &settings.key else {
        let words = "this gateway has no key for verifying packages: set `listen.fleet.pgp_key_file`";
        return Err(ApiError::new(404, "NotFound", words));
    };
    let window = fleet.arena().window(Share::Egress, key.len()).await;
    let mut window = window.map_err(|_| ApiError::BUSY)?;
    window.append(key).map_err(|_| ApiError::BUSY)?;
    Ok(Reply::new(200).content_type("application/pgp-keys").headers(DOWNLOAD_HEADERS).content(window))
}

/// The answer with a file, or with a part of it.
fn sent(opened: OpenedFile) -> Reply {
    let (status, content) = match opened {
        OpenedFile::Whole(content) => (200, content),
        OpenedFile::Part(content) => (206, content),
        OpenedFile::Unsatisfiable(total) => {
            let message = format!("the file has {total} bytes, and the range is behind its end");
            let text = json!({"statusCode": 416, "error": "RangeNotSatisfiable", "message": message});
            let content: Box<dyn ContentStream> =
                Box::new(NoSuchRange { total, text: text.to_string().into() });
            return json_reply(416, String::new()).content(content);
        }
    };
    Reply::new(status).content_type(BYTES).headers(DOWNLOAD_HEADERS).content(Content::Stream(content))
}

/// The body of a chunk, with the turn that bounds how many there are.
struct ChunkBody {
    body: Body,
    _turn: ChunkTurn,
}

impl std::ops::Deref for ChunkBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.body
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> ApiError {
        let (status, name, retry_after) = match &error {
            FileError::Unknown => (404, "NotFound", None),
            FileError::OfAnother => (403, "Forbidden", None),
            FileError::Invalid(_) => (400, "BadRequest", None),
            FileError::Exists(_) => (409, "Conflict", None),
            FileError::TooLarge { .. } => (413, "RequestEntityTooLarge", None),
            FileError::Quota { .. } | FileError::AgentQuota | FileError::DiskFull => {
                (507, "InsufficientStorage", None)
            }
            FileError::TooMany(_) => (429, "MaxLimit", Some(2)),
            FileError::Disk(_) | FileError::Memory | FileError::Store(_) => {
                (503, "ServiceUnavailable", Some(10))
            }
        };
        let answer = ApiError::owned(status, name, error.to_string());
        match retry_after {
            Some(seconds) => answer.retry_after(seconds),
            None => answer,
        }
    }
}
