//! A record that lives in the window it came in, where the journal is kept in memory.

use crate::journal::Receipt;
use crate::record::Header;
use crate::writer::Entry;

pub(crate) struct Held {
    pub(crate) slot: u32,
    pub(crate) header: Header,
    pub(crate) entry: Entry,
    /// The bytes of all records before it.
    pub(crate) bytes_before: u64,
}

impl Held {
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt { sequence: self.header.sequence, items_before: self.header.items_before }
    }
}
