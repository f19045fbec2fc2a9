//! A fleet of agents: all of them come at once, wait, and get a policy.

use super::connections::settled;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject, free_address};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::{Duration, Instant};
use tidegate_load::{FleetAgents, FleetProgress, FleetSettings, check_ins};

pub(super) const ROW: Row = Row {
    name: "fleet",
    what: "agents that enrol within 5 s, wait, and get a policy of 200 KB; resident memory, and processor time for each",
    measure,
};

/// As many as the bars are for, where this process and the gateway may have as many files open.
pub(super) const MOST_AGENTS: u64 = 100_000;
const QUICK_AGENTS: u64 = 5_000;
/// Files beside connections.
const OTHER_FILES: u64 = 1_000;
const SPREAD: Duration = Duration::from_secs(5);
/// How long all may take to be in, and to get a policy.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
pub(super) const POLICY: &str = "bench";
const POLICY_BYTES: usize = 200_000;
/// Agents that come first: what is made once is made for them.
const FIRST: u64 = 2_000;
/// Agents that check in as fast as they are answered.
const BUSY: usize = 16;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let agents = agents(bench)?;
    let folder = Folder::new(bench)?;
    let address = free_address()?;
    let settings = format!(
        "memory: 256MiB\nlimits: {{ connections: {0}, connections_per_peer: {0} }}\nsinks: {{ out: {{ type: blackhole }} }}",
        agents + FIRST + OTHER_FILES / 2
    );
    let listen = format!("fleet: {{ address: {address}, memory: 32MiB, long_poll: 1h }}");
    let subject = Subject::start_listening(&folder, &listen, &settings)?;
    put_policy(&subject, 1)?;
    let order = format!("{{\"policy_id\":\"{POLICY}\"}}");
    let token = member(&operate(&subject, "POST", "/fleet/tokens", order.as_bytes())?, "token")?;
    let load = |agents: usize| FleetSettings {
        address,
        token: token.clone(),
        policy: POLICY.to_owned(),
        agents,
        spread: SPREAD,
    };

    let used = subject.used()?;
    let count = check_ins(&load(BUSY), bench.seconds / 2)?;
    let each = subject.used()?.since(used).total().as_secs_f64() * 1e6 / count as f64;
    let mut figures = vec![Figure {
        name: ROW.name,
        what: "processor time of a check-in that changes nothing, µs".to_owned(),
        bar: Bar::AtMost(15.0),
        measured: each,
        details: vec![("check-ins", count as f64)],
    }];

    let first = FleetAgents::start(load(FIRST as usize), 1)?;
    wait("the first agents are in", || first.progress().checked_in >= FIRST)?;
    let before = settled(&subject)?;
    let used = subject.used()?;
    let begun = Instant::now();
    let running = FleetAgents::start(load(usize::try_from(agents).unwrap_or(usize::MAX)), 2)?;
    wait("all agents are in", || running.progress().checked_in >= agents)?;
    let all_in = begun.elapsed();
    let progress = running.progress();
    let enrolling = subject.used()?.since(used).total().as_secs_f64() * 1e6 / agents as f64;
    figures.push(Figure {
        name: ROW.name,
        what: format!("{agents} agents enrol within 5 s: seconds until all have their policy and wait"),
        bar: Bar::AtMost(60.0),
        measured: all_in.as_secs_f64(),
        details: storm_details(progress, enrolling, subject.memory("VmHWM")?),
    });

    let parked = settled(&subject)?;
    let each = (parked - before) / agents as f64;
    let mib = f64::from(1 << 20);
    figures.push(Figure {
        name: ROW.name,
        what: "resident memory with 100,000 agents that wait, from what each of these takes, MiB".to_owned(),
        bar: Bar::AtMost(256.0),
        measured: (before + each * (MOST_AGENTS - FIRST) as f64) / mib,
        details: vec![
            ("agents", agents as f64),
            ("bytes each", each),
            ("MiB with 2,000", before / mib),
            ("MiB with all", parked / mib),
        ],
    });

    let used = subject.used()?;
    running.await_revision(2);
    put_policy(&subject, 2)?;
    wait("all agents have the policy", || running.arrivals().len() as u64 >= agents)?;
    let arrivals = running.arrivals();
    // They acknowledge it, and check in again.
    let _settled = settled(&subject)?;
    let each = subject.used()?.since(used).total().as_secs_f64() * 1e6 / (agents + FIRST) as f64;
    let at = |share: f64| {
        let place = ((arrivals.len() as f64 * share) as usize).min(arrivals.len().saturating_sub(1));
        arrivals.get(place).copied().unwrap_or_default().as_secs_f64()
    };
    figures.push(Figure {
        name: ROW.name,
        what: "a policy of 200 KB to all that wait: processor time for each with its acknowledgement, µs"
            .to_owned(),
        bar: Bar::AtMost(100.0),
        measured: each,
        details: vec![
            ("agents", agents as f64),
            ("s to half", at(0.5)),
            ("s to 99 %", at(0.99)),
            ("s to the last", at(1.0)),
            ("peak MiB", subject.memory("VmHWM")? / mib),
        ],
    });
    let end = running.progress();
    if end.forgotten > 0 {
        return Err(Failure(format!("{} agents were told that they are unknown", end.forgotten)));
    }
    drop((running, first));
    subject.stop()?;
    Ok(figures)
}

