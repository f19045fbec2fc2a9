//! When all slots of the journal's queue are taken, further requests wait, and all of them are stored.

use super::*;
use futures_util::future::join_all;

/// Two places, and fifty requests in one instant: each is durable when it is answered.
#[tokio::test]
async fn more_requests_than_places_are_kept() {
    let rig = rig_of(64 << 20, 2, |_, _| GateRules::default());
    let answers = join_all((0..50).map(|_| rig.append(64))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(rig.assert_books(), (50, vec![]));
    assert_eq!(rig.journal.stats().items, 150);
}

/// Those that go away while they wait leave no place taken, and nothing in the books.
#[tokio::test]
async fn a_wait_that_is_given_up_leaves_nothing() {
    let rig = rig_of(64 << 20, 1, |_, _| GateRules::default());
    let place = rig.gate.try_append_slot().unwrap();
    let mut waiting = Box::pin(rig.append(64));
    assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err());
    drop(waiting);
    drop(place);
    rig.append(64).await.unwrap();
    let mut balance = rig.ledger.balance();
    assert_eq!((balance.difference(), balance.sources.remove(0).accepted), (0, 1));
}

/// A wait has an end, and what ends it is an answer that says when to return.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_place_has_an_end() {
    let rig = rig_of(64 << 20, 1, |_, _| GateRules::default());
    let _place = rig.gate.try_append_slot().unwrap();
    let begun = Instant::now();
    let refused = rig.append(64).await.unwrap_err();
    assert_eq!(refused.reason, Refusal::Memory);
    assert!(refused.retry_after.is_some());
    assert!(begun.elapsed() >= WAIT);
    assert_eq!(rig.assert_books(), (0, vec![(Refusal::Memory, 1)]));
}

/// A wait is paid for: where nothing is left for it, the answer comes at once.
#[tokio::test]
async fn a_waiting_request_is_charged() {
    let rig = rig_of(64 << 20, 1, |_, _| GateRules::default());
    let _place = rig.gate.try_append_slot().unwrap();
    let waiting = rig.gate.charge_wait().unwrap();
    assert_eq!(rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), waiting.bytes());
    let free = rig.arena.free(Share::Ingest);
    let _all = rig.arena.try_charge(Share::Ingest, free).unwrap();
    assert!(rig.gate.charge_wait().is_none());
    let size = size_of_val(&rig.gate.append_later(
        waiting,
        rig.source.open(),
        Counts::of(tidegate_ledger::Signal::Metrics, 1, 1),
        Batch {
            meta: Meta {
                tenant: Tenant::NONE,
                signal: Signal::Metrics,
                protocol: Protocol::RemoteWrite1,
                encoding: Encoding::Snappy,
                items: 1,
                raw_len: 1,
                received_at_ns: 1,
            },
            window: rig.arena.window(Share::Decode, 1).await.unwrap(),
            from: 0,
            len: 0,
            checkpoints: Checkpoints::default(),
        },
    ));
    assert!(size as u64 <= super::super::append_slots::WAITING_BYTES, "{size} bytes");
}
