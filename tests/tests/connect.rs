//! What `tidegate connect` prints, run as it is printed: real senders get the files and the commands for a configuration, and what they
//! send arrives.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/agents.rs"]
#[allow(dead_code, reason = "it can do more than is needed here")]
mod agents;
#[path = "connect/rig.rs"]
mod rig;

use agents::tool;
use rig::{Access, Rig, script};
use serde_json::{Value, json};
use std::process::Command;
use tidegate_tests::{
    Debian, Program, Prometheus, SOON, collector_binary, free_address, http, tidegate, until,
};

/// Loopback as it is by default, and TLS with a token.
const BOTH: [Access; 2] = [Access::Open, Access::Secured];

#[test]
fn prometheus() {
    for access in BOTH {
        let rig = Rig::started(access, json!({}), json!({}));
        let snippets = rig.connect("prometheus", &[]);
        let target = format!(
            "scrape_configs:\n  - job_name: self\n    scrape_interval: 250ms\n    static_configs: [{{targets: [\"{}\"]}}]\n",
            rig.gateway.admin()
        );
        let _prometheus = Prometheus::started(&format!("{}{target}", snippets[0].content));
        rig.receives("prometheus_remote_write", "metrics");
    }
}

#[test]
fn prometheus_as_for_thanos_receive() {
    let address = free_address();
    let rig = Rig::started(Access::Open, json!({"thanos_receive": {"address": address}}), json!({}));
    // Debian's Prometheus sends no `headers`, so it sends for the default tenant in any case.
    let snippets = rig.connect("thanos", &["--tenant", "default-tenant"]);
    let target = format!(
        "scrape_configs:\n  - job_name: self\n    scrape_interval: 250ms\n    static_configs: [{{targets: [\"{}\"]}}]\n",
        rig.gateway.admin()
    );
    let _prometheus = Prometheus::started(&format!("{}{target}", snippets[0].content));
    rig.receives("prometheus_remote_write", "metrics");
    assert_eq!(rig.tenants(), ["default-tenant"]);
}

/// Over HTTP and over gRPC, each on an address of its own.
#[test]
fn collector() {
    let Some(binary) = collector_binary() else { return };
    for access in BOTH {
        let rig = Rig::started(access, json!({}), json!({}));
        for (number, snippet) in rig.connect("collector", &[]).into_iter().enumerate() {
            let (grpc, http) = (free_address(), free_address());
            // On this machine others listen, too.
            let ports = json!({
                "receivers": {"otlp": {"protocols": {
                    "grpc": {"endpoint": grpc.to_string()}, "http": {"endpoint": http.to_string()},
                }}},
                "service": {"telemetry": {"metrics": {"level": "none"}}},
            });
            let mut command = Command::new(&binary);
            command.arg("--config").arg(snippet.written(rig.folder()));
            command.arg("--config").arg(rig.file("ports.yaml", &ports.to_string())).envs(rig.variables());
            let _collector = Program::start("collector", command, rig.folder());
            let body =
                json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]});
            let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
            until(SOON, "the Collector to take a record", || {
                http::request(http, &head, body.to_string().as_bytes())
                    .is_ok_and(|answer| answer.status == 200)
            });
            until(SOON, "the record", || rig.received("otlp", "logs") == number as u64 + 1);
        }
    }
}

#[test]
fn otel_python() {
    let Some(python) = tool("TIDEGATE_TEST_PYTHON") else { return };
    otel("otel-python", &format!("{} {}", python.display(), script("sdk/from_environment.py")));
}

#[test]
fn otel_js() {
    let Some(modules) = tool("TIDEGATE_TEST_NODE_MODULES") else { return };
    otel(
        "otel-js",
        &format!("NODE_MODULES={} node {}", modules.display(), script("sdk/from_environment.mjs")),
    );
}

