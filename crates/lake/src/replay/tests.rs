//! Replays of lakes that are really written. `otlp` and `remote_write` hold that nothing is changed; here are the order, the
//! positions, and lakes with holes.

mod generators;
mod normal;
mod otlp;
mod remote_write;

use super::*;
use crate::tests::body::{bytes, fixed64, varint};
use crate::tests::otlp::{Attr, START_NS, attributes, log_record, logs, metrics, span, traces};
use crate::tests::{HOUR_NS, NOW_NS, writer};
use crate::{BatchPosition, Writer};

fn query(table: Table, most: usize) -> ReplayQuery {
    ReplayQuery { table, first: None, last: None, max_request_bytes: most }
}

fn rest_of(mut replay: Replay) -> Vec<ReplayRequest> {
    std::iter::from_fn(|| replay.next().unwrap()).collect()
}

fn replayed(dir: &Path, table: Table, most: usize) -> Vec<ReplayRequest> {
    rest_of(Replay::open(dir, query(table, most), None).unwrap())
}

/// Behind each position come exactly the requests that came behind it.
fn assert_resumes_everywhere(dir: &Path, table: Table, most: usize, all: &[ReplayRequest]) {
    let step = (all.len() / 40).max(1);
    for at in (0..all.len()).step_by(step) {
        let position: ReplayPosition = all[at].position.to_string().parse().unwrap();
        let rest = rest_of(Replay::open(dir, query(table, most), Some(position)).unwrap());
        assert!(rest == all[at + 1..], "behind {}", all[at].position);
    }
}

/// A lake of log records and spans: three commits in each of two hours.
fn fill(dir: &Path) -> Writer {
    let mut writer = writer(dir);
    for sequence in 0..6_u64 {
        let received_at_ns = NOW_NS + sequence / 3 * HOUR_NS;
        let position = BatchPosition { sequence, received_at_ns };
        let resource = [("service.name", Attr::Text(["a", "b"][sequence as usize % 2]))];
        let serials = sequence * 100..sequence * 100 + 100;
        let records: Vec<_> =
            serials.clone().map(|serial| log_record(serial, Attr::Text("hello"), &[])).collect();
        let spans: Vec<_> = serials.map(|serial| span(serial, "op", &[])).collect();
        let parts = [(Signal::Logs, logs(&resource, &records)), (Signal::Traces, traces(&resource, &spans))];
        let parts: Vec<(Signal, &[u8])> = parts.iter().map(|(signal, raw)| (*signal, &raw[..])).collect();
        writer.push_otlp_parts(&position, &parts, received_at_ns).unwrap();
        writer.close_files().unwrap();
    }
    writer
}

fn items(requests: &[ReplayRequest]) -> u32 {
    requests.iter().map(|request| request.items).sum()
}

/// The files of a table, oldest first.
fn files(dir: &Path, table: Table) -> Vec<PathBuf> {
    let layout = Layout::new(dir);
    let hours = layout.manifest_hours().unwrap();
    let of = |hour| {
        let lines = manifest::read(&layout, hour).unwrap().lines;
        let files = lines.into_iter().flat_map(|line| line.files);
        let files = files.filter(|file| file.table() == Some(table));
        files.map(|file| layout.partition(table, hour).join(file.file)).collect::<Vec<_>>()
    };
    hours.into_iter().flat_map(of).collect()
}

#[test]
fn resumes_behind_every_position() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    for table in [Table::Logs, Table::Spans] {
        for most in [0, 700, 4000, 1 << 20] {
            let all = replayed(dir.path(), table, most);
            assert_eq!(items(&all), 600);
            assert!(all.iter().all(|request| request.items == 1 || request.body.len() <= most));
            assert_resumes_everywhere(dir.path(), table, most, &all);
        }
    }
    // With as many items as fit: nothing is in two requests for nothing.
    assert_eq!(replayed(dir.path(), Table::Logs, 1 << 20).len(), 1);
}

