//! The parts that sources that follow files share: their thread, and the way from it to the gate.

use super::running::{LARGEST_BATCH, ReadyChange, RunningSource};
use crate::Failure;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_arena::{Reservation, Window};
use tidegate_config::Config;
use tidegate_console::FILES_BYTES;
use tidegate_journal::{Checkpoints, Journal};
use tidegate_ledger::Refusal;
use tidegate_log_intake::{IntakeError, LogBatch, LogIntake};
use tidegate_start_offsets::StartOffsets;
use tidegate_tail::{
    AppendError, Buffer, CheckpointChange, Control, Destination, EncodedBatch, FileId, FileResource,
    Settings, StartOffset, Tailer,
};
use tokio::sync::mpsc;

/// Messages that may wait for the thread.
const MESSAGES: usize = 16;

/// A source that follows files, on a thread of its own.
pub(super) struct FollowingSource {
    control: mpsc::Sender<Control>,
    thread: JoinHandle<()>,
    ended: std_mpsc::Receiver<()>,
    changes: Option<ReaderChanges>,
}

/// How the settings of a reader follow the configuration while it runs.
#[derive(Clone, Copy)]
pub(super) struct ReaderChanges {
    /// Whether they differ between two configurations.
    pub(super) differ: fn(&Config, &Config) -> bool,
    /// Those of a configuration.
    pub(super) settings: fn(&Config) -> Result<Settings, Failure>,
}

impl FollowingSource {
    /// Starts the thread, which makes the tailer.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start<D: Destination, R: FileResource>(
        name: &'static str,
        make: impl FnOnce() -> Tailer<D, R> + Send + 'static,
    ) -> Result<FollowingSource, Failure> {
        let failed = |error: std::io::Error| Failure(format!("starting the source `{name}`: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (control, messages) = mpsc::channel(MESSAGES);
        let (ends, ended) = std_mpsc::sync_channel(1);
        let run = move || {
            runtime.block_on(Box::pin(make().run(messages)));
            drop(ends);
        };
        let thread = std::thread::Builder::new().name(format!("source-{name}")).spawn(run).map_err(failed)?;
        Ok(FollowingSource { control, thread, ended, changes: None })
    }

    /// The same, with settings that can change while it runs.
    pub(super) fn changing(self, changes: ReaderChanges) -> FollowingSource {
        FollowingSource { changes: Some(changes), ..self }
    }

    /// Messages to the reader, for as long as the source runs.
    pub(super) fn control(&self) -> mpsc::WeakSender<Control> {
        self.control.downgrade()
    }
}

impl RunningSource for FollowingSource {
    fn is_finished(&self) -> Option<String> {
        self.thread.is_finished().then(|| "the reader of files".to_owned())
    }

    fn change(&self, old: &Config, new: &Config) -> Result<Option<ReadyChange>, Failure> {
        let Some(changes) = self.changes.filter(|changes| (changes.differ)(old, new)) else {
            return Ok(None);
        };
        let settings = Box::new((changes.settings)(new)?);
        let permit = self.control.clone().try_reserve_owned().map_err(|_| {
            Failure::from("the reader of files has too much to do for a change of its inputs; try again")
        })?;
        Ok(Some(Box::new(move || drop(permit.send(Control::Settings(settings))))))
    }

    fn follower(&self) -> Option<&mpsc::Sender<Control>> {
        Some(&self.control)
    }

    fn stop(self: Box<Self>, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        // With a full queue the end of the channel stops it.
        let _ = self.control.try_send(Control::Stop);
        drop(self.control);
        let has_ended =
            matches!(self.ended.recv_timeout(left), Err(std_mpsc::RecvTimeoutError::Disconnected));
        has_ended && self.thread.join().is_ok()
    }
}

/// The offsets that another program has read files to, if they were imported into the data folder.
///
/// # Errors
/// When they cannot be read.
pub(super) fn start_offsets(config: &Config, name: &str) -> Result<Option<StartOffset>, Failure> {
    let offsets = StartOffsets::read(&config.data).map_err(|error| {
        Failure(format!("starting the source `{name}`: {error}; import the checkpoints again"))
    })?;
    if offsets.is_empty() {
        return Ok(None);
    }
    let find = move |path: &Path, id: FileId, first: &[u8]| offsets.find(path, id.device, id.inode, first);
    Ok(Some(StartOffset(Arc::new(find))))
}

/// The memory that a reader needs beside its own: for these offsets, if there are any, and to show its files.
pub(super) fn declared(config: &Config, owner: &'static str) -> impl Iterator<Item = Reservation> {
    let line =
        move |what, bytes: usize| Reservation { owner, what, count: 1, each: bytes as u64, setting: None };
    let offsets = StartOffsets::read(&config.data).unwrap_or_default();
    let offsets = (!offsets.is_empty())
        .then(|| line("start offsets of another program, until the first listing", offsets.bytes()));
    std::iter::once(line("the list of its files being shown", FILES_BYTES)).chain(offsets)
}

/// The gate, and the checkpoints of the journal behind it.
pub(super) struct IntakeDestination {
    intake: LogIntake,
    journal: Journal,
}

impl IntakeDestination {
    pub(super) fn new(intake: LogIntake, journal: Journal) -> IntakeDestination {
        IntakeDestination { intake, journal }
    }
}

/// Memory of the arena.
pub(super) struct WindowBuffer(Window);

impl Buffer for WindowBuffer {
    fn bytes(&mut self) -> &mut [u8] {
        self.0.spare_mut()
    }
}

impl Destination for IntakeDestination {
    type Buffer = WindowBuffer;

    fn largest_batch(&self) -> usize {
        self.intake.largest_batch().min(LARGEST_BATCH as usize)
    }

    fn largest_item(&self) -> usize {
        self.intake.largest_item()
    }

    async fn buffer(&self, bytes: usize) -> Option<WindowBuffer> {
        self.intake.window(bytes).await.ok().map(WindowBuffer)
    }

    async fn append(
        &self,
        batch: EncodedBatch<WindowBuffer>,
        changes: &[CheckpointChange],
    ) -> Result<(), AppendError> {
        let EncodedBatch { buffer: WindowBuffer(mut window), len, items, largest_item, source_bytes } = batch;
        window.advance(len);
        let batch = LogBatch { window, from: 0, len, items, largest_item, source_bytes };
        self.intake.append(batch, checkpoints(changes)).await.map_err(|error| match error {
            IntakeError::Retry(after) => AppendError::Retry(after),
            IntakeError::TooLarge => AppendError::TooLarge,
            IntakeError::Stopping(_) => AppendError::Stopping,
        })
    }

    fn set(&self, changes: &[CheckpointChange]) {
        self.journal.set_checkpoints(&checkpoints(changes));
    }

    fn checkpoints(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.journal.each_checkpoint(each);
    }

    fn count_too_large(&self) {
        self.intake.refuse(Refusal::TooLarge, 1);
    }
}

/// The changes as the journal has them. The reader never gives more than fit.
fn checkpoints(changes: &[CheckpointChange]) -> Checkpoints {
    let mut checkpoints = Checkpoints::default();
    for change in changes {
        let result = match &change.value {
            Some(value) => checkpoints.set(&change.key, value),
            None => checkpoints.remove(&change.key),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "cannot keep how far a file is read");
        }
    }
    checkpoints
}
