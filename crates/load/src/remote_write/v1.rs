//! `prometheus.WriteRequest`, as Prometheus writes it.

use std::collections::BTreeSet;

use super::proto::{bytes, double, message, uint, varint, zigzag};
use super::{STALE, Sample, SampleBatch};
use crate::model::SampleKind;

const COUNTER: u64 = 1;

pub(super) fn encode(batch: &SampleBatch<'_>, out: &mut Vec<u8>) {
    for (index, series) in batch.series.iter().enumerate() {
        message(out, 1, |out| {
            out.extend_from_slice(&series.encoded_labels);
            match series.kind {
                SampleKind::Float => floats(batch, index, out),
                SampleKind::Histogram => batch
                    .numbered()
                    .for_each(|(number, time)| message(out, 4, |out| histogram(out, number, time))),
            }
        });
    }
    if batch.extras.metadata {
        let names: BTreeSet<&str> = batch.series.iter().map(|series| &*series.labels[0].1).collect();
        for name in names {
            message(out, 3, |out| {
                uint(out, 1, COUNTER);
                bytes(out, 2, name.as_bytes());
                bytes(out, 4, help(name).as_bytes());
            });
        }
    }
}

/// The labels as fields of a series, encoded once for all requests.
pub(crate) fn encoded_labels(labels: &[(&str, Box<str>)]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(384);
    for (name, value) in labels {
        label(&mut out, 1, name, value);
    }
    out.into()
}

pub(super) fn help(name: &str) -> String {
    format!("What `{name}` counts.")
}

fn floats(batch: &SampleBatch<'_>, index: usize, out: &mut Vec<u8>) {
    let stale = batch.extras.stale.then(|| (STALE, batch.end_ms()));
    let samples = batch.numbered().map(|(number, time)| ((number as f64).to_bits(), time));
    for (bits, time) in samples.chain(stale) {
        sample(out, bits, time);
    }
    if let Some(time) = batch.exemplar_at(index) {
        message(out, 3, |out| {
            label(out, 1, "trace_id", &trace_id(index));
            double(out, 2, 0.25f64.to_bits());
            uint(out, 3, time.cast_unsigned());
        });
    }
}

fn sample(out: &mut Vec<u8>, bits: u64, time_ms: i64) {
    message(out, 2, |out| {
        double(out, 1, bits);
        uint(out, 2, time_ms.cast_unsigned());
    });
}

pub(super) fn encode_sampled(sampled: &Sample<'_>, out: &mut Vec<u8>) {
    message(out, 1, |out| {
        out.extend_from_slice(&sampled.series.encoded_labels);
        sample(out, sampled.value.to_bits(), sampled.time_ms);
    });
}

pub(super) fn trace_id(index: usize) -> String {
    format!("{:032x}", index + 1)
}

fn label(out: &mut Vec<u8>, field: u64, name: &str, value: &str) {
    message(out, field, |out| {
        bytes(out, 1, name.as_bytes());
        bytes(out, 2, value.as_bytes());
    });
}

/// A histogram with `number` observations in one bucket and the sum `number`. Both versions share it.
pub(super) fn histogram(out: &mut Vec<u8>, number: u64, time_ms: i64) {
    uint(out, 1, number);
    double(out, 3, (number as f64).to_bits());
    uint(out, 4, zigzag(3));
    double(out, 5, 1e-128f64.to_bits());
    message(out, 11, |out| {
        uint(out, 1, zigzag(-7));
        uint(out, 2, 1);
    });
    message(out, 12, |out| varint(out, zigzag(number.cast_signed())));
    uint(out, 15, time_ms.cast_unsigned());
}
