//! Remote write as OTLP metrics.
//!
//! | remote write | becomes |
//! |---|---|
//! | name, help, unit | the metric's, as they are |
//! | float samples of a counter | points of a monotonic cumulative sum, with the start time where 2.0 gives it |
//! | other float samples | points of a gauge |
//! | native histogram | exponential histogram |
//! | native histogram with custom bounds | histogram |
//! | `job` | `service.name` of the resource; before a slash `service.namespace` |
//! | `instance` | `service.instance.id` |
//! | other labels | attributes of each point |
//! | stale marker | no recorded value |
//! | exemplars | those of the series' last point; `trace_id` and `span_id` as ids, if they are |
//!
//! Series of one target that follow each other are of one resource.
//!
//! # What is lost, or not joined
//! - A counter is known by its metadata: with 2.0 that of the series, with 1.0 the first 64 entries of the same
//!   request. What is not known is a gauge.
//! - The series of a classic histogram or of a summary stay single points under their own names, and
//!   `target_info` is a metric like others.
//! - Histograms of floats, and those with more than [`MOST_BUCKETS`] buckets or gaps between them: counted.
//! - Exemplars of a series without samples; metadata of families without series; hints at resets.
//! - Times before 1970, which become unknown.

use super::super::point::NO_RECORDED_VALUE;
use crate::output::{Full, Output};
use crate::proto::write;
use crate::remote_write::{
    Count, Exemplar, Histogram, Label, Labels, Metadata, Request, STALE_NAN, Sample, Series, Span,
};

/// The most buckets of one histogram in one direction, empty ones between others included.
pub const MOST_BUCKETS: usize = 16 << 10;
/// How many entries of metadata of 1.0 are looked at.
const MOST_METADATA: usize = 64;
/// The schema of native histograms with custom bounds.
const CUSTOM: i32 = -53;
/// Of a family.
const COUNTER: u32 = 1;
/// Of a histogram that may fall.
const GAUGE_HINT: u32 = 3;

/// What came of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reversed {
    /// How many bytes were written.
    pub bytes: usize,
    /// Points in them.
    pub points: u64,
    /// Exemplars in them.
    pub exemplars: u64,
    /// Samples and histograms that OTLP cannot say: of series without a name, of floats, of too many buckets.
    pub dropped: u64,
    /// Exemplars of series without samples.
    pub dropped_exemplars: u64,
}

/// Writes the checked `request` as an OTLP metrics request to the start of `space`.
///
/// # Errors
/// [`Full`] when that is too small; it then holds a part that is of no use.
pub fn from_remote_write(request: Request<'_>, space: &mut [u8]) -> Result<Reversed, Full> {
    let mut out = Page { space, len: 0 };
    let mut done = Reversed::default();
    let known = match request {
        Request::V1(_) => Some(request),
        Request::V2(_) => None,
    };
    let mut all = request.series().peekable();
    while let Some(first) = all.peek() {
        let target = Target::of(first);
        out.message(1, |out| {
            out.message(1, |out| target.write(out))?;
            out.message(2, |out| {
                while let Some(series) = all.next_if(|series| Target::of(series) == target) {
                    self::series(&series, &target, known, out, &mut done)?;
                }
                Ok(())
            })
        })?;
    }
    done.bytes = out.len;
    Ok(done)
}

/// Whom a series is of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Target<'a> {
    job: Option<&'a [u8]>,
    instance: Option<&'a [u8]>,
}

impl<'a> Target<'a> {
    fn of(series: &Series<'a>) -> Self {
        let mut target = Self { job: None, instance: None };
        for Label { name, value } in series.labels() {
            match name {
                b"job" => target.job = Some(value),
                b"instance" => target.instance = Some(value),
                _ => {}
            }
        }
        target
    }

    fn write(&self, out: &mut Page<'_>) -> Result<(), Full> {
        if let Some(job) = self.job {
            let slash = job.iter().position(|byte| *byte == b'/');
            let parts = slash.and_then(|at| Some((job.get(..at)?, job.get(at + 1..)?)));
            match parts.filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty()) {
                Some((namespace, name)) => {
                    attribute(1, b"service.namespace", namespace, out)?;
                    attribute(1, b"service.name", name, out)?;
                }
                None => attribute(1, b"service.name", job, out)?,
            }
        }
        match self.instance {
            Some(instance) => attribute(1, b"service.instance.id", instance, out),
            None => Ok(()),
        }
    }
}

