//! An OpenSearch node as the one that receives: its artefacts are fetched by `make test` (see `tests/opensearch`).

use crate::http::{self, Answer};
use crate::{Program, free_address, skip, until};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// How long a node may take to start, on a busy machine.
const START: Duration = Duration::from_secs(240);

/// A node with a folder and a port of its own, which it keeps from one start to the next.
#[derive(Debug)]
pub struct OpenSearch {
    // First, so that the process is gone before its folder is.
    process: Option<Program>,
    folder: TempDir,
    artefacts: PathBuf,
    address: SocketAddr,
    settings: Vec<String>,
}

impl OpenSearch {
    /// One that is started and ready, with these settings, each as `name=value`; nothing, said loudly, where its
    /// artefacts were not fetched.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn started(settings: &[&str]) -> Option<OpenSearch> {
        OpenSearch::of("TIDEGATE_TEST_OPENSEARCH", "", settings)
    }

    /// The same of Elasticsearch 7.17, whose parts are in `tests/shippers/elasticsearch`: it has no data streams.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn elasticsearch(settings: &[&str]) -> Option<OpenSearch> {
        OpenSearch::of("TIDEGATE_TEST_SHIPPERS", "elasticsearch", settings)
    }

    fn of(variable: &str, folder: &str, settings: &[&str]) -> Option<OpenSearch> {
        let found = std::env::var_os(variable).filter(|value| !value.is_empty());
        let Some(artefacts) = found.map(|found| PathBuf::from(found).join(folder)) else {
            skip(variable, &format!("{variable} is not set; `make test` sets it"));
            return None;
        };
        let folder = tempfile::Builder::new().prefix("opensearch-test-").tempdir().unwrap();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut node = OpenSearch { process: None, folder, artefacts, address: free_address(), settings };
        node.start();
        Some(node)
    }

    /// Starts it, again perhaps.
    ///
    /// # Panics
    /// When it is running, or does not become ready.
    pub fn start(&mut self) {
        assert!(self.process.is_none(), "OpenSearch is running");
        let mut command = Command::new("java");
        command.args(["-Xms384m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.args([
            "--add-opens",
            "java.base/java.lang=ALL-UNNAMED",
            "-cp",
            "target/classes:target/lib/*",
            "Main",
        ]);
        command.arg(self.address.port().to_string()).arg(self.folder.path()).args(&self.settings);
        command.current_dir(&self.artefacts);
        self.process = Some(Program::start("opensearch", command, self.folder.path()));
        let address = self.address;
        until(START, "OpenSearch to be ready", || {
            let ended = self.process.as_mut().and_then(Program::ended);
            assert_eq!(ended, None, "OpenSearch ended while it was starting");
            let health = http::get(address, "/_cluster/health");
            health.is_ok_and(|answer| answer.status == 200 && answer.json()["status"] != "red")
        });
    }

    /// Kills it (SIGKILL).
    ///
    /// # Panics
    /// When it is not running.
    pub fn kill9(&mut self) {
        self.process.take().expect("OpenSearch is not running").kill9();
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it something.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let line = format!("{method} {path} HTTP/1.1");
        let head = [line.as_str(), "Content-Type: application/json", "Connection: close"];
        http::request(self.address, &head, body.as_bytes()).unwrap()
    }

    /// All documents of an index or a data stream, each with its `_id`, at most 10,000.
    ///
    /// # Panics
    /// When it cannot be searched.
    pub fn documents(&self, index: &str) -> Vec<(String, Value)> {
        self.ask("POST", &format!("/{index}/_refresh"), "");
        let answer =
            self.ask("GET", &format!("/{index}/_search?size=10000&ignore_unavailable=true"), "").json();
        let hits = answer["hits"]["hits"].as_array().unwrap_or_else(|| panic!("{answer}"));
        hits.iter().map(|hit| (hit["_id"].as_str().unwrap().to_owned(), hit["_source"].clone())).collect()
    }
}
