//! Several gateways with one fleet in PostgreSQL, as behind a balancer: an agent may come anywhere, and what was answered at one
//! is so at the other.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use tidegate_test_postgres::PostgresServer;
use tidegate_tests::{Finished, Gateway, SOON, free_address, http, tidegate, until};

const AGENT: &str = "User-Agent: Elastic Agent v9.1.0 (linux; amd64)";
const POLICY: &str = "inputs: [{type: logfile, id: one}]\n";

/// One of the gateways.
struct Replica {
    gateway: Gateway,
    agents: SocketAddr,
}

/// An agent, which knows no gateway.
#[derive(Clone)]
struct Agent {
    id: String,
    key: String,
    /// What the last answer says it has received, which it says with its next check-in.
    token: Arc<Mutex<Option<String>>>,
}

impl Replica {
    fn start(database: &str) -> Replica {
        let agents = free_address();
        let mut gateway = Gateway::new(json!({}));
        let listen = json!({
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
            "fleet": {"address": agents, "long_poll": "1h", "postgres": {"url": database}},
        });
        gateway.configure(json!({
            "memory": "128MiB", "sinks": {"nothing": {"type": "blackhole"}}, "listen": listen,
        }));
        gateway.start();
        Replica { gateway, agents }
    }

    fn cli(&self, args: &[&str]) -> Finished {
        let admin = self.gateway.admin().to_string();
        tidegate(&[&["fleet"], args, &["--admin", &admin]].concat())
    }

    fn put_policy(&self, id: &str, text: &str) -> Finished {
        let file = self.gateway.folder().join(format!("{id}.yaml"));
        std::fs::write(&file, text).unwrap();
        self.cli(&["policy", "put", file.to_str().unwrap()])
    }

