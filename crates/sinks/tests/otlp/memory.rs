//! Promise: what a sink holds stays within its part, however long a peer stalls; what is larger is borrowed for
//! one attempt at a time.

use crate::bodies::{encoded, request};
use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, SECOND, pipeline, settings};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_pipeline::Pipeline;
use tidegate_sinks::{Compression, OtlpSettings};

#[tokio::test]
async fn a_stalled_peer_costs_no_more_than_the_part() {
    let part = 512 << 10;
    for transport in BOTH {
        for (encoding, compression, join_members) in [
            (Encoding::Identity, Compression::None, false),
            (Encoding::Identity, Compression::Gzip(1), false),
            (Encoding::Identity, Compression::Zstd(1), false),
            (Encoding::Gzip, Compression::None, false),
            (Encoding::Gzip, Compression::Gzip(1), true),
            (Encoding::Zstd, Compression::Gzip(1), false),
        ] {
            let way = format!("{encoding:?} as {compression:?} over {transport:?}");
            let mut rig = Rig::new(part);
            let peer = Peer::new();
            peer.script([Reply::Stall, Reply::Stall]);
            for _ in 0..60 {
                for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
                    rig.put_padded(signal, encoding, 10, 2000).await;
                }
            }
            let script = async {
                peer.stalled(2).await;
                let held = rig.held();
                assert!(held > 0 && held <= part as u64, "{way}: {held}");
                peer.release();
            };
            let settings = OtlpSettings { compression, join_members, ..settings(&peer, transport) };
            tokio::join!(rig.drain(settings), script);
            rig.assert_exact(&[&peer]);
            assert!(rig.peak() <= part as u64, "{way}: the peak is {}", rig.peak());
        }
    }
}

/// A body that is larger than the part is borrowed for, and not held over a wait.
#[tokio::test]
async fn borrowed_memory_is_returned_during_a_wait() {
    let ways = [
        (Encoding::Identity, Compression::None),
        (Encoding::Identity, Compression::Zstd(1)),
        (Encoding::Zstd, Compression::None),
        (Encoding::Gzip, Compression::Gzip(1)),
    ];
    let each = BOTH.into_iter().flat_map(|transport| ways.map(|way| (transport, way)));
    let each = each.map(|(transport, (encoding, compression))| async move {
        let mut rig = Rig::new(512 << 10);
        let peer = Peer::new();
        rig.put(Signal::Traces, encoding, 5).await;
        rig.put_padded(Signal::Traces, encoding, 20, 100_000).await;
        rig.put(Signal::Traces, encoding, 5).await;
        let busy = Reply::Http(503, vec![("retry-after", "3".into())], vec![]);
        peer.script([Reply::Ok(vec![]), busy]);
        let script = async {
            peer.requests(2).await;
            while rig.held() > 0 || rig.turn.is_taken() {
                tokio::task::yield_now().await;
            }
            assert_eq!(peer.arrived().len(), 2);
        };
        tokio::join!(rig.drain(OtlpSettings { compression, ..settings(&peer, transport) }), script);
        rig.assert_exact(&[&peer]);
        assert_eq!(rig.dropped(), []);
    });
    futures_util::future::join_all(each).await;
}

/// A record of more than the usual request, and less than the part, goes out whole beside others.
#[tokio::test]
async fn records_of_any_size_arrive() {
    for compression in [Compression::None, Compression::Gzip(1)] {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        for size in [1, 30_000, 10, 300_000, 1, 60_000, 500_000, 2] {
            for encoding in [Encoding::Identity, Encoding::Gzip] {
                rig.put_padded(Signal::Logs, encoding, 10, size).await;
            }
        }
        let settings = settings(&peer, BOTH[1]);
        rig.drain(OtlpSettings { compression, max_request_bytes: 16 << 20, ..settings }).await;
        rig.assert_exact(&[&peer]);
    }
}

/// A record that waits for memory goes on when what holds it turns out to be damaged, though nothing is answered then.
#[tokio::test]
async fn a_record_that_waits_behind_a_damaged_one_is_sent() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    let raw = request(Signal::Logs, 0..20, 90_000);
    let whole = encoded(Encoding::Gzip, &raw);
    let body = &whole[..whole.len() - 20];
    rig.append(Signal::Logs, Protocol::Otlp, Encoding::Gzip, body, raw.len(), 20).await;
    rig.next = 20;
    // The rest of the share is smaller than this, and the whole share is more than it needs alone.
    rig.put_padded(Signal::Logs, Encoding::Identity, 14, 105_000).await;
    let settings = settings(&peer, BOTH[0]);
    rig.drain(OtlpSettings { compression: Compression::Gzip(1), ..settings }).await;
    rig.assert_but(&[&peer], 0..20);
    assert_eq!(rig.dropped(), [(Dropped::Damaged, 20)]);
}

/// A record that waits for memory passes the pipeline again when enough was given back, and not whenever a request comes back.
#[tokio::test]
async fn a_record_that_waits_is_not_staged_before_memory_came() {
    let len = request(Signal::Logs, 0..20, 50_000).len();
    // The pipeline's output has room, but not beside the first record.
    let mut rig = Rig::new(2 * len + Pipeline::scratch_bytes(len) + (350 << 10));
    let peer = Peer::new();
    let pipeline = pipeline(r#"set(log.attributes["x"], "1")"#);
    let meters = pipeline.meters.clone();
    rig.pipeline = Some(pipeline);
    rig.put_padded(Signal::Logs, Encoding::Identity, 10, 45_000).await;
    rig.put_padded(Signal::Logs, Encoding::Identity, 20, 50_000).await;
    peer.script(vec![Reply::Stall; 4]);
    let script = async {
        // The second record found no room.
        while rig.peak() < 4 << 20 || rig.held() > 1 << 20 {
            tokio::task::yield_now().await;
        }
        let before = meters.time();
        assert_eq!(meters.steps()[0].totals().items, 10);
        // The first had no answer in time, and is sent again.
        peer.stalled(2).await;
        assert_eq!(meters.time(), before, "nothing was given back");
        peer.script([]);
        peer.release();
    };
    let settings = OtlpSettings { timeout: SECOND, ..settings(&peer, BOTH[0]) };
    tokio::join!(rig.drain(settings), script);
    assert_eq!(meters.steps()[0].totals().items, 30);
    assert_eq!(rig.dropped(), []);
}