/// What becomes of a value of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Sum,
    Histogram,
    Exponential,
}

impl Kind {
    fn of(histogram: &Histogram<'_>) -> Self {
        if histogram.schema == CUSTOM { Self::Histogram } else { Self::Exponential }
    }

    /// The field of a metric.
    fn field(self) -> u32 {
        match self {
            Self::Gauge => 5,
            Self::Sum => 7,
            Self::Histogram => 9,
            Self::Exponential => 10,
        }
    }

    /// The field of its points that holds attributes, and that of exemplars.
    fn fields(self) -> (u32, u32) {
        match self {
            Self::Gauge | Self::Sum => (7, 5),
            Self::Histogram => (9, 8),
            Self::Exponential => (1, 11),
        }
    }
}

/// One series as one metric, or as one for each kind of value that it has.
fn series<'a>(
    series: &Series<'a>,
    target: &Target<'a>,
    known: Option<Request<'a>>,
    out: &mut Page<'_>,
    done: &mut Reversed,
) -> Result<(), Full> {
    let name = series.label(b"__name__").unwrap_or_default();
    let (samples, histograms) = (series.samples().count() as u64, series.histograms().count() as u64);
    if name.is_empty() {
        done.dropped += samples + histograms;
        done.dropped_exemplars += series.exemplars().count() as u64;
        return Ok(());
    }
    let about =
        series.metadata().or_else(|| known.and_then(|request| found(request, name))).unwrap_or_default();
    let one = One { series, target, name, about };
    let before = done.points;
    if samples > 0 {
        let kind = if about.kind == COUNTER { Kind::Sum } else { Kind::Gauge };
        let last = samples - 1;
        one.metric(kind, out, done, |out, done| {
            for (number, sample) in series.samples().enumerate() {
                let exemplars = number as u64 == last;
                done.points += 1;
                out.message(1, |out| {
                    number_point(&sample, out)?;
                    one.rest(kind, exemplars, out, done)
                })?;
            }
            Ok(())
        })?;
    }
    for kind in [Kind::Histogram, Kind::Exponential] {
        let of_kind = || series.histograms().filter(|histogram| Kind::of(histogram) == kind);
        let sayable = of_kind().filter(is_sayable).count();
        done.dropped += (of_kind().count() - sayable) as u64;
        if sayable == 0 {
            continue;
        }
        let exemplars_here = samples == 0;
        one.metric(kind, out, done, |out, done| {
            for (number, histogram) in of_kind().filter(is_sayable).enumerate() {
                let exemplars =
                    exemplars_here && number + 1 == sayable && done.points == before + number as u64;
                done.points += 1;
                out.message(1, |out| {
                    histogram_point(&histogram, kind, out)?;
                    one.rest(kind, exemplars, out, done)
                })?;
            }
            Ok(())
        })?;
    }
    if done.points == before {
        done.dropped_exemplars += series.exemplars().count() as u64;
    }
    Ok(())
}

/// What a 1.0 request says about the family `name`.
fn found<'a>(request: Request<'a>, name: &[u8]) -> Option<Metadata<'a>> {
    request.metadata().take(MOST_METADATA).find(|metadata| metadata.family == name)
}

/// What all points of a series have in common.
struct One<'s, 'a> {
    series: &'s Series<'a>,
    target: &'s Target<'a>,
    name: &'a [u8],
    about: Metadata<'a>,
}

