//! `parse` of a source, on lines as real programs write them.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use serde_json::{Value as Json, json};
use tidegate_config::Parse;
use tidegate_pipeline::{Definition, Format, Pipeline, Signal};
use tidegate_trial::{apply, decode, differences, encode};

/// The record that `record` becomes.
fn parsed_record(parse: Parse, record: Json) -> Json {
    let definition = Definition { steps: parse.steps().map(|(_, step)| step).collect() };
    let (pipeline, _) = Pipeline::compile(&definition).unwrap();
    let body = encode(Signal::Logs, &[record]).unwrap();
    let applied = apply(&pipeline, Format::Otlp(Signal::Logs), &body, 1_700_000_000_000_000_000);
    let failures: u64 = applied.steps.iter().flat_map(|step| &step.failures).sum();
    assert_eq!(failures, 0, "statements failed");
    decode(Signal::Logs, &applied.body.unwrap_or(body)).remove(0)
}

/// The line becomes exactly these members.
fn becomes(parse: Parse, line: &str, expected: Json) {
    let mut found = parsed_record(parse, json!({ "body": line }));
    for name in ["signal", "resource", "scope"] {
        found.as_object_mut().unwrap().remove(name);
    }
    let differences = differences(&expected, &found, true);
    assert!(differences.is_empty(), "{line}\nfound    {found}\nexpected {expected}");
}

#[test]
fn python_json_logger() {
    becomes(
        Parse::Json,
        r#"{"asctime": "2024-05-01 12:30:00,123", "levelname": "WARNING", "name": "app.db", "message": "slow query", "seconds": 1.5}"#,
        json!({
            "time": "2024-05-01T12:30:00.123Z", "severity_text": "WARNING", "severity_number": 13, "body": "slow query",
            "attributes": { "name": "app.db", "seconds": 1.5 },
        }),
    );
}

/// Members that have the names of the steps' own values are plain data: they steer nothing, and none is lost.
#[test]
fn members_named_like_the_own_values_of_the_steps() {
    let line = r#"{"tidegate.level":"error","tidegate.time":"2024-05-01T12:30:00Z","!tidegate.body":"b","tidegate.nanos":1714566600000000000,"msg":"m","x":1.5}"#;
    let attributes = json!({
        "tidegate.level": "error", "tidegate.time": "2024-05-01T12:30:00Z", "!tidegate.body": "b",
        "tidegate.nanos": 1_714_566_600_000_000_000.0, "x": 1.5,
    });
    let expected = json!({ "body": "m", "attributes": attributes });
    becomes(Parse::Json, line, expected.clone());
    becomes(Parse::Auto, line, expected);
    becomes(
        Parse::Logfmt,
        "msg=m tidegate.level=error tidegate.body=b",
        json!({ "body": "m", "attributes": { "tidegate.level": "error", "tidegate.body": "b" } }),
    );
}

/// Levels are numbers of pino or syslog, as numbers or as text, or names in any case; anything else stays an attribute.
#[test]
fn levels_of_all_kinds() {
    let level = |level: Json| {
        let record = parsed_record(Parse::Json, json!({ "body": { "level": level, "msg": "m" } }));
        (record["severity_number"].as_u64(), record["attributes"]["level"].clone())
    };
    for (value, number) in [
        (json!(30), 9),
        (json!(30.0), 9),
        (json!("30"), 9),
        (json!("40"), 13),
        (json!(60), 21),
        (json!(4), 13),
        (json!("3"), 17),
        (json!("WARN"), 13),
        (json!("warning"), 13),
        (json!("Error"), 17),
    ] {
        assert_eq!(level(value.clone()), (Some(number), Json::Null), "{value}");
    }
    assert_eq!(level(json!(true)), (None, json!(true)));
    let line = r#"{"level":"50","msg":"m"}"#;
    becomes(Parse::Json, line, json!({ "severity_text": "50", "severity_number": 17, "body": "m" }));
    becomes(
        Parse::Logfmt,
        "level=30 msg=m",
        json!({ "severity_text": "30", "severity_number": 9, "body": "m" }),
    );
}

