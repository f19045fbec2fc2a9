//! Rate and size of what a running gateway receives, and what its status says of the gateway itself.

use crate::Failure;
use crate::cli::PlanArgs;
use crate::commands::admin::Admin;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_sizing::{ItemKind, Load, Memory, Part, Rate, Setup, intake_bytes, measured_bytes};

/// How long is measured.
const TIME: Duration = Duration::from_secs(5);
/// Where bytes are from, by the growth of the journal and by that of bodies.
const OF_JOURNAL: &str = "measured by the growth of the running gateway's journal";
const OF_BODIES: &str = "bodies as received by the running gateway; what it recodes (OTLP/JSON, Loki JSON, syslog, log files and other \
                         translated sources) takes more, and only a sink that stands still shows how much";

/// What was measured at a running gateway.
pub(super) struct Measured {
    pub(super) load: Load,
    /// The later answer.
    gateway: Gateway,
}

/// The counters of one answer.
struct Counters {
    uptime: f64,
    /// By source: items by kind, bytes, and requests.
    sources: BTreeMap<String, SourceCounters>,
    /// By sink: the number of the first record that it has not completed, and the bytes from there to the journal's end.
    sinks: BTreeMap<String, (u64, u64)>,
    gateway: Gateway,
}

#[derive(Default)]
struct SourceCounters {
    items: BTreeMap<ItemKind, u64>,
    bytes: u64,
    requests: u64,
}

/// What a status says of the gateway that answers.
#[derive(Debug, Default)]
struct Gateway {
    quota: Option<u64>,
    durability: String,
    journal: String,
    memory: Option<u64>,
    connections: u64,
    /// The most bytes of bodies in memory.
    intake: u64,
    sinks: u64,
}

/// Measures at the gateway that the arguments name.
pub(super) fn measure(args: &PlanArgs, delivery: &[Rate]) -> Result<Measured, Failure> {
    let mut admin = Admin::named(&args.admin, &args.config)?;
    let before = counters(&mut admin)?;
    // Rates are counted between two answers, by the gateway's own clock.
    std::thread::sleep(TIME);
    let after = counters(&mut admin)?;
    let parts = parts(&before, &after, delivery);
    if parts.is_empty() {
        return Err(Failure(format!(
            "--measure: the gateway at {} accepted nothing for {} s; measure while its load comes, or say the load with --rate",
            admin.address(),
            TIME.as_secs()
        )));
    }
    Ok(Measured { load: Load { parts }, gateway: after.gateway })
}

impl Measured {
    /// What is known of the gateway without its configuration: nothing of the one that this program would have by default.
    ///
    /// # Errors
    /// When the status lacks what everything else follows from.
    pub(super) fn setup(&self, connections: Option<u32>) -> Result<Setup, Failure> {
        let gateway = &self.gateway;
        let (Some(quota), Some(budget)) = (gateway.quota, gateway.memory) else {
            return Err(Failure::from(
                "--measure: the gateway's status lacks the journal's quota or the memory's limit: name its configuration with --config",
            ));
        };
        let need = intake_bytes(&self.load);
        let problem = (need > gateway.intake).then(|| {
            let (need, most) = (tidegate_arena::Bytes(need), tidegate_arena::Bytes(gateway.intake));
            format!("{need} of bodies are in memory at this rate, of at most {most}")
        });
        Ok(Setup {
            is_configured: false,
            quota,
            segment: Config::default().journal.segment.get(),
            data: gateway.journal.clone(),
            free_disk: None,
            losses: None,
            in_memory_only: gateway.durability == "memory",
            sinks: gateway.sinks,
            memory: Memory {
                budget,
                problem,
                smallest: None,
                connections: connections.map_or(gateway.connections, u64::from),
                intake: gateway.intake,
                largest_bodies: Vec::new(),
            },
        })
    }
}

