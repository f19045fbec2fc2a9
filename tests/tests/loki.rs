//! Loki's clients send to tidegate, and tidegate to Loki's own decoder: every line arrives, with its time, its labels,
//! its metadata and its tenant, although the gateway is killed on the way.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tidegate_tests::{Gateway, Program, SOON, http, skip, until, until_some};

/// How long everything may take to arrive, on a busy machine.
const DRAINED: Duration = Duration::from_secs(120);
/// Lines of one client.
const EACH: usize = 200;

fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        skip(name, &format!("{name} is not set; `make test` sets it"));
    }
    found
}

/// A server with Loki's own decoder.
struct Loki {
    program: Program,
    url: String,
    _folder: tempfile::TempDir,
}

impl Loki {
    fn start(binary: &Path) -> Loki {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(binary);
        command.arg("serve");
        let program = Program::start("loki", command, folder.path());
        let address = until_some(SOON, "the address of the server", || {
            program.stdout().split_once('\n').map(|(address, _)| address.to_owned())
        });
        Loki { program, url: format!("http://{address}"), _folder: folder }
    }

    /// The entries that arrived.
    fn entries(&self) -> Vec<Value> {
        let text = self.program.stdout();
        // The last line may be on its way.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often each line of a service arrived, by its service.
    fn lines(&self) -> BTreeMap<String, BTreeMap<String, usize>> {
        let mut lines = BTreeMap::<String, BTreeMap<String, usize>>::new();
        for entry in self.entries() {
            let service = entry["labels"]["service_name"].as_str().unwrap().to_owned();
            *lines
                .entry(service)
                .or_default()
                .entry(entry["line"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        lines
    }
}

fn gateway(loki: &Loki) -> Gateway {
    Gateway::started(json!({
        "memory": "64MiB",
        "tenants": {"header": "X-Scope-OrgID"},
        "sinks": {"loki": {
            "type": "loki", "endpoints": [loki.url], "linger": "50ms", "tenant_header": "X-Scope-OrgID",
        }},
    }))
}

fn programs() -> Option<(PathBuf, PathBuf)> {
    let python = tool("TIDEGATE_TEST_PYTHON")?;
    Some((python, tool("TIDEGATE_TEST_SHIPPERS")?.join("loki/loki")))
}

#[test]
fn clients_of_loki_send_to_loki_through_tidegate() {
    let Some((python, loki_program)) = programs() else { return };
    let loki = Loki::start(&loki_program);
    let mut gateway = gateway(&loki);
    let url = format!("http://{}/loki/api/v1/push", gateway.http());
    let folder = tempfile::tempdir().unwrap();
    let client = |name: &str, mut command: Command| {
        command.args([&url, "team-a", &EACH.to_string()]);
        Program::start(name, command, folder.path())
    };
    let mut in_go = Command::new(&loki_program);
    in_go.arg("push");
    let mut in_python = Command::new(&python);
    in_python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("shippers/loki.py"));
    let mut clients = [client("go", in_go), client("python", in_python)];
    for client in &mut clients {
        let status = client.wait(DRAINED);
        assert!(status.success(), "{}\n{}", client.stderr(), gateway.log());
    }
    // Lines that were answered with 204 are on disk.
    gateway.kill9();
    gateway.start();
    until(DRAINED, "every line to arrive", || {
        loki.lines().values().map(BTreeMap::len).sum::<usize>() == 2 * EACH
    });
    for (service, lines) in loki.lines() {
        assert!((0..EACH).all(|number| lines.contains_key(&format!("line {number}"))), "{service}");
    }
    for entry in loki.entries() {
        let number: usize = entry["line"].as_str().unwrap().strip_prefix("line ").unwrap().parse().unwrap();
        assert_eq!(entry["labels"]["path"], format!("\"{}\"\n", number % 2), "{entry}");
        assert_eq!(entry["tenant"], "team-a");
        assert_eq!(entry["metadata"], json!({}), "a relayed entry has what it came with");
        assert!(entry["time"].as_u64().unwrap() > 1_700_000_000_000_000_000);
        if entry["labels"]["service_name"] == "python" {
            assert_eq!(entry["labels"]["severity"], "warning", "{entry}");
        }
    }
    gateway.at_rest(DRAINED);
    gateway.books_close();
}

/// Records of OTLP have the labels and the metadata that Loki's own OTLP endpoint gives them.
#[test]
fn records_of_otlp_become_streams() {
    let Some((_, loki_program)) = programs() else { return };
    let loki = Loki::start(&loki_program);
    let gateway = gateway(&loki);
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let body = json!({"resourceLogs": [{
        "resource": {"attributes": [text("service.name", "shop"), text("host.name", "a")]},
        "scopeLogs": [{"scope": {"name": "lib"}, "logRecords": [{
            "timeUnixNano": "1790000000000000001", "severityText": "INFO", "severityNumber": 9,
            "body": {"stringValue": "paid \"7\"\n"}, "attributes": [text("http.route", "/é")],
            "traceId": "5b8efff798038103d269b633813fc60c",
        }]}],
    }]});
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json", "X-Scope-OrgID: team-b"];
    let answer = http::request(gateway.http(), &head, body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    until(SOON, "the record to arrive", || loki.entries().len() == 1);
    let expected = json!({
        "labels": {"service_name": "shop"}, "time": 1_790_000_000_000_000_001_u64, "line": "paid \"7\"\n", "tenant": "team-b",
        "metadata": {
            "host_name": "a", "scope_name": "lib", "http_route": "/é", "severity_number": "9", "severity_text": "INFO",
            "trace_id": "5b8efff798038103d269b633813fc60c",
        },
    });
    assert_eq!(loki.entries(), [expected]);
}
