//! Walks over bodies of metrics, as time series of remote write 1.0: each is hashed, and copied to the requests of its members.

mod otlp;

use super::{BodyInfo, Distributor, SpreadProtocol, Target};
use crate::batch::DropReason;
use crate::losses::Losses;
use crate::prometheus_remote_write::Translation;
use tidegate_arena::PAGE;
use tidegate_journal::{Meta, Protocol};
use tidegate_ledger::Dropped;
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::{Symbols, translate, v1, view_within};

/// Bytes of a body that are walked before others get their turn.
const TURN: usize = 128 << 10;
/// The memory for the symbol table of a body of 2.0, in bytes.
const SYMBOLS: usize = 64 << 10;

/// The memory that walks take beyond windows, in bytes.
pub(crate) fn scratch_bytes() -> usize {
    SYMBOLS + otlp::scratch_bytes()
}

/// A protocol whose items are time series.
pub(crate) trait SeriesProtocol: SpreadProtocol {
    /// The result of a lookup that series in a row share; its default before the first.
    type Known: Default + Send;

    /// How OTLP metrics become series.
    fn otlp(&self) -> &Translation;

    /// Finds the members of a series; none where its tenant has none.
    fn target<'s>(
        distributor: &mut Distributor<Self>,
        series: &v1::Series<'s>,
        info: &BodyInfo,
        known: &mut Self::Known,
    ) -> Target<'s, Self>;

    /// Finds the members of metadata of 1.0, given as its message and the metric family's name; `None` where it has no place in requests.
    fn metadata<'s>(
        _distributor: &Distributor<Self>,
        _family: &[u8],
        _message: &'s [u8],
    ) -> Option<Target<'s, Self>> {
        None
    }
}

impl<P: SeriesProtocol> Distributor<P> {
    /// Spreads the series of a body.
    ///
    /// # Errors
    /// When the rest of it cannot be sent.
    pub(crate) async fn spread_series(
        &mut self,
        meta: &Meta,
        raw: &[u8],
        info: &BodyInfo,
    ) -> Result<Losses, DropReason> {
        let placed = match meta.protocol {
            Protocol::RemoteWrite1 => Box::pin(self.walk(raw, info)).await?,
            Protocol::RemoteWrite2 => Box::pin(self.walk_v2(raw, info)).await?,
            Protocol::Otlp => return Box::pin(self.walk_otlp(raw, info)).await,
            _ => return Err(DropReason::Damaged),
        };
        // Metadata is an item of a body, and may have no place in requests.
        let untranslatable = u64::from(meta.items).saturating_sub(placed.items + placed.unplaced);
        let mut losses = Losses::of(Dropped::Untranslatable, untranslatable);
        losses.add(Dropped::Rejected, placed.unplaced);
        Ok(losses)
    }

    /// Spreads the series of a body of 1.0.
    pub(crate) async fn walk(&mut self, raw: &[u8], info: &BodyInfo) -> Result<Placed, DropReason> {
        let mut placed = Placed::default();
        let mut known = P::Known::default();
        let mut walked = 0;
        for entry in v1::Request::new(raw).entries() {
            let (target, len) = match entry {
                v1::Entry::Series(series) => {
                    (Some(P::target(self, &series, info, &mut known)), series.message().len())
                }
                v1::Entry::Metadata { family, message } => {
                    (P::metadata(self, family, message), message.len())
                }
            };
            if let Some(target) = target {
                placed.add(&target);
                self.place(&target, info).await?;
            }
            walked += len;
            if walked >= TURN {
                walked = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(placed)
    }

    /// The same of 2.0: each series is written as one of 1.0.
    async fn walk_v2(&mut self, raw: &[u8], info: &BodyInfo) -> Result<Placed, DropReason> {
        let mut symbols = Symbols::new();
        let request = view_within(raw, SYMBOLS, &mut symbols).map_err(|_| DropReason::Damaged)?;
        let (mut placed, mut known, mut walked) = (Placed::default(), P::Known::default(), 0);
        let mut scratch = self.window(PAGE).await?;
        for series in request.series() {
            loop {
                let mut out = SliceOutput::new(scratch.spare_mut());
                let written = translate::series_to_v1(std::iter::once(series), &mut out);
                let len = out.len();
                if written.is_ok() {
                    scratch.advance(len);
                    break;
                }
                let longer = 2 * scratch.bytes();
                self.release(scratch);
                scratch = self.window(longer).await?;
            }
            for series in v1::Request::new(&scratch).series() {
                let target = P::target(self, &series, info, &mut known);
                placed.add(&target);
                self.place(&target, info).await?;
            }
            scratch.clear();
            walked += series.message().len();
            if walked >= TURN {
                walked = 0;
                tokio::task::yield_now().await;
            }
        }
        self.release(scratch);
        Ok(placed)
    }
}

/// The items of a body, by whether they have members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Those that are in requests.
    pub(crate) items: u64,
    /// Those of tenants without members.
    pub(crate) unplaced: u64,
}

impl Placed {
    fn add<P: SpreadProtocol>(&mut self, target: &Target<'_, P>) {
        if target.members.is_empty() {
            self.unplaced += target.items;
        } else {
            self.items += target.items;
        }
    }
}
