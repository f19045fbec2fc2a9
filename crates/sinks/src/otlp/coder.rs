//! Bodies decoded and compressed, a piece at a time, with state that is used again for every request.

use super::settings::Compression;
use crate::room::{Held, NoRoom};
use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_wire::coding::{Decode, Wants};
use tidegate_wire::{gzip, snappy, zstd};

/// The most bytes that are decoded or compressed before others get their turn: about a millisecond.
const PIECE: usize = 32 << 10;
/// By how much a compressed body grows when its room is used up.
const GROWTH: usize = 64 << 10;
/// Room beyond what a body decodes to, so that a decoder can see its end.
pub(super) const SLACK: usize = 64;

/// The decoders, and the encoder of what goes out.
pub(super) struct Coder {
    gzip: gzip::Decoder,
    zstd: zstd::Decoder,
    encoder: Encoder,
}

enum Encoder {
    None,
    Gzip(Box<gzip::Encoder>),
    Zstd(zstd::Encoder),
}

/// A body is not what its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// A level that does not exist.
#[derive(Debug, thiserror::Error)]
pub enum BadLevel {
    /// Of gzip.
    #[error(transparent)]
    Gzip(#[from] gzip::BadLevel),
    /// Of zstd.
    #[error(transparent)]
    Zstd(#[from] zstd::Refused),
}

impl Coder {
    /// What all of it takes on the heap, in bytes.
    pub(super) fn bytes(compression: Compression) -> usize {
        let encoder = match compression {
            Compression::None => 0,
            Compression::Gzip(_) => gzip::Encoder::BYTES,
            Compression::Zstd(level) => zstd::Encoder::bytes(level),
        };
        gzip::Decoder::BYTES + zstd::Decoder::BYTES + encoder
    }

    pub(super) fn new(compression: Compression) -> Result<Coder, BadLevel> {
        let encoder = match compression {
            Compression::None => Encoder::None,
            Compression::Gzip(level) => Encoder::Gzip(Box::new(gzip::Encoder::new(level)?)),
            Compression::Zstd(level) => Encoder::Zstd(zstd::Encoder::new(level)?),
        };
        // The source has checked every body, and this decoder does not need the window that a frame names.
        Ok(Coder { gzip: gzip::Decoder::new(), zstd: zstd::Decoder::new(u64::MAX), encoder })
    }

    /// How requests go out.
    pub(super) fn encoding(&self) -> Encoding {
        match self.encoder {
            Encoder::None => Encoding::Identity,
            Encoder::Gzip(_) => Encoding::Gzip,
            Encoder::Zstd(_) => Encoding::Zstd,
        }
    }

    /// Appends what `body` decodes to, for which there is room, and [`SLACK`] beyond.
    pub(super) async fn decode(
        &mut self,
        encoding: Encoding,
        body: &[u8],
        out: &mut Window,
    ) -> Result<(), Damaged> {
        match encoding {
            Encoding::Identity => out.append(body).map_err(|_| Damaged),
            Encoding::Gzip => steps(&mut self.gzip, body, PIECE, out).await,
            // It decodes a frame whole or not at all.
            Encoding::Zstd => steps(&mut self.zstd, body, usize::MAX, out).await,
            Encoding::Snappy => {
                let len = snappy::decode(body, out.spare_mut()).map_err(|_| Damaged)?;
                out.advance(len);
                Ok(())
            }
        }
    }

    /// Appends `raw` compressed, making room as it is needed.
    pub(super) async fn encode(&mut self, raw: &[u8], out: &mut Held<Window>) -> Result<(), NoRoom> {
        self.begin(raw.len())?;
        for piece in raw.chunks(PIECE) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (read, written) = self.step(rest, out.spare_mut())?;
                out.advance(written);
                rest = rest.get(read..).unwrap_or_default();
                if !rest.is_empty() {
                    out.try_reserve(GROWTH)?;
                }
            }
            tokio::task::yield_now().await;
        }
        loop {
            let (written, ended) = self.finish(out.spare_mut())?;
            out.advance(written);
            if ended {
                return Ok(());
            }
            out.try_reserve(GROWTH)?;
        }
    }

    fn begin(&mut self, len: usize) -> Result<(), NoRoom> {
        match &mut self.encoder {
            Encoder::None => {}
            Encoder::Gzip(gzip) => gzip.reset(),
            Encoder::Zstd(zstd) => zstd.begin(Some(len as u64)).map_err(unwilling)?,
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), NoRoom> {
        match &mut self.encoder {
            Encoder::None => {
                let len = input.len().min(output.len());
                output.iter_mut().zip(input).for_each(|(to, from)| *to = *from);
                Ok((len, len))
            }
            Encoder::Gzip(gzip) => Ok(gzip.step(input, output)),
            Encoder::Zstd(zstd) => zstd.step(input, output).map_err(unwilling),
        }
    }

    fn finish(&mut self, output: &mut [u8]) -> Result<(usize, bool), NoRoom> {
        match &mut self.encoder {
            Encoder::None => Ok((0, true)),
            Encoder::Gzip(gzip) => Ok(gzip.finish(output)),
            Encoder::Zstd(zstd) => zstd.finish(output).map_err(unwilling),
        }
    }
}

/// The library refuses when memory has ended, and for nothing else that is done here.
fn unwilling(refused: zstd::Refused) -> NoRoom {
    tracing::warn!(%refused, "a request cannot be compressed now");
    NoRoom::WithoutTurn
}

/// Decodes `body` in steps of at most `most` bytes.
async fn steps(decoder: &mut impl Decode, body: &[u8], most: usize, out: &mut Window) -> Result<(), Damaged> {
    decoder.reset();
    let (mut rest, mut idle) = (body, 0);
    loop {
        let room = out.spare_mut();
        let end = most.min(room.len());
        let progress = decoder.step(rest, room.get_mut(..end).unwrap_or_default()).map_err(|_| Damaged)?;
        out.advance(progress.written);
        rest = rest.get(progress.read..).unwrap_or_default();
        idle = if progress.read + progress.written > 0 { 0 } else { idle + 1 };
        match progress.wants {
            Wants::Nothing if rest.is_empty() => return Ok(()),
            Wants::Input => return Err(Damaged),
            // It asks for what it guesses, and does with what there is; there is as much as the record says.
            _ if idle > 2 => return Err(Damaged),
            _ => {}
        }
        tokio::task::yield_now().await;
    }
}
