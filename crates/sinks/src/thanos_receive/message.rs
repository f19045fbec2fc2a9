//! A `thanos.WriteRequest` for one member, while it fills and when it is sealed.
//!
//! Specification: `pkg/store/storepb/rpc.proto` of Thanos, `WriteRequest`: 1 series, 2 tenant, 3 replica (from 1), and since
//! 0.43 also 4, series (1) with their tenant (2). The series are those of remote write 1.0.

use super::coder::{Coder, append};
use super::protocol::{ThanosProtocol, Tools};
use super::settings::Layout;
use crate::egress_budget::{BudgetError, Charged};
use crate::spread::{OpenMessage, RequestForm, RequestHead};
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

/// [`PREFIX`] bytes and a message that takes more series.
pub(super) struct Message {
    layout: Layout,
    head: RequestHead<Form>,
    /// Series that are not compressed yet.
    staging: Charged<Window>,
    /// Whether a tuple was begun in it.
    in_tuple: bool,
    out: Charged<Window>,
    /// Bytes before compression.
    raw_len: usize,
}

impl Message {
    /// A message without series, in windows that may grow.
    pub(super) fn new(
        layout: Layout,
        head: RequestHead<Form>,
        (mut staging, mut out): (Charged<Window>, Charged<Window>),
    ) -> Message {
        staging.clear();
        out.clear();
        append(&mut out, &[0; PREFIX]);
        if head.form == Form::Snappy {
            append(&mut out, &STREAM_IDENTIFIER);
        }
        Message { layout, head, staging, in_tuple: false, out, raw_len: 0 }
    }

    /// Makes room for so many bytes of series, and for all that it takes to seal the request: where memory is short, sealing is how some is
    /// given back.
    #[inline]
    fn reserve(&mut self, needed: usize) -> Result<(), BudgetError> {
        if self.staging.spare() < needed + TRAILER {
            // As much again, so that memory is seldom asked for.
            let generous = self.staging.len().min(CHUNK.saturating_sub(self.staging.len()));
            if self.staging.try_reserve(generous.max(needed + TRAILER)).is_err() {
                self.staging.try_reserve(needed + TRAILER)?;
            }
        }
        let sealed = |raw| framed::max_framed_len(raw) + framed::max_framed_len(TRAILER);
        let framed = sealed(self.staging.len() + needed);
        if self.out.spare() < framed && self.out.try_reserve(sealed(self.staging.charged())).is_err() {
            self.out.try_reserve(framed)?;
        }
        Ok(())
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
}

impl OpenMessage<ThanosProtocol> for Message {
    fn raw_len(&self) -> usize {
        self.raw_len
    }

    fn held(&self) -> usize {
        self.staging.bytes() + self.out.bytes()
    }

    #[inline]
    fn push(&mut self, series: [&[u8]; 2], tools: &mut Tools) -> Result<(), BudgetError> {
        let len = series.iter().map(|part| part.len()).sum::<usize>();
        let needed = len + TUPLE.len() + write::bytes_len(len as u64) as usize;
        if !self.staging.is_empty() && self.staging.len() + needed + TRAILER > CHUNK {
            self.flush(&mut tools.coder)?;
        }
        self.reserve(needed)?;
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
        Ok(())
    }

    fn seal(mut self, tools: &mut Tools) -> Result<Bytes, Message> {
        if self.flush(&mut tools.coder).is_err() {
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
        if tools.coder.flush(&mut self.staging, &mut self.out).is_err() {
            self.staging.clear();
            return Err(self);
        }
        let Message { head, mut out, staging, .. } = self;
        drop(staging);
        let len = u32::try_from(out.len().saturating_sub(PREFIX)).unwrap_or(u32::MAX);
        let [a, b, c, d] = len.to_be_bytes();
        if let Some(prefix) = out.get_mut(..PREFIX) {
            prefix.copy_from_slice(&[head.form.code(), a, b, c, d]);
        }
        // It was paid for what it could have become.
        out.shrink();
        Ok(Bytes::from_owner(out))
    }
}

/// Appends a field of bytes, which room was made for.
fn field(window: &mut Window, number: u32, bytes: &[u8]) {
    let mut out = SliceOutput::new(window.spare_mut());
    let _fits = write::bytes(&mut out, number, bytes);
    let written = out.len();
    window.advance(written);
}
