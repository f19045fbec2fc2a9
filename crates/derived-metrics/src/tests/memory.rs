//! Promise: an aggregator takes no more than its settings say, and an observation allocates nothing.

use super::*;

/// Counts and histograms of spans, as most have them.
fn usual(exemplars: bool) -> Settings {
    let bounds = (0..16).map(|power| f64::from(1_u32 << power)).collect();
    let group = Group {
        attributes: Some(["a", "b", "c", "d"].map(String::from).to_vec()),
        divisor: 1e6,
        instruments: vec![
            instrument("calls", InstrumentKind::Count),
            instrument("duration", InstrumentKind::Histogram { bounds }),
        ],
        pairs: None,
    };
    Settings { measures: vec![group], exemplars, ..settings(Temporality::Cumulative, 10_000) }
}

#[test]
fn ten_thousand_series_fit_in_three_megabytes() {
    let settings = usual(false);
    assert!(settings.bytes() <= 3_000_000, "{}", settings.bytes());
    let mut aggregator = Aggregator::new(settings);
    aggregator.begin(b"tenant", START_MS);
    for number in 0..10_000 {
        if number % 20 == 0 {
            set_resource(&mut aggregator, 0, &[("service.name", &format!("{:0>150}", number / 20))]);
        }
        let key = format!("{number:0>75}");
        observe(&mut aggregator, 0, key.as_bytes(), Number::Int(1), 1);
    }
    assert_eq!((aggregator.series(), aggregator.counts().overflowed), (10_000, 0));
}

#[test]
fn bytes_are_an_upper_bound_and_nothing_grows() {
    for settings in
        [usual(true), usual(false), settings(Temporality::Delta, 500), settings(Temporality::Delta, 0)]
    {
        let bytes = settings.bytes() as u64;
        let mut aggregator = None;
        let made = allocation_counter::measure(|| aggregator = Some(Aggregator::new(settings.clone())));
        // Its own bytes are not on the heap.
        assert!(
            made.bytes_current.unsigned_abs() + size_of::<Aggregator>() as u64 <= bytes,
            "{made:?} {bytes}"
        );
        let mut aggregator = aggregator.unwrap();
        let keys: Vec<_> =
            (0..30_000).map(|number| listed(&[Some(&number.to_string()), Some("server")])).collect();
        let resources: Vec<_> = (0..9).map(|number| fields(&[("host", &format!("host {number}"))])).collect();
        let used = allocation_counter::measure(|| {
            for round in 0..3 {
                for (number, key) in keys.iter().enumerate() {
                    if number % 10 == 0 {
                        aggregator.begin(&[(number / 300) as u8], START_MS + round * 1_000);
                        aggregator.key().push(&resources[number / 10 % 9]);
                        aggregator.resource(0);
                    }
                    let span = Some(span(7));
                    aggregator.key().push(key);
                    aggregator.observe(0, &Observation { value: Number::Int(5), count: 2, span });
                }
                aggregator.begin_flush(START_MS + round * 1_000);
                aggregator.end_flush();
            }
        });
        assert_eq!(used.count_total, 0);
    }
}
