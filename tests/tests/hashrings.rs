//! Hashrings as operators see them: on the command line, in the checks, and in the metrics that Thanos' alerts read.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};
use tidegate_tests::{Gateway, SOON, binary, finish, free_address, http, until};

const RINGS: &str = r#"[
    {"hashring": "teams", "tenants": ["team-*"], "tenant_matcher_type": "glob", "algorithm": "ketama",
     "endpoints": [{"address": "a-0:1", "az": "a"}, {"address": "a-1:1", "az": "a"}, {"address": "b-0:1", "az": "b"},
                   {"address": "b-1:1", "az": "b"}],
     "shuffle_sharding_config": {"shard_size": 2}},
    {"hashring": "all", "endpoints": ["c-0:1", "c-1:1", "c-2:1"]}
]"#;

/// The output of a command about a configuration with these hashrings.
fn told(arguments: &[&str], rings: &str, sink: &Value) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rings.json"), rings).unwrap();
    let mut sink = sink.clone();
    sink["type"] = json!("thanos_receive");
    sink["hashrings_file"] = json!("rings.json");
    let config = json!({ "sinks": { "ingestors": sink, "out": { "type": "blackhole" } } });
    fs::write(folder.path().join("tidegate.yaml"), config.to_string()).unwrap();
    let said = finish(Command::new(binary()).args(arguments).current_dir(folder.path()));
    (said.code, said.stdout + &said.stderr)
}

const EXPLAIN: [&str; 4] = ["ring", "explain", "--config", "tidegate.yaml"];

