//! `listen.opamp` with `opampsupervisor` and an OpenTelemetry Collector, configured as in `docs/opamp.md`: the Collector runs the
//! configuration that the operator puts.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidegate_tests::http::request;
use tidegate_tests::{
    Finished, Gateway, POLL, Program, SOON, certificates, free_address, real_program, tidegate, until,
    until_some,
};

/// The page with the configurations of the supervisor and of the Collector's extension.
const PAGE: &str = include_str!("../../../docs/opamp.md");
/// A credential for the Collector to send with.
const SECRET: &str = "not-for-others";
/// How long a change may take: up to 30 seconds until the next poll over HTTP, 10 seconds to stop a Collector that has just started, and
/// `config_apply_timeout`, after which the supervisor reports.
const CHANGED: Duration = Duration::from_secs(120);

/// A gateway with OpAMP over TLS, and a lake.
struct Opamp {
    gateway: Gateway,
    agents: SocketAddr,
}

/// A supervisor with a folder of its own, and the Collector that it runs.
struct Supervisor {
    process: Option<Program>,
    binary: PathBuf,
    collector: PathBuf,
    folder: TempDir,
}

impl Opamp {
    fn start(own_telemetry: bool) -> Opamp {
        let agents = free_address();
        let mut gateway = Gateway::new(json!({}));
        certificates::authority(gateway.folder(), "ca");
        certificates::sign(gateway.folder(), "ca", "server", "/CN=gateway");
        let own_telemetry = own_telemetry.then(|| format!("http://{}", gateway.http()));
        let opamp = json!({"address": agents, "own_telemetry": own_telemetry});
        gateway.configure(json!({
            "memory": "128MiB",
            "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
            "listen": {
                "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "opamp": opamp,
                "tls": {"opamp": {"cert_file": "server.pem", "key_file": "server.key"}},
            },
        }));
        gateway.start();
        Opamp { gateway, agents }
    }

    fn cli(&self, args: &[&str]) -> Finished {
        let admin = self.gateway.admin().to_string();
        tidegate(&[&["fleet"], args, &["--admin", &admin]].concat())
    }

    fn token(&self) -> String {
        self.cli(&["collector", "token", "create"]).succeeded().trim().to_owned()
    }

    /// Puts a configuration for the agents of the page, in one step.
    fn put(&self, body: &str) {
        let file = self.gateway.folder().join("main.yaml");
        fs::write(&file, body).unwrap();
        let file = file.to_str().unwrap();
        self.cli(&["config", "put", file, "--match", "env=prod", "--step", "100%"]).succeeded();
    }

    fn config(&self) -> Value {
        let listed = self.cli(&["config", "ls", "--json"]).succeeded();
        serde_json::from_str(listed.lines().next().unwrap()).unwrap()
    }

    /// The only agent, once it has connected.
    fn collector(&self) -> Option<Value> {
        let listed = self.cli(&["collector", "ls", "--json"]).succeeded();
        let listed: Value = serde_json::from_str(listed.lines().next()?).unwrap();
        let id = listed["id"].as_str().unwrap();
        Some(serde_json::from_str(&self.cli(&["collector", "show", id]).succeeded()).unwrap())
    }

    /// Waits until the agent is as `wanted`.
    #[track_caller]
    fn wait_for_collector(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let (begun, mut last) = (Instant::now(), Value::Null);
        loop {
            last = self.collector().unwrap_or(last);
            if wanted(&last) {
                println!("the collector is {what} after {:.1?}", begun.elapsed());
                return last;
            }
            assert!(begun.elapsed() < CHANGED, "waited for the collector to be {what}: {last:#}");
            sleep(POLL);
        }
    }

    /// Waits until the agent has applied the last revision and is healthy.
    #[track_caller]
    fn wait_until_applied(&self) -> Value {
        until(CHANGED, "the roll-out to end", || self.config()["rollout"] == "done");
        self.wait_for_collector("running", |shown| {
            shown["config_status"] == "applied" && shown["healthy"] == true
        })
    }

    fn configs_sent(&self) -> f64 {
        self.gateway.metrics()["tidegate_opamp_configs_sent_total"]
    }

