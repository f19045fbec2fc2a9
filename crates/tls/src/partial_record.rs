//! The beginning of a record whose rest has not come.
//!
//! It cannot stay with the kernel: what the kernel keeps is counted in the buffers that it came in, so a few bytes
//! that nobody takes can close the peer's window, and the rest would never come. So it is taken, and charged: a page
//! at first, and the rest when a page of it is there.

use crate::records::{MAX_RECORD, RECORD_HEADER_LEN, RecordHeader, front, whole};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tidegate_arena::{Arena, Charge, ChargeError, PAGE, Share};
use tokio::net::TcpStream;

/// The share charged for partial records.
#[derive(Clone)]
pub(crate) struct MemoryAccount {
    pub(crate) arena: Arena,
    pub(crate) share: Share,
}

/// A record of which the beginning has come.
#[derive(Default)]
pub(crate) struct PartialRecord {
    bytes: Vec<u8>,
    /// For the first page, and for the rest.
    paid: [Option<Charge>; 2],
    paying: Option<PendingCharge>,
}

type PendingCharge = Pin<Box<dyn Future<Output = Result<Charge, ChargeError>> + Send + Sync>>;

impl PartialRecord {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Ready when all of the record is there.
    pub(crate) fn poll_whole(
        &mut self,
        socket: &TcpStream,
        context: &mut Context<'_>,
        memory_account: &MemoryAccount,
    ) -> Poll<io::Result<()>> {
        loop {
            let len = self.bytes.len();
            if front(&self.bytes, 1, MAX_RECORD) == RecordHeader::Broken {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            let end = whole(&self.bytes).unwrap_or(RECORD_HEADER_LEN);
            if len >= RECORD_HEADER_LEN && len == end {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_paid(len >= PAGE, context, memory_account))?;
            let end = if len < PAGE { end.min(PAGE) } else { end };
            ready!(socket.poll_read_ready(context))?;
            self.bytes.resize(end, 0);
            let read = socket.try_read(self.bytes.get_mut(len..).unwrap_or_default());
            self.bytes.truncate(len + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                _ => {}
            }
        }
    }

    /// Ready when the first page is paid for, or else `all` of the longest record.
    fn poll_paid(
        &mut self,
        all: bool,
        context: &mut Context<'_>,
        memory_account: &MemoryAccount,
    ) -> Poll<io::Result<()>> {
        let (first, rest) = (PAGE as u64, (MAX_RECORD - PAGE) as u64);
        let [small, large] = &mut self.paid;
        let (paid, bytes) = if all { (large, rest) } else { (small, first) };
        if paid.is_some() {
            return Poll::Ready(Ok(()));
        }
        let charge = match &mut self.paying {
            None => match memory_account.arena.try_charge(memory_account.share, bytes) {
                Err(ChargeError::Short) => {
                    let MemoryAccount { arena, share } = memory_account.clone();
                    self.paying = Some(Box::pin(async move { arena.charge(share, bytes).await }));
                    return self.poll_paid(all, context, memory_account);
                }
                answer => answer,
            },
            Some(paying) => {
                let answer = ready!(paying.as_mut().poll(context));
                self.paying = None;
                answer
            }
        };
        *paid = Some(charge.map_err(|_| io::ErrorKind::OutOfMemory)?);
        Poll::Ready(Ok(()))
    }
}
