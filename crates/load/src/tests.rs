mod end_to_end;
mod hostile;
mod judge;
mod oracle;
mod otlp;
mod round_trip;

use crate::{SeriesModel, Timeline};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };

/// A small model in which every fifth series has histograms.
fn model(series: usize) -> SeriesModel {
    SeriesModel::with_histograms(7, series, TIMELINE, 5)
}
