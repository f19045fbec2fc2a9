//! The gateway's journal as the destination of systemd's.

use crate::gateway::sources::checkpoint_keys;
use std::time::Duration;
use tidegate_arena::Window;
use tidegate_journal::{Checkpoints, Journal};
use tidegate_journald::{AppendError, Buffer, Destination, EncodedBatch};
use tidegate_ledger::Refusal;
use tidegate_log_intake::{IntakeError, LogBatch, LogIntake};

/// The first byte of the keys of its checkpoints.
const KEY: u8 = checkpoint_keys::JOURNALD;
/// The wait for a cursor that no checkpoint can hold: such a cursor is none of systemd's.
const UNUSABLE: Duration = Duration::from_secs(10);

/// Gives the batches of one input to the gate, each with the cursor of its last entry.
pub(super) struct JournalDestination {
    intake: LogIntake,
    journal: Journal,
    key: Box<[u8]>,
}

/// A window to encode a batch in.
pub(super) struct BatchWindow(Window);

impl Buffer for BatchWindow {
    fn bytes(&mut self) -> &mut [u8] {
        self.0.spare_mut()
    }
}

impl JournalDestination {
    /// The heap memory that it takes, in bytes.
    pub(super) const BYTES: usize = Checkpoints::MOST_BYTES + 1024;

    pub(super) fn new(intake: LogIntake, journal: Journal, input: &str) -> JournalDestination {
        let key = [&[KEY], input.as_bytes()].concat().into();
        JournalDestination { intake, journal, key }
    }

    /// The cursor behind which reading goes on.
    pub(super) fn cursor(&self) -> Option<String> {
        String::from_utf8(self.journal.checkpoint(&self.key)?.into()).ok()
    }
}

impl Destination for JournalDestination {
    type Buffer = BatchWindow;

    fn largest_batch(&self) -> usize {
        self.intake.largest_batch()
    }

    fn largest_item(&self) -> usize {
        self.intake.largest_item()
    }

    async fn buffer(&self, bytes: usize) -> Option<BatchWindow> {
        self.intake.window(bytes).await.ok().map(BatchWindow)
    }

    async fn append(&self, batch: EncodedBatch<BatchWindow>, cursor: &str) -> Result<(), AppendError> {
        let EncodedBatch { buffer: BatchWindow(mut window), len, items, largest_item, source_bytes } = batch;
        let mut checkpoints = Checkpoints::default();
        if checkpoints.set(&self.key, cursor.as_bytes()).is_err() {
            return Err(AppendError::Retry(UNUSABLE));
        }
        let from = window.len();
        window.advance(len);
        let batch = LogBatch { window, from, len, items, largest_item, source_bytes };
        // On the heap: it is the largest part of what the reader waits in.
        Box::pin(self.intake.append(batch, checkpoints)).await.map_err(|refused| match refused {
            IntakeError::Retry(wait) => AppendError::Retry(wait),
            IntakeError::TooLarge => AppendError::TooLarge,
            IntakeError::Stopping(_) => AppendError::Stopping,
        })
    }

    fn skip_to(&self, cursor: &str) {
        let mut checkpoints = Checkpoints::default();
        if checkpoints.set(&self.key, cursor.as_bytes()).is_ok() {
            self.journal.set_checkpoints(&checkpoints);
        }
    }

    fn refuse_too_large(&self, entries: u64) {
        self.intake.refuse(Refusal::TooLarge, entries);
    }

    async fn stopping(&self) {
        self.intake.shutdown().begun().await;
    }
}
