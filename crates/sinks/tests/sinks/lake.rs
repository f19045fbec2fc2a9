//! Promise: the lake's cursor moves only with its commits, every row is there exactly once whatever comes
//! between the two, and what has no row is in the books.

use crate::rig::{NAME, Rig, SECOND};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_lake::{Format, Output, Query, Table, Writer, WriterSettings};
use tidegate_ledger::Dropped;
use tidegate_load::otlp::ContentCoding;
use tidegate_load::remote_write::Version;
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, StepDefinition, StepKind};
use tidegate_sinks::{EgressBudget, Lake, PipelineMeters, SinkContext, SinkPipeline, StopSender};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

const HOUR: Duration = Duration::from_secs(3600);

/// A lake that runs beside a rig.
struct Running {
    stopper: StopSender,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(rig: &Rig, change: impl FnOnce(WriterSettings) -> WriterSettings) -> Running {
        Running::start_behind(rig, None, change)
    }

    /// Behind a pipeline.
    fn start_behind(
        rig: &Rig,
        pipeline: Option<&SinkPipeline>,
        change: impl FnOnce(WriterSettings) -> WriterSettings,
    ) -> Running {
        let slice = Writer::smallest_slice();
        let charge = rig.arena.try_charge(Share::Lake, slice).unwrap();
        let node = format!("{:016x}", rig.journal.id());
        let settings =
            change(WriterSettings { file_age: HOUR, ..WriterSettings::new(folder(rig), slice, node) });
        let room = EgressBudget::new(&rig.arena, Share::Lake, rig.part, &rig.turn);
        let (stopper, stop) = StopSender::new();
        let context = SinkContext { pipeline, ..rig.context(NAME) };
        let lake = Lake::start(context, settings, charge, room, Handle::current(), stop).unwrap();
        Running { stopper, thread: tokio::task::spawn_blocking(move || lake.run()) }
    }

    async fn stop(self) {
        self.stopper.stop();
        tokio::time::timeout(20 * SECOND, self.thread).await.unwrap().unwrap();
    }

    /// Closes the journal and waits until all of it is read.
    async fn stop_when_read(self, rig: &Rig) {
        let Running { stopper, thread } = self;
        assert!(rig.journal.close(60 * SECOND));
        tokio::time::timeout(20 * SECOND, thread).await.unwrap().unwrap();
        drop(stopper);
    }
}

fn folder(rig: &Rig) -> PathBuf {
    rig.dir.path().join("lake")
}

/// Every row of the lake in `dir`: the series and the time of each.
fn rows(dir: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for table in [Table::MetricPoints, Table::MetricHistograms] {
        let columns = ["series_id", "time"].map(str::to_owned).to_vec();
        let query = Query { columns: columns.clone(), ..Query::new(table) };
        let mut out = Output::new(Format::Csv, Vec::new(), columns);
        for batch in tidegate_lake::scan(dir, &query).unwrap() {
            out.write(&batch.unwrap()).unwrap();
        }
        let text = String::from_utf8(out.finish().unwrap()).unwrap();
        rows.extend(text.lines().skip(1).map(str::to_owned));
    }
    rows
}

/// That all that was put in is there once.
fn assert_once(rig: &Rig) {
    let rows = rows(&folder(rig));
    assert_eq!(rows.len() as u64, rig.acked.samples());
    assert_eq!(
        rows.iter().collect::<BTreeSet<_>>().len(),
        rows.len(),
        "a row is there twice: {:?}",
        rows.first()
    );
    assert!(tidegate_lake::verify(&folder(rig)).unwrap().is_sound());
}

/// Waits until `enough`, looking again and again without holding up the runtime.
async fn until(mut enough: impl FnMut() -> bool) {
    let waiting = async {
        while !enough() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(20 * SECOND, waiting).await.expect("waited in vain");
}

/// Until the lake has begun to read.
async fn reading(rig: &Rig) {
    until(|| rig.journal.stats().sinks.iter().any(|sink| sink.position.in_flight > 0)).await;
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        // Files come and go while a lake is written.
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to)),
        }
    }
}

