//! Commits, crashes, hours, retention.

use super::commit::CommitStep;
use super::*;
use crate::tests::body::{Body, int_histogram, labels};
use crate::tests::otlp::{self, Attr};
use crate::tests::traces::{push_otlp, rows};
use crate::tests::{HOUR_NS, NOW_MS, NOW_NS, points, push, try_push, writer};
use crate::{Retention, list, verify};
use std::path::Path;
use std::time::Duration;
use tidegate_wire::otlp::Signal;

fn body(sequence: u64) -> Body {
    let labels = labels(&[("__name__", "sequence"), ("job", "test")]);
    Body::default().series(&labels, &[(NOW_MS, sequence)]).histogram(&labels, &int_histogram(NOW_MS, 0, &[1]))
}

/// The sequences whose rows are in the lake, each as often as it is there.
fn sequences(dir: &Path) -> Vec<u64> {
    let mut sequences: Vec<u64> = points(dir).iter().filter_map(|point| point.bits).collect();
    sequences.sort_unstable();
    sequences
}

fn histograms(dir: &Path) -> u64 {
    list(dir).unwrap().iter().filter(|hour| hour.table == Table::MetricHistograms).map(|hour| hour.rows).sum()
}

/// Wherever a commit is interrupted, by an error or a crash: going on where the lake says gives every row
/// once, and leaves nothing behind that no manifest names.
#[test]
fn a_commit_interrupted_anywhere_loses_and_doubles_nothing() {
    for step in CommitStep::ALL {
        for crash in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut lake = writer(dir.path());
            push(&mut lake, 0, NOW_NS, &body(0));
            lake.close_files().unwrap().unwrap();
            for sequence in 1..4 {
                push(&mut lake, sequence, NOW_NS, &body(sequence));
            }
            lake.fail_at = Some(step);
            assert!(lake.close_files().is_err());
            assert!(matches!(try_push(&mut lake, 4, NOW_NS, &body(4)), Err(Error::Failed)));
            assert!(matches!(lake.close_files(), Err(Error::Failed)));
            let resume_after = if crash {
                drop(lake);
                let (opened, resume_after) = Writer::open(settings(dir.path())).unwrap();
                lake = opened;
                resume_after
            } else {
                lake.recover().unwrap()
            };
            let resume_after = resume_after.unwrap();
            // When the whole line was written but not yet synced, a crashed process finds it and may count on
            // it; one that is still there cannot know and must not.
            let in_lake = step == CommitStep::LineSynced || (crash && step == CommitStep::Line);
            assert_eq!(resume_after, if in_lake { 3 } else { 0 }, "{step:?} {crash}");
            for sequence in resume_after + 1..6 {
                push(&mut lake, sequence, NOW_NS, &body(sequence));
            }
            assert_eq!(lake.close_files().unwrap().unwrap().through, 5);
            assert_eq!(sequences(dir.path()), [0, 1, 2, 3, 4, 5], "{step:?} {crash}");
            assert_eq!(histograms(dir.path()), 6);
            let report = verify(dir.path()).unwrap();
            assert!(report.is_sound() && report.orphans.is_empty(), "{step:?} {crash}: {report:?}");
        }
    }
}

fn settings(dir: &Path) -> WriterSettings {
    WriterSettings::new(dir, Writer::smallest_slice(), "test")
}

/// The writer is made in one place and driven by a thread of its own.
#[test]
fn a_writer_can_be_given_to_a_thread() {
    fn can_be_sent<T: Send>() {}
    can_be_sent::<Writer>();
}

/// A replay from further back than the lake's end is passed over.
#[test]
fn replayed_sequences_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    for sequence in 0..3 {
        push(&mut lake, sequence, NOW_NS, &body(sequence));
    }
    let commit = lake.close_files().unwrap().unwrap();
    assert_eq!((commit.through, commit.files.len()), (2, 2));
    assert_eq!(lake.close_files().unwrap(), None);
    for sequence in 0..5 {
        push(&mut lake, sequence, NOW_NS, &body(sequence));
    }
    lake.close_files().unwrap();
    assert_eq!(sequences(dir.path()), [0, 1, 2, 3, 4]);
}

