//! Promises: a gateway leaves no core dump; and every kind of listener, source and sink that the configuration knows is
//! planned, started, and missed under its own name when it ends.

use super::*;
use rustix::process::{DumpableBehavior, dumpable_behavior};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

/// How long an event may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway with this configuration, and what its upkeep misses in place of the end of the process.
fn started(config: Config) -> (Gateway, Receiver<String>) {
    let (tell, told) = sync_channel(1);
    let leave = move |gone: &str| tell.send(gone.to_owned()).unwrap();
    (Gateway::start_watched(config, leave).unwrap_or_else(|Failure(error)| panic!("{error}")), told)
}

/// Parses this configuration, with a data folder in `dir`.
fn config(dir: &Path, text: &str) -> Config {
    let text = format!("memory: 256MiB\ndata: {}\n{text}", dir.join("data").display());
    tidegate_config::parse("test", &text, &|_| None).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// All settings under `listen` with an address, each with one: ports are of the system's choice. What is not an address
/// is named here.
fn listeners(dir: &Path) -> Vec<(String, String)> {
    let schema = tidegate_config::schema();
    let settings = schema["properties"]["listen"]["properties"].as_object().unwrap();
    let names = settings.keys().filter(|name| !["admin_hosts", "tls", "insecure"].contains(&name.as_str()));
    // Where `grpc` has the address of `http`, they are one listener.
    let address = |name: &str| match name {
        "unix" => dir.join("socket").display().to_string(),
        "grpc" => "127.0.0.2:0".to_owned(),
        _ => "127.0.0.1:0".to_owned(),
    };
    names.map(|name| (name.clone(), address(name))).collect()
}

fn listen(listeners: &[(String, String)]) -> String {
    let setting = |(name, address): &(String, String)| match name.as_str() {
        "thanos_receive" | "fleet" | "opamp" => format!("{name}: {{address: '{address}'}}"),
        _ => format!("{name}: '{address}'"),
    };
    let listen: Vec<String> = listeners.iter().map(setting).collect();
    format!("listen: {{{}}}\n", listen.join(", "))
}

/// A sink of each kind that the configuration knows, as YAML: with what it cannot be without, which is a URL,
/// hashrings, or metrics to derive.
fn sinks() -> Vec<(String, String)> {
    let schema = tidegate_config::schema();
    let kinds = schema["properties"]["sinks"]["additionalProperties"]["oneOf"].as_array().unwrap();
    let sink = |kind: &Value| {
        let name = kind["properties"]["type"]["const"].as_str().unwrap();
        let required = kind["required"].as_array().unwrap().iter().map(|setting| setting.as_str().unwrap());
        // There is a short form where it is not required, and one of the two has to be.
        let endpoints = kind["properties"].get("endpoints").map(|_| "endpoints");
        let required: BTreeSet<_> = required.chain(endpoints).collect();
        let url = |setting| format!(", {setting}: 'http://127.0.0.1:1/path'");
        let urls: String = required.into_iter().filter(|setting| *setting != "type").map(url).collect();
        let rings =
            kind["properties"].get("hashrings").map_or("", |_| ", hashrings: [{endpoints: ['127.0.0.1:1']}]");
        let metrics = kind["properties"].get("span_metrics").map_or("", |_| ", span_metrics: {}");
        (name.to_owned(), format!("{{type: {name}{urls}{rings}{metrics}}}"))
    };
    kinds.iter().map(sink).collect()
}

#[test]
fn a_gateway_leaves_no_core_dump() {
    forbid_core_dumps();
    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
}

#[test]
fn every_listener_is_started_and_missed_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let listeners = listeners(dir.path());
    assert!(listeners.len() > 5, "{listeners:?}");
    for (name, address) in &listeners {
        let config = config(dir.path(), &listen(&listeners));
        let shown = listeners::shown(&config.listen);
        assert!(shown.contains(&format!("listen.{name} ")) && shown.contains(address), "{shown}");
        let (gateway, told) = started(config);
        assert_eq!(gateway.acceptors.len(), listeners.len());
        let setting = format!("listen.{name}");
        let acceptor = gateway.acceptors.iter().find(|acceptor| acceptor.setting() == setting);
        acceptor.unwrap_or_else(|| panic!("{setting} is not listened on")).abort();
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), format!("the acceptor of `{setting}`"));
        gateway.stop();
    }
}

