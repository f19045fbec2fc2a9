//! A `thanos.WriteRequest` for one member, while it fills and when it is sealed.
//!
//! Specification: `pkg/store/storepb/rpc.proto` of Thanos, `WriteRequest`: 1 series, 2 tenant, 3 replica (from 1), and since
//! 0.43 also 4, series (1) with their tenant (2). The series are those of remote write 1.0.

use super::coder::{Coder, append};
use super::protocol::{ThanosProtocol, Tools};
use super::settings::Layout;
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::spread::{OpenMessage, RequestForm, RequestHead, RequestLen};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::TENANT_MAX;
use tidegate_wire::output::SliceOutput;
use tidegate_wire::proto::write;
use tidegate_wire::snappy::framed::{self, CHUNK, STREAM_IDENTIFIER};

/// Bytes before a message in gRPC: whether it is compressed, and how long it is.
pub(super) const PREFIX: usize = 5;
/// The most bytes that a request has behind its series, with their tags and lengths.
const TRAILER: usize = TENANT_MAX + 32;
/// The tag of field 1.
const SERIES_TAG: u8 = 0x0a;
/// Field 4 with a length of five bytes, which is filled in when its series are known.
const TUPLE: [u8; 6] = [0x22, 0x80, 0x80, 0x80, 0x80, 0x00];

/// Whether a request is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Snappy,
}

impl RequestForm for Form {
    fn code(self) -> u8 {
        match self {
            Form::Plain => 0,
            Form::Snappy => 1,
        }
    }

    fn of_code(code: u8) -> Option<Form> {
        [Form::Plain, Form::Snappy].into_iter().find(|form| form.code() == code)
    }
}

/// A message that takes more series.
pub(super) struct Message {
    layout: Layout,
    head: RequestHead<Form>,
    /// Series that are not compressed yet, where requests are compressed.
    staging: Option<Charged<Window>>,
    /// [`PREFIX`] bytes, and what of the message is as it will be sent.
    out: Charged<Window>,
    /// Where the present tuple begins, if one was begun.
    tuple: Option<usize>,
    /// Bytes of series.
    raw_len: usize,
}

impl Message {
    /// A message without series.
    ///
    /// # Errors
    /// When there is no memory now.
    pub(super) async fn new(
        layout: Layout,
        head: RequestHead<Form>,
        last: RequestLen,
        room: &EgressBudget,
    ) -> Result<Message, BudgetError> {
        let staging = match head.form {
            Form::Plain => None,
            Form::Snappy => Some(room.growing_window(last.raw.min(CHUNK)).await?),
        };
        let mut out = room.growing_window(last.sealed).await?;
        append(&mut out, &[0; PREFIX]);
        if head.form == Form::Snappy {
            append(&mut out, &STREAM_IDENTIFIER);
        }
        Ok(Message { layout, head, staging, out, tuple: None, raw_len: 0 })
    }

    /// Where series are written to.
    #[inline]
    fn filling(&mut self) -> &mut Charged<Window> {
        self.staging.as_mut().unwrap_or(&mut self.out)
    }

    /// Makes room for so many bytes of series, and for all that it takes to seal the request: where memory is short, sealing is how some is
    /// given back.
    #[inline]
    fn reserve(&mut self, needed: usize) -> Result<(), BudgetError> {
        let filling = self.filling();
        if filling.spare() < needed + TRAILER {
            // As much again, so that memory is seldom asked for.
            let len = filling.len();
            let generous = len.min(CHUNK - len % CHUNK).max(needed + TRAILER);
            if filling.try_reserve(generous).is_err() {
                filling.try_reserve(needed + TRAILER)?;
            }
        }
        let Some(staging) = &self.staging else { return Ok(()) };
        let sealed = |raw| framed::max_framed_len(raw) + framed::max_framed_len(TRAILER);
        let framed = sealed(staging.len() + needed);
        if self.out.spare() < framed && self.out.try_reserve(sealed(staging.charged())).is_err() {
            self.out.try_reserve(framed)?;
        }
        Ok(())
    }

    /// Ends the tuple, and compresses what is staged. When there is no memory, nothing changes.
    fn flush(&mut self, coder: &mut Coder) -> Result<(), BudgetError> {
        let tuple = self.tuple.take();
        if let Some(start) = tuple {
            self.end_tuple(start);
        }
        let Some(staging) = &mut self.staging else { return Ok(()) };
        let flushed = coder.flush(staging, &mut self.out);
        if let (Err(_), Some(start)) = (flushed, tuple) {
            self.reopen_tuple(start);
        }
        flushed
    }

