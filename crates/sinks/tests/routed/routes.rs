//! Promise: all items with one key are at one receiver, in order, and each receiver has its part.

use crate::receiver::{Receiver, Reply};
use crate::rig::{PART, Rig, merged, settings};
use std::collections::BTreeSet;
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, RouteKey};

#[tokio::test]
async fn all_spans_of_a_trace_are_at_one_receiver() {
    for compression in [Compression::None, Compression::Gzip(1)] {
        let receivers = Receiver::some(3);
        let mut rig = Rig::new(PART);
        let mut settings = settings(&rig, &receivers, 1);
        settings.0.compression = compression;
        rig.run(&settings, async |rig| {
            for _ in 0..20 {
                rig.put("shop", 0..100).await;
                rig.put("cart", 50..150).await;
            }
            rig.settled().await;
        })
        .await;
        assert_eq!(merged(&receivers), rig.put, "each span once, in order");
        for receiver in &receivers {
            assert!(receiver.traces().len() > 20, "each has its part");
            let is_compressed = receiver.seen().compressed == receiver.seen().requests;
            assert_eq!(is_compressed, compression != Compression::None);
        }
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}

#[tokio::test]
async fn a_service_is_at_one_receiver() {
    for key in [RouteKey::Service, RouteKey::Resource] {
        let receivers = Receiver::some(3);
        let mut rig = Rig::new(PART);
        let mut settings = settings(&rig, &receivers, 1);
        settings.1.route_by = key;
        let services: Vec<_> = (0..30).map(|number| format!("service-{number}")).collect();
        rig.run(&settings, async |rig| {
            for service in services.iter().chain(&services) {
                rig.put(service, 0..10).await;
            }
            rig.settled().await;
        })
        .await;
        let of = |receiver: &Receiver| receiver.seen().services.into_iter().collect::<BTreeSet<_>>();
        let all: Vec<_> = receivers.iter().flat_map(of).collect();
        assert_eq!(all.len(), services.len(), "none is at two");
        assert!(receivers.iter().all(|receiver| !of(receiver).is_empty()));
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}

#[tokio::test]
async fn each_replica_is_at_another_receiver() {
    let receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 2);
    rig.run(&settings, async |rig| {
        for _ in 0..5 {
            rig.put("shop", 0..100).await;
        }
        crate::rig::until("both replicas arrive", || {
            receivers.iter().map(|receiver| receiver.traces().len()).sum::<usize>() == 200
        })
        .await;
        rig.settled().await;
    })
    .await;
    for (trace, spans) in &rig.put {
        let holders = receivers.iter().filter(|receiver| receiver.traces().get(trace) == Some(spans));
        assert_eq!(holders.count(), 2, "trace {trace}");
    }
}

#[tokio::test]
async fn what_a_receiver_rejects_is_counted() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].script([Reply::Partial(3), Reply::Status(405, "no"), Reply::Status(429, "slow down")]);
    rig.run(&settings, async |rig| {
        for _ in 0..3 {
            rig.put("shop", 0..10).await;
            rig.settled().await;
        }
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (17, vec![(Dropped::Rejected, 13)]));
    assert_eq!(receivers[0].seen().requests, 4, "a busy receiver is asked again");
}

/// A receiver that does not know the sender has not looked at the data.
#[tokio::test]
async fn wrong_credentials_lose_nothing() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].script([Reply::Status(401, "who is it"), Reply::Status(401, "who is it")]);
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..10).await;
        rig.settled().await;
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (10, vec![]));
    assert_eq!(receivers[0].seen().requests, 3);
}
