//! Promise: metrics that came as remote write arrive as OTLP, and the books count them as they came.

use crate::rig::{BOTH, PART, Rig, settings_for};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::otlp::OtlpSink;
use tidegate_load::remote_write::{RequestExtras, SampleBatch, Version, compress, decode};
use tidegate_load::{Behaviour, SeriesModel, Timeline};
use tidegate_sinks::{Compression, OtlpSettings};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 };

/// Puts in a request of `series` series; its items, and how many of them are float samples.
async fn put(rig: &Rig, version: Version, series: usize, samples: u64, extras: RequestExtras) -> (u64, u64) {
    let model = SeriesModel::with_histograms(7, series, TIMELINE, 10);
    let batch = SampleBatch { extras, ..SampleBatch::of(&model, model.range(0..series), 0, samples) };
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    batch.encode(version, &mut raw);
    compress(&raw, &mut body);
    let totals = decode(version, &body, raw.len(), &mut |_| {}).unwrap();
    let items = totals.samples + totals.histograms + totals.exemplars + totals.metadata;
    let protocol = match version {
        Version::V1 => Protocol::RemoteWrite1,
        Version::V2 => Protocol::RemoteWrite2,
    };
    rig.append(Signal::Metrics, protocol, Encoding::Snappy, &body, raw.len(), items).await;
    (items, totals.samples)
}

#[tokio::test]
async fn remote_write_arrives_as_otlp() {
    for transport in BOTH {
        for compression in [Compression::None, Compression::Gzip(1), Compression::Zstd(1)] {
            let mut rig = Rig::new(PART);
            let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
            let (mut items, mut samples) = (0, 0);
            let all = RequestExtras { exemplars: true, metadata: true, stale: true };
            for extras in [RequestExtras::default(), all] {
                for version in [Version::V1, Version::V2] {
                    let put = put(&rig, version, 50, 3, extras).await;
                    (items, samples) = (items + put.0, samples + put.1);
                }
                // OTLP between them goes its own way.
                rig.put(Signal::Metrics, Encoding::Identity, 5).await;
            }
            rig.drain(OtlpSettings { compression, ..settings_for(peer.address(), transport) }).await;
            let page = rig.page();
            assert_eq!((page.delivered, page.dropped), (items + 10, vec![]));
            let arrived = peer.report();
            assert_eq!(arrived.malformed, 0);
            assert_eq!(arrived.unnumbered, samples);
        }
    }
}

/// A record that is too large as OTLP is split, and one that exceeds the sink's share borrows.
#[tokio::test]
async fn large_records_are_cut_and_borrow() {
    for version in [Version::V1, Version::V2] {
        for (part, most) in [(PART, 64 << 10), (512 << 10, 64 << 20)] {
            let rig = Rig::new(part);
            let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
            let (items, samples) = put(&rig, version, 500, 20, RequestExtras::default()).await;
            let settings = settings_for(peer.address(), BOTH[0]);
            rig.drain(OtlpSettings { max_request_bytes: most, ..settings }).await;
            let page = rig.page();
            assert_eq!((page.delivered, page.dropped), (items, vec![]), "{version:?} in {part}");
            let arrived = peer.report();
            assert_eq!((arrived.unnumbered, arrived.malformed), (samples, 0));
            let requests = arrived.requests.values().sum::<u64>();
            // How long it becomes is guessed, and what is more goes in another piece.
            assert_eq!(requests > 8, most < 1 << 20, "{requests}");
        }
    }
}

/// A histogram of floats has no form in OTLP.
#[tokio::test]
async fn histograms_without_an_otlp_form_are_counted() {
    let rig = Rig::new(PART);
    let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
    // One series "m" with a histogram whose count is a double, and one sample.
    let name = b"\x0a\x0d\x0a\x08__name__\x12\x01m";
    let sample = b"\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01";
    let histogram = b"\x22\x0b\x11\0\0\0\0\0\0\xf0\x3f\x78\x01";
    let series = [&name[..], sample, histogram].concat();
    let raw = [&[0x0a, u8::try_from(series.len()).unwrap()], &series[..]].concat();
    let mut body = Vec::new();
    compress(&raw, &mut body);
    rig.append(Signal::Metrics, Protocol::RemoteWrite1, Encoding::Snappy, &body, raw.len(), 2).await;
    rig.drain(settings_for(peer.address(), BOTH[1])).await;
    let page = rig.page();
    assert_eq!((page.delivered, page.dropped), (1, vec![(Dropped::Untranslatable, 1)]));
    assert_eq!(peer.report().unnumbered, 1);
}