/// Files of another node stay, and its sequences do not count.
#[test]
fn nodes_do_not_touch_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    push(&mut lake, 9, NOW_NS, &body(9));
    lake.close_files().unwrap();
    drop(lake);
    let (mut other, resume_after) =
        Writer::open(WriterSettings { node: "other-node.1".into(), ..settings(dir.path()) }).unwrap();
    assert_eq!(resume_after, None);
    push(&mut other, 9, NOW_NS, &body(10));
    other.close_files().unwrap();
    assert_eq!(sequences(dir.path()), [9, 10]);
}

#[test]
fn a_lake_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let lake = writer(dir.path());
    assert!(matches!(Writer::open(settings(dir.path())), Err(Error::Locked(_))));
    drop(lake);
    assert!(Writer::open(settings(dir.path())).is_ok());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = |settings| Writer::open(settings).map(|_| ());
    let small = WriterSettings { slice: Writer::smallest_slice() - 1, ..settings(dir.path()) };
    assert!(matches!(opened(small), Err(Error::Slice { .. })));
    for node in ["", "a/b", "a+b", &"x".repeat(65)] {
        let named = WriterSettings { node: node.to_owned(), ..settings(dir.path()) };
        assert!(matches!(opened(named), Err(Error::Node(_))), "{node}");
    }
}

/// Rows are filed under the hour in which they were received, whatever their own time is, so a replay makes
/// the same files.
#[test]
fn an_hour_ends_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    assert_eq!(push(&mut lake, 0, NOW_NS, &body(0)).commit, None);
    let commit = push(&mut lake, 1, NOW_NS + HOUR_NS, &body(1)).commit.unwrap();
    assert_eq!(commit.through, 0);
    lake.close_files().unwrap();
    let hours: Vec<String> = list(dir.path()).unwrap().iter().map(|hour| hour.hour.to_string()).collect();
    assert_eq!(
        hours,
        ["dt=2023-11-14/hh=22", "dt=2023-11-14/hh=22", "dt=2023-11-14/hh=23", "dt=2023-11-14/hh=23"]
    );
    let name = "00000000000000000001-00000000000000000001-test.parquet";
    assert!(dir.path().join("v1/metric_points/dt=2023-11-14/hh=23").join(name).exists());
}

#[test]
fn age_and_size_end_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    push(&mut lake, 0, NOW_NS, &body(0));
    assert_eq!(lake.tick(NOW_NS + 59_000_000_000).unwrap(), None);
    assert_eq!(lake.tick(NOW_NS + 60_000_000_000).unwrap().unwrap().through, 0);
    // A clock that was set back does not keep rows back for longer than the age.
    push(&mut lake, 1, NOW_NS, &body(1));
    assert_eq!(lake.tick(NOW_NS - HOUR_NS).unwrap(), None);
    assert_eq!(lake.tick(NOW_NS - HOUR_NS + 60_000_000_000).unwrap().unwrap().through, 1);
    drop(lake);
    // Size is looked at when a row group is written; here there is one after every push.
    let (mut lake, _) = Writer::open(WriterSettings { file_bytes: 1, ..settings(dir.path()) }).unwrap();
    let mut large = Body::default();
    for series in 0..5000 {
        let labels = labels(&[("__name__", "many"), ("serial", &format!("{series:0>100}"))]);
        large = large.series(&labels, &[(NOW_MS, 7)]);
    }
    assert_eq!(push(&mut lake, 2, NOW_NS, &large).commit.unwrap().through, 2);
}

/// A batch without rows still moves the cursor, and writes nothing.
#[test]
fn batches_without_rows_are_committed_without_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    push(&mut lake, 7, NOW_NS, &Body::default().metadata("a", 1, "", "help"));
    let commit = lake.tick(NOW_NS + 60_000_000_000).unwrap().unwrap();
    assert_eq!(commit, Commit { through: 7, files: Vec::new() });
    assert!(list(dir.path()).unwrap().is_empty());
}

