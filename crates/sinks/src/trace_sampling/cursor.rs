//! The metadata that a watcher keeps with its cursor.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | 1: the version of this layout, little-endian |
//! | 4..8 | the version of the policies |
//! | 8..16 | the time up to which was decided without a record, in milliseconds since 1970 |
//! | 16..240 | the counters of rates at the cursor |

use tidegate_journal::{CURSOR_METADATA_LEN, CursorMetadata};
use tidegate_trace_sampling::Rates;

const LAYOUT: u32 = 1;
const HEAD: usize = 16;

/// The part of a watcher that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WatcherState {
    /// Nothing that is not written yet is received before that, in milliseconds since 1970.
    pub(super) floor_ms: u64,
    /// The counters at the cursor.
    pub(super) rates: Rates,
}

/// Reads what was kept. The counters of another version of the policies, or of a layout that this program does not know, begin anew: a second
/// of them is allowed twice.
pub(super) fn read(metadata: &CursorMetadata, version: u32) -> WatcherState {
    let number = |at: usize| metadata.get(at..).and_then(<[u8]>::first_chunk::<4>).copied();
    if number(0) != Some(LAYOUT.to_le_bytes()) {
        return WatcherState::default();
    }
    let floor_ms =
        metadata.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let rates = metadata.get(HEAD..).and_then(<[u8]>::first_chunk);
    let rates = rates.filter(|_| number(4) == Some(version.to_le_bytes()));
    WatcherState { floor_ms, rates: rates.map(Rates::from_bytes).unwrap_or_default() }
}

/// The state as bytes.
pub(super) fn write(kept: &WatcherState, version: u32) -> CursorMetadata {
    let mut metadata = [0; CURSOR_METADATA_LEN];
    let parts: [&[u8]; 4] =
        [&LAYOUT.to_le_bytes(), &version.to_le_bytes(), &kept.floor_ms.to_le_bytes(), &kept.rates.to_bytes()];
    let bytes = parts.into_iter().flatten();
    metadata.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    metadata
}

const _: () = assert!(HEAD + Rates::LEN <= CURSOR_METADATA_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let mut rates = [0; Rates::LEN];
        rates.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let kept = WatcherState { floor_ms: 1_700_000_000_123, rates: Rates::from_bytes(&rates) };
        let written = write(&kept, 7);
        assert_eq!(read(&written, 7), kept);
        assert_eq!(read(&written, 8), WatcherState { rates: Rates::default(), ..kept });
        assert_eq!(read(&[0; CURSOR_METADATA_LEN], 7), WatcherState::default());
    }
}
