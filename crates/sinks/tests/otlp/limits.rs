//! Promise: a request is no larger than configured, nor than the peer is known to take; what is larger is cut, and
//! only what is too large by itself is dropped.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, settings};
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, OtlpSettings, Transport};

const KIB: usize = 1 << 10;

#[tokio::test]
async fn a_record_that_is_too_large_is_cut() {
    for transport in BOTH {
        for (encoding, compression) in [
            (Encoding::Identity, Compression::None),
            (Encoding::Gzip, Compression::Zstd(1)),
            (Encoding::Zstd, Compression::None),
            (Encoding::Identity, Compression::Gzip(1)),
        ] {
            for part in [PART, 512 * KIB] {
                let mut rig = Rig::new(part);
                let peer = Peer::new();
                rig.put(Signal::Logs, encoding, 10).await;
                rig.put_padded(Signal::Logs, encoding, 80, 10 * KIB).await;
                rig.put(Signal::Logs, encoding, 10).await;
                let settings = OtlpSettings { compression, ..settings(&peer, transport) };
                rig.drain(OtlpSettings { max_request_bytes: 64 * KIB, ..settings }).await;
                rig.assert_exact(&[&peer]);
                assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 100));
                assert!(peer.arrived().iter().all(|request| request.raw_len <= 64 * KIB));
                assert!(peer.arrived().len() <= 2 + 14, "six items fit in each");
            }
        }
    }
}

/// A request that is too large for the peer is split, and later ones are smaller.
#[tokio::test]
async fn a_peer_that_takes_less_gets_less() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        peer.always(Reply::AtMost(150 * KIB));
        for _ in 0..3 {
            for _ in 0..10 {
                rig.put_padded(Signal::Traces, Encoding::Identity, 10, 4 * KIB).await;
            }
            rig.put_padded(Signal::Traces, Encoding::Zstd, 100, 8 * KIB).await;
        }
        rig.drain(settings(&peer, transport)).await;
        rig.assert_exact(&[&peer]);
        assert_eq!(rig.dropped(), []);
        let refused = peer.arrived().iter().filter(|request| !request.taken).count();
        assert!(refused <= 8, "{refused} requests were too large");
    }
}

/// An item that is too large alone is dropped and becomes a dead letter; its neighbours arrive.
#[tokio::test]
async fn only_the_item_that_is_too_large_is_dropped() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        peer.always(Reply::AtMost(150 * KIB));
        rig.put_padded(Signal::Traces, Encoding::Gzip, 40, 10 * KIB).await;
        let huge = rig.put_padded(Signal::Traces, Encoding::Gzip, 1, 200 * KIB).await;
        rig.put_padded(Signal::Traces, Encoding::Gzip, 40, 10 * KIB).await;
        rig.drain(settings(&peer, transport)).await;
        rig.assert_but(&[&peer], huge);
        assert_eq!(rig.dropped(), [(Dropped::TooLarge, 1)]);
        let letters: Vec<_> = read(&rig.letters_dir(), false).unwrap().collect();
        assert_eq!(letters.len(), 1);
        assert_eq!(letters[0].meta.items, 1);
    }
}

/// A failure between two pieces does not send again what was taken.
#[tokio::test]
async fn accepted_pieces_are_not_resent() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_padded(Signal::Traces, Encoding::Gzip, 60, 10 * KIB).await;
        let busy = || match transport {
            Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
                Reply::Http(503, vec![], vec![])
            }
            Transport::Grpc => Reply::Grpc(14, "", None),
        };
        let ok = || Reply::Ok(vec![]);
        // In the middle a piece is found too large as well, so that what follows is cut elsewhere.
        peer.script([ok(), busy(), ok(), Reply::AtMost(1), busy(), ok(), busy()]);
        let settings = settings(&peer, transport);
        rig.drain(OtlpSettings { max_request_bytes: 140 * KIB, ..settings }).await;
        rig.assert_exact(&[&peer]);
        assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 60));
    }
}

/// Items rejected in a part are counted with the record.
#[tokio::test]
async fn partial_success_of_pieces_adds_up() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_padded(Signal::Logs, Encoding::Identity, 30, 10 * KIB).await;
    peer.always(Reply::Ok(vec![0x0a, 2, 0x08, 1]));
    let settings = settings(&peer, Transport::Grpc);
    rig.drain(OtlpSettings { max_request_bytes: 110 * KIB, ..settings }).await;
    assert_eq!((rig.dropped(), rig.page().delivered), (vec![(Dropped::Rejected, 3)], 27));
}

/// A record that cannot be cut is the peer's to judge.
#[tokio::test]
async fn profiles_are_sent_whole() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_padded(Signal::Profiles, Encoding::Gzip, 30, 10 * KIB).await;
    let settings = settings(&peer, Transport::Http);
    rig.drain(OtlpSettings { max_request_bytes: 110 * KIB, ..settings }).await;
    rig.assert_exact(&[&peer]);
    assert_eq!(peer.arrived().len(), 1);
}
