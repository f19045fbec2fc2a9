//! Files of agents and for agents: uploads in chunks, artifacts, files of actions, and the key of packages, by requests as agents
//! send them and by the command line.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use tidegate_tests::fleet::{AGENT, Agent, Fleet, POLICY, post};
use tidegate_tests::{SOON, certificates, finish, http, until};

const MIB: usize = 1 << 20;

/// A fleet with a policy, and an agent with an action.
struct Rig {
    fleet: Fleet,
    agent: Agent,
    token: String,
    action: String,
}

impl Rig {
    /// The agent was asked for diagnostics, and has got them to do.
    fn start(settings: Value) -> Rig {
        let fleet = Fleet::start(settings);
        fleet.put_policy("web", POLICY);
        let token = fleet.token("web");
        let agent = fleet.enroll(&token);
        let action = diagnostics(&fleet, &agent);
        Rig { fleet, agent, token, action }
    }
}

/// Orders diagnostics; the id of the action.
fn diagnostics(fleet: &Fleet, agent: &Agent) -> String {
    let said = fleet.cli(&["agent", "diagnostics", &agent.id]).succeeded();
    assert!(said.contains("`tidegate fleet upload get ID -o FILE` fetches it"), "{said}");
    said.split(' ').nth(1).unwrap().to_owned()
}

fn begin(agent: &Agent, action: &str, size: usize) -> http::Answer {
    let file = json!({"name": "diagnostics.zip", "size": size, "mime_type": "application/zip", "compression": "none"});
    let body = json!({"action_id": action, "agent_id": agent.id, "src": "agent", "file": file});
    post(agent.address, "/api/fleet/uploads", &agent.key, &body)
}

fn begun(agent: &Agent, action: &str, size: usize) -> (String, usize) {
    let answer = begin(agent, action, size);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let chunk = usize::try_from(answer["chunk_size"].as_u64().unwrap()).unwrap();
    (answer["upload_id"].as_str().unwrap().to_owned(), chunk)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn put_chunk(agent: &Agent, upload: &str, number: usize, hash: &str, chunk: &[u8]) -> http::Answer {
    let head = [
        &format!("PUT /api/fleet/uploads/{upload}/{number} HTTP/1.1"),
        &*format!("Authorization: ApiKey {}", agent.key),
        &format!("X-Chunk-SHA2: {hash}"),
        AGENT,
    ];
    http::request(agent.address, &head, chunk).unwrap()
}

fn end(agent: &Agent, upload: &str, content: &[u8], chunk: usize) -> http::Answer {
    let hashes: Vec<u8> =
        content.chunks(chunk).flat_map(|chunk| digest(&SHA256, chunk).as_ref().to_vec()).collect();
    let body = json!({"transithash": {"sha256": sha256(&hashes)}});
    post(agent.address, &format!("/api/fleet/uploads/{upload}"), &agent.key, &body)
}

fn upload(agent: &Agent, action: &str, content: &[u8]) -> String {
    let (id, chunk) = begun(agent, action, content.len());
    for (number, part) in content.chunks(chunk).enumerate() {
        let answer = put_chunk(agent, &id, number, &sha256(part), part);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let answer = end(agent, &id, content, chunk);
    assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})), "{}", answer.text());
    id
}

fn get(agent: &Agent, path: &str, more: &[&str]) -> http::Answer {
    let line = format!("GET {path} HTTP/1.1");
    let authorization = format!("Authorization: ApiKey {}", agent.key);
    http::request(agent.address, &[&[&*line, &authorization, AGENT], more].concat(), b"").unwrap()
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(len).collect()
}

