//! What is too long, too much, or damaged: the answer is bounded, and says what it lacks.

use super::logs::logs;
use super::{Stored, bounds, each};
use crate::{Bounds, Kind};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_journal::{Encoding, Protocol, Signal};

fn sentences(answer: &Value) -> String {
    answer["incomplete"].to_string()
}

/// However long rows are, the answer has room, and the newest of them.
#[test]
fn long_rows_are_cut_and_the_answer_is_bounded() {
    let mut stored = Stored::new();
    let long = "é".repeat(30_000);
    let rows: Vec<(u64, i32, &str)> = (0..100).map(|second| (second, 9, long.as_str())).collect();
    stored.commit_otlp(Signal::Logs, &logs("shop", &rows[..50]));
    stored.append_otlp(Signal::Logs, &logs("shop", &rows[50..]));
    let small = Bounds { answer: 100 << 10, ..bounds() };
    let answer = stored.ask_within(Kind::Logs, &json!({}), &small);
    let shown = answer["logs"].as_array().unwrap();
    assert!((3..7).contains(&shown.len()), "{}", shown.len());
    assert_eq!((&shown[0]["cut"], shown[0]["body"].as_str().unwrap().len()), (&json!(true), 16 << 10));
    assert_eq!(shown[0]["time"], "2023-11-14T22:14:59.000000005Z");
    assert_eq!(answer["has_more"], json!(true));
}

#[test]
fn a_record_that_is_too_long_is_said_and_does_not_hide_the_others() {
    let stored = Stored::new();
    stored.append_otlp(Signal::Logs, &logs("shop", &[(1, 9, "short")]));
    let long = "x".repeat(1 << 20);
    stored.append_otlp(Signal::Logs, &logs("shop", &[(2, 9, &long)]));
    stored.append_otlp(Signal::Logs, &logs("shop", &[(3, 9, "short, too")]));
    let answer = stored.ask_within(Kind::Logs, &json!({}), &Bounds { body: 512 << 10, ..bounds() });
    assert_eq!(each(&answer["logs"], "body"), ["short, too", "short"]);
    assert!(sentences(&answer).contains("too long for the memory of a search: 1;"), "{}", sentences(&answer));
}

#[test]
fn a_search_that_is_late_says_so() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(1, 9, "one")]));
    let answer = stored.ask_within(Kind::Logs, &json!({}), &Bounds { until: Instant::now(), ..bounds() });
    assert!(sentences(&answer).contains("the time was over"), "{}", sentences(&answer));
}

/// Bodies that are not what their records say, in the newest segment and in older ones.
#[test]
fn damaged_records_are_passed_over() {
    let stored = Stored::new();
    stored.append(Protocol::Otlp, Signal::Logs, Encoding::Gzip, b"no gzip", 1000);
    stored.append(Protocol::RemoteWrite2, Signal::Logs, Encoding::Snappy, &[0xff; 100], 1 << 20);
    stored.append(Protocol::Intake, Signal::Events, Encoding::Identity, b"{\n\xff", 3);
    stored.append(Protocol::Bulk, Signal::Logs, Encoding::Identity, b"{\"index\":", 9);
    // Fills the segment.
    stored.append_otlp(Signal::Logs, &logs("shop", &[(1, 9, &"x".repeat(70_000))]));
    stored.append_otlp(Signal::Logs, &logs("shop", &[(2, 9, "found")]));
    let answer = stored.ask(Kind::Logs, &json!({"text": "found"}));
    assert_eq!(each(&answer["logs"], "body"), ["found"]);
    assert!(
        sentences(&answer).contains("records of the journal that cannot be read: "),
        "{}",
        sentences(&answer)
    );
}

/// A file that the disk has damaged does not hide the others.
#[test]
fn a_damaged_file_of_the_lake_is_passed_over() {
    let mut stored = Stored::new();
    for second in 0..3 {
        stored.commit_otlp(Signal::Logs, &logs("shop", &[(second, 9, "row")]));
    }
    let mut folders = vec![stored.dir.path().join("lake/v1/logs")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let len = std::fs::metadata(&files[1]).unwrap().len();
    std::fs::write(&files[1], vec![b'x'; usize::try_from(len).unwrap()]).unwrap();
    let answer = stored.ask(Kind::Logs, &json!({}));
    assert_eq!(answer["logs"].as_array().unwrap().len(), 2);
    assert!(
        sentences(&answer).contains("files of the lake that cannot be read: 1"),
        "{}",
        sentences(&answer)
    );
}

/// However many services there are and however long their names, their list is bounded.
#[test]
fn names_are_bounded() {
    let mut stored = Stored::new();
    let small = Bounds { answer: 40 << 10, ..bounds() };
    let many: Vec<(u64, i32, &str)> = vec![(1, 9, "x")];
    stored.commit_otlp(Signal::Logs, &logs("first", &many));
    for service in 0..200 {
        stored.append_otlp(Signal::Logs, &logs(&format!("{service}-{}", "s".repeat(500)), &many));
    }
    let answer = stored.ask_within(Kind::Services, &json!({}), &small);
    assert!((20..80).contains(&answer["services"].as_array().unwrap().len()), "{answer}");
    assert_eq!(answer["has_more"], json!(true));
}

#[test]
fn without_a_journal_on_disk_it_is_said() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Logs, &logs("shop", &[(1, 9, "one")]));
    let mut stores = stored.stores();
    stores.journal = None;
    let query = crate::Query::parse(Kind::Logs, b"").unwrap();
    let within = Bounds::within(24 << 20, Duration::from_secs(30), 500 << 10);
    let answer: Value = serde_json::from_slice(&crate::search(&query, &stores, &within).unwrap()).unwrap();
    assert_eq!(each(&answer["logs"], "body"), ["one"]);
    assert!(sentences(&answer).contains("kept in memory"), "{}", sentences(&answer));
}
