//! The way of encoded records to the journal.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate_admission::{Gate, Rejection, Size};
use tidegate_arena::{Arena, ChargeError, Share, Window};
use tidegate_http1::Shutdown;
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_ledger::{Counts, OpenRequest, Refusal, Signal as Booked, Source};

/// The way of a source to the gate: the gate, the memory, its books and its tenant. Clones are the same intake.
#[derive(Clone)]
pub struct LogIntake(Arc<Inner>);

struct Inner {
    gate: Gate,
    arena: Arena,
    books: Source,
    tenant: Option<Box<str>>,
    shutdown: Shutdown,
    max_batch: usize,
}

/// Encoded records: an `ExportLogsServiceRequest`, as `tidegate_wire::otlp::logs` writes it.
#[derive(Debug)]
pub struct LogBatch {
    /// Where they are. Its filled bytes include them.
    pub window: Window,
    /// Where in the window they begin.
    pub from: usize,
    /// How long they are, in bytes.
    pub len: usize,
    /// How many records there are.
    pub items: u32,
    /// The longest of them with its resource and scope, in bytes.
    pub largest_item: usize,
    /// The bytes in which they came, for the books.
    pub source_bytes: u64,
}

/// The source is to end: nothing more is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gateway is stopping")]
pub struct Stopping;

/// Why a batch was not accepted. Its memory is free again; a source keeps the raw bytes, or its offset, until a batch is
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    /// Not now: the same batch may be accepted after this time.
    #[error("the journal, a limit or the memory refuses the batch for now")]
    Retry(Duration),
    /// Never: with fewer or smaller records it may be. A single record is lost, and the source counts it with
    /// [`refuse`](LogIntake::refuse).
    #[error("the batch is larger than the sinks, the memory or a limit allow")]
    TooLarge,
    /// The gateway is stopping.
    #[error(transparent)]
    Stopping(#[from] Stopping),
}

impl LogIntake {
    /// The intake of the source with these `books`, whose records belong to `tenant`, or else to the default tenant. A
    /// batch has at most `max_batch` bytes. It ends when `shutdown` begins.
    pub fn new(
        (gate, arena): (Gate, Arena),
        books: Source,
        tenant: Option<&str>,
        max_batch: usize,
        shutdown: Shutdown,
    ) -> LogIntake {
        let tenant = tenant.map(Into::into);
        LogIntake(Arc::new(Inner { gate, arena, books, tenant, shutdown, max_batch }))
    }

    /// The same for records of another tenant.
    #[must_use]
    pub fn with_tenant(&self, tenant: &str) -> LogIntake {
        let Inner { gate, arena, books, shutdown, max_batch, .. } = &*self.0;
        let memory = (gate.clone(), arena.clone());
        LogIntake::new(memory, books.clone(), Some(tenant), *max_batch, shutdown.clone())
    }

    /// The signal to end. What was read is appended after it; nothing more is read.
    pub fn shutdown(&self) -> &Shutdown {
        &self.0.shutdown
    }

    /// The memory, for what a source holds beside windows.
    pub fn arena(&self) -> &Arena {
        &self.0.arena
    }

    /// The longest record, in bytes with its resource and scope, that is always accepted: beside it a batch may be as long
    /// as [`largest_batch`](Self::largest_batch). It changes with the sinks.
    #[must_use]
    pub fn largest_item(&self) -> usize {
        self.sizes().1
    }

    /// The longest batch, in bytes, that is always accepted, if no record in it is longer than
    /// [`largest_item`](Self::largest_item). It changes with the sinks.
    #[must_use]
    pub fn largest_batch(&self) -> usize {
        self.sizes().0
    }

    /// Memory to encode a batch in: `bytes`, or [`largest_batch`](Self::largest_batch) where that is less. Waits for it, and
    /// before that while the journal accepts nothing: so a source reads no more than it can give away.
    ///
    /// # Errors
    /// When the source is to end.
    pub async fn window(&self, bytes: usize) -> Result<Window, Stopping> {
        if self.0.shutdown.has_begun() {
            return Err(Stopping);
        }
        self.window_for_rest(bytes).await
    }

    /// As [`window`](Self::window), for what was read before the shutdown: that does not end the wait if it has begun already
    /// and there will be memory.
    ///
    /// # Errors
    /// When nothing more can be accepted.
    pub async fn window_for_rest(&self, bytes: usize) -> Result<Window, Stopping> {
        self.window_of(Share::Ingest, bytes).await
    }

    /// As [`window_for_rest`](Self::window_for_rest), for a source that holds the message which the records are read from: where
    /// memory is short, `least` bytes of the share that received bytes may wait for. A sink that borrows cannot hold all of that.
    ///
    /// # Errors
    /// When nothing more can be accepted.
    pub async fn window_beside_message(&self, least: usize, bytes: usize) -> Result<Window, Stopping> {
        let Inner { gate, arena, .. } = &*self.0;
        if gate.check_open().is_ok()
            && let Ok(window) = arena.try_window(Share::Ingest, bytes.min(self.largest_batch()).max(1))
        {
            return Ok(window);
        }
        self.window_of(Share::Decode, least).await
    }

