//! One append on its way through the journal: the batch before it is written, its outcome, and its record if the
//! journal is kept in memory.

use crate::checkpoints::Checkpoints;
use crate::meta::Meta;
use crate::record::{Header, size_of_record};
use crate::settings::AppendError;
use tidegate_arena::Window;

/// The append is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The record's number.
    pub sequence: u64,
    /// The items of all records before it, since the journal was created.
    pub items_before: u64,
}

/// An append's outcome.
pub(crate) type AppendResult = Result<Receipt, AppendError>;

/// A batch on its way to the disk.
pub(crate) struct PendingAppend {
    pub(crate) meta: Meta,
    pub(crate) window: Window,
    pub(crate) from: usize,
    pub(crate) len: u32,
    pub(crate) crc: u32,
    /// Its note, and its recipient.
    pub(crate) checkpoints: Checkpoints,
}

impl PendingAppend {
    pub(crate) fn body(&self) -> &[u8] {
        self.window.get(self.from..self.from + self.len as usize).unwrap_or_default()
    }

    /// The memory of its window, in bytes.
    pub(crate) fn charged(&self) -> u64 {
        self.window.charged() as u64
    }

    /// Its header as a record with this key, sequence and items before.
    pub(crate) fn header(&self, key: u64, sequence: u64, items_before: u64) -> Header {
        let header = Header::new(key, sequence, items_before, &self.meta, self.len, self.crc);
        // At most SINK_NAME_MAX, as the journal checked.
        let recipient_len = u8::try_from(self.checkpoints.recipient().len()).unwrap_or(0);
        Header { recipient_len, note_len: self.checkpoints.note_len(), ..header }
    }

    pub(crate) fn size(&self) -> u64 {
        let prefix = self.meta.tenant.as_str().len() + self.checkpoints.recipient().len();
        size_of_record(prefix + self.checkpoints.note().len(), self.len)
    }
}

/// A record in the window that it was received in, if the journal is kept in memory.
pub(crate) struct InMemoryRecord {
    pub(crate) slot: u32,
    pub(crate) header: Header,
    pub(crate) entry: PendingAppend,
    /// The bytes of all records before it.
    pub(crate) bytes_before: u64,
}

impl InMemoryRecord {
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt { sequence: self.header.sequence, items_before: self.header.items_before }
    }
}
