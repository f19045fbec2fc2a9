//! Routing and authentication of a request by its head.

use super::answers::ApiError;
use super::body::BodyCoding;
use super::file_routes::{self, FileRoute};
use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::control::{Fleet, Lookup, Proof};
use crate::files::FleetFiles;
use crate::registry::AgentVersion;
use tidegate_admission::access::{MAX_CREDENTIAL_BYTES, PresentedCredentials, presented};
use tidegate_http1::Head;

/// The least version of agents, and the last major version that is known.
const OLDEST: (u8, u8) = (7, 13);
const NEWEST_MAJOR: u8 = 9;
/// The version of the API that there is.
const API_VERSION: &[u8] = b"2023-06-01";
const PREFIX: &str = "/api/fleet/agents/";
const LONGEST_ENROLLMENT: usize = 512 << 10;
const LONGEST_ACKS: usize = 2 << 20;
const LONGEST_AUDIT: usize = 1 << 10;

/// The access granted to a request.
#[derive(Debug)]
pub struct Ticket {
    pub(super) route: Route,
    pub(super) coding: BodyCoding,
    pub(super) takes_gzip: bool,
    /// The key, where it is not in memory.
    pub(super) lookup: Option<Box<Lookup>>,
}

#[derive(Debug)]
pub(super) enum Route {
    /// With credentials that are known, or without.
    Status(bool),
    Enroll {
        token: Box<str>,
        version: AgentVersion,
    },
    CheckIn {
        id: AgentId,
        /// The hash of its key.
        key: Option<KeyHash>,
        version: AgentVersion,
    },
    Acks(AgentId),
    AuditUnenroll(AgentId),
    /// On the heap, since few requests are for files.
    Files(Box<FileRoute>),
}

/// The route of a request, and the most bytes of its body.
pub(super) fn route(fleet: &Fleet, files: &FleetFiles, head: &Head<'_>) -> Result<(Ticket, usize), ApiError> {
    let mut lookup = None;
    if let Some((route, max_body)) = file_routes::route(fleet, files, head, &mut lookup)? {
        return Ok((ticket((Route::Files(Box::new(route)), lookup), head, max_body)?, max_body));
    }
    let most = fleet.settings().max_body;
    let path = head.path();
    let (route, max_body) =
        match path.strip_prefix(PREFIX).map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
            _ if path == "/api/status" => {
                expect(head, "GET")?;
                (Route::Status(credentials(head, |id, secret| is_known(fleet, id, secret)) == Some(true)), 0)
            }
            Some(("enroll", "")) => {
                expect(head, "POST")?;
                let token = credentials(head, |id, secret| (Box::from(id), fleet.prove_token(id, secret)));
                let (token, proof) = token.ok_or(ApiError::UNAUTHORIZED)?;
                lookup = proven(proof)?;
                (Route::Enroll { token, version: version_of(head)? }, LONGEST_ENROLLMENT.min(most))
            }
            Some((id, "checkin")) => {
                expect(head, "POST")?;
                let id = agent(fleet, head, id, &mut lookup)?;
                let key = credentials(head, |_, secret| KeyHash::of(secret));
                (Route::CheckIn { id, key, version: version_of(head)? }, most)
            }
            Some((id, "acks")) => {
                expect(head, "POST")?;
                (Route::Acks(agent(fleet, head, id, &mut lookup)?), LONGEST_ACKS.min(most))
            }
            Some((id, "audit/unenroll")) => {
                expect(head, "POST")?;
                (Route::AuditUnenroll(agent(fleet, head, id, &mut lookup)?), LONGEST_AUDIT)
            }
            _ => return Err(ApiError::new(404, "NotFound", "there is no such route")),
        };
    Ok((ticket((route, lookup), head, max_body)?, max_body))
}

/// The ticket for a route, by what the head says of the version and of the body.
fn ticket(
    (route, lookup): (Route, Option<Box<Lookup>>),
    head: &Head<'_>,
    max_body: usize,
) -> Result<Ticket, ApiError> {
    if !matches!(head.sole_header("elastic-api-version"), Ok(None | Some(API_VERSION))) {
        return Err(ApiError::new(
            400,
            "UnsupportedAPIVersion",
            "the only version of this API is 2023-06-01",
        ));
    }
    let is_compressed = match head.sole_header("content-encoding") {
        Ok(None | Some(b"identity" | b"")) => false,
        Ok(Some(b"gzip")) => true,
        _ => {
            return Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                "a body is compressed with gzip, or not at all",
            ));
        }
    };
    let takes_gzip = head.values("accept-encoding").any(|value| {
        value.split(|byte| *byte == b',').any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"gzip"))
    });
    let coding = BodyCoding { is_compressed, most: max_body };
    Ok(Ticket { route, coding, takes_gzip, lookup })
}

