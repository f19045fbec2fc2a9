//! `shard_by` before real receivers: three Prometheus servers share the series, each of which is at two of them. One goes and comes
//! back, and the gateway is killed meanwhile: in the end each series is whole at exactly two.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use tidegate_tests::messages::{self, TimeSeries, WriteRequest};
use tidegate_tests::{Gateway, Prometheus, SOON, binary, finish, http, now_ms, until};

/// Series in each request: far more than fit into one piece of a Snappy block, so that requests are put together of several.
const SERIES: usize = 3000;
const REPLICAS: usize = 2;

struct Rig {
    gateway: Gateway,
    receivers: Vec<Prometheus>,
    start_ms: i64,
    /// Samples of each series so far.
    rounds: i64,
}

impl Rig {
    fn started() -> Rig {
        let receivers: Vec<_> = (0..3).map(|_| Prometheus::started("{}")).collect();
        let endpoints: Vec<_> = receivers.iter().map(Prometheus::write_url).collect();
        let gateway = Gateway::started(json!({
            "memory": "96MiB",
            "sinks": { "shards": {
                "type": "prometheus_remote_write", "endpoints": endpoints, "shard_by": "all", "replicas": REPLICAS,
                "backoff": { "max": "200ms" }, "handoff": { "after": "200ms" },
            } },
        }));
        Rig { gateway, receivers, start_ms: now_ms(), rounds: 0 }
    }

    /// Writes a sample of each series.
    fn write(&mut self) {
        let time = self.start_ms + self.rounds;
        let series = |number: usize| {
            let number = number.to_string();
            let labels = [
                ("__name__", "shared"),
                ("job", "own"),
                ("number", number.as_str()),
                ("zone", "europe-west-3"),
            ];
            TimeSeries::new(&labels, &[(time, self.rounds as f64)])
        };
        let request = WriteRequest { timeseries: (0..SERIES).map(series).collect(), metadata: Vec::new() };
        let head = [
            "POST /api/v1/write HTTP/1.1",
            "Content-Encoding: snappy",
            "Content-Type: application/x-protobuf",
        ];
        let answer = http::request(self.gateway.http(), &head, &messages::body(&request)).unwrap();
        assert!((200..300).contains(&answer.status), "{}: {}", answer.status, answer.text());
        self.rounds += 1;
    }

    fn members(&self) -> Vec<Value> {
        self.gateway.sink("shards")["members"].as_array().unwrap().clone()
    }

    /// Waits until nothing is queued, and no copy waits on disk.
    fn all_sent(&self) {
        self.gateway.at_rest(SOON);
        until(SOON, "the receivers to have what waited for them", || {
            self.members().iter().all(|member| member["handed_off_requests"] == 0 && member["in_flight"] == 0)
        });
        self.gateway.books_close();
    }

    /// Checks that each series is whole wherever it is, and at as many receivers as there are replicas.
    fn all_there(&self) {
        let mut copies = BTreeMap::<String, usize>::new();
        for receiver in &self.receivers {
            let samples = receiver.samples(("job", "own"), 0, now_ms() + 60_000);
            assert!(samples.len() > SERIES / 3, "one has {} series", samples.len());
            for (series, samples) in samples {
                let expected: Vec<_> =
                    (0..self.rounds).map(|round| (self.start_ms + round, (round as f64).to_bits())).collect();
                assert_eq!(samples, expected, "{series}");
                *copies.entry(series).or_default() += 1;
            }
        }
        assert_eq!(copies.len(), SERIES);
        assert!(copies.values().all(|copies| *copies == REPLICAS));
    }

    /// Checks that `tidegate ring explain` names the receivers that have a series.
    fn are_where_explained(&self) {
        for number in [0, 1, 1000] {
            let labels = format!(r#"shared{{job="own", number="{number}", zone="europe-west-3"}}"#);
            let said = finish(
                Command::new(binary())
                    .args(["ring", "explain", "--json", "--labels", &labels, "--config"])
                    .arg(self.gateway.config()),
            );
            let said: Value = serde_json::from_str(&said.stdout).expect(&said.stderr);
            let named: BTreeSet<_> = said["replicas"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["address"].as_str().unwrap())
                .collect();
            let number = number.to_string();
            let holders = self
                .receivers
                .iter()
                .filter(|receiver| !receiver.samples(("number", &number), 0, now_ms() + 60_000).is_empty());
            let urls: Vec<_> = holders.map(Prometheus::write_url).collect();
            assert_eq!(named, urls.iter().map(String::as_str).collect());
        }
    }
}

#[test]
fn three_prometheus_share_the_series() {
    let mut rig = Rig::started();
    for _ in 0..5 {
        rig.write();
    }
    rig.all_sent();
    rig.all_there();
    rig.are_where_explained();
    rig.receivers[0].term();
    for _ in 0..5 {
        rig.write();
    }
    until(SOON, "what the receiver is to get to be on disk", || {
        rig.members().iter().any(|member| member["handed_off_requests"].as_u64() > Some(0))
    });
    rig.gateway.kill9();
    rig.gateway.start();
    rig.write();
    rig.receivers[0].start();
    rig.all_sent();
    rig.all_there();
}
