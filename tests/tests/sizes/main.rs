//! The size sweep: whatever a door accepts, every configured sink delivers.
//!
//! Each protocol and encoding, in several shapes, from a byte to beyond what is announced, is sent to gateways with one
//! sink of each kind, and with all of them, at several budgets. Every request is answered within seconds, with 2xx, or
//! with 413 or 400 where it is too large or breaks a rule; never with "later" while the gateway is idle. What was
//! accepted is delivered item by item, nothing hangs, and the books close.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it fails, and says what it measures"
)]

mod backlog;
mod reading;
mod receiver;
mod requests;
mod thanos;

use receiver::Receiver;
use requests::{Request, Shape, requests};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_tests::Gateway;
use tidegate_tests::http::{self, Answer};

/// How long an answer may take, on a busy machine.
const ANSWERED: Duration = Duration::from_secs(25);
/// How long sinks may take for what was accepted of one kind of request.
const DELIVERED: Duration = Duration::from_secs(90);
const KINDS: [&str; 7] =
    ["lake", "prometheus_remote_write", "otlp", "elasticsearch", "http", "splunk_hec", "loki"];
/// The README's.
const FIVE: &[&str] = KINDS.split_at(5).0;
const MIB: usize = 1 << 20;

/// Lengths of bodies when decompressed, in bytes.
const SIZES: [usize; 13] = [
    1, 1_000, 60_000, 250_000, 600_000, 1_200_000, 2_000_000, 3_300_000, 4_700_000, 7_000_000, 9_000_000,
    12_000_000, 20_000_000,
];

/// A pipeline before each sink.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Every item gets another attribute.
    Growth,
    /// About every second item is dropped.
    Halving,
    /// Every trace is kept, as soon as it is decided.
    Sampling,
}

impl Before {
    fn steps(self) -> Value {
        let long = "x".repeat(100);
        let grown = |context: &str| format!("set({context}.attributes[\"grown\"], \"{long}\")");
        match self {
            Before::Nothing | Before::Sampling => json!([]),
            Before::Growth => json!([
                {"edit": grown("log")}, {"edit": grown("span")}, {"edit": grown("datapoint")},
                {"edit": format!("set(resource.attributes[\"grown\"], \"{long}\")")},
                {"relabel": [{"target_label": "grown_too", "replacement": long}]},
            ]),
            Before::Halving => json!([
                {"drop": [
                    "IsMatch(log.attributes[\"number\"], \"[02468]$\")",
                    "IsMatch(datapoint.attributes[\"number\"], \"[02468]$\")",
                    "IsMatch(span.span_id.string, \"[02468ace]$\")",
                ]},
                {"relabel": [{"source_labels": ["instance"], "regex": "host-[0-9]*[02468]\\..*", "action": "drop"}]},
            ]),
        }
    }
}

impl Before {
    /// Every sink's pipeline did to items what it is to do.
    #[track_caller]
    fn is_felt(self, gateway: &Gateway, kinds: &[&str]) {
        for kind in kinds {
            let sink = gateway.sink(kind);
            let steps = sink["pipeline"].as_array().into_iter().flatten();
            let failed: Vec<_> = steps.filter(|step| step["failures"] != 0).collect();
            assert!(failed.is_empty(), "{kind}: statements found no room: {failed:?}");
            let filtered = sink["dropped"]["filtered"].as_u64() > Some(0);
            assert_eq!(filtered, self == Before::Halving, "{kind}: {}", sink["dropped"]);
        }
    }
}

/// A gateway with sinks of these kinds, all of which send to one receiver.
fn gateway(memory: &str, kinds: &[&str], before: Before, receiver: &Receiver) -> Gateway {
    gateway_with(memory, kinds, before, receiver, &json!({}))
}

