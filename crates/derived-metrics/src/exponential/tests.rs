//! Promise: the histogram is that of `go-expohisto` for values of one sign, and the finest that fits for both.

use super::*;
use proptest::prelude::*;

/// Scale, and for each sign the offset and the buckets.
type Expected = (i32, [(i32, Vec<u64>); 2]);

/// Values, the most buckets, how often each value counts; then scale, offset and buckets.
type Case<'a> = (&'a [f64], u32, u64, i32, i32, &'a [u64]);

/// The histogram from a list of all values, with how often they count.
pub(crate) fn naive(values: &[(f64, u64)], max_size: u32) -> Expected {
    let mut downscaled = 0;
    loop {
        let of_sign = |is_sign: fn(f64) -> bool| {
            let found = values.iter().filter(|(value, count)| is_sign(*value) && *count > 0);
            let indices: Vec<_> = found
                .map(|(value, count)| (index_of(value.abs(), MAX_SCALE) >> downscaled, *count))
                .collect();
            let Some(start) = indices.iter().map(|(index, _)| *index).min() else { return (0, 0, indices) };
            let last = indices.iter().map(|(index, _)| *index).max().unwrap();
            (start, (last - start) as usize + 1, indices)
        };
        let signs = [of_sign(|value| value > 0.0), of_sign(|value| value < 0.0)];
        let total: usize = signs.iter().map(|(_, len, _)| len).sum();
        if total > words(max_size) - HEAD || signs.iter().any(|(_, len, _)| *len > max_size as usize) {
            downscaled += 1;
            continue;
        }
        let scale = if total == 0 { 0 } else { MAX_SCALE - downscaled };
        let signs = signs.map(|(start, len, indices)| {
            let mut buckets = vec![0; len];
            indices.iter().for_each(|(index, count)| buckets[(index - start) as usize] += count);
            (start, buckets)
        });
        return (scale, signs);
    }
}

fn histogram(values: &[f64], max_size: u32, count: u64) -> Vec<u64> {
    let mut made = vec![0; words(max_size)];
    values.iter().for_each(|value| fold(&mut made, max_size, *value, count));
    assert!(is_valid(&made, max_size));
    made
}

fn actual(words: &[u64]) -> Expected {
    let view = View::new(words).unwrap();
    let signs = [Sign::Positive, Sign::Negative];
    (view.scale(), signs.map(|sign| (view.offset(sign), view.buckets(sign).collect())))
}

/// The pseudo-random numbers of the Go program that made the expected values.
fn numbers(count: usize) -> impl Iterator<Item = u64> {
    let next =
        |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(next(&42), next).take(count).map(|x| x >> 33)
}

#[test]
fn is_that_of_go_expohisto() {
    let durations: Vec<_> = numbers(500).map(|x| (x % 1_000_000) as f64 / 1000.0).collect();
    let wide = [0.001, 1000.0, 3.0, 0.0, 17.25, 0.5, 1e6];
    // From `structure.NewFloat64(structure.NewConfig(structure.WithMaxSize(max_size)))` and `UpdateByIncr(value, count)`.
    let expected: [Case<'_>; 8] = [
        (&[1.5], 4, 3, 20, 613_377, &[3]),
        (&[1.0, 2.0, 4.0, 0.0, 8.0], 2, 1, -2, -1, &[1, 3]),
        (&[5e-324, f64::MAX, 1.0], 2, 2, -10, -1, &[4, 2]),
        (&[f64::MIN_POSITIVE, 1e-310, 3e-308], 4, 1, 2, -4089, &[2, 0, 1]),
        (&wide, 16, 1, -1, -5, &[1, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1]),
        (&[-1.0, -2.0, -3.5, -100.0, 0.0], 8, 5, 0, -1, &[5, 5, 5, 0, 0, 0, 0, 5]),
        (&durations, 20, 1, 0, -2, &[1, 0, 0, 0, 1, 10, 10, 17, 32, 67, 136, 226]),
        (&[1024.0, 512.0, 256.0, 3.0, 1.0, 0.1], 5, 1, -2, -1, &[2, 1, 1, 2]),
    ];
    for (values, max_size, count, scale, offset, buckets) in expected {
        let (actual_scale, [positive, negative]) = actual(&histogram(values, max_size, count));
        let of_sign = if values.iter().any(|value| *value < 0.0) { negative } else { positive };
        assert_eq!((actual_scale, of_sign), (scale, (offset, buckets.to_vec())), "{values:?}");
    }
}

#[test]
fn is_that_of_go_expohisto_for_close_values() {
    let close: Vec<_> = numbers(300).map(|x| 100.0 + (x % 1000) as f64 / 1000.0).collect();
    let made = histogram(&close, 160, 7);
    let (scale, [(offset, buckets), _]) = actual(&made);
    assert_eq!(
        (scale, offset, buckets.len(), &buckets[..8]),
        (13, 54_426, 118, &[21, 28, 21, 35, 28, 14, 14, 7][..])
    );
    let view = View::new(&made).unwrap();
    assert_eq!((view.count(), view.min(), view.max()), (2100, 100.0, 100.997));
    assert!((view.sum() - 210_984.102).abs() < 1e-6);
}

#[test]
fn counts_zeros_apart() {
    let made = histogram(&[0.0, -0.0], 8, 3);
    assert_eq!(View::new(&made).unwrap().zero_count(), 6);
    assert_eq!(actual(&made), (0, [(0, vec![]), (0, vec![])]));
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-300.0..300.0_f64).prop_map(|exponent| exponent.exp2()),
        (-300.0..300.0_f64).prop_map(|exponent| -exponent.exp2()),
        (1_u32..100_000).prop_map(|milliseconds| f64::from(milliseconds) / 7.0),
        Just(0.0),
        Just(64.0),
    ]
}

proptest! {
    /// The histogram is that of a list of all values, at the finest scale that fits.
    #[test]
    fn is_the_finest_that_fits(
        values in prop::collection::vec((value(), 0_u64..4), 0..60),
        max_size in 2_u32..40,
        is_positive: bool,
    ) {
        let sign = |value: f64| if is_positive { value.abs() } else { value };
        let values: Vec<_> = values.into_iter().map(|(value, count)| (sign(value), count)).collect();
        let mut made = vec![0; words(max_size)];
        values.iter().for_each(|(value, count)| fold(&mut made, max_size, *value, *count));
        prop_assert!(is_valid(&made, max_size));
        prop_assert_eq!(actual(&made), naive(&values, max_size));
    }

    /// Words from outside that are not valid are told, and those that are valid can be added to.
    #[test]
    fn takes_any_valid_words(
        head in prop::array::uniform8(prop_oneof![0_u64..40, any::<u64>(), (0_u64..6).prop_map(|len| len << 32 | 7)]),
        values in prop::collection::vec(any::<f64>().prop_filter("finite", |value| value.is_finite()), 1..9),
    ) {
        let mut made = vec![0; words(6)];
        made[..HEAD].copy_from_slice(&head);
        if is_valid(&made, 6) {
            values.iter().for_each(|value| fold(&mut made, 6, *value, u64::MAX));
            actual(&made);
        }
    }
}
