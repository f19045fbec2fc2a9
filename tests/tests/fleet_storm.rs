//! Agents that come back all at once, hammer, do not read, or meet a clock that jumps: those who behave go on, nothing that was answered
//! is lost, and memory stays within the budget.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it fails, and says what it measures"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_load::{FleetAgents, FleetSettings, OpampAgents, OpampSettings};
use tidegate_tests::fleet::{AGENT, Agent, Fleet, POLICY, post};
use tidegate_tests::{Gateway, SOON, free_address, http, skip, until};

/// The memory of the gateways here.
const MEMORY: u64 = 128 << 20;
/// Agents that come at once.
const CROWD: usize = 3000;
/// What a crowd may take until all are in.
const PATIENCE: Duration = Duration::from_secs(90);

/// One storm at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Agents that wait for something to do.
fn waiting(fleet: &Fleet) -> u64 {
    http::get(fleet.gateway.admin(), "/fleet/status").unwrap().json()["waiting"].as_u64().unwrap()
}

/// A policy of 200 KiB that compresses badly.
fn large_policy() -> String {
    let mut seed = 1_u64;
    let noise = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:016x}", seed)
    });
    let comment: String = noise.take((200 << 10) / 16).collect();
    format!("{POLICY}comment: {comment}\n")
}

/// 3,000 agents enrol within a second; the gateway is killed while they do, and again when all are in. Each is in again, and none
/// that was told its key is unknown.
#[test]
fn agents_return_after_kills() {
    let _alone = alone();
    let mut fleet = Fleet::start(json!({"long_poll": "5m"}));
    fleet.put_policy("web", POLICY);
    let settings = FleetSettings {
        address: fleet.agents,
        token: fleet.token("web"),
        policy: "web".to_owned(),
        agents: CROWD,
        spread: Duration::from_secs(1),
    };
    let running = FleetAgents::start(settings, 1).unwrap();
    until(PATIENCE, "some to be enrolled", || running.progress().enrolled >= CROWD as u64 / 3);
    fleet.restart_killed();
    until(PATIENCE, "all to wait", || waiting(&fleet) >= CROWD as u64);
    fleet.restart_killed();
    let begun = Instant::now();
    until(PATIENCE, "all to wait again", || waiting(&fleet) >= CROWD as u64);
    let progress = running.progress();
    println!("{CROWD} agents were back after {:?}: {progress:?}", begun.elapsed());
    assert_eq!(progress.forgotten, 0, "{progress:?}");

    running.await_revision(2);
    fleet.put_policy("web", &POLICY.replace("syslog", "auth.log"));
    until(PATIENCE, "the policy to reach all", || running.arrivals().len() >= CROWD);
    assert!(fleet.gateway.hwm() < MEMORY, "{} bytes", fleet.gateway.hwm());
    drop(running);
    assert_eq!(fleet.gateway.term(), 0);
}

/// 3,000 collectors connect within a second, and again after the gateway was killed. None gets another uid, and all send heartbeats.
#[test]
fn collectors_return_after_a_kill() {
    let _alone = alone();
    let address = free_address();
    let mut gateway = Gateway::new(json!({}));
    let listen = json!({
        "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
        "opamp": {"address": address, "access": "open"},
    });
    gateway.configure(
        json!({"memory": "128MiB", "sinks": {"nothing": {"type": "blackhole"}}, "listen": listen}),
    );
    gateway.start();
    let settings = OpampSettings {
        address,
        agents: CROWD,
        spread: Duration::from_secs(1),
        heartbeat: Duration::from_secs(2),
    };
    let running = OpampAgents::start(settings, 1).unwrap();
    let connected = |gateway: &Gateway| gateway.metrics()["tidegate_opamp_agents_connected"] as usize;
    until(PATIENCE, "all to be connected", || connected(&gateway) == CROWD);
    gateway.kill9();
    gateway.start();
    let begun = Instant::now();
    until(PATIENCE, "all to be connected again", || connected(&gateway) == CROWD);
    println!("{CROWD} collectors were back after {:?}: {:?}", begun.elapsed(), running.progress());
    let heartbeats = running.progress().heartbeats;
    until(PATIENCE, "all to send a heartbeat", || running.progress().heartbeats >= heartbeats + CROWD as u64);
    assert_eq!(gateway.metrics()["tidegate_opamp_agents"] as usize, CROWD, "each is who it was");
    assert!(gateway.hwm() < MEMORY, "{} bytes", gateway.hwm());
    drop(running);
    assert_eq!(gateway.term(), 0);
}

