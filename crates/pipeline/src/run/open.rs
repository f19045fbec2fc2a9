//! A message that a walk has entered.

use crate::memory::Slice;
use crate::record::SpanCounts;
use crate::record::message::FieldRanges;
use crate::run::rope::{Gap, Part};
use crate::step::Verdict;
use std::ops::Range;
use tidegate_wire::otlp::Signal;
use tidegate_wire::proto::{Key, Reader, WireType};

/// The kinds of messages that a walk goes through field by field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    Request,
    Resource,
    Scope,
    Span,
    Metric,
    /// A metric's `Gauge`, `Sum`, `Histogram`, ….
    Data,
}

/// Role of a container's field in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    Container(Container),
    /// A log record, a span of which the events are of no interest, a data point, an event.
    Leaf,
    /// Of the container itself.
    Own,
}

/// How far a walk is with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It looks for the message's own fields, wherever they are.
    Scan,
    /// It looks for the fields of a metric's data.
    ScanData,
    /// It goes through the members.
    Walk,
}

/// An open message.
#[derive(Clone)]
pub(crate) struct Open<'a> {
    pub(crate) kind: Container,
    /// Its field number in the message around it.
    pub(crate) field: u32,
    /// Its bytes, with tag and length.
    pub(crate) whole: Range<usize>,
    /// At the first field.
    pub(crate) start: Reader<'a>,
    /// At the next field.
    pub(crate) reader: Reader<'a>,
    pub(crate) phase: Phase,
    pub(crate) gap: Option<Gap>,
    pub(crate) own: Own,
    /// The own fields are written apart from its members, because statements may change them.
    pub(crate) defers: bool,
    /// Bytes of own fields that are written, but not passed.
    pub(crate) ahead: usize,
    /// The own fields, where they were written before the members.
    pub(crate) front: Option<Part>,
    /// The own fields differ from the body's in what was written before the members.
    pub(crate) is_front_changed: bool,
    /// Something in it is not as in the body.
    pub(crate) is_dirty: bool,
    /// A member was dropped.
    pub(crate) has_lost: bool,
    /// Members that are left.
    pub(crate) members: u64,
    /// Items that are left.
    pub(crate) items: u64,
    /// Events so far.
    pub(crate) events: i64,
    /// Content of a span, as far as it was scanned.
    pub(crate) counts: SpanCounts,
    /// The step that dropped it, whole.
    pub(crate) dropped: Option<(usize, Verdict)>,
    /// The end of the temporary space before it.
    pub(crate) mark: crate::memory::Mark,
    /// The changes of what is above it, before it.
    pub(crate) changes_above: u64,
    /// The bytes by which its own fields, and those of what is above it, have grown.
    pub(crate) grown: usize,
}

/// The fields of a message that are not members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own {
    pub(crate) fields: FieldRanges,
    /// There are too many stretches to remember: `fields` is the whole content.
    pub(crate) is_scattered: bool,
    pub(crate) bytes: usize,
    /// Those of a metric's data.
    pub(crate) data_bytes: usize,
    /// As `is_scattered`, of a metric's data.
    pub(crate) is_data_scattered: bool,
    pub(crate) schema_url: Slice,
    /// The resource or scope; the data of a metric.
    pub(crate) message: Option<(u32, usize, usize)>,
}

impl Own {
    pub(crate) const NONE: Own = Own {
        fields: FieldRanges::NONE,
        is_scattered: false,
        bytes: 0,
        data_bytes: 0,
        is_data_scattered: false,
        schema_url: Slice::EMPTY,
        message: None,
    };

    /// Remembers an own field. `content` is that of the message, `members` the bits of its members.
    pub(crate) fn add(&mut self, field: Range<usize>, content: Range<usize>, members: u32) {
        self.bytes += field.len();
        if !self.is_scattered && !self.fields.add(field) {
            self.is_scattered = true;
            self.fields = FieldRanges::all(content, members);
        }
    }
}

impl Container {
    /// The level of the statements that work on it.
    pub(crate) fn level(self) -> Option<usize> {
        match self {
            Container::Request | Container::Data => None,
            Container::Resource => Some(0),
            Container::Scope => Some(1),
            Container::Span | Container::Metric => Some(2),
        }
    }

    /// Role of the field `key` in a walk. `has_events` says whether events are of interest.
    pub(crate) fn member(self, key: Key, signal: Signal, has_events: bool) -> Member {
        if key.wire != WireType::Length {
            return Member::Own;
        }
        match (self, key.field) {
            (Container::Request, 1) => Member::Container(Container::Resource),
            (Container::Resource, 2) => Member::Container(Container::Scope),
            (Container::Scope, 2) => match signal {
                Signal::Metrics => Member::Container(Container::Metric),
                Signal::Traces if has_events => Member::Container(Container::Span),
                _ => Member::Leaf,
            },
            (Container::Span, 11) | (Container::Data, 1) => Member::Leaf,
            (Container::Metric, 5 | 7 | 9 | 10 | 11) => Member::Container(Container::Data),
            _ => Member::Own,
        }
    }

    /// The field numbers of members, as bits.
    pub(crate) fn members(self) -> u32 {
        match self {
            Container::Request | Container::Data => 1 << 1,
            Container::Resource | Container::Scope => 1 << 2,
            Container::Span => 1 << 11,
            Container::Metric => 1 << 5 | 1 << 7 | 1 << 9 | 1 << 10 | 1 << 11,
        }
    }
}
