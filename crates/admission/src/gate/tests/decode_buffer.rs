//! Promises: what a body becomes is on its tenant's account for as long as it is held; who has its part of that memory is
//! refused as one who has its part of what is received; and of one tenant at most one request waits.

use super::enter::limited;
use super::*;
use std::pin::pin;
use std::task::Poll;
use tidegate_limit::LimiterSettings;

/// A body of some bytes that becomes so many.
const RAW: usize = 128 << 10;

impl Rig {
    fn decoding(&self) -> u64 {
        self.arena.usage().shares.iter().find(|known| known.share == Share::Decode).unwrap().used
    }

    fn waiting(&self) -> usize {
        self.arena.usage().shares.iter().map(|share| share.waiting).sum()
    }
}

/// Polls once.
async fn now<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    let mut future = future;
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// A tiny body decompresses to a huge one.
#[tokio::test]
async fn a_flood_of_bodies_that_become_large_leaves_room_for_the_others() {
    let rig = limited(LimiterSettings::default(), true);
    let free = rig.arena.free(Share::Decode);
    let (mut held, mut refusals) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let entered = match rig.enter(Some("flood"), Some(400)) {
            Ok(entered) => entered,
            Err(refused) => {
                refusals.push(refused);
                continue;
            }
        };
        match rig.gate.decode_buffer(&entered.0, RAW, true).await {
            Ok(room) => held.push((entered, room)),
            Err(refused) => {
                entered.1.refuse(refused.reason);
                refusals.push(refused);
            }
        }
    }
    assert!(refusals.iter().all(|refused| refused.reason == Refusal::Share && refused.retry_after.is_some()));
    assert_eq!((refusals.len() + held.len(), rig.waiting()), (100, 0));
    let left = rig.arena.free(Share::Decode);
    assert!(left > free / 6 && left < free / 3, "{left} of {free}");
    for _ in 0..10 {
        let (passage, open) = rig.enter(Some("trickle"), Some(400)).unwrap();
        assert!(now(pin!(rig.gate.decode_buffer(&passage, RAW, true))).await.is_ready(), "at once");
        open.accept_empty(tidegate_ledger::Signal::Logs);
    }
    held.clear();
    assert_eq!(rig.decoding(), 0);
    assert!(rig.accounts().iter().all(|(.., held)| *held == 0));
    let (passage, _open) = rig.enter(Some("flood"), Some(400)).unwrap();
    assert!(rig.gate.decode_buffer(&passage, RAW, true).await.is_ok());
}

/// However many come: the queue that others stand in is no longer than there are tenants.
#[tokio::test]
async fn one_request_of_a_tenant_waits_and_the_others_are_refused() {
    let rig = limited(LimiterSettings::default(), true);
    let taken = take_all_but(&rig, 0);
    let entered: Vec<_> = (0..20).map(|_| rig.enter(Some("flood"), Some(400)).unwrap()).collect();
    let mut first = pin!(rig.gate.decode_buffer(&entered[0].0, RAW, false));
    assert!(now(first.as_mut()).await.is_pending());
    for (passage, _) in &entered[1..] {
        let Poll::Ready(Err(refused)) = now(pin!(rig.gate.decode_buffer(passage, RAW, false))).await else {
            panic!("it waits")
        };
        assert_eq!(refused.reason, Refusal::Share);
    }
    assert_eq!(rig.waiting(), 1);
    let (beside, _open) = rig.enter(Some("trickle"), Some(400)).unwrap();
    let mut second = pin!(rig.gate.decode_buffer(&beside, RAW, false));
    assert!(now(second.as_mut()).await.is_pending());
    drop(taken);
    assert!(first.await.is_ok());
    assert!(second.await.is_ok());
}

