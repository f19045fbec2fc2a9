//! Promise: what can never be held is dropped by the item, and nothing hangs: neither the sink, nor the thread that it
//! runs on, nor the order to stop.

use crate::bodies::{encoded, put};
use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, NAME, Rig, SECOND, settings, settings_for};
use std::time::Duration;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::otlp::OtlpSink;
use tidegate_load::remote_write::{RequestExtras, SampleBatch, Version, compress, decode};
use tidegate_load::{Behaviour, SeriesModel, Timeline};
use tidegate_sinks::{Compression, Health, Otlp, OtlpSettings, Transport};
use tidegate_tap::TapFilter;

const COMPRESSIONS: [Compression; 2] = [Compression::None, Compression::Gzip(1)];
/// The most that the sink can hold with its turn.
const MOST: usize = 4 << 20;

/// A request of one resource with an attribute of `envelope` bytes, and these items.
fn request(envelope: usize, items: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let (mut resource, mut scope, mut group, mut request) = (vec![], vec![], vec![], vec![]);
    // `Resource.dropped_attributes_count` is passed over by all; the length is what counts.
    put(&mut resource, 15, &vec![b'x'; envelope]);
    items.into_iter().for_each(|item| put(&mut scope, 2, &item));
    put(&mut group, 1, &resource);
    put(&mut group, 2, &scope);
    put(&mut request, 1, &group);
    request
}

fn record(number: u64, padding: usize) -> Vec<u8> {
    let mut record = Vec::new();
    put(&mut record, 3, number.to_string().as_bytes());
    put(&mut record, 15, &vec![b'x'; padding]);
    record
}

/// A single item, and items of a resource, that fit into no request at all: they go, and what is beside them arrives.
#[tokio::test]
async fn items_larger_than_memory_are_dropped_without_stalling() {
    for transport in BOTH {
        for compression in COMPRESSIONS {
            let mut rig = Rig::narrow(256 << 10, MOST as u64);
            let peer = Peer::new();
            rig.put(Signal::Logs, Encoding::Gzip, 3).await;
            let one = request(0, [record(3, 3 << 20)]);
            let many = request(3 << 20, (4..54).map(|number| record(number, 10)));
            rig.next = 54;
            for (raw, items) in [(one, 1), (many, 50)] {
                let body = encoded(Encoding::Gzip, &raw);
                rig.append(Signal::Logs, Protocol::Otlp, Encoding::Gzip, &body, raw.len(), items).await;
            }
            rig.put(Signal::Logs, Encoding::Gzip, 3).await;
            let settings = settings(&peer, transport);
            rig.drain(OtlpSettings { compression, max_request_bytes: 1 << 20, ..settings }).await;
            rig.assert_but(&[&peer], 3..54);
            assert_eq!(rig.dropped(), [(Dropped::TooLarge, 51)]);
        }
    }
}

/// That a record is within what the sink says it delivers.
fn assert_deliverable(protocol: Protocol, signal: Signal, kept: usize, decoded: usize, item: usize) {
    let needed = Otlp::need(protocol, signal).unwrap().of(kept, decoded, item);
    assert!(needed <= MOST, "{needed} of {MOST}");
}