/// One batch with more row groups than a footer may have: several files, one commit.
#[test]
fn a_batch_of_many_row_groups_takes_several_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    lake.rows.overflow.footer_bytes = 1;
    let mut large = Body::default();
    for series in 0..9000 {
        let labels = labels(&[("__name__", "many"), ("serial", &series.to_string())]);
        large = large.series(&labels, &[(NOW_MS, series)]);
    }
    assert_eq!(push(&mut lake, 1, NOW_NS, &large).commit, None);
    let commit = lake.close_files().unwrap().unwrap();
    assert_eq!(commit.through, 1);
    assert!(commit.files.len() > 1, "{commit:?}");
    assert_eq!(sequences(dir.path()), (0..9000).collect::<Vec<_>>());
    drop(lake);
    assert_eq!(Writer::open(settings(dir.path())).unwrap().1, Some(1));
    assert_eq!(sequences(dir.path()).len(), 9000);
}

fn hours(dir: &Path) -> usize {
    list(dir).unwrap().len() / 2
}

#[test]
fn retention_lets_whole_hours_go_by_age() {
    let dir = tempfile::tempdir().unwrap();
    let retention = Retention { age: Duration::from_secs(2 * 3600), bytes: Some(u64::MAX) };
    let (mut lake, _) = Writer::open(WriterSettings { retention, ..settings(dir.path()) }).unwrap();
    for hour in 0..5 {
        push(&mut lake, hour, NOW_NS + hour * HOUR_NS, &body(hour));
        lake.tick(NOW_NS + hour * HOUR_NS).unwrap();
    }
    // The first two ended more than two hours ago; the last is open.
    assert_eq!(hours(dir.path()), 2);
    assert_eq!(sequences(dir.path()), [2, 3]);
    lake.close_files().unwrap();
    // However old, the newest stays: it says where to go on.
    lake.tick(NOW_NS + 1000 * HOUR_NS).unwrap();
    assert_eq!(sequences(dir.path()), [4]);
    drop(lake);
    assert_eq!(Writer::open(settings(dir.path())).unwrap().1, Some(4));
    assert!(verify(dir.path()).unwrap().orphans.is_empty());
}

#[test]
fn retention_lets_the_oldest_hours_go_by_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    for hour in 0..4 {
        push(&mut lake, hour, NOW_NS + hour * HOUR_NS, &body(hour));
    }
    lake.close_files().unwrap();
    let total = lake.bytes();
    drop(lake);
    let retention = Retention { bytes: Some(total / 2), ..Retention::default() };
    let (mut lake, _) = Writer::open(WriterSettings { retention, ..settings(dir.path()) }).unwrap();
    assert_eq!(lake.bytes(), total);
    lake.tick(NOW_NS + 4 * HOUR_NS).unwrap();
    assert_eq!(sequences(dir.path()), [2, 3]);
    assert!(!dir.path().join("v1/metric_points/dt=2023-11-14/hh=22").exists());
}

/// A line that was whole once and cannot be read now may name any file: none is removed.
#[test]
fn a_damaged_manifest_costs_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    for sequence in 0..2 {
        push(&mut lake, sequence, NOW_NS, &body(sequence));
        lake.close_files().unwrap();
    }
    drop(lake);
    let manifest = dir.path().join("v1/manifest/dt=2023-11-14/hh=22.jsonl");
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&manifest, bytes).unwrap();
    let (lake, resume_after) = Writer::open(settings(dir.path())).unwrap();
    assert_eq!(resume_after, Some(1));
    drop(lake);
    let report = verify(dir.path()).unwrap();
    assert_eq!((report.files, report.problem_count, report.orphans.len()), (2, 1, 2));
}

/// Bit flips, truncation and strangers are told apart by `verify`.
#[test]
fn verify_finds_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    push(&mut lake, 0, NOW_NS, &body(0));
    let commit = lake.close_files().unwrap().unwrap();
    assert!(verify(dir.path()).unwrap().is_sound());
    let path = &commit.files[0].path;
    let good = std::fs::read(path).unwrap();
    let problem = |bytes: &[u8]| {
        std::fs::write(path, bytes).unwrap();
        verify(dir.path()).unwrap().problems[0].1.clone()
    };
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    assert!(problem(&flipped).contains("checksum"));
    assert!(problem(&good[..good.len() - 1]).contains("bytes"));
    std::fs::write(path, good).unwrap();
    std::fs::write(path.with_file_name("stranger"), "").unwrap();
    let report = verify(dir.path()).unwrap();
    assert_eq!((report.is_sound(), report.orphans.len()), (true, 1));
}

