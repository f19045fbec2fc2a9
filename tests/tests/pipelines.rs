//! Pipelines of a whole gateway: sinks take what their pipelines leave, everything else is counted once, whatever happens to
//! the gateway, and memory stays within its bound.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use tidegate_load::otlp::{NUMBER, OtlpProfile, Signal, drive_blocking};
use tidegate_tests::{Gateway, Recorder, SOON, binary, finish, http, otlp_profile, until};

const MIB: u64 = 1 << 20;

/// A sink that sends lines of JSON to `server`.
fn lines_to(server: &Recorder, more: Value) -> Value {
    let mut sink = json!({
        "type": "http", "endpoints": [server.url()], "linger": "20ms", "backoff": {"max": "200ms"}, "timeout": "10s",
    });
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sink
}

/// The items that a server got.
fn items(server: &Recorder) -> Vec<Value> {
    let bodies = server.seen().into_iter().map(|seen| String::from_utf8(seen.body).unwrap());
    bodies
        .flat_map(|body| body.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>())
        .collect()
}

/// A request with one log record for each severity number.
fn logs(severities: impl IntoIterator<Item = u32>) -> String {
    let record = |severity: u32| {
        json!({
            "timeUnixNano": "1700000000000000000", "severityNumber": severity,
            "body": {"stringValue": format!("password=hunter2 of {severity}")},
            "attributes": [{"key": "user", "value": {"stringValue": "a"}}],
        })
    };
    let records: Vec<Value> = severities.into_iter().map(record).collect();
    json!({"resourceLogs": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}]},
        "scopeLogs": [{"logRecords": records}],
    }]})
    .to_string()
}

