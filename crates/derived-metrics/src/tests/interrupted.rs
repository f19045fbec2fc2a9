//! Flushes that cannot end, and clocks that were set back: nothing is counted twice, or not at all.

use super::*;

fn of_calls(points: &Points) -> i64 {
    let calls = points.iter().filter(|((_, _, metric, _), _)| metric == "calls");
    calls
        .map(|(_, data)| match data {
            Data::Sum(sum) => match sum.data_points[0].value {
                Some(opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsInt(value)) => {
                    value
                }
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .sum()
}

fn observed(aggregator: &mut Aggregator, series: u32) {
    for number in 0..series {
        observe(aggregator, 0, &listed(&[Some(&number.to_string()), None]), Number::Int(1), 3);
    }
}

/// Of a flush that the journal took a part of, the rest is in the next one: with what came since.
#[test]
fn the_rest_of_a_flush_is_in_the_next() {
    let mut aggregator = Aggregator::new(settings(Temporality::Delta, 100));
    aggregator.begin(b"t", START_MS);
    observed(&mut aggregator, 10);
    aggregator.begin_flush(START_MS + 1000);
    let mut delivered = Points::default();
    let piece = aggregator.piece(0, 1_000).unwrap();
    decode(&piece, &mut delivered);
    let next = piece.next;
    assert!((1..10).contains(&next), "{next} series have room");
    aggregator.end_flush_at(next);
    assert!(aggregator.has_news());
    observed(&mut aggregator, 2);
    let first = of_calls(&delivered);
    let second = of_calls(&flush(&mut aggregator, START_MS + 2000));
    assert_eq!((first, first + second), (i64::from(next) * 3, 36));
    assert!(!aggregator.has_news());
    assert_eq!(aggregator.last_flush().number, 2);
}

/// A series that was delivered and got nothing since has no point: least of all a last value that nobody observed.
#[test]
fn a_series_that_was_delivered_has_no_other_point() {
    let mut aggregator = Aggregator::new(settings(Temporality::Delta, 100));
    aggregator.begin(b"t", START_MS);
    observe(&mut aggregator, 1, &fields(&[("a", "b")]), Number::Double(2.5), 1);
    observed(&mut aggregator, 1);
    aggregator.begin_flush(START_MS + 1000);
    aggregator.end_flush_at(2);
    assert_eq!(aggregator.series(), 2);
    assert!(flush(&mut aggregator, START_MS + 2000).is_empty());
}

/// A year too far ahead for a while: later series neither end at once nor are stamped then.
#[test]
fn a_clock_that_was_set_back_is_followed() {
    const AHEAD_MS: u64 = START_MS + 365 * 24 * 3_600_000;
    let settings = Settings { expire_ms: 60_000, ..settings(Temporality::Cumulative, 100) };
    let mut aggregator = Aggregator::new(settings);
    aggregator.begin(b"t", AHEAD_MS);
    observed(&mut aggregator, 1);
    flush(&mut aggregator, AHEAD_MS);
    aggregator.begin(b"t", START_MS);
    observed(&mut aggregator, 2);
    assert_eq!(of_calls(&flush(&mut aggregator, START_MS + 1000)), 9);
    assert!(aggregator.last_flush().at_ms <= START_MS + 1000);
    aggregator.begin(b"t", START_MS + 30_000);
    assert_eq!(of_calls(&flush(&mut aggregator, START_MS + 31_000)), 9, "nothing has ended");
    aggregator.begin(b"t", START_MS + 120_000);
    flush(&mut aggregator, START_MS + 121_000);
    assert_eq!(aggregator.series(), 0);
}

/// Delta series of a table that takes the place of another begin when they were seen.
#[test]
fn the_number_of_a_flush_is_no_time() {
    let mut aggregator = Aggregator::new(settings(Temporality::Delta, 100));
    aggregator.number_flushes_from(7);
    aggregator.begin(b"t", START_MS);
    observed(&mut aggregator, 1);
    let points = flush(&mut aggregator, START_MS + 1000);
    let Some(Data::Sum(sum)) = points.values().find(|data| matches!(data, Data::Sum(_))) else { panic!() };
    assert_eq!(sum.data_points[0].start_time_unix_nano, START_MS * 1_000_000);
    assert_eq!(aggregator.last_flush().number, 8);
}

/// Values that add up to more than there is stay numbers.
#[test]
fn sums_end_at_the_largest_numbers() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 100));
    aggregator.begin(b"t", START_MS);
    for value in [f64::MAX, f64::MAX, f64::MIN] {
        observe(&mut aggregator, 1, &fields(&[]), Number::Double(value), 1000);
    }
    for data in flush(&mut aggregator, START_MS).values() {
        let sum = match data {
            Data::ExponentialHistogram(all) => all.data_points[0].sum.unwrap(),
            Data::Sum(all) => match all.data_points[0].value {
                Some(opentelemetry_proto::tonic::metrics::v1::number_data_point::Value::AsDouble(sum)) => sum,
                ref other => panic!("{other:?}"),
            },
            _ => continue,
        };
        assert_eq!(sum, 0.0);
    }
}
