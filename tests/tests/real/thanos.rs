//! Thanos Receive behind the sink `prometheus_remote_write`.

use crate::remote_write::{Load, Receiver, SINK, everything_arrives, gateway};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tidegate_tests::http::{self, request};
use tidegate_tests::messages::{self, TimeSeries, WriteRequest};
use tidegate_tests::promql::{SamplesByLabels, raw_samples};
use tidegate_tests::{Gateway, Program, SOON, free_address, now_ms, real_program, until};

/// One `thanos receive`.
struct Receive {
    process: Option<Program>,
    binary: PathBuf,
    folder: PathBuf,
    name: String,
    hashring: Option<PathBuf>,
    write: SocketAddr,
    http: SocketAddr,
    grpc: SocketAddr,
    capnproto: SocketAddr,
}

impl Receive {
    /// One that stores, or, with a hashring, one that only routes.
    fn started(binary: &Path, folder: &Path, name: &str, hashring: Option<PathBuf>) -> Receive {
        let (write, http, grpc, capnproto) = (free_address(), free_address(), free_address(), free_address());
        let (binary, folder, name) = (binary.to_owned(), folder.to_owned(), name.to_owned());
        let mut receive =
            Receive { process: None, binary, folder, name, hashring, write, http, grpc, capnproto };
        receive.start();
        receive
    }

    fn start(&mut self) {
        let mut command = Command::new(&self.binary);
        command.arg("receive").current_dir(&self.folder).args([
            format!("--tsdb.path={}", self.name),
            format!("--label=replica=\"{}\"", self.name),
            format!("--remote-write.address={}", self.write),
            format!("--http-address={}", self.http),
            format!("--grpc-address={}", self.grpc),
            format!("--receive.capnproto-address={}", self.capnproto),
            // Takes again what was in flight when the gateway was killed.
            "--tsdb.out-of-order.time-window=1h".to_owned(),
        ]);
        match &self.hashring {
            Some(file) => command.args([
                format!("--receive.hashrings-file={}", file.display()),
                "--receive.hashrings-algorithm=ketama".to_owned(),
                "--receive.replication-factor=3".to_owned(),
            ]),
            None => command.arg(format!("--receive.local-endpoint={}", self.grpc)),
        };
        self.process = Some(Program::start(&self.name, command, &self.folder));
        self.is_ready();
    }

    fn is_ready(&self) {
        until(SOON, "Thanos Receive to be ready", || {
            http::get(self.http, "/-/ready").is_ok_and(|answer| answer.status == 200)
        });
    }

    fn kill9(&mut self) {
        self.process.take().expect("Thanos Receive is not running").kill9();
    }
}

/// Receivers, and a querier that asks those that store.
struct Thanos {
    // First, so that the processes are gone before their folder is.
    writer: Receive,
    stores: Vec<Receive>,
    _query: Program,
    query: SocketAddr,
    _folder: TempDir,
}

impl Thanos {
    /// A receiver that stores what is written to it.
    fn alone() -> Option<Thanos> {
        let binary = real_program("thanos", "thanos")?;
        let folder = tempfile::Builder::new().prefix("thanos-test-").tempdir().unwrap();
        let writer = Receive::started(&binary, folder.path(), "alone", None);
        Some(Thanos::with(&binary, folder, writer, vec![]))
    }

    /// A router before three that store, each of them everything.
    fn ring() -> Option<Thanos> {
        let binary = real_program("thanos", "thanos")?;
        let folder = tempfile::Builder::new().prefix("thanos-test-").tempdir().unwrap();
        let start = |name| Receive::started(&binary, folder.path(), name, None);
        let stores: Vec<Receive> = ["one", "two", "three"].map(start).into();
        let endpoints = stores.iter().map(|store| {
            json!({"address": store.grpc.to_string(), "capnproto_address": store.capnproto.to_string()})
        });
        let ring = folder.path().join("ring.json");
        let hashring = json!([{"endpoints": endpoints.collect::<Vec<_>>()}]);
        std::fs::write(&ring, hashring.to_string()).unwrap();
        let router = Receive::started(&binary, folder.path(), "router", Some(ring));
        Some(Thanos::with(&binary, folder, router, stores))
    }

