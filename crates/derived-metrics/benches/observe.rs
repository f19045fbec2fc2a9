//! The cost of an observation, and of a flush, with 10,000 series of a count and a histogram with 16 bounds.
//!
//! `cargo bench -p tidegate-derived-metrics`. The bar is 150 ns for an observation with a key of 80 bytes.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench, which says what it measures"
)]

use std::hint::black_box;
use std::time::Instant;
use tidegate_derived_metrics::{Aggregator, Group, Instrument, InstrumentKind, Settings, Temporality};
use tidegate_pipeline::{MeasuredSpan, Measurements, Number, Observation};
use tidegate_wire::output::SliceOutput;

const SERIES: usize = 10_000;
const ROUNDS: usize = 200;
const START_MS: u64 = 1_700_000_000_000;

fn settings(kind: InstrumentKind, exemplars: bool) -> Settings {
    let instrument = |name: &str, kind| Instrument {
        name: name.into(),
        description: String::new(),
        unit: "ms".into(),
        kind,
    };
    Settings {
        measures: vec![Group {
            attributes: Some(["service", "span", "kind", "status"].map(String::from).to_vec()),
            divisor: 1e6,
            instruments: vec![instrument("calls", InstrumentKind::Count), instrument("duration", kind)],
            pairs: None,
        }],
        temporality: Temporality::Cumulative,
        max_series: SERIES as u32,
        expire_ms: 0,
        exemplars,
        scope: "bench".into(),
        definition: String::new(),
    }
}

/// Four values of 80 bytes together.
fn key(number: usize) -> Vec<u8> {
    let mut key = Vec::new();
    for text in [
        format!("service-{}", number % 20),
        format!("GET /path/{number:0>18}/of"),
        "SPAN_KIND_SERVER".into(),
        "STATUS_UNSET".into(),
    ] {
        key.extend([text.len() as u8 + 3, 0x0a, text.len() as u8]);
        key.extend(text.as_bytes());
    }
    key
}

fn run(name: &str, settings: Settings) {
    let bytes = settings.bytes();
    let mut aggregator = Aggregator::new(settings);
    let keys: Vec<_> = (0..SERIES).map(key).collect();
    let span = Some(MeasuredSpan { trace_id: [1; 16], ..MeasuredSpan::default() });
    // Not in the order in which they are in memory.
    let order: Vec<_> = (0..SERIES).map(|number| number * 7_919 % SERIES).collect();
    aggregator.begin(b"tenant", START_MS);
    let round = |aggregator: &mut Aggregator, round: usize| {
        for number in &order {
            let value = Number::Int(((number * 31 + round * 17) % 40_000) as i64 * 1_000_000);
            aggregator.key().push(&keys[*number]);
            aggregator.observe(0, black_box(&Observation { value, count: 1, span }));
        }
    };
    round(&mut aggregator, 0);
    let mut observations: Vec<_> = (1..=ROUNDS)
        .map(|number| {
            let begun = Instant::now();
            round(&mut aggregator, number);
            begun.elapsed().as_nanos() as f64 / SERIES as f64
        })
        .collect();
    // Others may use the machine: the median of the rounds is that of this program.
    observations.sort_by(f64::total_cmp);
    let (best, median) = (observations[0], observations[ROUNDS / 2]);
    let begun = Instant::now();
    aggregator.begin_flush(START_MS);
    let (mut from, mut written, mut pieces) = (0, 0, 0);
    let mut body = vec![0; 1 << 20];
    while let Some(piece) = aggregator.piece(from, body.len()) {
        piece.write(&mut SliceOutput::new(&mut body)).unwrap();
        (from, written, pieces) = (piece.next, written + piece.bytes, pieces + 1);
    }
    aggregator.end_flush();
    let flush = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!(aggregator.series(), SERIES);
    println!(
        "{name}: {median:.0} ns an observation (best round {best:.0}) with a key of {} bytes; {bytes} bytes; a flush of {written} bytes in {pieces} pieces takes {flush:.1} ms",
        keys[0].len()
    );
}

fn main() {
    let classic =
        || InstrumentKind::Histogram { bounds: (0..16).map(|power| f64::from(1_u32 << power)).collect() };
    let exponential = || InstrumentKind::ExponentialHistogram { max_size: 160 };
    run("histogram of 16 bounds", settings(classic(), false));
    run("the same with exemplars", settings(classic(), true));
    run("exponential histogram of 160 buckets", settings(exponential(), false));
}
