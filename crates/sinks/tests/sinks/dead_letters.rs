//! Promise: what a peer rejects for good is dropped with the reason, alone, and kept.

use crate::rig::{NAME, Rig, SECOND, answers, arrival, order, peer, settings};
use hyper::header::HeaderName;
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::{RequestExtras, Version, compress};
use tidegate_sinks::{Prefer, RemoteWriteSettings};

/// A body that the source would take and this peer does not: labels out of order.
fn unwelcome(version: Version) -> (Vec<u8>, usize) {
    let raw: &[u8] = match version {
        // {b="1", __name__="m"} 1 @ 1
        Version::V1 => {
            b"\x0a\x24\x0a\x06\x0a\x01b\x12\x011\x0a\x0d\x0a\x08__name__\x12\x01m\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01"
        }
        // symbols "", "b", "1", "__name__", "m"; refs 1 2 3 4
        Version::V2 => {
            b"\x22\0\x22\x01b\x22\x011\x22\x08__name__\x22\x01m\x2a\x13\x0a\x04\x01\x02\x03\x04\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01"
        }
    };
    let mut body = Vec::new();
    compress(raw, &mut body);
    (body, raw.len())
}

#[tokio::test]
async fn of_a_joined_request_only_the_bad_record_is_dropped() {
    let ways = [
        (Version::V1, Prefer::AsReceived),
        (Version::V2, Prefer::AsReceived),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ];
    for (version, prefer) in ways {
        let mut rig = Rig::new(20, 1 << 20);
        let peer = peer(Behaviour::Healthy);
        for _ in 0..5 {
            rig.put(version, 0..20, 1).await;
        }
        let (body, raw_len) = unwelcome(version);
        rig.append(version, &body, raw_len, 1).await;
        for _ in 0..5 {
            rig.put(version, 0..20, 1).await;
        }
        assert!(rig.journal.close(60 * SECOND));
        let (sink, _stopper) =
            rig.sink(RemoteWriteSettings { prefer, linger: 60 * SECOND, ..settings(&peer) });
        sink.run().await;
        assert_eq!(rig.dropped(), [(Dropped::Rejected, 1)], "{version:?} as {prefer:?}");
        let mut arrived = peer.report();
        assert_eq!(arrived.malformed, 2, "once in company, once alone");
        arrived.malformed = 0;
        rig.assert_exact(&arrived);

        let mut letters = read(&rig.letters_dir(), false).unwrap();
        let letter = letters.next().unwrap();
        assert_eq!((letter.sink.as_str(), letter.meta.items), (NAME, 1));
        assert!(letter.reason.starts_with("400"), "{}", letter.reason);
        assert!(!letters.body().unwrap().is_empty());
        assert_eq!(letters.next(), None);
    }
}

/// A body that cannot be read, which a source never takes: its items are not delivered, though nobody can count them in it, and those of
/// the bodies around it are.
#[tokio::test]
async fn items_of_a_body_that_cannot_be_read_are_damaged() {
    // A field of number 0, which there is not.
    let unreadable = [0; 5];
    let versions = [(Version::V1, Protocol::RemoteWrite1), (Version::V2, Protocol::RemoteWrite2)];
    for (version, protocol) in versions {
        for (prefer, lanes) in [
            (Prefer::AsReceived, 1),
            (Prefer::AsReceived, 3),
            (Prefer::V1, 1),
            (Prefer::V2, 1),
            (Prefer::V2, 3),
        ] {
            for (before, after) in [(0, 0), (2, 0), (0, 1), (1, 2)] {
                let mut rig = Rig::new(20, 1 << 20);
                let peer = peer(Behaviour::Healthy);
                for record in 0..before + 1 + after {
                    if record == before {
                        let (signal, len) = (Signal::Metrics, unreadable.len());
                        rig.append_in(Encoding::Identity, signal, protocol, &unreadable, len, 310).await;
                    } else {
                        rig.put_in(Encoding::Identity, version, 0..20, 1, RequestExtras::default()).await;
                    }
                }
                rig.drain(RemoteWriteSettings { prefer, lanes, ..settings(&peer) }).await;
                let case = format!("{before} and {after} of {version:?} as {prefer:?} in {lanes} lanes");
                assert_eq!(rig.dropped(), [(Dropped::Damaged, 310)], "{case}");
                rig.assert_closed(0);
                let mut arrived = peer.report();
                arrived.malformed = 0;
                let verdict = rig.compare(&arrived);
                assert!(verdict.nothing_lost() && verdict.duplicates == 0, "{case}: {verdict:?}");
            }
        }
    }
}

