//! Promise: each series is at the receivers that its labels say, all of it, in order, and always the same ones.

use crate::messages::{Metadata, RequestV1, RequestV2, Series};
use crate::receiver::Receiver;
use crate::rig::{PART, Placement, Rig, settings, until};
use hyper::header::HeaderName;
use prost::Message;
use tidegate_journal::Protocol;
use tidegate_sinks::ShardBy;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn series_are_at_the_receivers_that_their_labels_say() {
    let ways = [
        ShardBy::All,
        ShardBy::Labels(names(&["number"])),
        // All series have the same name, and are at the same receivers.
        ShardBy::Labels(names(&["__name__"])),
        ShardBy::Without(names(&["__name__"])),
        // None has them: all labels count.
        ShardBy::Labels(names(&["job", "instance"])),
    ];
    for (way, replicas) in ways.into_iter().flat_map(|way| [(way.clone(), 1), (way, 2)]) {
        let receivers = Receiver::some(3);
        let mut rig = Rig::new(PART);
        let mut settings = settings(&rig, &receivers, replicas);
        settings.1.shard_by = way.clone();
        let ring = Placement::of(&receivers, replicas, way.clone());
        rig.run(&settings, async |rig| {
            for time in 0..20 {
                rig.put(None, 0..100, time).await;
            }
            rig.arrived(&ring, &receivers).await;
            rig.settled().await;
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]), "{way:?}");
        rig = rig.restarted();
        rig.run(&settings, async |rig| {
            rig.put(None, 0..100, 20).await;
            rig.arrived(&ring, &receivers).await;
        })
        .await;
    }
}

/// The parts of the keys add up to as many as there are replicas, and each receiver has about the same.
#[tokio::test]
async fn shares_are_even() {
    let receivers = Receiver::some(4);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 2);
    rig.run(&settings, async |rig| {
        let shares: Vec<_> = rig.health.members().iter().map(|member| member.share.unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 2.0).abs() < 1e-6, "{shares:?}");
        assert!(shares.iter().all(|share| (0.4..0.6).contains(share)), "{shares:?}");
    })
    .await;
}

#[tokio::test]
async fn remote_write_2_arrives_as_1() {
    let receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    let series: Vec<_> = (0..200).map(|number| Series::numbered(number, &[1, 2, 3])).collect();
    let ring = Placement::of(&receivers, 1, ShardBy::All);
    rig.run(&settings, async |rig| {
        let raw = RequestV2::of(&series).encode_to_vec();
        rig.append(None, Protocol::RemoteWrite2, &raw, 600).await;
        rig.settled().await;
    })
    .await;
    for (number, series) in (0..).zip(&series) {
        let at = |receiver: &&Receiver| ring.owners(series) == [receiver.url()];
        let owner = receivers.iter().find(at).unwrap();
        assert_eq!(owner.samples()[&(String::new(), number)], [1, 2, 3]);
    }
    assert_eq!(rig.page().delivered, 600);
}

#[tokio::test]
async fn metadata_arrives() {
    let receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &receivers, 1);
    let metadata: Vec<_> = (0..30).map(|number| Metadata { family: format!("family_{number}") }).collect();
    let raw = RequestV1 { series: vec![Series::numbered(1, &[1])], metadata }.encode_to_vec();
    rig.run(&settings, async |rig| {
        for _ in 0..2 {
            rig.append(None, Protocol::RemoteWrite1, &raw, 31).await;
        }
        rig.settled().await;
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (62, vec![]));
    let mut all: Vec<_> = receivers.iter().flat_map(|receiver| receiver.seen().families).collect();
    all.sort();
    let twice = all.chunks(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!((all.len(), twice), (60, 30));
}

/// A request is of one tenant where receivers are told, and where they are not, tenants share requests.
#[tokio::test]
async fn tenants_are_kept_apart_where_receivers_know_them() {
    for header in [None, Some(HeaderName::from_static("x-scope-orgid"))] {
        let receivers = Receiver::some(2);
        let mut rig = Rig::new(PART);
        let mut settings = settings(&rig, &receivers, 1);
        settings.0.tenant_header = header.clone();
        rig.run(&settings, async |rig| {
            for time in 0..10 {
                for tenant in [None, Some("a"), Some("b")] {
                    rig.put(tenant, 0..50, time).await;
                }
            }
            rig.settled().await;
            let tenants = |receiver: &Receiver| {
                let mut tenants: Vec<_> = receiver.samples().into_keys().map(|(tenant, _)| tenant).collect();
                tenants.dedup();
                tenants
            };
            for receiver in &receivers {
                let known: &[&str] = if header.is_some() { &["", "a", "b"] } else { &[""] };
                until("all tenants arrive", || tenants(receiver) == known).await;
            }
        })
        .await;
        if header.is_some() {
            let ring = Placement::of(&receivers, 1, ShardBy::All);
            receivers.iter().for_each(|one| assert_eq!(one.samples(), rig.expected(&ring, one)));
        }
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}

/// Requests are no longer than configured.
#[tokio::test]
async fn requests_have_limits() {
    let receivers = Receiver::some(1);
    let mut rig = Rig::new(PART);
    let mut settings = settings(&rig, &receivers, 1);
    settings.0.max_items = 100;
    rig.put(None, 0..1000, 1).await;
    rig.run(&settings, async |rig| rig.settled().await).await;
    assert_eq!(receivers[0].seen().requests, 10);
}
