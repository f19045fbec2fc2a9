//! Promise: no request is larger than the settings say.

use crate::rig::{Rig, answers, peer, settings};
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;
use tidegate_sinks::RemoteWriteSettings;

#[tokio::test]
async fn a_batch_ends_where_its_bytes_would_be_too_many() {
    let mut rig = Rig::new(100, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for _ in 0..12 {
        rig.put(Version::V1, 0..100, 1).await;
    }
    // A body takes about 30,000 bytes, so three fit.
    rig.drain(RemoteWriteSettings { max_bytes: 100_000, ..settings(&peer) }).await;
    rig.assert_exact(&peer.report());
    let requests = answers(&peer.report(), 204);
    assert!((4..=12).contains(&requests), "{requests}");
}

#[tokio::test]
async fn a_batch_ends_where_its_items_would_be_too_many() {
    let mut rig = Rig::new(100, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for _ in 0..12 {
        rig.put(Version::V1, 0..100, 1).await;
    }
    rig.drain(RemoteWriteSettings { max_items: 300, ..settings(&peer) }).await;
    rig.assert_exact(&peer.report());
    assert!((4..=6).contains(&answers(&peer.report(), 204)), "{:?}", peer.report().requests);
}

#[tokio::test]
async fn a_batch_has_at_most_256_records() {
    let mut rig = Rig::new(1, 1 << 20);
    let peer = peer(Behaviour::Healthy);
    for _ in 0..600 {
        rig.put(Version::V1, 0..1, 1).await;
    }
    rig.drain(settings(&peer)).await;
    rig.assert_exact(&peer.report());
    assert_eq!(answers(&peer.report(), 204), 3);
}

/// Bodies of either version, sent as either, that are over a limit by themselves are cut.
#[tokio::test]
async fn bodies_over_the_limits_are_cut() {
    use tidegate_sinks::Prefer;
    for (version, prefer) in [
        (Version::V1, Prefer::V1),
        (Version::V2, Prefer::V2),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ] {
        let mut rig = Rig::new(1000, 1 << 20);
        let peer = peer(Behaviour::Healthy);
        for _ in 0..3 {
            rig.put(version, 0..1000, 4).await;
        }
        rig.drain(RemoteWriteSettings { prefer, max_items: 500, ..settings(&peer) }).await;
        rig.assert_exact(&peer.report());
        let requests = answers(&peer.report(), 204);
        assert!((24..=40).contains(&requests), "{version:?} as {prefer:?}: {requests} for 12,000 items");

        let mut rig = Rig::new(1000, 1 << 20);
        let peer = crate::rig::peer(Behaviour::Healthy);
        for _ in 0..3 {
            rig.put(version, 0..1000, 4).await;
        }
        rig.drain(RemoteWriteSettings { prefer, max_bytes: 64 << 10, ..settings(&peer) }).await;
        rig.assert_exact(&peer.report());
        assert!(answers(&peer.report(), 204) > 6, "{version:?} as {prefer:?}");
    }
}

/// A series that is over the limit alone is cut between its samples, which arrive in order.
#[tokio::test]
async fn a_series_over_the_limit_is_cut_between_its_samples() {
    use tidegate_sinks::Prefer;
    for (version, prefer) in [
        (Version::V1, Prefer::V1),
        (Version::V2, Prefer::V2),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ] {
        let mut rig = Rig::new(20, 1 << 20);
        let peer = peer(Behaviour::Healthy);
        rig.put(version, 0..10, 1).await;
        rig.put(version, 10..11, 10_000).await;
        rig.put(version, 11..20, 1).await;
        rig.drain(RemoteWriteSettings { max_bytes: 64 << 10, prefer, ..settings(&peer) }).await;
        assert_eq!(rig.dropped(), [], "{version:?} as {prefer:?}");
        rig.assert_exact(&peer.report());
    }
}

/// A series that only the sink's own part is too small for is sent, with borrowed memory.
#[tokio::test]
async fn a_series_larger_than_the_sinks_part_allows_is_sent_all_the_same() {
    use tidegate_sinks::Prefer;
    for (version, prefer) in [
        (Version::V1, Prefer::V1),
        (Version::V2, Prefer::V2),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ] {
        let mut rig = Rig::new(20, 512 << 10);
        let peer = peer(Behaviour::Healthy);
        rig.put(version, 1..2, 15_000).await;
        rig.put(version, 0..10, 1).await;
        rig.drain(RemoteWriteSettings { max_items: 100_000, prefer, ..settings(&peer) }).await;
        assert_eq!(rig.dropped(), [], "{version:?} as {prefer:?}");
    }
}

/// A record larger than the sink's budget does not stop the following ones.
#[tokio::test]
async fn a_record_that_never_fits_into_memory_is_dropped_instead_of_stalling() {
    let mut rig = Rig::new(1000, 256 << 10);
    let peer = peer(Behaviour::Healthy);
    rig.put(Version::V1, 0..10, 1).await;
    // It says that it decompresses to more than the arena has.
    rig.append(Version::V2, &[0xff, 0xff, 0xff, 0x1f, 0, 0], 64 << 20, 77).await;
    rig.put(Version::V1, 0..10, 1).await;
    rig.drain(settings(&peer)).await;
    rig.assert_exact(&peer.report());
    assert_eq!(rig.dropped(), [(Dropped::TooLarge, 77)]);
}

/// Records of another protocol are counted as such.
#[tokio::test]
async fn records_of_another_protocol_are_dropped_with_the_reason() {
    let mut rig = Rig::new(10, 256 << 10);
    let peer = peer(Behaviour::Healthy);
    rig.put(Version::V1, 0..10, 1).await;
    let (traces, otlp) = (tidegate_journal::Signal::Traces, tidegate_journal::Protocol::Otlp);
    rig.append_of(traces, otlp, b"something", 9, 5).await;
    rig.put(Version::V1, 0..10, 1).await;
    rig.drain(settings(&peer)).await;
    rig.assert_exact(&peer.report());
    assert_eq!(rig.dropped(), [(Dropped::Untranslatable, 5)]);
}
