//! The reader against a program that stands in for `journalctl`: restarts, refusals, gaps.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tidegate_journald::{
    AppendError, Buffer, Counters, Destination, EncodedBatch, Fields, JournalctlSettings, Reader,
    ReaderSettings,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(20);

/// A journal: a folder with a file for each entry, by their numbers. The program begins with the one that the cursor
/// names, or with the next that is there, and then waits, or ends if there is a file `fail`.
struct Journal(TempDir);

impl Journal {
    fn new() -> Journal {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("journalctl");
        let script = r#"#!/bin/sh
cd "$(dirname "$0")"
first=100
for argument in "$@"; do
  case "$argument" in
    --cursor=*) first=$(echo "$argument" | sed 's/.*i=1*\([0-9a-f]*\);.*/\1/'); first=1$first ;;
    --lines=1) first=$(ls | grep '^1' | tail -1) ;;
  esac
done
for entry in $(ls | grep '^1'); do
  if [ "$entry" -ge "$first" ]; then cat "$entry"; fi
done
if [ -e fail ]; then echo "the disk is on fire" >&2; exit 3; fi
exec sleep 1000
"#;
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        Journal(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// An entry with a number from 100 to 199.
    fn write(&self, number: u32, message: &str) {
        std::fs::write(self.path().join(number.to_string()), entry(number, message)).unwrap();
    }

    /// Entries that the program writes at once.
    fn write_together(&self, numbers: std::ops::Range<u32>) {
        let file = self.path().join(numbers.start.to_string());
        let text: String = numbers.map(|number| entry(number, &format!("line {number}"))).collect();
        std::fs::write(file, text).unwrap();
    }

    fn settings(&self, from_beginning: bool) -> ReaderSettings {
        ReaderSettings {
            journalctl: JournalctlSettings { program: self.path().join("journalctl"), ..Default::default() },
            from_beginning,
            fields: Fields::default(),
            max_message: 10_000,
            attributes: vec![("env".into(), "test".into())],
        }
    }
}

fn entry(number: u32, message: &str) -> String {
    format!(
        "__CURSOR=s=ab;i={number};b=1\n__REALTIME_TIMESTAMP=1767000000000{number}\n_HOSTNAME=web\nPRIORITY=6\n\
         MESSAGE={message}\n\n"
    )
}

/// Keeps records in memory.
#[derive(Clone)]
struct Memory(Arc<State>);

struct State {
    bodies: watch::Sender<Vec<String>>,
    cursor: watch::Sender<String>,
    answers: Mutex<VecDeque<AppendError>>,
    largest: usize,
    refused: Mutex<u64>,
    stop: watch::Sender<bool>,
}

impl Memory {
    fn new(largest: usize, answers: impl IntoIterator<Item = AppendError>) -> Memory {
        Memory(Arc::new(State {
            bodies: watch::Sender::default(),
            cursor: watch::Sender::default(),
            answers: Mutex::new(answers.into_iter().collect()),
            largest,
            refused: Mutex::default(),
            stop: watch::Sender::new(false),
        }))
    }

    async fn bodies(&self, number: usize) -> Vec<String> {
        let mut bodies = self.0.bodies.subscribe();
        let wait = bodies.wait_for(|bodies| bodies.len() >= number);
        tokio::time::timeout(PATIENCE, wait).await.expect("the records never came").unwrap().clone()
    }

    async fn cursor(&self, wanted: &str) {
        let mut cursor = self.0.cursor.subscribe();
        let wait = cursor.wait_for(|cursor| cursor == wanted);
        tokio::time::timeout(PATIENCE, wait).await.expect("the cursor never came").unwrap();
    }
}

struct Bytes(Vec<u8>);

