//! Promise: a record for which there is as much memory as [`RemoteWrite::need`] says is delivered, item by item, whatever it
//! holds.

use crate::rig::Rig;
use crate::written_headers::sent;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_load::protobuf::{field, varint};
use tidegate_load::remote_write::{self as load, compress};
use tidegate_sinks::{Prefer, RemoteWrite};
use tidegate_wire::remote_write::{Limits, Symbols, Version, inspect};

fn label(name: &str, value: &str) -> Vec<u8> {
    field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
}

fn sample(time: u32) -> Vec<u8> {
    let mut sample = vec![0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10];
    varint(&mut sample, time.into());
    field(2, &sample)
}

const VALUE: [u8; 11] = [0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x18, 1];

/// Numbers in which Snappy finds little.
fn noise(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    }
}

/// A 2.0 body with very many symbols that nobody needs, and series between them.
fn tiny_symbols() -> Vec<u8> {
    let mut raw = [b"".as_slice(), b"__name__", b"up", b"n"].map(|symbol| field(4, symbol)).concat();
    for number in 0..200u32 {
        raw.extend(field(4, format!("{number}").as_bytes()));
    }
    for number in 0..200u32 {
        raw.extend(b"\x22\0".repeat(1000));
        let mut references = vec![1, 2, 3];
        varint(&mut references, u64::from(4 + number));
        raw.extend(field(5, &[field(1, &references), sample(1)].concat()));
    }
    raw
}

/// A long symbol that is the value of many labels.
fn repeated_symbol() -> Vec<u8> {
    let mut next = noise(1);
    let long: String = (0..60 << 10).map(|_| char::from(b'a' + u8::try_from(next() % 26).unwrap())).collect();
    let mut raw = [b"".as_slice(), b"__name__", long.as_bytes()].map(|symbol| field(4, symbol)).concat();
    let mut references = vec![1, 2];
    for name in b'a'..=b'p' {
        raw.extend(field(4, &[name]));
        references.extend([3 + (name - b'a'), 2]);
    }
    let series = [field(1, &references), sample(1), sample(2)].concat();
    [raw, field(5, &series)].concat()
}

/// One series with very many samples.
fn long_series(version: Version) -> Vec<u8> {
    let samples: Vec<u8> = (0..20_000).flat_map(sample).collect();
    match version {
        Version::V1 => field(1, &[label("__name__", "up"), samples].concat()),
        Version::V2 => {
            let symbols = [b"".as_slice(), b"__name__", b"up"].map(|symbol| field(4, symbol)).concat();
            [symbols, field(5, &[field(1, &[1, 2]), samples].concat())].concat()
        }
    }
}

/// One exemplar with very many labels.
fn wide_exemplar(version: Version, with_sample: bool) -> Vec<u8> {
    let sample = if with_sample { sample(1) } else { vec![] };
    let mut next = noise(2);
    match version {
        Version::V1 => {
            let labels: Vec<u8> =
                (0..8_000).flat_map(|_| label(&format!("{:x}", next() % 0xfffff), "")).collect();
            let exemplar = field(3, &[labels, VALUE.to_vec()].concat());
            field(1, &[label("__name__", "up"), sample, exemplar].concat())
        }
        Version::V2 => {
            let symbols = [b"".as_slice(), b"__name__", b"up"].map(|symbol| field(4, symbol)).concat();
            let references: Vec<u8> = (0..20_000).map(|_| 1 + u8::try_from(next() % 2).unwrap()).collect();
            let exemplar = field(4, &[field(1, &references), VALUE.to_vec()].concat());
            [symbols, field(5, &[field(1, &[1, 2]), sample, exemplar].concat())].concat()
        }
    }
}

/// One histogram with very many buckets.
fn wide_histogram() -> Vec<u8> {
    let mut next = noise(3);
    // Spans of nothing cost nothing, and are there.
    let spans: Vec<u8> = (0..20_000)
        .flat_map(|_| field(11, &[0x08, u8::try_from(next() % 64).unwrap() * 2, 0x10, 0]))
        .collect();
    field(1, &[label("__name__", "up"), field(4, &spans)].concat())
}

