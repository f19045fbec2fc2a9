//! Translates a body to OTLP logs in exactly the memory that this takes.

use super::{InspectionError, Received, decode};
use crate::clock::now_ns;
use tidegate_admission::{DecodeBuffer, Gate, Rejection, Size, TranslationCharge};
use tidegate_arena::{Arena, Share};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger::{Counts, Refusal, Signal as Booked};
use tidegate_wire::otlp::{self, check};

/// A format of log records, which becomes an `ExportLogsServiceRequest`.
pub(crate) trait LogFormat {
    /// The counts of a translation beside its records.
    type Report;

    /// The room in which the OTLP of `raw` fits, while it is made and after.
    fn measure(&self, raw: &[u8]) -> Result<usize, Rejection>;

    /// Writes the OTLP to the start of `out`. Returns its length.
    fn translate(&self, raw: &[u8], out: &mut [u8]) -> Result<(usize, Self::Report), Rejection>;
}

/// A body as OTLP logs.
pub(crate) struct TranslatedLogs<R> {
    pub(crate) items: u32,
    pub(crate) report: R,
    raw_len: u32,
    /// The length in which it came.
    as_sent: usize,
    /// The tenant's account of it, until it is journalled.
    account: TranslationCharge,
}

/// The inputs of a translation.
pub(crate) struct LogTranslation<'a, F> {
    pub(crate) gate: &'a Gate,
    pub(crate) arena: &'a Arena,
    pub(crate) format: &'a F,
    /// How the body is compressed.
    pub(crate) encoding: Encoding,
    /// The most bytes of a body that the source takes, as it announces them.
    pub(crate) max_body: usize,
}

impl<F: LogFormat> LogTranslation<'_, F> {
    /// Makes the body OTLP, as it came or as it is decompressed into `room`: to at most `most` bytes. Holding it, and perhaps
    /// decode memory, this does not wait for more: it is translated to nowhere first, and so takes what it needs. Short
    /// lines become several times as long, so `account` charges the tenant for that.
    pub(crate) fn apply(
        &self,
        mut account: TranslationCharge,
        body: &mut Received,
        room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<TranslatedLogs<F::Report>, InspectionError> {
        let LogTranslation { gate, arena, format, encoding, max_body } = *self;
        let as_sent = body.range.len();
        let mut decoded = as_sent;
        let (len, report) = match room {
            None => {
                let raw = body.bytes();
                let needed = format.measure(raw)?.max(1);
                account.grow(gate, needed)?;
                let window = arena.try_window(Share::Ingest, needed);
                let held = body.window.charged().saturating_add(needed);
                let mut window =
                    window.map_err(|refused| gate.memory_rejection(refused, held, 0, raw.len() / 2))?;
                let (len, report) = format.translate(raw, window.spare_mut())?;
                *body = Received { range: 0..len, window };
                (len, report)
            }
            Some(room) => {
                decode::decode(gate, encoding, body, room, most)?;
                decoded = room.len();
                let needed = format.measure(room)?.max(1);
                // The received body is no longer needed, so its window is free.
                account.grow(gate, needed.saturating_sub(as_sent))?;
                let Received { window, range } = body;
                window.clear();
                let reserved = window.try_reserve(needed);
                reserved.map_err(|refused| {
                    gate.memory_rejection(refused, needed, room.charged(), room.len() / 2)
                })?;
                let (len, report) = format.translate(room, window.spare_mut())?;
                *range = 0..len;
                (len, report)
            }
        };
        body.window.advance(len);
        // The body as it came is gone, and its tenant charged for it still.
        account.shrink(body.window.charged().saturating_sub(as_sent));
        let counts = check(otlp::Signal::Logs, body.bytes()).map_err(Rejection::malformed)?;
        if counts.items > 0 {
            let size = Size { kept: len, decoded: 0, item: counts.largest_item };
            // Short lines become longer, so half of it may do, whatever the bound of what they become is.
            let shorter = |refused: Rejection| match refused.reason {
                Refusal::TooLarge => Rejection::too_large(decoded / 2),
                _ => refused,
            };
            gate.check_deliverable(Layout::Otlp, Signal::Logs, size).map_err(shorter)?;
        }
        match (u32::try_from(len), u32::try_from(counts.items)) {
            (Ok(raw_len), Ok(items)) => Ok(TranslatedLogs { items, report, raw_len, as_sent, account }),
            _ => Err(Rejection::too_large(max_body).into()),
        }
    }
}

impl<R> TranslatedLogs<R> {
    /// The batch for the journal, with its counts for the books. The charge is to be held until it is journalled.
    pub(crate) fn into_batch(self, body: Received) -> (Counts, Batch, TranslationCharge) {
        let counts = Counts::of(Booked::Logs, u64::from(self.items), self.as_sent as u64);
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Layout::Otlp,
            encoding: Encoding::Identity,
            items: self.items,
            raw_len: self.raw_len,
            received_at_ns: now_ns(),
        };
        let Received { window, range } = body;
        let checkpoints = Checkpoints::default();
        (counts, Batch { meta, window, from: range.start, len: range.len(), checkpoints }, self.account)
    }
}