/// What came between two answers.
fn parts(before: &Counters, after: &Counters, delivery: &[Rate]) -> Vec<Part> {
    let seconds = after.uptime - before.uptime;
    // Items and bytes by kind; a source's bytes are shared by its kinds as their items are.
    let mut all: BTreeMap<ItemKind, (f64, f64)> = BTreeMap::new();
    let none = SourceCounters::default();
    for (name, source) in &after.sources {
        let earlier = before.sources.get(name).unwrap_or(&none);
        let more =
            |kind: &ItemKind, items: u64| items.saturating_sub(earlier.items.get(kind).copied().unwrap_or(0));
        let items: f64 = source.items.iter().map(|(kind, items)| more(kind, *items) as f64).sum();
        if items == 0.0 {
            continue;
        }
        let (bytes, requests) =
            (source.bytes.saturating_sub(earlier.bytes), source.requests.saturating_sub(earlier.requests));
        let each = measured_bytes(bytes as f64, items, requests as f64);
        for (kind, count) in &source.items {
            let count = more(kind, *count) as f64;
            let entry = all.entry(*kind).or_default();
            *entry = (entry.0 + count, entry.1 + count * each);
        }
    }
    let bodies: f64 = all.values().map(|(_, bytes)| bytes).sum();
    let (factor, basis) = match growth(before, after) {
        Some(growth) if bodies > 0.0 => (growth as f64 / bodies, OF_JOURNAL),
        _ => (1.0, OF_BODIES),
    };
    let known = all.into_iter().filter(|(_, (items, _))| *items > 0.0 && seconds > 0.0);
    known
        .map(|(kind, (items, bytes))| {
            Part::measured(kind, items / seconds, factor * bytes / items, basis, delivery)
        })
        .collect()
}

/// The bytes that the journal grew by, where a sink stood still meanwhile: everything that came is behind it.
fn growth(before: &Counters, after: &Counters) -> Option<u64> {
    after.sinks.iter().find_map(|(name, (cursor, lag))| {
        let (_, earlier) = before.sinks.get(name).filter(|(earlier, _)| earlier == cursor)?;
        lag.checked_sub(*earlier).filter(|growth| *growth > 0)
    })
}

fn counters(admin: &mut Admin) -> Result<Counters, Failure> {
    let address = admin.address();
    let (status, body) = admin.ask("GET", "/status.json", Duration::ZERO).map_err(|error| {
        Failure(format!(
            "asking the gateway at {address} for its load: {error}; is it running, and is that its `listen.admin`? Name \
             another with --admin, or the configuration with --config"
        ))
    })?;
    match status {
        200 => {}
        401 => {
            return Err(Failure(format!(
                "{}: name the file with a token in --admin-token-file",
                body.trim_end()
            )));
        }
        _ => return Err(Failure(format!("the gateway at {address} answers {status} instead of its status"))),
    }
    let status: Value = serde_json::from_str(&body)
        .map_err(|error| Failure(format!("the answer of {address} is not a status: {error}")))?;
    Ok(read(&status))
}

fn read(status: &Value) -> Counters {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let list = |pointer| status.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let sources = list("/books/sources").map(|source| {
        let field = |name: &str| source.get(name).unwrap_or(&Value::Null);
        let name = field("name").as_str().unwrap_or_default();
        let mut counters = SourceCounters {
            bytes: number(field("bytes")),
            requests: number(field("accepted")),
            ..SourceCounters::default()
        };
        for (signal, items) in field("items").as_object().into_iter().flatten() {
            if let Some(kind) = kind(name, signal) {
                *counters.items.entry(kind).or_default() += number(items);
            }
        }
        (name.to_owned(), counters)
    });
    let sinks = list("/sinks").filter_map(|sink| {
        let number = |pointer| sink.pointer(pointer).and_then(Value::as_u64);
        let name = sink.get("name")?.as_str()?.to_owned();
        Some((name, (number("/cursor")?, number("/lag/bytes")?)))
    });
    Counters {
        uptime: status.get("uptime_seconds").and_then(Value::as_f64).unwrap_or(0.0),
        sources: sources.collect(),
        sinks: sinks.collect(),
        gateway: gateway(status),
    }
}

fn gateway(status: &Value) -> Gateway {
    let number = |pointer| status.pointer(pointer).and_then(Value::as_u64);
    let text = |pointer| status.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |pointer| status.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let ingest = list("/memory/payload/shares").iter().find(|share| share["name"] == "ingest");
    Gateway {
        quota: number("/journal/quota"),
        durability: text("/journal/durability"),
        journal: text("/journal/dir"),
        memory: number("/memory/limit"),
        connections: number("/memory/connections_limit").unwrap_or(0),
        intake: ingest.and_then(|share| share.get("at_most")?.as_u64()).unwrap_or(0),
        sinks: list("/sinks").len() as u64,
    }
}

