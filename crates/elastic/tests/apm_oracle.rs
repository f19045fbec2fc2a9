//! Intake events are taken as APM Server takes them, and become the documents that it makes of them, field by field.
//! This file lists the differences; `design/documents.md` gives the reasons.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::indexing_slicing, reason = "a test")]
// The oracle's events are those of the crate's own tests.
#[path = "../src/intake/tests/round_trip/events.rs"]
mod events;
#[path = "support/oracle.rs"]
mod oracle;

use oracle::{Request, ask, difference, folder};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tidegate_elastic::documents::{DocumentBuffer, DocumentPosition, DocumentSettings, from_intake};
use tidegate_wire::intake::{LONGEST_LINE, check};

const RECEIVED: u64 = 1_795_201_900_123_456_789;

/// Bodies of four agents, those of APM Server's own tests, and those of this folder.
fn bodies() -> Vec<(String, String)> {
    let agents = tidegate_load::elastic_apm::AGENTS.iter();
    let mut all: Vec<_> = agents
        .flat_map(|agent| {
            [(agent.name.to_owned(), agent.busy.to_owned()), (agent.name.to_owned(), agent.idle.to_owned())]
        })
        .collect();
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apm");
    for folder in folder().map(|folder| folder.join("bodies")).into_iter().chain([ours.into()]) {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        for file in files {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            all.push((name, std::fs::read_to_string(&file).unwrap()));
        }
    }
    all
}

/// A request that both are asked about.
struct Asked {
    name: String,
    request: Request,
    /// The body as the source journals it.
    journalled: String,
}

impl Asked {
    fn new(name: &str, body: String) -> Asked {
        let request = Request { body: body.clone(), received: RECEIVED, browser: None };
        Asked { name: name.to_owned(), request, journalled: body }
    }

    /// The error in its first line, or whether its event is accepted.
    fn is_taken(&self) -> Result<bool, String> {
        let counts = check(self.journalled.as_bytes(), LONGEST_LINE, |_, _| {});
        counts.map(|counts| counts.events > 0).map_err(|refused| refused.error.to_string())
    }

    fn document(&self) -> Value {
        let settings = DocumentSettings { received: RECEIVED, ..DocumentSettings::default() };
        let mut space = vec![0; 4 << 20];
        let mut page = DocumentBuffer::new(&mut space);
        let done =
            from_intake(self.journalled.as_bytes(), DocumentPosition::START, "p", &settings, &mut page)
                .unwrap();
        assert_eq!((done.items, done.documents, done.next), (1, 1, None), "{}", self.name);
        let line = page.written().split(|byte| *byte == b'\n').nth(1).unwrap();
        serde_json::from_slice(line).unwrap()
    }
}

/// Compares what becomes of each; how many were compared.
fn compared(all: &[Asked], strict: bool) -> usize {
    let requests: Vec<_> = all.iter().map(|asked| asked.request.clone()).collect();
    let Some(answers) = ask(&requests) else { return 0 };
    let (mut differences, mut count) = (Vec::new(), 0);
    for (asked, answer) in all.iter().zip(&answers) {
        let line = asked.request.body.lines().nth(1).unwrap_or_default();
        let taken = asked.is_taken();
        match (&taken, answer.documents.first()) {
            (Ok(true), Some(expected)) => {
                count += 1;
                if let Some(words) = difference(&asked.document(), expected) {
                    differences.push(format!("{}: {words}\n  {line}", asked.name));
                }
            }
            // A breakdown of nothing that APM Server knows is taken by it, and thrown away.
            (Ok(true), None) if answer.accepted == 0 && answer.status == 202 => {}
            (Ok(true), None) if !strict || is_lenient(&answer.messages) => {}
            (Ok(false), Some(_)) if is_strict(line) => {}
            (Ok(false), None) | (Err(_), None) => assert!(answer.status != 202 || line.is_empty(), "{line}"),
            _ => differences.push(format!("{}: {taken:?}, {answer:?}\n  {line}", asked.name)),
        }
    }
    let shown: Vec<_> =
        differences.iter().take(20).map(|text| text.chars().take(3000).collect::<String>()).collect();
    assert!(differences.is_empty(), "{} of {count} differ:\n{}", differences.len(), shown.join("\n"));
    count
}

/// Events that APM Server refuses and tidegate accepts: wrong types of deeply nested fields. Documents leave such
/// fields out.
fn is_lenient(messages: &[String]) -> bool {
    let is_known = |message: &String| {
        ["HTTPHeader", "data read error", "failed to parse the provided time"]
            .iter()
            .any(|words| message.contains(words))
    };
    // One that says nothing has not refused it for any of these.
    !messages.is_empty() && messages.iter().all(is_known)
}

/// Events that tidegate refuses and APM Server accepts: lines with trailing garbage after the JSON.
fn is_strict(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_err()
}

/// Each line of each body, by itself; but for attributes of OpenTelemetry's bridges, which become labels here.
#[test]
fn documents_are_those_of_apm_server() {
    let mut all = Vec::new();
    for (name, body) in bodies().into_iter().filter(|(name, _)| name != "otel-bridge.ndjson") {
        let mut lines = body.lines();
        let metadata = lines.next().unwrap();
        all.push(Asked::new(&name, format!("{metadata}\n")));
        all.extend(lines.map(|line| Asked::new(&name, format!("{metadata}\n{line}\n"))));
    }
    let count = compared(&all, true);
    assert!(folder().is_none() || count > 700, "{count}");
}

