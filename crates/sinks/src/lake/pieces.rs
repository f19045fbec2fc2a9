//! Events and documents, said in OTLP a piece at a time before they become rows. All pieces of a record are one batch.

use super::{Lake, WriteFailure, wait};
use crate::body_parts::BodyParts;
use crate::clock::now_ns;
use crate::egress_budget::BorrowTurn;
use crate::losses::Losses;
use crate::otlp::wire_signal;
use tidegate_lake::{BatchPosition, BatchResult};
use tidegate_ledger::Dropped;
use tidegate_wire::output::Full;

/// How long a piece is, where no single item is longer.
const PIECE: usize = 256 << 10;

impl Lake {
    /// Pushes all that is said of a record of so many items, of which some are not to be taken. An item for which there
    /// is no room at all is too large, alone.
    pub(super) fn push_pieces(
        &mut self,
        position: &BatchPosition,
        mut pieces: impl BodyParts,
        (all, others): (u64, u64),
    ) -> Result<BatchResult, WriteFailure> {
        let Lake { writer, room, runtime, stop, .. } = self;
        let mut batch = writer.batch(position, now_ns()).map_err(WriteFailure::Lake)?;
        let (mut turn, mut is_pushed, mut booked, mut too_large) = (BorrowTurn::none(), false, 0, 0);
        // The buffer for parts, one after the other; and the smallest size of the next item, if it did not fit
        // before.
        let (mut window, mut at_least) = (None, 0);
        while let Some(wanted) = pieces.wanted(PIECE) {
            let wanted = wanted.max(at_least);
            if window.is_none() && wanted > room.longest_window() && !room.is_borrowing() {
                // No more is held than the lake's own part, as by all who wait for theirs.
                turn = wait(runtime, stop, room.turn())?;
            }
            let mut space = match window.take() {
                Some(space) => space,
                None => wait(runtime, stop, room.window(wanted.min(room.longest_window())))??,
            };
            space.clear();
            match pieces.write(space.spare_mut(), usize::MAX) {
                Ok(portion) => {
                    space.advance(portion.bytes);
                    booked += portion.booked;
                    if portion.items > 0
                        && let Some(signal) = wire_signal(pieces.signal())
                    {
                        batch.push_otlp(signal, &space).map_err(WriteFailure::Lake)?;
                        is_pushed = true;
                    }
                    // Memory for one large item is returned, and the turn to borrow with it.
                    window = (at_least == 0 && !turn.is_some()).then_some(space);
                    (turn, at_least) = (BorrowTurn::none(), 0);
                }
                Err(Full) => {
                    let had = space.bytes();
                    drop(space);
                    at_least = had.saturating_mul(2);
                    if room.is_borrowing() && had >= room.longest_window() {
                        let lost = pieces.pass_over().booked;
                        (booked, too_large, at_least) = (booked + lost, too_large + lost, 0);
                    }
                }
            }
        }
        drop((window, turn));
        let mut pushed = batch.end().map_err(WriteFailure::Lake)?;
        let items = all.saturating_sub(others);
        if !is_pushed {
            let why = if too_large > 0 { Dropped::TooLarge } else { Dropped::Untranslatable };
            return Err(WriteFailure::Nothing(Losses::of(why, items).and(Losses::passed_over(others))));
        }
        // Of an event there may be several rows.
        pushed.dropped.too_large = pushed.dropped.too_large.saturating_add(too_large).min(items);
        pushed.dropped.malformed += items.saturating_sub(booked);
        Ok(pushed)
    }
}
