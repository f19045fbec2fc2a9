//! Promise: what a receiver does not take costs nothing else, and whatever it takes arrives once.

use crate::receiver::{Receiver, Reply};
use crate::rig::{PART, Rig, merged, settings};
use tidegate_ledger::Dropped;

#[tokio::test]
async fn a_span_that_is_refused_takes_no_other_with_it() {
    let receivers = Receiver::some(2);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers.iter().for_each(|receiver| receiver.always(Reply::Without(123)));
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..100).await;
        rig.put("cart", 100..200).await;
        rig.settled().await;
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (199, vec![(Dropped::Rejected, 1)]));
    let taken: Vec<u64> = merged(&receivers).into_values().flatten().collect();
    assert!(taken.len() == 199 && !taken.contains(&123));
}

/// Once a receiver has said that a request is too long, the next ones are short.
#[tokio::test]
async fn a_request_that_is_too_long_goes_out_in_pieces() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].always(Reply::UpTo(2000));
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..500).await;
        rig.settled().await;
        let first = receivers[0].seen();
        assert!(first.refused > 0, "the limit is found");
        rig.put("shop", 0..500).await;
        rig.settled().await;
        assert_eq!(receivers[0].seen().refused, first.refused, "and kept to");
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (1000, vec![]));
    assert_eq!(merged(&receivers), rig.put);
}

/// Receivers of OTLP keep what they get twice: a request that fails between two pieces goes on from there.
#[tokio::test]
async fn a_failure_between_pieces_sends_nothing_twice() {
    for failure in [Reply::Status(503, "not now"), Reply::Status(429, "slowly")] {
        let receivers = Receiver::some(1);
        let mut rig = Rig::new(PART);
        let settings = settings(&rig, &receivers, 1);
        let too_long = Reply::Status(413, "too long");
        receivers[0].script([too_long, too_long, Reply::Ok, failure, Reply::Ok, failure, failure, Reply::Ok]);
        rig.run(&settings, async |rig| {
            rig.put("shop", 0..100).await;
            rig.settled().await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (100, vec![]), "{failure:?}");
        assert_eq!(merged(&receivers), rig.put, "{failure:?}");
    }
}

/// Where everything is refused, each request is divided no longer.
#[tokio::test]
async fn a_receiver_that_refuses_everything_is_not_asked_for_each_span() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].always(Reply::Status(400, "never"));
    rig.run(&settings, async |rig| {
        for _ in 0..10 {
            rig.put("shop", 0..200).await;
            rig.settled().await;
        }
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (0, vec![(Dropped::Rejected, 2000)]));
    assert!(receivers[0].seen().requests < 500, "{} requests", receivers[0].seen().requests);
}

#[tokio::test]
async fn a_receiver_that_rejects_more_than_it_got_rejects_what_it_got() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].script([Reply::Partial(1_000_000)]);
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..100).await;
        rig.settled().await;
        let conflicts: u64 = rig.report(&receivers[0]).conflicts.iter().sum();
        assert_eq!(conflicts, 100);
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (0, vec![(Dropped::Rejected, 100)]));
}
