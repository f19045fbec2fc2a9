//! Real programs on both sides: Prometheus scrapes node_exporter, a target of the test's own and tidegate
//! itself, and writes to tidegate, which writes to a second Prometheus and to the lake. Whatever is restarted
//! or killed meanwhile, the second Prometheus and the lake have what the first has: sample by sample, stale
//! markers and other NaNs included.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use rustix::process::Signal;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;
use tidegate_tests::{
    Gateway, Program, Prometheus, SOON, Samples, ScrapeTarget, free_address, http, now_ms, until,
};

const STALE: u64 = 0x7ff0_0000_0000_0002;
const JOBS: [&str; 3] = ["node", "own", "tidegate"];

fn node_exporter(folder: &std::path::Path) -> (Program, SocketAddr) {
    let address = free_address();
    let mut command = Command::new("prometheus-node-exporter");
    command.arg(format!("--web.listen-address={address}"));
    let program = Program::start("node-exporter", command, folder);
    until(SOON, "node_exporter to answer", || http::get(address, "/").is_ok());
    (program, address)
}

/// Everything, from the target to the last Prometheus.
struct Chain {
    upstream: Prometheus,
    gateway: Gateway,
    downstream: Prometheus,
    own: ScrapeTarget,
    _node: Program,
    from_ms: i64,
}

impl Chain {
    fn start(downstream: &str) -> Chain {
        let downstream = Prometheus::started(downstream);
        let gateway = Gateway::started(json!({
            "memory": "96MiB",
            "sinks": {
                "lake": {"type": "lake", "file_age": "1s"},
                "second": {
                    "type": "prometheus_remote_write", "url": downstream.write_url(), "backoff": {"max": "200ms"},
                    // So that a request holds several samples of a series.
                    "linger": "1s",
                },
            },
        }));
        let own = ScrapeTarget::started();
        let (node, node_address) = node_exporter(gateway.folder());
        let target = |job: &str, address: SocketAddr| json!({"job_name": job, "static_configs": [{"targets": [address.to_string()]}]});
        let config = json!({
            "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms"},
            "scrape_configs": [
                target("node", node_address), target("own", own.address()), target("tidegate", gateway.admin()),
            ],
            "remote_write": [{
                "url": gateway.target().to_string(),
                "queue_config": {"batch_send_deadline": "100ms", "min_backoff": "30ms", "max_backoff": "200ms"},
            }],
        });
        let upstream = Prometheus::started(&config.to_string());
        let mut chain = Chain { upstream, gateway, downstream, own, _node: node, from_ms: 0 };
        // Samples scraped before remote write first read its log are not sent.
        for job in JOBS {
            until(SOON, "the first samples to arrive", || !chain.second(job, 0, now_ms()).is_empty());
        }
        chain.from_ms = now_ms();
        chain
    }

    fn first(&self, job: &str, from: i64, to: i64) -> BTreeMap<String, Samples> {
        self.upstream.samples(("job", job), from, to)
    }

    fn second(&self, job: &str, from: i64, to: i64) -> BTreeMap<String, Samples> {
        self.downstream.samples(("job", job), from, to)
    }

    /// Waits until something that is scraped from now on has come through.
    fn flows(&self, what: &str) {
        let from = now_ms();
        until(SOON, what, || {
            let arrived = self.second("own", from, now_ms());
            arrived.keys().any(|series| series.contains("own_scrapes"))
        });
    }

    /// Waits until a stale marker of a series whose name has this in it has come through, which has no sample any more since `from`.
    fn ends(&self, series: &str, from: i64) {
        // A scrape that had begun by then has the time when it began.
        let from = from - 1_000;
        until(SOON, "the stale marker to arrive", || {
            let arrived = self.second("own", from, now_ms());
            let stale = |samples: &Samples| samples.iter().any(|(_, bits)| *bits == STALE);
            arrived.iter().any(|(name, samples)| name.contains(series) && stale(samples))
        });
    }

    /// Three times: it is killed while the receiver has a request that it has not answered.
    fn is_killed_with_a_request_in_flight(&mut self) {
        for _ in 0..3 {
            // Stopped, the receiver has the request in its socket, and takes it when it goes on.
            self.downstream.signal(Signal::STOP);
            until(SOON, "a request to be in flight, and more to wait", || {
                let sink = self.gateway.sink("second");
                sink["in_flight"].as_u64() > Some(0) && sink["lag"]["items"].as_u64() > Some(5_000)
            });
            self.gateway.kill9();
            self.downstream.signal(Signal::CONT);
            self.gateway.start();
            self.flows("samples to flow after a kill with a request in flight");
        }
    }

    /// Everything until now is in both, the same, and in the lake, once.
    fn compare(&mut self) {
        // A later scrape of a target is stored after the earlier ones.
        let to = now_ms();
        for job in JOBS {
            until(SOON, "the next scrape", || !self.first(job, to + 1, now_ms()).is_empty());
        }
        let mut count = 0;
        for job in JOBS {
            let first = self.first(job, self.from_ms, to);
            let mut second = BTreeMap::new();
            until_or_late(|| {
                second = self.second(job, self.from_ms, to);
                second == first
            });
            assert_same(job, &first, &second);
            count += first.values().map(Vec::len).sum::<usize>();
        }
        println!("compared {count} samples");
        assert!(count > 5_000, "only {count} samples were compared");
        self.lake_has_the_same(to);
    }

    fn lake_has_the_same(&mut self, to: i64) {
        let mut first: BTreeMap<(String, i64), u64> = BTreeMap::new();
        for (series, samples) in self.first("own", self.from_ms, to) {
            first.extend(samples.into_iter().map(|(time, bits)| ((series.clone(), time), bits)));
        }
        // Ends the file that is being filled.
        assert_eq!(self.gateway.term(), 0);
        let rows = tidegate_tests::duckdb(&format!(
            "SELECT metric_name, json_extract_string(attributes, '$.value'), epoch_ms(time), value::VARCHAR, flags \
             FROM read_parquet('{}/lake/v1/metric_points/**/*.parquet') WHERE job = 'own' \
             AND epoch_ms(time) BETWEEN {} AND {to}",
            self.gateway.data().display(),
            self.from_ms
        ));
        let Some(rows) = rows else { return };
        // A retry of Prometheus after an answer that was lost may double rows: count each once.
        let found: BTreeSet<(String, String, i64)> = rows
            .iter()
            .map(|row| {
                let text = |n: usize| row[n].as_str().unwrap_or_default().to_owned();
                (text(0), text(1), row[2].as_i64().unwrap())
            })
            .collect();
        let stale = rows.iter().filter(|row| row[4].as_i64().unwrap_or(0) & 1 == 1).count();
        let expected = first.values().filter(|bits| **bits == STALE).count();
        assert_eq!((found.len(), stale), (first.len(), expected), "rows, and stale markers, of the lake");
    }
}

