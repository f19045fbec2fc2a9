//! Where records go: the gateway's journal, or a test's memory.

use std::time::Duration;

/// Takes batches of records and remembers how far the journal was read.
pub trait Destination: Send + Sync + 'static {
    /// Memory to encode a batch in.
    type Buffer: Buffer;

    /// The longest batch that is accepted, in bytes.
    fn largest_batch(&self) -> usize;

    /// The longest record that is accepted, in bytes, with its resource and scope.
    fn largest_item(&self) -> usize;

    /// Memory for a batch of `bytes`, as soon as there is; `None`: reading is to end.
    fn buffer(&self, bytes: usize) -> impl Future<Output = Option<Self::Buffer>> + Send;

    /// Accepts a batch, and `cursor` as that of the last entry in it. Both are durable when this returns `Ok`.
    fn append(
        &self,
        batch: EncodedBatch<Self::Buffer>,
        cursor: &str,
    ) -> impl Future<Output = Result<(), AppendError>> + Send;

    /// Remembers a position without a record, for entries that were left out, or before the first: durable within about a second.
    fn skip_to(&self, position: &str);

    /// Counts entries that are longer than any sink takes.
    fn refuse_too_large(&self, entries: u64);

    /// Waits until reading is to end.
    fn stopping(&self) -> impl Future<Output = ()> + Send;
}

/// Memory to encode a batch in.
pub trait Buffer: Send {
    /// The bytes to encode into.
    fn bytes(&mut self) -> &mut [u8];
}

/// An encoded `ExportLogsServiceRequest`, from the beginning of its buffer.
#[derive(Debug)]
pub struct EncodedBatch<B> {
    /// Its memory.
    pub buffer: B,
    /// Its length in bytes.
    pub len: usize,
    /// Its records.
    pub items: u32,
    /// The longest of them with its resource and scope, in bytes.
    pub largest_item: usize,
    /// The bytes of the export format that it comes from.
    pub source_bytes: u64,
}

/// Why a batch was not accepted. Its entries are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Not now.
    #[error("the batch is refused for now")]
    Retry(Duration),
    /// With fewer records it may be; a single one never.
    #[error("the batch is too large")]
    TooLarge,
    /// Reading is to end.
    #[error("reading is to end")]
    Stopping,
}
