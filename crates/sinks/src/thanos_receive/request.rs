//! A `thanos.WriteRequest` for one member, while it fills and when it is sealed.
//!
//! Specification: `pkg/store/storepb/rpc.proto` of Thanos, `WriteRequest`: 1 series, 2 tenant, 3 replica (from 1), and since
//! 0.43 also 4, series (1) with their tenant (2). The series are those of remote write 1.0.

use super::coder::{Coder, append};
use super::settings::Layout;
use crate::egress_budget::{BudgetError, Charged};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_handoff::Note;
use tidegate_journal::{TENANT_MAX, Tenant};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::proto::write;
use tidegate_wire::snappy::framed::{self, CHUNK, STREAM_IDENTIFIER};
use tokio::time::Instant;

/// Bytes before a message in gRPC: whether it is compressed, and how long it is.
pub(super) const PREFIX: usize = 5;
/// The most bytes that a request has behind its series, with their tags and lengths.
const TRAILER: usize = TENANT_MAX + 32;
/// Field 4 with a length of five bytes, which is filled in when its series are known.
const TUPLE: [u8; 6] = [0x22, 0x80, 0x80, 0x80, 0x80, 0x00];

/// What is known of a request besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) tenant: Tenant,
    /// Which of the copies its series are, from 0.
    pub(super) replica: u8,
    pub(super) is_compressed: bool,
    /// Copies of items in it.
    pub(super) copies: u32,
}

/// The version of notes.
const NOTE_VERSION: u8 = 1;

impl RequestHead {
    /// The note that goes to disk with a request.
    pub(super) fn note(&self) -> Option<Note> {
        let mut bytes = vec![NOTE_VERSION, u8::from(self.is_compressed), self.replica];
        bytes.extend(self.copies.to_le_bytes());
        bytes.extend(self.tenant.as_str().as_bytes());
        Note::new(&bytes)
    }

    /// What a note says; nothing where another version wrote it.
    pub(super) fn of_note(note: &Note) -> Option<RequestHead> {
        let (&[NOTE_VERSION, compressed, replica], rest) = note.as_bytes().split_first_chunk()? else {
            return None;
        };
        let (copies, tenant) = rest.split_first_chunk()?;
        let (copies, tenant) = (u32::from_le_bytes(*copies), Tenant::new(str::from_utf8(tenant).ok()?)?);
        Some(RequestHead { tenant, replica, is_compressed: compressed == 1, copies })
    }
}

/// The items of one journal record in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The record.
    pub(super) sequence: u64,
    /// Its items that count in the books: those of first replicas.
    pub(super) items: u64,
}

/// A request that takes more series.
pub(super) struct OpenRequest {
    layout: Layout,
    head: RequestHead,
    /// Series that are not compressed yet.
    staging: Charged<Window>,
    /// Whether a tuple was begun in it.
    in_tuple: bool,
    out: Charged<Window>,
    /// Bytes before compression.
    raw_len: usize,
    parts: Vec<Part>,
    /// Whether it has series from the log of a member that left.
    is_rerouted: bool,
    /// Their items that count in the books.
    rerouted: u64,
    received_at_ns: u64,
    pub(super) opened: Instant,
}

/// A request that is ready to be sent. Clones are the same bytes.
#[derive(Debug, Clone)]
pub(super) struct SealedRequest {
    pub(super) head: RequestHead,
    /// [`PREFIX`] bytes and the message; holds the memory that they live in.
    pub(super) frame: Bytes,
    pub(super) parts: Vec<Part>,
    /// Whether it has series from the log of a member that left.
    pub(super) is_rerouted: bool,
    /// Their items that count in the books.
    pub(super) rerouted: u64,
    pub(super) received_at_ns: u64,
}

impl SealedRequest {
    /// Its items that count in the books.
    pub(super) fn items(&self) -> u64 {
        self.parts.iter().map(|part| part.items).sum::<u64>() + self.rerouted
    }
}

/// Where the items of a series come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A record of the journal.
    Record(u64),
    /// The log of a member that left.
    Log,
}

impl OpenRequest {
    /// A request without series, in windows that may grow.
    pub(super) fn new(
        layout: Layout,
        head: RequestHead,
        (mut staging, mut out): (Charged<Window>, Charged<Window>),
        received_at_ns: u64,
    ) -> OpenRequest {
        staging.clear();
        out.clear();
        append(&mut out, &[0; PREFIX]);
        if head.is_compressed {
            append(&mut out, &STREAM_IDENTIFIER);
        }
        OpenRequest {
            layout,
            head,
            staging,
            in_tuple: false,
            out,
            raw_len: 0,
            parts: Vec::new(),
            is_rerouted: false,
            rerouted: 0,
            received_at_ns,
            opened: Instant::now(),
        }
    }

    pub(super) fn tenant(&self) -> &Tenant {
        &self.head.tenant
    }

    /// Bytes of its series.
    pub(super) fn raw_len(&self) -> usize {
        self.raw_len
    }

    /// The memory that it holds, in bytes.
    pub(super) fn held(&self) -> usize {
        self.staging.bytes() + self.out.bytes()
    }

    /// Whether it has as many journal records as a request may have.
    pub(super) fn is_full_of_records(&self) -> bool {
        const MOST: usize = 512;
        self.parts.len() >= MOST
    }

