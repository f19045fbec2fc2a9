//! Where batches go, with the checkpoints that they carry.

use crate::batch::EncodedBatch;
use std::time::Duration;

/// Takes batches of log records and keeps checkpoints.
pub trait Destination: 'static {
    /// Memory to encode a batch in.
    type Buffer: Buffer;

    /// The longest batch that is accepted, in bytes.
    fn largest_batch(&self) -> usize;

    /// The longest record that is accepted, in bytes, with its resource and scope.
    fn largest_item(&self) -> usize;

    /// Memory for a batch of `bytes`, as soon as there is; `None`: reading is to end.
    fn buffer(&self, bytes: usize) -> impl Future<Output = Option<Self::Buffer>>;

    /// Accepts a batch with the changes of checkpoints that hold from then on. Both are durable when this returns `Ok`.
    fn append(
        &self,
        batch: EncodedBatch<Self::Buffer>,
        changes: &[CheckpointChange],
    ) -> impl Future<Output = Result<(), AppendError>>;

    /// Changes checkpoints without records: durable within about a second.
    fn set(&self, changes: &[CheckpointChange]);

    /// Shows `each` the key and value of every checkpoint.
    fn checkpoints(&self, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Counts a record that is larger than the destination takes, and so is lost.
    fn count_too_large(&self);
}

/// Memory for one batch.
pub trait Buffer {
    /// The bytes to encode into.
    fn bytes(&mut self) -> &mut [u8];
}

/// A new value for a checkpoint, or its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointChange {
    /// Its key: at most 32 bytes.
    pub key: Vec<u8>,
    /// Its value, at most 255 bytes; `None` removes it.
    pub value: Option<Vec<u8>>,
}

impl CheckpointChange {
    /// The bytes that all changes of a batch may take: what the note of a journal's record holds.
    pub(crate) const MOST_BYTES: usize = 2048 - 1;

    /// The bytes that it takes in that note.
    pub(crate) fn bytes(&self) -> usize {
        1 + self.key.len() + self.value.as_ref().map_or(0, |value| 1 + value.len())
    }
}

/// Why a batch was not accepted. Its lines are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Not now: try again after this time.
    #[error("the destination accepts nothing for now")]
    Retry(Duration),
    /// Never: fewer records may be accepted.
    #[error("the batch is larger than the destination takes")]
    TooLarge,
    /// Reading is to end.
    #[error("the destination is stopping")]
    Stopping,
}