#[test]
fn reads_the_wanted_hours_in_order() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let hour = Hour::of_ns(NOW_NS);
    let next = Hour::of_ns(NOW_NS + HOUR_NS);
    let of = |first, last| {
        let query = ReplayQuery { first, last, ..query(Table::Logs, 1000) };
        rest_of(Replay::open(dir.path(), query, None).unwrap())
    };
    assert_eq!(items(&of(Some(next), None)), 300);
    assert_eq!(items(&of(None, Some(hour))), 300);
    assert_eq!(items(&of(Some(next), Some(hour))), 0);
    let both = of(Some(hour), Some(next));
    assert_eq!(items(&both), 600);
    assert!(both.is_sorted_by_key(|request| request.position.hour()));
}

#[test]
fn rows_that_are_committed_later_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = fill(dir.path());
    let replay = Replay::open(dir.path(), query(Table::Logs, 1000), None).unwrap();
    let position = BatchPosition { sequence: 9, received_at_ns: NOW_NS + HOUR_NS };
    let raw = logs(&[], &[log_record(1, Attr::Text("later"), &[])]);
    writer.push_otlp(&position, Signal::Logs, &raw, position.received_at_ns).unwrap();
    writer.close_files().unwrap();
    assert_eq!(items(&rest_of(replay)), 600);
}

/// Retention removes whole hours, the manifest first.
#[test]
fn passes_over_hours_that_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let mut replay = Replay::open(dir.path(), query(Table::Logs, 700), None).unwrap();
    let first = replay.next().unwrap().unwrap();
    let layout = Layout::new(dir.path());
    let hour = Hour::of_ns(NOW_NS);
    std::fs::remove_file(layout.manifest(hour)).unwrap();
    std::fs::remove_dir_all(layout.partition(Table::Logs, hour)).unwrap();
    let resumed = Replay::open(dir.path(), query(Table::Logs, 700), Some(first.position)).unwrap();
    assert_eq!(items(&rest_of(resumed)), 300);
    // The one that is under way keeps the file that it has open.
    let mut left = 0;
    while let Some(request) = replay.next().unwrap() {
        left += request.items;
    }
    assert_eq!((left + first.items, replay.losses()), (400, ReplayLosses::default()));
}

#[test]
fn counts_files_that_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    std::fs::remove_file(&files(dir.path(), Table::Logs)[1]).unwrap();
    let mut replay = Replay::open(dir.path(), query(Table::Logs, 1 << 20), None).unwrap();
    assert_eq!(replay.next().unwrap().unwrap().items, 500);
    assert_eq!(replay.next().unwrap(), None);
    assert_eq!(replay.losses(), ReplayLosses { missing_files: 1, ..ReplayLosses::default() });
}

/// A file that is cut, or in which a bit is wrong, is an error that names it, and what is before and behind it is read.
#[test]
fn damaged_files_are_named_and_may_be_passed_over() {
    for damage in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        let path = files(dir.path(), Table::Spans)[1].clone();
        let mut content = std::fs::read(&path).unwrap();
        if damage == 0 {
            content.truncate(content.len() / 2);
        } else {
            let middle = content.len() / 2;
            content[middle] ^= 1;
        }
        std::fs::write(&path, content).unwrap();
        let mut replay = Replay::open(dir.path(), query(Table::Spans, 1 << 20), None).unwrap();
        assert_eq!(replay.next().unwrap().unwrap().items, 100);
        for _ in 0..2 {
            let error = replay.next().unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(replay.skip_file(), Some(path));
        assert_eq!(replay.next().unwrap().unwrap().items, 400);
        assert_eq!(replay.next().unwrap(), None);
        assert_eq!((replay.losses().skipped_files, replay.skip_file()), (1, None));
    }
}

#[test]
fn refuses_positions_that_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let position = replayed(dir.path(), Table::Logs, 1000).remove(0).position;
    let other = Replay::open(dir.path(), query(Table::Spans, 1000), Some(position.clone()));
    assert!(other.unwrap_err().to_string().contains("is not of a replay of spans"));
    let unknown = ReplayPosition { file: "gone.parquet".to_owned(), ..position };
    let mut replay = Replay::open(dir.path(), query(Table::Logs, 1000), Some(unknown)).unwrap();
    assert!(replay.next().unwrap_err().to_string().contains("gone.parquet"));
}

/// A lake that is not there has nothing in it.
#[test]
fn an_empty_lake_has_no_requests() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(replayed(dir.path(), Table::MetricPoints, 1000), []);
}
