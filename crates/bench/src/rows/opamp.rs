//! Agents that speak OpAMP over WebSocket: what they cost while they send nothing but heartbeats.

use super::connections::settled;
use super::fleet::{MOST_AGENTS, agents, wait};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject, free_address};
use std::time::{Duration, Instant};
use tidegate_load::{OpampAgents, OpampSettings};

pub(super) const ROW: Row = Row {
    name: "opamp",
    what: "agents over WebSocket with heartbeats of 30 s: resident memory, and share of a core, for 100,000",
    measure,
};

/// Agents that come first: what is made once is made for them.
const FIRST: usize = 1_000;
const SPREAD: Duration = Duration::from_secs(5);
/// Between two heartbeats of an agent.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long heartbeats are measured at least: each agent sends some.
const SHORTEST: Duration = Duration::from_secs(10);

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let agents = agents(bench)?;
    let folder = Folder::new(bench)?;
    let address = free_address()?;
    let settings = format!(
        "memory: 256MiB\nlimits: {{ connections: {0}, connections_per_peer: {0} }}\nsinks: {{ out: {{ type: blackhole }} }}",
        agents + FIRST as u64 + 100
    );
    let listen = format!("opamp: {{ address: {address}, access: open }}");
    let subject = Subject::start_listening(&folder, &listen, &settings)?;
    // As often as 100,000 of them would send.
    let heartbeat = HEARTBEAT.mul_f64(agents as f64 / MOST_AGENTS as f64);
    let load = |agents: usize, heartbeat| OpampSettings { address, agents, spread: SPREAD, heartbeat };

    let first = OpampAgents::start(load(FIRST, HEARTBEAT), 1)?;
    wait("the first agents are connected", || first.progress().connected >= FIRST as u64)?;
    let before = settled(&subject)?;
    let running = OpampAgents::start(load(usize::try_from(agents).unwrap_or(usize::MAX), heartbeat), 2)?;
    wait("all agents are connected", || running.progress().connected >= agents)?;
    // Each has sent a heartbeat.
    wait("all agents have sent a heartbeat", || running.progress().heartbeats >= agents)?;

    let (used, begun, heartbeats) = (subject.used()?, Instant::now(), running.progress().heartbeats);
    std::thread::sleep(bench.seconds.max(SHORTEST));
    let heartbeats = running.progress().heartbeats - heartbeats;
    let (used, took) = (subject.used()?.since(used).total().as_secs_f64(), begun.elapsed().as_secs_f64());
    let after = subject.memory("VmRSS")?;
    let (each, mib) = ((after - before) / agents as f64, f64::from(1 << 20));
    let lost = running.progress().lost + first.progress().lost;
    let connections = vec![
        ("agents", agents as f64),
        ("bytes each", each),
        ("MiB with all", after / mib),
        ("peak MiB", subject.memory("VmHWM")? / mib),
        ("lost connections", lost as f64),
    ];
    drop((running, first));
    subject.stop()?;
    Ok(vec![
        Figure {
            name: ROW.name,
            what: "resident memory with 100,000 agents over WebSocket, from what each of these takes, MiB"
                .to_owned(),
            bar: Bar::AtMost(400.0),
            measured: (before + each * (MOST_AGENTS as f64 - FIRST as f64)) / mib,
            details: connections,
        },
        Figure {
            name: ROW.name,
            what: "share of a core for the heartbeats of 100,000 agents, 30 s apart".to_owned(),
            bar: Bar::AtMost(0.5),
            measured: used / took,
            details: vec![
                ("heartbeats a second", heartbeats as f64 / took),
                ("µs each", used * 1e6 / heartbeats.max(1) as f64),
            ],
        },
    ])
}