impl One<'_, '_> {
    fn metric(
        &self,
        kind: Kind,
        out: &mut Page<'_>,
        done: &mut Reversed,
        points: impl FnOnce(&mut Page<'_>, &mut Reversed) -> Result<(), Full>,
    ) -> Result<(), Full> {
        out.message(2, |out| {
            write::bytes(out, 1, self.name)?;
            for (field, text) in [(2, self.about.help), (3, self.about.unit)] {
                if !text.is_empty() {
                    write::bytes(out, field, text)?;
                }
            }
            out.message(kind.field(), |out| {
                points(out, done)?;
                if kind != Kind::Gauge {
                    write::varint(out, 2, 2)?;
                }
                if kind == Kind::Sum { write::varint(out, 3, 1) } else { Ok(()) }
            })
        })
    }

    /// Attributes, and exemplars where they are wanted.
    fn rest(&self, kind: Kind, exemplars: bool, out: &mut Page<'_>, done: &mut Reversed) -> Result<(), Full> {
        let (of_attributes, of_exemplars) = kind.fields();
        for Label { name, value } in self.series.labels() {
            let is_said = match name {
                b"__name__" => true,
                b"job" => self.target.job.is_some(),
                b"instance" => self.target.instance.is_some(),
                _ => false,
            };
            if !is_said {
                attribute(of_attributes, name, value, out)?;
            }
        }
        if exemplars {
            for exemplar in self.series.exemplars() {
                done.exemplars += 1;
                out.message(of_exemplars, |out| self::exemplar(exemplar, out))?;
            }
        }
        Ok(())
    }
}

fn number_point(sample: &Sample, out: &mut Page<'_>) -> Result<(), Full> {
    times(sample.start_timestamp, sample.timestamp, out)?;
    if sample.bits == STALE_NAN {
        write::varint(out, 8, NO_RECORDED_VALUE.into())
    } else {
        write::fixed64(out, 4, sample.bits)
    }
}

/// A point of either kind of histogram: most of their fields have the same numbers.
fn histogram_point(histogram: &Histogram<'_>, kind: Kind, out: &mut Page<'_>) -> Result<(), Full> {
    times(histogram.start_timestamp, histogram.timestamp, out)?;
    if histogram.sum_bits == STALE_NAN {
        return write::varint(out, 10, NO_RECORDED_VALUE.into());
    }
    write::fixed64(out, 4, int(histogram.count).unwrap_or(0))?;
    write::fixed64(out, 5, histogram.sum_bits)?;
    if kind == Kind::Histogram {
        let (first, counts) = positive(histogram);
        // Custom buckets count from 0, and there is one more than bounds.
        let (leading, all) = (usize::try_from(first).unwrap_or(0), histogram.custom_values().count() + 1);
        out.message(6, |out| {
            let counts = std::iter::repeat_n(0, leading).chain(counts).chain(std::iter::repeat(0));
            counts.take(all).try_for_each(|count| out.put(&count.to_le_bytes()))
        })?;
        return out
            .message(7, |out| histogram.custom_values().try_for_each(|bound| out.put(&bound.to_le_bytes())));
    }
    write::varint(out, 6, zigzag(histogram.schema))?;
    write::fixed64(out, 7, int(histogram.zero_count).unwrap_or(0))?;
    let (first, counts) = positive(histogram);
    buckets(8, first, counts, out)?;
    let (first, counts) = negative(histogram);
    buckets(9, first, counts, out)?;
    write::fixed64(out, 14, histogram.zero_threshold_bits)
}

/// Buckets of an exponential histogram; the first of them is `first` as Prometheus counts.
fn buckets(
    field: u32,
    first: i64,
    mut counts: impl Iterator<Item = u64>,
    out: &mut Page<'_>,
) -> Result<(), Full> {
    out.message(field, |out| {
        // Prometheus names a bucket by its upper bound, OTLP by its lower.
        let offset = i32::try_from(first.saturating_sub(1)).unwrap_or_default();
        write::varint(out, 1, zigzag(offset))?;
        out.message(2, |out| counts.try_for_each(|count| write::raw_varint(out, count)))
    })
}

/// The number of the first bucket above zero, and the counts from there on, without gaps.
fn positive<'a>(histogram: &Histogram<'a>) -> (i64, impl Iterator<Item = u64> + use<'a>) {
    (first(histogram.positive_spans()), dense(histogram.positive_spans(), histogram.positive_deltas()))
}

fn negative<'a>(histogram: &Histogram<'a>) -> (i64, impl Iterator<Item = u64> + use<'a>) {
    (first(histogram.negative_spans()), dense(histogram.negative_spans(), histogram.negative_deltas()))
}

fn first(mut spans: impl Iterator<Item = Span>) -> i64 {
    spans.next().map_or(1, |span| span.offset.into())
}

fn dense(
    spans: impl Iterator<Item = Span>,
    mut deltas: impl Iterator<Item = i64>,
) -> impl Iterator<Item = u64> {
    let mut count = 0i64;
    let slots = spans.enumerate().flat_map(|(number, span)| {
        let gap = if number == 0 { 0 } else { usize::try_from(span.offset).unwrap_or(0) };
        let full = usize::try_from(span.length).unwrap_or(usize::MAX);
        std::iter::repeat_n(false, gap).chain(std::iter::repeat_n(true, full))
    });
    slots.take(MOST_BUCKETS).map(move |full| {
        if !full {
            return 0;
        }
        count = count.wrapping_add(deltas.next().unwrap_or(0));
        u64::try_from(count).unwrap_or(0)
    })
}