/// The kind of a source's items of a signal. Profiles are none of those whose costs are known.
fn kind(source: &str, signal: &str) -> Option<ItemKind> {
    Some(match (source, signal) {
        ("otlp", "metrics") => ItemKind::Points,
        (_, "metrics") => ItemKind::Samples,
        (_, "traces") => ItemKind::Spans,
        (_, "logs") => ItemKind::Logs,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    //! Promise: what is measured is what came between two answers.

    use super::*;
    use serde_json::json;

    fn status(uptime: f64, metrics: u64, traces: u64) -> Value {
        json!({
            "uptime_seconds": uptime,
            "journal": {"quota": 1 << 30, "dir": "/d/journal", "durability": "fsync"},
            "memory": {"limit": 64 << 20, "connections_limit": 41,
                       "payload": {"shares": [{"name": "egress", "at_most": 1}, {"name": "ingest", "at_most": 9 << 20}]}},
            "books": {"sources": [
                {"name": "otlp", "accepted": (metrics + traces) / 100, "bytes": 30 * (metrics + traces),
                 "items": {"metrics": metrics, "traces": traces, "profiles": 7}},
                {"name": "syslog", "accepted": 9, "bytes": 1000, "items": {"logs": 10}},
            ]},
            "sinks": [{"name": "moves", "cursor": metrics, "lag": {"bytes": 0}},
                      {"name": "stands", "cursor": 7, "lag": {"bytes": 1_000 + 50 * (metrics + traces)}}],
        })
    }

    /// The same without the sink that stands still.
    fn moving(mut status: Value) -> Counters {
        status["sinks"].as_array_mut().unwrap().truncate(1);
        read(&status)
    }

    fn found(before: &Counters, after: &Counters) -> Vec<(ItemKind, f64, f64)> {
        let parts = parts(before, after, &[]);
        parts.iter().map(|part| (part.kind, part.items_per_second, part.bytes_per_item)).collect()
    }

    #[test]
    fn rates_are_what_came_between_two_answers() {
        let (before, after) = (moving(status(10.0, 100, 1_000)), moving(status(15.0, 600, 2_000)));
        // A request for each hundred items, with 72 bytes of its own.
        let expected = [(ItemKind::Points, 100.0, 30.72), (ItemKind::Spans, 200.0, 30.72)];
        assert_eq!(found(&before, &after), expected);
        assert!(parts(&before, &after, &[])[0].basis.contains("bodies as received"));
    }

    /// Bodies that are recoded take another size in the journal than on the way.
    #[test]
    fn a_sink_that_stands_still_shows_the_growth_of_the_journal() {
        let (before, after) = (read(&status(10.0, 100, 1_000)), read(&status(15.0, 600, 2_000)));
        assert_eq!(growth(&before, &after), Some(75_000));
        for (_, _, bytes) in found(&before, &after) {
            assert!((bytes - 50.0).abs() < 1e-9, "{bytes}");
        }
        assert_eq!(parts(&before, &after, &[])[0].basis, OF_JOURNAL);
    }

    /// Nothing of a gateway elsewhere is taken from the defaults of this program.
    #[test]
    fn without_a_configuration_only_the_status_counts() {
        let measured =
            |status: Value| Measured { load: Load { parts: Vec::new() }, gateway: read(&status).gateway };
        let setup = measured(status(10.0, 1, 1)).setup(None).unwrap();
        assert!(!setup.is_configured && !setup.in_memory_only);
        assert_eq!((setup.losses, setup.free_disk), (None, None));
        assert_eq!((setup.quota, setup.memory.budget, setup.sinks), (1 << 30, 64 << 20, 2));
        assert_eq!((setup.memory.intake, setup.memory.connections), (9 << 20, 41));
        assert_eq!(setup.data, "/d/journal");
        let mut other = status(10.0, 1, 1);
        other["journal"]["durability"] = "memory".into();
        assert!(measured(other).setup(None).unwrap().in_memory_only);
        assert!(measured(json!({})).setup(None).is_err());
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        let same = read(&status(10.0, 100, 1_000));
        assert!(parts(&same, &same, &[]).is_empty());
        assert!(parts(&same, &read(&json!({"books": []})), &[]).is_empty());
    }
}
