//! OTLP metrics become series, a run of points at a time.

use super::{BodyInfo, Distributor, Placed, SeriesProtocol};
use crate::batch::DropReason;
use tidegate_wire::otlp::prometheus::{self as otlp, Scratch, ScratchCapacity};
use tidegate_wire::otlp::{Signal, items};
use tidegate_wire::output::SliceOutput;

/// The window that series are written to, in bytes: longer only for a point that needs it.
const WINDOW: usize = 128 << 10;
/// So many points make about that much.
const POINTS: u64 = 256;

/// The memory of a translation besides its window, in bytes.
pub(crate) fn scratch_bytes() -> usize {
    Scratch::bytes_for(ScratchCapacity::default())
}

impl<P: SeriesProtocol> Distributor<P> {
    /// Spreads the series of a checked OTLP metrics request; also the points that remote write cannot express.
    pub(super) async fn walk_otlp(
        &mut self,
        raw: &[u8],
        info: BodyInfo,
    ) -> Result<(Placed, u64), DropReason> {
        let mut scratch = Box::new(Scratch::new(ScratchCapacity::default()));
        let (mut from, all) = (0, items(Signal::Metrics, raw));
        let (mut points, mut placed, mut untranslatable) = (POINTS, Placed::default(), 0);
        let mut window = self.window(WINDOW).await?;
        while from < all {
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
            let written = otlp::points_to_v1(raw, from..to, &settings, &mut scratch, None, &mut out);
            let len = out.len();
            match written {
                Ok(done) => {
                    window.advance(len);
                    untranslatable += done.dropped.points();
                    let of_piece = Box::pin(self.walk(&window, info)).await?;
                    placed.unplaced += of_piece.unplaced;
                    from = to;
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
        Ok((placed, untranslatable))
    }
}
