//! The source of derived metrics: appends them to the journal, with a checkpoint that says how much of a flush is there.

use crate::clock::now_ns;
use crate::egress_budget::{BorrowTurn, BudgetError, EgressBudget, LentCharge};
use tidegate_arena::Window;
use tidegate_derived_metrics::Aggregator;
use tidegate_journal::{AppendError, Batch, Checkpoints, Encoding, Journal, Meta, Protocol, Signal, Tenant};
use tidegate_ledger::{Counts, Ledger, Refusal, Signal as Booked, Source, TooMany};
use tidegate_wire::output::SliceOutput;
use xxhash_rust::xxh3::xxh3_64;

/// Its name in the books.
const SOURCE: &str = "derive";
/// The prefix of the keys of its checkpoints.
const CHECKPOINT: &[u8] = b"derive ";
/// The longest request that it appends, in bytes: every sink delivers those, with the least memory that a gateway starts with.
const LONGEST: usize = 192 << 10;

/// The source of one sink.
pub(super) struct MetricsSource {
    journal: Journal,
    books: Source,
    checkpoint: Vec<u8>,
}

/// A request that is to be appended.
pub(super) struct PieceToAppend {
    window: Window,
    charge: LentCharge,
    /// The turn in which memory was borrowed for it.
    _turn: BorrowTurn,
    meta: Meta,
    flush: u64,
    next: u32,
}

/// Outcome of an append.
pub(super) enum Appended {
    /// The journal has it, and what is left of the flush begins at series `next`.
    Durable { next: u32, bytes: u64 },
    /// As many appends wait as may.
    Busy,
    /// Not now.
    Refused { why: String },
    /// The journal is closed.
    Closed,
}

impl MetricsSource {
    pub(super) fn new(sink: &str, journal: &Journal, ledger: &Ledger) -> Result<MetricsSource, TooMany> {
        let name = xxh3_64(sink.as_bytes()).to_le_bytes();
        let checkpoint = CHECKPOINT.iter().copied().chain(name).collect();
        Ok(MetricsSource { journal: journal.clone(), books: ledger.source(SOURCE)?, checkpoint })
    }

    /// Whether the journal is known to take nothing now.
    pub(super) fn is_refused(&self) -> bool {
        self.journal.append_error().is_some()
    }

    /// The first record that is not received before a time.
    pub(super) fn first_after(&self, at_ms: u64) -> u64 {
        self.journal.advance_clock(at_ms.saturating_mul(1_000_000))
    }

    /// The number of the last flush of which anything was appended.
    pub(super) fn newest_flush(&self) -> Option<u64> {
        self.appended().map(|(flush, _)| flush)
    }

    /// The series of this flush, in its order, up to which it was appended.
    pub(super) fn appended_of(&self, flush: u64) -> u32 {
        self.appended().filter(|(known, _)| *known == flush).map_or(0, |(_, next)| next)
    }

    fn appended(&self) -> Option<(u64, u32)> {
        let value = self.journal.checkpoint(&self.checkpoint)?;
        let (flush, next) = value.split_first_chunk()?;
        Some((u64::from_le_bytes(*flush), u32::from_le_bytes(*next.first_chunk()?)))
    }

    /// The part of a flush that begins at series `from`; `None` where nothing is left.
    ///
    /// # Errors
    /// When there can be no memory for it.
    pub(super) async fn piece(
        &self,
        aggregator: &Aggregator,
        flush: u64,
        from: u32,
        room: &EgressBudget,
    ) -> Result<Option<PieceToAppend>, &'static str> {
        let mut from = from;
        let piece = loop {
            let Some(piece) = aggregator.piece(from, LONGEST) else { return Ok(None) };
            if piece.skipped > 0 {
                tracing::warn!(
                    series = piece.skipped,
                    "derived series are too long for a request, and are not appended"
                );
            }
            if piece.data_points > 0 {
                break piece;
            }
            from = piece.next;
        };
        let mut turn = BorrowTurn::none();
        let mut window = loop {
            match room.window(piece.bytes).await {
                Ok(window) => break window,
                Err(BudgetError::WithoutTurn) => turn = room.turn().await,
                Err(BudgetError::Never) => {
                    return Err("there is no memory for derived metrics; raise `memory`");
                }
            }
        };
        let mut out = SliceOutput::new(window.spare_mut());
        // It was asked how long it is.
        let _written = piece.write(&mut out);
        let len = out.len();
        window.advance(len);
        let meta = Meta {
            tenant: std::str::from_utf8(piece.tenant).ok().and_then(Tenant::new).unwrap_or(Tenant::NONE),
            signal: Signal::Metrics,
            protocol: Protocol::Otlp,
            encoding: Encoding::Identity,
            items: piece.data_points,
            raw_len: u32::try_from(len).unwrap_or(u32::MAX),
            received_at_ns: now_ns(),
        };
        let next = piece.next;
        let (window, charge) = window.into_parts();
        Ok(Some(PieceToAppend { window, charge, _turn: turn, meta, flush, next }))
    }

    /// Appends a piece. To be waited for to the end: until then the journal may have it, or not.
    pub(super) async fn append(&self, piece: PieceToAppend) -> Appended {
        let PieceToAppend { window, charge, _turn, meta, flush, next } = piece;
        let len = window.len();
        let value: Vec<u8> = flush.to_le_bytes().into_iter().chain(next.to_le_bytes()).collect();
        let mut checkpoints = Checkpoints::default();
        if let Err(error) = checkpoints.set(&self.checkpoint, &value) {
            return Appended::Refused { why: error.to_string() };
        }
        let counts = Counts::of(Booked::Metrics, meta.items.into(), len as u64);
        let submitted = self.books.open().submit(counts);
        let appended = self.journal.append(Batch { meta, window, from: 0, len, checkpoints }).await;
        drop(charge);
        match appended {
            Ok(_receipt) => {
                submitted.accept();
                Appended::Durable { next, bytes: len as u64 }
            }
            Err(AppendError::Closed) => {
                submitted.refuse(Refusal::Shutdown);
                Appended::Closed
            }
            Err(error) => {
                submitted.refuse(Refusal::Disk);
                if error == AppendError::Busy {
                    return Appended::Busy;
                }
                Appended::Refused { why: error.to_string() }
            }
        }
    }
}
