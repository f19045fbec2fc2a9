//! Promise: what arrives is the concatenation of what was accepted, however it came and however it goes out.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, pipeline, settings};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, OtlpSettings, Transport};

const ENCODINGS: [Encoding; 3] = [Encoding::Identity, Encoding::Gzip, Encoding::Zstd];
const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Gzip(6), Compression::Zstd(3)];

fn encoding_of(compression: Compression) -> Encoding {
    match compression {
        Compression::None => Encoding::Identity,
        Compression::Gzip(_) => Encoding::Gzip,
        Compression::Zstd(_) => Encoding::Zstd,
    }
}

#[tokio::test]
async fn bodies_of_any_encoding_are_joined_for_any_compression() {
    for transport in BOTH {
        for compression in COMPRESSIONS {
            for join_members in [false, true] {
                let mut rig = Rig::new(PART);
                let peer = Peer::new();
                for _ in 0..4 {
                    for encoding in ENCODINGS {
                        rig.put(Signal::Traces, encoding, 50).await;
                    }
                }
                rig.drain(OtlpSettings { compression, join_members, ..settings(&peer, transport) }).await;
                rig.assert_exact(&[&peer]);
                assert_eq!(rig.dropped(), []);
                let arrived = peer.arrived();
                assert!(arrived.iter().all(|request| request.encoding == encoding_of(compression)));
                // Passed-through bodies are kept apart from converted ones.
                assert!(arrived.len() <= 2, "{compression:?}, {join_members}: {} requests", arrived.len());
                let mut numbers: Vec<u64> =
                    arrived.iter().flat_map(|request| request.numbers.clone()).collect();
                if arrived.len() > 1 {
                    numbers.sort_unstable();
                }
                assert_eq!(numbers, (0..600).collect::<Vec<_>>(), "within a request in order");
            }
        }
    }
}

/// Bodies that a pipeline looked at and did not change are decoded once: only those go on as they came that are joined so.
#[tokio::test]
async fn bodies_behind_a_pipeline_are_decoded_once() {
    let pipeline = pipeline(r#"delete_key(span.attributes, "no span has this")"#);
    for compression in COMPRESSIONS {
        for join_members in [false, true] {
            let mut rig = Rig::new(PART);
            rig.pipeline = Some(pipeline.clone());
            let peer = Peer::new();
            for encoding in ENCODINGS {
                rig.put(Signal::Traces, encoding, 50).await;
            }
            rig.drain(OtlpSettings { compression, join_members, ..settings(&peer, Transport::Grpc) }).await;
            rig.assert_exact(&[&peer]);
            let arrived = peer.arrived();
            assert!(arrived.iter().all(|request| request.encoding == encoding_of(compression)));
            // Those that go on as they came are apart from the decoded ones.
            let joins = join_members && compression != Compression::None;
            assert_eq!(arrived.len(), if joins { 2 } else { 1 }, "{compression:?}, {join_members}");
        }
    }
}

#[tokio::test]
async fn each_signal_goes_where_it_belongs() {
    let signals = [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles];
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        for encoding in ENCODINGS {
            for signal in signals {
                rig.put(signal, encoding, 10).await;
            }
        }
        rig.drain(settings(&peer, transport)).await;
        rig.assert_exact(&[&peer]);
        let arrived = peer.arrived();
        let count = |signal| arrived.iter().filter(|request| request.signal == signal).count();
        // Identity and the decoded ones apart, for three signals; and no two profiles together.
        assert_eq!(signals.map(count), [2, 2, 2, 3]);
    }
}

#[tokio::test]
async fn a_request_is_no_longer_than_allowed() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    for _ in 0..40 {
        rig.put(Signal::Logs, Encoding::Identity, 100).await;
    }
    let settings = settings(&peer, Transport::Http);
    rig.drain(OtlpSettings { max_request_bytes: 64 << 10, ..settings }).await;
    rig.assert_exact(&[&peer]);
    let arrived = peer.arrived();
    assert!(arrived.iter().all(|request| request.raw_len <= 64 << 10));
    assert!(arrived.len() <= 20, "{} requests for 40 records of 12 KiB", arrived.len());
}

/// An incomplete batch is sent after the linger time.
#[tokio::test]
async fn a_batch_does_not_wait_for_ever() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Traces, Encoding::Identity, 1).await;
    let (sink, stopper) = rig.sink(settings(&peer, Transport::Grpc));
    let script = async {
        peer.requests(1).await;
        rig.put(Signal::Traces, Encoding::Identity, 1).await;
        peer.requests(2).await;
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
    rig.assert_exact(&[&peer]);
    assert_eq!(rig.page().queued, 0);
}

/// Several requests are on their way, over one connection where that is enough.
#[tokio::test]
async fn several_requests_are_on_their_way_at_a_time() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        // So long that what a busy machine adds is not taken for a slow peer.
        peer.always(Reply::Slow(std::time::Duration::from_millis(100)));
        for _ in 0..40 {
            rig.put_padded(Signal::Traces, Encoding::Identity, 10, 4000).await;
        }
        let settings = settings(&peer, transport);
        rig.drain(OtlpSettings { max_request_bytes: 40 << 10, ..settings }).await;
        rig.assert_exact(&[&peer]);
        assert_eq!(peer.most_at_a_time(), 4, "{transport:?}");
        // One may be opened while another becomes free: as many idle ones as are under way are planned for.
        let expected = if transport == Transport::Grpc { 1 } else { 8 };
        assert!(peer.connections() <= expected, "{transport:?}: {} connections", peer.connections());
    }
}

#[tokio::test]
async fn headers_go_with_every_request() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put(Signal::Traces, Encoding::Identity, 1).await;
        let mut settings = settings(&peer, transport);
        settings.headers.insert("authorization", "Bearer secret".parse().unwrap());
        settings.headers.insert("content-type", "text/plain".parse().unwrap());
        rig.drain(settings).await;
        let arrived = peer.arrived();
        assert_eq!(arrived[0].headers["authorization"], "Bearer secret");
        assert!(arrived[0].headers["user-agent"].to_str().unwrap().starts_with("tidegate/"));
        assert_eq!(arrived[0].headers.contains_key("grpc-timeout"), transport == Transport::Grpc);
    }
}

/// Items that OTLP cannot express are counted, and do not hold up the others.
#[tokio::test]
async fn records_of_other_protocols_are_counted_as_untranslatable() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Logs, Encoding::Identity, 5).await;
    rig.append(Signal::Logs, Protocol::Cri, Encoding::Identity, b"a line", 6, 1).await;
    rig.append(Signal::Events, Protocol::Bulk, Encoding::Identity, b"{}", 2, 3).await;
    rig.put(Signal::Logs, Encoding::Identity, 5).await;
    rig.drain(settings(&peer, Transport::Http)).await;
    rig.assert_exact(&[&peer]);
    assert_eq!(rig.dropped(), [(Dropped::Untranslatable, 4)]);
    // The records before the suspect one, and those after it.
    assert!(peer.arrived().len() <= 2);
}