fn post(gateway: &Gateway, signal: &str, body: &str) {
    let head = [&*format!("POST /v1/{signal} HTTP/1.1"), "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
}

/// The books of a sink.
fn books(gateway: &Gateway, sink: &str) -> Value {
    let status = gateway.status();
    let mut books = status["books"]["sinks"].as_array().unwrap().iter();
    books.find(|book| book["name"] == sink).unwrap().clone()
}

/// A pipeline before every kind of sink that takes logs: what it drops is filtered, what it edits arrives edited.
#[test]
fn sinks_take_what_their_pipeline_leaves() {
    let server = Recorder::start();
    let gateway = Gateway::started(json!({
        "memory": "96MiB",
        "pipelines": {"clean": {"steps": [
            {"name": "quiet", "drop": "log.severity_number < SEVERITY_NUMBER_WARN"},
            {"edit": [
                "replace_pattern(log.body, \"password=(\\\\w+)\", \"password=***\")",
                "set(log.attributes[\"env\"], \"prod\")",
            ]},
        ]}},
        "sinks": {
            "app": lines_to(&server, json!({"pipeline": "clean"})),
            "lake": {"type": "lake", "file_age": "1s", "pipeline": "clean"},
            "nowhere": {"type": "blackhole", "pipeline": "clean"},
            "everything": {"type": "blackhole"},
        },
    }));
    for _ in 0..3 {
        post(&gateway, "logs", &logs([1, 9, 13, 17]));
    }
    // Nothing is left of this one.
    post(&gateway, "logs", &logs([1, 5, 9]));
    gateway.at_rest(SOON);
    gateway.books_close();
    for sink in ["app", "lake", "nowhere"] {
        let book = books(&gateway, sink);
        assert_eq!(
            (&book["delivered"], &book["dropped"]["filtered"]),
            (&json!(6), &json!(9)),
            "{sink}: {book}"
        );
        let steps = gateway.sink(sink)["pipeline"].clone();
        assert_eq!((&steps[0]["step"], &steps[0]["items"]), (&json!("quiet"), &json!(15)), "{sink}: {steps}");
        assert_eq!((&steps[0]["filtered"], &steps[1]["items"]), (&json!(9), &json!(6)), "{sink}: {steps}");
    }
    assert_eq!(books(&gateway, "everything")["delivered"], 15);
    let items = items(&server);
    assert_eq!(items.len(), 6);
    for item in &items {
        let severity = item["severity_number"].as_u64().unwrap();
        assert_eq!(item["body"], format!("password=*** of {severity}"));
        assert_eq!(item["attributes"], json!({"user": "a", "env": "prod"}));
    }
    assert_eq!(gateway.lake_rows("logs").len(), 6);
    let filtered = "tidegate_pipeline_items_filtered_total{sink=\"app\",pipeline=\"clean\",step=\"quiet\"}";
    assert_eq!(gateway.metrics().get(filtered), Some(&9.0), "{:?}", gateway.metrics().keys());
}

/// Each item goes where its condition says, and the rest to the sink for the rest. What a sink is not for is passed over.
#[test]
fn items_are_routed_by_conditions() {
    let gateway = Gateway::started(json!({"memory": "96MiB", "sinks": {
        "errors": {"type": "blackhole", "when": "log.severity_number >= SEVERITY_NUMBER_ERROR"},
        "warnings": {"type": "blackhole", "when": ["log.severity_number == 13", "log.severity_number == 14"]},
        "rest": {"type": "blackhole", "otherwise": true},
    }}));
    post(&gateway, "logs", &logs([1, 9, 9, 13, 14, 17]));
    post(&gateway, "logs", &logs([17, 18]));
    gateway.at_rest(SOON);
    gateway.books_close();
    for (sink, delivered) in [("errors", 3), ("warnings", 2), ("rest", 3)] {
        let book = books(&gateway, sink);
        assert_eq!(
            (&book["delivered"], &book["passed"]),
            (&json!(delivered), &json!(8 - delivered)),
            "{book}"
        );
        assert_eq!(book["dropped"], json!({}), "{book}");
    }
}

/// A changed pipeline takes effect by SIGHUP, for its sinks only; one that does not compile changes nothing.
#[test]
fn a_changed_pipeline_takes_effect_without_a_restart() {
    let settings = |severity: u32, more: &str| {
        json!({
            "memory": "96MiB",
            "pipelines": {"clean": {"steps": [{"drop": format!("log.severity_number {more} {severity}")}]}},
            "sinks": {"clean": {"type": "blackhole", "pipeline": "clean"}, "other": {"type": "blackhole"}},
        })
    };
    let mut gateway = Gateway::started(settings(10, "<"));
    post(&gateway, "logs", &logs([9, 13]));
    gateway.at_rest(SOON);
    let filtered = |gateway: &Gateway| books(gateway, "clean")["dropped"]["filtered"].as_u64();
    assert_eq!(filtered(&gateway), Some(1));
    gateway.configure(settings(20, "<"));
    gateway.hangup();
    until(SOON, "the new pipeline", || {
        gateway.log().matches("the configuration was read again").count() == 1
    });
    post(&gateway, "logs", &logs([9, 13]));
    gateway.at_rest(SOON);
    assert_eq!(filtered(&gateway), Some(3));
    gateway.configure(settings(20, "<<"));
    gateway.hangup();
    until(SOON, "the refusal", || gateway.log().contains("the configuration was not changed"));
    post(&gateway, "logs", &logs([9, 13]));
    gateway.at_rest(SOON);
    assert_eq!(filtered(&gateway), Some(5));
    assert!(!gateway.log().contains("the sink failed"), "{}", gateway.log());
    gateway.books_close();
}

/// A gateway that is killed and started again has dropped each item once, and delivered the others.
#[test]
fn each_item_is_counted_once_when_the_gateway_is_killed() {
    let server = Recorder::start();
    let method = "log.attributes[\"http.request.method\"] == \"GET\"";
    let mut gateway = Gateway::started(json!({
        "memory": "96MiB",
        "pipelines": {"clean": {"steps": [{"drop": method}]}},
        "sinks": {
            "app": lines_to(&server, json!({"pipeline": "clean", "max_request_bytes": "64KiB", "max_in_flight": 2})),
            "lake": {"type": "lake", "file_age": "1s", "pipeline": "clean"},
        },
    }));
    let report = drive_blocking(&gateway.otlp_target(), &otlp_profile(Signal::Logs, 200)).unwrap();
    assert_eq!((report.accepted, report.failed), (200, 0), "{:?}", report.reasons);
    until(SOON, "items to flow", || !server.seen().is_empty());
    gateway.kill9();
    gateway.start();
    gateway.at_rest(SOON);
    gateway.books_close();
    let count = |sink: &str| {
        let book = books(&gateway, sink);
        (book["delivered"].as_u64().unwrap(), book["dropped"]["filtered"].as_u64().unwrap())
    };
    let (app, lake) = (count("app"), count("lake"));
    println!("app {app:?}, lake {lake:?}");
    assert_eq!((app, app.0 + app.1), (lake, 10_000));
    let items = items(&server);
    assert!(items.iter().all(|item| item["attributes"]["http.request.method"] != "GET"));
    let distinct: BTreeSet<String> =
        items.iter().map(|item| item["attributes"][NUMBER].to_string()).collect();
    assert_eq!(distinct.len() as u64, app.0, "everything that is left arrives");
    assert_eq!(gateway.lake_rows("logs").len() as u64, lake.0, "and no row twice");
}

/// A field of protobuf with this content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

/// A request of remote write 1.0 with a series of one sample for each name.
fn samples(names: &[&str]) -> Vec<u8> {
    let series = |name: &&str| {
        let label = |name: &str, value: &str| {
            field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
        };
        let value = [&[1 << 3 | 1][..], &1.5_f64.to_bits().to_le_bytes(), &[2 << 3, 1]].concat();
        field(1, &[label("__name__", name), label("replica", "a"), field(2, &value)].concat())
    };
    let raw: Vec<u8> = names.iter().flat_map(series).collect();
    let mut body = vec![0; tidegate_wire::snappy::max_compressed_len(raw.len()).unwrap()];
    let len = tidegate_wire::snappy::Encoder::new().compress(&raw, &mut body).unwrap();
    body.truncate(len);
    body
}

/// Relabeling applies to remote write, and to what OTLP metrics are translated to; and the books close.
#[test]
fn series_are_relabeled() {
    let (lines, server) = (Recorder::start(), Recorder::start());
    let rules = json!([
        {"source_labels": ["__name__"], "regex": "go_.*", "action": "drop"},
        {"regex": "replica", "action": "labeldrop"},
        {"target_label": "cluster", "replacement": "c1"},
    ]);
    let gateway = Gateway::started(json!({
        "memory": "96MiB",
        "pipelines": {"names": {"steps": [{"relabel": rules}]}},
        "sinks": {
            "lines": lines_to(&lines, json!({"pipeline": "names", "signals": ["metrics"]})),
            "prometheus": {"type": "prometheus_remote_write", "url": server.url(), "protocol": "1.0", "write_relabel_configs": rules},
        },
    }));
    let head = [
        "POST /api/v1/write HTTP/1.1",
        "content-type: application/x-protobuf",
        "content-encoding: snappy",
        "x-prometheus-remote-write-version: 0.1.0",
    ];
    let answer = http::request(gateway.http(), &head, &samples(&["up", "go_threads"])).unwrap();
    assert!(answer.status < 300, "{}", answer.text());
    gateway.at_rest(SOON);
    let gauge = |name: &str| {
        let point = json!({"timeUnixNano": "1700000000000000000", "asDouble": 1.0});
        json!({"name": name, "gauge": {"dataPoints": [point]}})
    };
    let metrics =
        json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge("load"), gauge("go_gc")]}]}]});
    post(&gateway, "metrics", &metrics.to_string());
    gateway.at_rest(SOON);
    gateway.books_close();
    let sent: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| {
            let mut raw = vec![0; 1 << 16];
            let len = tidegate_wire::snappy::decode(&seen.body, &mut raw).unwrap();
            // The field of a series or of metadata, and nothing in front of it.
            assert!([0x0a, 0x1a].contains(&raw[0]), "{:?}", &raw[..len]);
            String::from_utf8_lossy(raw.get(..len).unwrap()).into_owned()
        })
        .collect();
    let book = books(&gateway, "prometheus");
    assert_eq!((&book["delivered"], &book["dropped"]), (&json!(2), &json!({"filtered": 2})), "{book}");
    // OTLP that is not translated has no labels.
    let book = books(&gateway, "lines");
    assert_eq!((&book["delivered"], &book["dropped"]), (&json!(3), &json!({"filtered": 1})), "{book}");
    let up = items(&lines).into_iter().find(|item| item["name"] == "up").unwrap();
    assert_eq!(up["attributes"], json!({"cluster": "c1"}), "{up}");
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(
        sent.iter().all(|body| body.contains("cluster")
            && !body.contains("go_threads")
            && !body.contains("replica")),
        "{sent:?}"
    );
}

