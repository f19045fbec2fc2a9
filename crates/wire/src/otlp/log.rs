//! Log records.

use super::attribute::{AnyValue, Attributes};
use super::request::Item;
use crate::proto::{Reader, low32};

/// One log record: its scalars and its body read, its attributes still in the message.
#[derive(Debug, Clone, Copy)]
pub struct LogRecord<'a> {
    message: &'a [u8],
    /// When it happened, in nanoseconds since the Unix epoch; 0 when unknown.
    pub time: u64,
    /// When it was seen by whoever made the record, in nanoseconds since the Unix epoch.
    pub observed_time: u64,
    /// 1 to 24, from trace to fatal; 0 when unknown.
    pub severity: i32,
    /// The severity in the source's own words.
    pub severity_text: &'a [u8],
    /// The body.
    pub body: AnyValue<'a>,
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
    /// The trace flags in the low 8 bits.
    pub flags: u32,
    /// 16 bytes, or none.
    pub trace_id: &'a [u8],
    /// 8 bytes, or none.
    pub span_id: &'a [u8],
    /// The name of the kind of event, for records that are events.
    pub event_name: &'a [u8],
}

impl<'a> Item<'a> for LogRecord<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self {
            message,
            time: 0,
            observed_time: 0,
            severity: 0,
            severity_text: &[],
            body: AnyValue::Empty,
            dropped_attributes: 0,
            flags: 0,
            trace_id: &[],
            span_id: &[],
            event_name: &[],
        };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            let reader = &mut reader;
            match key.field {
                1 => read.time = reader.fixed64(key).ok()?,
                2 => read.severity = low32(reader.varint(key).ok()?).cast_signed(),
                3 => read.severity_text = reader.bytes(key).ok()?,
                5 => read.body = AnyValue::read(reader.bytes(key).ok()?)?,
                7 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                8 => read.flags = reader.fixed32(key).ok()?,
                9 => read.trace_id = reader.bytes(key).ok()?,
                10 => read.span_id = reader.bytes(key).ok()?,
                11 => read.observed_time = reader.fixed64(key).ok()?,
                12 => read.event_name = reader.bytes(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

impl<'a> LogRecord<'a> {
    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 6)
    }
}