/// Whole bodies: how many events are taken, whether the answer is a good one, and how many errors it has.
#[test]
fn answers_are_those_of_apm_server() {
    // Here APM Server refuses lines for what is far inside them, or takes one that is no JSON to its end.
    const DIFFER: [&str; 3] = ["metricsets.ndjson", "spans.ndjson", "transactions.ndjson"];
    let bodies = bodies();
    let requests: Vec<_> = bodies
        .iter()
        .map(|(_, body)| Request { body: body.clone(), received: RECEIVED, browser: None })
        .collect();
    let Some(answers) = ask(&requests) else { return };
    for ((name, body), answer) in
        bodies.iter().zip(&answers).filter(|((name, _), _)| !DIFFER.contains(&&**name))
    {
        let mut messages = Vec::new();
        let counts = check(body.as_bytes(), LONGEST_LINE, |_, error| messages.push(error.to_string()));
        let accepted = counts.map_or_else(
            |refused| {
                messages.push(refused.error.to_string());
                0
            },
            |counts| counts.events,
        );
        messages.truncate(5);
        assert_eq!(accepted, answer.accepted, "{name}: {messages:?} {:?}", answer.messages);
        assert_eq!(messages.len(), answer.messages.len(), "{name}: {messages:?} {:?}", answer.messages);
        assert_eq!(if messages.is_empty() { 202 } else { 400 }, answer.status, "{name}");
    }
}

/// The documents contain the other properties of a browser's request.
#[test]
fn browser_requests_become_apm_servers_documents() {
    let metadata = |more: &str| {
        format!(
            "{{\"metadata\":{{\"service\":{{\"name\":\"page\",\"agent\":{{\"name\":\"rum-js\",\"version\":\"5\"}}}}{more}}}}}"
        )
    };
    let known = ",\"tidegate\":{\"client\":\"192.0.2.7\",\"source\":\"192.0.2.7\",\"port\":8123,\"user_agent\":\"Mozilla/5.0\"}";
    let base = r#""id":"1","trace_id":"2","type":"page-load","duration":1.5,"span_count":{"started":0}"#;
    let all: Vec<_> = [
        format!(r#"{{"transaction":{{{base},"context":{{"page":{{"url":"https://a.example:81/b%20c?d=e#f","referer":"r"}}}}}}}}"#),
        format!(r#"{{"transaction":{{{base},"experience":{{"cls":0.5,"tbt":3}},"marks":{{"a.b":{{"c.d":1.5}}}}}}}}"#),
        format!(r#"{{"transaction":{{{base},"context":{{"request":{{"method":"GET","socket":{{"remote_address":"10.0.0.1"}},"headers":{{"user-agent":["a","b"]}}}}}}}}}}"#),
    ]
    .iter()
    .map(|line| {
        let browser = Some(("192.0.2.7", 8123, "Mozilla/5.0"));
        let request = Request { body: format!("{}\n{line}\n", metadata("")), received: RECEIVED, browser };
        Asked { name: "browser".to_owned(), request, journalled: format!("{}\n{line}\n", metadata(known)) }
    })
    .collect();
    assert!(folder().is_none() || compared(&all, true) == all.len());
}

/// Takes out what says nothing, and what no agent means: numbers beyond 32 bits, names without letters.
fn tame(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Object(samples)) = members.get_mut("samples") {
                samples.retain(|name, sample| {
                    name.split('.').all(|part| !part.is_empty()) && sample["values"] != json!([3, 2])
                });
            }
            for (name, value) in members.iter_mut().filter(|(name, _)| *name != "timestamp") {
                match value.get_mut("name") {
                    Some(name_of_service) if name == "service" => *name_of_service = json!("Other-Shop"),
                    _ => tame(value),
                }
            }
            members.retain(|name, value| name == "samples" || says_something(value));
        }
        Value::Array(values) => {
            values.iter_mut().for_each(tame);
            values.retain(says_something);
        }
        Value::Number(number) => {
            if let Some(large) = number.as_i64().filter(|number| number.unsigned_abs() > 1 << 31) {
                *value = (large.unsigned_abs() % 1000).into();
            }
        }
        Value::String(text) if text.is_empty() => *value = json!("x"),
        _ => {}
    }
}

fn says_something(value: &Value) -> bool {
    !value.is_null() && *value != json!({}) && *value != json!([])
}

/// Random events, of whatever agents can say in them.
#[test]
fn random_events_become_apm_servers_documents() {
    let metadata = json!({ "metadata": {
        "service": {"name": "My-Shop 2", "agent": {"name": "go", "version": "1"}, "version": "1.2", "environment": "test"},
        "system": {"hostname": "here", "container": {"id": "c1"}, "kubernetes": {"node": {"name": "n1"}}},
        "user": {"id": "u", "email": "e"},
        "labels": {"team.x": "core", "tier": 1},
    }});
    let mut runner = TestRunner::deterministic();
    let mut all = Vec::new();
    for _ in 0..400 {
        let mut put = |kind: &str, mut event: Value| {
            tame(&mut event);
            let body = format!("{metadata}\n{}\n", json!({ kind: event }));
            all.push(Asked::new(&format!("random {kind}"), body));
        };
        put("transaction", events::transaction().new_tree(&mut runner).unwrap().current());
        put("span", events::span().new_tree(&mut runner).unwrap().current());
        put("error", events::error().new_tree(&mut runner).unwrap().current());
        put("metricset", events::metricset().new_tree(&mut runner).unwrap().current());
    }
    let count = compared(&all, false);
    assert!(folder().is_none() || count > 300, "{count}");
}