#[test]
fn zap() {
    becomes(
        Parse::Json,
        r#"{"level":"error","ts":1714566600.5,"caller":"server/main.go:42","msg":"failed","error":"EOF"}"#,
        json!({
            "time": "2024-05-01T12:30:00.5Z", "severity_text": "error", "severity_number": 17, "body": "failed",
            "attributes": { "caller": "server/main.go:42", "error": "EOF" },
        }),
    );
}

#[test]
fn pino() {
    becomes(
        Parse::Json,
        r#"{"level":30,"time":1714566600123,"pid":7,"hostname":"web-1","req":{"id":"a","url":"/x"},"msg":"done"}"#,
        json!({
            "time": "2024-05-01T12:30:00.123Z", "severity_number": 9, "body": "done",
            "attributes": { "pid": 7.0, "hostname": "web-1", "req": { "id": "a", "url": "/x" } },
        }),
    );
}

#[test]
fn logrus_in_json_and_in_logfmt() {
    let expected = json!({
        "time": "2024-05-01T12:30:00Z", "severity_text": "info", "severity_number": 9, "body": "a \"walrus\" appears",
        "attributes": { "animal": "walrus" },
    });
    let line = r#"{"animal":"walrus","level":"info","msg":"a \"walrus\" appears","time":"2024-05-01T14:30:00+02:00"}"#;
    becomes(Parse::Json, line, expected.clone());
    let line = r#"time="2024-05-01T14:30:00+02:00" level=info msg="a \"walrus\" appears" animal=walrus"#;
    becomes(Parse::Logfmt, line, expected.clone());
    becomes(Parse::Auto, line, expected);
}

#[test]
fn logback_with_the_logstash_encoder() {
    becomes(
        Parse::Json,
        r#"{"@timestamp":"2024-05-01T12:30:00.123456789Z","@version":"1","message":"started","logger_name":"org.example.App","thread_name":"main","level":"INFO","level_value":20000}"#,
        json!({
            "time": "2024-05-01T12:30:00.123456789Z", "severity_text": "INFO", "severity_number": 9, "body": "started",
            "attributes": {
                "@version": "1", "logger_name": "org.example.App", "thread_name": "main", "level_value": 20000.0,
            },
        }),
    );
}

#[test]
fn ecs_with_a_trace() {
    becomes(
        Parse::Json,
        r#"{"@timestamp":"2024-05-01T12:30:00Z","log.level":"CRITICAL","message":"x","trace.id":"0af7651916cd43dd8448eb211c80319c","span.id":"b7ad6b7169203331","ecs.version":"1.6.0"}"#,
        json!({
            "time": "2024-05-01T12:30:00Z", "severity_text": "CRITICAL", "severity_number": 21, "body": "x",
            "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",
            "attributes": { "ecs.version": "1.6.0" },
        }),
    );
}

/// Nothing is lost where a member has the name of a field, and is none.
#[test]
fn members_that_are_not_understood_stay() {
    becomes(
        Parse::Json,
        r#"{"level":{"a":"b"},"time":"yesterday","message":17,"trace_id":"none"}"#,
        json!({
            "body": r#"{"level":{"a":"b"},"time":"yesterday","message":17,"trace_id":"none"}"#,
            "attributes": { "level": { "a": "b" }, "time": "yesterday", "message": 17.0, "trace_id": "none" },
        }),
    );
}

#[test]
fn nginx_access_log() {
    becomes(
        Parse::Nginx,
        r#"203.0.113.7 - frank [01/May/2024:14:30:00 +0200] "GET /a/b?q=1&r=%20 HTTP/1.1" 502 157 "-" "curl/8.5.0""#,
        json!({
            "time": "2024-05-01T12:30:00Z", "severity_number": 17,
            "body": r#"203.0.113.7 - frank [01/May/2024:14:30:00 +0200] "GET /a/b?q=1&r=%20 HTTP/1.1" 502 157 "-" "curl/8.5.0""#,
            "attributes": {
                "client.address": "203.0.113.7", "user.name": "frank", "http.request.method": "GET", "url.path": "/a/b",
                "url.query": "q=1&r=%20", "network.protocol.version": "1.1", "http.response.status_code": 502,
                "http.response.body.size": 157, "user_agent.original": "curl/8.5.0",
            },
        }),
    );
}

