//! The JSON API for operators, below `/opamp/` on the admin address. `docs/opamp.md` lists them.

use crate::control::{Config, ConfigOrder, LONGEST_CONFIG, Opamp, OrderError};
use crate::message::agent_capability;
use crate::record::{AgentRecord, EffectiveRecord};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_arena::Share;
use tidegate_fleet::{AgentId, GunzipError, KeyRange, OperatorRequest, Table, decode, gunzip};
use tidegate_http1::Reply;
use tokio::sync::Mutex;

/// Agents of a page, at most.
const PAGE: usize = 50;
/// The longest answer, in bytes: a page of agents, each with its attributes escaped, or an effective configuration.
pub const LONGEST_ANSWER: usize = 2 << 20;
/// The longest body, decompressed: a configuration as JSON, where a byte may take two.
const LONGEST_BODY: usize = 2 * LONGEST_CONFIG + (64 << 10);
const JSON: &str = "application/json; charset=utf-8";
const HEADERS: &[(&str, &str)] = &[("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")];

/// The routes for operators.
pub struct OperatorApi {
    opamp: Arc<Opamp>,
    /// Held while an answer is made, so that the heap for it is that of one.
    making: Mutex<()>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenOrder {
    #[serde(default)]
    name: String,
}

impl OperatorApi {
    /// Those of this control plane.
    pub fn new(opamp: Arc<Opamp>) -> OperatorApi {
        OperatorApi { opamp, making: Mutex::new(()) }
    }

    /// Answers a request.
    pub async fn answer(&self, request: &OperatorRequest, body: &[u8]) -> Reply {
        let _one_at_a_time = self.making.lock().await;
        let (status, value) = match self.value(request, body).await {
            Ok(value) => (200, value),
            Err(error) => (status_of(&error), json!({"error": error.to_string()})),
        };
        let text = format!("{value}\n");
        drop(value);
        // In memory that is paid for, since it stays until the client has it.
        let window = self.opamp.arena().try_window(Share::Egress, text.len());
        let content = window.and_then(|mut window| window.append(text.as_bytes()).map(|()| window));
        match content {
            Ok(window) => Reply::new(status).content_type(JSON).headers(HEADERS).content(window),
            Err(_) => Reply::new(503).retry_after(1).text("the memory for answers is in use; try again\n"),
        }
    }

    async fn value(&self, request: &OperatorRequest, body: &[u8]) -> Result<Value, OrderError> {
        let opamp = &self.opamp;
        let decompressed =
            request.is_compressed.then(|| gunzip(opamp.arena(), body, LONGEST_BODY)).transpose();
        let decompressed = decompressed.map_err(|error| match error {
            GunzipError::Busy => OrderError::Memory,
            GunzipError::TooLarge(most) => {
                OrderError::Invalid(format!("the body has more than {most} bytes, once decompressed"))
            }
            GunzipError::Malformed(error) => {
                OrderError::Invalid(format!("the body is not valid gzip: {error}"))
            }
        })?;
        let body = decompressed.as_deref().unwrap_or(body);
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        match (request.method.as_str(), &*parts) {
            ("GET", ["status"]) => Ok(json!(opamp.view())),

            ("GET", ["configs"]) => {
                let progress = opamp.progress();
                let shown = |(name, config): (Arc<str>, Arc<Config>)| {
                    let progress = progress.get(&name).copied().unwrap_or_default();
                    with(summary(&name, &config), json!(progress))
                };
                Ok(json!({"configs": opamp.list_configs().into_iter().map(shown).collect::<Vec<_>>()}))
            }
            ("GET", ["configs", name]) => {
                let config = opamp.find_config(name).ok_or_else(|| unknown("configuration", name))?;
                Ok(with(summary(name, &config), json!({"body": config.record.body})))
            }
            ("PUT", ["configs", name]) => {
                let order: ConfigOrder = parsed(body)?;
                let config = opamp.put_config(name, order).await?;
                let agents = opamp.progress().get(*name).map_or(0, |progress| progress.agents);
                Ok(with(summary(name, &config), json!({"agents": agents})))
            }
            ("DELETE", ["configs", name]) => {
                opamp.remove_config(name).await?;
                Ok(json!({}))
            }

            ("GET", ["agents"]) => self.page(&request.query).await,
            ("GET", ["agents", id]) => {
                let id = agent(id)?;
                let shown = self.agent(id).await?.ok_or_else(|| unknown("collector", &id.to_string()))?;
                let effective: Option<EffectiveRecord> = self.record(Table::OpampEffective, id).await?;
                Ok(with(shown, json!({"effective_config": effective})))
            }
            ("DELETE", ["agents", id]) => {
                opamp.remove_agent(agent(id)?).await?;
                Ok(json!({}))
            }
            ("POST", ["agents", id, "restart"]) => {
                let id = agent(id)?;
                opamp.order_restart(id)?;
                Ok(json!({}))
            }

            ("GET", ["tokens"]) => {
                let shown = |(id, name): (String, String)| json!({"id": id, "name": name});
                Ok(json!({"tokens": opamp.list_tokens().into_iter().map(shown).collect::<Vec<_>>()}))
            }
            ("POST", ["tokens"]) => {
                let order: TokenOrder = parsed(body)?;
                let (id, token) = opamp.create_token(&order.name).await?;
                Ok(json!({"id": id, "token": token}))
            }
            ("DELETE", ["tokens", id]) => {
                opamp.revoke_token(id).await?;
                Ok(json!({}))
            }
            _ => Err(OrderError::Unknown("such route; docs/opamp.md has them all".to_owned())),
        }
    }