#[tokio::test]
async fn the_cursor_moves_with_commits_only() {
    let mut rig = Rig::new(50, 1 << 20);
    let lake = Running::start(&rig, |settings| settings);
    for version in [Version::V1, Version::V2] {
        rig.put(version, 0..50, 4).await;
    }
    reading(&rig).await;
    assert_eq!(rig.assert_closed(400).delivered, 0, "what has no footer yet is still queued");
    lake.stop_when_read(&rig).await;
    assert_eq!(rig.assert_closed(0).delivered, 400);
    assert_once(&rig);
    let lake_bytes = rig.arena.usage().shares.iter().find(|share| share.share == Share::Lake).unwrap().used;
    assert_eq!(lake_bytes, 0, "slice and room are given back");
}

#[tokio::test]
async fn old_files_are_finished_without_anything_new() {
    let mut rig = Rig::new(10, 1 << 20);
    let lake =
        Running::start(&rig, |settings| WriterSettings { file_age: Duration::from_millis(1), ..settings });
    rig.put(Version::V1, 0..10, 1).await;
    until(|| rig.page().delivered == 10).await;
    assert_once(&rig);
    lake.stop().await;
}

/// A crash with rows in unfinished files: they are read again from the journal.
#[tokio::test]
async fn a_crash_before_the_commit_costs_nothing() {
    let mut rig = Rig::new(100, 1 << 20);
    let lake = Running::start(&rig, |settings| settings);
    for _ in 0..20 {
        rig.put(Version::V1, 0..100, 4).await;
    }
    reading(&rig).await;
    let crashed = tempfile::tempdir().unwrap();
    copy(&rig.dir.path().join("journal"), &crashed.path().join("journal"));
    copy(&folder(&rig), &crashed.path().join("lake"));
    lake.stop().await;
    let rig = rig.restarted_in(crashed);
    Running::start(&rig, |settings| settings).stop_when_read(&rig).await;
    assert_once(&rig);
    assert_eq!(rig.assert_closed(0).dropped, []);
}

/// A crash after the commit and before the cursor moves: the journal's files are those from before.
#[tokio::test]
async fn a_crash_between_the_commit_and_the_cursor_writes_no_row_twice() {
    let mut rig = Rig::new(100, 1 << 20);
    let lake = Running::start(&rig, |settings| settings);
    for _ in 0..5 {
        rig.put(Version::V2, 0..100, 1).await;
    }
    reading(&rig).await;
    let crashed = tempfile::tempdir().unwrap();
    copy(&rig.dir.path().join("journal"), &crashed.path().join("journal"));
    lake.stop_when_read(&rig).await;
    rig.assert_closed(0);
    copy(&folder(&rig), &crashed.path().join("lake"));
    let mut rig = rig.restarted_in(crashed);
    let lake = Running::start(&rig, |settings| settings);
    rig.put(Version::V2, 0..100, 1).await;
    lake.stop_when_read(&rig).await;
    assert_once(&rig);
    assert_eq!(rig.assert_closed(0).dropped, []);
}

/// A disk that cannot be written is waited for: the lake says so, goes on by itself, and no row is lost or there twice.
#[tokio::test]
async fn a_lake_that_cannot_be_written_waits_and_goes_on() {
    let mut rig = Rig::new(10, 1 << 20);
    let lake =
        Running::start(&rig, |settings| WriterSettings { file_age: Duration::from_millis(1), ..settings });
    let temporary = folder(&rig).join("v1").join("tmp");
    std::fs::remove_dir_all(&temporary).unwrap();
    std::fs::write(&temporary, b"in the way").unwrap();
    rig.put(Version::V1, 0..10, 3).await;
    // It fails, and fails again when it tries to go on.
    until(|| rig.health.activity().failures >= 2).await;
    let trouble = rig.health.trouble();
    assert!(trouble.retry_at.is_some() && trouble.last_error.is_some(), "{trouble:?}");
    assert_eq!(rig.page().delivered, 0);
    std::fs::remove_file(&temporary).unwrap();
    until(|| rig.page().delivered == 30).await;
    until(|| rig.health.trouble().retry_at.is_none()).await;
    lake.stop().await;
    assert_once(&rig);
    assert_eq!(rig.assert_closed(0).dropped, []);
}

