//! Telegraf's HTTP listener behind the sink `http`: a reader of JSON that nobody wrote for this gateway.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, Program, SOON, free_address, now_ms, real_program, until};

/// Log records in a request.
const RECORDS: i64 = 50;

/// Takes a JSON array of objects, and writes each as a line.
struct Telegraf {
    // First, so that the process is gone before its folder is.
    process: Option<Program>,
    binary: PathBuf,
    folder: TempDir,
    address: SocketAddr,
}

impl Telegraf {
    /// One that refuses requests of more than `most` bytes with 413.
    fn started(most: usize) -> Option<Telegraf> {
        let binary = real_program("telegraf", "telegraf")?;
        let folder = tempfile::Builder::new().prefix("telegraf-test-").tempdir().unwrap();
        let address = free_address();
        let config = format!(
            r#"
            [agent]
            flush_interval = "100ms"
            omit_hostname = true
            skip_processors_after_aggregators = true

            [[inputs.http_listener_v2]]
            service_address = "tcp://{address}"
            paths = ["/in"]
            max_body_size = "{most}B"
            data_format = "json_v2"
            [[inputs.http_listener_v2.json_v2]]
            [[inputs.http_listener_v2.json_v2.object]]
            path = "@this"
            timestamp_key = "time"
            timestamp_format = "rfc3339"

            [[outputs.file]]
            files = ["{}"]
            data_format = "json"
            json_timestamp_units = "1ns"
            "#,
            folder.path().join("lines").display(),
        );
        std::fs::write(folder.path().join("telegraf.conf"), config).unwrap();
        let mut telegraf = Telegraf { process: None, binary, folder, address };
        telegraf.start();
        Some(telegraf)
    }

    fn start(&mut self) {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(self.path("telegraf.conf"));
        self.process = Some(Program::start("telegraf", command, self.folder.path()));
        until(SOON, "Telegraf to listen", || TcpStream::connect(self.address).is_ok());
    }

    /// By SIGTERM: what it has answered it keeps in memory until it has written it.
    fn end(&mut self) {
        assert_eq!(self.process.take().expect("Telegraf is not running").term(), 0);
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// The time and the fields of each record, by its number.
    fn records(&self) -> BTreeMap<i64, (i64, Value)> {
        let text = std::fs::read_to_string(self.path("lines")).unwrap_or_default();
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let record = |record: Value| {
            let number = record["fields"]["attributes_n"].as_i64().unwrap();
            (number, (record["timestamp"].as_i64().unwrap(), record["fields"].clone()))
        };
        records.map(record).collect()
    }
}

/// Sends some log records, numbered from `first`; their times are `base_ns` and their number.
fn send(gateway: &Gateway, base_ns: i64, first: i64) {
    let record = |number: i64| {
        json!({
            "timeUnixNano": (base_ns + number).to_string(), "severityNumber": 9,
            "body": {"stringValue": format!("paid \"{number}\"\n zürich")},
            "attributes": [{"key": "n", "value": {"intValue": number.to_string()}}],
        })
    };
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}]});
    let records: Vec<Value> = (first..first + RECORDS).map(record).collect();
    let body =
        json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}).to_string();
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
}

/// P2: every record arrives as it was, through a restart of either side, and although Telegraf takes only small requests.
#[test]
#[ignore = "`make test-real` runs it"]
fn telegraf_has_every_record() {
    for (compression, most) in [("none", 4_000), ("gzip", 1_000_000)] {
        let Some(mut telegraf) = Telegraf::started(most) else { return };
        let mut gateway = Gateway::started(json!({
            "memory": "96MiB",
            "sinks": {"app": {
                "type": "http", "endpoints": [format!("http://{}/in", telegraf.address)], "format": "json_array",
                "compression": compression, "signals": ["logs"], "backoff": {"min": "20ms", "max": "200ms"},
            }},
        }));
        let base_ns = now_ms() * 1_000_000;
        let mut first = 0;
        let mut more = |gateway: &Gateway| {
            for _ in 0..10 {
                send(gateway, base_ns, first);
                first += RECORDS;
            }
        };
        more(&gateway);
        telegraf.end();
        more(&gateway);
        until(SOON, "the sink to notice", || gateway.sink("app")["failures"].as_u64() > Some(2));
        gateway.kill9();
        gateway.start();
        more(&gateway);
        telegraf.start();
        more(&gateway);
        gateway.at_rest(SOON);
        until(SOON, "all records to be written", || telegraf.records().len() as i64 >= first);
        for (number, (time, fields)) in telegraf.records() {
            assert_eq!(time, base_ns + number);
            assert_eq!(fields["body"], format!("paid \"{number}\"\n zürich"), "{fields}");
            assert_eq!(fields["resource_attributes_service.name"], "checkout", "{fields}");
        }
        assert_eq!(gateway.sink("app")["dropped"], json!({}), "{}", gateway.sink("app"));
        gateway.books_close();
        println!("{compression}: Telegraf has all {first} records");
    }
}
