//! Messages of a buffer into the journal, in as many batches as they need.

use crate::message::{ParseSettings, parse};
use crate::record::{Origin, RecordEncoder};
use std::time::SystemTime;
use tidegate_journal::Checkpoints;
use tidegate_ledger::Refusal;
use tidegate_log_intake::{IntakeError, LogBatch, LogIntake, Stopping};

/// The least memory that a batch is encoded in, in bytes.
const LEAST: usize = 16 << 10;
/// The most memory that a batch is encoded in, in bytes.
const MOST: usize = 512 << 10;

/// The messages in a buffer, in order. A clone begins where this one is.
pub(crate) trait Messages: Clone {
    /// The next message, and where it came from.
    fn next(&mut self) -> Option<(&[u8], Origin)>;
    /// How many bytes were used so far, as they were received.
    fn used(&self) -> usize;
    /// How many bytes are left.
    fn left(&self) -> usize;
}

/// Appends all messages. They are durable, or refused for good and counted, when this returns `Ok`.
///
/// # Errors
/// When the gateway stops. The rest is lost, and counted.
pub(crate) async fn deliver<M: Messages>(
    intake: &LogIntake,
    settings: &ParseSettings,
    mut messages: M,
) -> Result<(), Stopping> {
    let mut most_items = u32::MAX;
    // Headers become attributes, so short messages grow.
    let mut bytes = messages.left().saturating_mul(3).clamp(LEAST, MOST);
    loop {
        let mut next = messages.clone();
        if next.next().is_none() {
            return Ok(());
        }
        let mut window = match intake.window_for_rest(bytes).await {
            Ok(window) => window,
            // The shutdown began during the wait: from here on it does not end it.
            Err(Stopping) => match intake.window_for_rest(bytes).await {
                Ok(window) => window,
                Err(Stopping) => return Err(lose(intake, messages)),
            },
        };
        let size = window.spare();
        let mut after = messages.clone();
        let done = encode(window.spare_mut(), settings, &mut after, most_items);
        if done.items == 0 {
            if size < intake.largest_batch() && size >= bytes {
                bytes = size.saturating_mul(4);
                continue;
            }
            // No batch has room for it.
            intake.refuse(Refusal::TooLarge, 1);
            messages = next;
            continue;
        }
        window.advance(done.len);
        let source_bytes = (after.used() - messages.used()) as u64;
        let (items, largest_item) = (done.items, done.largest_item);
        let batch = LogBatch { window, from: 0, len: done.len, items, largest_item, source_bytes };
        match intake.append(batch, Checkpoints::default()).await {
            Ok(()) => {
                messages = after;
                most_items = u32::MAX;
                // More than fits: the next one may be larger.
                bytes = bytes.saturating_mul(2).min(MOST);
            }
            // Also after the shutdown: nobody sends again what was read, and the stop has a deadline.
            Err(IntakeError::Retry(after)) => tokio::time::sleep(after).await,
            Err(IntakeError::TooLarge) if items > 1 => most_items = items / 2,
            Err(IntakeError::TooLarge) => {
                intake.refuse(Refusal::TooLarge, 1);
                messages = after;
            }
            Err(IntakeError::Stopping(Stopping)) => return Err(lose(intake, messages)),
        }
    }
}

/// Counts messages that the stop leaves behind.
fn lose<M: Messages>(intake: &LogIntake, mut messages: M) -> Stopping {
    let mut count = 0;
    while messages.next().is_some() {
        count += 1;
    }
    intake.refuse(Refusal::Shutdown, count);
    Stopping
}

/// Encodes as many messages as there is room for.
fn encode<M: Messages>(
    out: &mut [u8],
    settings: &ParseSettings,
    messages: &mut M,
    most_items: u32,
) -> tidegate_wire::otlp::logs::EncodedLogs {
    let mut encoder = RecordEncoder::new(out);
    while encoder.items() < most_items {
        let before = messages.clone();
        let Some((bytes, origin)) = messages.next() else { break };
        let message = parse(bytes, settings, origin.now_ns);
        if encoder.add(&message, origin).is_err() {
            *messages = before;
            break;
        }
    }
    encoder.finish()
}

/// Now, in nanoseconds since 1970; zero before.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