/// Whether OTLP has a form for it.
fn is_sayable(histogram: &Histogram<'_>) -> bool {
    if histogram.sum_bits == STALE_NAN {
        return true;
    }
    let ints = [histogram.count, histogram.zero_count]
        .into_iter()
        .all(|count| !matches!(count, Some(Count::Float(_))));
    let fits = |spans: &mut dyn Iterator<Item = Span>| {
        let (first, mut end) = match spans.next() {
            Some(span) => (i64::from(span.offset), i64::from(span.offset) + i64::from(span.length)),
            None => return Some((0, 0)),
        };
        for span in spans {
            // Spans that run into each other say nothing that is known.
            end += i64::from(u32::try_from(span.offset).ok()?) + i64::from(span.length);
        }
        let fits = end - first <= MOST_BUCKETS as i64 && i32::try_from(first - 1).is_ok();
        (fits && i32::try_from(end).is_ok()).then_some((first, end))
    };
    let Some((first, end)) = fits(&mut histogram.positive_spans()) else { return false };
    let below = fits(&mut histogram.negative_spans());
    let shape = if histogram.schema == CUSTOM {
        let bounds = histogram.custom_values().count() as i64;
        first >= 0 && end <= bounds + 1 && below == Some((0, 0))
    } else {
        (-4..=8).contains(&histogram.schema) && below.is_some()
    };
    ints && shape && histogram.reset_hint != GAUGE_HINT
}

fn exemplar(exemplar: Exemplar<Labels<'_>>, out: &mut Page<'_>) -> Result<(), Full> {
    times(0, exemplar.timestamp, out)?;
    write::fixed64(out, 3, exemplar.bits)?;
    for Label { name, value } in exemplar.labels {
        match name {
            b"span_id" if let Some(id) = hex::<8>(value) => write::bytes(out, 4, &id)?,
            b"trace_id" if let Some(id) = hex::<16>(value) => write::bytes(out, 5, &id)?,
            _ => attribute(7, name, value, out)?,
        }
    }
    Ok(())
}

/// Both times in nanoseconds, where they are known.
fn times(start: i64, time: i64, out: &mut Page<'_>) -> Result<(), Full> {
    for (field, milliseconds) in [(2, start), (3, time)] {
        let nanoseconds = u64::try_from(milliseconds).unwrap_or(0).saturating_mul(1_000_000);
        if nanoseconds > 0 {
            write::fixed64(out, field, nanoseconds)?;
        }
    }
    Ok(())
}

fn attribute(field: u32, key: &[u8], value: &[u8], out: &mut Page<'_>) -> Result<(), Full> {
    let text = write::bytes_len(value.len() as u64);
    write::length(out, field, write::bytes_len(key.len() as u64) + write::bytes_len(text))?;
    write::bytes(out, 1, key)?;
    write::length(out, 2, text)?;
    write::bytes(out, 1, value)
}

fn int(count: Option<Count>) -> Option<u64> {
    match count? {
        Count::Int(count) => Some(count),
        Count::Float(_) => None,
    }
}

fn zigzag(value: i32) -> u64 {
    u64::from((value << 1 ^ value >> 31).cast_unsigned())
}

/// Bytes from as many hexadecimal digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut id = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, digits) in id.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = digits else { return None };
        let (high, low) = (char::from(*high).to_digit(16)?, char::from(*low).to_digit(16)?);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(id)
}

/// An output in which what was written can be moved, so that the length of a message can be put before it when it
/// is known.
struct Page<'o> {
    space: &'o mut [u8],
    len: usize,
}

impl Output for Page<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.space.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

impl Page<'_> {
    /// Writes a message, whose fields `write` puts. Most are shorter than 16 KiB: longer and shorter ones are moved.
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        const EXPECTED: usize = 2;
        write::raw_varint(self, u64::from(field) << 3 | 2)?;
        let start = self.len;
        self.put(&[0; EXPECTED])?;
        write(self)?;
        let (from, end) = (start + EXPECTED, self.len);
        let length = write::Varint::new((end - from) as u64);
        let length = length.as_bytes();
        let to = start + length.len();
        let moved_end = to + (end - from);
        if moved_end > self.space.len() {
            return Err(Full);
        }
        if to != from {
            self.space.copy_within(from..end, to);
        }
        self.space.get_mut(start..to).ok_or(Full)?.copy_from_slice(length);
        self.len = moved_end;
        Ok(())
    }
}