/// Bytes of files in the data folder.
fn stored(fleet: &Fleet) -> u64 {
    let entries = std::fs::read_dir(fleet.gateway.data().join("fleet/files")).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Diagnostics are ordered, uploaded in chunks, acknowledged with the id of the upload, and fetched as they were sent, also after a
/// kill.
#[test]
fn diagnostics_reach_the_operator() {
    let Rig { mut fleet, agent, action, .. } = Rig::start(json!({}));
    let content = noise(9 * MIB + 77);
    let (id, chunk) = begun(&agent, &action, content.len());
    assert_eq!(chunk, 4 * MIB);
    // The last first, and one of them twice.
    for number in [2, 0, 1, 0] {
        let part = content.chunks(chunk).nth(number).unwrap();
        let answer = put_chunk(&agent, &id, number, &sha256(part), part);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert!(fleet.cli(&["upload", "get", &id]).code != Some(0), "nobody gets what is not complete");
    let answer = end(&agent, &id, &content, chunk);
    assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})));
    let event = json!({
        "type": "ACTION_RESULT", "subtype": "ACKNOWLEDGED", "action_id": action, "agent_id": agent.id, "message": "",
        "timestamp": "2026-01-01T00:00:00.00000+00:00", "data": {"upload_id": id},
    });
    assert_eq!(agent.post("acks", &json!({"events": [event]})).status, 200);
    fleet.restart_killed();
    let shown: Value = serde_json::from_str(&fleet.cli(&["action", "show", &action]).succeeded()).unwrap();
    assert_eq!(shown["results"][0]["event"]["data"]["upload_id"], id);
    let listed = fleet.cli(&["upload", "ls", "--json"]).succeeded();
    let listed: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&listed["id"], &listed["agent_id"], &listed["action_id"]),
        (&json!(id), &json!(agent.id), &json!(action))
    );
    assert_eq!((&listed["name"], &listed["sha256"]), (&json!("diagnostics.zip"), &json!(sha256(&content))));
    let file = fleet.gateway.folder().join("got.zip");
    let said = fleet.cli(&["upload", "get", &id, "-o", file.to_str().unwrap()]).succeeded();
    assert!(said.contains(&format!("{} bytes are in", content.len())), "{said}");
    assert!(std::fs::read(&file).unwrap() == content);
    fleet.cli(&["upload", "rm", &id]).succeeded();
    assert_eq!(stored(&fleet), 0);
    let gone = fleet.cli(&["upload", "get", &id, "-o", file.to_str().unwrap()]);
    assert!(gone.stderr.contains("there is no such file"), "{}", gone.stderr);
    assert!(!file.exists());
    assert_eq!(fleet.gateway.term(), 0);
}

/// Uploads that are not as they should be get the status and the shape that agents expect, and leave no bytes.
#[test]
fn bad_uploads_are_refused() {
    let Rig { fleet, agent, token, action } = Rig::start(json!({}));
    let other = fleet.enroll(&token);
    let refused = |answer: &http::Answer, status: u16, error: &str| {
        let said = answer.json();
        assert_eq!(
            (answer.status, &said["statusCode"], &said["error"]),
            (status, &json!(status), &json!(error)),
            "{said}"
        );
    };
    // Not an action of this agent, of no action with uploads, of another agent, unknown, not JSON.
    refused(&begin(&other, &action, 10), 403, "Forbidden");
    let ordered = fleet.cli(&["agent", "upgrade", &agent.id, "--version", "9.1.2"]).succeeded();
    refused(&begin(&agent, ordered.split(' ').nth(1).unwrap(), 10), 403, "Forbidden");
    refused(&begin(&agent, "none", 10), 403, "Forbidden");
    let stolen = Agent { address: agent.address, id: agent.id.clone(), key: other.key.clone() };
    refused(&begin(&stolen, &action, 10), 403, "AgentIdentity");
    let unknown = Agent { address: agent.address, id: agent.id.clone(), key: "bm86Ym9keQ==".to_owned() };
    refused(&begin(&unknown, &action, 10), 401, "Unauthorized");
    refused(
        &post(agent.address, "/api/fleet/uploads", &agent.key, &json!({"action_id": 1})),
        400,
        "BadRequest",
    );
    refused(&begin(&agent, &action, 0), 400, "BadRequest");
    refused(&begin(&agent, &action, 2048 * MIB), 413, "RequestEntityTooLarge");

    let content = noise(4 * MIB + 10);
    let (id, chunk) = begun(&agent, &action, content.len());
    let (first, second) = content.split_at(chunk);
    let too_long = noise(chunk + 1);
    refused(&put_chunk(&agent, &id, 0, &sha256(&too_long), &too_long), 413, "RequestEntityTooLarge");
    refused(&put_chunk(&agent, &id, 0, &sha256(second), first), 400, "BadRequest");
    refused(&put_chunk(&agent, &id, 0, "none", first), 400, "BadRequest");
    refused(&put_chunk(&agent, &id, 7, &sha256(second), second), 400, "BadRequest");
    refused(&put_chunk(&agent, &id, 0, &sha256(second), second), 400, "BadRequest");
    refused(&put_chunk(&other, &id, 1, &sha256(second), second), 403, "Forbidden");
    refused(&put_chunk(&agent, &agent.id, 1, &sha256(second), second), 404, "NotFound");
    refused(&end(&other, &id, &content, chunk), 403, "Forbidden");
    assert_eq!(put_chunk(&agent, &id, 1, &sha256(second), second).status, 200);
    assert!(stored(&fleet) > 0);
    // The first is missing; then all is gone.
    refused(&end(&agent, &id, &content, chunk), 400, "BadRequest");
    refused(&put_chunk(&agent, &id, 0, &sha256(first), first), 404, "NotFound");
    assert_eq!(stored(&fleet), 0);
    let (id, _) = begun(&agent, &action, second.len());
    assert_eq!(put_chunk(&agent, &id, 0, &sha256(second), second).status, 200);
    refused(&end(&agent, &id, first, chunk), 400, "BadRequest");
    assert_eq!(stored(&fleet), 0);
    assert_eq!(fleet.gateway.page("/fleet/uploads").json()["uploads"], json!([]));
}

