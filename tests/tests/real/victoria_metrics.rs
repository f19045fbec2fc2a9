//! VictoriaMetrics behind the sink `prometheus_remote_write`, and vmagent before the gateway.

use crate::remote_write::{Load, Receiver, everything_arrives, gateway};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;
use tidegate_tests::promql::{LabelSet, SamplesByLabels, differences};
use tidegate_tests::{
    Gateway, Program, SOON, ScrapeTarget, binary as tidegate, finish, free_address, http, now_ms,
    real_program, until,
};

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
    let flags = scraping(gateway.folder(), &[("own", target.address())], &[gateway.target().to_string()]);
    let (agent, _) = vmagent(&binary, gateway.folder(), &flags);
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

/// The rules of all URLs in the test below: every action of vmagent but `hashmod`, whose hash is another, and `graphite`. None makes one
/// series of two, since a receiver takes only one of their samples then.
const COMMON_RULES: &str = r#"
- {if: '{__name__=~"go_.*|process_.*"}', action: drop}
- {action: drop_metrics, regex: ['scrape_.*', 'tidegate_memory_.*']}
- {action: keep_metrics, regex: ['own_.*', 'tidegate_.*', up]}
- {source_labels: [instance], regex: '([^:]+):(\d+)', target_label: __host, replacement: '${1} at ${2}'}
- {target_label: where, replacement: '{{job}} on {{__host}}'}
- {action: replace_all, source_labels: [where], regex: '[. ]', replacement: '_', target_label: where}
- {action: uppercase, source_labels: [where], target_label: whom}
- {action: lowercase, source_labels: [whom], target_label: whom}
- {action: keep_if_contains, source_labels: [job], target_label: where}
- {action: drop_if_contains, source_labels: [instance], target_label: where}
- {if: ['{job="own"}', 'up'], source_labels: [where, whom], action: keep_if_equal}
- {source_labels: [job, instance], action: drop_if_equal}
- {source_labels: [where], target_label: whom, action: keepequal}
- {source_labels: [job], target_label: instance, action: dropequal}
- {action: labelmap, regex: 'sha(re)', replacement: 'of_${1}'}
- {action: labelmap_all, regex: 'o', replacement: '0'}
- {action: labelmap, regex: 'j0b', replacement: job}
- {source_labels: [__host], target_label: host}
- {target_label: '${1}_part', source_labels: [__name__], regex: 'tidegate_([a-z]+)_.*', replacement: '1'}
- {source_labels: [datacenter], target_label: datacenter_before}
"#;
/// The rules of the first URL.
const RULES_OF_ONE: &str = r#"
- {target_label: copy, replacement: one}
- {source_labels: [__host], target_label: host_before}
- {action: labeldrop, regex: 'datacenter|whom'}
- {if: 'own_special{value="nan"}', action: drop}
- {if: '{job!~"own.*"}', action: keep, source_labels: [job], regex: '.*g.*'}
"#;
/// The rules of the second URL.
const RULES_OF_TWO: &str = r#"
- {target_label: copy, replacement: two}
- {action: labelkeep, regex: '__name__|job|j0b|copy|instance|value|.*part|le|s0urce|sink|signal|own.*|reas0n|.*0.*'}
- {source_labels: [job], action: keep, regex: 'own|tidegate'}
"#;

