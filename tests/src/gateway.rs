//! The gateway as its operator and its clients meet it: a process, a configuration, ports.

use crate::http::{self, Answer};
use crate::{Cgroup, Finished, Program, SOON, finish, free_address, until};
use rustix::process::Signal;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tidegate_load::Target;

/// A gateway with a folder and ports of its own, which it keeps from one start to the next.
#[derive(Debug)]
pub struct Gateway {
    // First, so that the process is gone before its folder and its cgroup are.
    process: Option<Program>,
    cgroup: Option<Cgroup>,
    /// How many files it may have open.
    files: Option<u32>,
    /// Its environment besides that of the test.
    environment: Vec<(String, String)>,
    folder: TempDir,
    http: SocketAddr,
    grpc: SocketAddr,
    admin: SocketAddr,
}

impl Gateway {
    /// A gateway with these settings, which need not have `data` and `listen`; it is not started yet.
    ///
    /// # Panics
    /// When there is no folder or no port to be had.
    pub fn new(settings: Value) -> Gateway {
        let folder = tempfile::Builder::new().prefix("tidegate-test-").tempdir().unwrap();
        let (http, grpc, admin) = (free_address(), free_address(), free_address());
        let gateway = Gateway {
            process: None,
            cgroup: None,
            files: None,
            environment: vec![],
            folder,
            http,
            grpc,
            admin,
        };
        gateway.configure(settings);
        gateway
    }