/// Diagnostics of many agents come at a time, and no chunk is refused although there are only turns for two: agents give an upload up then.
#[test]
fn diagnostics_of_many_agents_do_not_break_each_other() {
    const AGENTS: usize = 8;
    let Rig { fleet, token, .. } = Rig::start(json!({}));
    let agents: Vec<_> = (0..AGENTS).map(|_| fleet.enroll(&token)).collect();
    let agents: Vec<_> = agents.into_iter().map(|agent| (diagnostics(&fleet, &agent), agent)).collect();
    let (content, barrier) = (noise(9 * MIB), std::sync::Barrier::new(AGENTS));
    std::thread::scope(|scope| {
        for (action, agent) in &agents {
            scope.spawn(|| {
                barrier.wait();
                upload(agent, action, &content);
            });
        }
    });
    assert_eq!(stored(&fleet), (AGENTS * content.len()) as u64);
}

/// P2: a gateway that is killed in the middle of an upload has the complete ones, and the agent of the other is told that it is gone.
#[test]
fn uploads_outlive_kills() {
    let Rig { mut fleet, agent, action, .. } = Rig::start(json!({}));
    for round in 1..4 {
        let content = noise(4 * MIB + round);
        let whole = upload(&agent, &action, &content);
        let (id, chunk) = begun(&agent, &action, content.len());
        let (first, second) = content.split_at(chunk);
        assert_eq!(put_chunk(&agent, &id, 0, &sha256(first), first).status, 200);
        fleet.restart_killed();
        let answer = put_chunk(&agent, &id, 1, &sha256(second), second);
        assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("NotFound")));
        assert_eq!(end(&agent, &id, &content, chunk).status, 404);
        let got = fleet.gateway.page(&format!("/fleet/uploads/{whole}"));
        assert!(got.status == 200 && got.body == content);
        assert_eq!(stored(&fleet), (1..=round).map(|round| (4 * MIB + round) as u64).sum::<u64>());
    }
}

/// An upload that does not fit into the room for files is refused in words before its first byte, and fits when another was removed.
#[test]
fn a_full_quota_is_said() {
    let Rig { fleet, agent, token, action } = Rig::start(json!({"files": "1MiB"}));
    let (second, third) = (fleet.enroll(&token), fleet.enroll(&token));
    let (for_second, for_third) = (diagnostics(&fleet, &second), diagnostics(&fleet, &third));
    let id = upload(&agent, &action, &noise(MIB / 2 - 5_000));
    let answer = begin(&agent, &action, 20_000);
    assert_eq!((answer.status, &answer.json()["error"]), (507, &json!("InsufficientStorage")));
    assert!(answer.text().contains("half of `listen.fleet.files`"), "{}", answer.text());
    upload(&second, &for_second, &noise(MIB / 2 - 5_000));
    let answer = begin(&third, &for_third, 20_000);
    assert_eq!((answer.status, &answer.json()["error"]), (507, &json!("InsufficientStorage")));
    assert!(answer.text().contains("`tidegate fleet upload rm`"), "{}", answer.text());
    assert_eq!(begin(&agent, &action, MIB + 1).status, 413);
    let metrics = fleet.gateway.metrics();
    let metric = |name: &str| metrics.get(name).copied();
    assert_eq!(metric("tidegate_fleet_files_bytes"), Some((MIB - 10_000) as f64));
    assert_eq!(metric("tidegate_fleet_files_room_bytes"), Some(MIB as f64));
    let file = fleet.gateway.folder().join("file");
    std::fs::write(&file, noise(20_000)).unwrap();
    let said = fleet.cli(&["file", "put", file.to_str().unwrap()]);
    assert!(said.stderr.contains("`listen.fleet.files`"), "{}", said.stderr);
    fleet.cli(&["upload", "rm", &id]).succeeded();
    upload(&third, &for_third, &noise(20_000));
}

