//! A data point as protobuf: <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto>.

use crate::attributes::Attributes;
use crate::exemplar::Exemplar;
use crate::exponential::{Sign, View};
use crate::number;
use crate::settings::InstrumentKind;
use tidegate_pipeline::Number;
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write::{self, Encode};

/// A data point of a metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'a> {
    pub(crate) kind: &'a InstrumentKind,
    pub(crate) words: &'a [u64],
    pub(crate) attributes: Attributes<'a>,
    pub(crate) start_ns: u64,
    pub(crate) time_ns: u64,
    pub(crate) exemplar: Option<&'a Exemplar>,
}

impl Encode for Point<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        // All three messages have them there.
        write::fixed64(out, 2, self.start_ns)?;
        write::fixed64(out, 3, self.time_ns)?;
        match self.kind {
            InstrumentKind::Count => {
                let count = i64::try_from(self.words.first().copied().unwrap_or(0)).unwrap_or(i64::MAX);
                self.number(Number::Int(count), out)
            }
            InstrumentKind::Sum { .. } | InstrumentKind::Gauge => {
                let value = self.words.first_chunk().and_then(|words| number::from_words(*words));
                self.number(value.unwrap_or(Number::Int(0)), out)
            }
            InstrumentKind::Histogram { bounds } => self.histogram(bounds, out),
            InstrumentKind::ExponentialHistogram { .. } => self.exponential_histogram(out),
        }
    }
}

impl Point<'_> {
    /// Fields of `NumberDataPoint`.
    fn number(&self, value: Number, out: &mut impl Output) -> Result<(), Full> {
        match value {
            Number::Double(value) => write::fixed64(out, 4, value.to_bits())?,
            Number::Int(value) => write::fixed64(out, 6, value.cast_unsigned())?,
        }
        self.exemplar(5, out)?;
        self.attributes.encode(7, out)
    }

    /// Fields of `HistogramDataPoint`.
    fn histogram(&self, bounds: &[f64], out: &mut impl Output) -> Result<(), Full> {
        let (sum, buckets) = self.words.split_first().unwrap_or((&0, &[]));
        let count = buckets.iter().fold(0_u64, |count, bucket| count.saturating_add(*bucket));
        write::fixed64(out, 4, count)?;
        write::fixed64(out, 5, *sum)?;
        write::length(out, 6, size_of_val(buckets) as u64)?;
        buckets.iter().try_for_each(|bucket| out.put(&bucket.to_le_bytes()))?;
        write::length(out, 7, size_of_val(bounds) as u64)?;
        bounds.iter().try_for_each(|bound| out.put(&bound.to_le_bytes()))?;
        self.exemplar(8, out)?;
        self.attributes.encode(9, out)
    }

    /// Fields of `ExponentialHistogramDataPoint`.
    fn exponential_histogram(&self, out: &mut impl Output) -> Result<(), Full> {
        let Some(view) = View::new(self.words) else { return Ok(()) };
        self.attributes.encode(1, out)?;
        write::fixed64(out, 4, view.count())?;
        write::fixed64(out, 5, view.sum().to_bits())?;
        write::varint(out, 6, zigzag(view.scale()))?;
        write::fixed64(out, 7, view.zero_count())?;
        write::message(out, 8, &Buckets(view, Sign::Positive))?;
        write::message(out, 9, &Buckets(view, Sign::Negative))?;
        self.exemplar(11, out)?;
        if view.count() > 0 {
            write::fixed64(out, 12, view.min().to_bits())?;
            write::fixed64(out, 13, view.max().to_bits())?;
        }
        Ok(())
    }

    fn exemplar(&self, field: u32, out: &mut impl Output) -> Result<(), Full> {
        let Some((exemplar, value)) = self.exemplar.and_then(|it| Some((it, it.number()?))) else {
            return Ok(());
        };
        write::message(out, field, &ExemplarMessage(exemplar, value))
    }
}

/// The message `Buckets`.
struct Buckets<'a>(View<'a>, Sign);

impl Encode for Buckets<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let Buckets(view, sign) = self;
        write::varint(out, 1, zigzag(view.offset(*sign)))?;
        write::length(out, 2, view.buckets(*sign).map(write::varint_len).sum())?;
        view.buckets(*sign).try_for_each(|bucket| write::raw_varint(out, bucket))
    }
}

/// The message `Exemplar`.
struct ExemplarMessage<'a>(&'a Exemplar, Number);

impl Encode for ExemplarMessage<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let ExemplarMessage(exemplar, value) = self;
        write::fixed64(out, 2, exemplar.at_ms.saturating_mul(1_000_000))?;
        match value {
            Number::Double(value) => write::fixed64(out, 3, value.to_bits())?,
            Number::Int(value) => write::fixed64(out, 6, value.cast_unsigned())?,
        }
        write::bytes(out, 4, &exemplar.span_id)?;
        write::bytes(out, 5, &exemplar.trace_id)
    }
}

fn zigzag(value: i32) -> u64 {
    (value << 1 ^ value >> 31).cast_unsigned().into()
}
