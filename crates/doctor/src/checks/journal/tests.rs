//! Journals in which something really is wrong.

use super::*;
use crate::finding::Severity;
use crate::subject::{DataFolder, Files, Journal as JournalSettings, Memory};
use std::fs;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_journal::{
    Batch, Checkpoints, Encoding, Meta, Protocol, Settings, Signal, StartAt, Tenant, WhenFull,
};

const SECOND: u64 = 1_700_000_000;

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A journal of several segments in `data`, with a cursor of the sink `up` at its beginning.
fn written(data: &Path) -> tidegate_journal::Journal {
    let arena = Arena::new(64 << 20, Floors::NONE, 1 << 20, 256, 16).unwrap();
    let settings = Settings { segment_bytes: 16 << 10, ..Settings::new(data.join("journal")) };
    let (journal, _) = tidegate_journal::Journal::open(settings).unwrap();
    drop(journal.follow("up", StartAt::Oldest, WhenFull::Block).unwrap());
    for number in 0..20_u64 {
        let mut window = arena.try_window(Share::Ingest, 3000).unwrap();
        window.append(&[7; 3000]).unwrap();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: Protocol::RemoteWrite1,
            encoding: Encoding::Snappy,
            items: 5,
            raw_len: 3000,
            received_at_ns: (SECOND + number) * 1_000_000_000,
        };
        let batch = Batch { meta, window, from: 0, len: 3000, checkpoints: Checkpoints::default() };
        wait(journal.append(batch)).unwrap();
    }
    journal
}

pub(crate) fn setup(data: &Path, sinks: &[&str]) -> Setup {
    let journal = JournalSettings { quota: 1 << 20, segment: 16 << 10, durability: Durability::Fsync };
    Setup {
        memory: Memory { budget: 1, origin: String::new(), is_configured: true, kernel: 0, address_space: 0 },
        files: Files { needed: 1, allowed: 1, error: None, shortage: None, follows_files: false },
        data: DataFolder { path: data.to_owned(), journal, lakes: Vec::new(), others: Vec::new() },
        listeners: Vec::new(),
        admin: "127.0.0.1:1".parse().unwrap(),
        certificates: Vec::new(),
        peers: Vec::new(),
        left_out: Vec::new(),
        sinks: sinks.iter().map(|sink| (*sink).to_owned()).collect(),
    }
}

fn found(setup: &Setup, is_in_use: bool) -> Vec<Finding> {
    let journal = look(&setup.data.path.join("journal"), Duration::from_secs(20));
    check(setup, journal.as_ref(), is_in_use, SystemTime::UNIX_EPOCH + Duration::from_secs(SECOND + 60))
}

/// The findings that are not fine.
fn told(setup: &Setup) -> Vec<(Severity, String)> {
    let findings = found(setup, false).into_iter().filter(|finding| finding.severity > Severity::Fine);
    findings.map(|finding| (finding.severity, finding.what)).collect()
}

/// The files of the segments, oldest first.
fn segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "seg")).collect();
    files.sort();
    files
}

#[test]
fn a_sound_journal_is_fine_also_while_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(told(&setup(dir.path(), &["up"])), [], "none is there yet");
    let journal = written(dir.path());
    let findings = found(&setup(dir.path(), &["up"]), true);
    assert!(findings.iter().all(|finding| finding.severity == Severity::Fine), "{findings:?}");
    assert!(
        findings
            .iter()
            .any(|finding| finding.evidence.contains("the oldest record that was read is 60 s old")),
        "{findings:?}"
    );
    drop(journal);
    assert_eq!(told(&setup(dir.path(), &["up"])), []);
    let newest = look(&dir.path().join("journal"), Duration::from_secs(20)).unwrap().newest_ns;
    assert_eq!(newest, Some((SECOND + 19) * 1_000_000_000));
}

#[test]
fn flipped_bytes_are_found() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    let files = segments(dir.path());
    assert!(files.len() > 2, "{files:?}");
    let mut bytes = fs::read(&files[1]).unwrap();
    bytes[200] ^= 1;
    fs::write(&files[1], bytes).unwrap();
    let found = found(&setup(dir.path(), &["up"]), false);
    let damage = found.iter().find(|finding| finding.severity == Severity::AtRisk).unwrap();
    assert!(damage.what.contains("damaged in 1 places"), "{found:?}");
    let name = files[1].file_name().unwrap().to_str().unwrap();
    assert!(damage.evidence.contains(name), "{found:?}");
    // Without its first bytes nothing in a segment is found by its header.
    fs::write(&files[1], vec![0; 9000]).unwrap();
    assert_eq!(
        told(&setup(dir.path(), &["up"])),
        [(Severity::AtRisk, "the journal is damaged in 1 places".to_owned())]
    );
}

