//! A gateway with a fleet, and agents that speak its protocol.

use crate::{Finished, Gateway, free_address, http, tidegate};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;

/// How an agent of today names itself.
pub const AGENT: &str = "User-Agent: Elastic Agent v9.1.0 (linux; amd64)";
/// A policy of one input.
pub const POLICY: &str = "\
outputs:
  default:
    type: elasticsearch
    hosts: [http://127.0.0.1:9200]
inputs:
  - type: logfile
    id: system-logs
    use_output: default
    streams: [{paths: [/var/log/syslog]}]
";

/// A gateway with a fleet.
pub struct Fleet {
    /// The gateway.
    pub gateway: Gateway,
    /// The address for agents.
    pub agents: SocketAddr,
}

/// An agent of newer versions, as its requests are.
pub struct Agent {
    /// The address for agents.
    pub address: SocketAddr,
    /// Its id.
    pub id: String,
    /// Its API key, as it presents it.
    pub key: String,
}

impl Fleet {
    /// A gateway with these settings of `listen.fleet`.
    pub fn start(settings: Value) -> Fleet {
        Fleet::start_with(settings, |_| Value::Null)
    }

    /// The same, with the settings of TLS for its folder.
    pub fn start_with(settings: Value, tls: impl FnOnce(&Path) -> Value) -> Fleet {
        Fleet::start_among(settings, tls, json!({}))
    }

    /// The same, with these settings of `limits`.
    pub fn start_limited(settings: Value, limits: Value) -> Fleet {
        Fleet::start_whole(settings, |_| Value::Null, json!({}), limits)
    }

    /// The same, with more settings of `listen`, for a gateway with tenants.
    pub fn start_among(settings: Value, tls: impl FnOnce(&Path) -> Value, more: Value) -> Fleet {
        Fleet::start_whole(settings, tls, more, json!({}))
    }

    fn start_whole(settings: Value, tls: impl FnOnce(&Path) -> Value, more: Value, limits: Value) -> Fleet {
        let rest = json!({
            "memory": "128MiB", "sinks": {"nothing": {"type": "blackhole"}},
            "tenants": {"header": "X-Scope-OrgID", "default": "everybody"}, "limits": limits,
        });
        Fleet::start_configured(settings, tls, more, rest)
    }

    /// A gateway with a fleet and these settings beside it.
    pub fn start_in(rest: Value) -> Fleet {
        Fleet::start_configured(json!({}), |_| Value::Null, json!({}), rest)
    }

    fn start_configured(
        settings: Value,
        tls: impl FnOnce(&Path) -> Value,
        more: Value,
        mut rest: Value,
    ) -> Fleet {
        let agents = free_address();
        let mut fleet = json!({"address": agents});
        fleet.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let mut gateway = Gateway::new(json!({}));
        let mut listen = json!({
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "fleet": fleet,
            "tls": {"fleet": tls(gateway.folder())},
        });
        listen.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rest["listen"] = listen;
        gateway.configure(rest);
        gateway.start();
        Fleet { gateway, agents }
    }

    /// Runs a command about the fleet.
    pub fn cli(&self, args: &[&str]) -> Finished {
        let admin = self.gateway.admin().to_string();
        tidegate(&[&["fleet"], args, &["--admin", &admin]].concat())
    }

    /// Puts a policy; what the command says.
    pub fn put_policy(&self, id: &str, text: &str) -> String {
        let file = self.gateway.folder().join(format!("{id}.yaml"));
        std::fs::write(&file, text).unwrap();
        self.cli(&["policy", "put", file.to_str().unwrap()]).succeeded()
    }

    /// Makes a token of enrolment.
    pub fn token(&self, policy: &str) -> String {
        self.cli(&["token", "create", "--policy", policy]).succeeded().trim().to_owned()
    }

    /// Kills the gateway, and starts it again.
    pub fn restart_killed(&mut self) {
        self.gateway.kill9();
        self.gateway.start();
    }

    /// Enrols an agent.
    pub fn enroll(&self, token: &str) -> Agent {
        self.enroll_host(token, "h")
    }

    /// Enrols an agent of a host with this name.
    pub fn enroll_host(&self, token: &str, hostname: &str) -> Agent {
        let local = json!({"host": {"hostname": hostname}});
        let body = json!({"type": "PERMANENT", "metadata": {"local": local, "tags": ["web"]}});
        let answer = post(self.agents, "/api/fleet/agents/enroll", token, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let item = &answer.json()["item"];
        let text = |name: &str| item[name].as_str().unwrap().to_owned();
        Agent { address: self.agents, id: text("id"), key: text("access_api_key") }
    }
}

impl Agent {
    /// Sends a request of this agent.
    pub fn post(&self, route: &str, body: &Value) -> http::Answer {
        post(self.address, &format!("/api/fleet/agents/{}/{route}", self.id), &self.key, body)
    }

    /// Checks in once; waits for the answer.
    pub fn check_in(&self, more: Value) -> Value {
        let mut body = json!({"status": "online", "message": "ok"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.post("checkin", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    /// Acknowledges an action.
    pub fn ack(&self, action: &str) -> http::Answer {
        let event = json!({
            "type": "ACTION_RESULT", "subtype": "ACKNOWLEDGED", "action_id": action, "agent_id": self.id, "message": "",
            "timestamp": "2026-01-01T00:00:00.00000+00:00",
        });
        self.post("acks", &json!({"events": [event]}))
    }
}

/// Sends a request of an agent, or of one that enrols.
///
/// # Panics
/// When no answer comes.
pub fn post(address: SocketAddr, path: &str, key: &str, body: &Value) -> http::Answer {
    let authorization = format!("Authorization: ApiKey {key}");
    let head = [&format!("POST {path}? HTTP/1.1"), &*authorization, AGENT, "Content-Type: application/json"];
    http::request(address, &head, body.to_string().as_bytes()).unwrap()
}
