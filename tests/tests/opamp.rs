//! OpAMP as agents and operators meet it: opamp-go's client over both transports, requests and frames by hand, and the command line.
//! What an agent was answered is so after `kill -9`.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_tests::{Finished, Gateway, SOON, certificates, free_address, http, skip, tidegate, until};

const FIRST: &str = "018f4d3c-0000-7000-8000-000000000001";
const SECOND: &str = "018f4d3c-0000-7000-8000-000000000002";
const PROTOBUF: &str = "Content-Type: application/x-protobuf";

/// A gateway with OpAMP.
struct Opamp {
    gateway: Gateway,
    agents: SocketAddr,
}

/// An agent with opamp-go's client. It ends when this is dropped.
struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    events: Receiver<Value>,
}

impl Opamp {
    fn start(settings: Value) -> Opamp {
        Opamp::start_with(settings, |_| Value::Null)
    }

    /// The same, with the settings of TLS for its folder.
    fn start_with(settings: Value, tls: impl FnOnce(&Path) -> Value) -> Opamp {
        let agents = free_address();
        let mut opamp = json!({"address": agents});
        opamp.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let mut gateway = Gateway::new(json!({}));
        let listen = json!({
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "opamp": opamp,
            "tls": {"opamp": tls(gateway.folder())},
        });
        gateway.configure(json!({
            "memory": "128MiB", "sinks": {"nothing": {"type": "blackhole"}}, "listen": listen,
        }));
        gateway.start();
        Opamp { gateway, agents }
    }

    fn cli(&self, args: &[&str]) -> Finished {
        let admin = self.gateway.admin().to_string();
        tidegate(&[&["fleet"], args, &["--admin", &admin]].concat())
    }

    fn put(&self, name: &str, body: &str, more: &[&str]) -> Finished {
        let file = self.gateway.folder().join(format!("{name}.yaml"));
        std::fs::write(&file, body).unwrap();
        self.cli(&[&["config", "put", file.to_str().unwrap()], more].concat())
    }

    fn token(&self) -> String {
        self.cli(&["collector", "token", "create"]).succeeded().trim().to_owned()
    }

    fn config(&self, name: &str) -> Value {
        let listed = self.cli(&["config", "ls", "--json"]).succeeded();
        let all = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.into_iter().find(|config| config["name"] == name).unwrap()
    }

    fn collector(&self, id: &str) -> Value {
        serde_json::from_str(&self.cli(&["collector", "show", id]).succeeded()).unwrap()
    }

    fn metric(&self, name: &str) -> f64 {
        let text = http::get(self.gateway.admin(), "/metrics").unwrap().text();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Opens a WebSocket.
    fn websocket(&self, token: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.agents).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let request = format!(
            "GET /v1/opamp HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        stream
    }
}

impl Agent {
    fn start(program: &PathBuf, url: &str, uid: &str, token: &str, labels: &[&str]) -> Agent {
        let mut command = Command::new(program);
        command.args([url, uid, token]).args(labels);
        Agent::run(&mut command)
    }

    fn run(command: &mut Command) -> Agent {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sent, events) = sync_channel(10_000);
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sent.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Agent { stdin: child.stdin.take(), child, events }
    }

    /// Waits for an event of this kind; skips the others.
    fn wait_for(&self, kind: &str) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).unwrap_or_else(|_| panic!("no event `{kind}`"));
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// The events that have come.
    fn seen(&self) -> Vec<Value> {
        self.events.try_iter().collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ended = self.child.wait();
    }
}

/// The program with opamp-go's client.
fn opamp_client() -> Option<PathBuf> {
    let folder = std::env::var_os("TIDEGATE_TEST_SHIPPERS").filter(|value| !value.is_empty());
    if folder.is_none() {
        skip("TIDEGATE_TEST_SHIPPERS", "TIDEGATE_TEST_SHIPPERS is not set; `make test` sets it");
    }
    Some(PathBuf::from(folder?).join("opamp-client/opamp-client"))
}