/// In 64 MiB, pipelines that make every item longer, before every kind of sink at once, while more comes than they take.
#[test]
fn memory_stays_within_its_bound() {
    let server = Recorder::start();
    let long = "x".repeat(200);
    let grow = |context: &str| format!("set({context}.attributes[\"grown\"], \"{long}\")");
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "limits": {"connections": 500},
        "pipelines": {"grow": {"steps": [
            {"edit": [grow("log")]}, {"edit": [grow("span")]},
            {"drop": "log.attributes[\"http.request.method\"] == \"GET\""},
        ]}},
        "sinks": {
            "app": lines_to(&server, json!({"pipeline": "grow"})),
            "lake": {"type": "lake", "file_age": "1s", "pipeline": "grow"},
            "nowhere": {"type": "blackhole", "pipeline": "grow"},
        },
    }));
    let mut sent = 0;
    for signal in [Signal::Logs, Signal::Traces] {
        for items in [50, 2_000] {
            let profile = OtlpProfile { connections: 8, items, ..otlp_profile(signal, 4_000 / items) };
            let report = drive_blocking(&gateway.otlp_target(), &profile).unwrap();
            assert_eq!(report.failed, 0, "{:?}", report.reasons);
            sent += report.accepted * items;
        }
    }
    gateway.at_rest(SOON * 3);
    gateway.books_close();
    for sink in ["app", "lake", "nowhere"] {
        let book = books(&gateway, sink);
        let (delivered, dropped) = (book["delivered"].as_u64().unwrap(), book["dropped"].clone());
        assert_eq!(delivered + dropped["filtered"].as_u64().unwrap(), sent, "{sink}: {book}");
    }
    assert!(items(&server).iter().all(|item| item["attributes"]["grown"] == *long));
    let hwm = gateway.hwm();
    println!("{} MiB at most", hwm / MIB);
    assert!(hwm <= 64 * MIB, "{hwm} bytes were resident");
}

/// A statement that fails on an item fails its test, unless its step is silent about that.
#[test]
fn a_failing_statement_fails_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidegate.yaml");
    for (on_error, code) in [("ignore", 1), ("silent", 0)] {
        let step = json!({"edit": "set(log.attributes[\"a\"], ParseJSON(log.body))", "on_error": on_error});
        let test = json!({"name": "t", "pipeline": "p", "given": {"logs": [{"body": "no json"}]}, "expect": {"logs": [{"body": "no json"}]}});
        let settings = json!({
            "pipelines": {"p": {"steps": [step]}},
            "sinks": {"s": {"type": "blackhole", "pipeline": "p"}},
            "tests": [test],
        });
        std::fs::write(&file, settings.to_string()).unwrap();
        let tested = finish(Command::new(binary()).args(["test", "--config"]).arg(&file));
        assert_eq!(tested.code, Some(code), "{on_error}: {tested:?}");
        assert_eq!(tested.stdout.contains("statement 1: it failed on an item"), code == 1, "{tested:?}");
    }
}