    /// A configuration that takes OTLP at this address and sends it to the gateway.
    fn pipeline(&self, address: SocketAddr) -> String {
        format!(
            r#"
            receivers: {{otlp: {{protocols: {{http: {{endpoint: "{address}"}}}}}}}}
            exporters:
              otlphttp:
                endpoint: http://{}
                headers: {{authorization: Bearer {SECRET}}}
            service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [otlphttp]}}}}}}
            "#,
            self.gateway.http()
        )
    }

    /// The same with a receiver that the Collector does not have.
    fn broken_pipeline(&self, address: SocketAddr) -> String {
        self.pipeline(address).replace("otlp:", "zipkin:").replace("[otlp]", "[zipkin]")
    }

    /// Sends a log record through the Collector, and waits for it in the lake.
    fn forwards(&self, address: SocketAddr, text: &str) {
        let record = json!({"severityNumber": 9, "body": {"stringValue": text}});
        let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string();
        let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
        assert_eq!(request(address, &head, body.as_bytes()).unwrap().status, 200);
        until(SOON, "the record to come through the Collector", || {
            self.gateway.lake_rows("logs").iter().any(|row| row["body"] == text)
        });
    }

    /// The block of the page that starts with `begin`, for this gateway and this Collector.
    fn example(&self, begin: &str, collector: &Path, storage: &Path) -> String {
        let block = PAGE.split("```yaml\n").find(|block| block.starts_with(begin)).unwrap();
        block
            .split("```")
            .next()
            .unwrap()
            .replace("gateway.example:4320", &self.agents.to_string())
            .replace("THE_TOKEN", &self.token())
            .replace("/usr/bin/otelcol", collector.to_str().unwrap())
            .replace("/var/lib/otelcol", storage.to_str().unwrap())
            .replace("/etc/otelcol/ca.pem", self.gateway.folder().join("ca.pem").to_str().unwrap())
    }
}

impl Supervisor {
    /// Starts one with the configuration of the page and these changes.
    fn start(opamp: &Opamp, changes: &[(&str, &str)]) -> Option<Supervisor> {
        let binary = real_program("opamp-supervisor", "opampsupervisor")?;
        let collector = real_program("opamp-supervisor", "collector")?;
        let folder = tempfile::Builder::new().prefix("supervisor-test-").tempdir().unwrap();
        let mut config = opamp.example("server:", &collector, &folder.path().join("storage"));
        for (old, new) in changes {
            assert!(config.contains(old), "{old} in {config}");
            config = config.replace(old, new);
        }
        // A failed test prints standard error.
        config.push_str("telemetry: { logs: { level: debug, output_paths: [stderr] } }\n");
        fs::write(folder.path().join("supervisor.yaml"), config).unwrap();
        let mut supervisor = Supervisor { process: None, binary, collector, folder };
        supervisor.run();
        Some(supervisor)
    }

    fn run(&mut self) {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(self.folder.path().join("supervisor.yaml"));
        self.process = Some(Program::start("supervisor", command, self.folder.path()));
    }

    /// Stops it, and the Collector with it. It does not handle SIGTERM.
    fn stop(&mut self) {
        let mut process = self.process.take().expect("the supervisor is not running");
        process.signal(Signal::INT);
        assert_eq!(process.wait(SOON).code(), Some(0));
    }

    /// The process id of the Collector that it runs.
    fn collector(&self) -> Option<u32> {
        let parent = self.process.as_ref()?.pid().to_string();
        let is_collector = |pid: &u32| {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
            // The state and the parent follow the name in parentheses.
            let stat = read("stat");
            let is_child =
                stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&*parent);
            let program = self.collector.to_str().unwrap();
            is_child && read("cmdline").starts_with(&format!("{program}\0--config\0"))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.into_iter().find(is_collector)
    }
}

impl Drop for Supervisor {
    /// By SIGINT: if it is killed, the Collector goes on for some seconds.
    fn drop(&mut self) {
        let Some(process) = self.process.as_mut() else { return };
        if process.ended().is_some() {
            return;
        }
        process.signal(Signal::INT);
        let begun = Instant::now();
        while process.ended().is_none() && begun.elapsed() < Duration::from_secs(20) {
            sleep(POLL);
        }
    }
}