    fn enroll(&self, token: &str) -> Agent {
        let body = json!({"type": "PERMANENT", "metadata": {"local": {"host": {"hostname": "h"}}}});
        let answer = self.post("/api/fleet/agents/enroll", token, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let item = &answer.json()["item"];
        let text = |name: &str| item[name].as_str().unwrap().to_owned();
        Agent { id: text("id"), key: text("access_api_key"), token: Arc::default() }
    }

    fn post(&self, path: &str, key: &str, body: &Value) -> http::Answer {
        let authorization = format!("Authorization: ApiKey {key}");
        let head =
            [&format!("POST {path} HTTP/1.1"), &*authorization, AGENT, "Content-Type: application/json"];
        http::request(self.agents, &head, body.to_string().as_bytes()).unwrap()
    }

    fn check_in(&self, agent: &Agent, more: &Value) -> http::Answer {
        let mut body = json!({"status": "online", "message": "ok"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        if let Some(token) = &*agent.token.lock().unwrap() {
            body["ack_token"] = json!(token);
        }
        let answer = self.post(&format!("/api/fleet/agents/{}/checkin", agent.id), &agent.key, &body);
        if answer.status == 200 {
            *agent.token.lock().unwrap() = answer.json()["ack_token"].as_str().map(str::to_owned);
        }
        answer
    }

    /// The first action of the answer to a check-in: its id and its type.
    fn next_action(&self, agent: &Agent, more: &Value) -> (String, String) {
        let answer = self.check_in(agent, more);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let action = &answer.json()["actions"][0];
        let text = |name: &str| action[name].as_str().unwrap_or_default().to_owned();
        (text("id"), text("type"))
    }

    fn ack(&self, agent: &Agent, action: &str) -> http::Answer {
        let event = json!({
            "type": "ACTION_RESULT", "subtype": "ACKNOWLEDGED", "action_id": action, "agent_id": agent.id, "message": "",
            "timestamp": "2026-01-01T00:00:00.00000+00:00",
        });
        self.post(&format!("/api/fleet/agents/{}/acks", agent.id), &agent.key, &json!({"events": [event]}))
    }

    fn status(&self) -> Value {
        http::get(self.gateway.admin(), "/fleet/status").unwrap().json()
    }

    fn waits_for(&self, agents: u64) {
        until(SOON, "agents wait", || self.status()["waiting"] == agents);
    }
}

fn has(policy: &str, revision: u64) -> Value {
    json!({"agent_policy_id": policy, "policy_revision_idx": revision})
}

/// Whatever one gateway answers, the other knows: tokens, agents, policies, actions, acknowledgements, removals; also when one is
/// killed.
#[test]
fn an_agent_may_come_anywhere() {
    let Some(server) = PostgresServer::start() else { return };
    let database = server.database("fleet");
    let (mut a, b) = (Replica::start(&database), Replica::start(&database));

    // At once, without a wait for what was written to be followed: the token, the policy, the agent and its key.
    a.put_policy("web", POLICY).succeeded();
    let token = a.cli(&["token", "create", "--policy", "web"]).succeeded().trim().to_owned();
    let agent = b.enroll(&token);
    assert_eq!(a.next_action(&agent, &json!({})).0, "policy:web:1");
    assert_eq!(a.ack(&agent, "policy:web:1").status, 200);

    thread::scope(|scope| {
        // A policy and an action that are put at A reach the agent that waits at B.
        let waits = scope.spawn(|| b.next_action(&agent, &has("web", 1)));
        b.waits_for(1);
        assert_eq!(a.status()["waiting"], 0);
        a.put_policy("web", &POLICY.replace("one", "two")).succeeded();
        assert_eq!(waits.join().unwrap().0, "policy:web:2");

        let waits = scope.spawn(|| b.next_action(&agent, &has("web", 2)));
        b.waits_for(1);
        a.cli(&["agent", "diagnostics", &agent.id]).succeeded();
        let (action, kind) = waits.join().unwrap();
        assert_eq!(kind, "REQUEST_DIAGNOSTICS");

        // What B delivered is acknowledged at A, and shown at both.
        assert_eq!(a.ack(&agent, &action).json()["items"][0]["status"], 200);
        for replica in [&a, &b] {
            let shown = replica.cli(&["action", "show", &action, "--json"]).succeeded();
            let shown: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!((&shown["agents"], &shown["acknowledged"]), (&json!(1), &json!(1)));
        }

        // Another policy, which B does not know yet.
        let waits = scope.spawn(|| b.next_action(&agent, &has("web", 2)));
        b.waits_for(1);
        a.put_policy("other", POLICY).succeeded();
        a.cli(&["agent", "reassign", &agent.id, "--policy", "other"]).succeeded();
        assert_eq!(waits.join().unwrap().0, "policy:other:1");

        // Orders at both at the same time: the agent gets them all.
        let orders: Vec<_> = [&a, &b, &a, &b]
            .into_iter()
            .map(|replica| {
                let id = agent.id.clone();
                scope.spawn(move || replica.cli(&["agent", "diagnostics", &id]).succeeded())
            })
            .collect();
        orders.into_iter().for_each(|order| drop(order.join().unwrap()));
        let answer = b.check_in(&agent, &has("other", 1)).json();
        assert_eq!(answer["actions"].as_array().unwrap().len(), 4, "{answer}");
        let ids = answer["actions"].as_array().unwrap().iter();
        for id in ids.map(|action| action["id"].as_str().unwrap()) {
            assert_eq!(a.ack(&agent, id).json()["items"][0]["status"], 200);
        }
    });

    // A is killed right behind its answers: nothing of them is lost.
    let late = a.enroll(&token);
    a.put_policy("web", &POLICY.replace("one", "three")).succeeded();
    a.gateway.kill9();
    until(SOON, "the policy is known", || b.next_action(&late, &json!({})).0 == "policy:web:3");
    a.gateway.start();
    assert_eq!(a.status()["agents"], 2);

    // Removed at A: the agent that waits at B is told, and comes in nowhere.
    let gone = thread::scope(|scope| {
        let waits = scope.spawn(|| b.check_in(&agent, &has("other", 1)));
        b.waits_for(1);
        a.cli(&["agent", "unenroll", &agent.id, "--force"]).succeeded();
        waits.join().unwrap()
    });
    assert_eq!(gone.status, 401);
    assert_eq!(b.check_in(&agent, &json!({})).status, 401);
    assert_eq!(a.check_in(&agent, &json!({})).status, 401);
    assert_eq!(b.ack(&Agent { key: late.key.clone(), ..agent.clone() }, "x").status, 403);

    // A token that is revoked at B is worth nothing at A.
    let tokens = http::get(b.gateway.admin(), "/fleet/tokens").unwrap().json();
    let id = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    b.cli(&["token", "revoke", &id]).succeeded();
    let enroll = || a.post("/api/fleet/agents/enroll", &token, &json!({"type": "PERMANENT"})).status;
    until(SOON, "the token is revoked", || enroll() == 401);
    assert_eq!(a.gateway.term(), 0);
}

/// Without its database a gateway lets agents wait that have nothing new, answers the others with a time, and goes on when it
/// is back. A million wrong keys are refused without asking it.
#[test]
fn the_database_may_be_away() {
    let Some(mut server) = PostgresServer::start() else { return };
    let database = server.database("fleet");
    let (a, b) = (Replica::start(&database), Replica::start(&database));
    a.put_policy("web", POLICY).succeeded();
    let token = a.cli(&["token", "create", "--policy", "web"]).succeeded().trim().to_owned();
    let agent = a.enroll(&token);
    assert_eq!(b.next_action(&agent, &json!({})).0, "policy:web:1");
    assert_eq!(b.ack(&agent, "policy:web:1").status, 200);

    server.stop();
    thread::scope(|scope| {
        let waits = scope.spawn(|| b.next_action(&agent, &has("web", 1)));
        b.waits_for(1);
        let refused = a.post("/api/fleet/agents/enroll", &token, &json!({"type": "PERMANENT"}));
        assert_eq!(refused.status, 429, "{}", refused.text());
        assert!(refused.header("retry-after").is_some());
        let refused = a.check_in(&agent, &json!({"local_metadata": {"new": true}}));
        assert_eq!(refused.status, 503, "{}", refused.text());
        let failed = a.put_policy("web", &POLICY.replace("one", "two"));
        assert_ne!(failed.code, Some(0));

        server.go_on();
        until(SOON, "the database is used again", || {
            a.put_policy("web", &POLICY.replace("one", "two")).code == Some(0)
        });
        assert_eq!(waits.join().unwrap().0, "policy:web:2", "who waited through it gets what came after it");
    });
    until(SOON, "agents enrol again", || {
        b.post("/api/fleet/agents/enroll", &token, &json!({"type": "PERMANENT"})).status == 200
    });

    // Many wrong keys at once: each is refused, or told to come again where too many were looked up.
    let statuses: Vec<u16> = (0..300)
        .map(|number| {
            let key = format!("{}:wrong{number}", agent.id);
            let key = STANDARD.encode(key);
            b.check_in(&Agent { key, ..agent.clone() }, &json!({})).status
        })
        .collect();
    assert!(statuses.iter().all(|status| [401, 503].contains(status)), "{statuses:?}");
    assert!(statuses.contains(&401));
}
