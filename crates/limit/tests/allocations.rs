//! Deciding takes no memory: neither letting in, nor refusing, nor looking up a tenant that is known.
#![cfg(not(loom))]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_ledger::Ledger;
use tidegate_limit::{
    AdmissionTable, ConnectionCounts, LimiterSettings, Moment, PerSecond, TenantLimits, Tenants, Throttle,
};
use tidegate_meters::Registry;

#[test]
fn a_decision_allocates_nothing() {
    let ledger = Ledger::new(&Registry::new(1), 0);
    let books = ledger.source("otlp").unwrap();
    let requests = Some(PerSecond { rate: 10, burst: 10 });
    let limits = LimiterSettings {
        requests,
        concurrency: Some(5),
        in_flight: Some(1000),
        ..LimiterSettings::default()
    };
    let tenants = Tenants::new(4, TenantLimits::default(), ledger);
    let table = Arc::new(AdmissionTable::new(vec![(books.clone(), limits)], Some(tenants)));
    let tenants = table.tenants().unwrap();
    for name in ["a", "b", "c", "d"] {
        let _ = tenants.find(name);
    }
    let throttle = Throttle::new(100, Duration::from_secs(1));
    let peers = ConnectionCounts::new(Some(3));
    let start = Moment::now();
    let decide = |seconds: u64| {
        let now = Moment(start.0 + seconds * 1_000_000_000);
        let route = table.route(&books).unwrap();
        let (mut passed, mut refused) = (0, 0);
        for round in 0..1000_u64 {
            let name = ["a", "b", "no room for this one"][round as usize % 3];
            match table.admit(now, route, Some(tenants.find(name)), 10, 1 << 20) {
                Ok(hold) => passed += usize::from(hold.grow(now, 20, 1 << 20).is_ok()),
                Err(_) => refused += 1,
            }
            let token = throttle.acquire(now, round % 7);
            drop((throttle.acquire(now, round % 7), token));
            peers
                .try_add(IpAddr::from([10, 0, 0, round as u8]))
                .into_iter()
                .for_each(|seat| peers.remove(seat));
        }
        assert!(passed > 0 && refused > 0);
    };
    decide(0);
    assert_eq!(allocation_counter::measure(|| decide(10)).count_total, 0);
    let page = allocation_counter::measure(|| drop(format!("{}", books.items())));
    assert_eq!(page.count_total, 1, "the counting itself works");
}