impl Buffer for Bytes {
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Destination for Memory {
    type Buffer = Bytes;

    fn largest_batch(&self) -> usize {
        self.0.largest
    }

    fn largest_item(&self) -> usize {
        self.0.largest
    }

    async fn buffer(&self, bytes: usize) -> Option<Bytes> {
        Some(Bytes(vec![0; bytes]))
    }

    async fn append(&self, batch: EncodedBatch<Bytes>, cursor: &str) -> Result<(), AppendError> {
        if let Some(refused) = self.0.answers.lock().unwrap().pop_front() {
            return Err(refused);
        }
        let logs = ExportLogsServiceRequest::decode(&batch.buffer.0[..batch.len]).unwrap();
        let mut bodies = Vec::new();
        for resource in &logs.resource_logs {
            let keys: Vec<_> =
                resource.resource.as_ref().unwrap().attributes.iter().map(|a| &*a.key).collect();
            assert_eq!(keys, ["host.name", "env"]);
            for record in resource.scope_logs.iter().flat_map(|scope| &scope.log_records) {
                assert_eq!((record.severity_number, &*record.severity_text), (9, "info"));
                let Some(Value::StringValue(body)) = record.body.clone().unwrap().value else {
                    panic!("no text")
                };
                bodies.push(body);
            }
        }
        assert_eq!(bodies.len(), batch.items as usize);
        self.0.cursor.send_replace(cursor.to_owned());
        self.0.bodies.send_modify(|all| all.extend(bodies));
        Ok(())
    }

    fn skip_to(&self, cursor: &str) {
        self.0.cursor.send_replace(cursor.to_owned());
    }

    fn refuse_too_large(&self, entries: u64) {
        *self.0.refused.lock().unwrap() += entries;
    }

    async fn stopping(&self) {
        let _ = self.0.stop.subscribe().wait_for(|stop| *stop).await;
    }
}

/// Starts a reader; it ends with the set.
fn read(
    journal: &Journal,
    memory: &Memory,
    from_beginning: bool,
    cursor: Option<&str>,
) -> (Arc<Counters>, JoinSet<()>) {
    let counters = Arc::new(Counters::default());
    let settings = journal.settings(from_beginning);
    let reader = Reader::new(settings, memory.clone(), cursor.map(ToOwned::to_owned), Arc::clone(&counters));
    let mut tasks = JoinSet::new();
    tasks.spawn(reader.run());
    (counters, tasks)
}

fn cursor(number: u32) -> String {
    format!("s=ab;i={number};b=1")
}

/// The entries of the journal come once each, in their order, with the last one's cursor; and the reader ends when it is
/// to.
#[tokio::test]
async fn reads_the_journal() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    (100..150).for_each(|number| journal.write(number, &format!("line {number}")));
    let (counters, mut tasks) = read(&journal, &memory, true, None);
    let expected: Vec<_> = (100..150).map(|number| format!("line {number}")).collect();
    assert_eq!(memory.bodies(50).await, expected);
    memory.cursor(&cursor(149)).await;
    memory.0.stop.send_replace(true);
    tokio::time::timeout(PATIENCE, tasks.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(counters.entries.load(Relaxed), 50);
    assert_eq!(counters.gaps.load(Relaxed), 0);
}

/// A reader that begins at the end remembers where that is: after a restart nothing is missing.
#[tokio::test]
async fn begins_at_the_end() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    journal.write(100, "old");
    journal.write(101, "last");
    let (_, tasks) = read(&journal, &memory, false, None);
    memory.cursor(&cursor(101)).await;
    drop(tasks);
    journal.write(102, "new");
    let (_, _tasks) = read(&journal, &memory, false, Some(&cursor(101)));
    assert_eq!(memory.bodies(1).await, ["new"]);
}

/// A reader that begins at the end of an empty journal delivers what comes later, also what comes while it is away or while the
/// program is started again.
#[tokio::test]
async fn begins_at_the_end_of_an_empty_journal() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    let (_, tasks) = read(&journal, &memory, false, None);
    let mut stored = memory.0.cursor.subscribe();
    let wait = stored.wait_for(|position| position.starts_with("since="));
    let position =
        tokio::time::timeout(PATIENCE, wait).await.expect("no position is stored").unwrap().clone();
    drop(tasks);
    (100..103).for_each(|number| journal.write(number, &format!("line {number}")));
    let (_, _tasks) = read(&journal, &memory, false, Some(&position));
    assert_eq!(memory.bodies(3).await, ["line 100", "line 101", "line 102"]);

    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    std::fs::write(journal.path().join("fail"), "").unwrap();
    let (counters, _tasks) = read(&journal, &memory, false, None);
    let failed = async {
        while counters.failures.load(Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, failed).await.expect("the program has not ended");
    journal.write_together(100..103);
    assert_eq!(memory.bodies(3).await, ["line 100", "line 101", "line 102"]);
}