/// Clients that take an upload slowly cost some KiB each, however long it is; more than there may be are told to come again, and the
/// others get all of it.
#[test]
fn slow_readers_cost_little() {
    const READERS: usize = 4;
    let Rig { fleet, agent, action, .. } = Rig::start(json!({}));
    let content = noise(192 * MIB);
    let id = upload(&agent, &action, &content);
    let before = fleet.gateway.hwm();
    let path = format!("/fleet/uploads/{id}");
    let mut readers: Vec<TcpStream> = (0..READERS)
        .map(|_| {
            let mut reader = TcpStream::connect(fleet.gateway.admin()).unwrap();
            write!(reader, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut beginning = [0; 1000];
            let read = reader.read(&mut beginning).unwrap();
            let beginning = String::from_utf8_lossy(&beginning[..read]);
            assert!(beginning.starts_with("HTTP/1.1 200 "), "{beginning}");
            reader
        })
        .collect();
    let refused = fleet.gateway.page(&path);
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (503, true), "{}", refused.text());
    readers.pop();
    let got = fleet.gateway.folder().join("got");
    until(SOON, "a download has ended", || {
        fleet.cli(&["upload", "get", &id, "-o", got.to_str().unwrap()]).code == Some(0)
    });
    assert!(std::fs::read(&got).unwrap() == content);
    let grown = fleet.gateway.hwm() - before;
    assert!(grown < 16 << 20, "{grown} bytes for {READERS} readers of {} bytes", content.len());
}

/// An agent gets the artifacts that its policy lists, and no others.
#[test]
fn artifacts_are_for_agents_whose_policy_lists_them() {
    let Rig { mut fleet, agent, .. } = Rig::start(json!({}));
    let content = noise(300_000);
    let file = fleet.gateway.folder().join("trustlist");
    std::fs::write(&file, &content).unwrap();
    let id = "endpoint-trustlist-linux-v1";
    let put = fleet.cli(&["artifact", "put", file.to_str().unwrap(), "--id", id]).succeeded();
    let path = put.trim();
    assert_eq!(path, format!("/api/fleet/artifacts/{id}/{}", sha256(&content)));
    let again = fleet.cli(&["artifact", "put", file.to_str().unwrap(), "--id", id]);
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
    // By the hash of what it decodes to.
    let decoded = sha256(b"decoded");
    let put =
        fleet.cli(&["artifact", "put", file.to_str().unwrap(), "--decoded-sha256", &decoded]).succeeded();
    assert_eq!(put.trim(), format!("/api/fleet/artifacts/trustlist/{decoded}"));

    let answer = get(&agent, path, &[]);
    assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("Forbidden")));
    let missing = format!("/api/fleet/artifacts/{id}/{}", sha256(b"other"));
    let manifest = |path: &str| json!({"decoded_sha256": path.rsplit('/').next(), "relative_url": path});
    let input = json!({
        "type": "endpoint", "id": "defend", "use_output": "default",
        "artifact_manifest": {"artifacts": {"trust": manifest(path), "missing": manifest(&missing)}},
    });
    let policy = json!({"outputs": {"default": {"type": "elasticsearch"}}, "inputs": [input]});
    fleet.put_policy("web", &policy.to_string());
    fleet.restart_killed();
    let answer = get(&agent, path, &[]);
    assert!(answer.status == 200 && answer.body == content, "{}", answer.status);
    assert_eq!(get(&agent, &missing, &[]).status, 404);
    assert_eq!(get(&agent, put.trim(), &[]).status, 403);
    assert_eq!(get(&agent, "/api/fleet/artifacts/../x/y", &[]).status, 404);
    let unknown = Agent { key: "bm86Ym9keQ==".to_owned(), ..agent };
    assert_eq!(get(&unknown, path, &[]).status, 401);
    assert!(fleet.cli(&["artifact", "ls"]).succeeded().contains(id));
    fleet.cli(&["artifact", "rm", id, &sha256(&content)]).succeeded();
    assert_eq!(stored(&fleet), content.len() as u64);
}