/// As `until`, but leaves it to the caller to say what is missing in the end.
fn until_or_late(mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    until(SOON * 2, "the samples to be the same", || condition() || started.elapsed() > SOON);
}

#[track_caller]
fn assert_same(job: &str, first: &BTreeMap<String, Samples>, second: &BTreeMap<String, Samples>) {
    let mut differences = Vec::new();
    for (series, samples) in first {
        let arrived: BTreeSet<_> = second.get(series).into_iter().flatten().collect();
        let missing: Vec<_> = samples.iter().filter(|sample| !arrived.contains(sample)).collect();
        if !missing.is_empty() {
            let few: Vec<_> = missing.iter().take(4).collect();
            differences.push(format!("{series}: {} of {} missing, as {few:?}", missing.len(), samples.len()));
        }
    }
    differences
        .extend(second.keys().filter(|series| !first.contains_key(*series)).map(|s| format!("new: {s}")));
    let count = differences.len();
    differences.truncate(8);
    assert!(first == second, "job {job}: {count} series differ:\n{}", differences.join("\n"));
}

/// P2 among real programs: everything is restarted in turn, and in the end nothing is missing.
#[test]
fn the_second_prometheus_has_all_samples_of_the_first() {
    let mut chain = Chain::start("{}");
    until(SOON, "Prometheus to scrape tidegate", || {
        chain.upstream.value("up{job=\"tidegate\"}") == Some(1.0)
    });
    let differences = chain.upstream.value("tidegate_books_difference");
    assert_eq!(differences, Some(0.0), "our own metrics, as Prometheus reads them");

    let from = now_ms();
    chain.own.lose_series(true);
    chain.ends("own_vanishing", from);

    assert_eq!(chain.gateway.term(), 0);
    chain.gateway.start();
    chain.flows("samples to flow after SIGTERM and start");

    let from = now_ms();
    chain.own.stop();
    chain.ends("own_scrapes", from);
    chain.own.lose_series(false);
    chain.own.start();
    chain.flows("samples of the target that is back");

    chain.gateway.kill9();
    chain.gateway.start();
    chain.flows("samples to flow after kill -9 and start");

    chain.downstream.term();
    until(SOON, "the gateway to notice that nobody takes its samples", || {
        let sink = chain.gateway.sink("second");
        sink["failures"].as_u64() > Some(2) && sink["lag"]["items"].as_u64() > Some(1_000)
    });
    chain.downstream.start();
    chain.flows("samples to flow to the restarted Prometheus");
    chain.gateway.books_close();
    chain.compare();
}

/// P2: killed with a request in flight, the gateway sends it again when it is back, together with what came
/// since. A receiver that takes old samples too has everything, and nothing is dropped.
#[test]
fn a_request_in_flight_when_killed_is_sent_again() {
    let mut chain = Chain::start("{storage: {tsdb: {out_of_order_time_window: 30m}}}");
    chain.is_killed_with_a_request_in_flight();
    assert_eq!(chain.gateway.sink("second")["dropped"], json!({}));
    chain.gateway.books_close();
    chain.compare();
}

/// The same with a receiver that refuses what it has already, and with that the whole request: it still gets
/// all that is new. What it refuses is counted as rejected.
#[test]
fn a_receiver_that_refuses_repetitions_misses_nothing() {
    let mut chain = Chain::start("{}");
    chain.is_killed_with_a_request_in_flight();
    let dropped = &chain.gateway.sink("second")["dropped"];
    assert!(dropped["rejected"].as_u64() > Some(0), "no repetition was refused: {dropped}");
    assert_eq!(dropped.as_object().unwrap().len(), 1, "{dropped}");
    chain.gateway.books_close();
    chain.compare();
}
