//! Promise: what is acknowledged is in the journal as it came, and the answer says how much it was.

use crate::rig::Rig;
use tidegate_journal::{Encoding, Protocol};
use tidegate_load::remote_write::{RequestExtras, SampleBatch, Version, compress, decode};
use tidegate_load::{SeriesModel, Timeline};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };

/// A body with everything in it, its decompressed length, and what it holds.
fn body(version: Version, series: usize) -> (Vec<u8>, usize, tidegate_load::remote_write::RequestTotals) {
    let model = SeriesModel::with_histograms(3, series, TIMELINE, 5);
    let extras = RequestExtras { exemplars: true, metadata: true, stale: true };
    let batch = SampleBatch { extras, ..SampleBatch::of(&model, model.series(), 0, 2) };
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    batch.encode(version, &mut raw);
    compress(&raw, &mut body);
    let totals = decode(version, &body, raw.len(), &mut |_| {}).unwrap();
    (body, raw.len(), totals)
}

#[tokio::test]
async fn both_versions_reach_the_journal_as_they_came() {
    for (version, protocol) in [(Version::V1, Protocol::RemoteWrite1), (Version::V2, Protocol::RemoteWrite2)]
    {
        let rig = Rig::new();
        let (body, raw_len, totals) = body(version, 100);
        let answer = rig.write(version, &body).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""));
        let written = [totals.samples, totals.histograms, totals.exemplars].map(Some);
        assert_eq!(answer.written, written);
        assert!(totals.histograms > 0 && totals.exemplars > 0 && totals.metadata > 0);

        let books = rig.books();
        assert_eq!((books.received, books.accepted, books.bytes), (1, 1, body.len() as u64));
        let (meta, journaled) = rig.journaled(&mut rig.follow()).await;
        assert_eq!(journaled, body);
        let items = totals.samples + totals.histograms + totals.exemplars + totals.metadata;
        assert_eq!((meta.protocol, meta.encoding), (protocol, Encoding::Snappy));
        assert_eq!((u64::from(meta.items), meta.raw_len as usize), (items, raw_len));
        assert_eq!(books.items[0].1, items);
        assert!(meta.received_at_ns > 0);
    }
}

/// Large bodies are checked on another thread; nothing else is different.
#[tokio::test]
async fn large_bodies_are_taken_as_well() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    for (version, series) in [(Version::V1, 14_000), (Version::V2, 45_000)] {
        let (body, raw_len, _) = body(version, series);
        assert!(raw_len > 4 << 20, "{raw_len}");
        assert_eq!(rig.write(version, &body).await.status, 204);
        assert_eq!(rig.journaled(&mut follower).await.1, body);
    }
    assert_eq!(rig.books().accepted, 2);
}

/// As the senders of the first hour: without any of the headers, and as Thanos calls the path.
#[tokio::test]
async fn headers_may_be_left_out_and_the_path_has_two_names() {
    let (body, ..) = body(Version::V1, 3);
    let empty = "Content-Type: \r\nContent-Encoding: \r\n";
    for (path, headers) in [
        ("/api/v1/write", ""),
        ("/api/v1/receive", ""),
        ("/api/v1/write?tenant=x", ""),
        ("/api/v1/write/", ""),
        ("/api/v1/write", empty),
    ] {
        let rig = Rig::new();
        let answer = rig.send(&format!("POST {path} HTTP/1.1\r\n{headers}"), &body).await;
        assert_eq!(answer.status, 204, "{path}: {}", answer.text);
        assert_eq!(rig.books().accepted, 1);
    }
}

#[tokio::test]
async fn chunked_bodies_are_taken() {
    let rig = Rig::new();
    let (body, ..) = body(Version::V1, 3);
    let head = format!(
        "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    let answer = rig.send_raw([head.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()).await;
    assert_eq!(answer.status, 204, "{}", answer.text);
    let (_, journaled) = rig.journaled(&mut rig.follow()).await;
    assert_eq!(journaled, body, "without the chunks");
}

/// An empty request is a success that leaves nothing behind.
#[tokio::test]
async fn a_request_without_items_is_accepted_and_not_journaled() {
    let rig = Rig::new();
    let answer = rig.write(Version::V1, &[0]).await;
    assert_eq!((answer.status, answer.written), (204, [Some(0); 3]));
    let books = rig.books();
    assert_eq!((books.accepted, books.bytes), (1, 0));
    assert_eq!(rig.journal.stats().head, 0);
}

/// A symbol table larger than a worker's buffer is charged while the body is checked.
#[tokio::test]
async fn the_symbols_of_a_body_are_charged() {
    use tidegate_arena::Share;
    let rig = Rig::new();
    // 200,000 times the empty symbol: two bytes each, and four in the table.
    let raw = b"\x22\0".repeat(200_000);
    let mut body = Vec::new();
    compress(&raw, &mut body);
    assert_eq!(rig.write(Version::V2, &body).await.status, 204);
    let usage = rig.arena.usage();
    let peak = usage.shares.iter().find(|known| known.share == Share::Decode).unwrap().peak;
    assert!(peak >= raw.len() as u64 + 800_000, "{peak}");
    rig.books();
}