    /// Behind the series of a tuple comes its tenant, before them the length of both.
    fn end_tuple(&mut self, start: usize) {
        let tenant = self.head.tenant;
        let filling = self.filling();
        field(filling, 2, tenant.as_str().as_bytes());
        let mut len = filling.len() - start - TUPLE.len();
        let Some(place) = filling.get_mut(start + 1..start + TUPLE.len()) else { return };
        for (index, byte) in place.iter_mut().enumerate() {
            let more = if index < TUPLE.len() - 2 { 0x80 } else { 0 };
            *byte = (len & 0x7f) as u8 | more;
            len >>= 7;
        }
    }

    fn reopen_tuple(&mut self, start: usize) {
        let tenant = 2 + self.head.tenant.as_str().len();
        let filling = self.filling();
        let len = filling.len().saturating_sub(tenant + usize::from(tenant > 129));
        filling.truncate(len);
        self.tuple = Some(start);
    }
}

impl OpenMessage<ThanosProtocol> for Message {
    fn raw_len(&self) -> usize {
        self.raw_len
    }

    fn held(&self) -> usize {
        self.out.bytes() + self.staging.as_ref().map_or(0, Charged::bytes)
    }

    #[inline]
    fn push(&mut self, series: &[&[u8]; 2], tools: &mut Tools) -> Result<(), BudgetError> {
        let len = series.iter().map(|part| part.len()).sum::<usize>();
        let needed = len + TUPLE.len() + write::bytes_len(len as u64) as usize;
        let staged = self.staging.as_ref().map_or(0, |staging| staging.len());
        if staged > 0 && staged + needed + TRAILER > CHUNK {
            self.flush(&mut tools.coder)?;
        }
        self.reserve(needed)?;
        if self.layout == Layout::TenantTuples && self.tuple.is_none() {
            self.tuple = Some(self.filling().len());
            append(self.filling(), &TUPLE);
        }
        let field_len = write::Varint::new(len as u64);
        let [start, end] = *series;
        self.raw_len += append_all(self.filling(), [&[SERIES_TAG], field_len.as_bytes(), start, end]);
        Ok(())
    }

    fn seal(mut self, tools: &mut Tools) -> Result<Bytes, Message> {
        if self.flush(&mut tools.coder).is_err() {
            return Err(self);
        }
        let (tenant, replica) = (self.head.tenant, u64::from(self.head.replica) + 1);
        let (layout, filling) = (self.layout, self.filling());
        if layout == Layout::SingleTenant {
            field(filling, 2, tenant.as_str().as_bytes());
        }
        let mut number = SliceOutput::new(filling.spare_mut());
        let _fits = write::varint(&mut number, 3, replica);
        let written = number.len();
        filling.advance(written);
        if let Some(staging) = &mut self.staging
            && tools.coder.flush(staging, &mut self.out).is_err()
        {
            staging.clear();
            return Err(self);
        }
        let Message { head, mut out, staging, .. } = self;
        drop(staging);
        let len = u32::try_from(out.len().saturating_sub(PREFIX)).unwrap_or(u32::MAX);
        let [a, b, c, d] = len.to_be_bytes();
        if let Some(prefix) = out.get_mut(..PREFIX) {
            prefix.copy_from_slice(&[head.form.code(), a, b, c, d]);
        }
        // Sealing was paid for in advance: what it did not take is given back.
        out.shrink();
        Ok(Bytes::from_owner(out))
    }
}

/// Appends parts that room was made for, and returns their length in bytes.
#[inline]
fn append_all<const N: usize>(window: &mut Window, parts: [&[u8]; N]) -> usize {
    let (room, mut len) = (window.spare_mut(), 0);
    for part in parts {
        if let Some(place) = room.get_mut(len..len + part.len()) {
            place.copy_from_slice(part);
            len += part.len();
        }
    }
    window.advance(len);
    len
}

/// Appends a field of bytes, which room was made for.
fn field(window: &mut Window, number: u32, bytes: &[u8]) {
    let mut out = SliceOutput::new(window.spare_mut());
    let _fits = write::bytes(&mut out, number, bytes);
    let written = out.len();
    window.advance(written);
}
