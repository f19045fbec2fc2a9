//! Bodies decoded and compressed, a piece at a time, with state that is used again for every request.

#[cfg(doc)]
use crate::decoding::END_SLACK;
use crate::decoding::{DamagedBody, YIELD_BYTES, steps};
use crate::egress_budget::{BudgetError, Charged};
use crate::otlp::Compression;
use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_wire::{gzip, snappy, zstd};

/// By how much a compressed body grows when its room is used up.
const GROWTH: usize = 64 << 10;

/// The decoders, and the encoder of what goes out.
pub(crate) struct Compressor {
    gzip: gzip::Decoder,
    zstd: zstd::Decoder,
    encoder: Encoder,
}

enum Encoder {
    None,
    Gzip(Box<gzip::Encoder>),
    Zstd(zstd::Encoder),
}

/// A level that does not exist.
#[derive(Debug, thiserror::Error)]
pub enum BadLevel {
    /// Of gzip.
    #[error(transparent)]
    Gzip(#[from] gzip::InvalidLevel),
    /// Of zstd.
    #[error(transparent)]
    Zstd(#[from] zstd::ZstdEncoderError),
}

impl Compressor {
    /// Its heap memory, in bytes.
    pub(crate) fn bytes(compression: Compression) -> usize {
        let encoder = match compression {
            Compression::None => 0,
            Compression::Gzip(_) => gzip::Encoder::BYTES,
            Compression::Zstd(level) => zstd::Encoder::bytes(level),
        };
        gzip::Decoder::BYTES + zstd::Decoder::BYTES + encoder
    }

    pub(crate) fn new(compression: Compression) -> Result<Compressor, BadLevel> {
        let encoder = match compression {
            Compression::None => Encoder::None,
            Compression::Gzip(level) => Encoder::Gzip(Box::new(gzip::Encoder::new(level)?)),
            Compression::Zstd(level) => Encoder::Zstd(zstd::Encoder::new(level)?),
        };
        // The source has checked every body, and this decoder does not need the window that a frame names.
        Ok(Compressor { gzip: gzip::Decoder::new(), zstd: zstd::Decoder::new(u64::MAX), encoder })
    }

    /// How requests go out.
    pub(crate) fn encoding(&self) -> Encoding {
        match self.encoder {
            Encoder::None => Encoding::Identity,
            Encoder::Gzip(_) => Encoding::Gzip,
            Encoder::Zstd(_) => Encoding::Zstd,
        }
    }

    /// Appends what `body` decodes to, for which there is room, and [`END_SLACK`] beyond.
    pub(crate) async fn decode(
        &mut self,
        encoding: Encoding,
        body: &[u8],
        out: &mut Window,
    ) -> Result<(), DamagedBody> {
        match encoding {
            Encoding::Identity => out.append(body).map_err(|_| DamagedBody),
            Encoding::Gzip => steps(&mut self.gzip, body, YIELD_BYTES, out).await,
            Encoding::Deflate => steps(&mut self.gzip.as_zlib(), body, YIELD_BYTES, out).await,
            // It decodes a frame whole or not at all.
            Encoding::Zstd => steps(&mut self.zstd, body, usize::MAX, out).await,
            Encoding::Snappy => {
                let len = snappy::decode(body, out.spare_mut()).map_err(|_| DamagedBody)?;
                out.advance(len);
                Ok(())
            }
        }
    }

    /// Appends `raw` compressed, making room as it is needed.
    pub(crate) async fn encode(&mut self, raw: &[u8], out: &mut Charged<Window>) -> Result<(), BudgetError> {
        self.begin(raw.len())?;
        for piece in raw.chunks(YIELD_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                let (read, written) = self.step(rest, out.spare_mut())?;
                out.advance(written);
                rest = rest.get(read..).unwrap_or_default();
                if !rest.is_empty() {
                    out.reserve(GROWTH).await?;
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
            out.reserve(GROWTH).await?;
        }
    }

    fn begin(&mut self, len: usize) -> Result<(), BudgetError> {
        match &mut self.encoder {
            Encoder::None => {}
            Encoder::Gzip(gzip) => gzip.reset(),
            Encoder::Zstd(zstd) => zstd.begin(Some(len as u64)).map_err(unwilling)?,
        }
        Ok(())
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), BudgetError> {
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

    fn finish(&mut self, output: &mut [u8]) -> Result<(usize, bool), BudgetError> {
        match &mut self.encoder {
            Encoder::None => Ok((0, true)),
            Encoder::Gzip(gzip) => Ok(gzip.finish(output)),
            Encoder::Zstd(zstd) => zstd.finish(output).map_err(unwilling),
        }
    }
}

/// The library refuses when memory has ended, and for nothing else that is done here.
fn unwilling(refused: zstd::ZstdEncoderError) -> BudgetError {
    tracing::warn!(%refused, "a request cannot be compressed now");
    BudgetError::WithoutTurn
}
