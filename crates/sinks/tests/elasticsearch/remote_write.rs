//! Remote write becomes documents as if its series had come as OTLP.

use crate::node::Node;
use crate::rig::{PART, Rig, settings};
use crate::unavailable::meta;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::protobuf::field;
use tidegate_load::remote_write::{self, SampleBatch, Version};
use tidegate_load::{SeriesModel, Timeline};
use tidegate_sinks::{ElasticsearchSettings, Mapping};

/// Samples of both versions are there with their name, labels and time, small and joined; a stale marker is no value.
#[tokio::test]
async fn series_become_documents() {
    for (version, protocol) in [(Version::V1, Protocol::RemoteWrite1), (Version::V2, Protocol::RemoteWrite2)]
    {
        for mapping in [Mapping::Otel, Mapping::Ecs] {
            let (rig, node) = (Rig::new(PART), Node::new([]));
            node.seen().keeps = true;
            let model = SeriesModel::new(1, 40, Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 });
            let mut samples = 0;
            for part in 0..4 {
                let request = SampleBatch::of(&model, model.range(part * 10..part * 10 + 10), 0, 3);
                let (mut raw, mut body) = (Vec::new(), Vec::new());
                request.encode(version, &mut raw);
                remote_write::compress(&raw, &mut body);
                samples += 30;
                let meta = meta(Signal::Metrics, protocol, 30, raw.len());
                rig.append(Meta { encoding: Encoding::Snappy, ..meta }, &body).await;
            }
            rig.drain(ElasticsearchSettings { mapping, ..settings(&node) }).await;
            assert_eq!((rig.page().delivered, rig.dropped()), (samples, vec![]), "{version:?} {mapping:?}");
            assert_eq!(node.seen().requests.len(), 1, "they are joined");
            let seen = node.seen();
            let metrics = seen.kept.iter().filter(|(index, _)| index.starts_with("metrics-"));
            assert_eq!(metrics.count(), seen.kept.len());
            assert!(!seen.kept.is_empty() && seen.kept.len() as u64 <= samples);
            let times: Vec<&str> =
                seen.kept.iter().map(|(_, document)| document["@timestamp"].as_str().unwrap()).collect();
            assert!(times.iter().all(|time| time.starts_with("2023-11-14T22:13:2")), "{times:?}");
            assert_eq!(seen.anonymous + seen.repeated, 0);
        }
    }
}

/// Samples without a name or a value are counted.
#[tokio::test]
async fn samples_without_a_value_are_counted() {
    let (rig, node) = (Rig::new(PART), Node::new([]));
    let label = |name: &[u8], value: &[u8]| field(1, &[field(1, name), field(2, value)].concat());
    let sample = |bits: u64| field(2, &[&[0x09][..], &bits.to_le_bytes(), &[0x10, 0x7f]].concat());
    let body = field(
        1,
        &[label(b"__name__", b"up"), sample(1f64.to_bits()), sample(0x7ff0_0000_0000_0002)].concat(),
    );
    rig.append(meta(Signal::Metrics, Protocol::RemoteWrite1, 2, body.len()), &body).await;
    rig.drain(settings(&node)).await;
    assert_eq!((rig.page().delivered, rig.dropped()), (1, vec![(Dropped::Untranslatable, 1)]));
}