fn storm_details(progress: FleetProgress, enrolling: f64, peak: f64) -> Vec<(&'static str, f64)> {
    vec![
        ("µs each", enrolling),
        ("asked to wait", progress.refused as f64),
        ("lost connections", progress.lost as f64),
        ("peak MiB", peak / f64::from(1 << 20)),
    ]
}

/// As many agents as this process and the gateway may have connections.
pub(super) fn agents(bench: &Bench) -> Result<u64, Failure> {
    let wanted = if bench.seconds < Duration::from_secs(5) { QUICK_AGENTS } else { MOST_AGENTS };
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let wanted_files = (wanted + OTHER_FILES).min(most);
    if limit.current.is_some_and(|current| current < wanted_files) {
        let raised = Rlimit { current: Some(wanted_files), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised)
            .map_err(|error| format!("raising the limit on open files: {error}"))?;
    }
    Ok(wanted.min(wanted_files.saturating_sub(OTHER_FILES)).saturating_sub(FIRST))
}

pub(super) fn wait(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Failure> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return Err(Failure(format!("not within {PATIENCE:?}: {what}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Puts a policy of 200 KB.
pub(super) fn put_policy(subject: &Subject, revision: u64) -> Result<(), Failure> {
    let mut inputs = String::new();
    let mut number = 0_u64;
    while inputs.len() < POLICY_BYTES {
        number += 1;
        // Ids and paths differ from input to input, as in real ones.
        let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ revision;
        let separator = if inputs.is_empty() { "" } else { "," };
        inputs.push_str(&format!(
            "{separator}{{\"id\":\"logfile-system-{id:016x}\",\"type\":\"logfile\",\"use_output\":\"default\",\"revision\":{revision},\
             \"data_stream\":{{\"namespace\":\"default\",\"dataset\":\"service-{number}\"}},\"streams\":[{{\"id\":\"{:016x}\",\
             \"paths\":[\"/var/log/services/{number}/{id:08x}.log*\"],\"exclude_files\":[\".gz$\"],\
             \"processors\":[{{\"add_locale\":null}}]}}]}}",
            id.rotate_left(17)
        ));
    }
    let policy = format!(
        "{{\"outputs\":{{\"default\":{{\"type\":\"elasticsearch\",\"hosts\":[\"http://127.0.0.1:9200\"]}}}},\"inputs\":[{inputs}]}}"
    );
    let said = operate(subject, "PUT", &format!("/fleet/policies/{POLICY}"), policy.as_bytes())?;
    match said.contains(&format!("\"revision\":{revision}")) {
        true => Ok(()),
        false => Err(Failure(format!("the policy was not put: {said}"))),
    }
}

/// Asks the routes for operators.
pub(super) fn operate(subject: &Subject, method: &str, path: &str, body: &[u8]) -> Result<String, Failure> {
    let mut encoder = tidegate_wire::gzip::Encoder::new(6).map_err(|error| error.to_string())?;
    let mut compressed = vec![0; tidegate_wire::gzip::Encoder::max_len(body.len())];
    let (_, written) = encoder.step(body, &mut compressed);
    let (rest, _) = encoder.finish(compressed.get_mut(written..).unwrap_or_default());
    compressed.truncate(written + rest);
    let answer = subject.ask_admin(method, path, &["Content-Encoding: gzip"], &compressed)?;
    match answer.starts_with("HTTP/1.1 200 ") {
        true => Ok(answer),
        false => Err(Failure(format!("{method} {path}: {answer}"))),
    }
}

/// A text in an answer.
pub(super) fn member(answer: &str, name: &str) -> Result<String, Failure> {
    let start = format!("\"{name}\":\"");
    let text = answer.split_once(&start).and_then(|(_, rest)| rest.split('"').next());
    text.map(str::to_owned).ok_or_else(|| Failure(format!("there is no `{name}` in {answer}")))
}
