//! Tailers over real folders, with a destination in memory that keeps records and checkpoints together, as a journal does.

mod basics;
mod compressed;
mod copytruncate;
mod excluded;
mod hostile;
mod idle;
mod many;
mod quick;
mod random;
mod restart;
mod rotation;
mod settings;
mod status;

use crate::{
    AppendError, Buffer, CheckpointChange, Control, Destination, EncodedBatch, FileResource, FileStatus,
    Glob, Input, Order, PathFilter, PathResource, Settings, StartAt, StatusRequest, TailMeters, TailStatus,
    Tailer,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

/// Longer than anything takes.
const SOON: Duration = Duration::from_secs(60);

/// The durable records and checkpoints.
#[derive(Default)]
struct Store {
    checkpoints: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Path and text of each record.
    records: Vec<(String, String)>,
    batches: usize,
    /// Times that changes were set without a batch.
    sets: usize,
    /// Answers to the next batches.
    answers: Vec<AppendError>,
    largest: usize,
    too_large: usize,
    /// Keeps nothing, for tests that count memory.
    forgets: bool,
}

/// A destination in memory. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    store: Rc<RefCell<Store>>,
    changed: Rc<Notify>,
}

impl Buffer for Vec<u8> {
    fn bytes(&mut self) -> &mut [u8] {
        self
    }
}

impl Destination for Memory {
    type Buffer = Vec<u8>;

    fn largest_batch(&self) -> usize {
        match self.store.borrow().largest {
            0 => 16 << 20,
            largest => largest,
        }
    }

    fn largest_item(&self) -> usize {
        self.largest_batch()
    }

    async fn buffer(&self, bytes: usize) -> Option<Vec<u8>> {
        tokio::task::yield_now().await;
        Some(vec![0; bytes])
    }

    async fn append(
        &self,
        batch: EncodedBatch<Vec<u8>>,
        changes: &[CheckpointChange],
    ) -> Result<(), AppendError> {
        tokio::task::yield_now().await;
        let mut store = self.store.borrow_mut();
        if let Some(error) = store.answers.pop() {
            return Err(error);
        }
        let decoded = ExportLogsServiceRequest::decode(&batch.buffer[..batch.len]).unwrap();
        let mut items = 0;
        for resource in decoded.resource_logs {
            let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
            let path = attributes.iter().find(|attribute| attribute.key == "log.file.path");
            let path = text(path.and_then(|attribute| attribute.value.clone()?.value));
            for record in resource.scope_logs.into_iter().flat_map(|scope| scope.log_records) {
                items += 1;
                store.records.push((path.clone(), text(record.body.and_then(|body| body.value))));
            }
        }
        assert_eq!(items, batch.items);
        let bytes: usize = changes.iter().map(CheckpointChange::bytes).sum();
        assert!(bytes <= CheckpointChange::MOST_BYTES, "{bytes} bytes of checkpoints");
        store.batches += 1;
        store.apply(changes);
        drop(store);
        self.changed.notify_waiters();
        Ok(())
    }

    fn set(&self, changes: &[CheckpointChange]) {
        let mut store = self.store.borrow_mut();
        store.sets += 1;
        store.apply(changes);
        drop(store);
        self.changed.notify_waiters();
    }

    fn checkpoints(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (key, value) in &self.store.borrow().checkpoints {
            each(key, value);
        }
    }

    fn count_too_large(&self) {
        self.store.borrow_mut().too_large += 1;
    }
}

impl Store {
    fn apply(&mut self, changes: &[CheckpointChange]) {
        if self.forgets {
            return;
        }
        for change in changes {
            match &change.value {
                Some(value) => self.checkpoints.insert(change.key.clone(), value.clone()),
                None => self.checkpoints.remove(&change.key),
            };
        }
    }
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        other => panic!("no text: {other:?}"),
    }
}

/// A folder with log files, and what is known of them.
struct House {
    folder: TempDir,
    memory: Memory,
    settings: Settings,
    meters: TailMeters,
}

/// A tailer that runs.
struct Running {
    control: mpsc::Sender<Control>,
    task: JoinHandle<()>,
}

impl House {
    /// With the files `*.log*` of a folder.
    fn new() -> House {
        House::with("*.log*")
    }