fn bytes_field(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    let mut len = value.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(value);
    out
}

/// A message of an agent: its uid, its sequence number, capabilities, and what is given besides.
fn message(uid: u8, sequence: u8, more: &[u8]) -> Vec<u8> {
    [&bytes_field(1, &[uid; 16])[..], &[0x10, sequence, 0x20, 7], more].concat()
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        len @ 0..126 => out.push(0x80 | len as u8),
        len @ 126..65_536 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
    // A mask of zeros is a mask.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out
}

/// The first byte and the payload of the next short frame of the gateway.
fn read_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    let mut payload = vec![0; usize::from(head[1])];
    stream.read_exact(&mut payload).unwrap();
    (head[0], payload)
}

/// Agents over both transports get the configurations for their labels, say so, and have them after `kill -9`.
#[test]
fn agents_get_the_configurations_for_their_labels() {
    let Some(program) = opamp_client() else { return };
    let mut opamp = Opamp::start(json!({"own_telemetry": "http://127.0.0.1:4318"}));
    let token = opamp.token();
    opamp.put("all", "receivers: {all: {}}\n", &["--step", "100%"]).succeeded();
    let said =
        opamp.put("edge", "receivers: {edge: {}}\n", &["--match", "role=edge", "--step", "100%"]).succeeded();
    assert!(said.contains("configuration edge has revision 1, for 0 agents"), "{said}");
    let refused = opamp.put("all", "receivers: {all: [}\n", &[]);
    assert!(refused.code != Some(0), "no YAML is no configuration");

    let (ws, plain) =
        (format!("ws://{}/v1/opamp", opamp.agents), format!("http://{}/v1/opamp", opamp.agents));
    let one = Agent::start(&program, &ws, FIRST, &token, &["service.name=a", "role=edge"]);
    let two = Agent::start(&program, &plain, SECOND, &token, &["service.name=b"]);
    assert_eq!(one.wait_for("own_metrics")["url"], "http://127.0.0.1:4318/v1/metrics");
    assert_eq!(one.wait_for("config")["body"], "receivers: {edge: {}}\n");
    assert_eq!(two.wait_for("config")["body"], "receivers: {all: {}}\n");
    for id in [FIRST, SECOND] {
        until(SOON, "the agent to apply its configuration", || {
            opamp.collector(id)["config_status"] == "applied"
        });
    }
    until(SOON, "the roll-out to end", || opamp.config("edge")["rollout"] == "done");
    let shown = opamp.collector(FIRST);
    assert_eq!(
        (&shown["connected"], &shown["healthy"], &shown["config"]),
        (&json!(true), &json!(true), &json!("edge"))
    );
    until(SOON, "the effective configuration", || {
        opamp.collector(FIRST)["effective_config"][""] == "receivers: {edge: {}}\n"
    });
    // Both said all that they had to say in the beginning, and heartbeats with gaps there were none.
    assert_eq!(opamp.metric("tidegate_opamp_full_states_requested_total"), 0.0);

    opamp.gateway.kill9();
    opamp.gateway.start();
    until(SOON, "the agents to come back", || {
        opamp.collector(FIRST)["connected"] == true && !opamp.collector(SECOND)["seen_seconds_ago"].is_null()
    });
    for id in [FIRST, SECOND] {
        assert_eq!(opamp.collector(id)["config_status"], "applied", "{id}");
    }
    let seen = [one.seen(), two.seen()].concat();
    assert!(!seen.iter().any(|event| event["event"] == "config" || event["event"] == "renamed"), "{seen:?}");

    // A change goes to a connected agent at once; a restart as well.
    opamp
        .put("edge", "receivers: {edge: {new: 1}}\n", &["--match", "role=edge", "--step", "100%"])
        .succeeded();
    assert_eq!(one.wait_for("config")["body"], "receivers: {edge: {new: 1}}\n");
    opamp.cli(&["collector", "restart", FIRST]).succeeded();
    assert_eq!(one.wait_for("command")["type"], "CommandType_Restart");
    drop((one, two));
    until(SOON, "the agent to be gone", || opamp.collector(FIRST)["connected"] == false);
    assert_eq!(opamp.gateway.term(), 0);
}

