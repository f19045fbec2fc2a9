//! The loop: changes, listings, turns, appends.

mod append;
mod changes;
mod compare;
mod copies;
mod discover;
mod fill;
mod formers;
mod held;
mod names;
mod origin;
mod others;
mod report;
mod rotate;
mod scan;
mod settings;
mod table;
mod turn;
mod turn_compressed;

use crate::batch::StreamAttributes;
use crate::checkpoint::Checkpoint;
use crate::destination::Destination;
use crate::directories::Directories;
use crate::file::{Index, Stage};
use crate::head_index::HeadIndex;
use crate::identity::FileId;
use crate::meters::TailMeters;
use crate::resource::FileResource;
use crate::settings::Settings;
use crate::status::{StatusRequest, UnreadablePaths};
use crate::watch::Watcher;
use append::{Appending, Prepared};
use copies::Copies;
#[cfg(test)]
pub(crate) use discover::unix_seconds;
use formers::Formers;
use others::OtherChanges;
use scan::Scan;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use table::Table;
use tidegate_lines::{Settings as LineSettings, Workspace};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use turn_compressed::OpenCompressed;

/// A message to a tailer.
#[derive(Debug)]
pub enum Control {
    /// Tells what it knows of its files.
    Status(StatusRequest),
    /// Replaces the inputs, when nothing is on its way to the destination: files that are in none of them any more are left, others
    /// go on. Messages behind it wait until then.
    Settings(Box<Settings>),
    /// The answers of [`FileResource`](crate::FileResource) have changed.
    ResourcesChanged,
    /// Ends when the batch that is being appended is durable.
    Stop,
}

/// Follows the files of its settings.
pub struct Tailer<D: Destination, R: FileResource> {
    settings: Settings,
    line_settings: Vec<Arc<LineSettings>>,
    destination: Rc<D>,
    resource: R,
    meters: TailMeters,
    started: Instant,
    watcher: Option<Watcher>,
    directories: Directories,
    table: Table,
    heads: HeadIndex<Index>,
    formers: Formers,
    /// Checkpoints whose files were not found yet.
    stored: HashMap<FileId, Checkpoint>,
    /// Markers of inputs that were there before.
    known_inputs: Vec<Vec<u8>>,
    others: OtherChanges,
    scan: Scan,
    ready: VecDeque<Index>,
    /// Files that wait for their resource.
    waiting: BTreeSet<Index>,
    /// Files found at the start in place of those that checkpoints know.
    replaced: Vec<Index>,
    held: BTreeSet<Index>,
    copies: Copies,
    /// When the lines of a file must be flushed.
    flushes: Vec<(Duration, Index)>,
    batch_limit: usize,
    /// A record did not fit an empty batch: the next one is as large as it may be.
    needs_largest: bool,
    retry_at: Duration,
    buffer: Vec<u8>,
    attributes: Vec<u8>,
    workspace: Workspace,
    streams: StreamAttributes,
    decompressor: Option<OpenCompressed>,
    /// Heap bytes of unfinished records.
    held_bytes: usize,
    /// Files of the patterns that the listing under way found and could not take.
    untracked: u64,
    /// Names in all directories, and the bytes of all names and paths, at most.
    known_names: usize,
    text_bytes: usize,
    max_files_reached: bool,
    unreadable: UnreadablePaths,
    /// Settings that take effect when no batch is under way.
    new_settings: Option<Box<Settings>>,
}