/// An agent gets a file, or a part of it, while it has an action that names the file.
#[test]
fn files_are_for_agents_whose_action_names_them() {
    let Rig { fleet, agent, token, .. } = Rig::start(json!({}));
    let other = fleet.enroll(&token);
    let content = noise(200_000);
    let file = fleet.gateway.folder().join("script.sh");
    std::fs::write(&file, &content).unwrap();
    let id = fleet.cli(&["file", "put", file.to_str().unwrap()]).succeeded().trim().to_owned();
    let path = format!("/api/fleet/file/{id}");
    assert_eq!(get(&agent, &path, &[]).status, 403);
    let order = json!({"type": "INPUT_ACTION", "input_type": "endpoint", "agents": [agent.id], "data": {"command": "execute", "file_id": id}});
    let ordered = http::request(
        fleet.gateway.admin(),
        &["POST /fleet/actions HTTP/1.1", "Content-Type: application/json"],
        order.to_string().as_bytes(),
    );
    let action = ordered.unwrap().json()["id"].as_str().unwrap().to_owned();
    let answer = get(&agent, &path, &[]);
    assert!(answer.status == 200 && answer.body == content, "{}", answer.status);
    assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    for (range, bytes) in [
        ("bytes=0-9", 0..10),
        ("bytes=199990-", 199_990..200_000),
        ("bytes=-5", 199_995..200_000),
        ("bytes=70000-170000", 70_000..170_001),
    ] {
        let answer = get(&agent, &path, &[&format!("Range: {range}")]);
        assert_eq!(answer.status, 206, "{range}");
        let part = format!("bytes {}-{}/200000", bytes.start, bytes.end - 1);
        assert_eq!(answer.header("content-range"), Some(&*part), "{range}");
        assert!(answer.body == content[bytes], "{range}");
    }
    let answer = get(&agent, &path, &["Range: bytes=200000-"]);
    assert_eq!((answer.status, answer.header("content-range")), (416, Some("bytes */200000")));
    assert_eq!(answer.json()["error"], "RangeNotSatisfiable");
    assert_eq!(get(&agent, &path, &["Range: bytes=0-1,5-6"]).status, 200);
    assert_eq!(get(&other, &path, &[]).status, 403);
    assert_eq!(get(&agent, &format!("/api/fleet/file/{}", agent.id), &[]).status, 404);
    assert_eq!(agent.ack(&action).status, 200);
    assert_eq!(get(&agent, &path, &[]).status, 403);
    fleet.cli(&["file", "rm", &id]).succeeded();
    assert_eq!(get(&agent, &path, &[]).status, 404);
}

/// The key for verifying packages is the operator's file, by TLS alone.
#[test]
fn the_key_of_packages_is_given_out_by_tls() {
    let path = "/api/agents/upgrades/9.1.0/pgp-public-key";
    let plain = Fleet::start(json!({}));
    let answer = http::get(plain.agents, path).unwrap();
    assert_eq!((answer.status, &answer.json()["error"]), (501, &json!("NotImplemented")));

    let key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n";
    let start = |settings: Value| {
        Fleet::start_with(settings, |folder| {
            certificates::authority(folder, "ca");
            certificates::sign(folder, "ca", "server", "/CN=fleet");
            json!({"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")})
        })
    };
    let fetch = |fleet: &Fleet, path: &str| {
        let url = format!("https://{}{path}", fleet.agents);
        let authority = fleet.gateway.folder().join("ca.pem");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "-w", "%{http_code}", "--cacert"]).arg(authority).arg(&url);
        finish(&mut curl).succeeded()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.asc");
    std::fs::write(&file, key).unwrap();
    let with_key = start(json!({"pgp_key_file": file}));
    assert_eq!(fetch(&with_key, path), format!("{key}200"));
    assert!(fetch(&with_key, "/api/agents/upgrades/9.x/pgp-public-key").ends_with("400"));
    let without = start(json!({}));
    let said = fetch(&without, path);
    assert!(said.contains("`listen.fleet.pgp_key_file`") && said.ends_with("404"), "{said}");
}