/// The same with these sources.
fn gateway_with(
    memory: &str,
    kinds: &[&str],
    before: Before,
    receiver: &Receiver,
    sources: &Value,
) -> Gateway {
    let url = format!("http://{}", receiver.address());
    let of_kind = |kind: &str| match kind {
        "lake" => json!({"type": kind, "file_age": "1s"}),
        "prometheus_remote_write" => {
            json!({"type": kind, "url": format!("{url}/api/v1/write"), "protocol": "1.0"})
        }
        "otlp" => json!({"type": kind, "endpoints": [url], "protocol": "http", "compression": "zstd"}),
        "http" => json!({"type": kind, "endpoints": [format!("{url}/in")], "compression": "gzip"}),
        "derive" => json!({
            "type": kind, "interval": "1s", "max_series": 1000, "span_metrics": {},
            "count": {"logs": {"sizes.logs": {}}, "datapoints": {"sizes.points": {}}},
        }),
        "splunk_hec" => json!({"type": kind, "endpoints": [url], "token": "0-1"}),
        "thanos_receive" => {
            json!({"type": kind, "algorithm": "ketama", "hashrings": [{"endpoints": receiver.ingestors()}]})
        }
        _ => json!({"type": kind, "endpoints": [url]}),
    };
    let sink = |kind: &str| {
        let mut sink = of_kind(kind);
        match before {
            Before::Nothing => {}
            Before::Growth | Before::Halving => sink["pipeline"] = json!("before"),
            Before::Sampling => {
                let policies = json!([{"name": "all", "type": "always_sample"}]);
                sink["sample"] = json!({"tail": {"wait": "100ms", "max_traces": 5000, "max_decisions": 10_000, "policies": policies}});
            }
        }
        sink
    };
    let sinks: Map<String, Value> = kinds.iter().map(|kind| ((*kind).to_owned(), sink(kind))).collect();
    let pipelines = match before {
        Before::Growth | Before::Halving => json!({"before": {"steps": before.steps()}}),
        Before::Nothing | Before::Sampling => json!({}),
    };
    Gateway::started(json!({"memory": memory, "pipelines": pipelines, "sinks": sinks, "sources": sources}))
}

/// Sends a request to an idle gateway, and says whether it was accepted.
fn accepts(gateway: &Gateway, request: &Request) -> bool {
    accepts_at(gateway, gateway.http(), request)
}

/// The same at this address of its.
fn accepts_at(gateway: &Gateway, address: SocketAddr, request: &Request) -> bool {
    let begun = Instant::now();
    let answer = send(gateway, address, request);
    let name = request.name();
    assert!(begun.elapsed() < ANSWERED, "{name} was answered after {:?}", begun.elapsed());
    match answer.status {
        200 | 202 | 204 => true,
        413 | 400 => false,
        // Sinks may still have had the memory.
        429 | 503 => {
            gateway.at_rest(DELIVERED);
            let again = send(gateway, address, request);
            let status = again.status;
            assert!(
                matches!(status, 200..=204 | 400 | 413),
                "{name} to an idle gateway: {status} {}",
                again.text()
            );
            status < 300
        }
        status => panic!("{name}: {status} {}", answer.text()),
    }
}

fn send(gateway: &Gateway, address: SocketAddr, request: &Request) -> Answer {
    let head: Vec<&str> = request.head.iter().map(String::as_str).collect();
    http::request(address, &head, &request.body)
        .unwrap_or_else(|error| panic!("{} got no answer: {error}\n{}", request.name(), gateway.log()))
}

/// Every size of every kind of request. Returns, for each kind, the largest that was accepted.
fn sweep(memory: &str, kinds: &[&str], before: Before, most: usize) -> Vec<(Request, usize)> {
    let receiver = Receiver::start();
    let gateway = gateway(memory, kinds, before, &receiver);
    let mut accepted = Vec::new();
    for kind in requests() {
        let mut largest = 0;
        for size in SIZES.into_iter().filter(|size| *size <= most) {
            let request = kind.of(size);
            if accepts(&gateway, &request) {
                largest = size;
            }
        }
        gateway.at_rest(DELIVERED);
        nothing_is_lost(&gateway, kinds, &kind.name());
        accepted.push((kind, largest));
    }
    gateway.books_close();
    before.is_felt(&gateway, kinds);
    assert_eq!(receiver.unreadable(), 0, "requests that the receiver could not read");
    let budget = memory.trim_end_matches("MiB").parse::<u64>().unwrap() << 20;
    assert!(gateway.hwm() <= budget, "{} resident of {budget}", gateway.hwm());
    for (kind, largest) in &accepted {
        println!("{memory} {kinds:?} {}: up to {largest} bytes", kind.name());
        assert!(*largest >= 1_000, "{} of 1,000 bytes is refused", kind.name());
    }
    accepted
}

