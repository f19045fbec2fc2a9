//! Records into a batch.

use super::{Body, LogRecord};
use crate::output::{Full, Output, SliceOutput};
use crate::proto::Reader;
use crate::proto::write::{self, Varint, bytes_len, varint_len};

/// Bytes reserved for the length of a group until it is known: groups of 16 KiB to 2 MiB are never moved.
const RESERVED: usize = 3;
/// The most bytes that the two lengths of a group take beyond that. They stay free, so closing a group always succeeds.
const CLOSING: usize = 4;

/// The tag of a length-delimited field.
const fn tag(field: u8) -> u8 {
    field << 3 | 2
}

/// Encodes log records into a slice, in groups that share a resource and a scope.
#[derive(Debug)]
pub struct LogsEncoder<'a> {
    out: &'a mut [u8],
    len: usize,
    group: Option<Group>,
    items: u32,
    /// The largest item of the closed groups, with what encloses it.
    largest_item: usize,
}

/// A `ResourceLogs` with one `ScopeLogs` that is still open. Offsets are into the output.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// Of its first byte, the tag.
    start: usize,
    /// Of the tag of its `ScopeLogs`.
    scope: usize,
    /// Of its first record.
    records: usize,
    /// The longest record with its tag and length.
    largest: usize,
}

/// An encoded batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedLogs {
    /// Its length in bytes, from the start of the output.
    pub len: usize,
    /// Its records.
    pub items: u32,
    /// The bytes of its largest record with its resource and its scope, as
    /// [`Counts::largest_item`](crate::otlp::Counts::largest_item) has it.
    pub largest_item: usize,
}

