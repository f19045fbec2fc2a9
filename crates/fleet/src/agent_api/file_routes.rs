//! The routes about files, by the head of a request.

use super::answers::ApiError;
use super::routes::{agent_of_key, expect, known_agent};
use crate::agent_id::AgentId;
use crate::control::{Fleet, Lookup};
use crate::files::{ByteRange, ChunkTurn, Client, ContentHash, FileName, FleetFiles, Unfinished};
use std::fmt;
use std::sync::Arc;
use tidegate_http1::{AdmissionFuture, Head};

const UPLOADS: &str = "/api/fleet/uploads";
const ARTIFACTS: &str = "/api/fleet/artifacts/";
const FILES: &str = "/api/fleet/file/";
const UPGRADES: &str = "/api/agents/upgrades/";
/// The longest request that begins an upload, in bytes. Few of its members are read; agents send more.
const LONGEST_BEGIN: usize = 512 << 10;
const LONGEST_END: usize = 1 << 10;

/// A request about files that may send its body.
pub(super) enum FileRoute {
    Begin(AgentId),
    Chunk {
        of: Arc<Unfinished>,
        number: u64,
        hash: ContentHash,
        /// Held while the body is in memory.
        turn: ChunkTurn,
    },
    End(AgentId, FileName),
    Artifact {
        agent: AgentId,
        file: FileName,
        /// As policies list it.
        path: Box<str>,
    },
    File {
        agent: AgentId,
        file: FileName,
        range: Option<ByteRange>,
    },
    PgpKey,
}

impl fmt::Debug for FileRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileRoute::Begin(_) => "Begin",
            FileRoute::Chunk { .. } => "Chunk",
            FileRoute::End(..) => "End",
            FileRoute::Artifact { .. } => "Artifact",
            FileRoute::File { .. } => "File",
            FileRoute::PgpKey => "PgpKey",
        })
    }
}

/// The wait of a chunk for its turn, if it has to wait for one. Only for an agent that is known, and has begun the upload.
pub(super) fn wait_for_turn(fleet: &Fleet, files: &FleetFiles, head: &Head<'_>) -> Option<AdmissionFuture> {
    let (id, _) = head.path().strip_prefix(UPLOADS)?.strip_prefix('/')?.split_once('/')?;
    if head.method() != "PUT" {
        return None;
    }
    let agent = known_agent(fleet, head)?;
    files.unfinished(&FileName::of_upload(id)?, Client::Agent(agent)).ok()?;
    files.reserve_chunk_turn(agent, head.peer())
}

/// The route of a request and the most bytes of its body, where it is about files; and the key that is to be looked up, if it is not in
/// memory.
pub(super) fn route(
    fleet: &Fleet,
    files: &FleetFiles,
    head: &Head<'_>,
    lookup: &mut Option<Box<Lookup>>,
) -> Result<Option<(FileRoute, usize)>, ApiError> {
    let path = head.path();
    if let Some(rest) = path.strip_prefix(UPLOADS).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        return upload(fleet, files, (head, lookup), rest.strip_prefix('/').unwrap_or_default()).map(Some);
    }
    if let Some((id, sha256)) = path.strip_prefix(ARTIFACTS).and_then(|rest| rest.split_once('/')) {
        expect(head, "GET")?;
        let agent = agent_of_key(fleet, head, lookup)?;
        let file = FileName::of_artifact(id, sha256).ok_or_else(not_found)?;
        return Ok(Some((FileRoute::Artifact { agent, file, path: path.into() }, 0)));
    }
    if let Some(id) = path.strip_prefix(FILES) {
        expect(head, "GET")?;
        let agent = agent_of_key(fleet, head, lookup)?;
        let file = FileName::of_file(id).ok_or_else(not_found)?;
        let range = head.sole_header("range").ok().flatten().and_then(ByteRange::parse);
        return Ok(Some((FileRoute::File { agent, file, range }, 0)));
    }
    if let Some(rest) = path.strip_prefix(UPGRADES) {
        expect(head, "GET")?;
        let version = rest.strip_suffix("/pgp-public-key").ok_or_else(not_found)?;
        let is_number =
            |part: &str| (1..=5).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if version.split('.').count() != 3 || !version.split('.').all(is_number) {
            return Err(ApiError::new(400, "BadRequest", "the version is three numbers, as in 9.1.0"));
        }
        // Without credentials: it is public, and agents send none here.
        return Ok(Some((FileRoute::PgpKey, 0)));
    }
    Ok(None)
}

/// A route of uploads, by what is behind `/api/fleet/uploads/`.
fn upload(
    fleet: &Fleet,
    files: &FleetFiles,
    (head, lookup): (&Head<'_>, &mut Option<Box<Lookup>>),
    rest: &str,
) -> Result<(FileRoute, usize), ApiError> {
    let most = fleet.settings().max_body;
    let (id, number) = rest.split_once('/').map_or((rest, None), |(id, number)| (id, Some(number)));
    let named = || FileName::of_upload(id).ok_or_else(not_found);
    match (id, number) {
        ("", None) => {
            expect(head, "POST")?;
            Ok((FileRoute::Begin(agent_of_key(fleet, head, lookup)?), LONGEST_BEGIN.min(most)))
        }
        (_, None) => {
            expect(head, "POST")?;
            Ok((FileRoute::End(agent_of_key(fleet, head, lookup)?, named()?), LONGEST_END))
        }
        (_, Some(number)) => {
            // First, so that it is given back where the chunk is refused.
            let reserved = files.reserved_chunk_turn(head.peer());
            expect(head, "PUT")?;
            let agent = agent_of_key(fleet, head, lookup)?;
            let client = Client::Agent(agent);
            let of = files.unfinished(&named()?, client)?;
            let number = number.parse().map_err(|_| {
                ApiError::new(400, "BadRequest", "the number of a chunk is a whole number, from 0")
            })?;
            let hash = head.sole_header("x-chunk-sha2").ok().flatten();
            let hash = hash.and_then(|hash| ContentHash::parse(str::from_utf8(hash).ok()?.trim()));
            let hash = hash.ok_or(ApiError::new(
                400,
                "BadRequest",
                "the header `X-Chunk-SHA2` must have the SHA-256 of the chunk, in 64 hexadecimal digits",
            ))?;
            let turn = match reserved {
                Some(turn) => turn,
                None => files.chunk_turn(agent)?,
            };
            Ok((FileRoute::Chunk { of, number, hash, turn }, files.chunk_bytes(client)))
        }
    }
}

fn not_found() -> ApiError {
    ApiError::new(404, "NotFound", "there is no such file")
}