/// By TLS both transports are as without; a client that does not trust the certificate gets nothing.
#[test]
fn agents_come_by_tls() {
    let Some(program) = opamp_client() else { return };
    let mut opamp = Opamp::start_with(json!({}), |folder| {
        certificates::authority(folder, "ca");
        certificates::sign(folder, "ca", "server", "/CN=opamp");
        json!({"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")})
    });
    let token = opamp.token();
    // Longer than a record of TLS.
    let body = format!("receivers: {{all: {{}}}}\n# {}\n", "x".repeat(40_000));
    opamp.put("all", &body, &["--step", "100%"]).succeeded();
    let authority = opamp.gateway.folder().join("ca.pem");
    let start = |scheme: &str, uid: &str, trusts: bool| {
        let mut command = Command::new(&program);
        command.args([&format!("{scheme}://{}/v1/opamp", opamp.agents), uid, &token, "service.name=a"]);
        if trusts {
            command.env("AUTHORITY", &authority);
        }
        Agent::run(&mut command)
    };
    for (scheme, uid) in [("wss", FIRST), ("https", SECOND)] {
        let stranger = start(scheme, uid, false);
        let refused = stranger.wait_for("refused");
        assert!(refused["error"].as_str().unwrap().contains("certificate"), "{refused}");
        drop(stranger);
        let agent = start(scheme, uid, true);
        assert_eq!(agent.wait_for("config")["body"], body, "{scheme}");
        until(SOON, "the agent to apply it", || opamp.collector(uid)["config_status"] == "applied");
    }
    assert_eq!(opamp.gateway.term(), 0);
}

/// A configuration that an agent cannot run stops its roll-out, and says why; that is so after `kill -9`.
#[test]
fn a_roll_out_stops_when_agents_fail() {
    let Some(program) = opamp_client() else { return };
    let mut opamp = Opamp::start(json!({"access": "open"}));
    let url = format!("ws://{}/v1/opamp", opamp.agents);
    let agent = Agent::start(&program, &url, FIRST, "", &["service.name=a"]);
    agent.wait_for("connected");
    opamp.put("all", "receivers: {broken: {}}\n", &["--step", "50%"]).succeeded();
    agent.wait_for("config");
    until(SOON, "the roll-out to stop", || opamp.config("all")["rollout"] == "stopped");
    opamp.gateway.kill9();
    opamp.gateway.start();
    let config = opamp.config("all");
    assert_eq!((&config["rollout"], &config["failed"]), (&json!("stopped"), &json!(1)));
    assert_eq!(opamp.collector(FIRST)["config_error"], "this one is broken");
    let table = opamp.cli(&["collector", "ls"]).succeeded();
    assert!(table.contains(FIRST) && table.contains("failed"), "{table}");
}

/// Secrets of an effective configuration are nowhere: not in answers to operators, not on disk.
#[test]
fn secrets_are_not_kept() {
    let Some(program) = opamp_client() else { return };
    let opamp = Opamp::start(json!({"access": "open"}));
    let agent =
        Agent::start(&program, &format!("ws://{}/v1/opamp", opamp.agents), FIRST, "", &["service.name=a"]);
    agent.wait_for("connected");
    until(SOON, "the effective configuration", || {
        let shown = opamp.collector(FIRST)["effective_config"][""].as_str().unwrap_or_default().to_owned();
        assert!(!shown.contains("not-for-others"), "{shown}");
        shown.contains("api_key: ********")
    });
    let state = std::fs::read(opamp.gateway.data().join("fleet/state.redb")).unwrap();
    assert!(!state.windows(14).any(|bytes| bytes == b"not-for-others"));
}