    /// Adds a series, given as the parts of its message. When there is no memory, nothing changes.
    ///
    /// # Errors
    /// When there is no memory now.
    pub(super) fn push(
        &mut self,
        series: [&[u8]; 2],
        items: u64,
        origin: Origin,
        coder: &mut Coder,
    ) -> Result<(), BudgetError> {
        let len = series.iter().map(|part| part.len()).sum::<usize>();
        let needed = len + TUPLE.len() + write::bytes_len(len as u64) as usize;
        if !self.staging.is_empty() && self.staging.len() + needed + TRAILER > CHUNK {
            self.flush(coder)?;
        }
        self.staging.try_reserve(needed + TRAILER)?;
        // All that it takes to seal the request: where memory is short, sealing is how some is given back.
        let framed = framed::max_framed_len(self.staging.len() + needed) + framed::max_framed_len(TRAILER);
        self.out.try_reserve(framed)?;
        if self.layout == Layout::TenantTuples && !self.in_tuple {
            append(&mut self.staging, &TUPLE);
            self.in_tuple = true;
        }
        let mut field = SliceOutput::new(self.staging.spare_mut());
        // It was made room for.
        let _fits = write::length(&mut field, 1, len as u64);
        let written = field.len();
        self.staging.advance(written);
        series.iter().for_each(|part| append(&mut self.staging, part));
        self.raw_len += written + len;
        self.head.copies = self.head.copies.saturating_add(u32::try_from(items).unwrap_or(u32::MAX));
        let booked = if self.head.replica == 0 { items } else { 0 };
        match (origin, self.parts.last_mut()) {
            (Origin::Log, _) => (self.is_rerouted, self.rerouted) = (true, self.rerouted + booked),
            (Origin::Record(sequence), Some(last)) if last.sequence == sequence => last.items += booked,
            (Origin::Record(sequence), _) => self.parts.push(Part { sequence, items: booked }),
        }
        Ok(())
    }

    /// Whether series of this origin are in it already.
    pub(super) fn has(&self, origin: Origin) -> bool {
        match origin {
            Origin::Record(sequence) => self.parts.last().is_some_and(|last| last.sequence == sequence),
            Origin::Log => self.is_rerouted,
        }
    }

    fn flush(&mut self, coder: &mut Coder) -> Result<(), BudgetError> {
        let begun = std::mem::take(&mut self.in_tuple);
        if begun {
            self.end_tuple();
        }
        let flushed = coder.flush(&mut self.staging, &mut self.out);
        if flushed.is_err() && begun {
            self.reopen_tuple();
        }
        flushed
    }

    /// Behind the series of a tuple comes its tenant, before them the length of both.
    fn end_tuple(&mut self) {
        let tenant = self.head.tenant;
        field(&mut self.staging, 2, tenant.as_str().as_bytes());
        let mut len = self.staging.len() - TUPLE.len();
        let Some(place) = self.staging.get_mut(1..TUPLE.len()) else { return };
        for (index, byte) in place.iter_mut().enumerate() {
            let more = if index < TUPLE.len() - 2 { 0x80 } else { 0 };
            *byte = (len & 0x7f) as u8 | more;
            len >>= 7;
        }
    }

    fn reopen_tuple(&mut self) {
        let tenant = 2 + self.head.tenant.as_str().len();
        let len = self.staging.len().saturating_sub(tenant + usize::from(tenant > 129));
        self.staging.truncate(len);
        self.in_tuple = true;
    }

    /// The request, ready to be sent. When there is no memory, it is given back.
    ///
    /// # Errors
    /// The request.
    #[expect(clippy::result_large_err, reason = "it is handed back, and is no error")]
    pub(super) fn seal(mut self, coder: &mut Coder) -> Result<SealedRequest, OpenRequest> {
        if self.flush(coder).is_err() {
            return Err(self);
        }
        let replica = u64::from(self.head.replica) + 1;
        if self.layout == Layout::SingleTenant {
            let tenant = self.head.tenant;
            field(&mut self.staging, 2, tenant.as_str().as_bytes());
        }
        let mut number = SliceOutput::new(self.staging.spare_mut());
        let _fits = write::varint(&mut number, 3, replica);
        let written = number.len();
        self.staging.advance(written);
        if coder.flush(&mut self.staging, &mut self.out).is_err() {
            self.staging.clear();
            return Err(self);
        }
        let OpenRequest { head, mut out, parts, is_rerouted, rerouted, received_at_ns, staging, .. } = self;
        drop(staging);
        let len = u32::try_from(out.len().saturating_sub(PREFIX)).unwrap_or(u32::MAX);
        let [a, b, c, d] = len.to_be_bytes();
        if let Some(prefix) = out.get_mut(..PREFIX) {
            prefix.copy_from_slice(&[u8::from(head.is_compressed), a, b, c, d]);
        }
        Ok(SealedRequest {
            head,
            frame: Bytes::from_owner(out),
            parts,
            is_rerouted,
            rerouted,
            received_at_ns,
        })
    }
}

/// Appends a field of bytes, which room was made for.
fn field(window: &mut Window, number: u32, bytes: &[u8]) {
    let mut out = SliceOutput::new(window.spare_mut());
    let _fits = write::bytes(&mut out, number, bytes);
    let written = out.len();
    window.advance(written);
}
