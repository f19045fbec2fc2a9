//! Promise: what the journal takes from a sink is in the books, at every moment, and nothing else is touched.

use crate::rig::{Rig, SECOND, arrival, order, peer, settings};
use tidegate_journal::WhenFull;
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::remote_write::Version;

/// A sink that gives way when the quota is full, with a request on its way while records are taken from it.
#[tokio::test]
async fn records_dropped_by_the_quota_are_counted_at_once() {
    let mut rig = Rig::new(100, 256 << 10).with_quota(128 << 10, WhenFull::DropOldest);
    let peer = peer(Behaviour::Stall);
    rig.put(Version::V1, 0..100, 1).await;
    let (sink, stopper) = rig.sink(settings(&peer));
    let watched = peer.clone();
    let script = async {
        arrival(&watched, |arrived| arrived.stalled == 1).await;
        for _ in 0..200 {
            rig.put(Version::V1, 0..100, 1).await;
            rig.page();
        }
        order(&watched, Behaviour::Healthy).await;
        let ledger = rig.ledger.clone();
        while !ledger.balance().at_rest() {
            assert_eq!(ledger.balance().difference(), 0);
            tokio::task::yield_now().await;
        }
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    let page = rig.assert_closed(0);
    assert_eq!(page.dropped.len(), 1, "{page:?}");
    let (reason, lost) = page.dropped[0];
    assert!(reason == Dropped::Quota && lost > 0);
    let verdict = rig.compare(&peer.report());
    // One request may have been taken by the quota and by the peer.
    assert!(verdict.missing <= lost && verdict.missing + 2000 >= lost, "{lost} dropped, {verdict:?}");
    assert_eq!((verdict.duplicates, verdict.out_of_order), (0, 0));
}

/// A flipped bit costs the record that it is in, once, also when the sink goes back over it.
#[tokio::test]
async fn damaged_records_are_counted_once() {
    let mut rig = Rig::new(20, 1 << 20);
    let refusing = peer(Behaviour::Status { code: 400, retry_after: None });
    for _ in 0..9 {
        rig.put(Version::V1, 0..20, 1).await;
    }
    // In the middle record's body.
    let segment = std::fs::read_dir(rig.dir.path().join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "seg"))
        .unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[used / 2] ^= 1;
    let mut rig = rig.restarted_after(|| std::fs::write(&segment, &bytes).unwrap());
    // Everything is rejected in company, so the sink goes back, over the gap, and sends one by one.
    let (sink, stopper) = rig.sink(settings(&refusing));
    let watched = refusing.clone();
    let script = async {
        arrival(&watched, |arrived| crate::rig::answers(arrived, 400) >= 5).await;
        order(&watched, Behaviour::Healthy).await;
        for _ in 0..3 {
            rig.put(Version::V1, 0..20, 1).await;
        }
        let ledger = rig.ledger.clone();
        while !ledger.balance().at_rest() {
            assert_eq!(ledger.balance().difference(), 0);
            tokio::task::yield_now().await;
        }
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    let page = rig.assert_closed(0);
    assert!(page.dropped.contains(&(Dropped::Damaged, 20)), "{page:?}");
}