fn explained(arguments: &[&str], sink: &Value) -> Value {
    let (code, text) = told(&[&EXPLAIN, arguments, &["--json"]].concat(), RINGS, sink);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn ring_explain_says_where_a_series_is_and_why() {
    let sink = json!({ "replication_factor": 2, "split_tenant_label": "team" });
    let labels = r#"{job="x", __name__="up"}"#;
    let of_team = explained(&["--tenant", "team-a", "--labels", labels], &sink);
    assert_eq!(of_team["hashring"]["name"], "teams");
    assert_eq!(of_team["hashring"]["pattern"], "team-*");
    assert_eq!(of_team["shard"]["endpoints"].as_array().unwrap().len(), 2);
    let zones: Vec<_> =
        of_team["replicas"].as_array().unwrap().iter().map(|replica| &replica["zone"]).collect();
    assert!(zones.len() == 2 && zones[0] != zones[1], "{of_team}");
    assert_eq!(of_team["section"]["of"], 4000);
    assert_eq!(of_team["section"]["owner"], of_team["replicas"][0]);

    let split = explained(&["--labels", r#"up{job="x",team="team-a"}"#], &sink);
    assert_eq!((&split["tenant"], &split["tenant_from"]), (&json!("team-a"), &json!("label")));
    assert_eq!(split["replicas"], of_team["replicas"], "the label is not hashed");

    let of_others = explained(&["--labels", labels], &sink);
    assert_eq!(of_others["tenant"], "default-tenant");
    assert_eq!(
        (&of_others["hashring"]["matched"], &of_others["section"]),
        (&json!("everyone"), &Value::Null)
    );
    // By hashmod the second replica is the next of the sorted addresses.
    let hash = u64::from_str_radix(of_others["hash"].as_str().unwrap(), 16).unwrap();
    for (index, replica) in of_others["replicas"].as_array().unwrap().iter().enumerate() {
        assert_eq!(replica["address"], format!("c-{}:1", hash.wrapping_add(index as u64) % 3));
    }

    let (code, text) =
        told(&[&EXPLAIN[..], &["--tenant", "team-a", "--labels", labels]].concat(), RINGS, &sink);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("hashring 1 `teams`: its pattern team-* matches the tenant"), "{text}");
    for replica in of_team["replicas"].as_array().unwrap() {
        let (address, zone) = (replica["address"].as_str().unwrap(), replica["zone"].as_str().unwrap());
        assert!(text.contains(&format!("{address}, zone {zone}")), "{text}");
    }
    let (code, text) = told(&[&EXPLAIN[..], &["--labels", "{a=~\"b\"}"]].concat(), RINGS, &sink);
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = told(&[&EXPLAIN[..], &["--labels", "up", "--sink", "out"]].concat(), RINGS, &sink);
    assert!(code == Some(1) && text.contains("no sink `out` of the type"), "{text}");
}

/// That a gateway agrees is seen in `sharding.rs`.
#[test]
fn ring_explain_knows_shards() {
    let folder = tempfile::tempdir().unwrap();
    let endpoints: Vec<_> = (0..5).map(|number| format!("http://receiver-{number}.test/write")).collect();
    let sink = |shard_by: Value, more: Value| {
        let mut sink = json!({ "type": "prometheus_remote_write", "shard_by": shard_by, "replicas": 2 });
        sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "sinks": { "shards": sink } })
    };
    let said = |config: &Value, labels: &str| {
        fs::write(folder.path().join("tidegate.yaml"), config.to_string()).unwrap();
        let arguments = [&EXPLAIN[..], &["--labels", labels, "--json"]].concat();
        finish(Command::new(binary()).args(arguments).current_dir(folder.path()))
    };
    let explained = |config: &Value, labels: &str| -> Value {
        let said = said(config, labels);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap()
    };
    let by_job = sink(json!(["job"]), json!({ "endpoints": endpoints }));
    let first = explained(&by_job, r#"up{job="a", instance="1"}"#);
    assert_eq!((&first["key"], &first["tenant"]), (&json!({ "job": "a" }), &Value::Null));
    assert_eq!(first["replicas"].as_array().unwrap().len(), 2);
    assert_eq!(first["section"]["owner"], first["replicas"][0]);
    assert_eq!(explained(&by_job, r#"up{job="a", instance="2"}"#)["replicas"], first["replicas"]);
    let without = sink(json!({ "without": ["instance", "__name__"] }), json!({ "endpoints": endpoints }));
    assert_eq!(explained(&without, r#"up{job="a", instance="1"}"#)["hash"], first["hash"]);
    // Without any of the labels, a series is placed by all.
    let by_all = sink(json!("all"), json!({ "endpoints": endpoints }));
    assert_eq!(explained(&by_job, "up")["hash"], explained(&by_all, "up")["hash"]);
    let discovered =
        sink(json!("all"), json!({ "discovery": { "dns": ["dns+http://receivers.test/write"] } }));
    let refusal = said(&discovered, "up");
    assert!(refusal.code == Some(1) && refusal.stderr.contains("`discovery`"), "{}", refusal.stderr);
}

#[test]
fn check_warns_of_hashrings_that_mean_something_else() {
    let rings = r#"[{"hashring": "all", "endpoints": ["a:1"]}, {"hashring": "late", "endpoints": ["b:1"]}]"#;
    let (code, text) = told(&["check", "tidegate.yaml"], rings, &json!({}));
    assert_eq!(code, Some(0), "{text}");
    let warning = "hashring 2 `late` is never used, because hashring 1 `all` before it is for all tenants";
    assert!(text.contains(&format!("# sinks.ingestors: {warning}")), "{text}");
    let (_, text) = told(&[&EXPLAIN[..], &["--labels", "up"]].concat(), rings, &json!({}));
    assert!(text.contains(&format!("warning    {warning}")), "{text}");
    let (code, text) = told(&["check", "tidegate.yaml"], rings, &json!({ "replication_factor": 2 }));
    assert!(code == Some(1) && text.contains("fewer than the replication factor 2"), "{text}");
    let (code, text) = told(&["check", "tidegate.yaml"], "[", &json!({}));
    assert!(code == Some(1) && text.contains("sinks.ingestors: the hashring file"), "{text}");
}

#[test]
fn check_refuses_what_could_not_be_used() {
    let two = r#"[{"endpoints": ["a:1", "b:1"]}]"#;
    let credential = json!({ "headers": { "authorization": "Bearer hunter2" } });
    let trusted = json!({ "headers": { "authorization": "Bearer hunter2" }, "insecure": true });
    for (rings, sink, words) in [
        (two, json!({ "max_members": 1 }), "memory is planned for 1: raise `max_members`"),
        (r#"[{"endpoints": ["ingestor"]}]"#, json!({}), "`ingestor` is not the address of an ingestor"),
        (two, credential, "would send its header `authorization` unencrypted"),
    ] {
        let (code, text) = told(&["check", "tidegate.yaml"], rings, &sink);
        assert!(code == Some(1) && text.contains(words) && !text.contains("hunter2"), "{text}");
    }
    let (code, text) = told(&["check", "tidegate.yaml"], two, &trusted);
    assert_eq!(code, Some(0), "{text}");
}

struct Router {
    gateway: Gateway,
    address: SocketAddr,
}

/// A gateway in the place of a router, with these hashrings.
fn router(rings: &str) -> Router {
    let (mut gateway, address) = (Gateway::new(json!({})), free_address());
    fs::write(gateway.folder().join("rings.json"), rings).unwrap();
    gateway.configure(json!({
        "listen": {
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
            "thanos_receive": { "address": address, "thanos_metrics": true },
        },
        "memory": "64MiB",
        "sinks": { "ingestors": {
            "type": "thanos_receive", "hashrings_file": "rings.json", "replication_factor": 2, "linger": "10ms",
        }},
    }));
    gateway.start();
    Router { gateway, address }
}

impl Router {
    /// Sends 20 samples, which are accepted.
    fn send(&self) {
        let model = SeriesModel::new(1, 20, Timeline { base_ms: 1, interval_ms: 1 });
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        SampleBatch::of(&model, model.series(), 0, 1).encode(Version::V1, &mut raw);
        compress(&raw, &mut body);
        let head = [
            "POST /api/v1/receive HTTP/1.1",
            "Content-Type: application/x-protobuf",
            "Content-Encoding: snappy",
        ];
        assert_eq!(http::request(self.address, &head, &body).unwrap().status, 200);
    }

    /// The sum of the series with this name and these labels among others; none when there are no such series.
    fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let metrics = self.gateway.metrics();
        let found = metrics.iter().filter(|(series, _)| {
            let (of, rest) = series.split_once('{').unwrap_or((series, ""));
            of == name && labels.iter().all(|label| rest.contains(label))
        });
        found.map(|(_, value)| *value).reduce(|sum, value| sum + value)
    }
}

/// The series that the expressions in `mixin/alerts/receive.libsonnet` of Thanos 0.42 select, with the labels that they compare or sum
/// by. `ThanosReceiveNoUpload` is about object storage, which a router does not have.
const SELECTED_BY_ALERTS: [(&str, &[&str]); 12] = [
    ("http_requests_total", &["code=\"200\"", "handler=\"receive\""]),
    ("http_request_duration_seconds_bucket", &["handler=\"receive\"", "le="]),
    ("http_request_duration_seconds_count", &["handler=\"receive\""]),
    ("thanos_receive_replication_factor", &[]),
    ("thanos_receive_replications_total", &["result=\"error\""]),
    ("thanos_receive_hashring_nodes", &["name="]),
    ("thanos_receive_forward_requests_total", &["result=\"error\""]),
    ("thanos_receive_hashrings_file_errors_total", &[]),
    ("thanos_receive_hashrings_file_refreshes_total", &[]),
    ("thanos_receive_config_last_reload_successful", &[]),
    ("thanos_receive_limits_config_reload_err_total", &[]),
    ("thanos_receive_hashring_tenants", &["name="]),
];

#[test]
fn the_alerts_of_thanos_find_their_series() {
    let (gone, silent) = (free_address(), free_address());
    let rings = |name: &str| format!(r#"[{{"hashring":"{name}","endpoints":["{gone}","{silent}"]}}]"#);
    let router = router(&rings("all"));
    assert_eq!(http::get(router.address, "/-/ready").unwrap().status, 200);
    router.send();
    let failed = || router.metric("thanos_receive_forward_requests_total", &["result=\"error\""]);
    until(SOON, "both ingestors to fail", || failed().is_some_and(|failed| failed >= 2.0));
    for (name, labels) in SELECTED_BY_ALERTS {
        assert!(
            router.metric(name, labels).is_some(),
            "{name}{labels:?}\n{}",
            router.gateway.page("/metrics").text()
        );
    }
    let value = |name: &str, labels: &[&str]| router.metric(name, labels).unwrap() as u64;
    assert_eq!(value("thanos_receive_replication_factor", &[]), 2);
    assert_eq!(value("thanos_receive_hashring_nodes", &["name=\"all\""]), 2);
    assert_eq!(value("thanos_receive_forward_requests_total", &["result=\"success\""]), 0);
    assert_eq!(value("thanos_receive_config_last_reload_successful", &[]), 1);
    assert!(value("thanos_receive_config_last_reload_success_timestamp_seconds", &[]) > 1_600_000_000);
    assert!(value("thanos_receive_config_hash", &[]) > 0);
    assert!(value("thanos_receive_forward_delay_seconds_count", &["worker="]) >= 2);

    let file = router.gateway.folder().join("rings.json");
    fs::write(&file, "[{").unwrap();
    until(SOON, "the broken file to be seen", || {
        value("thanos_receive_config_last_reload_successful", &[]) == 0
    });
    assert!(value("thanos_receive_hashrings_file_errors_total", &[]) > 0);
    assert_eq!(http::get(router.address, "/-/ready").unwrap().status, 200, "the old hashrings are in use");
    fs::write(&file, rings("new")).unwrap();
    until(SOON, "the file to be used", || value("thanos_receive_config_last_reload_successful", &[]) == 1);
    assert_eq!(value("thanos_receive_hashrings_file_changes_total", &[]), 2);
    assert_eq!(value("thanos_receive_hashring_nodes", &["name=\"new\""]), 2);
}

/// The journal does not have it any more, so nobody would know of it.
#[test]
fn a_backlog_without_its_sink_is_named_at_the_start() {
    let gone = free_address();
    let mut router = router(&format!(r#"[{{"endpoints":["{gone}","{}"]}}]"#, free_address()));
    router.send();
    until(SOON, "both copies to wait on disk", || {
        let sink = router.gateway.sink("ingestors");
        let waits = |member: &Value| member["handed_off_requests"].as_u64() > Some(0);
        sink["members"].as_array().is_some_and(|members| members.len() == 2 && members.iter().all(waits))
    });
    router.gateway.term();
    router.gateway.configure(json!({ "sinks": { "renamed": { "type": "blackhole" } } }));
    router.gateway.start();
    let log = router.gateway.log();
    let line =
        log.lines().find(|line| line.contains("items wait on disk")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("handoff/ingestors") && line.contains("20"), "{line}");
}
