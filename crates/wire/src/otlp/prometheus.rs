//! OTLP metrics as remote write, straight from the views to the output; and remote write as OTLP metrics, of
//! which [`from_remote_write`]'s file says what becomes of what.
//!
//! Rules: "Prometheus and OpenMetrics Compatibility" of the OpenTelemetry specification, and where that
//! leaves room, what Prometheus itself does with OTLP, so that a series has one name whichever way it came.
//!
//! | OTLP | becomes |
//! |---|---|
//! | gauge; sum that is not monotonic | gauge |
//! | monotonic sum | counter, `_total` |
//! | histogram | `_bucket` with `le`, `_sum`, `_count` |
//! | exponential histogram | native histogram; a scale above 8 is brought down to 8 |
//! | summary | series with `quantile`, `_sum`, `_count` |
//! | `service.namespace`/`service.name`, `service.instance.id` | `job`, `instance` |
//! | other attributes of the resource | `target_info`, with the time of the newest point; promoted ones labels as well |
//! | scope | `otel_scope_name`, `_version`, `_schema_url`, and its attributes as `otel_scope_…` |
//! | attributes | labels; what a name may not have becomes `_`, and `key` is put before what then begins with `_` or a digit; several that become one name are joined by `;` in the order of their keys |
//! | values that are no texts | numbers and booleans as JSON has them, `NaN`, `Infinity`, `-Infinity`, bytes in base64, arrays and maps as JSON, keys sorted |
//! | no recorded value | the stale marker |
//!
//! # What is lost
//! - Sums and histograms that are not cumulative, unless there is a memory of each series that adds them up
//!   ([`Deltas`], which says what it cannot); scales below -4: left out and counted in [`Dropped`].
//! - Points without a value, histograms whose bounds do not ascend or whose counts do not fit the bounds,
//!   metrics without a name: counted as `invalid`.
//! - Nanoseconds become milliseconds. Integers become doubles, exact up to 2⁵³.
//! - Exemplars of gauges and summaries, and of the rest those beyond 64 of a point, without a number for a
//!   value, or without room: counted. Of an exemplar whose labels exceed 128 characters the ids remain.
//! - Start times: 1.0 has none (counted); 2.0 has those of points, in milliseconds.
//! - Points with a map of more than 1,024 entries for a label's value: counted as `oversized`.
//! - `min` and `max` of histograms; the kinds of attribute values, which become text (arrays and maps JSON);
//!   flags, dropped counts, entities, the resource's schema; scope attributes called `name`, `version` and
//!   `schema_url`.
//! - An attribute that has the name of a label made here (`job`, `le`, …) gives way to it; a promoted
//!   attribute of the resource gives way to one of the point.
//! - A histogram without a sum: a classic one has no `_sum` series; a native one has a NaN for a sum, which
//!   is not the stale marker (the specification's choice of the stale marker would end the series).
//!
//! Points of one series in one request become a series each, in the order of the request.

mod deltas;
mod exemplars;
mod labels;
mod name;
mod native;
mod nesting;
mod point_range;
mod reverse;
mod series_output;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub use deltas::Deltas;
pub use reverse::{
    MOST_BUCKETS, OtlpPieces as RemoteWritePieces, OtlpTranslation, PiecePosition as RemoteWritePlace,
    from_remote_write, pieces as pieces_of_remote_write,
};

use crate::output::Output;
use crate::remote_write::RewriteError;
use deltas::DeltaError;
use exemplars::Exemplars;
use labels::Labels;
use point_range::PointRange;
use series_output::{SymbolCollector, Symbols, V1Output, V2Output};
use std::ops::Range;
use text::Text;
use walk::MetricTranslator;
pub use walk::PointPlace;

/// How names are made, by the names that Prometheus has for it (`otlp.translation_strategy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// Invalid characters become `_`; units and `_total` are appended.
    #[default]
    UnderscoreEscapingWithSuffixes,
    /// Invalid characters become `_`.
    UnderscoreEscapingWithoutSuffixes,
    /// Names stay as they are, with units and `_total` appended.
    NoUTF8EscapingWithSuffixes,
    /// Names stay as they are.
    NoTranslation,
}

