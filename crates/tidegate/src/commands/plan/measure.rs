//! Rate and size of what a running gateway receives.

use crate::Failure;
use crate::cli::PlanArgs;
use crate::commands::admin::Admin;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_config::{Bytes, Config};
use tidegate_sizing::{ItemKind, Load, Part, Rate, measured_bytes};

/// How long is measured.
const TIME: Duration = Duration::from_secs(5);

/// The counters of one answer.
struct Counters {
    uptime: f64,
    /// By source: items by kind, bytes, and requests.
    sources: BTreeMap<String, SourceCounters>,
    quota: Option<u64>,
    memory: Option<u64>,
}

#[derive(Default)]
struct SourceCounters {
    items: BTreeMap<ItemKind, u64>,
    bytes: u64,
    requests: u64,
}

/// The load of the gateway that the arguments name. Without a configuration, its quota and its budget count.
pub(super) fn load(args: &PlanArgs, config: &mut Config, delivery: &[Rate]) -> Result<Load, Failure> {
    let mut admin = Admin::named(&args.admin, &args.config)?;
    let before = counters(&mut admin)?;
    // Rates are counted between two answers, by the gateway's own clock.
    std::thread::sleep(TIME);
    let after = counters(&mut admin)?;
    if args.config.config.is_none() {
        config.memory = after.memory.map(bytes).or(config.memory);
        config.journal.quota = after.quota.map_or(config.journal.quota, bytes);
    }
    let parts = parts(&before, &after, delivery);
    if parts.is_empty() {
        return Err(Failure(format!(
            "--measure: the gateway at {} accepted nothing for {} s; measure while its load comes, or say the load with --rate",
            admin.address(),
            TIME.as_secs()
        )));
    }
    Ok(Load { parts })
}

fn bytes(count: u64) -> Bytes {
    Bytes::mib((count >> 20).max(1))
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
    let known = all.into_iter().filter(|(_, (items, _))| *items > 0.0 && seconds > 0.0);
    known
        .map(|(kind, (items, bytes))| Part::measured(kind, items / seconds, bytes / items, delivery))
        .collect()
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
    let sources = status.pointer("/books/sources").and_then(Value::as_array).into_iter().flatten();
    let sources = sources.map(|source| {
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
    Counters {
        uptime: status.get("uptime_seconds").and_then(Value::as_f64).unwrap_or(0.0),
        sources: sources.collect(),
        quota: status.pointer("/journal/quota").and_then(Value::as_u64),
        memory: status.pointer("/memory/limit").and_then(Value::as_u64),
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
            "journal": {"quota": 1 << 30},
            "memory": {"limit": 64 << 20},
            "books": {"sources": [
                {"name": "otlp", "accepted": (metrics + traces) / 100, "bytes": 30 * (metrics + traces),
                 "items": {"metrics": metrics, "traces": traces, "profiles": 7}},
                {"name": "syslog", "accepted": 9, "bytes": 1000, "items": {"logs": 10}},
            ]},
        })
    }

    #[test]
    fn rates_are_what_came_between_two_answers() {
        let (before, after) = (read(&status(10.0, 100, 1_000)), read(&status(15.0, 600, 2_000)));
        let parts = parts(&before, &after, &[]);
        let found: Vec<_> =
            parts.iter().map(|part| (part.kind, part.items_per_second, part.bytes_per_item)).collect();
        // A request for each hundred items, with 72 bytes of its own.
        assert_eq!(found, [(ItemKind::Points, 100.0, 30.72), (ItemKind::Spans, 200.0, 30.72)]);
        assert_eq!((after.quota, after.memory), (Some(1 << 30), Some(64 << 20)));
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        let same = read(&status(10.0, 100, 1_000));
        assert!(parts(&same, &same, &[]).is_empty());
        assert!(parts(&same, &read(&json!({"books": []})), &[]).is_empty());
    }
}
