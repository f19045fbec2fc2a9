//! Compressed bodies.

use std::io::{self, Write};

/// How bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// Not at all.
    Identity,
    /// gzip, level 6, as the SDKs and the Collector have it.
    Gzip,
    /// zstd, level 3.
    Zstd,
}

impl ContentCoding {
    /// The name in headers.
    pub fn name(self) -> &'static str {
        match self {
            ContentCoding::Identity => "identity",
            ContentCoding::Gzip => "gzip",
            ContentCoding::Zstd => "zstd",
        }
    }

    pub(super) fn of_name(name: Option<&str>) -> Option<ContentCoding> {
        match name {
            None | Some("identity") => Some(ContentCoding::Identity),
            Some("gzip") => Some(ContentCoding::Gzip),
            Some("zstd") => Some(ContentCoding::Zstd),
            Some(_) => None,
        }
    }

    /// Compresses a body.
    ///
    /// # Errors
    /// When the library fails, which it has no reason to.
    pub fn encode(self, raw: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            ContentCoding::Identity => Ok(raw.to_vec()),
            ContentCoding::Gzip => {
                let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                out.write_all(raw)?;
                out.finish()
            }
            ContentCoding::Zstd => {
                let mut out = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
                zstd_safe::compress(&mut out, raw, 3)
                    .map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
                Ok(out)
            }
        }
    }

    /// Decompresses a body of any number of members or frames, up to `limit` bytes.
    ///
    /// # Errors
    /// When it is not what it is said to be, or longer.
    pub fn decode(self, body: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        let mut bounded = |from: &mut dyn io::Read| -> io::Result<()> {
            let read = io::copy(&mut io::Read::take(from, limit as u64 + 1), &mut raw)?;
            if read > limit as u64 { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
        };
        match self {
            ContentCoding::Identity => bounded(&mut &*body)?,
            ContentCoding::Gzip => bounded(&mut flate2::read::MultiGzDecoder::new(body))?,
            ContentCoding::Zstd => {
                bounded(&mut ZstdFrames { context: zstd_safe::DCtx::create(), rest: body, inside: false })?
            }
        }
        Ok(raw)
    }
}

/// Reads zstd frames, one after the other.
struct ZstdFrames<'a> {
    context: zstd_safe::DCtx<'static>,
    rest: &'a [u8],
    /// A frame was begun and has not ended.
    inside: bool,
}

impl io::Read for ZstdFrames<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut out = zstd_safe::OutBuffer::around(to);
        while self.inside || !self.rest.is_empty() {
            let ended = self.rest.is_empty();
            let mut input = zstd_safe::InBuffer::around(self.rest);
            let step = self.context.decompress_stream(&mut out, &mut input);
            self.inside = step.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))? > 0;
            self.rest = self.rest.get(input.pos()..).unwrap_or_default();
            if out.pos() > 0 {
                break;
            }
            if ended && self.inside {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(out.pos())
    }
}
