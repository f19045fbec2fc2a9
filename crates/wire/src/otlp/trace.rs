//! Spans.

use super::attribute::Attributes;
use super::request::Item;
use crate::proto::{Messages, Reader, low32};

/// One span: its scalars read, its lists still in the message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span<'a> {
    message: &'a [u8],
    /// 16 bytes in a checked body: zeros where none were sent.
    pub trace_id: &'a [u8],
    /// 8 bytes in a checked body: zeros where none were sent.
    pub span_id: &'a [u8],
    /// As the W3C header has it.
    pub trace_state: &'a [u8],
    /// 8 bytes, or none for a root.
    pub parent_span_id: &'a [u8],
    /// The trace flags in the low 8 bits; bits 8 and 9 say whether the parent is remote.
    pub flags: u32,
    /// The operation.
    pub name: &'a [u8],
    /// 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: i32,
    /// Nanoseconds since the Unix epoch.
    pub start_time: u64,
    /// Nanoseconds since the Unix epoch.
    pub end_time: u64,
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
    /// Events that the sender left out.
    pub dropped_events: u32,
    /// Links that the sender left out.
    pub dropped_links: u32,
    /// How it ended.
    pub status: Status<'a>,
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status<'a> {
    /// For people.
    pub message: &'a [u8],
    /// 0 unset, 1 ok, 2 error.
    pub code: i32,
}

/// Something that happened during a span.
#[derive(Debug, Clone, Copy, Default)]
pub struct Event<'a> {
    message: &'a [u8],
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The name of the event.
    pub name: &'a [u8],
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
}

/// Another span that a span refers to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link<'a> {
    message: &'a [u8],
    /// 16 bytes or none.
    pub trace_id: &'a [u8],
    /// 8 bytes or none.
    pub span_id: &'a [u8],
    /// As the W3C header has it.
    pub trace_state: &'a [u8],
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
    /// As those of a span, about the other one.
    pub flags: u32,
}

impl<'a> Item<'a> for Span<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, trace_id: &[0; 16], span_id: &[0; 8], ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            let reader = &mut reader;
            match key.field {
                1 => read.trace_id = or_zeros(reader.bytes(key).ok()?, &[0; 16]),
                2 => read.span_id = or_zeros(reader.bytes(key).ok()?, &[0; 8]),
                3 => read.trace_state = reader.bytes(key).ok()?,
                4 => read.parent_span_id = reader.bytes(key).ok()?,
                5 => read.name = reader.bytes(key).ok()?,
                6 => read.kind = low32(reader.varint(key).ok()?).cast_signed(),
                7 => read.start_time = reader.fixed64(key).ok()?,
                8 => read.end_time = reader.fixed64(key).ok()?,
                10 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                12 => read.dropped_events = low32(reader.varint(key).ok()?),
                14 => read.dropped_links = low32(reader.varint(key).ok()?),
                15 => read.status = Status::read(reader.bytes(key).ok()?)?,
                16 => read.flags = reader.fixed32(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

/// An id, or zeros for none.
fn or_zeros<'a>(id: &'a [u8], zeros: &'static [u8]) -> &'a [u8] {
    if id.is_empty() { zeros } else { id }
}

impl<'a> Span<'a> {
    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 9)
    }

    /// Its events, in order.
    pub fn events(&self) -> impl Iterator<Item = Event<'a>> + Clone + use<'a> {
        Messages::new(self.message, 11).map_while(Event::read)
    }

    /// Its links, in order.
    pub fn links(&self) -> impl Iterator<Item = Link<'a>> + Clone + use<'a> {
        Messages::new(self.message, 13).map_while(Link::read)
    }
}

impl<'a> Status<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self::default();
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.message = reader.bytes(key).ok()?,
                3 => read.code = low32(reader.varint(key).ok()?).cast_signed(),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

impl<'a> Event<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.time = reader.fixed64(key).ok()?,
                2 => read.name = reader.bytes(key).ok()?,
                4 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 3)
    }
}

impl<'a> Link<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            let reader = &mut reader;
            match key.field {
                1 => read.trace_id = reader.bytes(key).ok()?,
                2 => read.span_id = reader.bytes(key).ok()?,
                3 => read.trace_state = reader.bytes(key).ok()?,
                5 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                6 => read.flags = reader.fixed32(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 4)
    }
}