    /// Three that store, which the gateway itself spreads series over. The first is the one that is ended.
    fn members() -> Option<Thanos> {
        let binary = real_program("thanos", "thanos")?;
        let folder = tempfile::Builder::new().prefix("thanos-test-").tempdir().unwrap();
        let start = |name| Receive::started(&binary, folder.path(), name, None);
        let writer = start("one");
        let stores = vec![start("two"), start("three")];
        Some(Thanos::with(&binary, folder, writer, stores))
    }

    /// A gateway that spreads series over the members, each on so many of them.
    fn router(&self, replication: u64, more: &Value) -> Gateway {
        let members = std::iter::once(&self.writer).chain(&self.stores);
        let endpoints: Vec<String> = members.map(|member| member.grpc.to_string()).collect();
        let mut sink = json!({
            "type": "thanos_receive", "algorithm": "ketama", "replication_factor": replication,
            "hashrings": [{"endpoints": endpoints}], "backoff": {"min": "20ms", "max": "200ms"},
        });
        sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Gateway::started(json!({"memory": "96MiB", "sinks": {SINK: sink}}))
    }

    fn with(binary: &Path, folder: TempDir, writer: Receive, stores: Vec<Receive>) -> Thanos {
        let (query, grpc) = (free_address(), free_address());
        let mut command = Command::new(binary);
        command.arg("query").args([format!("--http-address={query}"), format!("--grpc-address={grpc}")]);
        // A router has nothing of its own to be asked for.
        let asked = stores.iter().chain(writer.hashring.is_none().then_some(&writer));
        command.args(asked.map(|store| format!("--endpoint={}", store.grpc)));
        let process = Program::start("query", command, folder.path());
        until(SOON, "Thanos Query to be ready", || {
            http::get(query, "/-/ready").is_ok_and(|answer| answer.status == 200)
        });
        Thanos { writer, stores, _query: process, query, _folder: folder }
    }

    /// The samples of one member's own.
    fn of_member(&self, member: &str) -> SamplesByLabels {
        let selector = format!("{{tenant_id=\"default-tenant\", replica={member:?}, __name__!=\"\"}}");
        raw_samples(self.query, &selector, now_ms(), &["replica", "tenant_id"])
    }

    fn of_tenant(&self, tenant: &str) -> SamplesByLabels {
        // It wants a matcher besides those for labels of its own.
        let selector = format!("{{tenant_id={tenant:?}, __name__!=\"\"}}");
        raw_samples(self.query, &selector, now_ms(), &["replica", "tenant_id"])
    }
}

impl Receiver for Thanos {
    fn write_url(&self) -> String {
        format!("http://{}/api/v1/receive", self.writer.write)
    }

    fn start(&mut self) {
        self.writer.start();
    }

    /// By SIGKILL: it writes ahead.
    fn end(&mut self) {
        self.writer.kill9();
    }

    fn signal(&self, signal: Signal) {
        self.writer.process.as_ref().unwrap().signal(signal);
    }

    fn samples(&self) -> SamplesByLabels {
        self.of_tenant("default-tenant")
    }
}

/// As most are set up: remote write 1.0, floats and native histograms.
#[test]
#[ignore = "`make test-real` runs it"]
fn thanos_has_what_was_acknowledged() {
    let Some(mut thanos) = Thanos::alone() else { return };
    let mut gateway = gateway(&thanos, json!({}));
    everything_arrives(&mut thanos, &mut gateway, &mut Load::new(1, 200, 4));
}

/// This version of Thanos takes a body of 2.0 for one of 1.0 without any series, and answers 200. The sink notices that
/// nothing was written, and says it in 1.0.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_thanos_that_ignores_remote_write_2_gets_version_1() {
    let Some(mut thanos) = Thanos::alone() else { return };
    let mut gateway = gateway(&thanos, json!({"protocol": "2.0"}));
    everything_arrives(&mut thanos, &mut gateway, &mut Load::new(2, 200, 4));
}