impl Naming {
    fn escapes(self) -> bool {
        matches!(self, Self::UnderscoreEscapingWithSuffixes | Self::UnderscoreEscapingWithoutSuffixes)
    }
}

/// The options.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'s> {
    /// How names are made.
    pub naming: Naming,
    /// Attributes of the resource that become labels of each of its series.
    pub promote: &'s [String],
    /// Whether there are `otel_scope_…` labels.
    pub scope_labels: bool,
    /// Whether there is a `target_info` for each resource.
    pub target_info: bool,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { naming: Naming::default(), promote: &[], scope_labels: true, target_info: true }
    }
}

/// How much room a [`Scratch`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScratchCapacity {
    /// Labels of one series. A point with more is left out.
    pub labels: usize,
    /// Bytes of the labels of one series. A point with more is left out.
    pub label_bytes: usize,
    /// Distinct texts of a 2.0 request; not used for 1.0. A request with more is an error.
    pub symbols: usize,
    /// Bytes of those.
    pub symbol_bytes: usize,
}

impl Default for ScratchCapacity {
    /// 256 labels of 64 KiB, and no symbols.
    fn default() -> Self {
        Self { labels: 256, label_bytes: 64 << 10, symbols: 0, symbol_bytes: 0 }
    }
}

/// Scratch for translations, of a size known beforehand, to be kept and reused.
#[derive(Debug)]
pub struct Scratch {
    series: SeriesScratch,
    symbols: Symbols,
}

/// Scratch space for one series.
#[derive(Debug)]
struct SeriesScratch {
    labels: Labels,
    exemplars: Exemplars,
    name: Text,
    unit: Text,
    bound: Text,
}

/// The room for a metric's name with its suffixes, and for its unit.
const NAME_BYTES: usize = 4 << 10;
/// The longest double, without an exponent.
const NUMBER_BYTES: usize = 400;

impl Scratch {
    /// Scratch with so much room.
    #[must_use]
    pub fn new(capacity: ScratchCapacity) -> Self {
        let series = SeriesScratch {
            labels: Labels::new(capacity.labels, capacity.label_bytes),
            exemplars: Exemplars::new(),
            name: Text::new(NAME_BYTES),
            unit: Text::new(NAME_BYTES),
            bound: Text::new(NUMBER_BYTES),
        };
        Self { series, symbols: Symbols::new(capacity.symbols, capacity.symbol_bytes) }
    }

    /// How many bytes [`new`](Self::new) takes.
    #[must_use]
    pub fn bytes_for(capacity: ScratchCapacity) -> usize {
        let series = Labels::bytes_for(capacity.labels, capacity.label_bytes) + Exemplars::bytes();
        series + 2 * NAME_BYTES + NUMBER_BYTES + Symbols::bytes_for(capacity.symbols, capacity.symbol_bytes)
    }
}

/// The items that a translation left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Points that are not cumulative, and cannot or shall not be added up.
    pub delta: u64,
    /// Points to be added up that are not later than what was added last.
    pub late: u64,
    /// Points to be added up for whose series there is no room.
    pub crowded: u64,
    /// Points of exponential histograms with a scale below -4 or indexes beyond 32 bits.
    pub scale: u64,
    /// Points without a name, a value, or bounds that ascend.
    pub invalid: u64,
    /// Points whose labels have no room in the scratch.
    pub oversized: u64,
    /// Exemplars.
    pub exemplars: u64,
    /// Attributes without a key, and so without a label's name.
    pub labels: u64,
    /// `target_info` of resources that have no room for it.
    pub target_infos: u64,
    /// Start times of points, which 1.0 has not.
    pub start_timestamps: u64,
}

impl Dropped {
    /// Points, which are what the books count as items.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.delta + self.late + self.crowded + self.scale + self.invalid + self.oversized
    }

    fn refused(&mut self, refused: DeltaError) {
        match refused {
            DeltaError::Late => self.late += 1,
            DeltaError::Full => self.crowded += 1,
        }
    }
}

/// The result of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Translated {
    /// Series that were written.
    pub series: u64,
    /// Float samples in them.
    pub samples: u64,
    /// Native histograms in them.
    pub histograms: u64,
    /// Exemplars in them.
    pub exemplars: u64,
    /// The items left out.
    pub dropped: Dropped,
}