    /// A page of agents.
    async fn page(&self, query: &str) -> Result<Value, OrderError> {
        let after = query.split('&').find_map(|pair| pair.strip_prefix("after=")).map(agent).transpose()?;
        let after = after.map(AgentId::to_bytes);
        let range = KeyRange { prefix: b"", after: after.as_ref().map(|key| &key[..]), limit: PAGE };
        let page = self.opamp.state().list(Table::OpampAgents, range).await?;
        let ids: Vec<AgentId> = page
            .iter()
            .filter_map(|(key, _)| key.first_chunk())
            .map(|key| AgentId::from_bytes(*key))
            .collect();
        let next = ids.last().filter(|_| page.len() == PAGE).map(ToString::to_string);
        let mut agents = Vec::new();
        for id in ids {
            agents.extend(self.agent(id).await?);
        }
        Ok(json!({"agents": agents, "next": next}))
    }

    async fn agent(&self, id: AgentId) -> Result<Option<Value>, OrderError> {
        let record: Option<AgentRecord> = self.record(Table::OpampAgents, id).await?;
        let record = record.unwrap_or_default();
        let shown = self.opamp.registry().with(id, |agent| {
            json!({
                "id": id.to_string(),
                "connected": agent.is_live(),
                "seen_seconds_ago": agent.sequence.map(|_| agent.seen.elapsed().as_secs()),
                "healthy": agent.is_healthy,
                "health": &*agent.health_text,
                "config": agent.config.as_deref(),
                "config_status": agent.status.name(),
                "accepts_config": agent.capabilities & agent_capability::ACCEPTS_REMOTE_CONFIG != 0,
            })
        });
        let of_record = json!({
            "config_error": record.config_error,
            "service": record.attributes.0.get("service.name"),
            "attributes": record.attributes,
        });
        Ok(shown.map(|shown| with(shown, of_record)))
    }

    async fn record<T: serde::de::DeserializeOwned>(
        &self,
        table: Table,
        id: AgentId,
    ) -> Result<Option<T>, OrderError> {
        let stored = self.opamp.state().get(table, &id.to_bytes()).await?;
        Ok(stored.map(|stored| decode(&stored.value)).transpose()?)
    }
}

impl Opamp {
    /// Has an agent restart that is there and can.
    fn order_restart(&self, id: AgentId) -> Result<(), OrderError> {
        let ordered = self.registry().with(id, |agent| {
            let accepts = agent.capabilities & agent_capability::ACCEPTS_RESTART_COMMAND != 0;
            if accepts && agent.sequence.is_some() {
                agent.restart = true;
                agent.wake();
            }
            accepts && agent.sequence.is_some()
        });
        match ordered {
            None => Err(unknown("collector", &id.to_string())),
            Some(true) => Ok(()),
            Some(false) => Err(OrderError::Invalid(
                "this collector does not take the command to restart, or is not there".to_owned(),
            )),
        }
    }
}

/// One object with the members of another besides.
fn with(mut value: Value, more: Value) -> Value {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}

fn summary(name: &str, config: &Config) -> Value {
    let record = &config.record;
    json!({
        "name": name,
        "revision": record.revision,
        "match": record.labels,
        "hash": config.hash().iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "changed_ms": record.changed_ms,
        "bytes": record.body.len(),
        "rollout": record.rollout.state,
        "released_percent": f64::from(record.rollout.released) / 100.0,
        "step": record.rollout.step / 100,
        "max_failed": record.rollout.max_failed,
    })
}

fn parsed<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, OrderError> {
    serde_json::from_slice(body)
        .map_err(|error| OrderError::Invalid(format!("the body is not valid: {error}")))
}

fn agent(id: &str) -> Result<AgentId, OrderError> {
    id.parse().map_err(|_| unknown("collector", id))
}

fn unknown(what: &str, id: &str) -> OrderError {
    OrderError::Unknown(format!("{what} `{id:.80}`"))
}

fn status_of(error: &OrderError) -> u16 {
    match error {
        OrderError::Unknown(_) => 404,
        OrderError::Invalid(_) => 400,
        OrderError::Memory | OrderError::Store(_) => 503,
    }
}
