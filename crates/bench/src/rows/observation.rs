//! One observation of a histogram: its time, and whether it allocates.

use super::bare::processor_time;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use std::hint::black_box;
use tidegate_arena::heap;
use tidegate_meters::{Buckets, Histogram};

pub(super) const ROW: Row =
    Row { name: "observation", what: "one observation of a histogram, in time and allocations", measure };

const OBSERVATIONS: usize = 4_000_000;
const ROUNDS: usize = 9;

fn measure(_: &Bench) -> Result<Vec<Figure>, Failure> {
    // Durations as they come: spread over the buckets, so that no branch and no cache line is always right.
    let spread = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (28 + n % 20);
    let values: Vec<u64> = (0..1024).map(spread).collect();
    let histogram = Histogram::new(Buckets::durations(), 64);
    let mut times = Vec::with_capacity(ROUNDS);
    histogram.observe(1);
    let allocated = heap::allocations_of_this_thread();
    for _ in 0..ROUNDS {
        let begun = processor_time();
        for value in values.iter().cycle().take(OBSERVATIONS) {
            histogram.observe(*black_box(value));
        }
        let took = processor_time().saturating_sub(begun);
        times.push(took.as_nanos() as f64 / OBSERVATIONS as f64);
    }
    let allocated = heap::allocations_of_this_thread() - allocated;
    Ok(vec![
        Figure {
            name: ROW.name,
            what: "one histogram observation, ns".to_owned(),
            bar: Bar::AtMost(10.0),
            measured: median(times),
            details: vec![("observations", (ROUNDS * OBSERVATIONS) as f64)],
        },
        Figure {
            name: "observation-allocations",
            what: "allocations of all observations".to_owned(),
            bar: Bar::AtMost(0.0),
            measured: allocated as f64,
            details: Vec::new(),
        },
    ])
}
