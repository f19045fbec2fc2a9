//! Loki's push API: push requests to OTLP logs, and OTLP logs to push requests.
//!
//! [`translate`] makes each stream a resource and each entry a log record, in one pass without a tree. [`push`] does the
//! opposite. What a label, an entry's structured metadata and a resource attribute become is in `design/loki.md`.
//!
//! The two directions agree: a group whose scope is [`SCOPE`] came from a stream, and becomes the same stream again.
//!
//! Reference: <https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs>, and `push.proto` of Loki 3.

mod error;
mod json;
mod labels;
mod names;
mod protobuf;
pub mod push;
mod stream;
#[cfg(test)]
mod tests;

pub use error::{LabelError, LokiError};

use crate::otlp::json::writer::{LengthCounter, Writer};
use stream::StreamTranslator;

/// The name of the scope of records that came from a stream of Loki.
pub const SCOPE: &str = "loki";

/// How many labels a stream may have. Loki's own default is 15.
pub const MAX_LABELS: usize = 128;

/// The encoding of a push request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `logproto.PushRequest`, after Snappy.
    Protobuf,
    /// `{"streams":[{"stream":{…},"values":[…]}]}`.
    Json,
}

/// The properties that all records of a request share.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Its encoding.
    pub format: Format,
    /// When it came, in nanoseconds since 1970.
    pub received_ns: u64,
}

/// The room in which the OTLP of `body` fits, while it is made and after, exactly: it takes the time of a translation.
///
/// # Errors
/// As [`translate`].
pub fn measure(request: Request, body: &[u8]) -> Result<usize, LokiError> {
    let mut translator = StreamTranslator::new(LengthCounter::default(), request.received_ns);
    read(request.format, body, &mut translator)?;
    Ok(translator.out.max_len())
}

/// Writes an `ExportLogsServiceRequest` with the entries of `body` to the start of `out`, which should have what
/// [`measure`] says, and returns its length.
///
/// Text that is not UTF-8 has U+FFFD where it is not. Streams without entries are left out.
///
/// # Errors
/// A [`LokiError`] when anything of the request is wrong: like Loki, this refuses the whole of it.
pub fn translate(request: Request, body: &[u8], out: &mut [u8]) -> Result<usize, LokiError> {
    let mut translator = StreamTranslator::new(Writer::new(out), request.received_ns);
    read(request.format, body, &mut translator)?;
    Ok(crate::otlp::json::writer::ProtoOutput::len(&translator.out))
}

fn read<O: crate::otlp::json::writer::ProtoOutput>(
    format: Format,
    body: &[u8],
    translator: &mut StreamTranslator<O>,
) -> Result<(), LokiError> {
    match format {
        Format::Protobuf => protobuf::read(body, translator),
        Format::Json => json::read(body, translator),
    }
}
