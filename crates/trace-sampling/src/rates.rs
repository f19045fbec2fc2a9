//! Counters of spans in the current second, for policies that limit rates.

/// The most counters of a sampler: what fits into the metadata of a cursor.
pub const MAX_RATES: usize = 28;

/// The counters of all policies that limit rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates([Rate; MAX_RATES]);

/// The spans that were kept in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Rate {
    second: u32,
    spans: u32,
}

impl Rates {
    /// The length of the counters as bytes.
    pub const LEN: usize = MAX_RATES * 8;

    /// The counters as bytes, to be kept.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        for (place, Rate { second, spans }) in bytes.chunks_exact_mut(8).zip(self.0) {
            let (one, other) = place.split_at_mut(4);
            one.copy_from_slice(&second.to_le_bytes());
            other.copy_from_slice(&spans.to_le_bytes());
        }
        bytes
    }

    /// The counters that these bytes were made of.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Rates {
        let mut rates = Rates::default();
        for (rate, place) in rates.0.iter_mut().zip(bytes.chunks_exact(8)) {
            let number = |at: usize| {
                place.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
            };
            *rate = Rate { second: number(0), spans: number(4) };
        }
        rates
    }

    /// The spans of a counter in the current second.
    fn spans(&mut self, counter: usize, second: u32) -> Option<&mut u32> {
        let rate = self.0.get_mut(counter)?;
        if rate.second != second {
            *rate = Rate { second, spans: 0 };
        }
        Some(&mut rate.spans)
    }

    /// Counts `spans` where the sum of the second stays within `most`. Returns whether it does.
    pub(crate) fn take(&mut self, counter: usize, second: u32, spans: u32, most: u64) -> bool {
        let Some(counted) = self.spans(counter, second) else { return false };
        let sum = counted.saturating_add(spans);
        let fits = u64::from(sum) <= most;
        if fits {
            *counted = sum;
        }
        fits
    }
}
