//! Log records.

use super::{Any, AnyValue, KeyValue, SECOND, START, Stored, attributes, each, resource, text};
use crate::Kind;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use serde_json::{Value, json};
use tidegate_journal::Signal;

/// Records of a service, one for each second and severity.
pub(super) fn logs(service: &str, records: &[(u64, i32, &str)]) -> ExportLogsServiceRequest {
    let record = |&(second, severity, body): &(u64, i32, &str)| LogRecord {
        time_unix_nano: (START + second) * SECOND + 5,
        severity_number: severity,
        severity_text: "TEXT".to_owned(),
        body: Some(text(body)),
        attributes: attributes(&[("http.route", "/cart"), ("exception.type", "Oops")]),
        ..LogRecord::default()
    };
    let scope_logs =
        vec![ScopeLogs { log_records: records.iter().map(record).collect(), ..ScopeLogs::default() }];
    let resource_logs =
        vec![ResourceLogs { resource: resource(service), scope_logs, ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }
}

fn bodies_of(answer: &Value) -> Vec<String> {
    let mut bodies = bodies(answer);
    bodies.sort();
    bodies
}

fn bodies(answer: &Value) -> Vec<String> {
    each(&answer["logs"], "body")
}

/// Rows of the lake and of the journal behind it are found once, the newest first.
#[test]
fn the_lake_and_the_journal_behind_it_are_one() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(1, 9, "one"), (5, 9, "five")]));
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(3, 9, "three")]));
    stored.append_otlp(Signal::Logs, &logs("shop", &[(2, 9, "two"), (6, 9, "six")]));
    stored.append_otlp(Signal::Logs, &logs("shop", &[(4, 9, "four")]));
    let answer = stored.ask(Kind::Logs, &json!({}));
    assert_eq!(bodies(&answer), ["six", "five", "four", "three", "two", "one"]);
    assert_eq!(each(&answer["logs"], "from"), ["journal", "lake", "journal", "lake", "journal", "lake"]);
    assert_eq!((&answer["from_lake"], &answer["from_journal"]), (&json!(3), &json!(3)));
    assert_eq!(answer["incomplete"], json!([]));
    assert_eq!(answer["has_more"], json!(false));
    assert_eq!(answer["logs"][0]["time"], "2023-11-14T22:13:26.000000005Z");
    let newest = stored.ask(Kind::Logs, &json!({"limit": 3}));
    assert_eq!(
        (bodies(&newest), &newest["has_more"]),
        (vec!["six".into(), "five".into(), "four".into()], &json!(true))
    );
    // A lake that is not there yet, or none at all: the journal has everything.
    stored.lake = None;
    let answer = stored.ask(Kind::Logs, &json!({}));
    assert_eq!(bodies(&answer), ["six", "five", "four", "three", "two", "one"]);
    assert_eq!((&answer["lake"], &answer["from_journal"]), (&Value::Null, &json!(6)));
    assert_eq!(answer["journal"]["since"], "2023-11-14T22:13:20Z");
}

/// A text is found in the journal wherever it is found in the lake, though records without its bytes are passed over there. Bodies that are
/// maps become JSON, which has letters that are not in the record.
#[test]
fn a_text_is_found_in_the_journal_as_in_the_lake() {
    let map = |key: &str, value: Any| {
        let values = vec![KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }];
        Any { value: Some(AnyValue::KvlistValue(KeyValueList { values })) }
    };
    let number = Any { value: Some(AnyValue::IntValue(77)) };
    let list = ArrayValue { values: vec![text("paid in"), number.clone()] };
    let bodies = [
        text("paid in 77 ms"),
        map("m", text("first\nout of memory")),
        map("m", text("a \"quoted\" word")),
        map("a key", map("inner one", number)),
        Any { value: Some(AnyValue::ArrayValue(list)) },
        Any { value: Some(AnyValue::BytesValue(b"raw bytes".to_vec())) },
        text("gr\u{fc}\u{df}e aus K\u{f6}ln"),
    ];
    let mut request = logs("shop", &[(1, 9, "")]);
    let records = &mut request.resource_logs[0].scope_logs[0].log_records;
    let record = records[0].clone();
    *records = bodies.into_iter().map(|body| LogRecord { body: Some(body), ..record.clone() }).collect();
    let (mut lake, journal) = (Stored::new(), Stored::new());
    lake.commit_otlp(Signal::Logs, &request);
    journal.append_otlp(Signal::Logs, &request);
    let mut found = 0;
    for wanted in [
        "in 77 ms",
        "nout of memory",
        "out of",
        "a key",
        "inner one",
        "quoted",
        "a \\\"quoted",
        "paid in\",77",
        "77",
        "raw bytes",
        "cmF3",
        " aus K\u{f6}ln",
        "no such text",
        "one\":77",
    ] {
        let [of_lake, of_journal] =
            [&lake, &journal].map(|stored| bodies_of(&stored.ask(Kind::Logs, &json!({"text": wanted}))));
        assert_eq!(of_lake, of_journal, "{wanted}");
        found += of_lake.len();
    }
    assert!(found > 10, "{found}");
}