#[test]
fn a_newer_version_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    for file in segments(dir.path()) {
        let mut bytes = fs::read(&file).unwrap();
        bytes[4] = VERSION + 1;
        fs::write(&file, bytes).unwrap();
    }
    let told = told(&setup(dir.path(), &["up"]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, Severity::Broken);
    assert!(told[0].1.contains(&format!("format {}", VERSION + 1)), "{told:?}");
}

#[test]
fn a_cursor_that_was_left_behind_is_told() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    let told = told(&setup(dir.path(), &["other"]));
    assert_eq!(
        told,
        [(
            Severity::AtRisk,
            "the journal keeps 100 items for `up`, which is no sink of this configuration".to_owned()
        )]
    );
    let cursor = fs::read_dir(dir.path().join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let cursor = cursor.into_iter().find(|path| path.to_string_lossy().contains("up")).unwrap();
    fs::write(cursor, "garbage").unwrap();
    let told = self::told(&setup(dir.path(), &["up"]));
    assert_eq!(told, [(Severity::AtRisk, "the cursor of `up` cannot be read".to_owned())]);
}

#[test]
fn a_journal_that_is_nearly_full_is_at_risk() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    let mut setup = setup(dir.path(), &["up"]);
    setup.data.journal.quota = 64 << 10;
    assert_eq!(told(&setup), [(Severity::AtRisk, "the journal is nearly full".to_owned())]);
}

#[test]
fn reading_ends_in_time() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    let journal = look(&dir.path().join("journal"), Duration::ZERO).unwrap();
    assert_eq!((journal.read, journal.records), (0, 0));
    let findings = check(&setup(dir.path(), &["up"]), Some(&journal), false, SystemTime::now());
    assert!(findings.iter().any(|finding| finding.evidence.contains("0 of ")), "{findings:?}");
}

/// The files of the newest segment with records, and the offsets of its records.
fn newest(data: &Path) -> (PathBuf, Vec<u64>) {
    let found = inspect(&data.join("journal")).unwrap();
    let with_records = found.segments.iter().rev().find_map(|segment| {
        let offsets: Vec<u64> = found.records(segment).unwrap().map(|record| record.offset).collect();
        (!offsets.is_empty()).then(|| (data.join("journal").join(&segment.name), offsets))
    });
    with_records.unwrap()
}

fn flip(file: &Path, at: u64) {
    let mut bytes = fs::read(file).unwrap();
    bytes[usize::try_from(at).unwrap()] ^= 1;
    fs::write(file, bytes).unwrap();
}

/// A crash may tear the record that is written last, and none that was acknowledged before.
#[test]
fn only_the_last_record_may_be_torn() {
    let torn = "the last record of the journal is not whole, as when the machine or the gateway ends while it writes";
    for (behind, within, expected) in [
        (0, 100, (Severity::Note, torn)),
        (1, 100, (Severity::AtRisk, "the journal is damaged in 1 places")),
        // Without its header it is not found, but its bytes are.
        (1, 0, (Severity::AtRisk, "the journal is damaged in 1 places")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        drop(written(dir.path()));
        let (file, offsets) = newest(dir.path());
        assert!(offsets.len() > 2, "{offsets:?}");
        flip(&file, offsets[offsets.len() - 1 - behind] + within);
        let expected = (expected.0, expected.1.to_owned());
        assert_eq!(told(&setup(dir.path(), &["up"])), [expected], "{behind} from the end, byte {within}");
    }
}

/// A gateway that deletes a segment while it is read has damaged nothing.
#[test]
fn a_segment_that_is_gone_is_not_damaged() {
    let dir = tempfile::tempdir().unwrap();
    drop(written(dir.path()));
    let folder = dir.path().join("journal");
    let found = inspect(&folder).unwrap();
    let segment = &found.segments[1];
    flip(&folder.join(&segment.name), 200);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut journal = Journal { folder: folder.clone(), ..Journal::default() };
    journal.read_surely(&found, segment, deadline);
    assert_eq!(journal.wrong, 1);
    // Whatever is read is damaged, and its folder says that it is gone.
    let mut journal = Journal { folder: dir.path().join("elsewhere"), ..Journal::default() };
    journal.read_surely(&found, segment, deadline);
    assert_eq!((journal.wrong, journal.read), (0, 0));
}

/// With the journal in memory nobody reads what an earlier durability left on disk.
#[test]
fn segments_that_nobody_reads_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup(dir.path(), &["up"]);
    setup.data.journal.durability = Durability::Memory;
    assert_eq!(told(&setup), []);
    drop(written(dir.path()));
    let found = found(&setup, false);
    let left = found.iter().find(|finding| finding.severity == Severity::AtRisk).unwrap();
    assert!(left.what.contains("acknowledged data that is not delivered"), "{found:?}");
    assert!(left.evidence.contains("at most 100 items"), "{found:?}");
    assert!(found.iter().all(|finding| !finding.what.contains("a restart loses")), "{found:?}");
}
