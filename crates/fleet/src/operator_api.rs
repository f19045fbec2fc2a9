//! The JSON API for operators, below `/fleet/` on the admin address. `docs/fleet.md` lists them.

mod files;

use crate::agent_api::BodyError;
use crate::agent_id::AgentId;
use crate::control::{ActionOrder, AgentFilter, Fleet, OperatorError};
use crate::files::{FileError, FleetFiles};
use crate::gunzip::gunzip;
use crate::registry::AgentStatus;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_arena::{ChargeError, Share};
use tidegate_http1::Reply;
use tokio::sync::Mutex;

/// Entries of a page, where the request does not say how many.
const PAGE: usize = 100;
const LONGEST_PAGE: usize = 1000;
/// Agents that are read at a time.
const AT_ONCE: usize = 50;
/// How long a request looks for agents that fit: other requests wait meanwhile.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// The longest list of agents of a page, in bytes; one agent is there in any case.
const LONGEST_LIST: usize = 384 << 10;
const JSON: &str = "application/json; charset=utf-8";
const HEADERS: &[(&str, &str)] = &[("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];

/// The routes for operators.
pub struct OperatorApi {
    fleet: Arc<Fleet>,
    files: Arc<FleetFiles>,
    /// Held while an answer is made, so that the heap for it is that of one.
    making: Mutex<()>,
}

/// A request of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRequest {
    /// The method.
    pub method: String,
    /// The path behind the prefix of the routes.
    pub path: String,
    /// The query.
    pub query: String,
    /// Whether the body is compressed with gzip.
    pub is_compressed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenOrder {
    policy_id: String,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reassignment {
    policy_id: String,
}

impl OperatorApi {
    /// Those of this fleet and its files.
    pub fn new(fleet: Arc<Fleet>, files: Arc<FleetFiles>) -> OperatorApi {
        OperatorApi { fleet, files, making: Mutex::new(()) }
    }

    /// Answers a request.
    pub async fn answer(&self, request: &OperatorRequest, body: &[u8]) -> Reply {
        let _one_at_a_time = self.making.lock().await;
        let outcome = match self.download(request).await {
            Some(Ok(reply)) => return reply,
            Some(Err(failed)) => Err(failed),
            None => self.text(request, body).await,
        };
        let (status, mut text) = match outcome {
            Ok(text) => (200, text),
            Err(failed) => failed.answer(),
        };
        text.push('\n');
        // In memory that is paid for, since it stays until the client has it.
        let window = self.fleet.arena().try_window(Share::Egress, text.len());
        let content = window.and_then(|mut window| window.append(text.as_bytes()).map(|()| window));
        let reply = Reply::new(status).content_type(JSON).headers(HEADERS);
        match content {
            Ok(window) if status == 503 => reply.retry_after(5).content(window),
            Ok(window) => reply.content(window),
            Err(ChargeError::Never { .. }) => {
                Reply::new(500).text("the answer is longer than one may be; raise `listen.fleet.max_body`\n")
            }
            Err(_) => Reply::new(503).retry_after(1).text("the memory for answers is in use; try again\n"),
        }
    }

    /// The answer as text: what agents have said is copied into it as it is, and no tree is made of it.
    async fn text(&self, request: &OperatorRequest, body: &[u8]) -> Result<String, Failed> {
        let fleet = &self.fleet;
        let decompressed = request
            .is_compressed
            .then(|| gunzip(fleet.arena(), body, fleet.settings().max_body))
            .transpose()
            .map_err(BodyError::from)?;
        let body = decompressed.as_deref().unwrap_or(body);
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        match (request.method.as_str(), &*parts) {
            ("GET", ["status"]) => written(&fleet.view()),

            ("GET", ["policies"]) => listed("policies", &fleet.list_policies()),
            ("GET", ["policies", id]) => Ok(fleet.show_policy(id).await?),
            ("PUT", ["policies", id]) => {
                let is_trial = parameter(&request.query, "dry_run").is_some_and(|value| value != "false");
                written(&fleet.put_policy(id, body, is_trial).await?)
            }
            ("DELETE", ["policies", id]) => {
                fleet.remove_policy(id).await?;
                Ok(DONE.to_owned())
            }

            ("GET", ["tokens"]) => listed("tokens", &fleet.list_tokens()),
            ("POST", ["tokens"]) => {
                let order: TokenOrder = parsed(body)?;
                written(&fleet.create_token(&order.policy_id, &order.name).await?)
            }
            ("DELETE", ["tokens", id]) => {
                fleet.revoke_token(id).await?;
                Ok(DONE.to_owned())
            }

            ("GET", ["agents"]) => {
                let after = parameter(&request.query, "after").map(agent).transpose()?;
                self.agents(after, limit(&request.query), agent_filter(&request.query)?).await
            }
            ("GET", ["agents", id]) => written(&fleet.show_agent(agent(id)?).await?),
            ("DELETE", ["agents", id]) => {
                fleet.force_unenroll(agent(id)?).await?;
                Ok(DONE.to_owned())
            }
            ("POST", ["agents", id, "reassign"]) => {
                let order: Reassignment = parsed(body)?;
                fleet.reassign(agent(id)?, &order.policy_id).await?;
                Ok(DONE.to_owned())
            }

            ("GET", ["actions"]) => listed("actions", &fleet.list_actions(limit(&request.query)).await?),
            ("GET", ["actions", id]) => written(&fleet.show_action(id).await?),
            ("POST", ["actions"]) => {
                let order: ActionOrder = parsed(body)?;
                written(&fleet.order(order).await?)
            }
            ("POST", ["actions", id, "cancel"]) => written(&fleet.cancel(id).await?),
            _ => self.file_text(request, &parts, body).await,
        }
    }

    /// A page of agents: as many as were asked for, as fit, or as are found in [`LONGEST_LOOK`].
    async fn agents(
        &self,
        after: Option<AgentId>,
        limit: usize,
        filter: AgentFilter<'_>,
    ) -> Result<String, Failed> {
        let begun = Instant::now();
        let (mut page, mut listed, mut last) = (String::new(), 0, after);
        let next = 'all: loop {
            if listed == limit || begun.elapsed() >= LONGEST_LOOK {
                break last;
            }
            let batch = self.fleet.list_agents(last, AT_ONCE, &filter).await?;
            let Some(end) = batch.last else { break None };
            for agent in &batch.agents {
                let text = written(agent)?;
                if listed == limit || listed > 0 && page.len() + text.len() > LONGEST_LIST {
                    break 'all last;
                }
                page.push_str(if listed == 0 { "" } else { "," });
                page.push_str(&text);
                (listed, last) = (listed + 1, agent.id.parse().ok());
            }
            last = Some(end);
            // A state in a file is read without waiting, so others get their turn here.
            tokio::task::yield_now().await;
        };
        let next = next.map(|next| next.to_string());
        Ok(format!("{{\"agents\":[{page}],\"next\":{}}}", written(&next)?))
    }
}

/// The answer where there is nothing to say.
const DONE: &str = "{}";

fn written(value: &impl Serialize) -> Result<String, Failed> {
    serde_json::to_string(value).map_err(Failed::Body)
}

fn listed(name: &str, values: &[impl Serialize]) -> Result<String, Failed> {
    Ok(format!("{{\"{name}\":{}}}", serde_json::to_string(values).map_err(Failed::Body)?))
}

/// Why there is no answer as it was wished.
enum Failed {
    Unknown,
    Body(serde_json::Error),
    Coding(BodyError),
    Operator(OperatorError),
    File(FileError),
}

impl Failed {
    /// The status, and the words as JSON.
    fn answer(&self) -> (u16, String) {
        let (status, error) = match self {
            Failed::Unknown => (404, "there is no such route; docs/fleet.md has them all".to_owned()),
            Failed::Body(error) => (400, format!("the body is not valid: {error}")),
            Failed::Coding(BodyError::Busy) => (503, BodyError::Busy.to_string()),
            Failed::Coding(error) => (400, error.to_string()),
            Failed::File(error) => return files::answer(error),
            Failed::Operator(error) => (status_of(error), error.to_string()),
        };
        (status, json!({"error": error}).to_string())
    }
}

impl From<BodyError> for Failed {
    fn from(error: BodyError) -> Failed {
        Failed::Coding(error)
    }
}

impl From<OperatorError> for Failed {
    fn from(error: OperatorError) -> Failed {
        Failed::Operator(error)
    }
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failed> {
    serde_json::from_slice(body).map_err(Failed::Body)
}

/// The filter of a list of agents.
fn agent_filter(query: &str) -> Result<AgentFilter<'_>, Failed> {
    let status = parameter(query, "status").map(|name| {
        AgentStatus::named(name).ok_or_else(|| {
            let all = AgentStatus::ALL.map(AgentStatus::name).join(", ");
            Failed::Operator(OperatorError::Invalid(format!(
                "there is no status `{name:.80}`: it is one of {all}"
            )))
        })
    });
    Ok(AgentFilter {
        status: status.transpose()?,
        policy: parameter(query, "policy"),
        host: parameter(query, "host")
            .map(|text| percent_decode_str(text).decode_utf8_lossy().to_ascii_lowercase()),
        has_hostnames: parameter(query, "hostnames").is_some_and(|value| value != "false"),
    })
}

fn agent(id: &str) -> Result<AgentId, Failed> {
    id.parse().map_err(|_| unknown("agent", id))
}

fn unknown(what: &str, id: &str) -> Failed {
    Failed::Operator(OperatorError::Unknown(format!("{what} `{id:.80}`")))
}

/// The value of a parameter: ids and numbers, which need no escapes.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .find(|(own, _)| *own == name)
        .map(|(_, value)| value)
}

fn limit(query: &str) -> usize {
    let limit = parameter(query, "limit").and_then(|limit| limit.parse().ok());
    limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE)
}

fn status_of(error: &OperatorError) -> u16 {
    match error {
        OperatorError::Unknown(_) => 404,
        OperatorError::Policy(_) | OperatorError::Invalid(_) => 400,
        OperatorError::InUse(_) => 409,
        OperatorError::Memory(_) | OperatorError::Store(_) => 503,
    }
}
