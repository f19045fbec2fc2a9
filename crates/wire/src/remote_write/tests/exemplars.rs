//! Exemplars that came alone stand with their series, or are left over; none is lost and none is doubled.

use prost::Message;

use super::check;
use super::oracle::{ExemplarV2, RequestV2, SampleV2, SeriesV2, WriteRequest};
use crate::remote_write::exemplars::{count_orphans, join_orphans, orphans, orphans_to_v1};
use crate::remote_write::{Symbols, Version, view_within};

fn exemplar(value: u64) -> ExemplarV2 {
    ExemplarV2 { value, timestamp: 1, ..ExemplarV2::default() }
}

fn alone(labels_refs: Vec<u32>, value: u64) -> SeriesV2 {
    SeriesV2 { labels_refs, exemplars: vec![exemplar(value)], ..SeriesV2::default() }
}

#[test]
fn exemplars_join_their_series_or_are_left() {
    let symbols = ["", "__name__", "up", "a", "b"].map(str::to_owned).to_vec();
    let with_sample = |labels_refs: Vec<u32>| {
        let sample = SampleV2 { value: 1, timestamp: 1, start_timestamp: 0 };
        SeriesV2 { labels_refs, samples: vec![sample], ..SeriesV2::default() }
    };
    // Before and behind their series, two of one, and one without a series.
    let timeseries = vec![
        alone(vec![1, 2], 1),
        with_sample(vec![1, 2]),
        with_sample(vec![1, 2, 3, 4]),
        alone(vec![1, 2, 3, 4], 2),
        alone(vec![1, 4], 3),
        alone(vec![1, 2], 4),
        with_sample(vec![1, 2]),
    ];
    let raw = RequestV2 { symbols, timeseries }.encode_to_vec();
    assert_eq!(count_orphans(&raw), 4);
    let mut symbols = Symbols::new();
    let request = view_within(&raw, 1 << 20, &mut symbols).unwrap();
    let mut left: Vec<_> = orphans(&request).collect();
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    join_orphans(&raw, &mut left, &mut out).unwrap();
    orphans_to_v1(&left, &mut rest).unwrap();
    assert!(out.len() <= raw.len());
    assert_eq!(check(Version::V2, &out).unwrap().exemplars, 3);
    let decoded = RequestV2::decode(&out[..]).unwrap();
    let values: Vec<Vec<u64>> = decoded
        .timeseries
        .iter()
        .map(|series| series.exemplars.iter().map(|exemplar| exemplar.value).collect())
        .collect();
    assert_eq!(values, [vec![1, 4], vec![2], vec![]]);
    assert!(check(Version::V1, &rest).is_ok());
    let rest = WriteRequest::decode(&rest[..]).unwrap();
    assert_eq!((rest.timeseries.len(), rest.timeseries[0].exemplars[0].value), (1, 3));
    assert_eq!(rest.timeseries[0].labels[0].value, "b");
}