/// A program with the printed environment sends a span, a record and a point, for the tenant in the header.
fn otel(kind: &str, program: &str) {
    for access in [Access::Open, Access::Secured, Access::ClientCertificates, Access::TenantHeader] {
        let rig = Rig::started(access, json!({}), json!({}));
        let snippets = rig.connect(kind, &["--tenant", "team 1"]);
        let environment = snippets[0].written(rig.folder());
        rig.shell(&format!(". {}; {program}", environment.display()));
        for signal in ["traces", "logs", "metrics"] {
            until(SOON, signal, || rig.received("otlp", signal) >= 1);
        }
        let rows = rig.rows("spans", "service_name");
        assert_eq!(rows[0]["service_name"], "your-service", "{rows:?}");
        if access == Access::TenantHeader {
            assert_eq!(rig.tenants(), ["team 1"]);
        }
    }
}

/// Under the prefix, and at an address of its own with an API key.
#[test]
fn filebeat() {
    let Some(shippers) = tool("TIDEGATE_TEST_SHIPPERS") else { return };
    for access in BOTH {
        let listen =
            if access == Access::Open { json!({}) } else { json!({"elasticsearch": free_address()}) };
        let rig = Rig::started(access, listen, json!({}));
        let snippets = rig.connect("filebeat", &[]);
        let lines = rig.file("lines.log", "one\ntwo\n");
        let input = json!({
            "filebeat.inputs": [{"type": "filestream", "id": "lines", "paths": [lines]}],
            "path.home": rig.folder().join("filebeat"), "logging.to_stderr": true,
        });
        let mut command = Command::new(shippers.join("bin/filebeat"));
        command.args(["--strict.perms=false", "-c"]).arg(rig.file("inputs.yml", &input.to_string()));
        command.arg("-c").arg(snippets[0].written(rig.folder())).envs(rig.variables());
        let _filebeat = Program::start("filebeat", command, rig.folder());
        until(SOON, "the lines", || rig.received("elasticsearch", "logs") == 2);
    }
}

#[test]
fn clients_of_bulk() {
    for access in BOTH {
        let rig = Rig::started(access, json!({}), json!({}));
        let snippets = rig.connect("elasticsearch", &[]);
        let answer: Value = serde_json::from_str(&rig.shell(&snippets[0].content)).unwrap();
        assert_eq!(
            (&answer["errors"], &answer["items"][0]["create"]["status"]),
            (&json!(false), &json!(201)),
            "{answer}"
        );
        until(SOON, "the document", || rig.received("elasticsearch", "logs") == 1);
    }
}

#[test]
fn curl() {
    for access in [Access::Open, Access::Secured, Access::ClientCertificates, Access::TenantHeader] {
        let rig = Rig::started(access, json!({}), json!({}));
        for (snippet, source) in rig.connect("curl", &["--tenant", "it's"]).iter().zip(["otlp", "http"]) {
            rig.shell(&snippet.content);
            until(SOON, "the record", || rig.received(source, "logs") == 1);
        }
        for row in rig.rows("logs", "body,service_name") {
            assert_eq!(row["body"], "hello", "{row}");
        }
    }
}

#[test]
fn elastic_apm_python() {
    let Some(python) = tool("TIDEGATE_TEST_PYTHON") else { return };
    elastic_apm(
        "elastic-apm-python",
        &format!("{} {}", python.display(), script("apm/from_environment.py")),
        &BOTH,
    );
}

#[test]
fn elastic_apm_node() {
    let Some(modules) = tool("TIDEGATE_TEST_NODE_MODULES") else { return };
    let modules = modules.display();
    let program = script("apm/from_environment.cjs");
    elastic_apm(
        "elastic-apm-node",
        &format!("NODE_MODULES={modules} node -r {modules}/elastic-apm-node/start.js {program}"),
        &BOTH,
    );
}

/// Without TLS: the agent trusts what the JVM trusts.
#[test]
fn elastic_apm_java() {
    let Some(jars) = tool("TIDEGATE_TEST_APM_JAVA") else { return };
    let jars = jars.display();
    let program =
        format!("java -javaagent:{jars}/elastic-apm-agent.jar -cp {jars}:{jars}/apm-agent-api.jar App");
    elastic_apm("elastic-apm-java", &program, &[Access::Open]);
}

