//! The exemplars of one point, made ready for the series that take them.

use super::Settings;
use super::labels::{Labels, Origin};
use super::text::BufferFull;
use crate::otlp::point::{Exemplar, Number};
use crate::remote_write::Label;

/// How many exemplars of a point are translated: one with more has lost its measure of what is exemplary.
const MOST: usize = 64;
/// How many characters OpenMetrics allows the labels of an exemplar.
const CHARACTERS: usize = 128;

/// Exemplars in room that is taken once.
#[derive(Debug)]
pub(super) struct Exemplars {
    labels: Labels,
    found: Vec<Translated>,
}

/// One exemplar; its labels are in [`Exemplars::labels`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Translated {
    from: usize,
    to: usize,
    pub(super) bits: u64,
    pub(super) timestamp: i64,
}

impl Exemplars {
    const LABELS: usize = MOST * 16;
    const BYTES: usize = MOST * 256;

    pub(super) fn new() -> Self {
        Self { labels: Labels::new(Self::LABELS, Self::BYTES), found: Vec::with_capacity(MOST) }
    }

    pub(super) fn bytes() -> usize {
        Labels::bytes_for(Self::LABELS, Self::BYTES) + MOST * size_of::<Translated>()
    }

    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.found.clear();
    }

    /// Takes those of the next point; returns how many were left out.
    pub(super) fn fill<'a>(
        &mut self,
        settings: &Settings<'_>,
        exemplars: impl Iterator<Item = Exemplar<'a>>,
    ) -> u64 {
        self.clear();
        let mut dropped = 0;
        for exemplar in exemplars {
            let before = self.labels.len();
            let taken = self.found.len() < MOST && self.take(settings, &exemplar).is_ok_and(|taken| taken);
            if !taken {
                self.labels.truncate(before);
                dropped += 1;
            }
        }
        dropped
    }

    fn take(&mut self, settings: &Settings<'_>, exemplar: &Exemplar<'_>) -> Result<bool, BufferFull> {
        let bits = match exemplar.value {
            Some(value) if !f64::from_bits(bits_of(value)).is_nan() => bits_of(value),
            _ => return Ok(false),
        };
        let labels = &mut self.labels;
        let from = labels.len();
        for (key, id) in [(&b"trace_id"[..], exemplar.trace_id), (b"span_id", exemplar.span_id)] {
            labels.put(settings.naming, Origin::Own, b"", key, |text| text.hex(id))?;
        }
        let ids = labels.len();
        for attribute in exemplar.filtered_attributes() {
            labels.attribute(settings.naming, Origin::Attribute, attribute.key, attribute.value)?;
        }
        labels.finish_from(from)?;
        let text = |label: Label<'_>| characters(label.name) + characters(label.value);
        if labels.range(from, labels.len()).map(text).sum::<usize>() > CHARACTERS {
            // Then the ids alone, which are what an exemplar is for. Sorting has moved them.
            labels.truncate(from);
            for (key, id) in [(&b"span_id"[..], exemplar.span_id), (b"trace_id", exemplar.trace_id)] {
                labels.put(settings.naming, Origin::Own, b"", key, |text| text.hex(id))?;
            }
            debug_assert_eq!(labels.len(), ids);
        }
        let to = labels.len();
        self.found.push(Translated { from, to, bits, timestamp: super::milliseconds(exemplar.time) });
        Ok(true)
    }

    /// Those whose value is at most `to`, and above `above` if that is given.
    pub(super) fn within(
        &self,
        above: Option<f64>,
        to: f64,
    ) -> impl Iterator<Item = Translated> + Clone + use<'_> {
        self.found.iter().copied().filter(move |exemplar| {
            let value = f64::from_bits(exemplar.bits);
            above.is_none_or(|above| above < value) && value <= to
        })
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Translated> + Clone + use<'_> {
        self.found.iter().copied()
    }

    pub(super) fn labels(&self, exemplar: &Translated) -> impl Iterator<Item = Label<'_>> + Clone {
        self.labels.range(exemplar.from, exemplar.to)
    }
}

/// A number as a double, with the bits of one that was sent as such.
pub(super) fn bits_of(number: Number) -> u64 {
    match number {
        #[expect(clippy::cast_precision_loss, reason = "Prometheus has doubles only")]
        Number::Int(value) => (value as f64).to_bits(),
        Number::Double(bits) => bits,
    }
}

/// The characters of a text that is UTF-8: the bytes that do not continue one.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}