/// Sends `count` check-ins of an agent with these keys over one connection, a hundred at a time; each must be answered 401.
fn hammer(agents: SocketAddr, id: &str, key: impl Fn(usize) -> String, count: usize) {
    const TOGETHER: usize = 100;
    let mut client = http::Client::connect(agents).unwrap();
    for begun in (0..count).step_by(TOGETHER) {
        let request = |at: usize| {
            let path = format!("POST /api/fleet/agents/{id}/checkin HTTP/1.1\r\nHost: a\r\n{AGENT}\r\n");
            format!("{path}Authorization: ApiKey {}\r\nContent-Length: 0\r\n\r\n", key(at))
        };
        client.send((begun..begun + TOGETHER).map(request).collect::<String>().as_bytes()).unwrap();
        for _ in 0..TOGETHER {
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, 401, "{}", answer.text());
        }
    }
}

/// The keys of an agent that is gone, and a million that nobody ever had, cost their senders more than the gateway: agents that wait
/// go on waiting, others are served, and memory stays as it was.
#[test]
fn wrong_keys_harm_nobody() {
    const REVOKED: usize = 100_000;
    const WRONG: usize = 1_000_000;
    const CLIENTS: usize = 4;
    let _alone = alone();
    let mut fleet = Fleet::start(json!({"long_poll": "5m"}));
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let gone = fleet.enroll(&token);
    fleet.cli(&["agent", "unenroll", &gone.id]).succeeded();
    let order = gone.check_in(json!({}));
    let unenroll = order["actions"].as_array().unwrap().iter().find(|action| action["type"] == "UNENROLL");
    gone.ack(unenroll.unwrap()["id"].as_str().unwrap());
    let agents: Vec<Agent> = (0..50).map(|_| fleet.enroll(&token)).collect();
    let has = json!({"agent_policy_id": "web", "policy_revision_idx": 1});

    thread::scope(|scope| {
        let waits: Vec<_> = agents.iter().map(|agent| scope.spawn(|| agent.check_in(has.clone()))).collect();
        until(SOON, "all to wait", || waiting(&fleet) == agents.len() as u64);
        let (before, hwm) = (fleet.gateway.process().cpu(), fleet.gateway.hwm());
        let storm: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (address, gone) = (fleet.agents, &gone);
                scope.spawn(move || {
                    hammer(address, &gone.id, |_| gone.key.clone(), REVOKED / CLIENTS);
                    let wrong = |at| STANDARD.encode(format!("{}:{client}-{at}", gone.id));
                    hammer(address, &gone.id, wrong, WRONG / CLIENTS);
                })
            })
            .collect();
        // Others enrol and are answered meanwhile.
        let mut served = 0;
        while !storm.iter().all(thread::ScopedJoinHandle::is_finished) {
            fleet.enroll(&token).check_in(json!({}));
            served += 1;
        }
        storm.into_iter().for_each(|client| client.join().unwrap());
        let each = (fleet.gateway.process().cpu() - before) / u32::try_from(REVOKED + WRONG).unwrap();
        println!("a refusal takes {each:?}; {served} agents enrolled and were answered meanwhile");
        assert!(served > 0);
        assert_eq!(waiting(&fleet), agents.len() as u64, "nobody was woken");
        let grown = fleet.gateway.hwm() - hwm;
        assert!(grown < 8 << 20, "the peak has grown by {grown} bytes");
        fleet.put_policy("web", &POLICY.replace("syslog", "auth.log"));
        for wait in waits {
            assert_eq!(wait.join().unwrap()["actions"][0]["id"], "policy:web:2");
        }
    });
    assert!(fleet.gateway.hwm() < MEMORY, "{} bytes", fleet.gateway.hwm());
    assert_eq!(fleet.gateway.term(), 0);
}

