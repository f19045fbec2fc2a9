//! Promise: receivers that come and go move no more series than they must, and nothing is lost.

use crate::messages::Series;
use crate::receiver::{Receiver, Samples};
use crate::rig::{PART, Placement, Rig, SinkSettings, settings, until};
use std::net::IpAddr;
use std::time::Duration;
use tidegate_members::Entry;
use tidegate_members::simulated::{NameServer, Zone};
use tidegate_sinks::ShardBy;

/// Replaces the file of receivers at once.
fn write<'r>(rig: &Rig, receivers: impl IntoIterator<Item = &'r Receiver>) -> std::path::PathBuf {
    let (path, new) = (rig.dir.path().join("receivers"), rig.dir.path().join("receivers.new"));
    let lines: String = receivers.into_iter().map(|receiver| format!("{}\n", receiver.url())).collect();
    std::fs::write(&new, lines).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path
}

fn from_file(rig: &Rig, receivers: &[Receiver]) -> SinkSettings {
    let mut settings = settings(rig, &[], 1);
    settings.1.members.file = Some(write(rig, receivers));
    settings.1.patience = Duration::from_millis(100);
    settings
}

fn merged<'r>(receivers: impl IntoIterator<Item = &'r Receiver>) -> Samples {
    let mut all = Samples::new();
    for (key, times) in receivers.into_iter().flat_map(Receiver::samples) {
        all.entry(key).or_default().extend(times);
    }
    all
}

#[tokio::test]
async fn an_eleventh_receiver_moves_its_part_only() {
    const SERIES: u64 = 2000;
    let receivers = Receiver::some(11);
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &receivers[..10]);
    let before = Placement::of(&receivers[..10], 1, ShardBy::All);
    let after = Placement::of(&receivers, 1, ShardBy::All);
    rig.run(&settings, async |rig| {
        rig.put(None, 0..SERIES, 0).await;
        rig.arrived(&before, &receivers[..10]).await;
        write(rig, &receivers);
        // Data flows while the receiver is added.
        let mut time = 1;
        while rig.health.members().len() < 11 {
            rig.put(None, 0..SERIES, time).await;
            rig.settled().await;
            time += 1;
        }
        rig.put(None, 0..SERIES, time).await;
        rig.settled().await;
        let all: Vec<_> = (0..=time).collect();
        let taken = merged(&receivers);
        assert_eq!(taken.len() as u64, SERIES);
        for (key, mut times) in taken {
            times.sort_unstable();
            assert_eq!(times, all, "{key:?}");
        }
        let moved = (0..SERIES).filter(|number| {
            let series = Series::numbered(*number, &[]);
            before.owners(&series) != after.owners(&series)
        });
        let moved = moved.count() as u64;
        assert_eq!(receivers[10].samples().len() as u64, moved, "what moves, moves to the new one");
        assert!(moved * 100 <= 12 * SERIES && moved > 0, "{moved} of {SERIES} series moved");
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

#[tokio::test]
async fn the_backlog_of_a_receiver_that_leaves_goes_to_the_others() {
    let mut receivers = Receiver::some(3);
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &receivers);
    let ring = Placement::of(&receivers, 1, ShardBy::All);
    receivers[0].leave();
    rig.run(&settings, async |rig| {
        until("the receivers are known", || rig.health.members().len() == 3).await;
        for time in 0..10 {
            rig.put(None, 0..100, time).await;
        }
        rig.arrived(&ring, &receivers[1..]).await;
        let is_behind = |rig: &Rig| rig.report(&receivers[0]).handed_off_requests > 0;
        until("its requests are in its log", || is_behind(rig)).await;
        write(rig, &receivers[1..]);
        rig.settled().await;
    })
    .await;
    let taken = merged(&receivers);
    assert_eq!(taken.len(), 100);
    assert!(taken.values().all(|times| *times == (0..10).collect::<Vec<_>>()), "in order, and once");
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

/// A receiver that is back before its backlog went to others has it.
#[tokio::test]
async fn a_restart_with_names_keeps_backlogs() {
    let server = NameServer::start().unwrap();
    let mut receivers = Receiver::pods(2);
    let addresses = |count: usize| -> Vec<IpAddr> {
        ["127.0.0.1", "127.0.0.2"][..count].iter().map(|text| text.parse().unwrap()).collect()
    };
    let zone = |count| Zone { addresses: addresses(count), ..Zone::default() };
    server.set("receivers.internal", zone(2));
    let mut rig = Rig::new(PART);
    let mut settings = settings(&rig, &[], 1);
    settings.1.patience = Duration::from_millis(100);
    let url = format!("dns+http://receivers.internal:{}/api/v1/write", receivers[0].port());
    settings.1.members.entries = vec![Entry::parse(&url).unwrap()];
    settings.1.members.name_servers = vec![server.address()];
    settings.1.members.interval = Duration::from_millis(50);
    let ring = Placement::of(&receivers, 1, ShardBy::All);
    receivers[1].leave();
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 0).await;
        rig.arrived(&ring, &receivers[..1]).await;
        let is_behind = |rig: &Rig| rig.report(&receivers[1]).handed_off_requests > 0;
        until("its requests are in its log", || is_behind(rig)).await;
    })
    .await;
    rig = rig.restarted();
    receivers[1].come_back();
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 1).await;
        rig.arrived(&ring, &receivers).await;
        rig.settled().await;
        server.set("receivers.internal", zone(1));
        until("the second one left", || rig.health.members().len() == 1).await;
        rig.put(None, 0..100, 2).await;
        rig.settled().await;
    })
    .await;
    let taken = merged(&receivers);
    assert_eq!(taken.len(), 100);
    for (key, mut times) in taken {
        times.sort_unstable();
        assert_eq!(times, [0, 1, 2], "{key:?}");
    }
}