    fn with(pattern: &str) -> House {
        let folder = TempDir::new().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let input = input("main", &format!("{}/{pattern}", path.display()));
        let mut settings = Settings::new(b'f', vec![input]);
        settings.linger = Duration::from_millis(2);
        settings.rotate_wait = Duration::from_secs(3600);
        House { folder, memory: Memory::default(), settings, meters: TailMeters::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn start(&self) -> Running {
        self.start_with(PathResource::default())
    }

    fn start_with(&self, resource: impl FileResource) -> Running {
        let (control, messages) = mpsc::channel(4);
        let settings = self.settings.clone();
        let tailer = Tailer::new(settings, self.memory.clone(), resource, self.meters.clone());
        Running { control, task: spawn_local(tailer.run(messages)) }
    }

    /// Waits until `holds` for what is durable.
    async fn until(&self, what: &str, mut holds: impl FnMut(&Store) -> bool) {
        let waiting = async {
            loop {
                let changed = self.memory.changed.notified();
                if holds(&self.memory.store.borrow()) {
                    return;
                }
                changed.await;
            }
        };
        if tokio::time::timeout(SOON, waiting).await.is_err() {
            let store = self.memory.store.borrow();
            let tail: Vec<_> = store.records.iter().rev().take(5).collect();
            panic!("{what}: {} records, the last of them {tail:?}", store.records.len());
        }
    }

    /// Waits until these are all the records, in any order; and that none comes twice.
    async fn expect(&self, mut expected: Vec<String>) {
        expected.sort();
        self.until("the records", |store| store.records.len() >= expected.len()).await;
        let mut found = self.texts();
        found.sort();
        let missing: Vec<_> =
            expected.iter().filter(|text| found.binary_search(text).is_err()).take(5).collect();
        assert!(found == expected, "{} of {} records; missing {missing:?}", found.len(), expected.len());
    }

    fn texts(&self) -> Vec<String> {
        self.memory.store.borrow().records.iter().map(|(_, text)| text.clone()).collect()
    }

    /// Checks that nothing more comes: a line of a new file does, after all that was there before.
    async fn expect_no_more(&self, running: &Running) {
        running.look_again(self).await;
        let before = self.texts().len();
        write(&self.path("settled.log"), ["settled"]);
        self.until("the line behind", |store| store.records.iter().any(|(_, text)| text == "settled")).await;
        assert_eq!(self.texts().len(), before + 1, "more records came: {:?}", self.texts().split_off(before));
    }
}

impl Running {
    /// Ends in order.
    async fn stop(self) {
        let _ = self.control.send(Control::Stop).await;
        tokio::time::timeout(SOON, self.task).await.unwrap().unwrap();
    }

    /// Ends at once, wherever it is.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    async fn status(&self) -> Vec<FileStatus> {
        self.ask("", Order::Lag, 100).await.files
    }

    /// The files that a filter selects, at most so many.
    async fn ask(&self, filter: &str, order: Order, most: usize) -> TailStatus {
        let (answer, status) = oneshot::channel();
        let filter = PathFilter::parse(filter).unwrap();
        let request = StatusRequest { filter, order, most, most_text: 64 << 10, answer };
        assert!(self.control.send(Control::Status(request)).await.is_ok());
        tokio::time::timeout(SOON, status).await.unwrap().unwrap()
    }

    /// Goes on with other settings.
    async fn change(&self, settings: &Settings) {
        assert!(self.control.send(Control::Settings(Box::new(settings.clone()))).await.is_ok());
    }

    /// Lists everything anew, and waits until that is done.
    async fn look_again(&self, house: &House) {
        self.change(&house.settings).await;
        self.status().await;
    }
}

fn input(name: &str, pattern: &str) -> Input {
    Input {
        name: name.into(),
        include: Glob::parse(pattern).unwrap(),
        exclude: Vec::new(),
        start_at: StartAt::Beginning,
        compressed: false,
        lines: tidegate_lines::Settings::default(),
        attributes: Vec::new(),
    }
}

/// Appends lines to a file.
fn write<T: AsRef<str>>(path: &Path, lines: impl IntoIterator<Item = T>) {
    let mut file = append_to(path);
    let text: String = lines.into_iter().map(|line| format!("{}\n", line.as_ref())).collect();
    file.write_all(text.as_bytes()).unwrap();
}

fn append_to(path: &Path) -> File {
    OpenOptions::new().append(true).create(true).open(path).unwrap()
}

/// Lines that name their file, and are long enough for a head to fill soon.
fn numbered(name: &str, range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| format!("{name} {n:06} {}", "x".repeat(50))).collect()
}

/// Runs a test on a runtime of its own. One that waits for what does not come fails.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let in_time = async {
        let in_time = tokio::time::timeout(3 * SOON, test).await;
        assert!(in_time.is_ok(), "the test waits for what does not come");
    };
    LocalSet::new().block_on(&runtime, in_time);
}