/// The sequences that are in the lake as OTLP, each as often as it is there: spans and log records by their
/// batch's id, points by their value.
fn otlp_sequences(dir: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    for table in [Table::Spans, Table::Logs] {
        for row in rows(dir, table) {
            found.push(u64::from_str_radix(&row["batch_id"].as_str().unwrap()[16..], 16).unwrap());
        }
    }
    found.extend(rows(dir, Table::MetricPoints).iter().filter_map(|row| row["value_int"].as_u64()));
    found.sort_unstable();
    found
}

fn push_sequence(lake: &mut Writer, sequence: u64) {
    let (signal, raw) = match sequence % 3 {
        0 => (Signal::Traces, otlp::traces(&[], &[otlp::span(sequence, "op", &[])])),
        1 => (Signal::Logs, otlp::logs(&[], &[otlp::log_record(sequence, Attr::Int(1), &[])])),
        _ => (Signal::Metrics, otlp::gauge(sequence)),
    };
    assert_eq!(push_otlp(lake, sequence, signal, &raw).rows, 1);
}

/// The same as for remote write: wherever a commit is interrupted, every row of every table is there once.
#[test]
fn interrupted_commits_of_all_tables_lose_and_double_nothing() {
    for step in CommitStep::ALL {
        for crash in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut lake = writer(dir.path());
            (0..3).for_each(|sequence| push_sequence(&mut lake, sequence));
            lake.close_files().unwrap().unwrap();
            (3..9).for_each(|sequence| push_sequence(&mut lake, sequence));
            lake.fail_at = Some(step);
            assert!(lake.close_files().is_err());
            let resume_after = if crash {
                drop(lake);
                let (opened, resume_after) = Writer::open(settings(dir.path())).unwrap();
                lake = opened;
                resume_after
            } else {
                lake.recover().unwrap()
            };
            (resume_after.unwrap() + 1..12).for_each(|sequence| push_sequence(&mut lake, sequence));
            assert_eq!(lake.close_files().unwrap().unwrap().through, 11);
            let expected: Vec<u64> = (0..12).collect();
            assert_eq!(otlp_sequences(dir.path()), expected, "{step:?} {crash}");
            let report = verify(dir.path()).unwrap();
            assert!(report.is_sound() && report.orphans.is_empty(), "{step:?} {crash}: {report:?}");
        }
    }
}

/// A batch of several pieces is in one commit, however large its files become meanwhile; one that is not ended is not in
/// the lake at all, and the writer says so until it has gone back.
#[test]
fn pieces_of_a_batch_are_in_one_commit_or_in_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = Writer::open(WriterSettings { file_bytes: 1, ..settings(dir.path()) }).unwrap().0;
    let piece = |number: u64| {
        let text = |of: u64| format!("{:0>1000}", number * 500 + of);
        let span = |of| otlp::span(number * 500 + of, "a", &[("text", Attr::Text(&text(of)))]);
        let spans: Vec<_> = (0..500).map(span).collect();
        otlp::traces(&[("service.name", Attr::Text("shop"))], &spans)
    };
    let position = |sequence| crate::BatchPosition { sequence, received_at_ns: NOW_NS };
    let mut batch = lake.batch(&position(1), NOW_NS).unwrap();
    for number in 0..10 {
        batch.push_otlp(Signal::Traces, &piece(number)).unwrap();
    }
    let pushed = batch.end().unwrap();
    assert_eq!(pushed.rows, 5000);
    assert_eq!(pushed.commit.map(|commit| commit.through), Some(1));
    let mut batch = lake.batch(&position(2), NOW_NS).unwrap();
    batch.push_otlp(Signal::Traces, &piece(20)).unwrap();
    drop(batch);
    assert!(matches!(lake.close_files(), Err(Error::Failed)));
    assert!(matches!(lake.batch(&position(3), NOW_NS).map(drop), Err(Error::Failed)));
    assert_eq!(lake.recover().unwrap(), Some(1));
    assert_eq!(rows(dir.path(), Table::Spans).len(), 5000);
    // One of which nothing came harms nobody, and what is in the lake is passed over.
    drop(lake.batch(&position(2), NOW_NS).unwrap());
    let mut again = lake.batch(&position(1), NOW_NS).unwrap();
    again.push_otlp(Signal::Traces, &piece(0)).unwrap();
    assert_eq!(again.end().unwrap().rows, 0);
    assert_eq!(lake.close_files().unwrap(), None);
}