/// Items that cannot become rows are counted, and do not hold up the cursor although no commit follows.
#[tokio::test]
async fn unusable_records_go_to_the_books_and_not_in_the_way() {
    let mut rig = Rig::new(10, 256 << 10);
    let lake = Running::start(&rig, |settings| settings);
    rig.append_as(Protocol::OtlpJson, b"something", 9, 3).await;
    rig.append_in(Encoding::Identity, Signal::Logs, Protocol::Bulk, b"{}", 2, 2).await;
    rig.append(Version::V1, b"no snappy", 100, 5).await;
    rig.append(Version::V1, &[0xff, 0xff, 0xff, 0x1f, 0, 0], 64 << 20, 7).await;
    until(|| rig.page().queued == 0).await;
    let expected = [(Dropped::Damaged, 5), (Dropped::TooLarge, 7), (Dropped::Untranslatable, 5)];
    assert_eq!(rig.assert_closed(0).dropped, expected);
    // Between usable ones they wait for the commit.
    rig.put(Version::V1, 0..10, 1).await;
    rig.append_as(Protocol::OtlpJson, b"something", 9, 3).await;
    rig.put(Version::V1, 0..10, 1).await;
    reading(&rig).await;
    lake.stop_when_read(&rig).await;
    assert_eq!(rig.assert_closed(0).delivered, 20);
    assert_eq!(rig.page().dropped[2], (Dropped::Untranslatable, 8));
    assert_once(&rig);
}

/// Documents become log records with all that they say; updates and deletions are counted.
#[tokio::test]
async fn documents_become_log_records() {
    let rig = Rig::new(1, 1 << 20);
    let lake = Running::start(&rig, |settings| settings);
    let body = concat!(
        r#"{"create":{"_index":"logs-a","_id":"1"}}"#,
        "\n",
        r#"{"@timestamp":"2024-02-29T12:34:56Z","message":"first","log":{"level":"warn"},"service":{"name":"shop"}}"#,
        "\n",
        r#"{"delete":{"_index":"logs-a","_id":"1"}}"#,
        "\n",
        r#"{"index":{"_index":"logs-b"}}"#,
        "\n",
        r#"{"message":"second"}"#,
        "\n",
    );
    rig.append_in(Encoding::Identity, Signal::Logs, Protocol::Bulk, body.as_bytes(), body.len(), 3).await;
    lake.stop_when_read(&rig).await;
    let columns = ["body", "severity_text", "service_name"].map(str::to_owned).to_vec();
    let query = Query { columns: columns.clone(), ..Query::new(Table::Logs) };
    let mut out = Output::new(Format::Csv, Vec::new(), columns);
    for batch in tidegate_lake::scan(&folder(&rig), &query).unwrap() {
        out.write(&batch.unwrap()).unwrap();
    }
    let text = String::from_utf8(out.finish().unwrap()).unwrap();
    assert!(text.contains("first,warn,shop") && text.contains("second"), "{text}");
    let balance = rig.assert_closed(0);
    assert_eq!((balance.delivered, balance.dropped), (2, vec![(Dropped::Untranslatable, 1)]));
}

