//! A joined 2.0 body means what its parts meant, one after the other.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::model::Model;
use super::oracle::RequestV2;
use super::{check, strategies};
use crate::output::{Full, SliceOutput};
use crate::remote_write::join::{Scratch, join, join_selected, write_unjoined};
use crate::remote_write::{RewriteError, Series, Symbols, Version, split, v2, view_within};

fn concatenated(requests: &[RequestV2]) -> Model {
    let mut all = Model::default();
    for model in requests.iter().map(Model::from) {
        all.series.extend(model.series);
        all.metadata.extend(model.metadata);
    }
    all
}

proptest! {
    /// prost decodes the joined body to the concatenation; its symbols are distinct and begin with "".
    #[test]
    fn a_join_is_the_concatenation(requests in vec(strategies::v2(), 0..4)) {
        let raws: Vec<_> = requests.iter().map(Message::encode_to_vec).collect();
        let raws: Vec<&[u8]> = raws.iter().map(Vec::as_slice).collect();
        let symbols = raws.iter().map(|raw| Symbols::count(raw)).sum();
        let mut scratch = Scratch::new(symbols);
        let mut out = Vec::new();
        let joined = join(&raws, &mut scratch, &mut out).unwrap();

        let decoded = RequestV2::decode(&out[..]).unwrap();
        let expected = concatenated(&requests);
        prop_assert_eq!(joined.series, expected.series.len() as u64);
        prop_assert_eq!(joined.symbols, decoded.symbols.len() as u64);
        prop_assert_eq!(&decoded.symbols[0], "");
        let mut distinct = decoded.symbols.clone();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), decoded.symbols.len());
        prop_assert_eq!(Model::from(&decoded), expected);
        prop_assert!(check(Version::V2, &out).is_ok());

        let mut again = Vec::new();
        join(&raws, &mut scratch, &mut again).unwrap();
        prop_assert_eq!(again, out, "scratch can be reused");
    }

    /// Spreading the series over lanes and putting the lanes together loses none and doubles none.
    #[test]
    fn lanes_take_every_series_once(request in strategies::v2(), lanes in 1usize..4) {
        let raw = request.encode_to_vec();
        let mut scratch = Scratch::new(Symbols::count(&raw));
        let mut found = Vec::new();
        for lane in 0..lanes {
            let mut out = Vec::new();
            let keep = |_, series: &v2::Series<'_>| split::lane(&Series::V2(*series), lanes) == lane;
            join_selected(&[&raw], keep, &mut scratch, &mut out).unwrap();
            found.extend(Model::from(&RequestV2::decode(&out[..]).unwrap()).series);
        }
        let mut expected = Model::from(&request).series;
        let key = |series: &super::model::Series| format!("{series:?}");
        found.sort_by_key(key);
        expected.sort_by_key(key);
        prop_assert_eq!(found, expected);
    }
}

/// Fields that the schema does not know are carried along.
#[test]
fn unknown_fields_are_kept() {
    let series = [0x0a, 2, 1, 2, 0x12, 2, 0x10, 1, 0xa8, 0x06, 0x7f];
    let raw = [&[0x22, 0, 0x22, 8][..], b"__name__", &[0x22, 1, b'u', 0x2a, 11], &series].concat();
    let mut out = Vec::new();
    join(&[&raw], &mut Scratch::new(3), &mut out).unwrap();
    assert_eq!(out, raw);
}

/// Scratch and output are bounds, not beginnings.
#[test]
fn bounds_are_kept() {
    let symbols = ["", "__name__", "up"].map(str::to_owned).to_vec();
    let series = super::oracle::SeriesV2 {
        labels_refs: vec![1, 2],
        samples: vec![Default::default()],
        ..Default::default()
    };
    let raw = RequestV2 { symbols, timeseries: vec![series] }.encode_to_vec();
    let mut out = Vec::new();
    let error = join(&[&raw, &raw], &mut Scratch::new(4), &mut out).unwrap_err();
    assert!(matches!(error, RewriteError::Scratch { .. }), "{error}");
    let mut scratch = Scratch::new(6);
    join(&[&raw, &raw], &mut scratch, &mut out).unwrap();
    for room in 0..out.len() {
        let mut space = vec![0; room];
        let full = join(&[&raw, &raw], &mut scratch, &mut SliceOutput::new(&mut space));
        assert_eq!(full.unwrap_err(), RewriteError::Full(Full));
    }
    assert!(join(&[&raw, &raw], &mut scratch, &mut SliceOutput::new(&mut vec![0; out.len()])).is_ok());
}

proptest! {
    /// A body that is spelled out means the same, and so does one that is read with few marks in place of a table.
    #[test]
    fn a_body_that_is_spelled_out_means_the_same(request in strategies::v2(), bytes in 8usize..64) {
        let raw = request.encode_to_vec();
        let mut symbols = Symbols::new();
        let shown = view_within(&raw, bytes, &mut symbols).unwrap();
        prop_assert_eq!(shown.symbols().len(), request.symbols.len());
        let mut out = Vec::new();
        let series = write_unjoined(shown.series(), &mut out).unwrap();
        prop_assert_eq!(series, request.timeseries.len() as u64);
        let decoded = RequestV2::decode(&out[..]).unwrap();
        prop_assert_eq!(Model::from(&decoded), Model::from(&request));
        prop_assert!(check(Version::V2, &out).is_ok());
        prop_assert!(symbols.bytes() <= bytes.max(Symbols::bytes_for(&raw).min(bytes)));
    }
}
