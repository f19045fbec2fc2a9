//! Windows of one record, kept for the next: it is about as long, and the kernel need not bring their pages again.

use crate::egress_budget::Charged;
use tidegate_arena::Window;
use tokio::time::Instant;

/// The windows of a body as it is stored and as it was before compression. They are given up as soon as memory is short, and when no
/// record comes for a while.
#[derive(Default)]
pub(super) struct SpareWindows {
    kept: [Option<Charged<Window>>; 2],
    since: Option<Instant>,
}

impl SpareWindows {
    /// Keeps a window, if there are not two already.
    pub(super) fn keep(&mut self, mut window: Charged<Window>) {
        window.clear();
        if let Some(place) = self.kept.iter_mut().find(|place| place.is_none()) {
            *place = Some(window);
            self.since = Some(Instant::now());
        }
    }

    /// A window of `bytes`, if one is long enough and not much longer.
    pub(super) fn take(&mut self, bytes: usize) -> Option<Charged<Window>> {
        let suits = |window: &Charged<Window>| (bytes..=bytes.saturating_mul(2)).contains(&window.charged());
        self.kept.iter_mut().find(|place| place.as_ref().is_some_and(suits))?.take()
    }

    /// Since when the last one is kept.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Gives them up; says whether there was one.
    pub(super) fn clear(&mut self) -> bool {
        self.since = None;
        std::mem::take(&mut self.kept).iter().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress_budget::EgressBudget;
    use std::sync::Arc;
    use tidegate_arena::{Arena, Floors, PAGE, Share};

    #[tokio::test]
    async fn a_window_is_kept_for_a_record_that_is_about_as_long() {
        let part = 64 * PAGE;
        let floors = Floors::NONE.with(Share::Egress, part as u64);
        let arena = Arena::new(2 * part as u64, floors, part, 8, 8).unwrap();
        let room = EgressBudget::new(&arena, Share::Egress, part, &Arc::default());
        let mut spare = SpareWindows::default();
        for pages in [8, 1, 4] {
            let mut window = room.window(pages * PAGE).await.unwrap();
            window.append(b"of the record before").unwrap();
            spare.keep(window);
        }
        assert_eq!(room.held(), 9 * PAGE, "the third is given up");
        assert!(spare.take(9 * PAGE).is_none() && spare.take(3 * PAGE).is_none());
        let window = spare.take(5 * PAGE).unwrap();
        assert!(window.is_empty() && window.charged() == 8 * PAGE);
        assert!(spare.since().is_some() && spare.clear() && !spare.clear() && spare.since().is_none());
        drop(window);
        assert_eq!(room.held(), 0);
    }
}
