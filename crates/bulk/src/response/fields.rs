//! The parsed fields of one element.

use super::json::{ElementReader, unescaped};
use std::ops::Range;

/// The most bytes of a reason that are read.
const REASON: usize = crate::outcome::MAX_REASON_BYTES;

/// Why something failed, in the server's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// `error.type`, as it is written.
    pub kind: &'a [u8],
    /// `error.reason`, with its escapes.
    reason: &'a [u8],
}

impl ServerError<'_> {
    /// Its words: the type and the reason, cut.
    pub fn message(&self) -> String {
        let (kind, reason) = (unescaped(self.kind, REASON), unescaped(self.reason, REASON));
        match (kind.is_empty(), reason.is_empty()) {
            (false, false) => format!("{kind}: {reason}"),
            _ => kind + &reason,
        }
    }
}

/// An element of the answer to `_bulk`, without the name of the action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemFields<'a> {
    /// `status`; 0 where there is none.
    pub status: u16,
    /// `result` is `noop`.
    pub unchanged: bool,
    /// `_id`, as it is written.
    pub id: &'a [u8],
    /// `_version`.
    pub version: u64,
    /// `_seq_no`.
    pub seq_no: u64,
    /// `_primary_term`.
    pub primary_term: u64,
    /// `error`.
    pub error: Option<ServerError<'a>>,
}

/// Reads an element of the answer to `_bulk`. `None` when it is not one.
pub fn read_bulk_item(element: &[u8]) -> Option<ItemFields<'_>> {
    let mut reader = ElementReader::new(element);
    reader.open()?;
    reader.key()?;
    reader.open()?;
    let mut fields = ItemFields::default();
    while let Some(key) = reader.key() {
        match key {
            b"status" => fields.status = u16::try_from(reader.number()?).ok()?,
            b"result" => fields.unchanged = reader.text()? == b"noop",
            b"_id" if reader.peek()? == b'"' => fields.id = reader.text()?,
            b"_version" => fields.version = reader.number().unwrap_or_default(),
            b"_seq_no" => fields.seq_no = reader.number().unwrap_or_default(),
            b"_primary_term" => fields.primary_term = reader.number().unwrap_or_default(),
            b"error" => fields.error = Some(server_error(&mut reader)?),
            _ => reader.skip()?,
        }
    }
    (fields.status != 0).then_some(fields)
}

/// Hands out the fields of an element of the answer to `_bulk`: the name of the action, the name of the field, and its value
/// as it is written. Ends early where the element is not one.
///
/// # Errors
/// The first of `found`.
pub fn each_field<'a, E>(
    element: &'a [u8],
    mut found: impl FnMut(&'a [u8], &'a [u8], &'a [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = ElementReader::new(element);
    let Some(action) = reader.open().and_then(|()| reader.key()) else { return Ok(()) };
    if reader.open().is_none() {
        return Ok(());
    }
    while let Some(key) = reader.key() {
        if reader.peek().is_none() {
            break;
        }
        let start = reader.offset();
        if reader.skip().is_none() {
            break;
        }
        found(action, key, element.get(start..reader.offset()).unwrap_or_default())?;
    }
    Ok(())
}

/// An element of the answer to `_mget`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFields<'a> {
    /// `found`.
    pub found: bool,
    /// Where `_source` is in the element.
    pub source: Range<usize>,
    /// `_version`.
    pub version: u64,
    /// `_seq_no`.
    pub seq_no: u64,
    /// `_primary_term`.
    pub primary_term: u64,
    /// `error`.
    pub error: Option<ServerError<'a>>,
}

/// Reads an element of the answer to `_mget`. `None` when it is not one.
pub fn read_mget_document(element: &[u8]) -> Option<DocumentFields<'_>> {
    let mut reader = ElementReader::new(element);
    reader.open()?;
    let mut fields = DocumentFields::default();
    let mut known = false;
    while let Some(key) = reader.key() {
        match key {
            b"found" => (fields.found, known) = (reader.is_true()?, true),
            b"_source" => {
                reader.peek()?;
                let start = reader.offset();
                reader.skip()?;
                fields.source = start..reader.offset();
            }
            b"_version" => fields.version = reader.number().unwrap_or_default(),
            b"_seq_no" => fields.seq_no = reader.number().unwrap_or_default(),
            b"_primary_term" => fields.primary_term = reader.number().unwrap_or_default(),
            b"error" => fields.error = Some(server_error(&mut reader)?),
            _ => reader.skip()?,
        }
    }
    (known || fields.error.is_some()).then_some(fields)
}

/// Reads the status and the error of an element of the answer to `_msearch`. `None` when it is not one.
pub fn read_msearch_response(element: &[u8]) -> Option<(u16, Option<ServerError<'_>>)> {
    let mut reader = ElementReader::new(element);
    reader.open()?;
    let (mut status, mut failed) = (200, None);
    while let Some(key) = reader.key() {
        match key {
            b"status" => status = u16::try_from(reader.number()?).ok()?,
            b"error" => failed = Some(server_error(&mut reader)?),
            _ => reader.skip()?,
        }
    }
    Some((status, failed))
}

/// `{"type":"…","reason":"…", …}`, or a text.
fn server_error<'a>(reader: &mut ElementReader<'a>) -> Option<ServerError<'a>> {
    let mut error = ServerError::default();
    if reader.peek()? == b'"' {
        error.reason = reader.text()?;
        return Some(error);
    }
    if reader.open().is_none() {
        reader.skip()?;
        return Some(error);
    }
    while let Some(key) = reader.key() {
        match key {
            b"type" if reader.peek()? == b'"' => error.kind = reader.text()?,
            b"reason" if reader.peek()? == b'"' => error.reason = reader.text()?,
            _ => reader.skip()?,
        }
    }
    Some(error)
}
