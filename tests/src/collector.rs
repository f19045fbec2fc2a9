//! An OpenTelemetry Collector as the one that receives: built of the Collector's own parts by `make test` (see
//! `tests/collector`), it writes down what it has understood.

use crate::{Program, SOON, free_address, http, skip, until};
use serde_json::{Map, Value, json};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A Collector with a folder and ports of its own, which it keeps from one start to the next.
#[derive(Debug)]
pub struct Collector {
    // First, so that the process is gone before its folder is.
    process: Option<Program>,
    folder: TempDir,
    grpc: SocketAddr,
    http: SocketAddr,
}

/// The names by which OTLP/JSON knows a signal's lists: file, resources, scopes, items.
const SIGNALS: [[&str; 4]; 3] = [
    ["traces", "resourceSpans", "scopeSpans", "spans"],
    ["logs", "resourceLogs", "scopeLogs", "logRecords"],
    ["metrics", "resourceMetrics", "scopeMetrics", "metrics"],
];
const KINDS: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];

/// The program; nothing, said loudly, where it was not built.
pub fn collector_binary() -> Option<PathBuf> {
    let found = std::env::var_os("TIDEGATE_TEST_COLLECTOR").filter(|value| !value.is_empty());
    if found.is_none() {
        skip("TIDEGATE_TEST_COLLECTOR", "TIDEGATE_TEST_COLLECTOR is not set; `make test` sets it");
    }
    found.map(PathBuf::from)
}

impl Collector {
    /// One that writes down what it gets, started and ready; nothing, said loudly, where it was not built.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn started() -> Option<Collector> {
        let pipeline = json!({"receivers": ["otlp"], "exporters": ["recorder"]});
        Collector::of(
            &json!({
                "receivers": {"otlp": {"protocols": {
                    "grpc": {"endpoint": "GRPC_ADDRESS"}, "http": {"endpoint": "HTTP_ADDRESS"},
                }}},
                "exporters": {"recorder": {"folder": "FOLDER"}},
                "service": {
                    "telemetry": {"metrics": {"level": "none"}},
                    "pipelines": {"traces": pipeline, "metrics": pipeline, "logs": pipeline},
                },
            })
            .to_string(),
        )
    }

    /// One with this configuration, started and ready; nothing, said loudly, where it was not built. `GRPC_ADDRESS`,
    /// `HTTP_ADDRESS` and `FOLDER` in the configuration stand for its own.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn of(configuration: &str) -> Option<Collector> {
        let binary = collector_binary()?;
        let folder = tempfile::Builder::new().prefix("collector-test-").tempdir().unwrap();
        let (grpc, http) = (free_address(), free_address());
        let configuration = configuration
            .replace("GRPC_ADDRESS", &grpc.to_string())
            .replace("HTTP_ADDRESS", &http.to_string())
            .replace("FOLDER", folder.path().to_str().unwrap());
        fs::write(folder.path().join("collector.yaml"), configuration).unwrap();
        let mut collector = Collector { process: None, folder, grpc, http };
        collector.start_from(&binary);
        Some(collector)
    }

    /// Starts it again.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn start(&mut self) {
        let binary = collector_binary().expect("it was built before");
        self.start_from(&binary);
    }

    fn start_from(&mut self, binary: &std::path::Path) {
        assert!(self.process.is_none(), "the Collector is running");
        let mut command = Command::new(binary);
        command.arg("--config").arg(self.folder.path().join("collector.yaml"));
        let process = self.process.insert(Program::start("collector", command, self.folder.path()));
        let (grpc, http) = (self.grpc, self.http);
        until(SOON, "the Collector to be ready", || {
            assert_eq!(process.ended(), None, "the Collector ended while it was starting");
            // Whatever it answers to that.
            std::net::TcpStream::connect(grpc).is_ok() && http::get(http, "/").is_ok()
        });
    }

    /// Kills it (SIGKILL).
    ///
    /// # Panics
    /// When it is not running.
    pub fn kill9(&mut self) {
        self.process.take().expect("the Collector is not running").kill9();
        // An unfinished line was not acknowledged, and the next output begins a new line.
        for [file, ..] in SIGNALS {
            let path = self.folder.path().join(file);
            let Ok(text) = fs::read(&path) else { continue };
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            fs::write(&path, &text[..whole]).unwrap();
        }
    }

    /// Where it takes OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where it takes OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// From now on it takes nothing: it is unavailable, and asks for this delay, as `1s`, unless it is empty.
    ///
    /// # Panics
    /// When that cannot be said.
    pub fn refuse(&self, delay: &str) {
        // In one step, so that it is never read half written.
        let (draft, order) = (self.folder.path().join("draft"), self.folder.path().join("refuse"));
        fs::write(&draft, delay).unwrap();
        fs::rename(draft, order).unwrap();
    }

    /// Takes everything again.
    ///
    /// # Panics
    /// When that cannot be said.
    pub fn accept(&self) {
        fs::remove_file(self.folder.path().join("refuse")).unwrap();
    }

    /// When each of the requests came that were refused, in milliseconds since 1970.
    pub fn refused(&self) -> Vec<u64> {
        let noted = fs::read_to_string(self.folder.path().join("refused")).unwrap_or_default();
        noted.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Forgets what it has written down.
    pub fn forget(&self) {
        for [file, ..] in SIGNALS {
            // Where nothing was written there is nothing to forget.
            let _missing = fs::remove_file(self.folder.path().join(file));
        }
    }

    /// All items that it has written down, each with its resource, its scope and, for a point, its metric;
    /// as text, in order.
    ///
    /// # Panics
    /// When it has written something else.
    pub fn items(&self) -> Vec<String> {
        let mut items = Vec::new();
        for [file, resources, scopes, list] in SIGNALS {
            let text = fs::read_to_string(self.folder.path().join(file)).unwrap_or_default();
            // Text after the last newline is still being written.
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            for line in whole.lines() {
                let request: Value = serde_json::from_str(line).expect(line);
                for resource in each(&request, resources) {
                    for scope in each(resource, scopes) {
                        let around = [without(resource, scopes), without(scope, list)];
                        items.extend(
                            each(scope, list).flat_map(points).map(|item| json!([around, item]).to_string()),
                        );
                    }
                }
            }
        }
        items.sort_unstable();
        items
    }
}

fn each<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    object[list].as_array().into_iter().flatten()
}

fn without(object: &Value, field: &str) -> Map<String, Value> {
    let mut object = object.as_object().cloned().unwrap_or_default();
    object.remove(field);
    object
}

/// A metric once for each of its points; anything else as it is.
fn points(item: &Value) -> Vec<Value> {
    let Some(kind) = KINDS.into_iter().find(|kind| item.get(kind).is_some()) else {
        return vec![item.clone()];
    };
    let about = [without(item, kind), without(&item[kind], "dataPoints")];
    each(&item[kind], "dataPoints").map(|point| json!([about, kind, point])).collect()
}
