//! The fleet as agents and operators meet it: the client of a real Elastic Agent, requests as newer agents send them, and the
//! command line. What an agent was answered is so after `kill -9`.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use base64::Engine as _;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tidegate_tests::fleet::{AGENT, Agent, Fleet, POLICY, post};
use tidegate_tests::{Gateway, SOON, certificates, finish, free_address, http, skip, tidegate, until};

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The program with the client of Elastic Agent.
fn elastic_agent() -> Option<PathBuf> {
    let folder = std::env::var_os("TIDEGATE_TEST_SHIPPERS").filter(|value| !value.is_empty());
    if folder.is_none() {
        skip("TIDEGATE_TEST_SHIPPERS", "TIDEGATE_TEST_SHIPPERS is not set; `make test` sets it");
    }
    Some(PathBuf::from(folder?).join("agent/agent"))
}

/// Lists have the names of hosts, and are narrowed down by health, policy and host; a page leads to the next one also where most agents do
/// not fit.
#[test]
fn agents_are_found_by_health_policy_and_host() {
    let fleet = Fleet::start(json!({"long_poll": "1s"}));
    fleet.put_policy("web", POLICY);
    fleet.put_policy("db", POLICY);
    let (web, db) = (fleet.token("web"), fleet.token("db"));
    for number in 0..60 {
        fleet.enroll_host(&web, &format!("web-{number}.example"));
    }
    let ill = fleet.enroll_host(&db, "DB-1.example");
    ill.check_in(json!({"status": "error"}));

    let list = |query: &str| {
        let page = fleet.gateway.page(&format!("/fleet/agents?{query}"));
        assert_eq!(page.status, 200, "{}", page.text());
        page.json()
    };
    let hosts = |page: &Value| -> Vec<Value> {
        page["agents"].as_array().unwrap().iter().map(|agent| agent["hostname"].clone()).collect()
    };
    assert_eq!(list("limit=1000")["agents"].as_array().unwrap().len(), 61);
    assert_eq!(hosts(&list("limit=1")), [Value::Null], "nobody has asked for the names of hosts");
    for filter in ["status=error", "policy=db", "host=db-1", &format!("host={}", &ill.id[..13])] {
        let found = list(&format!("{filter}&hostnames=true"));
        assert_eq!((hosts(&found), &found["next"]), (vec![json!("DB-1.example")], &Value::Null), "{filter}");
    }
    assert_eq!(list("status=error&policy=web")["agents"], json!([]));

    // Page by page, without one twice.
    let (mut all, mut after) = (vec![], String::new());
    loop {
        let page = list(&format!("policy=web&hostnames=true&limit=7{after}"));
        assert!(hosts(&page).len() <= 7, "{page}");
        all.extend(hosts(&page));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    all.sort_by_key(Value::to_string);
    all.dedup();
    assert_eq!(all.len(), 60);

    let refused = fleet.gateway.page("/fleet/agents?status=ill");
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("there is no status `ill`: it is one of unknown, online"),
        "{}",
        refused.text()
    );
    let shown = fleet.cli(&["agent", "ls", "--status", "error"]).succeeded();
    assert!(shown.contains("DB-1.example") && shown.lines().count() == 2, "{shown}");
}

