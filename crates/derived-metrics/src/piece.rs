//! Pieces of a flush: requests that are not too large.

use crate::aggregator::Aggregator;
use crate::request::Request;
use tidegate_wire::output::{Full, Output};

/// A part of a flush: whole series of one tenant, as one OTLP request.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The tenant of all its series.
    pub tenant: &'a [u8],
    /// The place in the order of the flush where the next piece begins.
    pub next: u32,
    /// Its data points.
    pub data_points: u32,
    /// The length of the request. Zero where all series from there on were skipped: there is nothing to send.
    pub bytes: usize,
    /// Series before it that are too large for a request of their own.
    pub skipped: u32,
    request: Request<'a>,
}

impl Piece<'_> {
    /// Writes the message `ExportMetricsServiceRequest`: as many [`bytes`](Self::bytes) as it has.
    ///
    /// # Errors
    /// [`Full`] when the output is.
    pub fn write(&self, out: &mut impl Output) -> Result<(), Full> {
        self.request.encode(out)
    }
}

impl Aggregator {
    /// The piece of the flush under way that begins at the place `from`, with at most so many bytes. `None` where nothing is left.
    ///
    /// The first is at place 0. The places are the same after a restart: pieces that follow one another have each series once, whatever
    /// their sizes are.
    #[must_use]
    pub fn piece(&self, from: u32, most_bytes: usize) -> Option<Piece<'_>> {
        let flush = self.flush?;
        let (from, most_bytes) = (from as usize, most_bytes as u64);
        let request = Request {
            aggregator: self,
            series: self.order.get(from..).filter(|series| !series.is_empty())?,
            time_ns: flush.at_ms.saturating_mul(1_000_000),
        };
        let (mut skipped, mut taken, mut len) = (0, 0, 0);
        let mut last: Option<u32> = None;
        let tenant = |number: u32| self.resources.tenant(self.series.at(number).resource, &self.blob);
        for number in request.series {
            if last.is_some_and(|last| tenant(last) != tenant(*number)) {
                break;
            }
            let more = request.series_len_max(*number, last).unwrap_or(u64::MAX);
            if more <= most_bytes.saturating_sub(len) {
                (taken, len, last) = (taken + 1, len + more, Some(*number));
            } else if last.is_none() {
                skipped += 1;
            } else {
                break;
            }
        }
        let series = request.series.get(skipped..skipped + taken)?;
        let request = Request { series, ..request };
        let of_first = series.first().or(self.order.get(from)).map(|number| tenant(*number));
        Some(Piece {
            tenant: of_first.unwrap_or_default(),
            next: (from + skipped + taken) as u32,
            data_points: series.iter().map(|number| request.data_points(*number)).sum(),
            bytes: request.len().ok()?.try_into().ok()?,
            skipped: skipped as u32,
            request,
        })
    }
}