/// Memory that a body needs beyond its announced size counts too, and is returned.
#[tokio::test]
async fn decoded_bytes_count_for_the_tenant() {
    let rig = limited(LimiterSettings::default(), true);
    let (passage, _open) = rig.enter(Some("flood"), Some(400)).unwrap();
    let (beside, _open_too) = rig.enter(Some("flood"), Some(400)).unwrap();
    let mut room = rig.gate.decode_buffer(&passage, 4096, true).await.unwrap();
    assert_eq!(room.grow(&rig.gate, 1 << 20), Ok(true), "alone it may have what is free");
    let held = rig.accounts().into_iter().map(|(.., held)| held).sum::<u64>();
    assert_eq!(held, rig.decoding() + 800);
    let mut other = rig.gate.decode_buffer(&beside, 4096, true).await.unwrap();
    let refused = other.grow(&rig.gate, rig.arena.free(Share::Decode) as usize).unwrap_err();
    assert_eq!(refused.reason, Refusal::Share);
    assert!(other.beside(&rig.gate, rig.arena.free(Share::Decode) as usize).is_err());
    assert_eq!(other.grow(&rig.gate, 1 << 16), Ok(true));
    drop((room, other));
    assert_eq!(rig.accounts().into_iter().map(|(.., held)| held).sum::<u64>(), 800);
}

/// Where there are no tenants whoever comes waits, as long as a request may.
#[tokio::test(start_paused = true)]
async fn without_tenants_there_are_no_shares() {
    let rig = limited(LimiterSettings::default(), false);
    let _taken = take_all_but(&rig, 0);
    let passage = Permit::default();
    let both = tokio::join!(
        rig.gate.decode_buffer(&passage, RAW, false),
        rig.gate.decode_buffer(&passage, RAW, false)
    );
    assert_eq!([both.0.err(), both.1.err()].map(|refused| refused.unwrap().reason), [Refusal::Memory; 2]);
}

/// A body that is not light waits for its turn before it takes memory, and says how much it may become there.
#[tokio::test]
async fn bodies_that_are_not_light_are_checked_one_at_a_time_on_a_thread() {
    let rig = rig(1 << 30);
    let passage = Permit::default();
    let first = rig.gate.decode_buffer(&passage, MAX_INLINE_BYTES + 1, true).await.unwrap();
    let used = rig.decoding();
    let mut second = pin!(rig.gate.decode_buffer(&passage, MAX_INLINE_BYTES + 1, true));
    assert!(now(second.as_mut()).await.is_pending());
    assert_eq!(rig.decoding(), used, "it waits without memory");
    let light = rig.gate.decode_buffer(&passage, MAX_INLINE_BYTES, true).await.unwrap();
    let elsewhere = rig.gate.decode_buffer(&passage, MAX_INLINE_BYTES + 1, false).await.unwrap();
    let most = [&first, &light, &elsewhere].map(|room| room.inline_limit(4 << 20));
    assert_eq!(most, [4 << 20, MAX_INLINE_BYTES, MAX_INLINE_BYTES]);
    drop(first);
    assert!(second.await.is_ok());
}

/// A request that needs more than both shares together gets no retry delay.
#[tokio::test(start_paused = true)]
async fn a_decode_larger_than_both_shares_is_refused_without_a_retry_delay() {
    let rig = rig(1 << 30);
    let body = rig.arena.try_window(Share::Ingest, 2 << 20).unwrap();
    let asked = tokio::time::Instant::now();
    let passage = Permit::default();
    let room =
        async |bytes| rig.gate.decode_buffer_beside(&passage, body.charged() as u32, bytes, false).await;
    assert!(room(1 << 20).await.is_ok());
    let refused = room((2 << 20) + 1).await.err().unwrap();
    assert_eq!((refused.reason, refused.retry_after), (Refusal::TooLarge, None));
    let mut grown = room(1 << 20).await.unwrap();
    assert_eq!(
        grown.grow_beside(&rig.gate, body.charged(), (2 << 20) + 1),
        Ok(false),
        "there can never be so much"
    );
    drop(grown);
    assert_eq!(asked.elapsed(), std::time::Duration::ZERO);
    // Others may let go of what they hold.
    let held = rig.arena.try_charge(Share::Ingest, 1 << 20).unwrap();
    assert_eq!(room((3 << 20) / 2).await.err().unwrap().reason, Refusal::Memory);
    drop(held);
    assert!(room((3 << 20) / 2).await.is_ok());
}