fn listens(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

#[track_caller]
fn assert_is_masked(shown: &Value, address: SocketAddr) {
    let effective = shown["effective_config"][""].as_str().unwrap();
    assert!(effective.contains(&address.to_string()), "{effective}");
    assert!(effective.contains("********") && !effective.contains(SECRET), "{effective}");
}

/// A Collector runs its configuration through new revisions, one that fails its check, and restarts of all three programs.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_supervised_collector_runs_its_configuration() {
    let mut opamp = Opamp::start(false);
    let (first, second) = (free_address(), free_address());
    opamp.put(&opamp.pipeline(first));
    let Some(mut supervisor) = Supervisor::start(&opamp, &[]) else { return };
    let shown = opamp.wait_until_applied();
    let uid = shown["id"].clone();
    assert!(listens(first));
    assert_is_masked(&shown, first);
    opamp.forwards(first, "through the first revision");

    opamp.put(&opamp.pipeline(second));
    opamp.wait_until_applied();
    assert!(listens(second) && !listens(first), "the Collector has changed");
    opamp.forwards(second, "through the second revision");

    let before = supervisor.collector().expect("the Collector runs");
    opamp.cli(&["collector", "restart", uid.as_str().unwrap()]).succeeded();
    let restarted = until_some(SOON, "the Collector to restart", || {
        supervisor.collector().filter(|pid| *pid != before && listens(second))
    });

    opamp.gateway.kill9();
    opamp.gateway.start();
    let shown = opamp.wait_for_collector("back after the gateway's crash", |shown| {
        shown["connected"] == true && shown["healthy"] == true
    });
    assert_eq!((&shown["id"], &shown["config_status"]), (&uid, &json!("applied")));
    opamp.forwards(second, "after the gateway's crash");
    assert_eq!(opamp.configs_sent(), 0.0, "it had its configuration");

    // With `validate_config` the Collector checks a configuration before the running one is stopped.
    opamp.put(&opamp.broken_pipeline(first));
    let shown = opamp.wait_for_collector("failed", |shown| shown["config_status"] == "failed");
    assert!(shown["config_error"].as_str().unwrap().contains("unknown type: \"zipkin\""), "{shown:#}");
    until(SOON, "the roll-out to stop", || opamp.config()["rollout"] == "stopped");
    opamp.forwards(second, "in spite of the third revision");
    assert_eq!(supervisor.collector(), Some(restarted), "only the command restarted it");

    opamp.put(&opamp.pipeline(first));
    opamp.wait_until_applied();
    opamp.forwards(first, "through the corrected revision");
    let sent = opamp.configs_sent();
    supervisor.stop();
    opamp.wait_for_collector("gone", |shown| shown["connected"] == false);
    supervisor.run();
    until(SOON, "the Collector to start", || listens(first));
    let shown = opamp.wait_until_applied();
    assert_eq!(shown["id"], uid);
    assert_eq!(opamp.configs_sent(), sent, "the supervisor had its configuration");
}

/// Without `validate_config`, a Collector that cannot run its configuration is down until the next revision.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_configuration_that_ends_the_collector_stops_the_roll_out() {
    let opamp = Opamp::start(false);
    let address = free_address();
    opamp.put(&opamp.pipeline(address));
    let changes = [("validate_config: true", "validate_config: false")];
    let Some(_supervisor) = Supervisor::start(&opamp, &changes) else { return };
    opamp.wait_until_applied();
    opamp.put(&opamp.broken_pipeline(address));
    let shown = opamp.wait_for_collector("failed", |shown| shown["config_status"] == "failed");
    assert!(shown["config_error"].as_str().unwrap().contains("exit code 1"), "{shown:#}");
    until(SOON, "the roll-out to stop", || opamp.config()["rollout"] == "stopped");
    assert!(!listens(address), "the supervisor does not return to the earlier revision");
    opamp.put(&opamp.pipeline(address));
    opamp.wait_until_applied();
    opamp.forwards(address, "through the corrected revision");
    assert_eq!(opamp.configs_sent(), 3.0);
}

