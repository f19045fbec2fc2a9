mod buckets;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use buckets::Buckets;

use crate::seat::seat;

/// A distribution of integers (nanoseconds, bytes …) in buckets fixed at creation. Clones share the cells.
///
/// The cells exist once per *stripe*. A thread whose seat is below the number of stripes is the only
/// writer of its stripe and adds with a plain load and store; all later threads share one more stripe and
/// add atomically. So no count is ever lost, and the first threads (the workers) never wait for each other.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Cells>);

#[derive(Debug)]
struct Cells {
    buckets: Buckets,
    lines: Box<[Line]>,
    lines_per_stripe: usize,
    /// Stripes with one writer each. The stripe behind them is shared.
    owned: usize,
}

/// Two cache lines: processors fetch lines in pairs, so a stripe that ends inside a pair would still be
/// pulled from one core to another.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; CELLS_PER_LINE]);

const CELLS_PER_LINE: usize = 16;

/// The first cell of a stripe is the sum; the buckets follow, the one without an upper bound last.
const SUM: usize = 0;
const FIRST_BUCKET: usize = 1;

impl Histogram {
    /// A histogram with these buckets whose first `owned` threads have a stripe of their own.
    pub fn new(buckets: Buckets, owned: usize) -> Self {
        let cells = FIRST_BUCKET + buckets.len();
        let lines_per_stripe = cells.div_ceil(CELLS_PER_LINE);
        let lines = (0..lines_per_stripe * (owned + 1)).map(|_| Line::default()).collect();
        Self(Arc::new(Cells { buckets, lines, lines_per_stripe, owned }))
    }

    /// Counts one observation.
    #[inline]
    pub fn observe(&self, value: u64) {
        let cells = &*self.0;
        let seat = seat();
        let stripe = seat.min(cells.owned);
        let sum = cells.cell(stripe, SUM);
        let bucket = cells.cell(stripe, FIRST_BUCKET + cells.buckets.index(value));
        if seat < cells.owned {
            sum.store(sum.load(Relaxed).wrapping_add(value), Relaxed);
            bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
        } else {
            sum.fetch_add(value, Relaxed);
            bucket.fetch_add(1, Relaxed);
        }
    }

    /// Counts one duration, in nanoseconds.
    #[inline]
    pub fn observe_duration(&self, duration: std::time::Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// All stripes added up.
    pub fn summary(&self) -> Summary {
        let cells = &*self.0;
        let mut sum = 0u64;
        let mut counts = vec![0u64; cells.buckets.len()];
        for stripe in 0..=cells.owned {
            sum = sum.wrapping_add(cells.cell(stripe, SUM).load(Relaxed));
            for (bucket, count) in counts.iter_mut().enumerate() {
                *count += cells.cell(stripe, FIRST_BUCKET + bucket).load(Relaxed);
            }
        }
        let bounds = cells.buckets.bounds().iter().copied().map(Some).chain([None]);
        Summary { sum, buckets: bounds.zip(counts).collect() }
    }

    /// Heap bytes held by this histogram, for ever.
    pub fn size_bytes(&self) -> usize {
        size_of::<Cells>()
            + 2 * size_of::<usize>()
            + size_of_val(&*self.0.lines)
            + self.0.buckets.size_bytes()
    }
}

impl Cells {
    #[inline]
    fn cell(&self, stripe: usize, cell: usize) -> &AtomicU64 {
        &self.lines[stripe * self.lines_per_stripe + cell / CELLS_PER_LINE].0[cell % CELLS_PER_LINE]
    }
}

/// A histogram as it stood when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The sum of all observed values.
    pub sum: u64,
    /// Inclusive upper bound and count of each bucket, not cumulative. The last has no bound.
    pub buckets: Vec<(Option<u64>, u64)>,
}

impl Summary {
    /// How many values were observed.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The upper bound of the bucket that holds the `q` quantile (0 to 1). The last bounded bucket's bound
    /// when it lies beyond that; `None` without observations.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((count as f64 * q).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        let mut bound = 0;
        for (upper, count) in &self.buckets {
            bound = upper.unwrap_or(bound);
            seen += count;
            if seen >= rank {
                break;
            }
        }
        Some(bound)
    }
}