/// The names of the settings in this group of the schema.
fn settings_in(group: &Value) -> Vec<&str> {
    group["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// The status of the answer to a request without a body.
fn status_of(socket: &Path, path: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    #[expect(clippy::disallowed_methods, reason = "it is our own answer")]
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn every_kind_of_source_is_limited_shown_and_serves() {
    let schema = tidegate_config::schema();
    let known = settings_in(&schema["properties"]["sources"]);
    let mut kinds: Vec<&str> = sources::KINDS.iter().map(|kind| kind.name).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, known, "the configuration and the gateway know the same sources");
    assert_eq!(settings_in(&schema["properties"]["limits"]["properties"]["sources"]), known);
    assert_eq!(tidegate_tap::SOURCES.as_slice(), known);

    let dir = tempfile::tempdir().unwrap();
    let listeners = listeners(dir.path());
    let config = config(dir.path(), &listen(&listeners));
    let socket = config.listen.unix.as_ref().unwrap().path().to_owned();
    let shown: Vec<_> = sources::KINDS.iter().map(|kind| (kind.shown)(&config).0).collect();
    let (gateway, _told) = started(config);
    for kind in sources::KINDS.into_iter().filter(|kind| kind.runs.is_none()) {
        let path = match kind.name {
            "otlp" => "/v1/logs",
            "prometheus_remote_write" => "/api/v1/write",
            "elasticsearch" => "/elasticsearch/_bulk",
            "elastic_apm" => "/intake/v2/events",
            "http" => "/ingest/logs",
            "loki" => "/loki/api/v1/push",
            other => panic!("say where {other} is served"),
        };
        assert_ne!(status_of(&socket, path), "404", "{path}");
        let books = gateway.view.ledger.balance().sources;
        let page = books.iter().find(|page| page.name == kind.name).unwrap();
        assert_eq!(page.received, 1, "{path} leads to {books:?}");
        assert_eq!(kind.max_body_setting, format!("sources.{}.max_body", kind.name));
    }
    assert!(shown.iter().all(|label| shown.iter().filter(|other| *other == label).count() == 1), "{shown:?}");
    gateway.stop();
}

/// Without its settings a source that runs by itself is nowhere; with them it is planned, has its books, and is missed when
/// it ends.
#[test]
fn every_kind_of_source_that_runs_is_planned_started_and_missed_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let listen = listen(&listeners(dir.path()));
    let without = config(dir.path(), &listen);
    for kind in sources::KINDS {
        let Some(runs) = &kind.runs else { continue };
        let (settings, acceptor) = match kind.name {
            "syslog" => {
                let listeners = "{tcp: {address: 'tcp://127.0.0.1:0'}, udp: {address: 'udp://127.0.0.1:0'}}";
                (format!("listeners: {listeners}"), Some("sources.syslog.listeners.tcp.address"))
            }
            "fluent_forward" => {
                let socket = dir.path().join("forward.sock");
                (format!("unix: 'unix:{}'", socket.display()), Some("sources.fluent_forward.unix"))
            }
            // These listen nowhere.
            "file" => (format!("inputs: {{logs: {{include: ['{}/*.log']}}}}", dir.path().display()), None),
            "journald" => (format!("inputs: {{main: {{directory: '{}'}}}}", dir.path().display()), None),
            "kubernetes_logs" => {
                let api = "{url: 'http://127.0.0.1:9'}";
                (format!("enabled: true, node: n, path: '{}', api: {api}", dir.path().display()), None)
            }
            other => panic!("say how {other} is configured"),
        };
        assert!(!kind.is_configured(&without), "{}", kind.name);
        let with = config(dir.path(), &format!("{listen}sources: {{{}: {{{settings}}}}}\n", kind.name));
        assert!(kind.is_configured(&with), "{}", kind.name);
        let (planned, idle) = (plan::of(&with), plan::of(&without));
        let lines = (runs.declared)(&with);
        assert!(!lines.is_empty() && (runs.files)(&with) > 0, "{}", kind.name);
        for line in lines {
            assert!(line.bytes() > 0 && planned.plan.declared().contains(&line), "{line:?}");
            assert!(!idle.plan.declared().contains(&line), "{line:?}");
        }
        let (gateway, told) = started(with);
        assert!(gateway.view.ledger.balance().sources.iter().any(|page| page.name == kind.name));
        if let Some(acceptor) = acceptor {
            gateway.running_sources.abort(acceptor);
            assert_eq!(told.recv_timeout(PATIENCE).unwrap(), format!("the acceptor of `{acceptor}`"));
        }
        gateway.stop();
    }
    let (gateway, _told) = started(without);
    let books = gateway.view.ledger.balance().sources;
    let runs = |name: &str| sources::KINDS.iter().any(|kind| kind.name == name && kind.runs.is_some());
    assert!(!books.iter().any(|page| runs(&page.name)), "{books:?}");
    gateway.stop();
}

/// A message of Fluentd's forward protocol is acknowledged, and in the books of its source.
#[test]
fn a_fluent_forward_message_is_acknowledged_and_booked() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("forward.sock");
    let source = format!("sources: {{fluent_forward: {{unix: 'unix:{}'}}}}\n", socket.display());
    let (gateway, _told) =
        started(config(dir.path(), &format!("{}{source}", listen(&listeners(dir.path())))));
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // ["a", 1, {"log": "b"}, {"chunk": "c"}], and {"ack": "c"} with a length of two bytes.
    stream.write_all(b"\x94\xa1a\x01\x81\xa3log\xa1b\x81\xa5chunk\xa1c").unwrap();
    let mut ack = [0; 9];
    stream.read_exact(&mut ack).unwrap();
    assert_eq!(&ack, b"\x81\xa3ack\xda\x00\x01c");
    let books = gateway.view.ledger.balance().sources;
    let page = books.iter().find(|page| page.name == "fluent_forward").unwrap();
    assert_eq!((page.received, page.accepted), (1, 1), "{page:?}");
    gateway.stop();
}