/// Bodies of many items, whose translations have no room beside them.
#[tokio::test]
async fn large_translated_bodies_arrive_in_pieces() {
    let metadata = r#"{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}}"#;
    let event = |number: usize| match number % 3 {
        0 => format!(r#"{{"log":{{"message":"event {number}","log":{{"level":"info"}}}}}}"#),
        1 => {
            format!(r#"{{"metricset":{{"samples":{{"m{number}":{{"value":{number}}},"n":{{"value":1}}}}}}}}"#)
        }
        _ => format!(
            r#"{{"error":{{"id":"0123456789abcdef0123456789abcdef","log":{{"message":"{number}"}}}}}}"#
        ),
    };
    let mut events = format!("{metadata}\n");
    let mut documents = String::new();
    let mut count = 0;
    while events.len() < 5 << 19 {
        events += &format!("{}\n", event(count));
        documents += &format!("{{\"create\":{{}}}}\n{}\n", event(count));
        count += 1;
    }
    for transport in BOTH {
        for compression in COMPRESSIONS {
            let mut rig = Rig::narrow(256 << 10, MOST as u64);
            let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
            for (protocol, signal, raw) in
                [(Protocol::Intake, Signal::Traces, &events), (Protocol::Bulk, Signal::Logs, &documents)]
            {
                let body = encoded(Encoding::Gzip, raw.as_bytes());
                assert_deliverable(protocol, signal, body.len(), raw.len(), 300);
                rig.append(signal, protocol, Encoding::Gzip, &body, raw.len(), count as u64).await;
            }
            rig.put(Signal::Logs, Encoding::Gzip, 3).await;
            let settings = settings_for(peer.address(), transport);
            rig.drain(OtlpSettings { compression, ..settings }).await;
            assert_eq!((rig.page().delivered, rig.dropped()), (2 * count as u64 + 3, vec![]));
            let arrived = peer.report();
            // A metricset has two points.
            let expected = 2 * count + (count + 1) / 3 + 3;
            assert_eq!((arrived.malformed, arrived.unnumbered), (0, expected as u64));
        }
    }
}

/// Series whose translation is many times as long arrive, with the kinds that their metadata says.
#[tokio::test]
async fn remote_write_arrives_piece_by_piece() {
    for version in [Version::V1, Version::V2] {
        for compression in COMPRESSIONS {
            let rig = Rig::narrow(256 << 10, MOST as u64);
            let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
            let model =
                SeriesModel::new(7, 2000, Timeline { base_ms: 1_700_000_000_000, interval_ms: 15_000 });
            let extras = RequestExtras { exemplars: true, metadata: true, stale: true };
            let batch = SampleBatch { extras, ..SampleBatch::of(&model, model.range(0..2000), 0, 40) };
            let (mut raw, mut body) = (Vec::new(), Vec::new());
            batch.encode(version, &mut raw);
            compress(&raw, &mut body);
            let totals = decode(version, &body, raw.len(), &mut |_| {}).unwrap();
            let items = totals.samples + totals.exemplars + totals.metadata;
            let protocol = match version {
                Version::V1 => Protocol::RemoteWrite1,
                Version::V2 => Protocol::RemoteWrite2,
            };
            assert_deliverable(protocol, Signal::Metrics, body.len(), raw.len(), 4 << 10);
            rig.append(Signal::Metrics, protocol, Encoding::Snappy, &body, raw.len(), items).await;
            let settings = settings_for(peer.address(), BOTH[0]);
            rig.drain(OtlpSettings { compression, ..settings }).await;
            assert_eq!((rig.page().delivered, rig.dropped()), (items, vec![]));
            let arrived = peer.report();
            assert_eq!((arrived.malformed, arrived.unnumbered), (0, totals.samples));
            assert!(arrived.requests.values().sum::<u64>() > 2);
        }
    }
}

/// One item that is all of the body, and items of a resource that is, arrive as long as they fit beside it; also where
/// the peer is busy in between, and where they are longer than a request is to be.
#[tokio::test]
async fn the_largest_items_arrive() {
    for transport in BOTH {
        for compression in COMPRESSIONS {
            let mut rig = Rig::narrow(256 << 10, MOST as u64);
            let peer = Peer::new();
            let one = request(0, [record(0, 7 << 18)]);
            let many = request(7 << 18, (1..1001).map(|number| record(number, 10)));
            rig.next = 1001;
            for (raw, items) in [(one, 1), (many, 1000)] {
                let body = encoded(Encoding::Gzip, &raw);
                assert_deliverable(Protocol::Otlp, Signal::Logs, body.len(), raw.len(), (7 << 18) + 100);
                rig.append(Signal::Logs, Protocol::Otlp, Encoding::Gzip, &body, raw.len(), items).await;
            }
            let busy = match transport {
                Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
                    Reply::Http(503, vec![], vec![])
                }
                tidegate_sinks::Transport::Grpc => Reply::Grpc(14, "", None),
            };
            peer.script([Reply::Ok(vec![]), Reply::Ok(vec![]), busy]);
            let settings = settings(&peer, transport);
            rig.drain(OtlpSettings { compression, max_request_bytes: 64 << 10, ..settings }).await;
            rig.assert_exact(&[&peer]);
            assert_eq!((rig.page().delivered, rig.dropped()), (1001, vec![]));
            assert!(peer.arrived().len() < 20, "{} requests", peer.arrived().len());
        }
    }
}

/// Sent whole or in pieces, and however many attempts that takes.
#[tokio::test]
async fn the_tap_sees_a_large_record_once() {
    for transport in BOTH {
        for compression in COMPRESSIONS {
            for max_request_bytes in [8 << 20, 256 << 10] {
                let mut rig = Rig::narrow(256 << 10, 8 << 20);
                let peer = Peer::new();
                let later = || match transport {
                    Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
                        Reply::Http(503, vec![], vec![])
                    }
                    Transport::Grpc => Reply::Grpc(14, "later", None),
                };
                peer.script([later(), later(), later()]);
                let reading = rig.tap.open(TapFilter::from_query("sink=*").unwrap()).await.unwrap();
                rig.put_padded(Signal::Logs, Encoding::Identity, 100, 10 << 10).await;
                let settings = OtlpSettings { compression, max_request_bytes, ..settings(&peer, transport) };
                rig.drain(settings).await;
                rig.assert_exact(&[&peer]);
                let seen = reading.waiting() as u64 + reading.missed();
                assert_eq!(seen, 1, "{transport:?} {compression:?} {max_request_bytes}");
            }
        }
    }
}

