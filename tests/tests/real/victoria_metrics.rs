//! VictoriaMetrics behind the sink `prometheus_remote_write`, and vmagent before the gateway.

use crate::remote_write::{Load, Receiver, everything_arrives, gateway};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tidegate_tests::promql::{LabelSet, SamplesByLabels};
use tidegate_tests::{Program, SOON, ScrapeTarget, free_address, http, now_ms, real_program, until};

/// A single-node VictoriaMetrics.
struct VictoriaMetrics {
    // First, so that the process is gone before its folder is.
    process: Option<Program>,
    binary: PathBuf,
    folder: TempDir,
    address: SocketAddr,
}

impl VictoriaMetrics {
    fn started() -> Option<VictoriaMetrics> {
        let binary = real_program("victoriametrics", "victoria-metrics")?;
        let folder = tempfile::Builder::new().prefix("victoriametrics-test-").tempdir().unwrap();
        let mut server = VictoriaMetrics { process: None, binary, folder, address: free_address() };
        server.start();
        Some(server)
    }
}

impl Receiver for VictoriaMetrics {
    fn write_url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }

    fn start(&mut self) {
        let mut command = Command::new(&self.binary);
        command.current_dir(self.folder.path()).args([
            "-storageDataPath=data".to_owned(),
            format!("-httpListenAddr={}", self.address),
            // Two copies of a sample are one.
            "-dedup.minScrapeInterval=1ms".to_owned(),
            "-memory.allowedBytes=128MiB".to_owned(),
        ]);
        self.process = Some(Program::start("victoria-metrics", command, self.folder.path()));
        until(SOON, "VictoriaMetrics to be ready", || {
            http::get(self.address, "/-/ready").is_ok_and(|answer| answer.status == 200)
        });
    }

    /// By SIGTERM: what it has answered it keeps in memory for seconds, and would lose.
    fn end(&mut self) {
        let code = self.process.take().expect("VictoriaMetrics is not running").term();
        assert_eq!(code, 0);
    }

    fn signal(&self, signal: Signal) {
        self.process.as_ref().unwrap().signal(signal);
    }

    fn samples(&self) -> SamplesByLabels {
        // New series are not found before they are flushed.
        assert_eq!(http::get(self.address, "/internal/force_flush").unwrap().status, 200);
        let answer = http::get(self.address, "/api/v1/export?match[]=%7B__name__!=%22%22%7D").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        let series = text.lines().map(|line| {
            let series: Value = serde_json::from_str(line).unwrap();
            let labels: LabelSet = serde_json::from_value(series["metric"].clone()).unwrap();
            let times: Vec<i64> = serde_json::from_value(series["timestamps"].clone()).unwrap();
            let values: Vec<Option<f64>> =
                series["values"].as_array().unwrap().iter().map(Value::as_f64).collect();
            // A value that is no number is a stale marker.
            let samples = times.into_iter().zip(values).filter_map(|(time, value)| Some((time, value?)));
            (labels, samples.collect::<Vec<_>>())
        });
        let mut found = SamplesByLabels::new();
        for (labels, samples) in series {
            let all = found.entry(labels).or_default();
            all.extend(samples);
            all.sort_by_key(|(time, _)| *time);
        }
        found
    }
}

/// Floats, since it has no native histograms of Prometheus.
#[test]
#[ignore = "`make test-real` runs it"]
fn victoria_metrics_has_what_was_acknowledged() {
    let Some(mut server) = VictoriaMetrics::started() else { return };
    let mut gateway = gateway(&server, json!({}));
    everything_arrives(&mut server, &mut gateway, &mut Load::new(4, 200, 0));
}

#[test]
#[ignore = "`make test-real` runs it"]
fn victoria_metrics_gets_version_1_where_it_ignores_version_2() {
    let Some(mut server) = VictoriaMetrics::started() else { return };
    let mut gateway = gateway(&server, json!({"protocol": "2.0"}));
    everything_arrives(&mut server, &mut gateway, &mut Load::new(5, 200, 0));
}

/// vmagent with its default flags: what it scrapes arrives, whichever of the two is killed or stopped. It begins with a
/// protocol of its own, in zstd, and sends remote write 1.0 once that is refused.
#[test]
#[ignore = "`make test-real` runs it"]
fn every_scrape_of_vmagent_arrives() {
    let Some(mut server) = VictoriaMetrics::started() else { return };
    let Some(binary) = real_program("victoriametrics", "vmagent") else { return };
    let mut gateway = gateway(&server, json!({}));
    let target = ScrapeTarget::started();
    let agent = vmagent(&binary, gateway.folder(), &gateway.target().to_string(), target.address());
    let scraped = |more: u64| {
        let wanted = target.scrapes() + more;
        until(SOON, "vmagent to scrape", || target.scrapes() >= wanted);
    };
    scraped(10);
    arrived(&server, &target);
    gateway.kill9();
    scraped(10);
    gateway.start();
    arrived(&server, &target);
    server.end();
    scraped(10);
    assert_eq!(gateway.term(), 0);
    scraped(10);
    gateway.start();
    server.start();
    scraped(10);
    assert!(agent.stderr().contains("Downgrading protocol from VictoriaMetrics to Prometheus"));
    // Asked to stop, it sends what it has.
    assert_eq!(agent.term(), 0);
    arrived(&server, &target);
    gateway.at_rest(SOON);
    gateway.books_close();
}

fn vmagent(binary: &Path, folder: &Path, url: &str, target: SocketAddr) -> Program {
    let config = json!({
        "global": {"scrape_interval": "200ms"},
        "scrape_configs": [{"job_name": "own", "static_configs": [{"targets": [target.to_string()]}]}],
    });
    let file = folder.join("vmagent.yml");
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = Command::new(binary);
    command.current_dir(folder).args([
        format!("-remoteWrite.url={url}"),
        format!("-promscrape.config={}", file.display()),
        "-remoteWrite.tmpDataPath=vmagent-queue".to_owned(),
        format!("-httpListenAddr={}", free_address()),
    ]);
    Program::start("vmagent", command, folder)
}

/// Every scrape of this target until now has arrived, once.
#[track_caller]
fn arrived(server: &VictoriaMetrics, target: &ScrapeTarget) {
    let count = target.scrapes();
    let mut last = Vec::new();
    until(SOON, "the scrapes to arrive", || {
        let found = server.samples();
        let own = found.into_iter().filter(|(labels, _)| labels["__name__"] == "own_scrapes");
        last = own.flat_map(|(_, samples)| samples).map(|(_, value)| value as u64).collect();
        last.retain(|value| *value <= count);
        last.len() as u64 >= count
    });
    let expected: Vec<u64> = (1..=count).collect();
    assert_eq!(last, expected, "at {} of {}", now_ms(), server.address);
    println!("{count} scrapes have arrived");
}
