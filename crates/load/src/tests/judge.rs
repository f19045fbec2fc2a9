//! The judgement: what is missing, doubled or out of order is found, and nothing else is.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::{TIMELINE, model};
use crate::remote_write::{SampleBatch, Version, compress};
use crate::{
    AcknowledgedSamples, Behaviour, Check, Connection, NumberSet, SeriesModel, Target, Timeline,
    VerifyingReceiver, compare,
};

const SOON: Duration = Duration::from_secs(60);

proptest! {
    /// The ranges are a set of numbers like any other.
    #[test]
    fn numbers_are_a_set(inserts in proptest::collection::vec((0u64..60, 0u64..8), 0..40), from in 0u64..60, len in 0u64..30) {
        let (mut numbers, mut set) = (NumberSet::default(), BTreeSet::new());
        for (from, len) in inserts {
            let before = set.len();
            set.extend(from..from + len);
            prop_assert_eq!(numbers.insert(from, from + len), (set.len() - before) as u64);
        }
        prop_assert!(numbers.ranges().iter().flat_map(|(from, to)| *from..*to).eq(set.iter().copied()));
        prop_assert!(numbers.ranges().is_sorted_by(|a, b| a.1 < b.0));
        prop_assert_eq!(numbers.within(from, from + len), set.range(from..from + len).count() as u64);
        let mut other = NumberSet::default();
        other.insert(from, from + len);
        let missing: Vec<u64> = set.iter().copied().filter(|n| !(from..from + len).contains(n)).collect();
        let expected = missing.first().map(|first| (*first, missing.len() as u64));
        prop_assert_eq!(numbers.missing_from(&other), expected);
    }
}

/// Sends exactly these numbers of one series, one request each.
fn send(sink: &VerifyingReceiver, model: &SeriesModel, series: usize, numbers: &[u64]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let target: Target = sink.target();
        let mut connection = Connection::open(&target, SOON).await.unwrap();
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        for number in numbers {
            SampleBatch::of(model, model.range(series..series + 1), *number, 1).encode(Version::V1, &mut raw);
            compress(&raw, &mut body);
            let response = connection.write(&target, Version::V1, &body, SOON).await.unwrap();
            assert_eq!(response.status, 204);
        }
    });
}

/// Loss, doubling, disorder, a shifted clock and a strange series are each found, counted and told apart.
#[test]
fn planted_faults_are_found() {
    let model = model(6);
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap();
    send(&sink, &model, 0, &[0, 1, 2, 3]);
    send(&sink, &model, 1, &[0, 2, 3]);
    send(&sink, &model, 2, &[0, 1, 2, 1, 2, 3]);
    send(&sink, &model, 3, &[0, 2, 1, 3]);
    let shifted = Timeline { base_ms: TIMELINE.base_ms + 1, ..TIMELINE };
    send(&sink, &SeriesModel::with_histograms(7, 6, shifted, 5), 4, &[0, 1, 2, 3]);
    send(&sink, &SeriesModel::new(8, 6, TIMELINE), 5, &[0]);
    let mut acked = AcknowledgedSamples::none(6);
    acked.add(0..5, 0, 4);
    acked.add(5..6, 0, 2);
    let verdict = compare(&model, &acked, &sink.stop());
    assert_eq!((verdict.acked, verdict.missing), (22, 1 + 2));
    assert_eq!((verdict.duplicates, verdict.out_of_order), (2, 1));
    assert_eq!((verdict.wrong_time, verdict.unknown_series, verdict.unacked), (4, 1, 0));
    assert!(!verdict.nothing_lost());
    assert!(verdict.examples[0].starts_with("series 1 ("), "{:?}", verdict.examples);
    assert!(verdict.examples[0].ends_with("): 1 missing, the first is 1"), "{:?}", verdict.examples);
}

/// An item that arrived without an acknowledgement is not an error: the answer may have been lost.
#[test]
fn unacknowledged_arrivals_are_no_fault() {
    let model = model(2);
    let sink = VerifyingReceiver::start(Behaviour::Healthy, Check::Everything).unwrap();
    send(&sink, &model, 0, &[0, 1, 2]);
    let mut acked = AcknowledgedSamples::none(2);
    acked.add(0..1, 0, 2);
    let verdict = compare(&model, &acked, &sink.report());
    assert_eq!((verdict.missing, verdict.unacked), (0, 1));
    assert!(verdict.nothing_lost());
}
