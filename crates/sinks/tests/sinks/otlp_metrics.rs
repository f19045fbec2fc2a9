//! Promise: metrics that came as OTLP arrive as series, within the limits, and the books count them in points
//! whatever they become.

use crate::rig::{NAME, Rig, answers, settings};
use std::sync::Arc;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::otlp::{self, ContentCoding};
use tidegate_load::{Arrivals, Behaviour, Check, VerifyingReceiver};
use tidegate_sinks::{Prefer, RemoteWriteSettings, Translation};

fn peer(behaviour: Behaviour) -> Arc<VerifyingReceiver> {
    Arc::new(VerifyingReceiver::start(behaviour, Check::Everything).unwrap())
}

fn request(first: u64, points: u64) -> Vec<u8> {
    let time_ns = 1_700_000_000_000_000_000;
    otlp::ExportRequest { signal: otlp::Signal::Metrics, items: points, first, time_ns }.encode()
}

/// Puts in a request of `points` gauges, each a series of its own, of one resource.
async fn put(rig: &Rig, coding: ContentCoding, first: u64, points: u64) {
    put_raw(rig, coding, &request(first, points), points).await;
}

async fn put_raw(rig: &Rig, coding: ContentCoding, raw: &[u8], points: u64) {
    let encoding = match coding {
        ContentCoding::Identity => Encoding::Identity,
        ContentCoding::Gzip => Encoding::Gzip,
        ContentCoding::Zstd => Encoding::Zstd,
    };
    let body = coding.encode(raw).unwrap();
    rig.append_in(encoding, Signal::Metrics, Protocol::Otlp, &body, raw.len(), points).await;
}

/// That `points` arrived once each, with `infos` series about resources beside them.
fn assert_arrived(arrived: &Arrivals, points: u64, infos: u64) {
    assert_eq!(arrived.malformed, 0, "{:?}", arrived.faults);
    assert_eq!((arrived.series.len() as u64, arrived.totals.samples), (points + infos, points + infos));
}

/// A message in a field, of protobuf.
fn message(field: u8, inner: &[&[u8]]) -> Vec<u8> {
    let inner = inner.concat();
    assert!(inner.len() < 128);
    [&[field << 3 | 2, inner.len() as u8], &inner[..]].concat()
}

/// A request with one sum of one point, of this temporality.
fn sum(temporality: u8) -> Vec<u8> {
    let point =
        message(1, &[&[3 << 3 | 1, 0, 0, 0x10, 0, 0, 0, 0, 1], &[6 << 3 | 1, 1, 0, 0, 0, 0, 0, 0, 0]]);
    let sum = message(7, &[&point, &[2 << 3, temporality, 3 << 3, 1]]);
    message(1, &[&message(2, &[&message(2, &[&message(1, &[b"m"]), &sum])])])
}

#[tokio::test]
async fn metrics_arrive_as_series_however_they_came_and_go() {
    for (prefer, lanes) in [(Prefer::AsReceived, 1), (Prefer::V2, 1), (Prefer::V1, 3), (Prefer::V2, 3)] {
        let rig = Rig::new(1, 1 << 20);
        let peer = peer(Behaviour::Healthy);
        for (first, coding) in
            [(0, ContentCoding::Identity), (50, ContentCoding::Gzip), (100, ContentCoding::Zstd)]
        {
            put(&rig, coding, first, 50).await;
        }
        rig.drain(RemoteWriteSettings { prefer, lanes, ..settings(&peer) }).await;
        let page = rig.assert_closed(0);
        assert_eq!((page.delivered, page.dropped), (150, vec![]), "{prefer:?} over {lanes}");
        let arrived = peer.report();
        assert_arrived(&arrived, 150, 3);
        let other = if prefer == Prefer::V2 { arrived.versions[0] } else { arrived.versions[1] };
        assert_eq!(other, 0);
    }
}

/// Clients of HTTP may compress with `deflate`, which is a zlib stream.
#[tokio::test]
async fn metrics_in_deflate_arrive() {
    let (rig, peer, raw) = (Rig::new(1, 1 << 20), peer(Behaviour::Healthy), request(0, 50));
    // One stored block, and its Adler-32.
    let len = u16::try_from(raw.len()).unwrap();
    let (low, high) = raw.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    let (sum, len, complement) = ((high << 16 | low).to_be_bytes(), len.to_le_bytes(), (!len).to_le_bytes());
    let body = [&[0x78, 0x01, 0x01][..], &len, &complement, &raw, &sum].concat();
    rig.append_in(Encoding::Deflate, Signal::Metrics, Protocol::Otlp, &body, raw.len(), 50).await;
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (50, vec![]));
    assert_arrived(&peer.report(), 50, 1);
}

/// Points and samples are told apart: remote write and OTLP beside each other keep their own counts and order.
#[tokio::test]
async fn metrics_go_between_remote_write() {
    use tidegate_load::remote_write::Version;
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for round in 0..5 {
        rig.put(Version::V1, 0..10, 2).await;
        put(&rig, ContentCoding::Identity, 7 * round, 7).await;
        rig.put(Version::V2, 0..10, 1).await;
    }
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (5 * 37, vec![]));
    let arrived = peer.report();
    assert_eq!(arrived.malformed, 0, "{:?}", arrived.faults);
    assert_eq!(arrived.totals.samples + arrived.totals.histograms, 5 * (30 + 7 + 1));
}