impl<'a> LogsEncoder<'a> {
    /// An encoder that fills `out` from its start.
    pub fn new(out: &'a mut [u8]) -> LogsEncoder<'a> {
        LogsEncoder { out, len: 0, group: None, items: 0, largest_item: 0 }
    }

    /// The records so far.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The bytes so far; closing the group may change them by a few.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Begins a group: the records that follow are of this resource, whose attributes [`Attributes`](super::Attributes)
    /// encoded, and of the scope with this name. A group that gets no records is left out.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it; the batch then ends with the groups before.
    pub fn resource(&mut self, resource: &[u8], scope_name: &str) -> Result<(), Full> {
        self.close();
        let (start, most) = (self.len, self.most());
        let mut out = SliceOutput::new(self.out.get_mut(start..most).ok_or(Full)?);
        out.put(&[tag(1)])?;
        out.put(&[0; RESERVED])?;
        if !resource.is_empty() {
            write::bytes(&mut out, 1, resource)?;
        }
        let scope = start + out.len();
        out.put(&[tag(2)])?;
        out.put(&[0; RESERVED])?;
        if !scope_name.is_empty() {
            write::length(&mut out, 1, bytes_len(scope_name.len() as u64))?;
            write::bytes(&mut out, 1, scope_name.as_bytes())?;
        }
        self.len = start + out.len();
        self.group = Some(Group { start, scope, records: self.len, largest: 0 });
        Ok(())
    }

    /// Adds a record to the group; without one to a group that has neither resource nor scope.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it. Nothing of it is written, and the batch can be finished.
    pub fn record(&mut self, record: &LogRecord<'_>) -> Result<(), Full> {
        if self.group.is_none() {
            self.resource(&[], "")?;
        }
        let items = self.items.checked_add(1).ok_or(Full)?;
        let payload = record.encoded_len();
        let len = usize::try_from(bytes_len(payload)).map_err(|_| Full)?;
        let end = self.len.checked_add(len).filter(|end| *end <= self.most()).ok_or(Full)?;
        let space = self.out.get_mut(self.len..end).ok_or(Full)?;
        let mut out = SliceOutput::new(space);
        write::length(&mut out, 2, payload)?;
        record.encode(&mut out)?;
        debug_assert_eq!(out.len(), len, "a record has the length that was computed");
        (self.len, self.items) = (end, items);
        if let Some(group) = &mut self.group {
            // An item counts as at least one byte.
            group.largest = group.largest.max(len.max(3));
        }
        Ok(())
    }

    /// Closes the last group.
    #[must_use]
    pub fn finish(mut self) -> EncodedLogs {
        self.close();
        EncodedLogs { len: self.len, items: self.items, largest_item: self.largest_item }
    }

    fn most(&self) -> usize {
        self.out.len().saturating_sub(CLOSING)
    }

    /// Writes the lengths of the open group and moves its contents to where they belong.
    fn close(&mut self) {
        let Some(Group { start, scope, records, largest }) = self.group.take() else { return };
        if largest == 0 {
            self.len = start;
            return;
        }
        let (resource, content) = (start + 1 + RESERVED, scope + 1 + RESERVED);
        let scope_len = self.len - content;
        let scope_width = width(scope_len);
        let resource_len = scope - resource + 1 + scope_width + scope_len;
        let resource_width = width(resource_len);
        // Where they go: the resource with the tag of the scope, and the scope's contents.
        let moved_resource = start + 1 + resource_width;
        let moved_scope = moved_resource + (scope - resource);
        let moved_content = moved_scope + 1 + scope_width;
        let end = moved_content + scope_len;
        if moved_content > content {
            self.out.copy_within(content..self.len, moved_content);
            self.out.copy_within(resource..=scope, moved_resource);
        } else if moved_content < content {
            self.out.copy_within(resource..=scope, moved_resource);
            self.out.copy_within(content..self.len, moved_content);
        }
        self.put_length(start + 1, resource_len);
        self.put_length(moved_scope + 1, scope_len);
        self.len = end;
        let envelope = (moved_content - start) + (records - content);
        self.largest_item = self.largest_item.max(envelope + largest);
    }

    fn put_length(&mut self, at: usize, len: usize) {
        for (to, from) in self.out.iter_mut().skip(at).zip(Varint::new(len as u64).as_bytes()) {
            *to = *from;
        }
    }
}

/// How many bytes a length takes.
fn width(len: usize) -> usize {
    usize::try_from(varint_len(len as u64)).unwrap_or(10)
}

impl LogRecord<'_> {
    /// The length of its message without tag and length, in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> u64 {
        let fixed = |value: u64| if value == 0 { 0 } else { 9 };
        let text = self.severity_text.len() as u64;
        fixed(self.time_ns)
            + fixed(self.observed_ns)
            + if self.severity == 0 { 0 } else { 1 + varint_len(self.severity.into()) }
            + if text == 0 { 0 } else { bytes_len(text) }
            + self.body.encoded_len().map_or(0, bytes_len)
            + self.attributes.len() as u64
    }

    fn encode(&self, out: &mut SliceOutput<'_>) -> Result<(), Full> {
        if self.time_ns != 0 {
            write::fixed64(out, 1, self.time_ns)?;
        }
        if self.severity != 0 {
            write::varint(out, 2, self.severity.into())?;
        }
        if !self.severity_text.is_empty() {
            write::bytes(out, 3, self.severity_text.as_bytes())?;
        }
        self.body.encode(out)?;
        attributes(out, self.attributes)?;
        if self.observed_ns != 0 {
            write::fixed64(out, 11, self.observed_ns)?;
        }
        Ok(())
    }
}

/// Puts encoded attributes as a record's: their tag differs from a resource's, their length does not.
fn attributes(out: &mut SliceOutput<'_>, encoded: &[u8]) -> Result<(), Full> {
    let mut reader = Reader::new(encoded);
    while let Ok(Some(key)) = reader.key() {
        let Ok(attribute) = reader.bytes(key) else { break };
        write::bytes(out, 6, attribute)?;
    }
    debug_assert!(reader.rest().is_empty(), "attributes are encoded by `Attributes`");
    Ok(())
}

impl Body<'_> {
    /// The length of its `AnyValue`; `None` without one.
    fn encoded_len(&self) -> Option<u64> {
        match self {
            Body::None => None,
            Body::Text(pieces) => Some(bytes_len(text_len(pieces))),
            Body::Map(members) => Some(bytes_len(members.len() as u64)),
            Body::Encoded(value) => Some(value.len() as u64),
        }
    }

    fn encode(&self, out: &mut SliceOutput<'_>) -> Result<(), Full> {
        let Some(len) = self.encoded_len() else { return Ok(()) };
        write::length(out, 5, len)?;
        match self {
            Body::None => Ok(()),
            Body::Text(pieces) => {
                write::length(out, 1, text_len(pieces))?;
                pieces.iter().try_for_each(|piece| out.put(piece))
            }
            Body::Map(members) => write::bytes(out, 6, members),
            Body::Encoded(value) => out.put(value),
        }
    }
}

fn text_len(pieces: &[&[u8]]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}
