//! From a body as it came to protobuf, in memory that is paid for step by step and never waited for.

use super::Received;
use std::cell::RefCell;
use tidegate_admission::{Gate, Refused, Room};
use tidegate_arena::Refused as NoMemory;
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;
use tidegate_pool::{Failed, Pool};
use tidegate_wire::coding::{self, Decode as _, Grow, Stopped};
use tidegate_wire::otlp::{DEEP_BYTES, Signal, json};
use tidegate_wire::{gzip, zstd};

/// Bodies that are or become larger than this are checked on a thread of their own.
pub(crate) const LARGE: usize = 4 << 20;
/// What a thread keeps between bodies, and needs for a moment for those that nest deep, in bytes.
pub(super) const BYTES: usize = gzip::Decoder::BYTES + zstd::Decoder::BYTES + DEEP_BYTES;

thread_local! {
    /// Each thread's decoders, made when they are first needed.
    static GZIP: RefCell<gzip::Decoder> = RefCell::new(gzip::Decoder::new());
    static ZSTD: RefCell<zstd::Decoder> = RefCell::new(zstd::Decoder::new(zstd::Decoder::WINDOW));
}

/// Why a body was not checked to its end.
pub(crate) enum Unfinished {
    Refused(Refused),
    /// It decompresses to more than was allowed here.
    Larger,
}

impl From<Refused> for Unfinished {
    fn from(refused: Refused) -> Unfinished {
        Unfinished::Refused(refused)
    }
}

/// Has the pool look at a body that may decompress to `most` bytes: large ones would hold up the other connections
/// of their worker for milliseconds.
///
/// # Errors
/// What `look` refuses, and what keeps the pool from looking.
pub(crate) fn in_pool<T: Send + 'static>(
    pool: &Pool,
    gate: &Gate,
    most: usize,
    look: impl FnOnce() -> Result<T, Unfinished> + Send + 'static,
) -> impl Future<Output = Result<T, Refused>> + Send {
    // On the heap before it is awaited, so that a connection's task has no room for what only large bodies need.
    let looking = Box::pin(pool.run(look));
    async move {
        match looking.await {
            Ok(Ok(looked)) => Ok(looked),
            Ok(Err(Unfinished::Refused(refused))) => Err(refused),
            Ok(Err(Unfinished::Larger)) => Err(Refused::too_large(most)),
            Err(failed) => Err(unseen(failed).retry_after(gate.memory_delay())),
        }
    }
}

/// Why the pool did not look at a body.
fn unseen(failed: Failed) -> Refused {
    match failed {
        Failed::Stopped => Refused::new(Refusal::Shutdown, "the gateway is stopping; send it again\n"),
        Failed::Panicked(_) => {
            Refused::new(Refusal::Internal, "the gateway failed while it looked at the body\n")
        }
    }
}

/// How long `body` says that it will be when decompressed.
pub(crate) fn expected(encoding: Encoding, body: &[u8]) -> usize {
    match encoding {
        Encoding::Gzip => GZIP.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Zstd => ZSTD.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Deflate => GZIP.with_borrow_mut(|decoder| decoder.as_zlib().expected_len(body)),
        Encoding::Identity | Encoding::Snappy => body.len(),
    }
}

/// Decompresses what was received into `room`, from its start, to at most `most` bytes.
pub(crate) fn decode(
    gate: &Gate,
    encoding: Encoding,
    received: &Received,
    room: &mut Room,
    most: usize,
) -> Result<(), Unfinished> {
    room.clear();
    let (body, beside) = (received.bytes(), received.window.charged());
    let mut paid = Paid { gate, room, most, beside, refused: None };
    let refused = match encoding {
        Encoding::Gzip => GZIP.with_borrow_mut(|decoder| stopped(coding::decode(decoder, body, &mut paid))),
        Encoding::Zstd => ZSTD.with_borrow_mut(|decoder| stopped(coding::decode(decoder, body, &mut paid))),
        Encoding::Deflate => {
            GZIP.with_borrow_mut(|decoder| stopped(coding::decode(&mut decoder.as_zlib(), body, &mut paid)))
        }
        Encoding::Identity | Encoding::Snappy => None,
    };
    match refused {
        None => Ok(()),
        Some(Stopped::Fault(refused)) => Err(refused.into()),
        Some(Stopped::Room) => Err(paid.refused.map_or(Unfinished::Larger, Unfinished::Refused)),
    }
}

/// What a decoder came to, its fault in words.
fn stopped<F: std::error::Error>(outcome: Result<usize, Stopped<F>>) -> Option<Stopped<Refused>> {
    match outcome {
        Ok(_) => None,
        Err(Stopped::Fault(fault)) => Some(Stopped::Fault(Refused::malformed(fault))),
        Err(Stopped::Room) => Some(Stopped::Room),
    }
}

/// A room as a decoder sees it: it grows while memory is free, up to a limit.
struct Paid<'a> {
    gate: &'a Gate,
    room: &'a mut Room,
    most: usize,
    /// What the request holds of the bodies' share.
    beside: usize,
    /// What stopped it, if it was the memory.
    refused: Option<Refused>,
}

impl Grow for Paid<'_> {
    fn spare(&mut self) -> &mut [u8] {
        let left = self.most.saturating_sub(self.room.len());
        let spare = self.room.spare_mut();
        let len = spare.len().min(left);
        spare.get_mut(..len).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.room.advance(bytes);
    }

    fn grow(&mut self, more: usize) -> bool {
        let left = self.most.saturating_sub(self.room.len());
        let spare = self.room.spare();
        if spare >= left {
            return false;
        }
        // Holding decode memory, nobody waits for more: that is why nobody waits for ever.
        self.room.grow_beside(self.gate, self.beside, spare.saturating_add(more).min(left)).unwrap_or_else(
            |refused| {
                self.refused = Some(refused);
                false
            },
        )
    }
}

/// What a request holds of the bodies' share while its JSON is translated, and of the share to decode in.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    pub(super) ingest: usize,
    pub(super) decode: usize,
}

/// Reserves the memory in which `json` is translated into protobuf.
///
/// Holding the body, and perhaps decode memory, it does not wait for that. Where as much as JSON can become is not
/// free, or would be much, it is translated to nowhere first, and then only what it takes is asked for.
pub(super) fn reserve(
    gate: &Gate,
    signal: Signal,
    json: &[u8],
    beside: Beside,
    mut reserve: impl FnMut(usize) -> Result<(), NoMemory>,
) -> Result<(), Refused> {
    if json.len() <= LARGE && reserve(json::max_len(json)).is_ok() {
        return Ok(());
    }
    let needed = json::measure(signal, json).map_err(Refused::malformed)?;
    let ingest = beside.ingest.saturating_add(needed);
    reserve(needed.max(1)).map_err(|refused| gate.short_of(refused, ingest, beside.decode, json.len() / 2))
}
