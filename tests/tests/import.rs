//! An imported configuration does what the original did.
//!
//! `crates/config/tests/import` has configurations of Collectors and of other programs, which their names begin with; where
//! tests of pipelines stand beside one, its conversion has to pass them. What they expect is what the original does.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tidegate_tests::{Gateway, Prometheus, SOON, ScrapeTarget, binary, finish, now_ms, tidegate, until};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/config/tests/import")
}

/// The configurations with tests.
fn tested() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().unwrap().strip_suffix(".tests.yaml").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// The program that a configuration is for, by its name, and its file.
fn original(name: &str) -> (&'static str, PathBuf) {
    let programs = [("fluent-bit", "fluent-bit"), ("vector-", "vector")];
    let program = programs.iter().find(|(start, _)| name.starts_with(start));
    let yaml = folder().join(format!("{name}.yaml"));
    let file = if yaml.exists() { yaml } else { folder().join(format!("{name}.conf")) };
    (program.map_or("otelcol", |(_, program)| program), file)
}

#[test]
fn imported_pipelines_do_what_the_originals_do() {
    let names = tested();
    assert!(names.len() >= 4, "{names:?}");
    let work = tempfile::tempdir().unwrap();
    for name in names {
        let (program, original) = original(&name);
        let imported = finish(Command::new(binary()).args(["import", program]).arg(&original));
        assert_eq!(imported.code, Some(0), "{imported:?}");
        let tests = fs::read_to_string(folder().join(format!("{name}.tests.yaml"))).unwrap();
        let file = work.path().join(format!("{name}.yaml"));
        fs::write(&file, format!("{}\n{tests}", imported.stdout)).unwrap();
        let mut command = Command::new(binary());
        command.args(["test", "--config"]).arg(&file).env("MY_POD_IP", "127.0.0.1");
        for variable in ["ENVIRONMENT", "HOSTNAME", "TOKEN"] {
            command.env(variable, "value");
        }
        let tested = finish(&mut command);
        assert_eq!(tested.code, Some(0), "{name}: {tested:?}");
    }
}

/// The rules of `remote_write` in the test below, as Prometheus documents them: every action, with the defaults that are easily missed. None
/// makes one series of two, since a receiver takes only one of their samples then.
const RULES: &str = "
    - {source_labels: [__name__], regex: 'go_.*|process_.*', action: drop}
    - {source_labels: [instance], regex: '([^:]+):(\\d+)', target_label: host, replacement: '${1} at ${2}'}
    - {source_labels: [__name__, job], separator: '@', regex: '(tidegate)_(.+)@.*', target_label: part, replacement: '$2'}
    - {source_labels: [part], modulus: 7, target_label: lane, action: hashmod}
    - {source_labels: [part], target_label: PART, action: uppercase}
    - {source_labels: [host], target_label: whom, action: lowercase}
    - {regex: 'sha(re)', replacement: 'of_${1}', action: labelmap}
    - {regex: 'PART|of_nothing', action: labeldrop}
    - {source_labels: [lane, __name__], regex: '[0-5];.*|[0-9];own_.*', action: keep}
    - {source_labels: [instance], target_label: where}
    - {source_labels: [instance], target_label: where, action: keepequal}
    - {source_labels: [instance], target_label: host, action: dropequal}
    - {regex: 'where', action: labeldrop}
    - {regex: '.+', action: labelkeep}
    - {source_labels: [missing], target_label: empty}
    - {target_label: fixed, replacement: 'a$$b'}
    - {source_labels: [source], regex: 'otlp', target_label: source, replacement: ''}
";