/// Writes the checked body `raw` of an OTLP metrics request as a 1.0 body.
///
/// # Errors
/// [`RewriteError::Full`] when the output is; it then holds a part that is of no use.
pub fn to_v1(
    raw: &[u8],
    settings: &Settings<'_>,
    scratch: &mut Scratch,
    out: &mut impl Output,
) -> Result<Translated, RewriteError> {
    points_to_v1(raw, PointRange::WHOLE, settings, scratch, None, out)
}

/// The same for a part of the request: these of its points, counted over all of it. `target_info` of a resource
/// comes with the part that has its last point, so that it comes once. Deltas are added up where there are `deltas`;
/// what this adds counts once it is [committed](Deltas::commit).
///
/// # Errors
/// As [`to_v1`].
pub fn points_to_v1(
    raw: &[u8],
    points: Range<u64>,
    settings: &Settings<'_>,
    scratch: &mut Scratch,
    deltas: Option<&mut Deltas>,
    out: &mut impl Output,
) -> Result<Translated, RewriteError> {
    let place = PointPlace::default();
    points_from_to_v1(raw, (place, points), settings, scratch, deltas, out).map(|(done, _)| done)
}

/// The same for points behind a place, which is that of a part that ended before them. With it comes where this part ends: parts that
/// begin where the one before ended walk over a request once, however many there are.
///
/// # Errors
/// As [`to_v1`].
pub fn points_from_to_v1(
    raw: &[u8],
    (place, points): (PointPlace, Range<u64>),
    settings: &Settings<'_>,
    scratch: &mut Scratch,
    mut deltas: Option<&mut Deltas>,
    out: &mut impl Output,
) -> Result<(Translated, PointPlace), RewriteError> {
    let (deltas, series) = (undone(&mut deltas), &mut scratch.series);
    let mut walk = MetricTranslator::new(settings, series, (place, points), deltas, V1Output::new(out));
    walk.request(raw)?;
    let mut done = walk.done();
    done.dropped.start_timestamps = walk.start_timestamps();
    Ok((done, walk.place()))
}

/// Writes the checked body `raw` of an OTLP metrics request as a 2.0 body. This translates twice: once for
/// the symbols, which come first, and once for the series.
///
/// # Errors
/// [`RewriteError::Full`] when the output is, [`RewriteError::Scratch`] when there are more symbols than the scratch has
/// room for; the output then holds a part that is of no use.
pub fn to_v2(
    raw: &[u8],
    settings: &Settings<'_>,
    scratch: &mut Scratch,
    out: &mut impl Output,
) -> Result<Translated, RewriteError> {
    points_to_v2(raw, PointRange::WHOLE, settings, scratch, None, out)
}

/// The same for a part of the request, as [`points_to_v1`] has it.
///
/// # Errors
/// As [`to_v2`].
pub fn points_to_v2(
    raw: &[u8],
    points: Range<u64>,
    settings: &Settings<'_>,
    scratch: &mut Scratch,
    mut deltas: Option<&mut Deltas>,
    out: &mut impl Output,
) -> Result<Translated, RewriteError> {
    let Scratch { series, symbols } = scratch;
    symbols.begin(out)?;
    let range = (PointPlace::default(), points);
    // Undo the first pass's additions, or the second would add them again.
    MetricTranslator::new(
        settings,
        series,
        range.clone(),
        undone(&mut deltas),
        SymbolCollector::new(symbols, out),
    )
    .request(raw)?;
    let mut walk =
        MetricTranslator::new(settings, series, range, undone(&mut deltas), V2Output::new(symbols, out));
    walk.request(raw)?;
    Ok(walk.done())
}

/// Without what was added and not kept.
fn undone<'d>(deltas: &'d mut Option<&mut Deltas>) -> Option<&'d mut Deltas> {
    let deltas = deltas.as_deref_mut()?;
    deltas.rollback();
    Some(deltas)
}

/// Nanoseconds as milliseconds.
fn milliseconds(nanoseconds: u64) -> i64 {
    (nanoseconds / 1_000_000).cast_signed()
}
