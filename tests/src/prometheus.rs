//! Debian's Prometheus, as the one that sends and as the one that receives.

use crate::http::{self, encode};
use crate::messages::{self, Matcher, Query, ReadRequest, ReadResponse, TimeSeries};
use crate::{Program, SOON, free_address, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use tempfile::TempDir;

/// A Prometheus server with a folder and a port of its own, which it keeps from one start to the next.
#[derive(Debug)]
pub struct Prometheus {
    // First, so that the process is gone before its folder is.
    process: Option<Program>,
    folder: TempDir,
    address: SocketAddr,
}

/// One series' samples: time in milliseconds, and the value's bits.
pub type Samples = Vec<(i64, u64)>;

impl Prometheus {
    /// Starts a server with this configuration, which also takes remote write, and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn started(config: &str) -> Prometheus {
        let folder = tempfile::Builder::new().prefix("prometheus-test-").tempdir().unwrap();
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let mut server = Prometheus { process: None, folder, address: free_address() };
        server.start();
        server
    }

    /// Starts it again.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn start(&mut self) {
        let folder = self.folder.path();
        let mut command = Command::new("prometheus");
        command.current_dir(folder).args([
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--web.enable-remote-write-receiver",
            "--storage.remote.flush-deadline=10s",
            "--log.level=info",
        ]);
        command.arg(format!("--web.listen-address={}", self.address));
        self.process = Some(Program::start("prometheus", command, folder));
        let address = self.address;
        until(SOON, "Prometheus to be ready", || {
            http::get(address, "/-/ready").is_ok_and(|answer| answer.status == 200)
        });
    }

    /// Asks it to stop, which it does after having sent what it can.
    ///
    /// # Panics
    /// When it is not running or does not end.
    pub fn term(&mut self) {
        let code = self.process.take().expect("Prometheus is not running").term();
        assert_eq!(code, 0, "Prometheus ended with {code}");
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is not running.
    pub fn signal(&self, signal: Signal) {
        self.process.as_ref().expect("Prometheus is not running").signal(signal);
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for remote write.
    pub fn write_url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }

    /// The raw samples of all series with this label, by label set: as they are stored, stale markers among
    /// them. Those from `start_ms` to `end_ms`, in milliseconds since 1970, both included.
    ///
    /// # Panics
    /// When the query fails.
    pub fn samples(&self, label: (&str, &str), start_ms: i64, end_ms: i64) -> BTreeMap<String, Samples> {
        let matcher = Matcher { kind: 0, name: label.0.to_owned(), value: label.1.to_owned() };
        let query = Query { start_ms, end_ms, matchers: vec![matcher] };
        let body = messages::body(&ReadRequest { queries: vec![query] });
        let head = [
            "POST /api/v1/read HTTP/1.1",
            "Content-Type: application/x-protobuf",
            "Content-Encoding: snappy",
            "X-Prometheus-Remote-Read-Version: 0.1.0",
            "Connection: close",
        ];
        let answer = http::request(self.address, &head, &body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let found: ReadResponse = messages::message(&answer.body);
        let series = found.results.into_iter().flat_map(|result| result.timeseries);
        let pairs = |series: &TimeSeries| series.samples.iter().map(|s| (s.timestamp, s.bits)).collect();
        series.map(|series| (series.name(), pairs(&series))).collect()
    }

    /// The value of the one series that an instant query finds; `None` when it finds none.
    ///
    /// # Panics
    /// When the query fails or finds more than one.
    pub fn value(&self, query: &str) -> Option<f64> {
        let answer = self.query(&format!("/api/v1/query?query={}", encode(query)));
        let result = answer["data"]["result"].as_array().expect("a vector");
        assert!(result.len() <= 1, "{query} finds {} series", result.len());
        result.first()?["value"][1].as_str()?.parse().ok()
    }

    fn query(&self, path: &str) -> Value {
        let answer = http::get(self.address, path).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }
}
