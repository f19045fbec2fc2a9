//! Takes documents out of a outbound before it is sent.

use super::record_shares::{IndexWait, OutcomeRuns, RecordShare};
use std::sync::Arc;
use tidegate_arena::Window;
use tidegate_wire::bulk::{Item, checked_items};

/// How much is looked at before others get their turn.
const TURN: usize = 128 << 10;

/// Which documents are sent.
#[derive(Debug, Clone, Default)]
pub(super) enum ItemChoice {
    /// All.
    #[default]
    All,
    /// All but those of these indexes, which take none now.
    Without(Arc<[Arc<str>]>),
    /// Those that wait for an index, by the outbound's records.
    Only(Arc<[IndexWait]>),
}

/// The name of an item's index, as it stands in its action.
pub(super) fn index_of<'a>(item: &Item<'a>) -> &'a [u8] {
    let index = item.action.index.unwrap_or_default();
    index.strip_prefix(b"\"").and_then(|index| index.strip_suffix(b"\"")).unwrap_or(index)
}

/// Takes out of the lines in `window` the documents that are not picked. Those that are left out for their index wait
/// for it from now on.
pub(super) async fn filter_items(
    window: &mut Window,
    runs: &mut OutcomeRuns,
    shares: &mut [RecordShare],
    pick: &ItemChoice,
) {
    let mut held_out = |item: &Item<'_>, share: usize, number: u64| match pick {
        ItemChoice::All => true,
        ItemChoice::Without(indexes) => {
            let index = index_of(item);
            let Some(index) = indexes.iter().find(|known| known.as_bytes() == index) else { return true };
            if let Some(share) = shares.get_mut(share) {
                share.wait(index, number);
            }
            false
        }
        ItemChoice::Only(waits) => waits.get(share).is_some_and(|wait| wait.has(number, index_of(item))),
    };
    if !matches!(pick, ItemChoice::All) {
        retain(window, runs, &mut held_out).await;
    }
}

/// Keeps the documents for which `keep` says so, by their lines, their record and their number in it.
pub(super) async fn retain(
    window: &mut Window,
    runs: &mut OutcomeRuns,
    mut keep: impl FnMut(&Item<'_>, usize, u64) -> bool,
) {
    let (mut from, mut to, mut turn) = (0, 0, TURN);
    let mut kept = OutcomeRuns::default();
    let mut places = runs.each();
    while let Some(Ok(item)) = checked_items(window.get(from..).unwrap_or_default()).next() {
        let place = places.next();
        let begin = item.bytes.as_ptr().addr() - window.as_ptr().addr();
        let range = begin..begin + item.bytes.len();
        // There are as many as the record says, of which nobody has more to say.
        let is_kept = place.is_none_or(|(share, number)| keep(&item, share, number));
        from = range.end;
        if is_kept {
            if let Some((share, number)) = place {
                kept.push(share, number, 1);
            }
            let len = range.len();
            if range.start != to {
                window.copy_within(range, to);
            }
            to += len;
        }
        if from >= turn {
            turn = from + TURN;
            tokio::task::yield_now().await;
        }
    }
    drop(places);
    window.truncate(to);
    *runs = kept;
}