/// The client of Elastic Agent 7.17 enrols, gets its policy, a later one, an action and its end, and acknowledges each, while the
/// gateway is killed in between.
#[test]
fn an_elastic_agent_is_managed() {
    let Some(program) = elastic_agent() else { return };
    let mut fleet = Fleet::start(json!({"long_poll": "2s"}));
    let url = format!("http://{}", fleet.agents);
    assert!(
        fleet
            .put_policy("web", POLICY)
            .contains("policy web has revision 1, which is on its way to 0 agents")
    );

    let line = fleet.cli(&["enroll-command", "--policy", "web", "--url", &url]).succeeded();
    let token = line.split("--enrollment-token=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert!(line.starts_with(&format!("elastic-agent enroll --url={url} ")), "{line}");
    let enrolled = finish(Command::new(&program).args(["enroll", &url, &token])).succeeded();
    let enrolled: Value = serde_json::from_str(&enrolled).unwrap();
    let (id, key) = (enrolled["id"].as_str().unwrap(), enrolled["access_api_key"].as_str().unwrap());
    assert_eq!(enrolled["policy_id"], "web");
    assert_eq!(enrolled["user_provided_metadata"]["rack"], "7");

    let works = |count: &str| -> Vec<Value> {
        let text = finish(Command::new(&program).args(["run", &url, id, key, count])).succeeded();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    fleet.restart_killed();
    let got = works("1");
    assert_eq!(
        (got[0]["type"].as_str(), got[0]["id"].as_str()),
        (Some("POLICY_CHANGE"), Some("policy:web:1"))
    );
    assert_eq!(got[0]["policy"]["inputs"][0]["streams"][0]["paths"][0], "/var/log/syslog");
    assert_eq!(got[0]["policy"]["revision"], 1);

    // Acknowledged, so it does not come again: the next is revision 2.
    fleet.restart_killed();
    let said = fleet.put_policy("web", &POLICY.replace("syslog", "auth.log"));
    assert!(said.contains("revision 2, which is on its way to 1 agent"), "{said}");
    assert!(said.contains("/var/log/auth.log"), "{said}");
    assert_eq!(works("1")[0]["id"], "policy:web:2");

    let ordered = fleet.cli(&["agent", "upgrade", id, "--version", "7.17.29"]).succeeded();
    let action = ordered.split(' ').nth(1).unwrap().to_owned();
    fleet.restart_killed();
    let got = works("1");
    assert_eq!((got[0]["type"].as_str(), got[0]["id"].as_str()), (Some("UPGRADE"), Some(action.as_str())));
    let shown: Value = serde_json::from_str(&fleet.cli(&["action", "show", &action]).succeeded()).unwrap();
    assert_eq!((&shown["acknowledged"], &shown["results"][0]["agent_id"]), (&json!(1), &json!(id)));

    fleet.cli(&["agent", "unenroll", id]).succeeded();
    assert_eq!(works("1")[0]["type"], "UNENROLL");
    fleet.restart_killed();
    let gone = finish(Command::new(&program).args(["run", &url, id, key, "1"]));
    assert!(gone.code != Some(0));
    let body = json!({"status": "online"});
    assert_eq!(post(fleet.agents, &format!("/api/fleet/agents/{id}/checkin"), key, &body).status, 401);
    assert_eq!(fleet.gateway.term(), 0);
}

/// A check-in waits until there is a policy, an action, or the end of its time, and the end of the gateway.
#[test]
fn a_check_in_waits_for_something_to_do() {
    let mut fleet = Fleet::start(json!({"long_poll": "1h"}));
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll(&fleet.token("web"));
    let got = agent.check_in(json!({}));
    assert_eq!(got["actions"][0]["id"], "policy:web:1");
    assert_eq!(got["actions"][0]["agent_id"], agent.id);

    let admin = fleet.gateway.admin();
    let waiting = || http::get(admin, "/fleet/status").unwrap().json()["waiting"] == 1;
    let has = |revision: u64| json!({"agent_policy_id": "web", "policy_revision_idx": revision});
    thread::scope(|scope| {
        let waits = scope.spawn(|| agent.check_in(has(1)));
        until(SOON, "the agent waits", waiting);
        fleet.put_policy("web", &POLICY.replace("syslog", "messages"));
        assert_eq!(waits.join().unwrap()["actions"][0]["id"], "policy:web:2");

        let waits = scope.spawn(|| agent.check_in(has(2)));
        until(SOON, "the agent waits again", waiting);
        fleet.cli(&["agent", "diagnostics", &agent.id]).succeeded();
        let got = waits.join().unwrap();
        assert_eq!(got["actions"][0]["type"], "REQUEST_DIAGNOSTICS");
        let action = got["actions"][0]["id"].as_str().unwrap().to_owned();
        let answer = agent.ack(&action);
        assert_eq!((answer.status, answer.json()["items"][0]["status"].clone()), (200, json!(200)));
        assert_eq!(agent.ack("unknown").status, 404);

        fleet.put_policy("other", "inputs: []\n");
        let waits = scope.spawn(|| agent.check_in(has(2)));
        until(SOON, "the agent waits for another policy", waiting);
        fleet.cli(&["agent", "reassign", &agent.id, "--policy", "other"]).succeeded();
        assert_eq!(waits.join().unwrap()["actions"][0]["id"], "policy:other:1");
    });
    let agent = &agent;
    let waits = thread::scope(|scope| {
        let has = json!({"agent_policy_id": "other", "policy_revision_idx": 1});
        let waits = scope.spawn(move || agent.check_in(has));
        until(SOON, "the agent waits for the end", waiting);
        assert_eq!(fleet.gateway.term(), 0, "nobody is left waiting");
        waits.join().unwrap()
    });
    assert_eq!(waits["actions"], json!([]));
}

/// Bodies are compressed both ways, and a body that is too long once decompressed is refused as such.
#[test]
fn bodies_are_compressed_both_ways() {
    let fleet = Fleet::start(json!({"max_body": "256KiB"}));
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll(&fleet.token("web"));
    let path = format!("POST /api/fleet/agents/{}/checkin HTTP/1.1", agent.id);
    let authorization = format!("Authorization: ApiKey {}", agent.key);
    let send = |body: &[u8]| {
        let head = [&path, &*authorization, AGENT, "Content-Encoding: gzip", "Accept-Encoding: gzip"];
        http::request(fleet.agents, &head, body).unwrap()
    };
    let answer =
        send(&zipped(json!({"status": "online", "components": [{"id": "c"}]}).to_string().as_bytes()));
    assert_eq!((answer.status, answer.header("content-encoding")), (200, Some("gzip")));
    let mut decoder = GzDecoder::new(Vec::new());
    decoder.write_all(&answer.body).unwrap();
    let got: Value = serde_json::from_slice(&decoder.finish().unwrap()).unwrap();
    assert_eq!(got["actions"][0]["data"]["policy"]["outputs"]["default"]["type"], "elasticsearch");

    let bomb = zipped(&vec![b' '; 64 << 20]);
    assert_eq!(send(&bomb).status, 413);
    assert_eq!(send(b"not gzip").status, 400);
    let shown = fleet.cli(&["agent", "show", &agent.id]).succeeded();
    assert!(shown.contains("\"id\": \"c\""), "{shown}");
}

/// Invalid requests get the status and the shape that agents expect, and change nothing.
#[test]
fn bad_requests_are_told_so() {
    let fleet = Fleet::start(json!({"max_body": "64KiB"}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let (agent, other) = (fleet.enroll(&token), fleet.enroll(&token));
    let check_in = format!("/api/fleet/agents/{}/checkin", agent.id);
    let enroll = "/api/fleet/agents/enroll";
    let body = json!({"type": "PERMANENT"});
    let key = |key: &str| format!("Authorization: ApiKey {key}");
    let (own, of_other, enrolling) = (key(&agent.key), key(&other.key), key(&token));
    let old = "User-Agent: Elastic Agent v7.12.0";
    let new = "User-Agent: Elastic Agent v10.0.0";
    let cases: [(&str, &[&str], &str, u16, &str); 13] = [
        (&check_in, &[AGENT], "{}", 401, "Unauthorized"),
        (&check_in, &["Authorization: ApiKey !!", AGENT], "{}", 401, "Unauthorized"),
        (&check_in, &[&enrolling, AGENT], "{}", 401, "Unauthorized"),
        (&check_in, &[&of_other, AGENT], "{}", 403, "AgentIdentity"),
        (&check_in, &[&own], "{}", 400, "InvalidUserAgent"),
        (&check_in, &[&own, old], "{}", 400, "UnsupportedVersion"),
        (&check_in, &[&own, new], "{}", 400, "UnsupportedVersion"),
        (&check_in, &[&own, AGENT, "Elastic-Api-Version: 2020-01-01"], "{}", 400, "UnsupportedAPIVersion"),
        (&check_in, &[&own, AGENT], "{", 400, "BadRequest"),
        (&check_in, &[&own, AGENT, "Content-Encoding: br"], "{}", 415, "UnsupportedMediaType"),
        (enroll, &[&own, AGENT], "{}", 401, "Unauthorized"),
        (enroll, &[&enrolling, AGENT], "{\"type\":\"TEMPORARY\"}", 400, "BadRequest"),
        ("/api/fleet/nothing", &[&own, AGENT], "{}", 404, "NotFound"),
    ];
    for (path, headers, body, status, error) in cases {
        let line = format!("POST {path} HTTP/1.1");
        let head = [&[&*line], headers].concat();
        let answer = http::request(fleet.agents, &head, body.as_bytes()).unwrap();
        let said = answer.json();
        assert_eq!(answer.status, status, "{path} {headers:?}: {said}");
        assert_eq!(
            (&said["statusCode"], &said["error"]),
            (&json!(status), &json!(error)),
            "{path} {headers:?}"
        );
    }
    let long = json!({"status": "x".repeat(70_000)});
    let answer = post(fleet.agents, &check_in, &agent.key, &long);
    assert_eq!((answer.status, answer.json()["error"].clone()), (413, json!("RequestEntityTooLarge")));
    let answer =
        http::request(fleet.agents, &[&format!("GET {enroll} HTTP/1.1"), &enrolling, AGENT], b"").unwrap();
    assert_eq!(answer.status, 405);

    // Small when compressed, and much work otherwise.
    let events: Vec<Value> = vec![json!({"action_id": ""}); 1500];
    assert_eq!(agent.post("acks", &json!({"events": events})).status, 400);
    let tags = json!({"type": "PERMANENT", "metadata": {"tags": ["x".repeat(300)]}});
    assert_eq!(post(fleet.agents, enroll, &token, &tags).status, 400);

    // Another's id is not given away, and a revoked token lets nobody in.
    let taken = json!({"type": "PERMANENT", "id": agent.id});
    assert_eq!(post(fleet.agents, enroll, &token, &taken).status, 403);
    let tokens = fleet.cli(&["token", "ls", "--json"]).succeeded();
    let listed: Value = serde_json::from_str(tokens.lines().next().unwrap()).unwrap();
    fleet.cli(&["token", "revoke", listed["id"].as_str().unwrap()]).succeeded();
    assert_eq!(post(fleet.agents, enroll, &token, &body).status, 401);
    assert!(fleet.cli(&["status"]).succeeded().contains("\"agents\": 2"));
}

/// P1: at the least memory that the configuration allows, the longest check-in is taken as it is and compressed, and a policy of some
/// hundred KB reaches the agent.
#[test]
fn the_least_memory_holds_the_longest_requests() {
    let fleet = Fleet::start(json!({"max_body": "512KiB", "memory": "2560KiB"}));
    let mut noise = 1_u64;
    let mut text = |len: usize| -> String {
        let mut digit = || {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b"0123456789abcdef"[(noise >> 60) as usize])
        };
        std::iter::repeat_with(&mut digit).take(len).collect()
    };
    fleet.put_policy("web", &format!("{POLICY}note: '{}'\n", text(200_000)));
    let agent = fleet.enroll(&fleet.token("web"));
    let path = format!("POST /api/fleet/agents/{}/checkin HTTP/1.1", agent.id);
    let authorization = format!("Authorization: ApiKey {}", agent.key);
    for coding in ["identity", "gzip"] {
        let body = json!({"status": "online", "components": [text(523_000)]}).to_string();
        let body = if coding == "gzip" { zipped(body.as_bytes()) } else { body.into_bytes() };
        let head = [&path, &*authorization, AGENT, &format!("Content-Encoding: {coding}")];
        let answer = http::request(fleet.agents, &head, &body).unwrap();
        assert_eq!(answer.status, 200, "{coding}: {:.300}", answer.text());
        assert_eq!(answer.json()["actions"][0]["id"], "policy:web:1", "{coding}");
    }
}

/// Behind TLS agents are served as without, and a client without it is told so.
#[test]
fn agents_come_by_tls() {
    let fleet = Fleet::start_with(json!({}), |folder| {
        certificates::authority(folder, "ca");
        certificates::sign(folder, "ca", "server", "/CN=fleet");
        json!({"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")})
    });
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let authority = fleet.gateway.folder().join("ca.pem");
    let url = format!("https://{}/api/fleet/agents/enroll", fleet.agents);
    let authorization = format!("Authorization: ApiKey {token}");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--http2", "--cacert"]).arg(authority);
    curl.args(["-H", &authorization, "-H", AGENT, "--data", "{\"type\":\"PERMANENT\"}", &url]);
    let enrolled: Value = serde_json::from_str(&finish(&mut curl).succeeded()).unwrap();
    assert_eq!(enrolled["item"]["policy_id"], "web");
    let plain = http::get(fleet.agents, "/api/status").unwrap();
    assert_eq!((plain.status, plain.text().contains("HTTPS")), (400, true));
}

/// Metadata is shown as the agent sent it, even JSON that other readers refuse.
#[test]
fn hostile_metadata_is_shown_as_it_is() {
    let fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll(&fleet.token("web"));
    for hostile in ["[".repeat(500) + &"]".repeat(500), "1e999".to_owned(), "\"\\ud800\"".to_owned()] {
        let head = [
            &format!("POST /api/fleet/agents/{}/checkin HTTP/1.1", agent.id),
            &*format!("Authorization: ApiKey {}", agent.key),
            AGENT,
        ];
        let body = format!("{{\"status\":\"online\",\"components\":{hostile}}}");
        let answer = http::request(fleet.agents, &head, body.as_bytes()).unwrap();
        assert!([200, 400].contains(&answer.status), "{}", answer.text());
        let shown = fleet.gateway.page(&format!("/fleet/agents/{}", agent.id));
        assert_eq!(shown.status, 200, "{}", shown.text());
        let said = fleet.cli(&["agent", "show", &agent.id]).succeeded();
        if answer.status == 200 {
            assert!(shown.text().contains(&hostile), "{}", shown.text());
            assert!(said.contains(&agent.id), "{said}");
        }
    }
}

/// An agent sends to the gateway that manages it with the key that its policy brings: for the tenant of the policy, and as long as it is
/// enrolled.
#[test]
fn a_managed_agent_sends_with_a_key_of_its_own() {
    let elasticsearch = free_address();
    let url = format!("http://{elasticsearch}");
    let none = |_: &Path| Value::Null;
    let mut fleet = Fleet::start_among(
        json!({"elasticsearch_hosts": [url]}),
        none,
        json!({"elasticsearch": elasticsearch}),
    );
    fleet.put_policy("web", "outputs: {default: {type: tidegate, tenant: shop, preset: latency}}");
    let shown = fleet.cli(&["policy", "show", "web"]).succeeded();
    assert!(shown.contains("\"type\": \"tidegate\"") && shown.contains("\"tenant\": \"shop\""), "{shown}");
    let (agent, other) = (fleet.enroll(&fleet.token("web")), fleet.enroll(&fleet.token("web")));
    let policy = agent.check_in(json!({}))["actions"][0]["data"]["policy"].clone();
    let output = &policy["outputs"]["default"];
    assert_eq!(output["type"], "elasticsearch");
    assert_eq!((&output["hosts"], &output["preset"]), (&json!([url]), &json!("latency")));
    let key = output["api_key"].as_str().unwrap();
    let others = other.check_in(json!({}));
    assert_ne!(others["actions"][0]["data"]["policy"]["outputs"]["default"]["api_key"], *key);

    let send = |key: &str| {
        let key = base64::engine::general_purpose::STANDARD.encode(key);
        let authorization = format!("Authorization: ApiKey {key}");
        let head = ["POST /_bulk HTTP/1.1", &*authorization, "Content-Type: application/x-ndjson"];
        let body = "{\"create\":{\"_index\":\"logs-app-default\"}}\n{\"message\":\"m\"}\n";
        http::request(elasticsearch, &head, body.as_bytes()).unwrap()
    };
    let sent = send(key);
    assert_eq!((sent.status, sent.json()["errors"].as_bool()), (200, Some(false)), "{}", sent.text());
    let metrics = fleet.gateway.metrics();
    let of_shop = |(name, value): (&String, &f64)| {
        (name.starts_with("tidegate_tenant_") && name.contains("tenant=\"shop\"") && *value == 1.0)
            .then_some(())
    };
    assert!(metrics.iter().find_map(of_shop).is_some(), "{metrics:?}");

    fleet.restart_killed();
    assert_eq!(send(key).status, 200);
    let (id, _) = key.split_once(':').unwrap();
    assert_eq!(send(&format!("{id}:wrong")).status, 401);
    fleet.cli(&["agent", "unenroll", "--force", &agent.id]).succeeded();
    assert_eq!(send(key).status, 401);
}

/// The status page, its JSON and the metrics say how far a policy has come.
#[test]
fn the_status_shows_the_roll_out() {
    let fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll(&fleet.token("web"));
    agent.check_in(json!({}));
    agent.ack("policy:web:1");
    fleet.put_policy("web", &POLICY.replace("syslog", "auth.log"));
    let policy = || fleet.gateway.status()["fleet"]["policies"][0].clone();
    assert_eq!((&policy()["revision"], &policy()["up_to_date"]), (&json!(2), &json!(0)));
    assert_eq!(policy()["rollout_seconds"], json!([null, null, null]));
    agent.check_in(json!({}));
    agent.ack("policy:web:2");
    assert_eq!(policy()["up_to_date"], 1);
    assert!(policy()["rollout_seconds"][2].as_f64().is_some_and(|last| last > 0.0), "{}", policy());
    let page = fleet.gateway.page("/status").text();
    assert!(page.contains("FLEET") && page.contains("9.1.0 1"), "{page}");
    let metrics = fleet.gateway.metrics();
    let last = "tidegate_fleet_policy_rollout_seconds{policy=\"web\",agents=\"1\"}";
    assert!(metrics.get(last).is_some_and(|last| *last >= 1.0), "{metrics:?}");
    let listed = fleet.cli(&["policy", "ls", "--json"]).succeeded();
    let listed: Value = serde_json::from_str(listed.trim()).unwrap();
    assert_eq!((&listed["rollout"]["agents"], &listed["rollout"]["arrived"]), (&json!(1), &json!(1)));
}

/// Probes are answered without credentials, and only those with some are told the version.
#[test]
fn the_status_is_for_everybody() {
    let fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let agent = fleet.enroll(&fleet.token("web"));
    let answer = http::get(fleet.agents, "/api/status").unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!({"name": "tidegate", "status": "HEALTHY"})));
    let key = format!("Authorization: ApiKey {}", agent.key);
    let known = http::request(fleet.agents, &["GET /api/status HTTP/1.1", &key], b"").unwrap();
    assert!(known.json()["version"]["number"].is_string());
    let metrics = fleet.gateway.metrics();
    let metric = |name: &str| metrics.get(name).copied();
    assert_eq!(metric("tidegate_fleet_enrollments_total"), Some(1.0), "{metrics:?}");
    assert_eq!(metric("tidegate_fleet_policy_agents{policy=\"web\"}"), Some(1.0));
    assert_eq!(metric("tidegate_fleet_agents_by_version{version=\"9.1.0\"}"), Some(1.0));
}