    async fn window_of(&self, share: Share, bytes: usize) -> Result<Window, Stopping> {
        let Inner { gate, arena, shutdown, .. } = &*self.0;
        loop {
            if let Err(refused) = gate.check_open() {
                self.pause(refused.retry_after.unwrap_or(1)).await?;
                continue;
            }
            let bytes = bytes.min(self.largest_batch()).max(1);
            let window = match arena.try_window(share, bytes) {
                Err(ChargeError::Short) if shutdown.has_begun() => arena.window(share, bytes).await,
                // On the heap, since it is needed only where memory is short.
                Err(ChargeError::Short) => Box::pin(self.wait_for_window(share, bytes)).await?,
                taken => taken,
            };
            match window {
                Ok(window) => return Ok(window),
                // So many wait that this cannot, or the memory was planned anew in this moment.
                Err(_) => self.pause(gate.memory_delay()).await?,
            }
        }
    }

    async fn wait_for_window(
        &self,
        share: Share,
        bytes: usize,
    ) -> Result<Result<Window, ChargeError>, Stopping> {
        tokio::select! {
            biased;
            () = self.0.shutdown.begun() => Err(Stopping),
            window = self.0.arena.window(share, bytes) => Ok(window),
        }
    }

    /// Gives a batch to the gate, with the checkpoints that hold from then on. Both are durable when this returns `Ok`. Not cancelled by the [shutdown](Self::shutdown):
    /// what was read is still accepted.
    ///
    /// # Errors
    /// Why it was not accepted; the books have the reason. The memory is free again.
    pub async fn append(&self, batch: LogBatch, checkpoints: Checkpoints) -> Result<(), IntakeError> {
        let Inner { gate, books, tenant, .. } = &*self.0;
        let LogBatch { window, from, len, items, largest_item, source_bytes } = batch;
        if items == 0 {
            gate.set_checkpoints(&checkpoints);
            return Ok(());
        }
        let mut open = books.open();
        let permit = match gate.admit_local(tenant.as_deref(), len, &mut open) {
            Ok(permit) => permit,
            Err(refused) => return Err(refuse(open, &refused)),
        };
        let size = Size { kept: len, decoded: 0, item: largest_item };
        if let Err(refused) = gate.check_deliverable(Protocol::Otlp, Signal::Logs, size) {
            return Err(refuse(open, &refused));
        }
        let Ok(raw_len) = u32::try_from(len) else {
            open.refuse(Refusal::TooLarge);
            return Err(IntakeError::TooLarge);
        };
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items,
            raw_len,
            received_at_ns: now_ns(),
        };
        let counts = Counts::of(Booked::Logs, u64::from(items), source_bytes);
        let batch = Batch { meta, window, from, len, checkpoints };
        let appended = gate.append(&permit, open, counts, batch).await;
        appended.map_err(|refused| intake_error(&refused))
    }

    /// Counts items that are lost before they are in a batch: datagrams for which there was no room, malformed records,
    /// records that are too long.
    pub fn refuse(&self, reason: Refusal, items: u64) {
        if items > 0 {
            self.0.books.refuse_items(reason, items);
        }
    }

    /// Counts a refused connection.
    pub fn refuse_connection(&self) {
        self.0.books.open().refuse(Refusal::Connections);
    }

    /// Waits so many seconds.
    async fn pause(&self, seconds: u32) -> Result<(), Stopping> {
        let pause = Duration::from_secs(u64::from(seconds.max(1)));
        match tokio::time::timeout(pause, self.0.shutdown.begun()).await {
            Ok(()) => Err(Stopping),
            Err(_elapsed) => Ok(()),
        }
    }

    /// The longest batch, and the longest record in it.
    fn sizes(&self) -> (usize, usize) {
        let limit = self.0.gate.size_limit(Protocol::Otlp, Signal::Logs);
        // Half of what a record could have alone leaves as much for the others.
        let item = limit.largest_item().min(self.0.max_batch) / 2;
        let batch = limit.most.saturating_sub(limit.factor.saturating_mul(item));
        (batch.min(self.0.max_batch), item)
    }
}

/// Counts a refusal.
fn refuse(open: OpenRequest, refused: &Rejection) -> IntakeError {
    open.refuse(refused.reason);
    intake_error(refused)
}

fn intake_error(refused: &Rejection) -> IntakeError {
    match (refused.reason, refused.retry_after) {
        (Refusal::Shutdown, _) => Stopping.into(),
        (_, Some(seconds)) => IntakeError::Retry(Duration::from_secs(u64::from(seconds.max(1)))),
        (Refusal::TooLarge, None) => IntakeError::TooLarge,
        // Nothing that the records are the reason for: an operator has to mend it, and they are not lost meanwhile.
        (_, None) => IntakeError::Retry(PERMANENT),
    }
}

/// When a batch is tried again that was refused without a time.
const PERMANENT: Duration = Duration::from_secs(10);

/// Now, in nanoseconds since 1970; zero before.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