#[tokio::test]
async fn a_record_over_the_limits_is_cut() {
    for prefer in [Prefer::V1, Prefer::V2] {
        for limits in [(usize::MAX, 100), (64 << 10, u64::MAX)] {
            let rig = Rig::new(1, 2 << 20);
            let peer = peer(Behaviour::Healthy);
            put(&rig, ContentCoding::Gzip, 0, 2_000).await;
            let (max_bytes, max_items) = limits;
            let settings = RemoteWriteSettings {
                prefer,
                max_bytes: max_bytes.min(8 << 20),
                max_items,
                ..settings(&peer)
            };
            rig.drain(settings).await;
            let page = rig.assert_closed(0);
            assert_eq!((page.delivered, page.dropped), (2_000, vec![]), "{prefer:?} within {limits:?}");
            // `target_info` comes once, with the last point.
            assert_arrived(&peer.report(), 2_000, 1);
            assert!(answers(&peer.report(), 204) >= 3, "{:?}", peer.report().requests);
        }
    }
}

#[tokio::test]
async fn untranslatable_metrics_are_dropped_and_the_rest_arrives() {
    let rig = Rig::new(1, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    let (delta, cumulative) = (sum(1), sum(2));
    put_raw(&rig, ContentCoding::Identity, &delta, 1).await;
    put_raw(&rig, ContentCoding::Identity, &[&delta[..], &cumulative, &delta].concat(), 3).await;
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (1, vec![(Dropped::Untranslatable, 3)]));
    assert_arrived(&peer.report(), 1, 0);

    // Nothing is sent where nothing is left.
    let rig = Rig::new(1, 1 << 20);
    let peer = crate::otlp_metrics::peer(Behaviour::Healthy);
    put_raw(&rig, ContentCoding::Identity, &delta, 1).await;
    rig.drain(settings(&peer)).await;
    assert_eq!(rig.dropped(), [(Dropped::Untranslatable, 1)]);
    assert_eq!(peer.report().versions, [0, 0]);
}

/// Deltas that are added up arrive, and count once however often they are sent; what repeats itself is dropped.
#[tokio::test]
async fn deltas_are_added_up_once() {
    for prefer in [Prefer::V1, Prefer::V2] {
        let rig = Rig::new(1, 1 << 20);
        let peer = peer(Behaviour::Status { code: 503, retry_after: None });
        let (delta, cumulative) = (sum(1), sum(2));
        put_raw(&rig, ContentCoding::Identity, &delta, 1).await;
        assert!(rig.journal.close(crate::rig::SECOND));
        let otlp = Translation { delta_series: 10, ..Translation::default() };
        let settings = RemoteWriteSettings { prefer, otlp, ..settings(&peer) };
        let (sink, _stopper) = rig.sink_called(NAME, settings.clone());
        let watched = Arc::clone(&peer);
        let script = async {
            crate::rig::arrival(&watched, |arrived| answers(arrived, 503) > 2).await;
            crate::rig::order(&watched, Behaviour::Healthy).await;
        };
        tokio::join!(sink.run(), script);
        let page = rig.assert_closed(0);
        assert_eq!((page.delivered, page.dropped), (1, vec![]));
        assert_arrived(&peer.report(), 1, 0);

        let rig = Rig::new(1, 1 << 20);
        put_raw(&rig, ContentCoding::Identity, &[&delta[..], &cumulative, &delta].concat(), 3).await;
        rig.drain(settings).await;
        let page = rig.assert_closed(0);
        assert_eq!((page.delivered, page.dropped), (2, vec![(Dropped::Untranslatable, 1)]), "{prefer:?}");
    }
}

#[tokio::test]
async fn a_rejection_counts_points() {
    let rig = Rig::new(1, 1 << 20);
    let peer = peer(Behaviour::Status { code: 400, retry_after: None });
    put(&rig, ContentCoding::Zstd, 0, 40).await;
    put(&rig, ContentCoding::Zstd, 40, 30).await;
    rig.drain(RemoteWriteSettings { lanes: 2, ..settings(&peer) }).await;
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 70)]);
}

/// A peer that fails for a while gets everything later, once; one that takes 1.0 only gets that.
#[tokio::test]
async fn failures_are_sent_again() {
    for (before, after) in [
        (Behaviour::Status { code: 503, retry_after: None }, Behaviour::Healthy),
        (Behaviour::OnlyV1, Behaviour::OnlyV1),
    ] {
        let rig = Rig::new(1, 1 << 20);
        let peer = peer(before);
        put(&rig, ContentCoding::Gzip, 0, 300).await;
        assert!(rig.journal.close(crate::rig::SECOND));
        let (sink, _stopper) =
            rig.sink_called(NAME, RemoteWriteSettings { prefer: Prefer::V2, ..settings(&peer) });
        let watched = Arc::clone(&peer);
        let script = async {
            crate::rig::arrival(&watched, |arrived| !arrived.requests.is_empty()).await;
            crate::rig::order(&watched, after).await;
        };
        tokio::join!(sink.run(), script);
        let page = rig.assert_closed(0);
        assert_eq!((page.delivered, page.dropped), (300, vec![]));
        assert_arrived(&peer.report(), 300, 1);
    }
}

/// Where there is no room for the tables of a translation, the record is lost once, and what follows arrives.
#[tokio::test]
async fn a_record_without_room_is_lost_with_the_reason() {
    let mut rig = Rig::new(1, 1 << 20);
    rig.part = 64 << 10;
    let peer = peer(Behaviour::Healthy);
    // Larger than what the whole share has beyond the floors.
    let most = 30 << 20;
    let raw = request(0, 100_000);
    assert!(raw.len() > most);
    put_raw(&rig, ContentCoding::Zstd, &raw, 100_000).await;
    put(&rig, ContentCoding::Identity, 0, 10).await;
    rig.drain(settings(&peer)).await;
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (10, vec![(Dropped::TooLarge, 100_000)]));
}
