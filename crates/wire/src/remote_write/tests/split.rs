//! Pieces and lanes of a 1.0 body are valid bodies, and together are the body.

use proptest::prelude::*;
use prost::Message;

use super::model::Model;
use super::oracle::WriteRequest;
use super::{check, strategies};
use crate::remote_write::Version;
use crate::remote_write::split::{Limit, partition, split};

proptest! {
    /// The pieces follow each other without a gap, each valid, each within the limit unless it is one
    /// series.
    #[test]
    fn pieces_are_the_body(request in strategies::v1(), samples in 1u64..6, bytes in 1usize..2000) {
        let raw = request.encode_to_vec();
        let mut end = 0;
        for piece in split(&raw, Limit { samples, bytes }) {
            prop_assert_eq!(piece.range.start, end);
            end = piece.range.end;
            let counts = check(Version::V1, &raw[piece.range.clone()]).unwrap();
            prop_assert_eq!(counts.series, piece.series);
            prop_assert_eq!(counts.samples + counts.histograms, piece.samples);
            let fields = counts.series + counts.metadata;
            prop_assert!((piece.samples <= samples && piece.range.len() <= bytes) || fields == 1);
        }
        prop_assert_eq!(end, raw.len());
    }

    /// Every series is in exactly one lane, equal series are in the same one and stay in order.
    #[test]
    fn lanes_keep_series_together(request in strategies::v1(), lanes in 1usize..5) {
        let raw = request.encode_to_vec();
        let mut outputs = vec![Vec::new(); lanes];
        partition(&raw, &mut outputs).unwrap();
        let lanes: Vec<_> = outputs.iter().map(|lane| Model::from(&WriteRequest::decode(&lane[..]).unwrap())).collect();
        let model = Model::from(&request);
        prop_assert_eq!(&lanes[0].metadata, &model.metadata);
        prop_assert_eq!(lanes.iter().map(|lane| lane.series.len()).sum::<usize>(), model.series.len());
        for series in &model.series {
            let of = |model: &Model| -> Vec<_> {
                model.series.iter().filter(|other| other.labels == series.labels).cloned().collect()
            };
            let found: Vec<_> = lanes.iter().map(of).filter(|found| !found.is_empty()).collect();
            prop_assert_eq!(found, vec![of(&model)]);
        }
    }
}

/// A field that the schema does not know stays with a series: alone it would look like another message.
#[test]
fn unknown_fields_are_no_piece() {
    let unknown = [0x2a, 0x00];
    let series = [0x0a, 0x13, 0x0a, 0x0d, 0x0a, 0x08];
    let series = [&series[..], b"__name__", &[0x12, 1, b'u', 0x12, 0x02, 0x10, 0x01]].concat();
    let raw = [&unknown[..], &series, &unknown, &series, &unknown].concat();
    check(Version::V1, &raw).unwrap();
    let pieces: Vec<_> = split(&raw, Limit { samples: 1, bytes: 1 }).collect();
    assert_eq!(pieces.iter().map(|piece| piece.series).collect::<Vec<_>>(), [1, 1]);
    assert!(pieces.iter().all(|piece| check(Version::V1, &raw[piece.range.clone()]).is_ok()));
}
