//! A storm: what refusing costs, and that memory holds, when everybody sends more than is allowed.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::load_loop::{LoadLoop, run_blocking};
use tidegate_load::{LoadProfile, LoadReport, OnRefused, RunLimit, SeriesModel, Timeline, drive_blocking};

pub(super) const ROW: Row = Row {
    name: "storm",
    what: "refusing: processor time per request, requests that are admitted meanwhile, and resident memory",
    measure,
};

const ROUNDS: u32 = 5;
/// Connections of the flood, each with several requests in flight, as a proxy sends them.
const CONNECTIONS: usize = 64;
const DEPTH: usize = 8;
/// 200,000 refusals a second on one core.
const MOST_MICROSECONDS: f64 = 5.0;
const MEMORY_MIB: f64 = 64.0;
/// The quiet tenant's traffic, in requests per second with this many series in each.
const QUIET_RATE: f64 = 200.0;
const QUIET_SERIES: usize = 100;

/// A request of the tenant that may send nearly nothing. Its body is none, which nobody looks at.
fn refused_request(address: std::net::SocketAddr) -> Vec<u8> {
    let body = [0x55; 64];
    let mut request = format!(
        "POST /api/v1/write HTTP/1.1\r\nHost: {address}\r\nUser-Agent: tidegate-bench\r\nX-Scope-OrgID: loud\r\n\
         Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
         X-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(&body);
    request
}

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let folder = Folder::new(bench)?;
    let settings = "memory: 64MiB\nsinks: { out: { type: blackhole } }\n\
         tenants: { header: X-Scope-OrgID, default: quiet, overrides: { loud: { limits: { requests_per_second: 1 } } } }";
    let subject = Subject::start(&folder, settings)?;
    let timeline = Timeline { base_ms: 1_790_000_000_000, interval_ms: 15_000 };
    let model = Arc::new(SeriesModel::new(7, QUIET_SERIES, timeline));
    let time = bench.seconds / (2 * ROUNDS);
    let mut together = Vec::new();
    // Each time with others that wait for every answer, as most clients do: then the system's part is larger.
    let mut singly = Vec::new();
    for _ in 0..ROUNDS {
        for (depth, floods) in [(DEPTH, &mut together), (1, &mut singly)] {
            let request = refused_request(subject.address());
            let load = LoadLoop { request, connections: CONNECTIONS, depth, time };
            floods.push(flood(&subject, &model, &load)?);
        }
    }
    let peak = subject.memory("VmHWM")? / f64::from(1 << 20);
    let of = |floods: &[Flood], part: fn(&Flood) -> f64| median(floods.iter().map(part).collect());
    let total = |part: fn(&Flood) -> f64| together.iter().chain(&singly).map(part).sum();
    let details = vec![
        ("the same, each waiting for its answer", of(&singly, |flood| flood.cost)),
        ("refused", total(|flood| flood.refused)),
        ("refused a second", of(&together, |flood| flood.rate)),
        ("admitted meanwhile", total(|flood| flood.admitted)),
        ("99 % of these within ms", of(&together, |flood| flood.slowest)),
    ];
    let figure = |what: &str, bar, measured, details| Figure {
        name: ROW.name,
        what: what.to_owned(),
        bar,
        measured,
        details,
    };
    Ok(vec![
        figure(
            "CPU per refused request, µs",
            Bar::AtMost(MOST_MICROSECONDS),
            of(&together, |flood| flood.cost),
            details,
        ),
        figure("resident memory at most, MiB", Bar::AtMost(MEMORY_MIB), peak, Vec::new()),
    ])
}

/// The result of one flood.
struct Flood {
    /// Microseconds of processor time for each refused request.
    cost: f64,
    refused: f64,
    /// Of these, a second.
    rate: f64,
    /// The quiet tenant's requests, all of which were taken.
    admitted: f64,
    /// Milliseconds within which 99 % of them were answered.
    slowest: f64,
}

/// Floods the gateway beside the quiet tenant. What that costs without the flood is taken off.
fn flood(subject: &Subject, model: &Arc<SeriesModel>, load: &LoadLoop) -> Result<Flood, Failure> {
    let quiet_alone = costs_of(subject, || quiet(subject, model, load.time))?.0;
    let (both, (flood_report, report)) = costs_of(subject, || {
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| quiet(subject, model, load.time));
            let flood_report = run_blocking(subject.address(), load)?;
            let report =
                beside.join().map_err(|_panicked| Failure::from("the quiet tenant's thread failed"))??;
            Ok((flood_report, report))
        })
    })?;
    let refused = flood_report.answers.get(&429).copied().unwrap_or(0) as f64;
    if flood_report.broken > 0 || refused < 1000.0 {
        return Err(Failure(format!("the flood was not answered as it should be: {flood_report:?}")));
    }
    Ok(Flood {
        cost: (both - quiet_alone).max(0.0) * 1e6 / refused,
        refused,
        rate: refused / flood_report.elapsed.as_secs_f64(),
        admitted: report.accepted() as f64,
        slowest: report.latency.quantile(0.99).unwrap_or(0) as f64 / 1e6,
    })
}

/// The seconds of processor time that the gateway uses while `work` is done.
fn costs_of<T>(subject: &Subject, work: impl FnOnce() -> Result<T, Failure>) -> Result<(f64, T), Failure> {
    let before = subject.used()?;
    let done = work()?;
    Ok((subject.used()?.since(before).total().as_secs_f64(), done))
}

/// The quiet tenant's requests; every one of them must be taken.
fn quiet(subject: &Subject, model: &Arc<SeriesModel>, time: Duration) -> Result<LoadReport, Failure> {
    let profile = LoadProfile {
        connections: 4,
        series_per_request: QUIET_SERIES,
        rate: Some(QUIET_RATE),
        limit: RunLimit::Time(time),
        on_refused: OnRefused::Count,
        first: 1,
        prebuilt: Some(1),
        ..LoadProfile::default()
    };
    let report = drive_blocking(&subject.target(), model, &profile)?;
    if report.refused() > 0 || report.failed > 0 {
        return Err(Failure(format!("the flood was not kept from the quiet tenant:\n{report}")));
    }
    Ok(report)
}
