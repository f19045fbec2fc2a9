//! A query gives the rows that match, and reads no more than it must.

use super::*;
use crate::Matcher;
use jiff::Timestamp;

fn lake() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    for minute in 0..10_i64 {
        let mut body = Body::default();
        for (metric, zone) in [("up", "a"), ("up", "b"), ("down", "a")] {
            let labels = body::labels(&[("__name__", metric), ("job", "j"), ("zone", zone)]);
            body = body.series(&labels, &[(NOW_MS + minute * 60_000, minute.cast_unsigned())]);
        }
        push(&mut writer, minute.cast_unsigned(), NOW_NS, &body);
        if minute % 4 == 3 {
            writer.close_files().unwrap();
        }
    }
    writer.close_files().unwrap();
    dir
}

fn rows(dir: &Path, query: Query) -> usize {
    scan(dir, &query).unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

#[test]
fn filters_are_exact() {
    let dir = lake();
    let all = || Query::new(Table::MetricPoints);
    let minute = |minute: i64| Some(Timestamp::from_millisecond(NOW_MS + minute * 60_000).unwrap());
    let label = |text: &str| text.parse::<Matcher>().unwrap();
    let cases = [
        (all(), 30),
        (Query { from: minute(3), ..all() }, 21),
        (Query { from: minute(3), to: minute(5), ..all() }, 6),
        (Query { to: minute(0), ..all() }, 0),
        (Query { metric: Some("up".into()), ..all() }, 20),
        (Query { metric: Some("u".into()), ..all() }, 0),
        (Query { labels: vec![label("zone=a")], ..all() }, 20),
        (Query { labels: vec![label("zone!=a")], ..all() }, 10),
        (Query { labels: vec![label("job=j"), label("__name__=down")], ..all() }, 10),
        (Query { labels: vec![label("__name__!=down")], ..all() }, 20),
        (Query { labels: vec![label("nothing=")], ..all() }, 30),
        (Query { labels: vec![label("nothing!=")], ..all() }, 0),
        (Query { limit: Some(7), ..all() }, 7),
        (Query { limit: Some(0), ..all() }, 0),
        (Query::new(Table::MetricHistograms), 0),
    ];
    for (query, expected) in cases {
        assert_eq!(rows(dir.path(), query.clone()), expected, "{query:?}");
    }
    let now = Timestamp::from_millisecond(NOW_MS + 9 * 60_000).unwrap();
    assert_eq!(rows(dir.path(), all().last(std::time::Duration::from_secs(60), now)), 6);
}

/// Files outside the times asked for, and row groups without the metric, are not even opened or read: here
/// they could not be.
#[test]
fn files_that_cannot_match_are_not_read() {
    let dir = lake();
    let partition = dir.path().join("v1/metric_points/dt=2023-11-14/hh=22");
    let mut files: Vec<_> = std::fs::read_dir(&partition).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 3);
    std::fs::write(&files[0], "not a Parquet file").unwrap();
    let later = Timestamp::from_millisecond(NOW_MS + 4 * 60_000).unwrap();
    let query = Query { from: Some(later), ..Query::new(Table::MetricPoints) };
    assert_eq!(rows(dir.path(), query), 18);
    let failed = scan(dir.path(), &Query::new(Table::MetricPoints)).unwrap().next().unwrap();
    assert!(failed.unwrap_err().to_string().contains("reading"));
}

/// Retention may remove a file between reading the manifest and opening it.
#[test]
fn files_removed_by_retention_are_skipped() {
    let dir = lake();
    let partition = dir.path().join("v1/metric_points/dt=2023-11-14/hh=22");
    std::fs::remove_dir_all(partition).unwrap();
    assert_eq!(rows(dir.path(), Query::new(Table::MetricPoints)), 0);
    assert_eq!(crate::verify(dir.path()).unwrap().problem_count, 3);
}

#[test]
fn listing_sums_up_the_manifests() {
    let dir = lake();
    let partitions = crate::list(dir.path()).unwrap();
    assert_eq!(partitions.len(), 1);
    let partition = &partitions[0];
    assert_eq!((partition.files, partition.rows), (3, 30));
    assert_eq!(partition.hour.to_string(), "dt=2023-11-14/hh=22");
    assert_eq!(partition.times_us, (NOW_MS * 1000, (NOW_MS + 9 * 60_000) * 1000));
    assert!(crate::list(Path::new("/nowhere")).unwrap().is_empty());
}

/// A file that a manifest names and that is not there is told; one that retention let go, with its manifest, is not.
#[test]
fn a_missing_file_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut lake = writer(dir.path());
    for sequence in 0..2 {
        let labels = body::labels(&[("__name__", "m"), ("job", "test")]);
        push(&mut lake, sequence, NOW_NS, &body::Body::default().series(&labels, &[(NOW_MS, sequence)]));
        lake.close_files().unwrap();
    }
    let read = || {
        let mut scan = scan(dir.path(), &Query::new(Table::MetricPoints)).unwrap();
        let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
        let (missing, count) = scan.missing();
        (rows, missing.to_vec(), count)
    };
    assert_eq!(read(), (2, Vec::new(), 0));
    let layout = crate::layout::Layout::new(dir.path());
    let hour = crate::layout::Hour::of_ns(NOW_NS);
    let folder = layout.partition(Table::MetricPoints, hour);
    let first = folder.join(crate::layout::names(&folder).unwrap().remove(0));
    std::fs::remove_file(&first).unwrap();
    assert_eq!(read(), (1, vec![first], 1));
}
