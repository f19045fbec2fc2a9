//! OTLP metrics become series, a run of points at a time.

use super::{BodyInfo, Distributor, SeriesProtocol};
use crate::batch::DropReason;
use crate::egress_budget::{BudgetError, Charged};
use crate::losses::Losses;
use crate::prometheus_remote_write::share_of;
use tidegate_arena::Window;
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::prometheus::{self as otlp, PointPlace, Scratch, ScratchCapacity};
use tidegate_wire::otlp::{Signal, items};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::Version;

/// The window that series are written to, in bytes: longer only for a point that needs it.
const WINDOW: usize = 128 << 10;
/// So many points make about that much.
const POINTS: u64 = 256;

/// The memory of a translation besides its window, in bytes.
pub(crate) fn scratch_bytes() -> usize {
    Scratch::bytes_for(ScratchCapacity::default())
}

impl<P: SeriesProtocol> Distributor<P> {
    /// Spreads the series of a checked OTLP metrics request. Points that remote write cannot express are among the losses, and those whose
    /// series the sink's pipeline drops.
    pub(super) async fn walk_otlp(&mut self, raw: &[u8], info: &BodyInfo) -> Result<Losses, DropReason> {
        let mut scratch = Box::new(Scratch::new(ScratchCapacity::default()));
        let (mut from, all) = (0, items(Signal::Metrics, raw));
        let (mut place, mut points, mut losses) = (PointPlace::default(), POINTS, Losses::NONE);
        let mut window = self.window(WINDOW).await?;
        while from < all {
            // Points that remote write cannot express take time, and make nothing that is waited for.
            tokio::task::yield_now().await;
            let to = from.saturating_add(points).min(all);
            window.clear();
            let translation = self.context.protocol.otlp().clone();
            let settings = otlp::Settings {
                naming: translation.naming,
                promote: &translation.promote,
                scope_labels: translation.scope_labels,
                target_info: translation.target_info,
            };
            let mut out = SliceOutput::new(window.spare_mut());
            let part = (place, from..to);
            let written = otlp::points_from_to_v1(raw, part, &settings, &mut scratch, None, &mut out);
            let len = out.len();
            match written {
                Ok((done, end)) => {
                    window.advance(len);
                    let untranslatable = done.dropped.points();
                    let entries = done.samples + done.histograms + done.exemplars;
                    let said = (to - from).saturating_sub(untranslatable);
                    let filtered;
                    (window, filtered) = match self.relabeled(window, said, entries).await {
                        Ok(relabeled) => relabeled,
                        Err(error) => {
                            // It took the window along.
                            if error == BudgetError::Never && to - from > 1 {
                                points = (to - from) / 2;
                            } else {
                                self.make_room(error).await?;
                            }
                            window = self.window(WINDOW).await?;
                            continue;
                        }
                    };
                    let placed = Box::pin(self.walk(&window, info)).await?;
                    losses.add(Dropped::Untranslatable, untranslatable);
                    losses.add(Dropped::Filtered, filtered);
                    losses.add(Dropped::Rejected, placed.unplaced);
                    (from, place) = (to, end);
                    if len < WINDOW / 4 {
                        points = points.saturating_mul(2);
                    }
                }
                Err(_) if to - from > 1 => points = (to - from) / 2,
                Err(_) => {
                    let longer = 2 * window.bytes();
                    self.release(window);
                    window = self.window(longer).await?;
                }
            }
        }
        self.release(window);
        Ok(losses)
    }

    /// The series of a piece of `points` points and so many entries, as the sink's pipeline relabels them, and the points whose series it drops.
    /// The window goes with an error, and is not the record's any more.
    async fn relabeled(
        &mut self,
        window: Charged<Window>,
        points: u64,
        entries: u64,
    ) -> Result<(Charged<Window>, u64), BudgetError> {
        let Some(relabeling) = &mut self.relabeling else { return Ok((window, 0)) };
        self.own = self.own.saturating_sub(window.bytes());
        let room = &self.context.room;
        let (window, left) = Box::pin(relabeling.apply(window, Version::V1, entries, room)).await?;
        relabeling.keep();
        self.own += window.bytes();
        Ok((window, points.saturating_sub(share_of(points, left.into(), entries.into()))))
    }
}