    /// One that is started and ready.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn started(settings: Value) -> Gateway {
        let mut gateway = Gateway::new(settings);
        gateway.start();
        gateway
    }

    /// Writes the configuration anew: for the next start, or for SIGHUP.
    ///
    /// # Panics
    /// When the settings are not a mapping.
    pub fn configure(&self, settings: Value) {
        let mut settings: Map<String, Value> = serde_json::from_value(settings).unwrap();
        settings.entry("data").or_insert_with(|| json!(self.data()));
        settings
            .entry("listen")
            .or_insert_with(|| json!({"http": self.http, "grpc": self.grpc, "admin": self.admin}));
        // Every JSON text is a YAML text.
        self.configure_text(&serde_json::to_string_pretty(&settings).unwrap());
    }

    /// Writes this text as the configuration.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn configure_text(&self, text: &str) {
        std::fs::write(self.config(), text).unwrap();
    }

    /// From now on it is started in a cgroup with this memory limit; `false`, said loudly, where that is not
    /// possible.
    pub fn limit_memory(&mut self, bytes: u64) -> bool {
        self.cgroup = Cgroup::new(bytes);
        self.cgroup.is_some()
    }

    /// From now on it is started with this limit on open files.
    pub fn limit_files(&mut self, files: u32) {
        self.files = Some(files);
    }

    /// From now on it is started with this environment variable.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The cgroup in which it runs.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Starts it, again perhaps, and waits until it is ready.
    ///
    /// # Panics
    /// When it is running, or does not become ready.
    pub fn start(&mut self) {
        self.launch();
        let admin = self.admin;
        until(SOON, "the gateway to be ready", || {
            assert_eq!(self.process().ended(), None, "the gateway ended while it was starting");
            http::get(admin, "/ready").is_ok_and(|answer| answer.status == 200)
        });
    }

    /// Starts it and waits for nothing.
    ///
    /// # Panics
    /// When it is running.
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "the gateway is running");
        let mut command = match &self.cgroup {
            Some(cgroup) => cgroup.command(&binary()),
            None => self.unconfined(),
        };
        command.arg("run").arg("--config").arg(self.config()).current_dir(self.folder());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.process = Some(Program::start("tidegate", command, self.folder()));
    }

    /// Starts it, expecting that it ends at once by itself.
    ///
    /// # Panics
    /// When it does not.
    pub fn refuses_to_start(&mut self) -> Finished {
        let mut command = self.unconfined();
        command.arg("run").arg("--config").arg(self.config()).current_dir(self.folder());
        let mut process = Program::start("refused", command, self.folder());
        let code = process.wait(SOON).code();
        Finished { code, stdout: process.stdout(), stderr: process.stderr() }
    }

    /// The program, without a cgroup.
    fn unconfined(&self) -> Command {
        let Some(files) = self.files else { return Command::new(binary()) };
        let mut command = Command::new("sh");
        // The shell becomes the program: the process number stays.
        command.arg("-c").arg(format!("ulimit -n {files} && exec \"$0\" \"$@\"")).arg(binary());
        command
    }

    /// Asks it to stop (SIGTERM) and waits for its end; the exit code.
    ///
    /// # Panics
    /// When it is not running, or does not end soon, or is ended by a signal.
    pub fn term(&mut self) -> i32 {
        self.process.take().expect("the gateway is not running").term()
    }

    /// Kills it (SIGKILL).
    ///
    /// # Panics
    /// When it is not running.
    pub fn kill9(&mut self) {
        self.process.take().expect("the gateway is not running").kill9();
    }

    /// Asks it to read its configuration again (SIGHUP).
    ///
    /// # Panics
    /// When it is not running.
    pub fn hangup(&mut self) {
        self.process().signal(Signal::HUP);
    }

    /// The running process.
    ///
    /// # Panics
    /// When there is none.
    pub fn process(&mut self) -> &mut Program {
        self.process.as_mut().expect("the gateway is not running")
    }

    /// The most memory that was ever resident, in bytes: the kernel's own figure.
    ///
    /// # Panics
    /// When it is not running.
    pub fn hwm(&self) -> u64 {
        self.process.as_ref().expect("the gateway is not running").hwm()
    }

    /// Its log, of all its runs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("tidegate.err")).unwrap_or_default()
    }

    /// Where it takes data.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where it takes the same, for clients of gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where it shows how it is doing.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Where to write to.
    pub fn target(&self) -> Target {
        Target::remote_write(self.http)
    }

    /// Where to send OTLP to, for clients of gRPC.
    pub fn otlp_target(&self) -> Target {
        Target { authority: self.grpc.to_string(), path: String::new() }
    }

    /// A folder of its own, for whatever belongs to the test; removed in the end.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// Its configuration.
    pub fn config(&self) -> PathBuf {
        self.folder().join("tidegate.yaml")
    }

    /// A page of the admin port.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn page(&self, path: &str) -> Answer {
        http::get(self.admin, path).unwrap_or_else(|error| panic!("asking for {path}: {error}"))
    }

    /// How it is doing: `/status.json`.
    ///
    /// # Panics
    /// When there is no such answer.
    pub fn status(&self) -> Value {
        self.page("/status.json").json()
    }

    /// All metrics, by name with labels as they stand in the text.
    ///
    /// # Panics
    /// When there is no such answer.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        let text = self.page("/metrics").text();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect(line);
                (name.to_owned(), value.parse().expect(line))
            })
            .collect()
    }

    /// The status of the sink with this name.
    ///
    /// # Panics
    /// When there is no such sink.
    pub fn sink(&self, name: &str) -> Value {
        let status = self.status();
        let sinks = status["sinks"].as_array().into_iter().flatten();
        let found = sinks.into_iter().find(|sink| sink["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("there is no sink `{name}` in {status}"))
    }

    /// Waits until no request is open and no sink has anything queued; returns the status that says so.
    ///
    /// # Panics
    /// When that does not come within `deadline`.
    pub fn at_rest(&self, deadline: Duration) -> Value {
        let mut last = Value::Null;
        until(deadline, "the gateway to come to rest", || {
            last = self.status();
            let books = &last["books"];
            let none = |list: &str, field: &str| {
                books[list].as_array().is_some_and(|list| list.iter().all(|book| book[field] == 0))
            };
            none("sources", "open") && none("sinks", "queued")
        });
        last
    }

    /// P4: what was received is accepted or refused; what was accepted is delivered, queued or dropped.
    ///
    /// # Panics
    /// When there is any difference.
    #[track_caller]
    pub fn books_close(&self) {
        let books = self.status()["books"].clone();
        let all = ["sources", "sinks"].into_iter().flat_map(|list| books[list].as_array());
        let mut lines = all.flatten().chain([&books["journal"], &books]);
        assert!(lines.all(|line| line["difference"] == 0), "the books do not close: {books:#}");
    }

    /// The rows of a table of the lake, as `tidegate lake cat --format ndjson` prints them.
    ///
    /// # Panics
    /// When that fails.
    pub fn lake_rows(&self, table: &str) -> Vec<Value> {
        self.lake_rows_with(table, &[])
    }

    /// The same with more arguments, such as filters.
    ///
    /// # Panics
    /// When that fails.
    pub fn lake_rows_with(&self, table: &str, more: &[&str]) -> Vec<Value> {
        let data = self.data();
        let args = ["lake", "cat", table, "--format", "ndjson", "--data", data.to_str().unwrap()];
        let printed = tidegate(&[&args, more].concat()).succeeded();
        printed.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// Runs the program with these arguments to its end.
///
/// # Panics
/// When it cannot be started.
pub fn tidegate(args: &[&str]) -> Finished {
    finish(&mut command(args))
}

/// The program with these arguments, to be started.
///
/// # Panics
/// When there is no program.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args);
    command
}

/// The program.
///
/// # Panics
/// When there is none.
pub fn binary() -> PathBuf {
    let binary = std::env::var_os("TIDEGATE_BIN").map_or_else(built, PathBuf::from);
    assert!(
        binary.is_file(),
        "there is no program at {}: run `cargo build --release -p tidegate`, or name one in TIDEGATE_BIN",
        binary.display()
    );
    binary
}

/// `release/tidegate` in the build folder of this test, which is `…/PROFILE/deps/TEST`.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(3).expect("the test is in a build folder");
    folder.join("release/tidegate")
}
