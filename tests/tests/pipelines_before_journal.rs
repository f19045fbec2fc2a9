//! Pipelines of sources: what they remove never touches the disk, whatever protocol it came by and whatever is short; the
//! client gets success, every item is counted, and memory stays within its bound.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::path::Path;
use tidegate_load::otlp::{ContentCoding, OtlpClient, OtlpProfile, Signal, Transport, drive_blocking};
use tidegate_load::{OnRefused, Target};
use tidegate_tests::{Gateway, Recorder, SOON, http, until};
use tokio::runtime::Builder;

const MIB: u64 = 1 << 20;
const SECRET: &str = "hunter2";

/// A field of protobuf with this content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let low = u8::try_from(len % 128).unwrap();
    let len = if len < 128 { vec![low] } else { vec![low | 128, u8::try_from(len / 128).unwrap()] };
    [vec![number << 3 | 2], len, content.to_vec()].concat()
}

/// An OTLP request in protobuf with a log record for each text.
fn logs(texts: &[String]) -> Vec<u8> {
    let record = |text: &String| field(2, &field(5, &field(1, text.as_bytes())));
    field(1, &field(2, &texts.iter().flat_map(record).collect::<Vec<u8>>()))
}

/// The same in JSON.
fn json_logs(texts: &[String]) -> String {
    let records: Vec<Value> = texts.iter().map(|text| json!({"body": {"stringValue": text}})).collect();
    json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string()
}

/// A record to be masked, one to be dropped, and one that stays.
fn texts(way: &str) -> [String; 3] {
    [
        format!("{way}-masked password={SECRET} end"),
        format!("{way}-dropped health {SECRET}"),
        format!("{way}-kept"),
    ]
}

/// Sends over gRPC or HTTP in protobuf.
fn send(gateway: &Gateway, transport: Transport, coding: ContentCoding, body: &[u8]) {
    let authority = if transport == Transport::Grpc { gateway.grpc() } else { gateway.http() };
    let target = Target { authority: authority.to_string(), path: String::new() };
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut client = OtlpClient::open(transport, &target, SOON).await.unwrap();
        let body = coding.encode(body).unwrap();
        let answer = client.send(Signal::Logs, coding, &body, SOON).await.unwrap();
        assert!(answer.taken, "{answer:?}");
    })
}

