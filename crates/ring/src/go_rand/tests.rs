//! The numbers are Go's.

use super::*;

/// Seeds, and the first, second and thousandth number that Go 1.26 draws.
#[rustfmt::skip]
const GO: &[(i64, [u64; 3])] = &[
    (0, [0x78fc2ffac2fd9401, 0x1f5b0412ffd341c0, 0xefe667ca36481c3e]),
    (1, [0x4d65822107fcfd52, 0x78629a0f5f3f164f, 0xb9afa3dee7a815d2]),
    (-1, [0xb29581df080302ac, 0x87a299f05f40e9af, 0x463fa620e7b7ea26]),
    (42, [0xafbf64b1967f8c53, 0x8872b44b9fbb971b, 0x8e43fd86300f64df]),
    (9223372036854775807, [0x4d65822107fcfd52, 0x78629a0f5f3f164f, 0xb9afa3dee7a815d2]),
    (-9223372036854775808, [0x6a99fa1dcb7d7dcf, 0xde0d4d54c03bce8f, 0xae8b00a7e5c1a2a8]),
    (2147483647, [0x78fc2ffac2fd9401, 0x1f5b0412ffd341c0, 0xefe667ca36481c3e]),
    (-2147483648, [0xb29581df080302ac, 0x87a299f05f40e9af, 0x463fa620e7b7ea26]),
];

#[test]
fn draws_what_go_draws() {
    for &(seed, expected) in GO {
        let mut random = GoRand::new(seed);
        let drawn: Vec<u64> = std::iter::repeat_with(|| random.next_u64()).take(1000).collect();
        assert_eq!([drawn[0], drawn[1], drawn[999]], expected, "{seed}");
    }
}

/// The product of two polynomials, modulo x⁶⁰⁷ − x³³⁴ − 1, by which each number of the generator follows from those before it.
fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut product = vec![0_u64; 2 * LENGTH];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            product[i + j] = product[i + j].wrapping_add(a.wrapping_mul(*b));
        }
    }
    for high in (LENGTH..2 * LENGTH).rev() {
        let coefficient = product.pop().unwrap();
        for low in [high - TAP, high - LENGTH] {
            product[low] = product[low].wrapping_add(coefficient);
        }
    }
    product
}

/// The table needs no source: it is the state after 7.8e12 steps from a state filled with the seed 1 and shifts of 20 and 10 bits.
#[test]
fn the_table_follows_from_the_generator() {
    const STEPS: u64 = 7_800_000_000_000;
    let filled = |at: usize| {
        let power = |offset| u64::from(POWERS[SKIPPED + 3 * at + offset]);
        (power(0) << 20) ^ (power(1) << 10) ^ power(2)
    };
    // The first number of the sequence is the one that the first step replaces, and steps go down the state.
    let place = |step: usize| (2 * LENGTH - TAP - 1 - step) % LENGTH;
    let first: Vec<u64> = (0..LENGTH).map(|step| filled(place(step))).collect();
    let mut x = vec![0; LENGTH];
    x[1] = 1;
    // x to the number of steps, by squaring: number n of the sequence is a sum of the first ones with these coefficients.
    let mut coefficients = vec![0; LENGTH];
    coefficients[0] = 1;
    for bit in (0..u64::BITS - STEPS.leading_zeros()).rev() {
        coefficients = product(&coefficients, &coefficients);
        if STEPS >> bit & 1 == 1 {
            coefficients = product(&coefficients, &x);
        }
    }
    let mut state = [0; LENGTH];
    for step in 0..LENGTH {
        let number =
            coefficients.iter().zip(&first).fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
        state[place((STEPS as usize + step) % LENGTH)] = number.cast_signed();
        // One step more: a multiplication by x.
        let last = coefficients.pop().unwrap();
        coefficients.insert(0, last);
        coefficients[LENGTH - TAP] = coefficients[LENGTH - TAP].wrapping_add(last);
    }
    assert_eq!(state, SEEDS);
}
