//! Promise: where there is no room, observations go to overflow series, and everything is counted.

use super::*;

fn calls(aggregator: &mut Aggregator) -> u64 {
    let points = flush(aggregator, START_MS);
    let counts = points.iter().filter(|((_, _, metric, _), _)| metric == "duration");
    counts
        .map(|(_, data)| match data {
            Data::Histogram(histogram) => histogram.data_points[0].count,
            other => panic!("{other:?}"),
        })
        .sum()
}

#[test]
fn a_full_table_overflows() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 3));
    aggregator.begin(b"t", START_MS);
    for number in 0..10 {
        observe(&mut aggregator, 0, &listed(&[Some(&number.to_string()), None]), Number::Int(1), 1);
    }
    let counts = aggregator.counts();
    assert_eq!((counts.observations, counts.overflowed, counts.lost, aggregator.series()), (10, 7, 0, 4));
    assert_eq!(calls(&mut aggregator), 10);
}

#[test]
fn long_keys_overflow() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 100));
    aggregator.begin(b"t", START_MS);
    let long = "x".repeat(3_000);
    for number in 0..10 {
        let text = format!("{number}{long}");
        observe(&mut aggregator, 0, &listed(&[Some(&text), None]), Number::Int(1), 1);
    }
    // 9,200 bytes have three of them.
    assert_eq!((aggregator.series(), aggregator.counts().overflowed), (4, 7));
    assert_eq!(calls(&mut aggregator), 10);
}

#[test]
fn many_resources_overflow() {
    let mut aggregator = Aggregator::new(settings(Temporality::Delta, 100));
    for _ in 0..2 {
        aggregator.begin(b"t", START_MS);
        for number in 0..90 {
            set_resource(&mut aggregator, 0, &[("host", &number.to_string())]);
            observe(&mut aggregator, 0, &listed(&[None, None]), Number::Int(1), 1);
        }
        assert_eq!((aggregator.resources(), aggregator.series()), (67, 67));
        assert_eq!(calls(&mut aggregator), 90);
    }
    assert_eq!(aggregator.counts().overflowed, 2 * 24);
}

#[test]
fn a_resource_that_is_cut_overflows() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 100));
    aggregator.begin(b"t", START_MS);
    set_resource(&mut aggregator, 0, &[("host", &"x".repeat(5_000))]);
    observe(&mut aggregator, 0, &listed(&[None, None]), Number::Int(1), 1);
    assert_eq!((aggregator.counts().cut, aggregator.counts().overflowed), (1, 1));
    set_resource(&mut aggregator, 0, &[("host", "x")]);
    observe(&mut aggregator, 0, &listed(&[None, None]), Number::Int(1), 1);
    assert_eq!((aggregator.counts().cut, aggregator.counts().overflowed), (1, 1));
}

#[test]
fn tenants_without_overflow_series_lose_observations() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 0));
    for tenant in 0..80 {
        // The longest there are.
        aggregator.begin(format!("{tenant:0>255}").as_bytes(), START_MS);
        observe(&mut aggregator, 0, &listed(&[None, None]), Number::Int(1), 1);
        observe(&mut aggregator, 1, &[], Number::Int(1), 1);
    }
    let counts = aggregator.counts();
    assert_eq!((counts.observations, counts.overflowed, counts.lost), (160, 128, 32));
    assert_eq!(calls(&mut aggregator), 64);
}

#[test]
fn unknown_measures_and_observations_in_a_flush_are_lost() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 9));
    aggregator.begin(b"t", START_MS);
    observe(&mut aggregator, 2, &[], Number::Int(1), 1);
    aggregator.begin_flush(START_MS);
    observe(&mut aggregator, 1, &[], Number::Int(1), 1);
    aggregator.end_flush();
    assert_eq!((aggregator.counts().lost, aggregator.series()), (2, 0));
}

#[test]
fn expired_series_make_room() {
    let mut aggregator =
        Aggregator::new(Settings { expire_ms: 10_000, ..settings(Temporality::Cumulative, 2) });
    for round in 0..5 {
        aggregator.begin(b"t", START_MS + round * 60_000);
        for number in 0..2 {
            set_resource(&mut aggregator, 0, &[("host", &format!("{round} {number}"))]);
            observe(&mut aggregator, 0, &listed(&[Some("a"), Some("b")]), Number::Int(1), 1);
        }
        aggregator.begin(b"t", START_MS + round * 60_000 + 30_000);
        assert_eq!(calls(&mut aggregator), 2);
        assert_eq!((aggregator.series(), aggregator.resources()), (0, 0));
    }
    assert_eq!((aggregator.counts().overflowed, aggregator.counts().expired), (0, 10));
}
