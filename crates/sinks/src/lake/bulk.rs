//! Documents of `_bulk` bodies, said in OTLP before they become rows.

use super::{Failure, Lake};
use crate::room::{Held, NoRoom};
use tidegate_arena::Window;
use tidegate_elastic::documents::{Logs, to_otlp_logs, usual_logs_len};
use tidegate_journal::Meta;
use tidegate_ledger::Dropped;
use tidegate_wire::output::Full;

impl Lake {
    /// Says the documents of a body as log records, in twice the room whenever there was not enough. Also how many
    /// of the record's items are none of these.
    pub(super) fn documents(&self, raw: &[u8], meta: &Meta) -> Result<(Held<Window>, u64), Failure> {
        let mut len = usual_logs_len(raw.len());
        loop {
            let mut window = self.wait(self.room.window(len))??;
            match to_otlp_logs(raw, meta.received_at_ns, window.spare_mut()) {
                Ok(Logs { records: 0, .. }) => return Err(Failure::Lost(Dropped::Untranslatable)),
                Ok(logs) => {
                    window.advance(logs.bytes);
                    return Ok((window, u64::from(meta.items).saturating_sub(logs.records)));
                }
                // It takes no more than some times as much: then the fault is elsewhere.
                Err(Full) if len / 64 > raw.len() => return Err(Failure::Lost(Dropped::Untranslatable)),
                Err(Full) => len = len.checked_mul(2).ok_or(Failure::Room(NoRoom::Never))?,
            }
        }
    }
}
