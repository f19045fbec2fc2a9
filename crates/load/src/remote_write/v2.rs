//! `io.prometheus.write.v2.Request`: like 1.0, with a table of symbols that everything else refers to.

use std::collections::HashMap;

use super::proto::{bytes, double, message, uint, varint};
use super::v1::{help, histogram, trace_id};
use super::{STALE, SampleBatch};
use crate::model::SampleKind;

const COUNTER: u64 = 1;

pub(super) fn encode(batch: &SampleBatch<'_>, out: &mut Vec<u8>) {
    let mut symbols = Symbols::default();
    symbols.reference("");
    // The table comes first and is known last, so the series wait in a buffer of their own.
    let mut all_series = Vec::with_capacity(batch.series.len() * 80);
    for (index, series) in batch.series.iter().enumerate() {
        message(&mut all_series, 5, |out| {
            message(out, 1, |out| {
                for (name, value) in &series.labels {
                    varint(out, symbols.reference(name));
                    varint(out, symbols.reference(value));
                }
            });
            match series.kind {
                SampleKind::Float => floats(batch, index, &mut symbols, out),
                SampleKind::Histogram => batch
                    .numbered()
                    .for_each(|(number, time)| message(out, 3, |out| histogram(out, number, time))),
            }
            if batch.extras.metadata {
                let help = symbols.reference(&help(&series.labels[0].1));
                message(out, 5, |out| {
                    uint(out, 1, COUNTER);
                    uint(out, 3, help);
                });
            }
        });
    }
    for symbol in symbols.in_order() {
        bytes(out, 4, symbol.as_bytes());
    }
    out.extend_from_slice(&all_series);
}

fn floats(batch: &SampleBatch<'_>, index: usize, symbols: &mut Symbols, out: &mut Vec<u8>) {
    let stale = batch.extras.stale.then(|| (STALE, batch.end_ms()));
    let samples = batch.numbered().map(|(number, time)| ((number as f64).to_bits(), time));
    for (bits, time) in samples.chain(stale) {
        message(out, 2, |out| {
            double(out, 1, bits);
            uint(out, 2, time.cast_unsigned());
            uint(out, 3, batch.timeline.base_ms.cast_unsigned());
        });
    }
    if let Some(time) = batch.exemplar_at(index) {
        let (name, value) = (symbols.reference("trace_id"), symbols.reference(&trace_id(index)));
        message(out, 4, |out| {
            message(out, 1, |out| {
                varint(out, name);
                varint(out, value);
            });
            double(out, 2, 0.25f64.to_bits());
            uint(out, 3, time.cast_unsigned());
        });
    }
}

#[derive(Default)]
struct Symbols(HashMap<Box<str>, u64>);

impl Symbols {
    fn reference(&mut self, symbol: &str) -> u64 {
        if let Some(known) = self.0.get(symbol) {
            return *known;
        }
        let new = self.0.len() as u64;
        self.0.insert(symbol.into(), new);
        new
    }

    fn in_order(&self) -> Vec<&str> {
        let mut table = vec![""; self.0.len()];
        for (symbol, reference) in &self.0 {
            table[*reference as usize] = symbol;
        }
        table
    }
}