#[test]
fn every_kind_of_sink_is_planned_started_reloaded_and_missed_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let listen = listen(&listeners(dir.path()));
    let sinks = sinks();
    assert!(sinks.len() > 4, "{sinks:?}");
    for (kind, sink) in &sinks {
        let dir = dir.path().join(kind);
        std::fs::create_dir(&dir).unwrap();
        let named = |name: &str| config(&dir, &format!("{listen}sinks: {{{name}: {sink}}}\n"));
        let config = named("it");
        let descriptor = sinks::kinds::of(config.sinks.values().next().unwrap());
        let (share, target) = (descriptor.share(), descriptor.target(&config.data));
        let planned = plan::of(&config);
        assert!(planned.plan.floors().of(share) > 0, "{kind}");
        for line in descriptor.declared() {
            assert!(planned.plan.declared().contains(&line), "{kind}: {line:?}");
            assert!(line.bytes() > 0, "{kind}: {line:?}");
        }
        let (gateway, told) = started(config);
        let is_shown = |name: &str| {
            let status = tidegate_console::Gateway::status(&*gateway.view);
            let [shown] = status.sinks.as_slice() else { panic!("{kind}: {}", status.sinks.len()) };
            assert_eq!((&*shown.name, &shown.kind, &shown.target), (name, kind, &target));
            let stats = gateway.journal.stats();
            assert!(stats.sinks.iter().any(|sink| sink.name == name && sink.followed), "{kind}");
        };
        is_shown("it");
        assert_eq!(dir.join("data/lake").is_dir(), kind == "lake", "{kind} is started as another");
        assert_eq!(
            gateway.reload(named("other")).unwrap_or_else(|Failure(error)| panic!("{error}")),
            [""; 0]
        );
        is_shown("other");
        gateway.sinks.end_first();
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "the supervisor of the sink `other`", "{kind}");
        gateway.stop();
    }
}
