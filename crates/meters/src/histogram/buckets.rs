/// Upper bounds of a histogram's buckets, inclusive as Prometheus has them, and how to find a value's bucket.
#[derive(Clone, Debug)]
pub struct Buckets {
    bounds: Box<[u64]>,
    find: Find,
}

#[derive(Clone, Debug)]
enum Find {
    /// Each power of two is cut into `1 << split` equal buckets: the index is read off the value's bits.
    LogLinear { first: u64, first_log2: u32, split: u32 },
    /// For each bit length, the first bound that a value of that length can fall under. From there on the
    /// bounds are compared one by one: those within one power of two, usually one or two.
    Listed { start: Box<[u8; 65]> },
}

/// The most buckets a histogram may have.
const MAX_BOUNDS: usize = 255;

impl Buckets {
    /// Covers `first..=last`, with each power of two divided into `per_octave` (1, 2, 4 or 8) equal buckets. `first`
    /// is rounded down and `last` up to a power of two, and `first` is at least `per_octave`.
    ///
    /// # Panics
    /// When that makes more than 255 buckets.
    pub fn log_linear(first: u64, last: u64, per_octave: u64) -> Self {
        let split = per_octave.clamp(1, 8).ilog2();
        let first_log2 = first.max(1 << split).ilog2();
        let last_log2 = last.clamp(2, 1 << 63).next_power_of_two().ilog2().max(first_log2 + 1);
        let octave =
            |log2: u32| (1..=1u128 << split).map(move |step| (1u128 << log2) + ((step << log2) >> split));
        let bounds = std::iter::once(1u128 << first_log2).chain((first_log2..last_log2).flat_map(octave));
        let bounds: Box<[u64]> = bounds.map_while(|bound| u64::try_from(bound).ok()).collect();
        assert!(bounds.len() <= MAX_BOUNDS, "a histogram has at most {MAX_BOUNDS} buckets");
        Self { bounds, find: Find::LogLinear { first: 1 << first_log2, first_log2, split } }
    }

    /// Exactly these upper bounds.
    ///
    /// # Panics
    /// When there are more than 255, or they are not strictly ascending.
    pub fn listed(bounds: &[u64]) -> Self {
        assert!(bounds.len() <= MAX_BOUNDS, "a histogram has at most {MAX_BOUNDS} buckets");
        assert!(bounds.is_sorted_by(|a, b| a < b), "bucket bounds must be strictly ascending");
        let mut start = Box::new([0u8; 65]);
        for (bits, first) in start.iter_mut().enumerate() {
            let smallest = if bits == 0 { 0 } else { 1u64 << (bits - 1) };
            *first = bounds.partition_point(|bound| *bound < smallest) as u8;
        }
        Self { bounds: bounds.into(), find: Find::Listed { start } }
    }

    /// For durations in nanoseconds: 16 µs to 69 s, two buckets per power of two.
    pub fn durations() -> Self {
        Self::log_linear(1 << 14, 1 << 36, 2)
    }

    /// For sizes in bytes: 64 B to 64 MiB, one bucket per power of two.
    pub fn sizes() -> Self {
        Self::log_linear(64, 64 << 20, 1)
    }

    /// For counts: 1 to 1,048,576, one bucket per power of two.
    pub fn counts() -> Self {
        Self::log_linear(1, 1 << 20, 1)
    }

    /// The bounds, ascending. One more bucket, without a bound, comes after them.
    pub fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// How many buckets there are, with the one that has no bound.
    pub(super) fn len(&self) -> usize {
        self.bounds.len() + 1
    }

    pub(super) fn size_bytes(&self) -> usize {
        let table = if matches!(self.find, Find::Listed { .. }) { 65 } else { 0 };
        size_of_val(&*self.bounds) + table
    }

    /// The bucket of `value`: the first whose bound is not below it.
    #[inline]
    pub(super) fn index(&self, value: u64) -> usize {
        match &self.find {
            Find::LogLinear { first, first_log2, split } => {
                // One less, because bounds belong to the bucket below them.
                let value = value.saturating_sub(1);
                if value < *first {
                    return 0;
                }
                let log2 = value.ilog2();
                let within = (value >> (log2 - split)) & ((1 << split) - 1);
                let index = 1 + (u64::from(log2 - first_log2) << split) + within;
                (index as usize).min(self.bounds.len())
            }
            Find::Listed { start } => {
                let from = usize::from(start[(u64::BITS - value.leading_zeros()) as usize]);
                let above = self.bounds[from..].iter().take_while(|bound| **bound < value).count();
                from + above
            }
        }
    }
}
