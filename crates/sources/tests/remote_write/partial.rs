//! Promises: labels come in any order and go on sorted; one bad series costs itself and nothing else; the answer says
//! exactly how much was written and why the rest was not, and the books agree.

use crate::rig::Rig;
use tidegate_journal::Meta;
use tidegate_ledger::{Refusal, Signal};
use tidegate_load::protobuf::field;
use tidegate_load::remote_write::{self as load, compress};
use tidegate_wire::remote_write::{Limits, Symbols, Version, check, view};
use tidegate_wire::snappy;

const SAMPLE: [u8; 11] = [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1];

/// A 1.0 series with a sample.
fn series(labels: &[(&str, &str)]) -> Vec<u8> {
    let label = |(name, value): &(&str, &str)| {
        field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat())
    };
    let mut message: Vec<u8> = labels.iter().flat_map(label).collect();
    message.extend(field(2, &SAMPLE));
    field(1, &message)
}

/// A 2.0 series of these symbols with a sample.
fn series_v2(references: &[u8]) -> Vec<u8> {
    field(5, &[field(1, references), field(2, &SAMPLE)].concat())
}

fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    compress(raw, &mut body);
    body
}

/// The journalled body, decompressed, after checking that the strictest receiver would accept it.
fn decoded(version: Version, meta: &Meta, body: &[u8]) -> Vec<u8> {
    let mut raw = vec![0; snappy::decoded_len(body).unwrap()];
    assert_eq!(snappy::decode(body, &mut raw).unwrap(), meta.raw_len as usize);
    let counts = check(version, &raw, &Limits::default(), &mut Symbols::new()).unwrap();
    assert_eq!(counts.items(), u64::from(meta.items));
    raw
}

/// The labels of all series, in words.
fn shown(version: Version, raw: &[u8]) -> Vec<String> {
    let mut symbols = Symbols::new();
    let text = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
    let request = view(version, raw, &mut symbols).unwrap();
    let labels = request.series().map(|series| {
        let labels = series.labels().map(|label| format!("{}={}", text(label.name), text(label.value)));
        labels.collect::<Vec<_>>().join(",")
    });
    labels.collect()
}

/// As vmagent sends them with its default flags.
#[tokio::test]
async fn labels_in_any_order_are_sorted() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let raw = [
        series(&[("job", "x"), ("__name__", "up"), ("instance", "a")]),
        series(&[("__name__", "up"), ("a", "1")]),
    ];
    let answer = rig.write(load::Version::V1, &compressed(&raw.concat())).await;
    assert_eq!((answer.status, answer.written), (204, [Some(2), Some(0), Some(0)]), "{}", answer.body);
    let (meta, body) = rig.journaled(&mut follower).await;
    let raw = decoded(Version::V1, &meta, &body);
    assert_eq!(shown(Version::V1, &raw), ["__name__=up,instance=a,job=x", "__name__=up,a=1"]);

    let symbols = ["", "__name__", "up", "job", "x"].map(|symbol| field(4, symbol.as_bytes())).concat();
    let raw = [symbols, series_v2(&[3, 4, 1, 2])].concat();
    let answer = rig.write(load::Version::V2, &compressed(&raw)).await;
    assert_eq!((answer.status, answer.written), (204, [Some(1), Some(0), Some(0)]), "{}", answer.body);
    let (meta, body) = rig.journaled(&mut follower).await;
    assert_eq!(shown(Version::V2, &decoded(Version::V2, &meta, &body)), ["__name__=up,job=x"]);
    let books = rig.books();
    assert_eq!((books.accepted, books.items, books.items_refused), (2, vec![(Signal::Metrics, 3)], vec![]));
}

/// A body that is checked on another thread, and that compresses to more than one block.
#[tokio::test]
async fn large_bodies_are_sorted_as_well() {
    let rig = Rig::new();
    let mut raw = Vec::new();
    let mut number = 0u64;
    while raw.len() < 5 << 20 {
        // So that it does not compress to nothing.
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let value = format!("{number:016x}");
        raw.extend(series(&[("z", &value), ("__name__", "up"), ("pod", &value)]));
    }
    let answer = rig.write(load::Version::V1, &compressed(&raw)).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    let (meta, body) = rig.journaled(&mut rig.follow()).await;
    let sorted = decoded(Version::V1, &meta, &body);
    assert_eq!(sorted.len(), raw.len());
    assert!(shown(Version::V1, &sorted).iter().all(|labels| labels.starts_with("__name__=up,pod=")));
    rig.books();
}

#[tokio::test]
async fn good_neighbours_are_kept() {
    let good = |n: &str| series(&[("__name__", "up"), ("n", n)]);
    let bad = series(&[("__name__", "up"), ("a", "1"), ("a", "2")]);
    let v1 = [good("1"), bad, good("2")].concat();
    let symbols = ["", "__name__", "up", "n", "1"].map(|symbol| field(4, symbol.as_bytes())).concat();
    let v2 = [symbols, series_v2(&[1, 2]), series_v2(&[1, 2, 3, 9]), series_v2(&[1, 2, 3, 4])].concat();
    for (ours, theirs, raw, reason) in [
        (Version::V1, load::Version::V1, v1, "label `a` is there twice"),
        (Version::V2, load::Version::V2, v2, "refers to symbol 9"),
    ] {
        let rig = Rig::new();
        let answer = rig.write(theirs, &compressed(&raw)).await;
        assert_eq!((answer.status, answer.retry_after), (400, None), "{}", answer.body);
        assert_eq!(answer.written, [Some(2), Some(0), Some(0)]);
        assert!(answer.body.contains("2 items were accepted and 1 refused"), "{}", answer.body);
        assert!(answer.body.contains("series 1: ") && answer.body.contains(reason), "{}", answer.body);
        let (meta, body) = rig.journaled(&mut rig.follow()).await;
        assert_eq!(shown(ours, &decoded(ours, &meta, &body)).len(), 2);
        let books = rig.books();
        assert_eq!((books.accepted, books.items), (1, vec![(Signal::Metrics, 2)]));
        assert_eq!(books.items_refused, [(Refusal::Malformed, 1)]);
    }
}

/// Where nothing is good the request is refused, and nothing journalled.
#[tokio::test]
async fn a_request_of_bad_series_is_refused() {
    let rig = Rig::new();
    let raw = series(&[("a", "1")]).repeat(1000);
    let answer = rig.write(load::Version::V1, &compressed(&raw)).await;
    assert_eq!((answer.status, answer.written), (400, [Some(0); 3]));
    assert!(answer.body.contains("there is no label `__name__`"), "{}", answer.body);
    assert!(answer.body.ends_with("and 992 more\n") && answer.body.len() < 2000, "{}", answer.body);
    rig.assert_refused(Refusal::Malformed, "bad series");
    assert_eq!(rig.journal.stats().head, 0);
}
