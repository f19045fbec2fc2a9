//! From a body as it came to protobuf, in memory that is paid for step by step and never waited for.

use std::cell::RefCell;
use tidegate_admission::{Gate, Refused};
use tidegate_arena::{Arena, Refused as NoMemory, Share, Window};
use tidegate_journal::Encoding;
use tidegate_wire::coding::{self, Decode as _, Grow, Stopped};
use tidegate_wire::otlp::{Signal, json};
use tidegate_wire::{gzip, zstd};

/// Bodies that are or become larger than this are checked on a thread of their own.
pub(crate) const LARGE: usize = 4 << 20;
/// What a thread keeps between bodies, in bytes.
pub(super) const BYTES: usize = gzip::Decoder::BYTES + zstd::Decoder::BYTES;

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

/// How long `body` says that it will be when decompressed.
pub(crate) fn expected(encoding: Encoding, body: &[u8]) -> usize {
    match encoding {
        Encoding::Gzip => GZIP.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Zstd => ZSTD.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Deflate => GZIP.with_borrow_mut(|decoder| decoder.as_zlib().expected_len(body)),
        Encoding::Identity | Encoding::Snappy => body.len(),
    }
}

/// Decompresses `body` into `room`, from its start, to at most `most` bytes.
pub(crate) fn decode(
    gate: &Gate,
    encoding: Encoding,
    body: &[u8],
    room: &mut Window,
    most: usize,
) -> Result<(), Unfinished> {
    room.clear();
    let mut paid = Paid { window: room, most, short: false };
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
        Some(Stopped::Room) if paid.short => Err(gate.no_memory().into()),
        Some(Stopped::Room) => Err(Unfinished::Larger),
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

/// A window as a decoder sees it: it grows while memory is free, up to a limit.
struct Paid<'a> {
    window: &'a mut Window,
    most: usize,
    /// Whether it was memory that stopped it.
    short: bool,
}

impl Grow for Paid<'_> {
    fn spare(&mut self) -> &mut [u8] {
        let left = self.most.saturating_sub(self.window.len());
        let spare = self.window.spare_mut();
        let len = spare.len().min(left);
        spare.get_mut(..len).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.window.advance(bytes);
    }

    fn grow(&mut self, more: usize) -> bool {
        let left = self.most.saturating_sub(self.window.len());
        let spare = self.window.spare();
        if spare >= left {
            return false;
        }
        // Holding decode memory, nobody waits for more: that is why nobody waits for ever.
        match self.window.try_reserve(spare.saturating_add(more).min(left)) {
            Ok(()) => true,
            Err(NoMemory::Never { .. }) => false,
            Err(NoMemory::Short | NoMemory::Crowded) => {
                self.short = true;
                false
            }
        }
    }
}

/// Translates `json` into protobuf, in a window that is to replace the body.
///
/// Holding the body, and perhaps decode memory, it does not wait for that window.
pub(super) fn translate(
    arena: &Arena,
    gate: &Gate,
    signal: Signal,
    json: &[u8],
) -> Result<Window, Unfinished> {
    let room = json::max_len(json).min(arena.window_len());
    let mut window = arena.try_window(Share::Ingest, room).map_err(|refused| match refused {
        NoMemory::Never { .. } => Refused::too_large(json.len() / 2),
        NoMemory::Short | NoMemory::Crowded => gate.no_memory(),
    })?;
    let len = json::translate(signal, json, window.spare_mut()).map_err(Refused::malformed)?;
    window.advance(len);
    Ok(window)
}
