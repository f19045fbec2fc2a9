//! A PostgreSQL server for tests: in a folder of its own, on a free port of loopback, as a user without rights. It ends with
//! the test.

#![allow(clippy::unwrap_used, reason = "a harness: its failures are the tests'")]

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Its name in `TIDEGATE_TEST_WITHOUT`.
const NAME: &str = "postgresql";
/// Where Debian has the versions of PostgreSQL.
const VERSIONS: &str = "/usr/lib/postgresql";
/// How long a start or an end may take on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Debian's `nobody`.
const NOBODY: u32 = 65534;
const RANGE: std::ops::Range<u16> = 5_500..9_500;

/// A server. Dropped, it is stopped and leaves nothing.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl PostgresServer {
    /// Starts one; none where PostgreSQL is not installed, which it says on the terminal. Where `CI` is set, that fails the test,
    /// unless `TIDEGATE_TEST_WITHOUT` names `postgresql`.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start() -> Option<PostgresServer> {
        let Some(programs) = programs() else {
            let variable = |name| std::env::var(name).unwrap_or_default();
            let is_meant = variable("TIDEGATE_TEST_WITHOUT").split(',').any(|name| name.trim() == NAME);
            let why = format!("PostgreSQL is not in {VERSIONS}; `make test` installs it");
            assert!(
                !matches!(&*variable("CI"), "true" | "1") || is_meant,
                "{why}; TIDEGATE_TEST_WITHOUT={NAME} says that this is meant to be so"
            );
            // Not by a macro: the test harness catches what those print.
            let _closed = writeln!(std::io::stderr(), "SKIPPED: {why}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        if is_root() {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut server = PostgresServer { folder, programs, port: free_port(), running: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args([
                "--auth=trust",
                "--username=tidegate",
                "--no-sync",
                "--no-instructions",
                "--encoding=UTF8",
                "--locale=C",
            ])
            .args(["-D", &data])
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.go_on();
        Some(server)
    }

    /// Where its database `name` is, which is made.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://tidegate@127.0.0.1:{}/{name}", self.port)
    }

    /// Runs SQL in a database; what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let ran = Command::new(self.programs.join("psql"))
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "tidegate",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-qAtc",
                sql,
            ])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    /// Encrypts connections that ask for it, with this certificate and its key, as PEM.
    ///
    /// # Panics
    /// When the files cannot be written.
    pub fn encrypt(&self, certificate: &str, key: &str) {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let path = Path::new(&self.data()).join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.sql("postgres", "SELECT pg_reload_conf()");
        wait_for("TLS", || self.sql("postgres", "SHOW ssl").trim() == "on");
    }

    /// Starts it again where it was stopped, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn go_on(&mut self) {
        let log =
            std::fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let (data, port) = (self.data(), self.port.to_string());
        let settings = [
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=16MB",
            "-c",
            "max_connections=40",
        ];
        let started = self
            .command("postgres")
            .args(["-D", &data, "-p", &port])
            .args(settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.running = Some(started.unwrap());
        // By what it says of itself: another's server may have been quicker on this port.
        let asks = [
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "tidegate",
            "-d",
            "postgres",
            "-Atc",
            "SHOW data_directory",
        ];
        wait_for("PostgreSQL to start", || {
            let said = Command::new(self.programs.join("psql")).args(asks).output().unwrap();
            String::from_utf8_lossy(&said.stdout).trim() == data
        });
    }

    /// Stops it: its clients' connections break.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let killed = Command::new("kill").args(["-QUIT", &running.id().to_string()]).status();
        assert!(killed.unwrap().success());
        wait_for("PostgreSQL to end", || running.try_wait().unwrap().is_some());
    }

    fn data(&self) -> String {
        self.folder.path().join("data").to_str().unwrap().to_owned()
    }

    /// A program of PostgreSQL, as a user that it agrees to run as.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = Path::new(VERSIONS)
        .read_dir()
        .ok()?
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|programs| programs.join("postgres").exists() && programs.join("psql").exists())
        .collect();
    versions.sort();
    versions.pop()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    Path::new("/proc/self").metadata().is_ok_and(|own| own.uid() == 0)
}

/// A port that nobody has, and no other server of this process. Below those of outgoing connections, so that it stays free while
/// the server is stopped.
fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let ports = (0..RANGE.len()).map(|_| {
        let number = std::process::id().wrapping_mul(37).wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        RANGE.start + u16::try_from(number % 4_000).unwrap()
    });
    let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().expect("no free port on loopback")
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONGEST, "waited in vain for {what}");
        std::thread::sleep(POLL);
    }
}