/// Documents and events whose translation has no room beside them become rows a piece at a time: each once.
#[tokio::test]
async fn large_bodies_become_rows_piece_by_piece() {
    let rig = Rig::new(1, 256 << 10);
    let lake = Running::start(&rig, |settings| settings);
    let message = "m".repeat(200);
    let (mut events, mut documents, mut count) =
        (r#"{"metadata":{"service":{"name":"a"}}}"#.to_owned() + "\n", String::new(), 0);
    while events.len() < 7 << 20 {
        events += &format!("{{\"log\":{{\"message\":\"event {count} {message}\"}}}}\n");
        documents += &format!("{{\"create\":{{}}}}\n{{\"message\":\"document {count} {message}\"}}\n");
        count += 1;
    }
    // One that is larger than the piece.
    documents += &format!("{{\"create\":{{}}}}\n{{\"message\":\"{}\"}}\n", "x".repeat(600 << 10));
    for (protocol, raw, items) in
        [(Protocol::Intake, &events, count), (Protocol::Bulk, &documents, count + 1)]
    {
        let body = snappy(raw.as_bytes());
        rig.append_of(Signal::Logs, protocol, &body, raw.len(), items).await;
    }
    lake.stop_when_read(&rig).await;
    let balance = rig.assert_closed(0);
    assert_eq!((balance.delivered, balance.dropped), (2 * count + 1, vec![]));
    let query = Query { columns: vec!["body".to_owned()], ..Query::new(Table::Logs) };
    let mut bodies = BTreeSet::new();
    for batch in tidegate_lake::scan(&folder(&rig), &query).unwrap() {
        let mut out = Output::new(Format::Csv, Vec::new(), vec!["body".to_owned()]);
        out.write(&batch.unwrap()).unwrap();
        let text = String::from_utf8(out.finish().unwrap()).unwrap();
        text.lines().skip(1).for_each(|line| assert!(bodies.insert(line.to_owned()), "twice: {line:.60}"));
    }
    assert_eq!(bodies.len() as u64, 2 * count + 1);
    assert!(!rig.turn.is_taken());
}

/// How many rows a table of the lake has.
fn rows_of(rig: &Rig, table: Table) -> u64 {
    let column = if table == Table::MetricPoints { "series_id" } else { "service_name" };
    let query = Query { columns: vec![column.to_owned()], ..Query::new(table) };
    let rows =
        tidegate_lake::scan(&folder(rig), &query).unwrap().map(|batch| batch.unwrap().num_rows() as u64);
    rows.sum()
}

/// An agent's body of several signals: 55 spans, 3 metricsets and 2 errors.
async fn put_mixed(rig: &Rig, compressed: bool) {
    let raw = tidegate_load::elastic_apm::AGENTS[3].busy;
    let body = if compressed { snappy(raw.as_bytes()) } else { raw.as_bytes().to_vec() };
    let encoding = if compressed { Encoding::Snappy } else { Encoding::Identity };
    rig.append_in(encoding, Signal::Events, Protocol::Intake, &body, raw.len(), 60).await;
}

/// Of a body of several signals a lake gets the events of those that it takes; the others pass it by.
#[tokio::test]
async fn a_lake_gets_of_a_body_the_signals_that_it_takes() {
    for choice in 1..8 {
        let is_taken = |place: u32| choice & (1 << place) != 0;
        let signals = [Signal::Traces, Signal::Metrics, Signal::Logs].into_iter().enumerate();
        let signals =
            signals.filter(|(place, _)| is_taken(*place as u32)).map(|(_, signal)| signal).collect();
        let mut rig = Rig::new(1, 256 << 10);
        rig.signals = signals;
        let lake = Running::start(&rig, |settings| settings);
        put_mixed(&rig, false).await;
        put_mixed(&rig, true).await;
        // Nothing of this is taken but by who takes metrics.
        let raw = tidegate_load::elastic_apm::AGENTS[3].idle;
        let items = raw.lines().count() as u64 - 1;
        let body = raw.as_bytes();
        rig.append_in(Encoding::Identity, Signal::Events, Protocol::Intake, body, body.len(), items).await;
        lake.stop_when_read(&rig).await;
        let of = |place: u32, events: u64| if is_taken(place) { events } else { 0 };
        let (spans, metricsets, errors) = (of(0, 110), of(1, 6 + items), of(2, 4));
        let delivered = spans + metricsets + errors;
        let page = rig.assert_closed(0);
        let expected = (delivered, 120 + items - delivered, vec![]);
        assert_eq!((page.delivered, page.passed, page.dropped), expected, "{choice}");
        assert_eq!((rows_of(&rig, Table::Spans), rows_of(&rig, Table::Logs)), (spans, errors), "{choice}");
        assert_eq!(rows_of(&rig, Table::MetricPoints) > 0, is_taken(1), "{choice}");
    }
}

/// A crash after the commit and before the cursor moves: what passed the lake by is booked as that, too.
#[tokio::test]
async fn skipped_items_survive_a_crash() {
    let mut rig = Rig::new(1, 1 << 20);
    let signals = [Signal::Logs].into_iter().collect();
    rig.signals = signals;
    let lake = Running::start(&rig, |settings| settings);
    put_mixed(&rig, true).await;
    put_mixed(&rig, false).await;
    reading(&rig).await;
    let crashed = tempfile::tempdir().unwrap();
    copy(&rig.dir.path().join("journal"), &crashed.path().join("journal"));
    lake.stop_when_read(&rig).await;
    copy(&folder(&rig), &crashed.path().join("lake"));
    let mut rig = rig.restarted_in(crashed);
    rig.signals = signals;
    Running::start(&rig, |settings| settings).stop_when_read(&rig).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.passed, page.dropped), (4, 116, vec![]));
    assert_eq!(rows_of(&rig, Table::Logs), 4);
}