fn elastic_apm(kind: &str, program: &str, accesses: &[Access]) {
    for access in accesses {
        let rig = Rig::started(*access, json!({"apm": free_address()}), json!({}));
        let environment = rig.connect(kind, &[])[0].written(rig.folder());
        // The agents ask no cloud where they are. Node's wants that in small letters.
        rig.shell(&format!("export ELASTIC_APM_CLOUD_PROVIDER=none; . {}; {program}", environment.display()));
        until(SOON, "a transaction", || rig.received("elastic_apm", "traces") >= 1);
        assert_eq!(rig.rows("spans", "service_name")[0]["service_name"], "your-service");
    }
}

fn listeners(addresses: &[(&str, String)]) -> Value {
    let listeners: serde_json::Map<String, Value> =
        addresses.iter().map(|(name, address)| ((*name).to_owned(), json!({"address": address}))).collect();
    json!({"syslog": {"listeners": listeners}})
}

#[test]
fn logger_over_tcp_and_udp_and_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("log.sock");
    let addresses = ["tcp", "udp"].map(|scheme| format!("{scheme}://{}", free_address()));
    for address in addresses.into_iter().chain([format!("unixgram:{}", socket.display())]) {
        let rig = Rig::started(Access::Open, json!({}), listeners(&[("only", address)]));
        rig.shell(&rig.connect("logger", &[])[0].content);
        until(SOON, "the message", || rig.received("syslog", "logs") == 1);
        let rows = rig.rows("logs", "body,service_name");
        assert_eq!(
            (&rows[0]["body"], &rows[0]["service_name"]),
            (&json!("hello"), &json!("your-service")),
            "{rows:?}"
        );
    }
}

#[test]
fn rsyslog() {
    let Some(debian) = Debian::with("usr/sbin/rsyslogd") else { return };
    for scheme in ["tcp", "udp"] {
        let rig = Rig::started(
            Access::Open,
            json!({}),
            listeners(&[("only", format!("{scheme}://{}", free_address()))]),
        );
        let printed = rig.connect("rsyslog", &[])[0].written(rig.folder());
        let lines = rig.file("lines.log", "a line\n");
        let state = rig.folder().join("state");
        std::fs::create_dir(&state).unwrap();
        let main = format!(
            "global(workDirectory=\"{}\")\nmodule(load=\"imfile\")\ninput(type=\"imfile\" file=\"{}\" tag=\"app:\")\ninclude(file=\"{}\")\n",
            state.display(),
            lines.display(),
            printed.display()
        );
        let command = debian.rsyslog(&rig.file("rsyslog.conf", &main), &state);
        let _daemon = Program::start("rsyslog", command, rig.folder());
        is_there(&rig);
    }
}

#[test]
fn syslog_ng() {
    let Some(debian) = Debian::with("usr/sbin/syslog-ng") else { return };
    for scheme in ["tcp", "tls", "udp"] {
        let access = if scheme == "tls" { Access::Secured } else { Access::Open };
        let rig =
            Rig::started(access, json!({}), listeners(&[("only", format!("{scheme}://{}", free_address()))]));
        let printed = rig.connect("syslog-ng", &[])[0].written(rig.folder());
        let lines = rig.file("lines.log", "a line\n");
        let state = rig.folder().join("state");
        std::fs::create_dir(&state).unwrap();
        let main = format!(
            "@version: 3.35\nsource s_src {{ file(\"{}\" follow-freq(0.2) flags(no-parse) program-override(\"app\")); }};\n@include \"{}\"\n",
            lines.display(),
            printed.display()
        );
        let command = debian.syslog_ng(&rig.file("syslog-ng.conf", &main), &state);
        let _daemon = Program::start("syslog-ng", command, rig.folder());
        is_there(&rig);
    }
}