fn post(gateway: &Gateway, path: &str, content_type: &str, body: &[u8]) -> http::Answer {
    let head = [&*format!("POST {path} HTTP/1.1"), &*format!("content-type: {content_type}")];
    let answer = http::request(gateway.http(), &head, body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

fn remote_write(gateway: &Gateway, names: &[&str]) {
    let series = |name: &&str| {
        let label = |name: &str, value: &str| {
            field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
        };
        let value = [&[1 << 3 | 1][..], &1.5_f64.to_bits().to_le_bytes(), &[2 << 3, 1]].concat();
        field(1, &[label("__name__", name), label("api_key", SECRET), field(2, &value)].concat())
    };
    let raw: Vec<u8> = names.iter().flat_map(series).collect();
    write_remote(gateway, &raw, "application/x-protobuf", "0.1.0", names.len());
}

/// The same in 2.0: a series that stays, and one that is dropped, with a customer of its own. One symbol is of no series.
fn remote_write_2(gateway: &Gateway) {
    let customer = format!("{SECRET}-customer");
    let unused = format!("{SECRET}-unused");
    let symbols = ["", "__name__", "up", "go_gc", "api_key", SECRET, "customer", &customer, &unused];
    let value = [&[1 << 3 | 1][..], &1.5_f64.to_bits().to_le_bytes(), &[2 << 3, 1]].concat();
    let series = |references: &[u8]| field(5, &[field(1, references), field(2, &value)].concat());
    let mut raw: Vec<u8> = symbols.iter().flat_map(|symbol| field(4, symbol.as_bytes())).collect();
    raw.extend(series(&[1, 2, 4, 5]));
    raw.extend(series(&[1, 3, 6, 7]));
    write_remote(gateway, &raw, "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0", 2);
}

fn write_remote(gateway: &Gateway, raw: &[u8], content_type: &str, version: &str, samples: usize) {
    let mut body = vec![0; tidegate_wire::snappy::max_compressed_len(raw.len()).unwrap()];
    let len = tidegate_wire::snappy::Encoder::new().compress(raw, &mut body).unwrap();
    body.truncate(len);
    let head = [
        "POST /api/v1/write HTTP/1.1",
        &*format!("content-type: {content_type}"),
        "content-encoding: snappy",
        &*format!("x-prometheus-remote-write-version: {version}"),
    ];
    let answer = http::request(gateway.http(), &head, &body).unwrap();
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("x-prometheus-remote-write-samples-written"), Some(&*samples.to_string()));
}

/// The files below `folder` that contain `text`.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path)
            .unwrap_or_default()
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// The balance of a source's pipeline: received, accepted, filtered. The status has none while nothing was counted.
fn pipeline(gateway: &Gateway, source: &str) -> (u64, u64, u64) {
    let status = gateway.status();
    let sources = status["books"]["sources"].as_array().unwrap();
    let book = &sources.iter().find(|book| book["name"] == source).unwrap()["pipeline"];
    if book.is_null() {
        return (0, 0, 0);
    }
    assert_eq!((&book["difference"], &book["sampled_out"]), (&json!(0), &json!(0)), "{source}: {book}");
    let count = |name: &str| book[name].as_u64().unwrap();
    (count("received"), count("accepted"), count("filtered"))
}

/// The items that a server got.
fn items(server: &Recorder) -> Vec<Value> {
    let bodies = server.seen().into_iter().map(|seen| String::from_utf8(seen.body).unwrap());
    bodies
        .flat_map(|body| body.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>())
        .collect()
}

fn lines_to(server: &Recorder) -> Value {
    json!({"type": "http", "endpoints": [server.url()], "linger": "20ms", "timeout": "10s"})
}

fn clean() -> Value {
    json!({"steps": [
        {"name": "quiet", "drop": "IsMatch(log.body, \"-dropped \")"},
        {"edit": "replace_pattern(log.body, \"password=\\\\w+\", \"password=***\")", "on_error": "drop"},
    ]})
}

/// By every protocol and encoding that pipelines apply to: the secret is in no file, the rest arrives, the books close.
#[test]
fn what_is_removed_never_touches_the_disk() {
    let server = Recorder::start();
    let mut gateway = Gateway::started(json!({
        "memory": "96MiB",
        "pipelines": {
            "clean": clean(),
            "names": {"steps": [{"relabel": [
                {"source_labels": ["__name__"], "regex": "go_.*", "action": "drop"},
                {"regex": "api_key", "action": "labeldrop"},
            ]}]},
        },
        "sources": {
            "otlp": {"pipeline": "clean", "before": "journal"},
            "http": {"pipeline": "clean"},
            "prometheus_remote_write": {"pipeline": "names"},
        },
        "sinks": {"app": lines_to(&server)},
    }));
    let mut ways = 0;
    for transport in [Transport::Grpc, Transport::Http] {
        for coding in [ContentCoding::Identity, ContentCoding::Gzip, ContentCoding::Zstd] {
            let body = logs(&texts(&format!("{transport:?}-{coding:?}").to_lowercase()));
            send(&gateway, transport, coding, &body);
            ways += 1;
        }
    }
    let answer = post(&gateway, "/v1/logs", "application/json", json_logs(&texts("json")).as_bytes());
    assert_eq!(answer.json(), json!({}), "nothing was rejected");
    ways += 1;
    let lines = texts("lines").join("\n");
    let answer = post(&gateway, "/ingest/logs", "text/plain", lines.as_bytes());
    assert_eq!(answer.json(), json!({"accepted": 3, "refused": 0}));
    remote_write(&gateway, &["up", "go_threads", "go_gc"]);
    remote_write_2(&gateway);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(pipeline(&gateway, "otlp"), (3 * ways, 2 * ways, ways));
    assert_eq!(pipeline(&gateway, "http"), (3, 2, 1));
    assert_eq!(pipeline(&gateway, "prometheus_remote_write"), (5, 2, 3));

    let items = items(&server);
    assert_eq!(items.len() as u64, 2 * (ways + 1) + 2);
    assert!(items.iter().all(|item| !item.to_string().contains(SECRET)), "{items:?}");
    let masked =
        |item: &&Value| item["body"].as_str().is_some_and(|body| body.ends_with(" password=*** end"));
    assert_eq!(items.iter().filter(masked).count() as u64, ways + 1);

    let status = gateway.status();
    let shown = status["source_pipelines"].as_array().unwrap();
    let otlp = &shown.iter().find(|pipeline| pipeline["source"] == "otlp").unwrap()["steps"][0];
    assert_eq!((&otlp["pipeline"], &otlp["step"]), (&json!("clean"), &json!("quiet")), "{otlp}");
    assert_eq!((&otlp["items"], &otlp["filtered"]), (&json!(3 * ways), &json!(ways)), "{otlp}");
    let metrics = gateway.metrics();
    let filtered = ways as f64;
    for series in [
        "tidegate_items_filtered_total{source=\"otlp\"}",
        "tidegate_source_pipeline_items_filtered_total{source=\"otlp\",pipeline=\"clean\",step=\"quiet\"}",
    ] {
        assert_eq!(metrics.get(series), Some(&filtered), "{series}");
    }
    assert!(metrics["tidegate_source_pipeline_run_seconds_total{source=\"otlp\"}"] > 0.0);

    gateway.kill9();
    let journal = gateway.data().join("journal");
    assert!(!files_with(&journal, "json-masked password=***").is_empty(), "what is left is in the journal");
    assert_eq!(files_with(gateway.folder(), SECRET), Vec::<String>::new());
}

/// A request of which nothing is left is answered with success, and the journal gets nothing.
#[test]
fn nothing_is_journalled_of_what_is_dropped_whole() {
    let gateway = Gateway::started(json!({
        "memory": "96MiB",
        "pipelines": {"none": {"steps": [{"drop": "log.body != nil"}]}},
        "sources": {"otlp": {"pipeline": "none"}},
        "sinks": {"nowhere": {"type": "blackhole"}},
    }));
    send(&gateway, Transport::Grpc, ContentCoding::Gzip, &logs(&texts("grpc")));
    let answer = post(&gateway, "/v1/logs", "application/json", json_logs(&texts("json")).as_bytes());
    assert_eq!(answer.json(), json!({}));
    gateway.books_close();
    assert_eq!(pipeline(&gateway, "otlp"), (6, 0, 6));
    let status = gateway.status();
    assert_eq!(
        (&status["books"]["journal"]["appended"], &status["journal"]["items_total"]),
        (&json!(0), &json!(0))
    );
    assert!(files_with(&gateway.data(), "json-kept").is_empty());
}

/// By SIGHUP a pipeline applies to the next request on a connection that stays open, is replaced, and is taken away.
#[test]
fn a_changed_pipeline_takes_effect_without_a_restart() {
    let settings = |source: Value, regex: &str| {
        json!({
            "memory": "96MiB",
            "pipelines": {"clean": {"steps": [{"drop": format!("IsMatch(log.body, \"{regex}\")")}]}},
            "sources": {"otlp": source},
            "sinks": {"nowhere": {"type": "blackhole", "pipeline": "clean"}},
        })
    };
    let mut gateway = Gateway::started(settings(json!({}), "dropped"));
    let target = Target { authority: gateway.grpc().to_string(), path: String::new() };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut client = runtime.block_on(OtlpClient::open(Transport::Grpc, &target, SOON)).unwrap();
    let mut send = |gateway: &Gateway| {
        let body = ContentCoding::Gzip.encode(&logs(&texts("reload"))).unwrap();
        let answer = runtime.block_on(client.send(Signal::Logs, ContentCoding::Gzip, &body, SOON)).unwrap();
        assert!(answer.taken, "the connection stays: {answer:?}");
        pipeline(gateway, "otlp")
    };
    assert_eq!(send(&gateway), (0, 0, 0), "no pipeline yet");
    let mut reloads = 0;
    let mut reload = |gateway: &mut Gateway, settings: Value| {
        gateway.configure(settings);
        gateway.hangup();
        reloads += 1;
        until(SOON, "the configuration to be read again", || {
            gateway.log().matches("the configuration was read again").count() == reloads
        });
    };
    let with_pipeline = json!({"pipeline": "clean"});
    reload(&mut gateway, settings(with_pipeline.clone(), "dropped"));
    assert_eq!(send(&gateway), (3, 2, 1));
    reload(&mut gateway, settings(with_pipeline, "dropped|kept"));
    assert_eq!(send(&gateway), (6, 3, 3));
    reload(&mut gateway, settings(json!({}), "dropped"));
    assert_eq!(send(&gateway), (6, 3, 3));
    assert!(!gateway.log().contains("needs a restart"), "{}", gateway.log());
    gateway.at_rest(SOON);
    gateway.books_close();
}

/// In 64 MiB, a pipeline that makes every item longer before the journal, while more comes than fits: whatever is refused
/// is told when to return, and nothing passes unedited.
#[test]
fn memory_stays_within_its_bound() {
    let long = "x".repeat(200);
    let server = Recorder::start();
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "limits": {"connections": 800},
        "pipelines": {"grow": {"steps": [
            {"edit": format!("set(log.attributes[\"grown\"], \"{long}\")")},
            {"drop": "log.attributes[\"http.request.method\"] == \"GET\""},
        ]}},
        "sources": {"otlp": {"pipeline": "grow"}},
        "sinks": {"app": lines_to(&server)},
    }));
    let (mut sent, mut refused) = (0, 0);
    for (transport, items) in
        [(Transport::Grpc, 50), (Transport::Http, 2_000), (Transport::Grpc, 2_000), (Transport::Http, 4_000)]
    {
        let authority = if transport == Transport::Grpc { gateway.grpc() } else { gateway.http() };
        let profile = OtlpProfile {
            transport,
            signal: Signal::Logs,
            connections: 20,
            items,
            requests: if items < 100 { 4 } else { 2 },
            on_refused: OnRefused::Retry { at_most: SOON },
            deadline: SOON * 4,
            ..OtlpProfile::default()
        };
        let target = Target { authority: authority.to_string(), path: String::new() };
        let report = drive_blocking(&target, &profile).unwrap();
        assert_eq!((report.failed, report.with_delay), (0, report.refused), "{:?}", report.reasons);
        sent += report.accepted * items;
        refused += report.refused;
    }
    gateway.at_rest(SOON * 3);
    gateway.books_close();
    let (received, accepted, filtered) = pipeline(&gateway, "otlp");
    assert_eq!((received, accepted + filtered), (sent, sent));
    assert!(filtered > 0);
    let items = items(&server);
    assert_eq!(items.len() as u64, accepted);
    assert!(items.iter().all(|item| item["attributes"]["grown"] == *long));
    let hwm = gateway.hwm();
    println!("{sent} items, {refused} refusals, {} MiB at most", hwm / MIB);
    assert!(hwm <= 64 * MIB, "{hwm} bytes were resident");
}