/// Agents that ask for a large policy and never read it are given up; the others get theirs meanwhile.
#[test]
fn agents_that_never_read_keep_nobody_waiting() {
    const DEAF: usize = 200;
    let _alone = alone();
    let mut fleet = Fleet::start(json!({"long_poll": "5m", "memory": "8MiB", "max_body": "1MiB"}));
    fleet.put_policy("web", &large_policy());
    let token = fleet.token("web");
    let deaf: Vec<TcpStream> = (0..DEAF)
        .map(|_| {
            let agent = fleet.enroll(&token);
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(4 << 10).unwrap();
            socket.connect(&fleet.agents.into()).unwrap();
            let mut stream = TcpStream::from(socket);
            let body = json!({"status": "online"}).to_string();
            write!(
                stream,
                "POST /api/fleet/agents/{}/checkin HTTP/1.1\r\nHost: a\r\n{AGENT}\r\nAuthorization: ApiKey {}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                agent.id,
                agent.key,
                body.len()
            )
            .unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    let agent = fleet.enroll(&token);
    until(PATIENCE, "an agent that reads to get its policy", || {
        let answer = agent.post("checkin", &json!({"status": "online"}));
        assert!(matches!(answer.status, 200 | 429 | 503), "{}", answer.text());
        answer.status == 200
    });
    println!("an agent that reads had its policy after {:?}", begun.elapsed());
    drop(deaf);
    assert!(fleet.gateway.hwm() < MEMORY, "{} bytes", fleet.gateway.hwm());
    assert_eq!(fleet.gateway.term(), 0);
}

/// The library that gives a program another clock.
fn other_clock() -> Option<PathBuf> {
    let places = std::fs::read_dir("/usr/lib").ok()?;
    let library = |place: std::fs::DirEntry| place.path().join("faketime/libfaketimeMT.so.1");
    let found = places.flatten().map(library).find(|library| library.exists());
    if found.is_none() {
        skip("faketime", "libfaketime is not installed; `make test` installs it");
    }
    found
}

/// The date on which the gateway says that an agent enrols now.
fn enrolled_on(fleet: &Fleet, token: &str) -> String {
    let body = json!({"type": "PERMANENT", "metadata": {"local": {}}});
    let answer = post(fleet.agents, "/api/fleet/agents/enroll", token, &body);
    answer.json()["item"]["enrolled_at"].as_str().unwrap()[..10].to_owned()
}

/// The machine's clock jumps a day ahead, then a week back: agents that wait go on waiting, get what comes for them, and are seen
/// neither in the future nor too long ago to be kept.
#[test]
fn a_clock_that_jumps_moves_nobody() {
    let _alone = alone();
    let Some(library) = other_clock() else { return };
    let agents = free_address();
    let mut gateway = Gateway::new(json!({}));
    let clock = gateway.folder().join("clock");
    let set = |offset: &str| {
        let aside = clock.with_extension("new");
        std::fs::write(&aside, offset).unwrap();
        std::fs::rename(aside, &clock).unwrap();
    };
    set("+0");
    let listen = json!({
        "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
        "fleet": {"address": agents, "long_poll": "5m"},
    });
    gateway.configure(
        json!({"memory": "128MiB", "sinks": {"nothing": {"type": "blackhole"}}, "listen": listen}),
    );
    gateway.set_variable("LD_PRELOAD", library.to_str().unwrap());
    gateway.set_variable("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap());
    gateway.set_variable("FAKETIME_CACHE_DURATION", "1");
    // The time since the start does not jump.
    gateway.set_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    gateway.start();
    let mut fleet = Fleet { gateway, agents };
    fleet.put_policy("web", POLICY);
    let token = fleet.token("web");
    let agent = fleet.enroll(&token);
    let today = enrolled_on(&fleet, &token);
    for (jump, revision) in [("+1d", 2), ("-7d", 3)] {
        let has = json!({"agent_policy_id": "web", "policy_revision_idx": revision - 1});
        thread::scope(|scope| {
            let waits = scope.spawn(|| agent.check_in(has));
            until(SOON, "the agent to wait", || waiting(&fleet) == 1);
            set(jump);
            until(SOON, "the clock of the gateway to jump", || match jump.starts_with('+') {
                true => enrolled_on(&fleet, &token) > today,
                false => enrolled_on(&fleet, &token) < today,
            });
            assert_eq!(waiting(&fleet), 1, "{jump}: a jump ends no wait");
            fleet.put_policy("web", &POLICY.replace("syslog", &format!("{revision}.log")));
            assert_eq!(waits.join().unwrap()["actions"][0]["id"], format!("policy:web:{revision}"));
        });
        let shown: Value =
            serde_json::from_str(&fleet.cli(&["agent", "show", &agent.id]).succeeded()).unwrap();
        assert_eq!(shown["status"], "online", "{jump}: {shown}");
    }
    fleet.restart_killed();
    let has = json!({"agent_policy_id": "web", "policy_revision_idx": 1});
    assert_eq!(agent.check_in(has)["actions"][0]["id"], "policy:web:3");
    assert_eq!(fleet.gateway.term(), 0);
}