#[test]
fn nginx_error_log() {
    becomes(
        Parse::Nginx,
        r#"2024/05/01 12:30:00 [error] 31#32: *7 connect() failed (111: Connection refused) while connecting to upstream, client: 203.0.113.7, server: _, request: "GET /x?y HTTP/1.1", upstream: "http://127.0.0.1:8080/x", host: "example.com:80""#,
        json!({
            "time": "2024-05-01T12:30:00Z", "severity_text": "error", "severity_number": 17,
            "body": r#"connect() failed (111: Connection refused) while connecting to upstream, client: 203.0.113.7, server: _, request: "GET /x?y HTTP/1.1", upstream: "http://127.0.0.1:8080/x", host: "example.com:80""#,
            "attributes": {
                "process.pid": 31, "thread.id": 32, "nginx.connection": 7, "client.address": "203.0.113.7",
                "http.request.method": "GET", "url.path": "/x", "server.address": "example.com",
            },
        }),
    );
}

#[test]
fn apache_access_log() {
    becomes(
        Parse::Apache,
        r#"2001:db8::1 - - [01/May/2024:12:30:00 +0000] "POST /form HTTP/1.0" 204 -"#,
        json!({
            "time": "2024-05-01T12:30:00Z", "severity_number": 9,
            "body": r#"2001:db8::1 - - [01/May/2024:12:30:00 +0000] "POST /form HTTP/1.0" 204 -"#,
            "attributes": {
                "client.address": "2001:db8::1", "http.request.method": "POST", "url.path": "/form",
                "network.protocol.version": "1.0", "http.response.status_code": 204,
            },
        }),
    );
}

#[test]
fn apache_error_log() {
    becomes(
        Parse::Apache,
        "[Wed May 01 12:30:00.123456 2024] [core:error] [pid 35708:tid 4328636416] [client 203.0.113.7:51000] File does not exist: /a",
        json!({
            "time": "2024-05-01T12:30:00.123456Z", "severity_text": "error", "severity_number": 17,
            "body": "File does not exist: /a",
            "attributes": {
                "apache.module": "core", "process.pid": 35708, "thread.id": 4_328_636_416_u64,
                "client.address": "203.0.113.7", "client.port": 51000,
            },
        }),
    );
}

#[test]
fn klog() {
    becomes(
        Parse::Auto,
        r#"E0501 12:30:00.000001       1 reflector.go:147] "Failed to watch" err="EOF""#,
        json!({
            "time": "2023-05-01T12:30:00.000001Z", "severity_text": "E", "severity_number": 17,
            "body": r#""Failed to watch" err="EOF""#,
            "attributes": { "thread.id": 1, "code.file.path": "reflector.go", "code.line.number": 147 },
        }),
    );
}

/// Lines of other formats are left alone, and so is the time that a container runtime gave.
#[test]
fn other_lines_stay_as_they_are() {
    for line in ["plain text", "", "[1, 2]", "10.0.0.1 is an address", "2024/05/01 was a Wednesday", "E0501"]
    {
        for parse in Parse::ALL {
            becomes(parse, line, json!({ "body": line }));
        }
    }
    let line = r#"{"time":"2024-05-01 12:30:00","msg":"no zone"}"#;
    let found = parsed_record(Parse::Json, json!({ "body": line, "time": "2024-05-01T10:30:00.5Z" }));
    assert_eq!(found["time"], "2024-05-01T10:30:00.500Z");
    assert_eq!(found["attributes"]["time"], "2024-05-01 12:30:00");
}