/// Of one Prometheus, a receiver gets what its `remote_write` sends, and another what the conversion makes of everything: both have the
/// same series, with the same samples.
#[test]
fn an_imported_prometheus_writes_what_the_original_does() {
    let (by_original, by_import) = (Prometheus::started("{}"), Prometheus::started("{}"));
    let remote_write = |url: String, rules: &str| {
        let queue = "queue_config: {batch_send_deadline: 100ms, min_backoff: 30ms, max_backoff: 200ms}";
        let rules = if rules.is_empty() { String::new() } else { format!("  write_relabel_configs:{rules}") };
        format!("- url: {url}\n  {queue}\n{rules}")
    };
    let external =
        "global:\n  scrape_interval: 250ms\n  scrape_timeout: 250ms\n  external_labels: {cluster: eu-1}\n";
    let mut gateway = Gateway::new(json!({}));
    let original = gateway.folder().join("prometheus.yml");
    let text = format!("{external}remote_write:\n{}", remote_write(by_import.write_url(), RULES));
    fs::write(&original, text).unwrap();
    let imported = tidegate(&["import", "prometheus", original.to_str().unwrap()]).succeeded();
    let listen = json!({"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin()});
    gateway.configure_text(&format!(
        "{imported}\nmemory: 96MiB\ndata: {}\nlisten: {listen}\n",
        gateway.data().display()
    ));
    gateway.start();

    let own = ScrapeTarget::started();
    let target =
        |job: &str, address| format!("- {{job_name: {job}, static_configs: [{{targets: ['{address}']}}]}}\n");
    let scrapes = format!("{}{}", target("own", own.address()), target("tidegate", gateway.admin()));
    let original = remote_write(by_original.write_url(), RULES);
    let everything = remote_write(gateway.target().to_string(), "");
    let _prometheus = Prometheus::started(&format!(
        "{external}scrape_configs:\n{scrapes}remote_write:\n{original}{everything}\n"
    ));

    let both = |job: &str, from: i64, to: i64| {
        [&by_original, &by_import].map(|receiver| receiver.samples(("job", job), from, to))
    };
    // What was scraped before a queue first read is not sent by it.
    for job in ["own", "tidegate"] {
        until(SOON, "the first samples", || both(job, 0, now_ms()).iter().all(|found| !found.is_empty()));
    }
    let from = now_ms();
    until(SOON, "some scrapes", || both("own", from, now_ms())[0].values().any(|samples| samples.len() >= 8));
    let to = now_ms();
    for job in ["own", "tidegate"] {
        let (mut found, begun) = (both(job, from, to), Instant::now());
        // A scrape may have been under way; what is missing in the end is said below.
        until(SOON * 2, "the samples to be the same", || {
            found = both(job, from, to);
            found[0] == found[1] || begun.elapsed() > SOON
        });
        let [by_original, by_import] = found;
        for series in by_original.keys().chain(by_import.keys()) {
            assert_eq!(by_original.get(series), by_import.get(series), "{series}");
        }
        let names: Vec<&String> = by_original.keys().collect();
        println!("{job}: {} series are the same", names.len());
        let has = |part: &str| names.iter().any(|name| name.contains(part));
        assert!(has("cluster=\"eu-1\"") && has("fixed=\"a$b\"") && has("host=\"127.0.0.1 at "), "{names:?}");
        assert!(!has("go_goroutines"), "{names:?}");
        assert!(!has("PART"), "{names:?}");
        assert_eq!(has("part=\"") && has("of_re=\""), job == "tidegate", "{names:?}");
    }
    assert_eq!(gateway.term(), 0);
}

/// The result is on standard output, and what is missed in it on standard error, with its place.
#[test]
fn what_is_missed_is_on_standard_error() {
    let original = folder().join("fan-out.yaml");
    let imported = finish(Command::new(binary()).args(["import", "otelcol"]).arg(&original));
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert!(imported.stderr.contains("fan-out.yaml:5: `receivers.jaeger`"), "{imported:?}");
    assert!(!imported.stderr.contains("not needed"), "{imported:?}");
    assert!(!imported.stdout.contains("fan-out.yaml:5"), "{imported:?}");
}

/// Flags behind `--` are vmagent's, also those that look like ours; files that they name are read.
#[test]
fn the_flags_of_vmagent_are_read() {
    let mut command = Command::new(binary());
    command.args([
        "import",
        "vmagent",
        "--",
        "-remoteWrite.url=http://127.0.0.1:8428/api/v1/write",
        "--loggerLevel=INFO",
    ]);
    let imported = finish(command.arg("-remoteWrite.relabelConfig=rules-2.yml").current_dir(folder()));
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert!(imported.stdout.contains("action: keep_if_equal"), "{imported:?}");
    assert!(
        imported.stderr.contains("rules-2.yml:1: `rules[0]`: vmagent hashes with xxHash"),
        "{imported:?}"
    );
}

/// The command lines of routers, with the files that they name, become configurations that can be run.
#[test]
fn the_command_line_of_a_thanos_router_passes_the_check() {
    let work = tempfile::tempdir().unwrap();
    let at = |name: &str| work.path().join(name).display().to_string();
    let rings = r#"[{"hashring": "all", "algorithm": "ketama", "endpoints": [{"address": "a:10901", "az": "1"}, {"address": "b:10901", "az": "2"}]}]"#;
    fs::write(at("hashrings.json"), rings).unwrap();
    let limits =
        "write:\n  global: { max_concurrency: 40 }\n  default: { request: { samples_limit: 5000 } }\n";
    fs::write(at("limits.yaml"), limits).unwrap();
    fs::write(at("relabel.yaml"), "- { action: labeldrop, regex: pod_uid }\n").unwrap();
    let file = format!("--receive.hashrings-file={}", at("hashrings.json"));
    let files = [
        format!("--receive.limits-config-file={}", at("limits.yaml")),
        format!("--receive.relabel-config-file={}", at("relabel.yaml")),
    ];
    let lines: [Vec<&str>; 4] = [
        vec![
            "receive",
            "--grpc-address=0.0.0.0:10901",
            "--http-address=0.0.0.0:10902",
            &file,
            "--receive.replication-factor=2",
            "--receive.hashrings-algorithm=ketama",
            "--label=receive=\"true\"",
            "--log.level=info",
        ],
        vec![
            "/bin/thanos",
            "receive",
            &file,
            "--tsdb.path=/var/thanos/receive",
            "--objstore.config=$(OBJSTORE_CONFIG)",
            "--receive.local-endpoint=$(NAME).receive:10901",
            "--remote-write.address",
            "127.0.0.1:19291",
        ],
        vec![
            &file,
            &files[0],
            &files[1],
            "--receive.tenant-header=X-Scope-OrgID",
            "--receive.split-tenant-label-name=team",
        ],
        vec![
            "receive",
            "--receive.hashrings",
            rings,
            "--receive.grpc-compression=none",
            "--no-receive.otlp-enable-target-info",
            "--receive-forward-timeout=20s",
            "--remote-write.client-tls-secure",
        ],
    ];
    for line in lines {
        let imported = finish(Command::new(binary()).args(["import", "thanos-receive", "--"]).args(&line));
        assert_eq!(imported.code, Some(0), "{line:?}: {imported:?}");
        fs::write(at("tidegate.yaml"), &imported.stdout).unwrap();
        let checked =
            finish(Command::new(binary()).arg("check").arg(at("tidegate.yaml")).current_dir(work.path()));
        assert_eq!(checked.code, Some(0), "{line:?}\n{}\n{checked:?}", imported.stdout);
    }
    let mut command = Command::new(binary());
    let refused = finish(command.args(["import", "thanos-receive", "--", "--receive.hashring-file=/r.json"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("did you mean `--receive.hashrings-file`"), "{refused:?}");
}

/// The checkpoints of Promtail become start offsets in the data folder; files that are gone or unread are told apart.
#[test]
fn checkpoints_become_start_offsets() {
    let work = tempfile::tempdir().unwrap();
    let (log, gone) = (work.path().join("a.log"), work.path().join("gone.log"));
    fs::write(&log, "one\ntwo\n").unwrap();
    let positions = work.path().join("positions.yaml");
    let text = format!("positions:\n  {}: \"4\"\n  {}: \"9\"\n", log.display(), gone.display());
    fs::write(&positions, text).unwrap();
    let data = work.path().join("data");
    let import = |options: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["import", "checkpoints", "promtail"]).arg(&positions).arg("--data").arg(&data);
        finish(command.args(options))
    };
    let shown = import(&["--dry-run"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("1 with 4 B unread, 1 gone."), "{shown:?}");
    assert!(!data.exists());
    let imported = import(&[]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let stored = fs::read_to_string(data.join("files-start-offsets")).unwrap();
    assert_eq!(stored.lines().count(), 2, "{stored}");
    assert!(stored.contains(r#""offset":4"#), "{stored}");
    fs::write(&positions, "not: positions").unwrap();
    let refused = import(&[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no positions file"), "{refused:?}");
}
