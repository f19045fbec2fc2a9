//! Reads a `logproto.PushRequest`.
//!
//! ```proto
//! message PushRequest { repeated StreamAdapter streams = 1; }
//! message StreamAdapter { string labels = 1; repeated EntryAdapter entries = 2; uint64 hash = 3; }
//! message EntryAdapter { google.protobuf.Timestamp timestamp = 1; string line = 2;
//!                        repeated LabelPairAdapter structuredMetadata = 3; repeated LabelPairAdapter parsed = 4; }
//! message LabelPairAdapter { string name = 1; string value = 2; }
//! ```

use super::LokiError;
use super::error::ReadError;
use super::labels::{Labels, SeenNames};
use super::stream::{OpenStream, StreamTranslator, Text};
use crate::otlp::json::writer::ProtoOutput;
use crate::proto::Reader;

pub(super) fn read<O: ProtoOutput>(
    body: &[u8],
    translator: &mut StreamTranslator<O>,
) -> Result<(), LokiError> {
    let (mut request, mut index) = (Reader::new(body), 0);
    while let Some(key) = request.key()? {
        if key.field != 1 {
            request.skip(key)?;
            continue;
        }
        stream(request.message(key)?, translator, index)?;
        index += 1;
    }
    Ok(())
}

fn stream<O: ProtoOutput>(
    message: Reader<'_>,
    translator: &mut StreamTranslator<O>,
    index: usize,
) -> Result<(), LokiError> {
    let (mut fields, mut labels, mut is_empty) = (message, &[][..], true);
    while let Some(key) = fields.key()? {
        match key.field {
            1 => labels = fields.bytes(key)?,
            field => {
                is_empty &= field != 2;
                fields.skip(key)?;
            }
        }
    }
    if is_empty {
        return Ok(());
    }
    let outside = |error: ReadError| error.within(index, None);
    let mut stream = translator.begin(message.rest().len()).map_err(outside)?;
    write_labels(labels, &mut stream, translator).map_err(outside)?;
    let (mut fields, mut number) = (message, 0);
    while let Some(key) = fields.key()? {
        if key.field != 2 {
            fields.skip(key)?;
            continue;
        }
        let message = fields.message(key)?;
        entry(message, &stream, translator).map_err(|error| error.within(index, Some(number)))?;
        number += 1;
    }
    translator.end(stream).map_err(outside)
}

/// Writes labels as Prometheus has them, and ends them.
pub(super) fn write_labels<'a, O: ProtoOutput>(
    labels: &'a [u8],
    stream: &mut OpenStream<'a>,
    translator: &mut StreamTranslator<O>,
) -> Result<(), ReadError> {
    let (mut labels, mut seen) = (Labels::new(labels), SeenNames::new());
    while let Some((name, value)) = labels.next()? {
        seen.add(name)?;
        translator.label(stream, name, value)?;
    }
    translator.entries(stream)
}

fn entry<O: ProtoOutput>(
    mut message: Reader<'_>,
    stream: &OpenStream<'_>,
    translator: &mut StreamTranslator<O>,
) -> Result<(), ReadError> {
    let mut entry = translator.begin_entry(stream)?;
    let (mut seconds, mut nanos, mut line) = (0, 0, &[][..]);
    while let Some(key) = message.key()? {
        match key.field {
            1 => {
                let mut time = message.message(key)?;
                while let Some(key) = time.key()? {
                    match key.field {
                        1 => seconds = time.varint(key)?.cast_signed(),
                        2 => nanos = time.varint(key)?.cast_signed(),
                        _ => time.skip(key)?,
                    }
                }
            }
            2 => line = message.bytes(key)?,
            3 => {
                let (mut pair, mut name, mut value) = (message.message(key)?, &[][..], &[][..]);
                while let Some(key) = pair.key()? {
                    match key.field {
                        1 => name = pair.bytes(key)?,
                        2 => value = pair.bytes(key)?,
                        _ => pair.skip(key)?,
                    }
                }
                translator.metadata(&mut entry, Text::Plain(name), Text::Plain(value))?;
            }
            _ => message.skip(key)?,
        }
    }
    let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let time = u64::try_from(time).map_err(|_| ReadError::Time)?;
    translator.end_entry(entry, time, Text::Plain(line))
}