/// As a client would send it.
fn snappy(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    tidegate_load::remote_write::compress(raw, &mut body);
    body
}

/// A body that is larger than the lake's own part is read with borrowed memory.
#[tokio::test]
async fn large_bodies_are_read_with_borrowed_memory() {
    let mut rig = Rig::new(3000, 256 << 10);
    let lake = Running::start(&rig, |settings| settings);
    rig.put(Version::V1, 0..3000, 2).await;
    rig.put(Version::V2, 0..3000, 2).await;
    lake.stop_when_read(&rig).await;
    assert_once(&rig);
    assert_eq!(rig.assert_closed(0).dropped, []);
    assert!(!rig.turn.is_taken());
}

/// Of a record of several signals that is lost only the events are lost that the lake takes: the others pass it by.
#[tokio::test]
async fn only_accepted_signals_of_a_lost_record_are_lost() {
    let mut rig = Rig::new(1, 256 << 10);
    rig.signals = [Signal::Logs].into_iter().collect();
    let lake = Running::start(&rig, |settings| settings);
    let mut raw = r#"{"metadata":{"service":{"name":"a"}}}"#.to_owned() + "\n";
    let event = format!("{{\"log\":{{\"message\":\"{}\"}}}}\n{{\"metricset\":{{}}}}\n", "m".repeat(1000));
    // More than there is.
    let events = (128 << 20) / event.len() as u64;
    raw += &event.repeat(usize::try_from(events).unwrap());
    let body = ContentCoding::Gzip.encode(raw.as_bytes()).unwrap();
    rig.append_in(Encoding::Gzip, Signal::Events, Protocol::Intake, &body, raw.len(), 2 * events).await;
    until(|| rig.page().queued == 0).await;
    lake.stop_when_read(&rig).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.passed, page.dropped), (0, events, vec![(Dropped::TooLarge, events)]));
}

/// A body that is not encoded as its record says comes from a pipeline as it is, and is not taken as decoded.
#[tokio::test]
async fn a_body_that_does_not_decode_behind_a_pipeline_is_damaged() {
    let rig = Rig::new(1, 1 << 20);
    // One log record, which is not compressed.
    let raw = [0x0a, 9, 0x12, 7, 0x12, 5, 0x2a, 3, 0x0a, 1, b'a'];
    rig.append_in(Encoding::Gzip, Signal::Logs, Protocol::Otlp, &raw, raw.len(), 1).await;
    let kind = StepKind::Drop(vec![r#"log.body == "b""#.to_owned()]);
    let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
    let (pipeline, _) = Pipeline::compile(&Definition { steps }).unwrap();
    let pipeline = SinkPipeline {
        pipeline: pipeline.into(),
        routing: 0,
        silent: vec![],
        meters: PipelineMeters::new(vec![]),
        capacities: vec![],
        earlier: vec![],
        sampling: None,
    };
    let lake = Running::start_behind(&rig, Some(&pipeline), |settings| settings);
    lake.stop_when_read(&rig).await;
    assert_eq!(rig.dropped(), [(Dropped::Damaged, 1)]);
}