/// A router that cannot reach enough of its ingestors answers 503: the sink waits, and all is there in the end.
#[test]
#[ignore = "`make test-real` runs it"]
fn a_hashring_without_a_quorum_loses_nothing() {
    let Some(mut thanos) = Thanos::ring() else { return };
    let gateway = gateway(&thanos, json!({}));
    let mut load = Load::new(3, 100, 4);
    load.send(&gateway, 10);
    load.arrives_at(&thanos);
    for store in &mut thanos.stores[..2] {
        store.kill9();
    }
    load.send(&gateway, 10);
    until(SOON, "the router to refuse", || gateway.sink(SINK)["failures"].as_u64() > Some(2));
    for store in &mut thanos.stores[..2] {
        store.start();
    }
    load.send(&gateway, 10);
    load.arrives_at(&thanos);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(gateway.sink(SINK)["dropped"], json!({}), "{}", gateway.sink(SINK));
}

/// The tenants of the gateway are the tenants of Thanos.
#[test]
#[ignore = "`make test-real` runs it"]
fn tenants_stay_apart_in_thanos() {
    let Some(thanos) = Thanos::alone() else { return };
    let settings: Value = json!({
        "memory": "96MiB",
        "tenants": {"header": "X-Scope-OrgID"},
        "sinks": {SINK: {
            "type": "prometheus_remote_write", "url": thanos.write_url(), "tenant_header": "THANOS-TENANT",
        }},
    });
    let gateway = tidegate_tests::Gateway::started(settings);
    let now = now_ms() / 1000 * 1000;
    for (tenant, count) in [("red", 3), ("blue", 5)] {
        for number in 0..count {
            let samples = [(now - 1000 * (count - number), number as f64)];
            let series = TimeSeries::new(&[("__name__", "up"), ("of", tenant)], &samples);
            let body = messages::body(&WriteRequest { timeseries: vec![series], metadata: vec![] });
            let tenant = format!("X-Scope-OrgID: {tenant}");
            let head = ["POST /api/v1/write HTTP/1.1", "Content-Type: application/x-protobuf", &tenant];
            assert_eq!(request(gateway.http(), &head, &body).unwrap().status, 204);
        }
    }
    for (tenant, count) in [("red", 3), ("blue", 5)] {
        until(SOON, "a tenant's samples to arrive", || {
            let found = thanos.of_tenant(tenant);
            let mine = |labels: &std::collections::BTreeMap<String, String>| labels["of"] == tenant;
            assert!(found.keys().all(mine), "{found:?}");
            found.values().map(Vec::len).sum::<usize>() == count as usize
        });
    }
    gateway.at_rest(SOON);
    gateway.books_close();
}

/// Each series is at one member; what a member that is gone should have is at it when it is back.
#[test]
#[ignore = "`make test-real` runs it"]
fn ingestors_have_what_was_acknowledged() {
    let Some(mut thanos) = Thanos::members() else { return };
    let mut gateway = thanos.router(1, &json!({}));
    everything_arrives(&mut thanos, &mut gateway, &mut Load::new(5, 200, 4));
}

/// With three copies on three members each has everything, also what it missed while it was gone.
#[test]
#[ignore = "`make test-real` runs it"]
fn every_replica_has_everything() {
    let Some(mut thanos) = Thanos::members() else { return };
    let gateway = thanos.router(3, &json!({"compression": "none"}));
    let mut load = Load::new(6, 100, 4);
    load.send(&gateway, 10);
    load.arrives_at(&thanos);
    thanos.end();
    load.send(&gateway, 10);
    let behind = || {
        let members = gateway.sink(SINK)["members"].clone();
        members.as_array().into_iter().flatten().filter(|member| member["handed_off_requests"] != 0).count()
    };
    until(SOON, "a member to be behind", || behind() == 1);
    load.arrives_at(&thanos);
    Receiver::start(&mut thanos);
    until(SOON, "the member to catch up", || behind() == 0);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(gateway.sink(SINK)["dropped"], json!({}), "{}", gateway.sink(SINK));
    let everything = thanos.samples();
    for member in ["one", "two", "three"] {
        until(SOON, "a member to show all", || thanos.of_member(member) == everything);
    }
}
