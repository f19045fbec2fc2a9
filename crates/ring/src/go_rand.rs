//! The generator of Go's `math/rand` (`rand.NewSource`): an additive lagged Fibonacci generator by Mitchell and Reeds.

mod seeds;

use seeds::SEEDS;

const LENGTH: usize = 607;
const TAP: usize = 273;
/// 2³¹ − 1, the modulus of the generator that fills the state.
const MODULUS: i64 = (1 << 31) - 1;

/// Draws the numbers that Go's `rand.New(rand.NewSource(seed)).Uint64()` draws.
pub(crate) struct GoRand {
    state: [u64; LENGTH],
    tap: usize,
    feed: usize,
}

impl GoRand {
    pub(crate) fn new(seed: i64) -> Self {
        let seed = match seed.rem_euclid(MODULUS) {
            0 => 89_482_311,
            seed => seed,
        };
        let mut fill = std::iter::successors(Some(seed), |x| Some(x * 48271 % MODULUS)).skip(21);
        let mut next = || fill.next().unwrap_or_default();
        let state = SEEDS.map(|number| ((next() << 40) ^ (next() << 20) ^ next() ^ number).cast_unsigned());
        Self { state, tap: 0, feed: LENGTH - TAP }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.tap = self.tap.checked_sub(1).unwrap_or(LENGTH - 1);
        self.feed = self.feed.checked_sub(1).unwrap_or(LENGTH - 1);
        let sum = self.state[self.feed].wrapping_add(self.state[self.tap]);
        self.state[self.feed] = sum;
        sum
    }
}
