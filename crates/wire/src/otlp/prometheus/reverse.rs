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
//! Series of one target that follow each other are of one resource. A request whose translation is large is written
//! in [`pieces`], down to single points, each of which says all that encloses it.
//!
//! # What is lost, or not joined
//! - A counter is known by its metadata: with 2.0 that of the series, with 1.0 the first 64 entries of the same
//!   request. What is not known is a gauge.
//! - The series of a classic histogram or of a summary stay single points under their own names, and
//!   `target_info` is a metric like others.
//! - Histograms of floats, and those with more than [`MOST_BUCKETS`] buckets or gaps between them: counted.
//! - Exemplars of a series without samples; metadata of families without series; hints at resets.
//! - Times before 1970, which become unknown.

mod histogram;
mod message_writer;
mod pieces;

use super::super::point::NO_RECORDED_VALUE;
use crate::output::Full;
use crate::proto::write;
use crate::remote_write::{Exemplar, Histogram, Label, Labels, Metadata, Request, STALE_NAN, Sample, Series};
use message_writer::BoundedWriter;
pub use pieces::{OtlpPieces, PiecePosition};

/// The most buckets of one histogram in one direction, empty ones between others included.
pub const MOST_BUCKETS: usize = 16 << 10;
/// How many entries of metadata of 1.0 are looked at.
const MOST_METADATA: usize = 64;
/// The schema of native histograms with custom bounds.
const CUSTOM: i32 = -53;
/// Of a family.
const COUNTER: u32 = 1;

/// The result of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OtlpTranslation {
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
pub fn from_remote_write(request: Request<'_>, space: &mut [u8]) -> Result<OtlpTranslation, Full> {
    pieces(request).write_whole(space)
}

/// The checked `request` as OTLP metrics requests, each as large as there is room for.
#[must_use]
pub fn pieces(request: Request<'_>) -> OtlpPieces<'_> {
    OtlpPieces::new(request)
}

/// The owner of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    fn write(&self, out: &mut BoundedWriter<'_>) -> Result<(), Full> {
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

/// The fate of a series' value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The properties that all points of a series share.
struct One<'s, 'a> {
    series: &'s Series<'a>,
    target: &'s Target<'a>,
    name: &'a [u8],
    /// How many labels it has: behind the last nothing more is looked for, since that would be a walk over all samples
    /// for each of them.
    labels: usize,
    about: Metadata<'a>,
}

impl One<'_, '_> {
    /// Writes a metric of this kind, with the points that `points` writes.
    fn metric(
        &self,
        kind: Kind,
        out: &mut BoundedWriter<'_>,
        points: impl FnOnce(&mut BoundedWriter<'_>) -> Result<(), Full>,
    ) -> Result<(), Full> {
        out.message(2, |out| {
            write::bytes(out, 1, self.name)?;
            for (field, text) in [(2, self.about.help), (3, self.about.unit)] {
                if !text.is_empty() {
                    write::bytes(out, field, text)?;
                }
            }
            out.message(kind.field(), |out| {
                points(out)?;
                out.ending(|out| {
                    if kind != Kind::Gauge {
                        write::varint(out, 2, 2)?;
                    }
                    if kind == Kind::Sum { write::varint(out, 3, 1) } else { Ok(()) }
                })
            })
        })
    }

    /// Attributes, and exemplars where they are wanted.
    fn rest(&self, kind: Kind, exemplars: bool, out: &mut BoundedWriter<'_>) -> Result<(), Full> {
        let (of_attributes, of_exemplars) = kind.fields();
        for Label { name, value } in self.series.labels().take(self.labels) {
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
                out.message(of_exemplars, |out| self::exemplar(exemplar, out))?;
            }
        }
        Ok(())
    }
}

fn number_point(sample: &Sample, out: &mut BoundedWriter<'_>) -> Result<(), Full> {
    times(sample.start_timestamp, sample.timestamp, out)?;
    if sample.bits == STALE_NAN {
        write::varint(out, 8, NO_RECORDED_VALUE.into())
    } else {
        write::fixed64(out, 4, sample.bits)
    }
}

fn exemplar(exemplar: Exemplar<Labels<'_>>, out: &mut BoundedWriter<'_>) -> Result<(), Full> {
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
fn times(start: i64, time: i64, out: &mut BoundedWriter<'_>) -> Result<(), Full> {
    for (field, milliseconds) in [(2, start), (3, time)] {
        let nanoseconds = u64::try_from(milliseconds).unwrap_or(0).saturating_mul(1_000_000);
        if nanoseconds > 0 {
            write::fixed64(out, field, nanoseconds)?;
        }
    }
    Ok(())
}

fn attribute(field: u32, key: &[u8], value: &[u8], out: &mut BoundedWriter<'_>) -> Result<(), Full> {
    let text = write::bytes_len(value.len() as u64);
    write::length(out, field, write::bytes_len(key.len() as u64) + write::bytes_len(text))?;
    write::bytes(out, 1, key)?;
    write::length(out, 2, text)?;
    write::bytes(out, 1, value)
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