/// Passed-through bodies become dead letters unchanged.
#[tokio::test]
async fn a_dead_letter_holds_the_rejected_body() {
    let rig = Rig::new(1, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    let (body, raw_len) = unwelcome(Version::V1);
    rig.append(Version::V1, &body, raw_len, 1).await;
    rig.drain(settings(&peer)).await;
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    letters.next().unwrap();
    assert_eq!(letters.body().unwrap(), body);
}

/// A peer that wants nothing at all does not stop the sink, and every item is accounted for.
#[tokio::test]
async fn a_peer_that_rejects_everything_gets_everything_once_in_company_and_once_alone() {
    let mut rig = Rig::new(20, 1 << 20);
    let peer = peer(Behaviour::Status { code: 403, retry_after: None });
    for _ in 0..3 {
        rig.put(Version::V1, 0..20, 1).await;
        rig.put(Version::V2, 0..20, 2).await;
    }
    rig.drain(settings(&peer)).await;
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 180)]);
    let letters: Vec<_> = read(&rig.letters_dir(), false).unwrap().collect();
    assert_eq!(letters.iter().map(|letter| u64::from(letter.meta.items)).sum::<u64>(), 180);
}

/// Where requests name tenants, one whose credentials are wrong does not hold up the others.
#[tokio::test]
async fn an_unknown_tenant_does_not_hold_up_others() {
    let mut rig = Rig::new(20, 1 << 20);
    let peer = peer(Behaviour::Status { code: 401, retry_after: None });
    rig.put(Version::V1, 0..20, 1).await;
    let tenant_header = Some(HeaderName::from_static("x-scope-orgid"));
    rig.drain(RemoteWriteSettings { tenant_header, ..settings(&peer) }).await;
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 20)]);
}

/// Lanes that are rejected are dropped alone; the others are delivered.
#[tokio::test]
async fn with_lanes_only_the_rejected_one_is_dropped() {
    let mut rig = Rig::new(50, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    let (body, raw_len) = unwelcome(Version::V1);
    rig.append(Version::V1, &body, raw_len, 1).await;
    rig.put(Version::V1, 0..50, 1).await;
    assert!(rig.journal.close(60 * SECOND));
    let (sink, _stopper) = rig.sink(RemoteWriteSettings { lanes: 4, linger: 60 * SECOND, ..settings(&peer) });
    sink.run().await;
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 1)]);
    let mut arrived = peer.report();
    arrived.malformed = 0;
    let verdict = rig.compare(&arrived);
    assert!(verdict.nothing_lost(), "{verdict:?}");
}

/// After a rejected batch was sent one by one, records are joined again.
#[tokio::test]
async fn records_are_joined_again_after_a_rejection() {
    let mut rig = Rig::new(10, 1 << 20);
    let peer = peer(Behaviour::Status { code: 400, retry_after: None });
    rig.put(Version::V1, 0..10, 1).await;
    rig.put(Version::V1, 0..10, 1).await;
    let watched = peer.clone();
    // So long that a busy machine has read what there is.
    let (sink, stopper) = rig.sink(RemoteWriteSettings { linger: SECOND / 2, ..settings(&peer) });
    let script = async {
        arrival(&watched, |arrived| answers(arrived, 400) == 3).await;
        order(&watched, Behaviour::Slow { bytes_per_second: 20_000 }).await;
        for _ in 0..10 {
            rig.put(Version::V1, 0..10, 1).await;
        }
        arrival(&watched, |arrived| arrived.samples() == 100).await;
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
    assert!(answers(&peer.report(), 204) < 10, "{:?}", peer.report().requests);
}