/// Where agents have all connections that there may be, another is told to come later, and a probe is answered all the same.
#[test]
fn a_probe_is_answered_when_agents_are_too_many() {
    let fleet = Fleet::start_limited(json!({}), json!({"connections": 20, "connections_per_peer": 20}));
    let taken: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(fleet.agents).unwrap()).collect();
    let status = |line: &str| http::request(fleet.agents, &[line], b"").map(|answer| answer.status).ok();
    until(SOON, "connections to be too many", || status("GET /api/fleet/x HTTP/1.1") == Some(429));
    assert_eq!(status("GET /api/status HTTP/1.1"), Some(200));
    assert_eq!(status("GET /api/status? HTTP/1.1"), Some(200));
    assert_eq!(status("GET /api/statusquo HTTP/1.1"), Some(429));
    drop(taken);
    until(SOON, "there to be room again", || status("GET /api/fleet/x HTTP/1.1") == Some(404));
}

/// P2: every enrolment that was answered is there when the gateway was killed at any moment, and every acknowledgement.
#[test]
fn what_was_answered_outlives_kills() {
    let mut fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let mut enrolled: Vec<Agent> = Vec::new();
    for round in 0..4 {
        let agents = thread::scope(|scope| {
            let enrolling: Vec<_> = (0..8)
                .map(|_| {
                    let (token, address) = (&token, fleet.agents);
                    scope.spawn(move || {
                        let (mut answered, mut refused) = (Vec::new(), 0);
                        let authorization = format!("Authorization: ApiKey {token}");
                        let head = ["POST /api/fleet/agents/enroll HTTP/1.1", &authorization, AGENT];
                        // Until the gateway is gone.
                        while let Ok(answer) = http::request(address, &head, b"{\"type\":\"PERMANENT\"}") {
                            // A disk that is slow for a moment; not for ever, or this would not end.
                            if answer.status == 429 && refused < 100 {
                                refused += 1;
                                continue;
                            }
                            if answer.status != 200 {
                                break;
                            }
                            let item = &answer.json()["item"];
                            let text = |name: &str| item[name].as_str().unwrap().to_owned();
                            let agent = Agent { address, id: text("id"), key: text("access_api_key") };
                            let is_acknowledged = ack_policy(&agent);
                            answered.push((agent, is_acknowledged));
                        }
                        answered
                    })
                })
                .collect();
            let enough = 100 * (round + 1);
            until(SOON, "agents have enrolled", || {
                fleet.gateway.page("/fleet/status").json()["agents"].as_u64().unwrap() >= enough
            });
            fleet.gateway.kill9();
            enrolling.into_iter().flat_map(|agents| agents.join().unwrap()).collect::<Vec<_>>()
        });
        fleet.gateway.start();
        for (agent, is_acknowledged) in agents {
            if is_acknowledged {
                let shown = fleet.gateway.page(&format!("/fleet/agents/{}", agent.id)).json();
                assert_eq!(shown["policy_revision"], 1, "{shown}");
            }
            enrolled.push(agent);
        }
        for agent in &enrolled {
            let answer = agent.post("acks", &json!({"events": []}));
            assert_eq!(answer.status, 200, "{} is unknown: {}", agent.id, answer.text());
        }
    }
    // Some were committed and not answered.
    assert!(enrolled.len() >= 300, "{}", enrolled.len());
}

