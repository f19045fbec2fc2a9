//! `/files`: the page, text and JSON, and their bounds.

use super::golden::assert_golden;
use super::sample::healthy;
use super::served::{Answer, Served, gateway_with};
use crate::{
    FilesOrder, FilesQuery, FilesReport, FollowedFile, FollowingSource, LONGEST_ANSWER, LONGEST_FILES,
    MOST_FILES, UnreadablePath, files_page,
};
use serde_json::Value;

fn report() -> FilesReport {
    let file = |path: &str, state: &'static str, offset: u64, size: u64| FollowedFile {
        source: "file",
        input: "web".to_owned(),
        path: path.to_owned(),
        state,
        offset,
        size,
        lag_bytes: size - offset,
        records: offset / 100,
        records_per_second: 12.25,
        reason: None,
    };
    FilesReport {
        sources: vec![FollowingSource {
            name: "file",
            known: 4,
            matching: 5_000,
            lag_bytes: 3 << 20,
            held: 1,
            held_bytes: 512 << 20,
            untracked: 7,
            unreadable: vec![UnreadablePath {
                path: "/var/log/secret.log".to_owned(),
                reason: "Permission denied (os error 13)".to_owned(),
            }],
        }],
        files: vec![
            file("/var/log/web/access.log", "reading", 1 << 20, 4 << 20),
            file("/var/log/web/error.log", "idle", 4_096, 4_096),
            file("/var/log/web/access.log.1", "deleted", 512 << 20, 512 << 20),
            FollowedFile {
                reason: Some("compressed, and `compressed` is off".to_owned()),
                ..file("/var/log/web/<b>.gz", "skipped", 0, 0)
            },
        ],
        next: Some("file:5".to_owned()),
    }
}

fn query() -> FilesQuery {
    FilesQuery { source: None, pattern: "*.log".to_owned(), order: FilesOrder::Lag, limit: 100 }
}

#[test]
fn files_are_shown_as_they_were() {
    let (mut page, mut text) = (String::new(), String::new());
    files_page::write_html(&report(), &query(), &mut page).unwrap();
    files_page::write_text(&report(), &query(), &mut text).unwrap();
    assert_golden("files.html", &page);
    assert_golden("files.txt", &text);
    assert!(!page.contains("<b>"), "a path is no markup");
}

fn served(files: FilesReport) -> Served {
    let mut gateway = gateway_with(healthy());
    gateway.files = files;
    Served::new(gateway)
}

fn json(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn programs_get_numbers() {
    let served = served(report());
    let files = json(&served.ask("GET /files.json?limit=2"));
    assert_eq!(files["sources"][0]["held_bytes"], 512 << 20);
    assert_eq!(files["files"].as_array().unwrap().len(), 2);
    assert_eq!(files["files"][0]["lag_bytes"], 3 << 20);
    assert_eq!(files["next"], "file:5");
    assert_eq!(json(&served.ask("GET /files?format=json"))["sources"], files["sources"]);
    assert!(served.ask("GET /files").body.contains("/var/log/web/access.log"));
    assert!(served.ask("GET /status?format=html").body.contains("href=\"/files\""));
    assert_eq!(served.ask("GET /files?limit=many").status, 400);
    assert_eq!(served.ask("GET /files?format=pdf").status, 400);
    assert_eq!(served.ask("POST /files").status, 405);
}

#[test]
fn a_gateway_without_such_sources_says_so() {
    let served = served(FilesReport::default());
    assert!(served.ask("GET /files").body.contains("No source of this gateway follows files"));
    assert_eq!(json(&served.ask("GET /files.json"))["sources"], Value::Array(Vec::new()));
}

/// The most files with the longest texts fit in an answer, in each form.
#[test]
fn the_largest_report_fits() {
    let text = "<\u{1}".repeat(LONGEST_FILES / 2 / MOST_FILES);
    let file = FollowedFile {
        path: text,
        source: "kubernetes_logs",
        state: "compressed",
        offset: u64::MAX / 2,
        size: u64::MAX / 2,
        lag_bytes: u64::MAX / 2,
        records: u64::MAX / 2,
        records_per_second: f32::MAX,
        ..FollowedFile::default()
    };
    let mut largest = report();
    largest.files = vec![file; MOST_FILES];
    let served = served(largest);
    for format in ["json", "html", "text"] {
        let answer = served.ask(&format!("GET /files?limit={MOST_FILES}&format={format}"));
        assert_eq!(answer.status, 200, "{format}: {}", answer.body);
        assert!(answer.body.len() < LONGEST_ANSWER, "{format}: {}", answer.body.len());
        assert!(!answer.body.to_lowercase().contains("cut here"), "{format} is cut");
    }
}
