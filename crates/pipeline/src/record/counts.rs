//! How many messages repeated fields have of which statements can ask only that.

use tidegate_wire::proto::{Key, Reader, WireType};

const EVENTS: u32 = 11;
const LINKS: u32 = 13;

/// The events and links of a span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpanCounts {
    pub(super) events: usize,
    pub(super) links: usize,
}

impl SpanCounts {
    /// Counts the content of the span whose bytes are `span`.
    pub(super) fn of(span: &[u8]) -> SpanCounts {
        let mut counts = SpanCounts::default();
        let mut reader = Reader::new(span);
        while let Ok(Some(key)) = reader.key() {
            if reader.skip(key).is_err() {
                break;
            }
            counts.add(key);
        }
        counts
    }

    /// Counts a field of the span.
    pub(crate) fn add(&mut self, key: Key) {
        match (key.wire, key.field) {
            (WireType::Length, EVENTS) => self.events += 1,
            (WireType::Length, LINKS) => self.links += 1,
            _ => {}
        }
    }
}
