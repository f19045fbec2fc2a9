//! Valid requests are accepted, counted and read as prost decodes them.

use proptest::prelude::*;
use prost::Message;

use super::model::Model;
use super::oracle::{RequestV2, SeriesV2, WriteRequest};
use super::{check, strategies};
use crate::remote_write::{Counts, Symbols, Version, series_hash, v1, view};

fn sum(counts: impl Iterator<Item = usize>) -> u64 {
    counts.sum::<usize>() as u64
}

proptest! {
    /// Any valid 1.0 request passes, is counted right, and its view is what prost decodes, bit for bit.
    #[test]
    fn v1_is_accepted_counted_and_shown(request in strategies::v1()) {
        let raw = request.encode_to_vec();
        let series = || request.timeseries.iter();
        prop_assert_eq!(check(Version::V1, &raw).unwrap(), Counts {
            series: series().count() as u64,
            samples: sum(series().map(|series| series.samples.len())),
            histograms: sum(series().map(|series| series.histograms.len())),
            exemplars: sum(series().map(|series| series.exemplars.len())),
            metadata: request.metadata.len() as u64,
            symbols: 0,
        });
        let mut symbols = Symbols::new();
        let shown = Model::from(view(Version::V1, &raw, &mut symbols).unwrap());
        prop_assert_eq!(shown, Model::from(&WriteRequest::decode(&raw[..]).unwrap()));
    }

    /// Any valid 2.0 request passes, is counted right, and its view is what prost decodes, bit for bit.
    #[test]
    fn v2_is_accepted_counted_and_shown(request in strategies::v2()) {
        let raw = request.encode_to_vec();
        let series = || request.timeseries.iter();
        prop_assert_eq!(check(Version::V2, &raw).unwrap(), Counts {
            series: series().count() as u64,
            samples: sum(series().map(|series| series.samples.len())),
            histograms: sum(series().map(|series| series.histograms.len())),
            exemplars: sum(series().map(|series| series.exemplars.len())),
            metadata: series().filter(|series| series.metadata.is_some()).count() as u64,
            symbols: request.symbols.len() as u64,
        });
        let mut symbols = Symbols::new();
        let shown = Model::from(view(Version::V2, &raw, &mut symbols).unwrap());
        prop_assert_eq!(shown, Model::from(&request));
        prop_assert_eq!(symbols.bytes(), Symbols::bytes_for(&raw));
    }

    /// Symbols may come behind the series that refer to them, and between them.
    #[test]
    fn v2_symbols_may_come_last(request in strategies::v2()) {
        let RequestV2 { symbols, timeseries } = request.clone();
        let mut raw = RequestV2 { symbols: vec![], timeseries }.encode_to_vec();
        raw.extend(RequestV2 { symbols, timeseries: vec![] }.encode_to_vec());
        prop_assert!(check(Version::V2, &raw).is_ok());
        let mut symbols = Symbols::new();
        let shown = Model::from(view(Version::V2, &raw, &mut symbols).unwrap());
        prop_assert_eq!(shown, Model::from(&request));
    }

    /// The same labels have the same hash in both versions.
    #[test]
    fn a_series_has_one_hash(request in strategies::v2()) {
        let mut symbols = Symbols::new();
        let raw = request.encode_to_vec();
        let labels = Model::from(&request).series;
        let shown = view(Version::V2, &raw, &mut symbols).unwrap();
        for (shown, model) in shown.series().zip(&labels) {
            let labels = model.labels.iter().map(|label| crate::remote_write::Label {
                name: label.name.as_bytes(),
                value: label.value.as_bytes(),
            });
            prop_assert_eq!(series_hash(shown.labels()), series_hash(labels));
        }
    }
}

/// An empty body is an empty request in both versions.
#[test]
fn nothing_is_accepted_as_nothing() {
    for version in [Version::V1, Version::V2] {
        assert_eq!(check(version, &[]).unwrap(), Counts::default());
    }
}

/// Fields that this version of the schema does not have are skipped, at every level.
#[test]
fn unknown_fields_are_skipped() {
    let unknown = [0xa2, 0x06, 0x02, 0xff, 0xff, 0xa5, 0x06, 1, 2, 3, 4, 0xa8, 0x06, 0x7f];
    let label = [&[0x0a, 8][..], b"__name__", &[0x12, 1, b'a'], &unknown].concat();
    let sample = [&[0x09, 2, 0, 0, 0, 0, 0, 0xf0, 0x7f, 0x10, 5][..], &unknown].concat();
    let field = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let series = [unknown.to_vec(), field(0x0a, &label), field(0x12, &sample)].concat();
    let raw = [unknown.to_vec(), field(0x0a, &series), unknown.to_vec()].concat();
    let counts = check(Version::V1, &raw).unwrap();
    assert_eq!((counts.series, counts.samples), (1, 1));
    let mut symbols = Symbols::new();
    let model = Model::from(view(Version::V1, &raw, &mut symbols).unwrap());
    assert_eq!(model, Model::from(&WriteRequest::decode(&raw[..]).unwrap()));
}

/// References may be packed in several pieces, or not at all.
#[test]
fn references_come_packed_or_not() {
    let symbols = ["", "__name__", "up", "x", "y"].map(str::to_owned).to_vec();
    let series = SeriesV2 { samples: vec![Default::default()], ..SeriesV2::default() };
    let mut message = vec![0x0a, 1, 1, 0x08, 2, 0x0a, 2, 3, 4];
    message.extend(series.encode_to_vec());
    let mut raw = RequestV2 { symbols, timeseries: vec![] }.encode_to_vec();
    raw.extend([0x2a, u8::try_from(message.len()).unwrap()]);
    raw.extend(message);
    assert_eq!(check(Version::V2, &raw).unwrap().samples, 1);
    let mut scratch = Symbols::new();
    let model = Model::from(view(Version::V2, &raw, &mut scratch).unwrap());
    assert_eq!(model, Model::from(&RequestV2::decode(&raw[..]).unwrap()));
    assert_eq!(model.series[0].labels.len(), 2);
}

/// Thanos' requests have series in the same field, and a number in that of the metadata.
#[test]
fn entries_come_in_order_whatever_else_is_there() {
    let raw = b"\x0a\x02\x12\x00\x1a\x06\x12\x01f\x22\x01h\x18\x02\x22\x03abc\x0a\x02\x0a\x00";
    let entries = v1::Request::new(raw).entries().map(|entry| match entry {
        v1::Entry::Series(series) => (&b""[..], series.message()),
        v1::Entry::Metadata { family, message } => (family, message),
    });
    let entries: Vec<_> = entries.collect();
    assert_eq!(entries, [(&b""[..], &b"\x12\x00"[..]), (b"f", b"\x12\x01f\x22\x01h"), (b"", b"\x0a\x00")]);
}