#[tokio::test]
async fn accepted_bodies_are_delivered() {
    let bodies = [
        ("tiny symbols", Version::V2, tiny_symbols()),
        ("a repeated symbol", Version::V2, repeated_symbol()),
        ("a long series of 1.0", Version::V1, long_series(Version::V1)),
        ("a long series of 2.0", Version::V2, long_series(Version::V2)),
        ("a wide exemplar of 1.0", Version::V1, wide_exemplar(Version::V1, true)),
        ("a wide exemplar of 2.0", Version::V2, wide_exemplar(Version::V2, true)),
        ("a lone exemplar of 1.0", Version::V1, wide_exemplar(Version::V1, false)),
        ("a lone exemplar of 2.0", Version::V2, wide_exemplar(Version::V2, false)),
        ("a wide histogram", Version::V1, wide_histogram()),
    ];
    for (what, version, raw) in bodies {
        let limits = Limits { labels: 100_000, ..Limits::default() };
        let found = inspect(version, &raw, &limits, &mut Symbols::new()).unwrap();
        assert!(!found.needs_repair(), "{what}: {:?}", found.rejected);
        let mut body = Vec::new();
        compress(&raw, &mut body);
        let (protocol, theirs) = match version {
            Version::V1 => (Protocol::RemoteWrite1, load::Version::V1),
            Version::V2 => (Protocol::RemoteWrite2, load::Version::V2),
        };
        let need = RemoteWrite::need(protocol, Signal::Metrics).unwrap();
        let most = need.of(body.len(), raw.len(), found.largest_item);
        for prefer in [Prefer::V1, Prefer::V2] {
            let rig = Rig::new(1, 256 << 10).holding(most);
            rig.append(theirs, &body, raw.len(), found.counts.items()).await;
            let came = sent(&rig, prefer, |written| written).await;
            assert_eq!(rig.dropped(), [], "{what} as {prefer:?}, with {most} bytes");
            let sum = |count: fn(&load::RequestTotals) -> u64| {
                came.iter().map(|(_, totals)| count(totals)).sum::<u64>()
            };
            assert_eq!(sum(|totals| totals.samples), found.counts.samples, "{what} as {prefer:?}");
            assert_eq!(sum(|totals| totals.histograms), found.counts.histograms, "{what} as {prefer:?}");
            assert_eq!(sum(|totals| totals.exemplars), found.counts.exemplars, "{what} as {prefer:?}");
        }
    }
}

/// A point with an attribute that takes six times its length as a label: an array of control characters, in JSON.
#[tokio::test]
async fn a_point_of_otlp_is_delivered() {
    let text = "\u{1}".repeat(8 << 10);
    let array = field(5, &field(1, &field(1, text.as_bytes())));
    let attribute = field(7, &[field(1, b"key"), field(2, &array)].concat());
    let time = [0x19, 1, 0, 0, 0, 0, 0, 0, 0x10];
    let value = [0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let point = field(1, &[time.to_vec(), value.to_vec(), attribute].concat());
    let metric = field(2, &[field(1, b"up"), field(5, &point)].concat());
    let raw = field(1, &field(2, &metric));
    let need = RemoteWrite::need(Protocol::Otlp, Signal::Metrics).unwrap();
    // As the journal has it: in plain, and so only once.
    let most = need.of(raw.len(), 0, raw.len());
    for prefer in [Prefer::V1, Prefer::V2] {
        let rig = Rig::new(1, 256 << 10).holding(most);
        rig.append_in(Encoding::Identity, Signal::Metrics, Protocol::Otlp, &raw, raw.len(), 1).await;
        let came = sent(&rig, prefer, |written| written).await;
        assert_eq!(rig.dropped(), [], "{prefer:?}, with {most} bytes");
        assert_eq!(came.iter().map(|(_, totals)| totals.samples).sum::<u64>(), 1, "{prefer:?}");
    }
}

/// Records that the sink does not accept need no memory.
#[test]
fn records_that_are_not_accepted_need_no_memory() {
    assert_eq!(RemoteWrite::need(Protocol::Otlp, Signal::Logs), None);
    assert_eq!(RemoteWrite::need(Protocol::Bulk, Signal::Logs), None);
    assert!(RemoteWrite::need(Protocol::Otlp, Signal::Metrics).is_some());
}