/// One vmagent scrapes, and sends everything to another, which relabels, and to tidegate with the imported flags of that other: their
/// receivers have the same series with the same samples.
#[test]
#[ignore = "`make test-real` runs it"]
fn an_imported_vmagent_writes_what_the_original_does() {
    let Some(by_original) = VictoriaMetrics::started() else { return };
    let Some(by_import) = VictoriaMetrics::started() else { return };
    let Some(binary) = real_program("victoriametrics", "vmagent") else { return };
    let [scraper, original] =
        [(); 2].map(|()| tempfile::Builder::new().prefix("vmagent-test-").tempdir().unwrap());
    let file = |name: &str, rules: &str| {
        let file = original.path().join(name);
        std::fs::write(&file, rules).unwrap();
        file.display().to_string()
    };
    let (all, one, two) =
        (file("all.yml", COMMON_RULES), file("one.yml", RULES_OF_ONE), file("two.yml", RULES_OF_TWO));
    let flags = |receiver: &VictoriaMetrics| {
        let url = format!("-remoteWrite.url={}", receiver.write_url());
        [
            url.clone(),
            url,
            format!("-remoteWrite.relabelConfig={all}"),
            format!("-remoteWrite.urlRelabelConfig={one}"),
            format!("-remoteWrite.urlRelabelConfig={two}"),
            "-remoteWrite.label=datacenter=eu".to_owned(),
            "-remoteWrite.flushInterval=100ms".to_owned(),
        ]
    };

    let imported = finish(Command::new(tidegate()).args(["import", "vmagent", "--"]).args(flags(&by_import)));
    let imported = imported.succeeded();
    let mut gateway = Gateway::new(json!({}));
    let listen = json!({"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin()});
    gateway.configure_text(&format!(
        "{imported}\nmemory: 128MiB\ndata: {}\nlisten: {listen}\n",
        gateway.data().display()
    ));
    gateway.start();
    let (_original, address) = vmagent(&binary, original.path(), &flags(&by_original));

    let own = ScrapeTarget::started();
    let targets = [("own", own.address()), ("tidegate", gateway.admin())];
    let urls = [format!("http://{address}/api/v1/write"), gateway.target().to_string()];
    let (_scraper, _) = vmagent(&binary, scraper.path(), &scraping(scraper.path(), &targets, &urls));

    let both = |from: i64, to: i64| {
        [&by_original, &by_import].map(|receiver| {
            let mut found = receiver.samples();
            found.values_mut().for_each(|samples| samples.retain(|(time, _)| (from..to).contains(time)));
            found.retain(|_, samples| !samples.is_empty());
            found
        })
    };
    let from = now_ms();
    let longest = |found: &SamplesByLabels| found.values().map(Vec::len).max().unwrap_or(0);
    until(SOON, "some scrapes", || both(from, now_ms()).iter().all(|found| longest(found) >= 8));
    let (to, begun) = (now_ms(), Instant::now());
    let mut found = both(from, to);
    // A scrape may have been under way; what is missing in the end is said below.
    until(SOON * 2, "the samples to be the same", || {
        found = both(from, to);
        found[0] == found[1] || begun.elapsed() > SOON
    });
    let [by_original, by_import] = found;
    assert_eq!(differences(&by_original, &by_import), Vec::<String>::new());
    println!("{} series are the same", by_original.len());
    let has = |label: &str, value: &str| {
        by_original.keys().any(|labels| labels.get(label).is_some_and(|has| has == value))
    };
    assert!(
        has("copy", "one") && has("copy", "two") && has("datacenter", "eu") && has("j0b", "own"),
        "{by_original:?}"
    );
    assert!(!has("datacenter_before", "eu") && !has("value", "sha"), "{by_original:?}");
    assert_eq!(gateway.term(), 0);
}

/// A vmagent with these flags, and an address to send to.
fn vmagent(binary: &Path, folder: &Path, flags: &[String]) -> (Program, SocketAddr) {
    let (mut command, address) = (Command::new(binary), free_address());
    command
        .current_dir(folder)
        .args(flags)
        .args(["-remoteWrite.tmpDataPath=vmagent-queue".to_owned(), format!("-httpListenAddr={address}")]);
    let program = Program::start("vmagent", command, folder);
    until(SOON, "vmagent to listen", || {
        http::get(address, "/health").is_ok_and(|answer| answer.status == 200)
    });
    (program, address)
}

/// The flags of one that scrapes these targets, each named for its job, and sends to these URLs.
fn scraping(folder: &Path, targets: &[(&str, SocketAddr)], urls: &[String]) -> Vec<String> {
    let scrape = |(job, address): &(&str, SocketAddr)| json!({"job_name": job, "static_configs": [{"targets": [address.to_string()]}]});
    let config = json!({
        "global": {"scrape_interval": "200ms"},
        "scrape_configs": targets.iter().map(scrape).collect::<Vec<_>>(),
    });
    let file = folder.join("scrape.yml");
    std::fs::write(&file, config.to_string()).unwrap();
    let urls = urls.iter().map(|url| format!("-remoteWrite.url={url}"));
    urls.chain([format!("-promscrape.config={}", file.display())]).collect()
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
