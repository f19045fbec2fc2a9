//! Promise: receivers that come and go move no more than they must, and nothing is lost.

use crate::receiver::{Receiver, Traces};
use crate::rig::{PART, Rig, SinkSettings, settings, until};
use std::net::IpAddr;
use std::time::Duration;
use tidegate_members::Entry;
use tidegate_members::simulated::NameServer;

const NAME: &str = "collectors.internal";

fn resolve(server: &NameServer, last: impl IntoIterator<Item = u8>) {
    let addresses: Vec<IpAddr> = last.into_iter().map(|last| [127, 0, 0, last].into()).collect();
    server.set_addresses(NAME, &addresses);
}

fn by_name(rig: &Rig, server: &NameServer, port: u16) -> SinkSettings {
    let mut settings = settings(rig, &[], 1);
    settings.1.members.entries = vec![Entry::parse(&format!("dns+http://{NAME}:{port}")).unwrap()];
    settings.1.members.name_servers = vec![server.address()];
    settings.1.members.interval = Duration::from_millis(50);
    settings.1.patience = Duration::from_millis(100);
    settings
}

/// The spans of each trace, of all receivers.
fn all(receivers: &[Receiver]) -> Traces {
    let mut all = Traces::new();
    for (trace, spans) in receivers.iter().flat_map(Receiver::traces) {
        all.entry(trace).or_default().extend(spans);
    }
    all.values_mut().for_each(|spans| spans.sort_unstable());
    all
}

#[tokio::test]
async fn a_receiver_that_dns_adds_takes_its_part_only() {
    let server = NameServer::start().unwrap();
    let receivers = Receiver::pods(4);
    resolve(&server, 1..=3);
    let mut rig = Rig::new(PART);
    let settings = by_name(&rig, &server, receivers[0].port());
    rig.run(&settings, async |rig| {
        rig.put("shop", 0..1000).await;
        rig.settled().await;
        let before: Vec<_> = receivers.iter().map(Receiver::traces).collect();
        resolve(&server, 1..=4);
        // Data flows while the receiver is added.
        while rig.health.members().len() < 4 {
            rig.put("shop", 0..1000).await;
            rig.settled().await;
        }
        rig.put("shop", 0..1000).await;
        rig.settled().await;
        for (receiver, before) in receivers.iter().zip(&before).take(3) {
            assert!(receiver.traces().keys().eq(before.keys()), "nothing moves between those that stay");
        }
        let moved = receivers[3].traces().len();
        assert!((100..450).contains(&moved), "{moved} of 1000 traces moved to one of four");
    })
    .await;
    assert_eq!(all(&receivers), rig.put, "each span is delivered once");
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

#[tokio::test]
async fn the_backlog_of_a_receiver_that_leaves_goes_to_the_others() {
    let server = NameServer::start().unwrap();
    let mut receivers = Receiver::pods(3);
    resolve(&server, 1..=3);
    let mut rig = Rig::new(PART);
    let settings = by_name(&rig, &server, receivers[0].port());
    receivers[2].leave();
    rig.run(&settings, async |rig| {
        until("the receivers are known", || rig.health.members().len() == 3).await;
        for _ in 0..10 {
            rig.put("shop", 0..100).await;
        }
        until("its requests are in its log", || rig.report(&receivers[2]).handed_off_requests > 0).await;
        resolve(&server, 1..=2);
        rig.settled().await;
    })
    .await;
    assert_eq!(all(&receivers), rig.put, "each span is delivered once");
    assert!(receivers[2].traces().is_empty());
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}
