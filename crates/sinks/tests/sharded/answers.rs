//! Promise: what a receiver never takes is counted and given up, and nothing else with it.

use crate::messages::RequestV1;
use crate::receiver::{Receiver, Reply};
use crate::rig::{PART, Rig, settings};
use tidegate_ledger::Dropped;

fn has_series_7(request: &RequestV1) -> bool {
    request.series.iter().any(|series| series.label("number") == Some("7"))
}

fn is_long(request: &RequestV1) -> bool {
    request.series.len() > 20
}

/// Prometheus stores nothing of a request with one sample that is out of order.
#[tokio::test]
async fn a_series_that_is_rejected_takes_no_other_with_it() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].always(Reply::Refuse(has_series_7, 400, "out of order sample"));
    rig.put(None, 0..100, 1).await;
    rig.run(&settings, async |rig| rig.settled().await).await;
    let samples = receivers[0].samples();
    assert_eq!(samples.len(), 99);
    assert!(samples.values().all(|times| *times == [1]), "each is taken once");
    assert_eq!((rig.page().delivered, rig.page().dropped), (99, vec![(Dropped::Rejected, 1)]));
    assert_eq!(rig.report(&receivers[0]).conflicts, [0, 1, 0, 0]);
    assert!(receivers[0].seen().requests <= 16, "{}", receivers[0].seen().requests);
}

#[tokio::test]
async fn a_request_that_is_too_long_is_divided() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].always(Reply::Refuse(is_long, 413, "too large"));
    for time in 0..3 {
        rig.put(None, 0..100, time).await;
    }
    rig.run(&settings, async |rig| rig.settled().await).await;
    let samples = receivers[0].samples();
    assert_eq!(samples.len(), 100);
    assert!(samples.values().all(|times| *times == [0, 1, 2]), "in order, and once");
    assert_eq!((rig.page().delivered, rig.page().dropped), (300, vec![]));
}

/// Where everything is rejected, each request is divided no longer.
#[tokio::test]
async fn rejections_of_everything_are_counted() {
    for status in [400, 405] {
        let receivers = Receiver::some(1);
        let mut rig = Rig::new(PART);
        let settings = settings(&rig, &receivers, 1);
        receivers[0].always(Reply::Status(status, "no"));
        rig.run(&settings, async |rig| {
            for time in 0..20 {
                rig.put(None, 0..100, time).await;
                rig.settled().await;
            }
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (0, vec![(Dropped::Rejected, 2000)]));
        // The first one is divided, and what is left of it after 64 requests is still sent.
        assert!(receivers[0].seen().requests <= 20 + 64 + 16, "{}", receivers[0].seen().requests);
    }
}

#[tokio::test]
async fn busy_receivers_are_asked_again() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    receivers[0].script([Reply::Status(429, "slow down"), Reply::Status(500, "oops"), Reply::Ok]);
    rig.put(None, 0..100, 1).await;
    rig.run(&settings, async |rig| rig.settled().await).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (100, vec![]));
    assert_eq!(receivers[0].samples().len(), 100);
}
