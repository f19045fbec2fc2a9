//! The generator of Go's `math/rand` (`rand.NewSource`): an additive lagged Fibonacci generator by Mitchell and Reeds.

mod seeds;

use seeds::SEEDS;

const LENGTH: usize = 607;
const TAP: usize = 273;
/// 2³¹ − 1, the modulus of the generator that fills the state.
const MODULUS: u64 = (1 << 31) - 1;
/// The multiplier of that generator.
const MULTIPLIER: u64 = 48_271;
/// How many of its numbers come before those of the state, which takes three for each of its own.
const SKIPPED: usize = 21;

/// Draws the numbers that Go's `rand.New(rand.NewSource(seed)).Uint64()` draws.
///
/// The first 273 numbers depend on two numbers each of the state as it is filled, so these are computed when they are drawn. The whole
/// state, which takes 7 µs to fill, exists only from the next on.
pub(crate) struct GoRand {
    seed: u64,
    drawn: usize,
    state: Option<Box<State>>,
}

struct State {
    numbers: [u64; LENGTH],
    tap: usize,
    feed: usize,
}

/// The powers of the multiplier: the numbers that fill the state of the seed 1.
static POWERS: [u32; SKIPPED + 3 * LENGTH] = {
    let mut powers = [1; SKIPPED + 3 * LENGTH];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = (powers[at - 1] as u64 * MULTIPLIER % MODULUS) as u32;
        at += 1;
    }
    powers
};

impl GoRand {
    pub(crate) fn new(seed: i64) -> Self {
        let seed = match seed.rem_euclid(MODULUS as i64) {
            0 => 89_482_311,
            seed => seed.cast_unsigned(),
        };
        Self { seed, drawn: 0, state: None }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        if self.drawn <= TAP {
            return self.filled(LENGTH - TAP - self.drawn).wrapping_add(self.filled(LENGTH - self.drawn));
        }
        let state = self.state.take().unwrap_or_else(|| {
            let mut state =
                State { numbers: std::array::from_fn(|at| self.filled(at)), tap: 0, feed: LENGTH - TAP };
            (0..TAP).for_each(|_| _ = state.next_u64());
            Box::new(state)
        });
        self.state.insert(state).next_u64()
    }

    /// A number of the state as it is filled.
    fn filled(&self, at: usize) -> u64 {
        let power = |offset| u64::from(POWERS[SKIPPED + 3 * at + offset]) * self.seed % MODULUS;
        (power(0) << 40) ^ (power(1) << 20) ^ power(2) ^ SEEDS[at].cast_unsigned()
    }
}

impl State {
    fn next_u64(&mut self) -> u64 {
        self.tap = self.tap.checked_sub(1).unwrap_or(LENGTH - 1);
        self.feed = self.feed.checked_sub(1).unwrap_or(LENGTH - 1);
        let sum = self.numbers[self.feed].wrapping_add(self.numbers[self.tap]);
        self.numbers[self.feed] = sum;
        sum
    }
}

#[cfg(test)]
mod tests;