/// Without a token there is no upgrade and no message; what is too long, malformed or another kind has its status.
#[test]
fn bad_requests_are_answered() {
    let opamp = Opamp::start(json!({"max_message": "64KiB", "memory": "8MiB"}));
    let token = opamp.token();
    let auth = format!("Authorization: ApiKey {token}");
    let post = |auth: &str, more: &[&str], body: &[u8]| {
        http::request(opamp.agents, &[&["POST /v1/opamp HTTP/1.1", auth][..], more].concat(), body)
            .unwrap()
            .status
    };
    assert_eq!(post(&auth, &[PROTOBUF], &message(1, 0, &[])), 200);
    // As Java's client asks for HTTP/2; another protocol may be passed over.
    let h2c = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAA", PROTOBUF];
    assert_eq!(post(&auth, &h2c, &message(1, 1, &[])), 200);
    assert_eq!(post("X-None: 1", &[PROTOBUF], &message(1, 2, &[])), 401);
    assert_eq!(post("Authorization: Bearer d3Jvbmc6a2V5", &[PROTOBUF], &message(1, 1, &[])), 401);
    assert_eq!(post(&auth, &["Content-Type: text/plain"], &message(1, 1, &[])), 415);
    assert_eq!(post(&auth, &[PROTOBUF], b"\xff\xff"), 400);
    assert_eq!(post(&auth, &[PROTOBUF], &bytes_field(1, &[1; 3])), 400);
    assert_eq!(post(&auth, &[PROTOBUF], &vec![0; 65 << 10]), 413);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::default());
    bomb.write_all(&vec![0; 16 << 20]).unwrap();
    assert_eq!(post(&auth, &[PROTOBUF, "Content-Encoding: gzip"], &bomb.finish().unwrap()), 413);
    let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
    zipped.write_all(&message(1, 1, &[])).unwrap();
    assert_eq!(post(&auth, &[PROTOBUF, "Content-Encoding: gzip"], &zipped.finish().unwrap()), 200);

    let handshake =
        ["GET /v1/opamp HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"];
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let ask = |heads: &[&str]| http::request(opamp.agents, heads, b"").unwrap().status;
    assert_eq!(ask(&[&handshake[..], &[key]].concat()), 401);
    assert_eq!(ask(&[&handshake[..], &[&auth, "Sec-WebSocket-Key: short"]].concat()), 400);
    assert_eq!(ask(&[&handshake[..3], &[&auth, key, "Sec-WebSocket-Version: 8"]].concat()), 426);

    let tokens = opamp.cli(&["collector", "token", "ls", "--json"]).succeeded();
    let id = serde_json::from_str::<Value>(tokens.lines().next().unwrap()).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    opamp.cli(&["collector", "token", "revoke", &id]).succeeded();
    assert_eq!(post(&auth, &[PROTOBUF], &message(1, 2, &[])), 401);
}