/// A supervisor starts with the last configuration received, even one that failed the check. A corrected one then fails too, until the
/// supervisor is restarted: the check compares both together, in versions before
/// <https://github.com/open-telemetry/opentelemetry-collector-contrib/pull/50154>.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_supervisor_restarted_after_a_failed_check_needs_another_restart() {
    let opamp = Opamp::start(false);
    let (address, other) = (free_address(), free_address());
    opamp.put(&opamp.broken_pipeline(address));
    let Some(mut supervisor) = Supervisor::start(&opamp, &[]) else { return };
    opamp
        .wait_for_collector("failed", |shown| shown["config_status"] == "failed" && shown["healthy"] == true);
    supervisor.stop();
    opamp.wait_for_collector("gone", |shown| shown["connected"] == false);
    supervisor.run();
    opamp.wait_for_collector("down", |shown| {
        shown["connected"] == true && shown["health"].as_str().unwrap().contains("exit code=1")
    });
    opamp.put(&opamp.pipeline(address));
    until(CHANGED, "the corrected revision to fail", || opamp.config()["rollout"] == "stopped");
    supervisor.stop();
    supervisor.run();
    until(SOON, "the corrected revision to run", || listens(address));
    let shown = opamp.wait_for_collector("healthy", |shown| shown["healthy"] == true);
    assert_eq!(shown["config_status"], "failed", "the supervisor does not report again");
    opamp.put(&opamp.pipeline(other));
    opamp.wait_until_applied();
    opamp.forwards(other, "through a later revision");
}

/// A Collector sends its own metrics, traces and logs to the URL of `own_telemetry`.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_supervised_collector_sends_its_own_telemetry() {
    let mut opamp = Opamp::start(true);
    let address = free_address();
    opamp.put(&opamp.pipeline(address));
    // It sends its metrics by default. The supervisor polls.
    let more = "accepts_remote_config: true\n  reports_own_traces: true\n  reports_own_logs: true";
    let Some(supervisor) =
        Supervisor::start(&opamp, &[("wss:", "https:"), ("accepts_remote_config: true", more)])
    else {
        return;
    };
    let uid = opamp.wait_until_applied()["id"].clone();
    opamp.forwards(address, "makes a span");
    let collector = supervisor.collector();
    opamp.gateway.kill9();
    opamp.gateway.start();
    opamp.wait_for_collector("seen after the gateway's crash", |shown| !shown["seen_seconds_ago"].is_null());
    opamp.forwards(address, "after the gateway's crash");
    assert_eq!(supervisor.collector(), collector, "the same URL, offered again, does not restart it");
    // Metrics go out every minute, and when it stops.
    opamp.cli(&["collector", "restart", uid.as_str().unwrap()]).succeeded();
    for table in ["metric_points", "spans", "logs"] {
        until(CHANGED, table, || {
            !opamp.gateway.lake_rows_with(table, &["--service", "collector"]).is_empty()
        });
    }
}

/// A Collector without a supervisor reports over either transport, and is sent no configuration.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_collector_without_a_supervisor_is_listed() {
    let Some(binary) = real_program("opamp-supervisor", "collector") else { return };
    for transport in ["ws", "http"] {
        let opamp = Opamp::start(false);
        let address = free_address();
        opamp.put("receivers: {}\n");
        let folder = opamp.gateway.folder();
        let extension =
            opamp.example("extensions:", &binary, folder).replace("ws:", &format!("{transport}:"));
        fs::write(folder.join("extension.yaml"), extension.replace("wss:", &format!("{transport}s:")))
            .unwrap();
        fs::write(folder.join("pipeline.yaml"), opamp.pipeline(address)).unwrap();
        let mut command = Command::new(&binary);
        command.current_dir(folder).args(["--config", "extension.yaml", "--config", "pipeline.yaml"]);
        let collector = Program::start("collector", command, folder);
        let shown = opamp.wait_for_collector("healthy", |shown| {
            shown["healthy"] == true && shown["effective_config"][""].is_string()
        });
        assert_is_masked(&shown, address);
        assert_eq!((&shown["accepts_config"], &shown["config"]), (&json!(false), &json!("main")));
        assert_eq!(
            (&shown["connected"], &shown["config_status"]),
            (&json!(transport == "ws"), &json!("unset"))
        );
        opamp.forwards(address, "without a supervisor");
        assert_eq!(opamp.configs_sent(), 0.0);
        assert_eq!(collector.term(), 0);
    }
}
