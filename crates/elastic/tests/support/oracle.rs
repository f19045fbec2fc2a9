//! APM Server's own code (`tests/apm/oracle`), asked what it makes of bodies.

use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A request whose body is whole and decompressed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) body: String,
    /// In nanoseconds.
    pub(crate) received: u64,
    /// A browser's address and port, and what it calls itself.
    pub(crate) browser: Option<(&'static str, u16, &'static str)>,
}

/// The responses of APM Server, and the documents that Elasticsearch then indexes.
#[derive(Debug)]
#[allow(dead_code, reason = "not every test compares all of it")]
pub(crate) struct Answer {
    pub(crate) status: u64,
    pub(crate) accepted: u64,
    pub(crate) messages: Vec<String>,
    pub(crate) documents: Vec<Value>,
}

/// The folder with the program, and with the bodies of its own tests. Without it nothing is compared, which is said
/// loudly.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TIDEGATE_TEST_APM_ORACLE").filter(|value| !value.is_empty());
    if folder.is_none() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
        assert!(!ci, "TIDEGATE_TEST_APM_ORACLE is not set; `make test` sets it");
        // Not by a macro: the test harness catches what those print.
        let _closed =
            writeln!(std::io::stderr(), "SKIPPED: TIDEGATE_TEST_APM_ORACLE is not set; `make test` sets it");
    }
    folder.map(PathBuf::from)
}

/// Asks about many bodies at once.
pub(crate) fn ask(requests: &[Request]) -> Option<Vec<Answer>> {
    let mut oracle = Command::new(folder()?.join("oracle"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the oracle");
    let mut input = oracle.stdin.take().unwrap();
    let text: String = requests.iter().map(|request| format!("{}\n", request.json())).collect();
    // It answers while it is still being asked.
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let done = oracle.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(done.status.success());
    let lines = done.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers: Vec<_> = lines.map(|line| Answer::of(serde_json::from_slice(line).unwrap())).collect();
    assert_eq!(answers.len(), requests.len());
    Some(answers)
}

impl Request {
    fn json(&self) -> Value {
        let (client, port, user_agent) = self.browser.unwrap_or_default();
        json!({
            "body": self.body, "received": self.received,
            "client": client, "port": port, "user_agent": user_agent,
        })
    }
}

impl Answer {
    fn of(mut answer: Value) -> Answer {
        let Value::Array(documents) = answer["documents"].take() else { panic!("{answer}") };
        let errors = answer["errors"].as_array().unwrap();
        Answer {
            status: answer["status"].as_u64().unwrap(),
            accepted: answer["accepted"].as_u64().unwrap(),
            messages: errors.iter().map(|error| error["message"].as_str().unwrap().to_owned()).collect(),
            documents,
        }
    }
}

/// Differences between tidegate's documents and APM Server's: `design/documents.md` gives the reasons.
const MORE: [&str; 3] = ["span.start.us", "service.id", "transaction.dropped_spans_stats"];

/// Where they differ, in words: nothing where `found` says what `expected` says.
pub(crate) fn difference(found: &Value, expected: &Value) -> Option<String> {
    let (mut found, expected) = (fields(found), fields(expected));
    let is_log = expected.get("processor.event").is_some_and(|kind| kind == "log" || kind == "error");
    found.retain(|path, value| {
        let is_more = MORE.iter().any(|more| path.starts_with(more))
            || is_log
                && !expected.contains_key(path)
                && path.split('.').next().is_some_and(|first| first.ends_with("labels"));
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        !is_more && !is_empty
    });
    for (path, value) in &expected {
        match found.remove(path) {
            Some(ours) if alike(path, &ours, value) => {}
            ours => return Some(format!("{path}: {} instead of {value}", ours.unwrap_or_default())),
        }
    }
    found.iter().next().map(|(path, value)| format!("{path}: {value} is too much"))
}

/// A document as its fields: each value by its dotted name, as Elasticsearch takes it.
fn fields(document: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    flatten(document, String::new(), &mut all);
    all
}

fn flatten(value: &Value, path: String, all: &mut Map<String, Value>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(value, path, all);
            }
        }
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            for (place, value) in values.iter().enumerate() {
                flatten(value, format!("{path}[{place}]"), all);
            }
        }
        value => drop(all.insert(path, value.clone())),
    }
}

/// Whether values are the same: numbers however they were written, times to the millisecond.
fn alike(path: &str, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(ours), Value::String(theirs)) if path == "@timestamp" => {
            // APM Server cuts off what is behind milliseconds, and knows no other zone than this.
            ours.get(..23) == theirs.get(..23)
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 1e-12
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(path, one, other))
        }
        (one, other) => one == other,
    }
}