/// The entry of the cursor is not delivered again.
#[tokio::test]
async fn goes_on_behind_the_cursor() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    (100..105).for_each(|number| journal.write(number, &format!("line {number}")));
    let (counters, _tasks) = read(&journal, &memory, true, Some(&cursor(102)));
    assert_eq!(memory.bodies(2).await, ["line 103", "line 104"]);
    assert_eq!(counters.gaps.load(Relaxed), 0);
}

/// Where the entry of the cursor was deleted, the next one is delivered, and the gap is counted.
#[tokio::test]
async fn a_deleted_cursor_is_a_gap() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    journal.write(108, "later");
    let (counters, _tasks) = read(&journal, &memory, true, Some(&cursor(103)));
    assert_eq!(memory.bodies(1).await, ["later"]);
    gap_is_counted(&counters).await;
    assert_eq!(counters.missing.load(Relaxed), 4);
}

async fn gap_is_counted(counters: &Counters) {
    let wait = async {
        while counters.gaps.load(Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the gap is not counted");
    assert_eq!(counters.gaps.load(Relaxed), 1);
}

/// A gap whose next entry is refused is found again, and counted once.
#[tokio::test]
async fn a_gap_is_counted_when_the_entry_behind_it_is_durable() {
    let refusals =
        [AppendError::Retry(Duration::from_millis(1)), AppendError::Retry(Duration::from_millis(1))];
    let (journal, memory) = (Journal::new(), Memory::new(100_000, refusals));
    journal.write(108, "later");
    let (counters, _tasks) = read(&journal, &memory, true, Some(&cursor(103)));
    assert_eq!(memory.bodies(1).await, ["later"]);
    gap_is_counted(&counters).await;
}

/// Refused entries are read again, and then come once.
#[tokio::test]
async fn refused_entries_come_again() {
    let refusals = [AppendError::Retry(Duration::from_millis(1)), AppendError::TooLarge];
    let (journal, memory) = (Journal::new(), Memory::new(100_000, refusals));
    journal.write_together(100..110);
    let (_, _tasks) = read(&journal, &memory, true, None);
    let expected: Vec<_> = (100..110).map(|number| format!("line {number}")).collect();
    assert_eq!(memory.bodies(10).await, expected);
}

/// An entry that fits into no batch is counted once, however often those beside it are refused.
#[tokio::test]
async fn too_large_entries_are_counted_once() {
    let refusals =
        [AppendError::Retry(Duration::from_millis(1)), AppendError::Retry(Duration::from_millis(1))];
    let (journal, memory) = (Journal::new(), Memory::new(1000, refusals));
    let (identifier, beside) = ("x".repeat(2000), entry(101, "short"));
    journal.write(100, &format!("long\nSYSLOG_IDENTIFIER={identifier}\n\n{}", beside.trim_end()));
    let (_, mut tasks) = read(&journal, &memory, true, None);
    assert_eq!(memory.bodies(1).await, ["short"]);
    memory.0.stop.send_replace(true);
    tokio::time::timeout(PATIENCE, tasks.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(*memory.0.refused.lock().unwrap(), 1);
}

/// A program that ends is started again, and goes on where it was.
#[tokio::test]
async fn a_program_that_ends_is_started_again() {
    let (journal, memory) = (Journal::new(), Memory::new(100_000, []));
    journal.write(100, "first");
    std::fs::write(journal.path().join("fail"), "").unwrap();
    let (counters, _tasks) = read(&journal, &memory, true, None);
    memory.bodies(1).await;
    journal.write(101, "second");
    assert_eq!(memory.bodies(2).await, ["first", "second"]);
    assert!(counters.failures.load(Relaxed) >= 1 && counters.starts.load(Relaxed) >= 2);
    assert_eq!(counters.gaps.load(Relaxed), 0);
}

/// A long message is cut to what is accepted, and one record fills a batch.
#[tokio::test]
async fn long_messages_are_cut() {
    let (journal, memory) = (Journal::new(), Memory::new(1000, []));
    journal.write(100, &"é".repeat(5000));
    journal.write(101, "short");
    let (counters, _tasks) = read(&journal, &memory, true, None);
    let bodies = memory.bodies(2).await;
    assert_eq!((bodies[0].len(), &*bodies[1]), (500, "short"));
    assert!(bodies[0].chars().all(|c| c == 'é'));
    assert_eq!(counters.cut.load(Relaxed), 1);
    assert_eq!(counters.invalid_text.load(Relaxed), 0);
}

/// A folder of real journal files, made by systemd from the export format.
struct SystemdJournal(TempDir);

impl SystemdJournal {
    const REMOTE: &str = "/lib/systemd/systemd-journal-remote";

    fn new() -> SystemdJournal {
        let remote = Self::REMOTE;
        assert!(Path::new(remote).exists(), "{remote} is missing: install systemd-journal-remote");
        SystemdJournal(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.journal"))
    }

    /// A file with these entries, of which each fifth has two lines.
    fn write(&self, name: &str, numbers: std::ops::Range<u64>) {
        let mut program = Command::new(Self::REMOTE)
            .arg(format!("--output={}", self.file(name).display()))
            .arg("-")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = program.stdin.take().unwrap();
        for number in numbers {
            let time = 1_767_000_000_000_000 + number * 1000;
            let mut entry = format!(
                "__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={}\n_BOOT_ID=0123456789abcdef0123456789abcdef\n\
                 _HOSTNAME=web\nPRIORITY=6\n",
                1000 + number * 1000
            );
            let message = line(number);
            if message.contains('\n') {
                entry.push_str("MESSAGE\n");
                input.write_all(entry.as_bytes()).unwrap();
                input.write_all(&(message.len() as u64).to_le_bytes()).unwrap();
                input.write_all(format!("{message}\n\n").as_bytes()).unwrap();
            } else {
                input.write_all(format!("{entry}MESSAGE={message}\n\n").as_bytes()).unwrap();
            }
        }
        drop(input);
        assert!(program.wait().unwrap().success());
    }

    fn read(&self, memory: &Memory, cursor: Option<String>) -> (Arc<Counters>, JoinSet<()>) {
        let settings = ReaderSettings {
            journalctl: JournalctlSettings {
                program: "journalctl".into(),
                directory: Some(self.0.path().to_owned()),
                ..Default::default()
            },
            from_beginning: true,
            fields: Fields::default(),
            max_message: 10_000,
            attributes: vec![("env".into(), "test".into())],
        };
        let counters = Arc::new(Counters::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(Reader::new(settings, memory.clone(), cursor, Arc::clone(&counters)).run());
        (counters, tasks)
    }
}

fn line(number: u64) -> String {
    if number.is_multiple_of(5) { format!("line {number}\nsecond") } else { format!("line {number}") }
}

/// systemd's own files by its own `journalctl`: every entry once, also those that come while it is followed and after a
/// restart; and a gap where the entry of the cursor was deleted.
#[tokio::test]
async fn reads_the_files_of_systemd() {
    let (journal, memory) = (SystemdJournal::new(), Memory::new(1 << 20, []));
    journal.write("a", 0..2000);
    let (counters, tasks) = journal.read(&memory, None);
    memory.bodies(2000).await;
    journal.write("b", 2000..2100);
    memory.bodies(2100).await;
    drop(tasks);
    assert_eq!(counters.gaps.load(Relaxed), 0);
    let cursor = memory.0.cursor.borrow().clone();
    journal.write("c", 2100..2200);
    let (counters, tasks) = journal.read(&memory, Some(cursor));
    let expected: Vec<_> = (0..2200).map(line).collect();
    assert_eq!(memory.bodies(2200).await, expected);
    drop(tasks);
    assert_eq!(counters.gaps.load(Relaxed), 0);
    let cursor = memory.0.cursor.borrow().clone();
    std::fs::remove_file(journal.file("c")).unwrap();
    journal.write("d", 2300..2310);
    let (counters, _tasks) = journal.read(&memory, Some(cursor));
    let expected: Vec<_> = (0..2200).chain(2300..2310).map(line).collect();
    assert_eq!(memory.bodies(2210).await, expected);
    gap_is_counted(&counters).await;
}