/// Gaps, duplicates, and frames that must not be: each has its answer.
#[test]
fn a_connection_is_answered_by_the_protocol() {
    let mut opamp = Opamp::start(json!({"max_message": "64KiB", "memory": "8MiB"}));
    let token = opamp.token();
    let send = |stream: &mut TcpStream, message: &[u8]| {
        stream.write_all(&frame(0x82, &[&[0], message].concat())).unwrap();
        read_frame(stream)
    };
    let full_state = [0x30, 1];
    let has = |payload: &[u8], part: &[u8]| payload.windows(part.len()).any(|bytes| bytes == part);
    let description = bytes_field(3, &[]);

    let mut one = opamp.websocket(&token);
    let (opcode, answer) = send(&mut one, &message(7, 0, &description));
    assert_eq!((opcode, answer[0]), (0x82, 0));
    assert!(!has(&answer, &full_state), "{answer:?}");
    let (_, answer) = send(&mut one, &message(7, 1, &[]));
    assert_eq!(
        answer,
        [&[0][..], &bytes_field(1, &[7; 16])].concat(),
        "a heartbeat is answered with the uid alone"
    );
    assert!(has(&send(&mut one, &message(7, 3, &[])).1, &full_state));
    assert!(!has(&send(&mut one, &message(7, 4, &[])).1, &full_state));

    // Another agent with the same uid gets a new one.
    let mut other = opamp.websocket(&token);
    let (_, answer) = send(&mut other, &message(7, 0, &description));
    assert!(has(&answer, &[0x42, 18, 0x0a, 16]), "{answer:?}");
    assert!(!has(&send(&mut one, &message(7, 5, &[])).1, &full_state), "the first one is as it was");

    // Each is closed after some seconds, so that its client does not come back at once.
    let code = |bytes: &[u8]| {
        let mut stream = opamp.websocket(&token);
        stream.write_all(bytes).unwrap();
        let (opcode, payload) = read_frame(&mut stream);
        assert_eq!(opcode, 0x88, "{payload:?}");
        u16::from_be_bytes([payload[0], payload[1]])
    };
    thread::scope(|scope| {
        for (bytes, expected) in [
            (frame(0x81, b"text"), 1003),
            (vec![0x82, 1, 0], 1002),
            (frame(0x82, &vec![0; 65 << 10]), 1009),
            (frame(0x88, &1000_u16.to_be_bytes()), 1000),
        ] {
            scope.spawn(move || assert_eq!(code(&bytes), expected));
        }
    });
    let (opcode, answer) = send(&mut opamp.websocket(&token), &[]);
    assert_eq!((opcode, answer[0]), (0x82, 0), "an error says that a message is never empty: {answer:?}");
    let (opcode, answer) = send(&mut opamp.websocket(&token), b"\xff\xff");
    assert_eq!(
        (opcode, answer[1]),
        (0x82, 0x0a),
        "an error names the agent, which is nobody, and says what is wrong"
    );
    assert_eq!(opamp.gateway.term(), 0);
    let (opcode, payload) = read_frame(&mut one);
    assert_eq!((opcode, &payload[..]), (0x88, &1001_u16.to_be_bytes()[..]), "the gateway says that it goes");
}

/// Agents that never read are given up when their sockets are full; they take no memory, and the others are served.
#[test]
fn an_agent_that_never_reads_does_no_harm() {
    let opamp = Opamp::start(json!({"access": "open", "max_message": "64KiB", "memory": "8MiB"}));
    let body = |number: usize| format!("a{number}: {}\n", "x".repeat(100 << 10));
    opamp.put("all", &body(0), &["--step", "100%"]).succeeded();
    let mut deaf: Vec<TcpStream> = (0..50_u8)
        .map(|at| {
            let mut stream = opamp.websocket("");
            let label = bytes_field(3, &bytes_field(1, &bytes_field(1, b"k")));
            for sequence in 0..20 {
                stream
                    .write_all(&frame(0x82, &[&[0], &message(at + 1, sequence, &label)[..]].concat()))
                    .unwrap();
            }
            stream
        })
        .collect();
    let answer =
        http::request(opamp.agents, &["POST /v1/opamp HTTP/1.1", PROTOBUF], &message(99, 0, &[])).unwrap();
    assert_eq!(answer.status, 200);
    until(SOON, "all to be connected", || opamp.metric("tidegate_opamp_agents_connected") == 50.0);
    // Each revision goes to all of them, until no socket takes more.
    let mut number = 0;
    until(Duration::from_secs(120), "all to be given up", || {
        number += 1;
        opamp.put("all", &body(number), &["--step", "100%"]).succeeded();
        opamp.metric("tidegate_opamp_agents_connected") == 0.0
    });
    println!("given up after {number} revisions of 100 KiB");
    deaf.clear();
    assert!(opamp.gateway.hwm() < 128 << 20, "{} bytes", opamp.gateway.hwm());
}