/// Of a record of several signals that is lost only the events are lost that the sink takes: the others pass it by.
#[tokio::test]
async fn only_accepted_signals_of_a_lost_record_are_lost() {
    let padding = "x".repeat(200);
    let mut raw =
        r#"{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}}"#.to_owned() + "\n";
    for _ in 0..10_000 {
        raw +=
            &format!("{{\"log\":{{\"message\":\"{padding}\"}}}}\n{{\"log\":{{}}}}\n{{\"metricset\":{{}}}}\n");
    }
    for compression in COMPRESSIONS {
        let mut rig = Rig::narrow(256 << 10, 1 << 20);
        rig.signals = [Signal::Logs].into_iter().collect();
        let peer = Peer::new();
        let body = encoded(Encoding::Gzip, raw.as_bytes());
        rig.append(Signal::Events, Protocol::Intake, Encoding::Gzip, &body, raw.len(), 30_000).await;
        rig.put(Signal::Logs, Encoding::Gzip, 3).await;
        rig.drain(OtlpSettings { compression, ..settings(&peer, Transport::Http) }).await;
        rig.assert_exact(&[&peer]);
        let page = rig.page();
        assert_eq!(
            (page.delivered, page.passed, page.dropped),
            (3, 10_000, vec![(Dropped::TooLarge, 20_000)])
        );
    }
}

/// A record that becomes many requests gives up the turn to borrow between them, so that another sink's large record does
/// not wait for all of them; and each item still arrives once.
#[tokio::test]
async fn another_sink_borrows_between_the_pieces_of_a_record() {
    for transport in BOTH {
        let mut rig = Rig::narrow(256 << 10, 8 << 20);
        let (long, other) = (Peer::new(), Peer::new());
        long.script(
            std::iter::once(Reply::Stall).chain([const { Reply::Slow(Duration::from_millis(20)) }; 200]),
        );
        rig.put_padded(Signal::Logs, Encoding::Identity, 100, 40 << 10).await;
        rig.put_padded(Signal::Traces, Encoding::Identity, 10, 100 << 10).await;
        assert!(rig.journal.close(60 * SECOND));
        let settings =
            |peer: &Peer| OtlpSettings { max_request_bytes: 64 << 10, ..settings(peer, transport) };
        let (health, only) = (Health::default(), |signal: Signal| [signal].into_iter().collect());
        let (first, _stopper) = rig.sink_of(NAME, only(Signal::Logs), &rig.health, settings(&long));
        let (second, _stopper) = rig.sink_of("other", only(Signal::Traces), &health, settings(&other));
        let second = async {
            long.stalled(1).await;
            second.run().await;
            long.arrived().len()
        };
        let release = async {
            while rig.turn.waiting() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            long.release();
        };
        let all = async { tokio::join!(first.run(), second, release) };
        let ((), before, ()) = tokio::time::timeout(120 * SECOND, all).await.expect("everything is sent");
        let requests = long.arrived().len();
        assert!(before < requests, "{before} of {requests} requests");
        rig.assert_exact(&[&long, &other]);
        assert_eq!((rig.page().delivered, rig.dropped()), (100, vec![]));
    }
}