/// No sink has dropped anything but what its protocol has no form for, and what its pipeline is to drop.
#[track_caller]
fn nothing_is_lost(gateway: &Gateway, kinds: &[&str], request: &str) {
    for kind in kinds {
        let sink = gateway.sink(kind);
        let dropped = sink["dropped"].as_object().into_iter().flatten();
        let lost: Vec<_> =
            dropped.filter(|(reason, _)| !matches!(reason.as_str(), "untranslatable" | "filtered")).collect();
        assert!(lost.is_empty(), "after {request} the sink {kind} has dropped {lost:?}\n{}", gateway.log());
    }
}

/// One test for each budget and set of sinks: they run side by side.
macro_rules! sweeps {
    ($($(#[$doc:meta])* $name:ident: $memory:literal, $kinds:expr, $before:ident, $most:expr;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            sweep($memory, $kinds, Before::$before, $most);
        }
    )*};
}

sweeps! {
    /// The smallest budget, with the default lake.
    lake_at_32_mib: "32MiB", &KINDS[..1], Nothing, 4 * MIB;
    remote_write_at_32_mib: "32MiB", &KINDS[1..2], Nothing, 4 * MIB;
    otlp_at_64_mib: "64MiB", &KINDS[2..3], Nothing, 24 * MIB;
    elasticsearch_at_64_mib: "64MiB", &KINDS[3..4], Nothing, 24 * MIB;
    http_at_64_mib: "64MiB", &KINDS[4..5], Nothing, 24 * MIB;
    splunk_hec_at_64_mib: "64MiB", &KINDS[5..6], Nothing, 24 * MIB;
    loki_at_64_mib: "64MiB", &KINDS[6..], Nothing, 24 * MIB;
    thanos_receive_at_40_mib: "40MiB", &["thanos_receive"], Nothing, 6 * MIB;
    thanos_receive_at_64_mib: "64MiB", &["thanos_receive"], Nothing, 24 * MIB;
    all_at_256_mib: "256MiB", &KINDS, Nothing, 24 * MIB;
    /// The same behind pipelines, at budgets close to the least with which these gateways start, and at others.
    lake_behind_growth_at_64_mib: "64MiB", &KINDS[..1], Growth, 24 * MIB;
    remote_write_behind_growth_at_40_mib: "40MiB", &KINDS[1..2], Growth, 6 * MIB;
    remote_write_behind_halving_at_64_mib: "64MiB", &KINDS[1..2], Halving, 24 * MIB;
    otlp_behind_growth_at_40_mib: "40MiB", &KINDS[2..3], Growth, 6 * MIB;
    elasticsearch_behind_growth_at_40_mib: "40MiB", &KINDS[3..4], Growth, 6 * MIB;
    http_behind_halving_at_64_mib: "64MiB", &KINDS[4..5], Halving, 24 * MIB;
    loki_behind_growth_at_40_mib: "40MiB", &KINDS[6..], Growth, 6 * MIB;
    thanos_receive_behind_growth_at_64_mib: "64MiB", &["thanos_receive"], Growth, 6 * MIB;
    otlp_with_sampling_at_40_mib: "40MiB", &KINDS[2..3], Sampling, 6 * MIB;
    otlp_with_sampling_at_64_mib: "64MiB", &KINDS[2..3], Sampling, 24 * MIB;
    lake_with_sampling_at_64_mib: "64MiB", &KINDS[..1], Sampling, 24 * MIB;
    elasticsearch_with_sampling_at_64_mib: "64MiB", &KINDS[3..4], Sampling, 24 * MIB;
    http_with_sampling_at_64_mib: "64MiB", &KINDS[4..5], Sampling, 24 * MIB;
    /// Derived metrics are delivered with the rest.
    otlp_with_derived_metrics_at_40_mib: "40MiB", &["derive", "otlp"], Nothing, 6 * MIB;
    otlp_with_derived_metrics_at_64_mib: "64MiB", &["derive", "otlp"], Nothing, 24 * MIB;
    lake_with_derived_metrics_at_64_mib: "64MiB", &["derive", "lake"], Growth, 24 * MIB;
    all_behind_growth_at_96_mib: "96MiB", FIVE, Growth, 6 * MIB;
    all_behind_halving_at_128_mib: "128MiB", FIVE, Halving, 24 * MIB;
}

/// The README's five sinks at 64 MiB; what vmagent sends by default is taken.
#[test]
fn all_at_64_mib() {
    let accepted = sweep("64MiB", FIVE, Before::Nothing, 24 * MIB);
    let block = accepted.iter().find(|(kind, _)| kind.is_remote_write_1() && kind.shape == Shape::Many);
    assert!(block.unwrap().1 >= 8_000_000, "a block of 8 MB is refused");
}