/// Records that are sent again to a sink are found once, where they came first; those for the lake alone are found at once.
#[test]
fn records_for_another_sink_are_not_found_twice() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(1, 9, "first")]));
    stored.recipient = Some("up");
    stored.append_otlp(Signal::Logs, &logs("shop", &[(1, 9, "first")]));
    stored.recipient = Some("lake");
    stored.append_otlp(Signal::Logs, &logs("shop", &[(2, 9, "to the lake")]));
    assert_eq!(bodies(&stored.ask(Kind::Logs, &json!({}))), ["to the lake", "first"]);
}

/// Each condition finds the same in the lake and in the journal.
#[test]
fn conditions_narrow_both() {
    let mut stored = Stored::new();
    let all = [(1, 9, "paid 10 dollars"), (2, 17, "declined"), (3, 0, "paid nothing")];
    stored.commit_otlp(Signal::Logs, &logs("shop", &all));
    stored.append_otlp(
        Signal::Logs,
        &logs("shop", &all.map(|(second, severity, body)| (second + 10, severity, body))),
    );
    stored.append_otlp(Signal::Logs, &logs("other", &[(30, 21, "paid")]));
    let seconds = |query: Value| -> Vec<String> {
        let answer = stored.ask(Kind::Logs, &query);
        each(&answer["logs"], "time").iter().map(|time| time[17..19].to_owned()).collect()
    };
    assert_eq!(seconds(json!({"service": "shop"})), ["33", "32", "31", "23", "22", "21"]);
    assert_eq!(seconds(json!({"service": "shop", "text": "paid"})), ["33", "31", "23", "21"]);
    assert_eq!(seconds(json!({"severity": "warn"})), ["50", "32", "22"]);
    assert_eq!(seconds(json!({"severity": 21})), ["50"]);
    assert_eq!(
        seconds(json!({"attributes": {"http.route": "/cart", "exception.type": "Oops"}, "text": "decl"})),
        ["32", "22"]
    );
    assert_eq!(seconds(json!({"attributes": {"host.name": "host-1"}, "text": "decl"})), ["32", "22"]);
    assert_eq!(seconds(json!({"attributes": {"http.route": "/"}})), Vec::<String>::new());
    assert_eq!(seconds(json!({"from": "2023-11-14T22:13:23Z", "to": "2023-11-14T22:13:32Z"})), ["31", "23"]);
}

/// Attributes that have columns of their own are shown with the others, and those of the resource with the resource.
#[test]
fn attributes_are_together_again() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(1, 9, "one")]));
    let answer = stored.ask(Kind::Logs, &json!({}));
    let row = &answer["logs"][0];
    assert_eq!(row["attributes"], json!({"http.route": "/cart", "exception.type": "Oops"}));
    assert_eq!(row["resource"], json!({"host.name": "host-1", "service.name": "shop"}));
    assert_eq!((&row["severity"], &row["severity_text"]), (&json!(9), &json!("TEXT")));
    assert_eq!(
        (&row["body_is_json"], &row["cut"], &row["service"]),
        (&json!(false), &json!(false), &json!("shop"))
    );
}

/// The histogram counts all that match, however few are shown.
#[test]
fn a_histogram_counts_all() {
    let mut stored = Stored::new();
    let many: Vec<(u64, i32, &str)> =
        (0..3000).map(|place| (place % 60, if place % 3 == 0 { 17 } else { 9 }, "x")).collect();
    stored.commit_otlp(Signal::Logs, &logs("shop", &many));
    stored.append_otlp(Signal::Logs, &logs("shop", &[(59, 0, "y"), (60, 0, "too late")]));
    let query = json!({
        "from": "2023-11-14T22:13:20Z", "to": "2023-11-14T22:14:20Z", "histogram": 6, "limit": 2, "service": "shop",
    });
    let answer = stored.ask(Kind::Logs, &query);
    let bars = answer["histogram"].as_array().unwrap();
    assert_eq!(bars.len(), 6);
    let sum = |name: &str| bars.iter().map(|bar| bar[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("info"), sum("error"), sum("unset"), sum("warn")), (2000, 1000, 1, 0));
    assert_eq!(bars[5]["unset"], 1);
    assert_eq!(bars[1]["time"], "2023-11-14T22:13:30Z");
    assert_eq!((answer["logs"].as_array().unwrap().len(), &answer["has_more"]), (2, &json!(true)));
}

/// Of a large lake, no more than the newest rows are read whole.
#[test]
fn older_files_are_passed_over() {
    let mut stored = Stored::new();
    for minute in 0..20 {
        let rows: Vec<(u64, i32, &str)> = (0..50).map(|place| (minute * 60 + place, 9, "x")).collect();
        stored.commit_otlp(Signal::Logs, &logs("shop", &rows));
    }
    let answer = stored.ask(Kind::Logs, &json!({"limit": 10}));
    assert_eq!(answer["logs"].as_array().unwrap().len(), 10);
    assert_eq!((&answer["lake"]["files_read"], &answer["lake"]["files_skipped"]), (&json!(1), &json!(19)));
    assert_eq!(answer["lake"]["rows_read"], 50);
    assert!(answer["sql"].as_str().unwrap().contains("read_parquet"));
}