/// A future that may not be there.
type Slot<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// A tailer that gives what it reads to `destination`.
    pub fn new(settings: Settings, destination: D, resource: R, meters: TailMeters) -> Tailer<D, R> {
        let mut tailer = Tailer {
            line_settings: settings.inputs.iter().map(|input| Arc::new(input.lines.clone())).collect(),
            formers: Formers::new(settings.max_files),
            batch_limit: settings.batch,
            needs_largest: false,
            destination: Rc::new(destination),
            resource,
            meters,
            started: Instant::now(),
            watcher: None,
            directories: Directories::default(),
            table: Table::default(),
            heads: HeadIndex::new(),
            stored: HashMap::new(),
            known_inputs: Vec::new(),
            others: OtherChanges::default(),
            scan: Scan::default(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
            replaced: Vec::new(),
            held: BTreeSet::new(),
            copies: Copies::default(),
            flushes: Vec::new(),
            retry_at: Duration::ZERO,
            buffer: Vec::new(),
            attributes: Vec::new(),
            workspace: Workspace::default(),
            streams: StreamAttributes::new(),
            decompressor: None,
            held_bytes: 0,
            untracked: 0,
            known_names: 0,
            text_bytes: 0,
            max_files_reached: false,
            unreadable: UnreadablePaths::default(),
            new_settings: None,
            settings,
        };
        tailer.resource.set_inputs(&tailer.settings.inputs);
        tailer.load_checkpoints();
        tailer
    }

    /// Reads until [`Control::Stop`] or the end of `control`. Needs a runtime on its own thread, which reading blocks.
    pub async fn run(mut self, mut control: mpsc::Receiver<Control>) {
        match Watcher::new() {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => {
                tracing::warn!(%error, "no inotify: files are looked at every second, see fs.inotify.max_user_instances");
            }
        }
        self.begin_scan();
        let mut buffer: Slot<Option<D::Buffer>> = None;
        let mut prepared: Option<Prepared<D::Buffer>> = None;
        let mut appending: Option<Appending> = None;
        let mut next_changes = Duration::ZERO;
        let mut next_poll = Duration::ZERO;
        loop {
            let now = self.now();
            if appending.is_none()
                && prepared.is_none()
                && let Some(settings) = self.new_settings.take()
            {
                self.replace_settings(*settings);
            }
            self.scan_step();
            if now >= next_poll {
                self.poll(now);
                next_poll = now + POLL;
            }
            self.flush_due(now);
            if appending.is_none()
                && let Some(batch) = prepared.take()
            {
                appending = self.append(batch);
            }
            self.others.forget_durable(now);
            let may_read = self.scan.was_complete && now >= self.retry_at && self.new_settings.is_none();
            if may_read && buffer.is_none() && prepared.is_none() && !self.ready.is_empty() {
                let (destination, bytes) = (Rc::clone(&self.destination), self.wanted_bytes());
                buffer = Some(Box::pin(async move { destination.buffer(bytes).await }));
            }
            if may_read && buffer.is_none() && prepared.is_none() {
                self.others.set_waiting(&*self.destination, now);
            }
            let wake_at = self.wake_at(now, next_changes, next_poll);
            tokio::select! {
                biased;
                message = control.recv(), if self.new_settings.is_none() => match message {
                    None | Some(Control::Stop) => break,
                    Some(message) => self.control(message),
                },
                result = complete(&mut appending) => {
                    appending = None;
                    if self.appended(result, &mut prepared).is_break() {
                        break;
                    }
                }
                granted = filled(&mut buffer) => {
                    buffer = None;
                    let Some(granted) = granted else { break };
                    // Nothing is read before the time of a refusal is over, nor before new settings take effect.
                    let may_fill = self.now() >= self.retry_at && self.new_settings.is_none();
                    prepared = if may_fill { self.fill(granted) } else { None };
                }
                () = changed(self.watcher.as_ref()), if now >= next_changes => {
                    self.take_changes();
                    next_changes = self.now() + self.settings.linger;
                }
                () = sleep_until(self.started + wake_at) => {}
            }
        }
        if let Some(appending) = appending {
            let result = appending.await;
            let _ = self.appended(result, &mut prepared);
        }
        if let Some(prepared) = prepared {
            self.others.put_back(prepared.effects.others);
        }
        self.others.set_all(&*self.destination);
    }

    /// The time since the start.
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// When the loop has something to do without an event.
    fn wake_at(&self, now: Duration, next_changes: Duration, next_poll: Duration) -> Duration {
        if self.scan.is_active() {
            return now;
        }
        let mut at = self.scan.next;
        if now < next_changes {
            at = at.min(next_changes);
        }
        if self.needs_poll() {
            at = at.min(next_poll);
        }
        if self.retry_at > now {
            at = at.min(self.retry_at);
        }
        if let Some(due) = self.others.due() {
            at = at.min(due.max(self.retry_at));
        }
        self.flushes.iter().fold(at, |at, (due, _)| at.min(*due)).max(now)
    }

    fn control(&mut self, message: Control) {
        match message {
            Control::Status(request) => self.report(request),
            Control::Settings(settings) => self.new_settings = Some(settings),
            Control::ResourcesChanged => self.wake_waiting(),
            Control::Stop => {}
        }
    }

    /// Puts a file into the queue for its turn.
    fn enqueue(&mut self, index: Index) {
        if let Some(file) = self.table.get_mut(index)
            && matches!(file.stage, Stage::Copy { .. })
            && file.coding.is_none()
            && file.handle.metadata().is_ok_and(|metadata| metadata.len() != file.length)
        {
            // It grows by itself: whether it is a copy is decided anew.
            if let Stage::Copy { original } = std::mem::replace(&mut file.stage, Stage::New) {
                self.copies.remove(original, index);
            }
        }
        if let Some(file) = self.table.get_mut(index)
            && !file.is_queued
            && file.is_readable()
        {
            file.is_queued = true;
            self.ready.push_back(index);
        }
    }

    /// The size of the next batch: what is known to be unread, within bounds.
    fn wanted_bytes(&self) -> usize {
        /// The bytes of records in a batch beside their text, and room for a few more lines.
        const LEAST: usize = 64 << 10;
        const LOOKED_AT: usize = 1024;
        let unread: u64 =
            self.ready
                .iter()
                .take(LOOKED_AT)
                .filter_map(|index| self.table.get(*index))
                .map(|file| {
                    if file.coding.is_some() {
                        u64::MAX >> 8
                    } else {
                        file.length.saturating_sub(file.next())
                    }
                })
                .fold(0, u64::saturating_add);
        let unread = usize::try_from(unread).unwrap_or(usize::MAX);
        let most = self.batch_limit.min(self.destination.largest_batch());
        if self.needs_largest {
            return most;
        }
        unread.saturating_add(unread / 8).max(LEAST).min(most)
    }
}

/// How often files without a watch, and held ones, are looked at.
const POLL: Duration = Duration::from_secs(1);

async fn complete(appending: &mut Option<Appending>) -> append::Appended {
    match appending {
        Some(appending) => appending.await,
        None => std::future::pending().await,
    }
}

async fn filled<T>(slot: &mut Slot<T>) -> T {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn changed(watcher: Option<&Watcher>) {
    match watcher {
        Some(watcher) => watcher.ready().await,
        None => std::future::pending().await,
    }
}