pub(super) fn expect(head: &Head<'_>, method: &str) -> Result<(), ApiError> {
    match head.method() == method {
        true => Ok(()),
        false => Err(ApiError::new(405, "MethodNotAllowed", "this route has another method")),
    }
}

/// Applies `look` to the id and the secret in the `Authorization` header.
fn credentials<T>(head: &Head<'_>, look: impl FnOnce(&str, &[u8]) -> T) -> Option<T> {
    let value = head.sole_header("authorization").ok()??;
    let mut scratch = [0; MAX_CREDENTIAL_BYTES];
    match presented(value, &mut scratch)? {
        PresentedCredentials::ApiKey(id, secret) => Some(look(str::from_utf8(id).ok()?, secret)),
        _ => None,
    }
}

/// The lookup that a key still needs, if any.
fn proven(proof: Proof) -> Result<Option<Box<Lookup>>, ApiError> {
    match proof {
        Proof::Valid => Ok(None),
        Proof::Unknown(lookup) => Ok(Some(lookup)),
        Proof::Invalid => Err(ApiError::UNAUTHORIZED),
        // Not 401, for which an agent may give up.
        Proof::Busy => Err(ApiError::BUSY),
    }
}

fn is_known(fleet: &Fleet, id: &str, secret: &[u8]) -> bool {
    match id.parse() {
        Ok(agent) => fleet.is_key_of(agent, secret),
        Err(_) => fleet.is_enrollment_token(id, secret),
    }
}

/// The agent whose key the request has, if that is in memory.
pub(super) fn known_agent(fleet: &Fleet, head: &Head<'_>) -> Option<AgentId> {
    credentials(head, |id, secret| id.parse().ok().filter(|agent| fleet.is_key_of(*agent, secret))).flatten()
}

/// The agent whose key the request has, or one whose key is to be looked up.
pub(super) fn agent_of_key(
    fleet: &Fleet,
    head: &Head<'_>,
    lookup: &mut Option<Box<Lookup>>,
) -> Result<AgentId, ApiError> {
    let of_key = credentials(head, |id, secret| {
        let agent: AgentId = id.parse().ok()?;
        Some((agent, fleet.prove_agent(agent, secret)))
    });
    let (agent, proof) = of_key.flatten().ok_or(ApiError::UNAUTHORIZED)?;
    *lookup = proven(proof)?;
    Ok(agent)
}

/// The agent in the path, if the request has its key, or a key that is to be looked up.
fn agent(
    fleet: &Fleet,
    head: &Head<'_>,
    in_path: &str,
    lookup: &mut Option<Box<Lookup>>,
) -> Result<AgentId, ApiError> {
    let of_key = agent_of_key(fleet, head, lookup)?;
    match in_path.parse() {
        Ok(agent) if agent == of_key => Ok(agent),
        _ if lookup.is_some() => Err(ApiError::UNAUTHORIZED),
        _ => Err(ApiError::new(403, "AgentIdentity", "the API key is that of another agent")),
    }
}

/// The version of the agent: `Elastic Agent v8.15.0 (…)`.
fn version_of(head: &Head<'_>) -> Result<AgentVersion, ApiError> {
    let value = head.sole_header("user-agent").ok().flatten().and_then(|value| str::from_utf8(value).ok());
    let version =
        value.and_then(|value| value.to_ascii_lowercase().strip_prefix("elastic agent ").map(str::to_owned));
    let version = version.and_then(|rest| rest.split(' ').next()?.trim_start_matches('v').parse().ok());
    let version: AgentVersion = version.ok_or(ApiError::new(
        400,
        "InvalidUserAgent",
        "the header `User-Agent` must name an Elastic Agent and its version, as in `Elastic Agent v8.15.0`",
    ))?;
    match (version.major, version.minor) >= OLDEST && version.major <= NEWEST_MAJOR {
        true => Ok(version),
        false => Err(ApiError::new(400, "UnsupportedVersion", "agents from 7.13 to 9.x are supported")),
    }
}