/// Acknowledges the first revision of the agent's policy; whether it was answered.
fn ack_policy(agent: &Agent) -> bool {
    let event = json!({"action_id": "policy:web:1", "agent_id": agent.id});
    let path = format!("POST /api/fleet/agents/{}/acks HTTP/1.1", agent.id);
    let authorization = format!("Authorization: ApiKey {}", agent.key);
    let body = json!({"events": [event]}).to_string();
    let answer = http::request(agent.address, &[&path, &authorization, AGENT], body.as_bytes());
    answer.is_ok_and(|answer| answer.status == 200)
}

/// Orders an action by its JSON; its id.
fn order(fleet: &Fleet, action: &Value) -> String {
    let head = ["POST /fleet/actions HTTP/1.1", "Connection: close"];
    let answer = http::request(fleet.gateway.admin(), &head, action.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// The ids of the actions that are kept, the newest first.
fn listed_actions(fleet: &Fleet) -> Vec<String> {
    let listed = fleet.gateway.page("/fleet/actions").json();
    let id = |action: &Value| action["id"].as_str().unwrap().to_owned();
    listed["actions"].as_array().unwrap().iter().map(id).collect()
}

/// The ids of the actions in an answer to a check-in.
fn given(answer: &Value) -> Vec<&str> {
    let actions = answer["actions"].as_array().unwrap();
    actions.iter().map(|action| action["id"].as_str().unwrap()).collect()
}

/// Actions that are answered or expired are removed some time later, also behind a crash; one that an agent has to do is not, and an
/// expired one is not delivered.
#[test]
fn finished_actions_are_removed() {
    let mut fleet = Fleet::start(json!({"keep_actions": "1s"}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let (agent, absent) = (fleet.enroll(&token), fleet.enroll(&token));
    let both = json!([agent.id, absent.id]);
    let open = order(&fleet, &json!({"type": "SETTINGS", "agents": both}));
    let expired = json!({"type": "SETTINGS", "agents": both, "expiration": "2020-01-01T00:00:00Z"});
    let expired = order(&fleet, &expired);
    let done = order(&fleet, &json!({"type": "SETTINGS", "agents": [agent.id]}));
    let answer = agent.check_in(json!({}));
    assert_eq!(given(&answer), [&open, &done], "and not {expired}");
    for action in [&open, &done] {
        assert_eq!(agent.ack(action).status, 200);
    }
    fleet.restart_killed();
    until(SOON, "finished actions are removed", || listed_actions(&fleet) == [&*open]);
    let answer = absent.check_in(json!({}));
    assert_eq!(given(&answer), [&open]);
    assert_eq!(absent.ack(&open).status, 200);
    until(SOON, "the last is removed", || listed_actions(&fleet).is_empty());
    let said = fleet.cli(&["action", "show", &open]).stderr;
    assert!(said.contains(&format!("there is no action `{open}`")), "{said}");
}

/// A cancelled action is not delivered, and an agent that has it is told, also by a gateway that was killed behind the answer.
#[test]
fn a_cancelled_action_stays_cancelled() {
    let mut fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let (has_it, has_not) = (fleet.enroll(&token), fleet.enroll(&token));
    fleet.cli(&["agent", "upgrade", "--policy", "web", "--version", "9.2.0"]).succeeded();
    let action = listed_actions(&fleet).remove(0);
    let answer = has_it.check_in(json!({}));
    assert_eq!(given(&answer), [&action]);

    let said = fleet.cli(&["action", "cancel", &action]).succeeded();
    fleet.restart_killed();
    assert!(said.starts_with(&format!("action {action} is cancelled, with 2 agents that")), "{said}");
    let listed = fleet.cli(&["action", "ls"]).succeeded();
    let cancelled: Vec<&str> = listed.lines().filter(|line| line.contains("UPGRADE")).collect();
    assert!(matches!(cancelled[..], [line] if !line.trim_end().ends_with('-')), "{listed}");

    let answer = has_it.check_in(json!({"ack_token": answer["ack_token"]}));
    let cancel = &answer["actions"][0];
    assert_eq!((&cancel["type"], &cancel["data"]), (&json!("CANCEL"), &json!({"target_id": action})));
    let cancel = cancel["id"].as_str().unwrap();
    assert!(said.contains(cancel), "{said}");
    assert_eq!(has_it.ack(cancel).status, 200);
    assert_eq!(given(&has_not.check_in(json!({}))), [""; 0]);
    fleet.restart_killed();
    let shown: Value = serde_json::from_str(&fleet.cli(&["action", "show", &action]).succeeded()).unwrap();
    assert_eq!((&shown["acknowledged"], &shown["cancelled"]), (&json!(0), &json!(1)), "{shown}");
    assert_eq!(shown["results"][0]["agent_id"], has_it.id);

    let refused = |id: &str| fleet.cli(&["action", "cancel", id]).stderr;
    assert!(refused("none").contains("there is no action `none`"));
    assert!(refused(cancel).contains("a `CANCEL` cannot be cancelled"));
    let done = order(&fleet, &json!({"type": "SETTINGS", "agents": [has_it.id]}));
    assert_eq!(has_it.ack(&done).status, 200);
    assert!(refused(&done).contains("is done: its agents have answered it"));
}

/// A host that is set up anew takes the place of its former agent with the token that it enrolled with, and with no other; the state has
/// no token in it.
#[test]
fn an_agent_is_replaced_by_its_token() {
    let mut fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let id = "6f9619ff-8b86-4011-b42d-00cf4fc964ff";
    let enroll = |fleet: &Fleet, replace_token: Option<&str>| {
        let body = json!({"type": "PERMANENT", "id": id, "replace_token": replace_token});
        post(fleet.agents, "/api/fleet/agents/enroll", &token, &body)
    };
    let agent = |answer: &http::Answer| {
        assert_eq!((answer.status, &answer.json()["item"]["id"]), (200, &json!(id)), "{}", answer.text());
        let key = answer.json()["item"]["access_api_key"].as_str().unwrap().to_owned();
        Agent { address: fleet.agents, id: id.to_owned(), key }
    };
    let first = agent(&enroll(&fleet, Some("from-the-image")));
    first.check_in(json!({}));
    for wrong in [None, Some("from-another")] {
        let refused = enroll(&fleet, wrong);
        let said = refused.json();
        assert_eq!(
            (refused.status, &said["statusCode"], &said["error"]),
            (403, &json!(403), &json!("AgentNotReplaceable"))
        );
    }
    assert_eq!(first.post("acks", &json!({"events": []})).status, 200);

    let second = agent(&enroll(&fleet, Some("from-the-image")));
    assert_eq!(first.post("acks", &json!({"events": []})).status, 401);
    fleet.restart_killed();
    assert_eq!(first.post("checkin", &json!({"status": "online"})).status, 401);
    assert_eq!(given(&second.check_in(json!({}))), ["policy:web:1"]);
    assert!(fleet.cli(&["status"]).succeeded().contains("\"agents\": 1"));
    let state = std::fs::read(fleet.gateway.data().join("fleet/state.redb")).unwrap();
    let has = |text: &str| state.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("replace_token") && !has("from-the-image"));
}

/// A policy that is none is refused with its place and the old one stays; pages in a browser reach none of the routes for operators.
#[test]
fn operators_are_told_what_is_wrong() {
    let fleet = Fleet::start(json!({}));
    fleet.put_policy("web", POLICY);
    let file = fleet.gateway.folder().join("web.yaml");
    let put = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let refused = fleet.cli(&["policy", "put", file.to_str().unwrap()]);
        assert!(refused.code != Some(0), "{text}");
        refused.stderr
    };
    let said = put("inputs:\n  - type: logfile\n use_output: x\n");
    assert!(said.contains("web.yaml:3"), "{said}");
    let said = put("outputs: {default: {}}\ninputs: [{type: logfile, use_output: other}]\n");
    assert!(said.contains("`inputs[0].use_output: other`, and `outputs` has no `other`"), "{said}");
    let shown: Value = serde_json::from_str(&fleet.cli(&["policy", "show", "web"]).succeeded()).unwrap();
    assert_eq!((&shown["revision"], &shown["inputs"][0]["id"]), (&json!(1), &json!("system-logs")));
    std::fs::write(&file, POLICY.replace("syslog", "daemon.log")).unwrap();
    let said = fleet.cli(&["policy", "diff", file.to_str().unwrap()]).succeeded();
    assert!(said.contains("\"/var/log/syslog\"\n+ "), "{said}");
    assert!(said.contains("would get revision 2"), "{said}");
    let said = fleet.cli(&["token", "create", "--policy", "none"]);
    assert!(said.stderr.contains("there is no policy `none`"), "{}", said.stderr);
    let said = fleet.cli(&["policy", "ls"]).succeeded();
    assert!(said.starts_with("id   revision  agents"), "{said}");

    let admin = fleet.gateway.admin();
    // The gateway's own page may look at agents, and nothing more.
    let token = fleet.gateway.page("/console/session").json()["token"].as_str().unwrap().to_owned();
    let from_a_page = |line: &str, token: &str| {
        let token = format!("X-Tidegate-Token: {token}");
        let head = [line, "Sec-Fetch-Site: same-origin", &token, "Connection: close"];
        http::request(admin, &head, b"").unwrap().status
    };
    assert_eq!(from_a_page("GET /fleet/agents HTTP/1.1", "guessed"), 403);
    assert_eq!(from_a_page("GET /fleet/agents?limit=1 HTTP/1.1", &token), 200);
    assert_eq!(from_a_page("GET /fleet/agents/none HTTP/1.1", &token), 404);
    let others = [
        "GET /fleet/policies",
        "GET /fleet/policies/agents",
        "DELETE /fleet/agents/none",
        "POST /fleet/agents/none/reassign",
        "GET /fleet/agents/none/uploads",
        "GET /fleet/agentsnone",
    ];
    for other in others {
        assert_eq!(from_a_page(&format!("{other} HTTP/1.1"), &token), 403, "{other}");
    }
    assert_eq!(http::get(admin, "/fleet/nothing").unwrap().status, 404);
}

/// A gateway without a fleet says that it has none.
#[test]
fn a_gateway_without_a_fleet_says_so() {
    let gateway = Gateway::started(json!({"sinks": {"nothing": {"type": "blackhole"}}}));
    let admin = gateway.admin().to_string();
    let said = tidegate(&["fleet", "agent", "ls", "--admin", &admin]);
    assert!(said.stderr.contains("this gateway has no fleet: set `listen.fleet`"), "{}", said.stderr);
}
