//! A request of remote write 1.0 for one receiver, while it fills and when it is sealed.
//!
//! Specification: <https://prometheus.io/docs/specs/prw/remote_write_spec/>: a `prometheus.WriteRequest` as one Snappy block. The raw
//! request is never in memory at once: a block is made piece by piece (`tidegate_wire::snappy::pieces`), and its preamble at the end.

use super::protocol::{ShardedProtocol, Tools};
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::prometheus_remote_write::snappy_passthrough::PREAMBLE;
use crate::spread::{OpenMessage, RequestForm, RequestLen};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_wire::output::SliceOutput;
use tidegate_wire::proto::write;
use tidegate_wire::snappy::pieces::{PIECE, SCRATCH, max_len, piece};
use tidegate_wire::snappy::{Encoder, join};

/// The most bytes of a field's key and length.
const FIELD_HEAD: usize = 8;

/// The version of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Remote write 1.0, in a Snappy block.
    V1,
}

impl RequestForm for Form {
    fn code(self) -> u8 {
        1
    }

    fn of_code(code: u8) -> Option<Form> {
        (code == Form::V1.code()).then_some(Form::V1)
    }
}

/// A field of a request: its number, and its message.
pub(super) type Field<'i> = (u32, &'i [u8]);

/// Compresses pieces. It keeps nothing between them.
pub(super) struct Coder {
    encoder: Encoder,
    scratch: Box<[u8]>,
}

impl Coder {
    /// The memory that it holds, in bytes.
    pub(super) const BYTES: usize = Encoder::BYTES + SCRATCH;

    pub(super) fn new() -> Coder {
        Coder { encoder: Encoder::new(), scratch: vec![0; SCRATCH].into() }
    }
}

/// A request that takes more fields.
pub(super) struct Message {
    /// Fields that are not compressed yet.
    staging: Charged<Window>,
    /// [`PREAMBLE`] bytes, and the elements of the block.
    out: Charged<Window>,
    /// Bytes before compression.
    raw_len: usize,
}

impl Message {
    /// A request without fields.
    ///
    /// # Errors
    /// When there is no memory now.
    pub(super) async fn new(last: RequestLen, room: &EgressBudget) -> Result<Message, BudgetError> {
        let mut staging = room.growing_window(last.raw.min(PIECE)).await?;
        let mut out = room.growing_window(last.sealed).await?;
        staging.clear();
        out.clear();
        append(&mut out, &[0; PREAMBLE]);
        Ok(Message { staging, out, raw_len: 0 })
    }

    /// Adds a field, and pays for all that sealing needs. When there is no memory, nothing changes.
    ///
    /// # Errors
    /// When there is no memory now.
    #[inline]
    pub(super) fn add(&mut self, (number, bytes): Field<'_>, coder: &mut Coder) -> Result<(), BudgetError> {
        let needed = bytes.len() + FIELD_HEAD;
        if !self.staging.is_empty() && self.staging.len() + needed > PIECE {
            self.flush(coder);
        }
        self.staging.try_reserve(needed)?;
        self.out.try_reserve(max_len(self.staging.len() + needed))?;
        let mut head = SliceOutput::new(self.staging.spare_mut());
        // It was made room for.
        let _fits = write::length(&mut head, number, bytes.len() as u64);
        let written = head.len();
        self.staging.advance(written);
        append(&mut self.staging, bytes);
        self.raw_len += written + bytes.len();
        Ok(())
    }

    /// Compresses what is staged, into memory that was paid for with it.
    fn flush(&mut self, Coder { encoder, scratch }: &mut Coder) {
        for raw in self.staging.chunks(PIECE) {
            // Neither is too long, so there are elements.
            let Ok(elements) = piece(encoder, raw, scratch) else { continue };
            for part in elements.parts() {
                append(&mut self.out, part);
            }
        }
        self.staging.clear();
    }

    /// The body of the request.
    pub(super) fn finish(mut self, coder: &mut Coder) -> Bytes {
        self.flush(coder);
        let Message { staging, mut out, raw_len } = self;
        drop(staging);
        // A request is shorter than a block may be.
        let preamble = join::joined_preamble(raw_len as u64);
        let preamble = preamble.as_ref().map_or(&[][..], |preamble| preamble.as_bytes());
        // Sealing was paid for in advance: what it did not take is given back.
        out.shrink();
        let start = PREAMBLE.saturating_sub(preamble.len());
        if let Some(place) = out.get_mut(start..PREAMBLE) {
            place.copy_from_slice(preamble);
        }
        Bytes::from_owner(out).slice(start..)
    }
}

impl OpenMessage<ShardedProtocol> for Message {
    fn raw_len(&self) -> usize {
        self.raw_len
    }

    fn held(&self) -> usize {
        self.staging.bytes() + self.out.bytes()
    }

    #[inline]
    fn push(&mut self, field: &Field<'_>, tools: &mut Tools) -> Result<(), BudgetError> {
        self.add(*field, &mut tools.coder)
    }

    fn seal(self, tools: &mut Tools) -> Result<Bytes, Message> {
        Ok(self.finish(&mut tools.coder))
    }
}

/// Appends bytes that room was made for.
fn append(window: &mut Window, bytes: &[u8]) {
    if let Some(room) = window.spare_mut().get_mut(..bytes.len()) {
        room.copy_from_slice(bytes);
        window.advance(bytes.len());
    }
}
