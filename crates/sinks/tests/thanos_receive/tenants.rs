//! Promise: tenants have their rings, and series may name theirs by a label.

use crate::member::Member;
use crate::messages::{Label, Series};
use crate::rig::{PART, Rig, TENANT, owners, ring, rings, settings};
use prost::Message;
use tidegate_ledger::Dropped;
use tidegate_sinks::{Hashrings, ThanosLayout, ThanosReceiveSettings};

fn of_team(number: u64, team: &str) -> Series {
    let mut series = Series::numbered(number, &[1]);
    series.labels.push(Label { name: "team".to_owned(), value: team.to_owned() });
    series
}

/// The label goes, its value is the tenant, and the place on the ring is that of the series without it.
#[tokio::test]
async fn a_label_names_the_tenant() {
    for layout in [ThanosLayout::SingleTenant, ThanosLayout::TenantTuples] {
        let members = Member::some(3);
        let all: Vec<_> = members.iter().collect();
        let mut rig = Rig::new(PART);
        let split_tenant_label = Some("team".to_owned());
        let settings = ThanosReceiveSettings { split_tenant_label, layout, ..settings(&rig, &all, 1) };
        let series = (0..90).map(|number| match number % 3 {
            0 => Series::numbered(number, &[1]),
            1 => of_team(number, "a"),
            _ => of_team(number, "b"),
        });
        rig.put_series(None, series.collect()).await;
        rig.drain(&settings).await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (90, vec![]));
        let rings = rings(&settings);
        let mut wanted: Vec<_> = (0..90)
            .map(|number| {
                let tenant = [TENANT, "a", "b"][number as usize % 3];
                let series = Series::numbered(number, &[1]);
                let owner = owners(&rings, tenant, &series).remove(0);
                (owner, tenant.to_owned(), series.encode_to_vec())
            })
            .collect();
        let mut taken = Vec::new();
        for member in &members {
            let address = member.address();
            taken.extend(member.taken().into_iter().map(|one| (address.clone(), one.tenant, one.raw)));
        }
        wanted.sort();
        taken.sort();
        assert!(wanted == taken, "{layout:?}");
    }
}

/// A value that cannot be a tenant stays a label, and the series its sender's.
#[tokio::test]
async fn a_value_that_is_no_tenant_stays() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let split_tenant_label = Some("team".to_owned());
    let settings = ThanosReceiveSettings { split_tenant_label, ..settings(&rig, &[&member], 1) };
    let series = of_team(1, &"x".repeat(400));
    rig.put_series(None, vec![series.clone()]).await;
    rig.drain(&settings).await;
    let taken = member.taken().remove(0);
    assert_eq!((taken.tenant.as_str(), taken.raw), (TENANT, series.encode_to_vec()));
}

#[tokio::test]
async fn each_tenant_has_its_ring_or_is_counted() {
    let members = Member::some(2);
    let mut rig = Rig::new(PART);
    let mut rings = vec![ring(&[&members[0]]), ring(&[&members[1]])];
    rings[0].tenants = vec!["a".to_owned()];
    rings[1].tenants = vec!["b".to_owned()];
    let hashrings = Hashrings::Inline(rings);
    let settings = ThanosReceiveSettings { hashrings, ..settings(&rig, &[&members[0]], 1) };
    for tenant in ["a", "b", "c"] {
        rig.put_series(Some(tenant), (0..10).map(|number| Series::numbered(number, &[1])).collect()).await;
    }
    rig.drain(&settings).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (20, vec![(Dropped::Rejected, 10)]));
    for (member, tenant) in members.iter().zip(["a", "b"]) {
        let taken = member.taken();
        assert_eq!(taken.len(), 10);
        assert!(taken.iter().all(|one| one.tenant == tenant));
    }
    assert!(rig.health.trouble().last_error.unwrap().contains("tenant `c`"));
}