/// The line of a syslog daemon, among messages of its own.
fn is_there(rig: &Rig) {
    until(SOON, "the line", || {
        let rows = rig.gateway.lake_rows_with("logs", &["--columns", "body,service_name"]);
        rows.iter().any(|row| row["body"] == "a line" && row["service_name"] == "app")
    });
}

/// A kind that is not received names the setting, and its lines are enough.
#[test]
fn what_is_not_received_is_an_error_with_the_lines_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    std::fs::write(&file, "").unwrap();
    let connect = |kind: &str| tidegate(&["connect", kind, "--config", file.to_str().unwrap()]);
    let refused = connect("rsyslog");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("`sources.syslog.listeners` is not set"), "{refused:?}");
    let lines = refused.stderr.split("\n\n").find(|part| part.starts_with("sources:\n")).unwrap();
    std::fs::write(&file, lines).unwrap();
    assert!(connect("rsyslog").succeeded().contains("port=\"5514\""));
}

#[test]
fn an_unknown_kind_gets_a_suggestion() {
    let refused = tidegate(&["connect", "promethus"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("Did you mean `prometheus`?"), "{refused:?}");
    let refused = tidegate(&["connect", "splunk-hec"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("does not receive it"), "{refused:?}");
    let refused = tidegate(&["connect", "curl", "--host", "http://a/"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not the name of a host"), "{refused:?}");
    let refused = tidegate(&["connect", "curl", "--ca-file", "/a b"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("without blanks"), "{refused:?}");
}

/// Commands and their output in the page are what they would be today.
#[test]
fn the_examples_of_the_page_are_true() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/connect.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for example in page.split("```yaml\n# gateway.yaml\n").skip(1) {
        let (config, rest) = example.split_once("```").unwrap();
        std::fs::write(folder.path().join("gateway.yaml"), config).unwrap();
        for block in rest.split("```console\n").skip(1) {
            let (shown, _) = block.split_once("```").unwrap();
            let (command, output) = shown.split_once('\n').unwrap();
            let words: Vec<&str> = command.strip_prefix("$ tidegate ").expect(command).split(' ').collect();
            let mut run = tidegate_tests::command(&words);
            let printed = tidegate_tests::finish(run.current_dir(folder.path())).succeeded();
            assert_eq!(printed.trim_end(), output.trim_end(), "{command}");
            tried += 1;
        }
    }
    assert!(tried >= 3, "{tried}");
}

/// The page, the list and the crate name the same kinds.
#[test]
fn the_page_has_all_kinds() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/connect.md")).unwrap();
    let list: Value = serde_json::from_str(&tidegate(&["connect", "--format", "json"]).succeeded()).unwrap();
    for kind in list.as_array().unwrap() {
        let name = kind["kind"].as_str().unwrap();
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// Where nothing has arrived yet, the console shows for each kind what the command prints, and what the configuration lacks for others.
#[test]
fn the_console_shows_what_the_command_prints() {
    for access in BOTH {
        let rig = Rig::started(access, json!({}), json!({}));
        let config = rig.gateway.config();
        let printed = |arguments: &[&str]| -> Value {
            let all =
                [&["connect", "--format", "json", "--config", config.to_str().unwrap()], arguments].concat();
            serde_json::from_str(&tidegate(&all).succeeded()).unwrap()
        };
        let kinds = rig.gateway.page("/console/connect").json();
        assert_eq!(kinds, printed(&[]));
        let mut missing = 0;
        for kind in kinds.as_array().unwrap() {
            let name = kind["kind"].as_str().unwrap();
            let shown = rig.gateway.page(&format!("/console/connect?kind={name}")).json();
            if kind["received"] == true {
                assert_eq!(shown["snippets"], printed(&[name]), "{name}");
            } else {
                assert_eq!(shown["missing"]["lines"], kind["lines"], "{name}");
                missing += 1;
            }
        }
        assert!(missing > 0, "{kinds}");
    }
}
