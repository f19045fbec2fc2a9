//! Promise: each series arrives at exactly the members that the rings name, with its replica number and tenant, as it was put in.

use crate::member::Member;
use crate::messages::{Exemplar, Histogram, Label, Metadata, RequestV1, RequestV2, Sample, Series};
use crate::rig::{PART, Rig, TENANT, owners, rings, settings};
use prost::Message;
use tidegate_journal::Protocol;
use tidegate_ledger::Dropped;
use tidegate_ring::Algorithm;
use tidegate_sinks::{ThanosLayout, ThanosReceiveSettings};

/// Every algorithm, replication, layout and coding.
fn each_way(rig: &Rig, members: &[&Member], mut then: impl FnMut(ThanosReceiveSettings)) {
    for algorithm in [Algorithm::Hashmod, Algorithm::Ketama] {
        for replication in [1, 3] {
            for layout in [ThanosLayout::SingleTenant, ThanosLayout::TenantTuples] {
                for is_compressed in [false, true] {
                    let mut settings = settings(rig, members, replication);
                    settings.ring.algorithm = algorithm.clone();
                    then(ThanosReceiveSettings { layout, is_compressed, ..settings });
                }
            }
        }
    }
}

/// A series with one of everything, and a payload of NaN.
fn rich(number: u64) -> Series {
    let label = |name: &str, value: &str| Label { name: name.to_owned(), value: value.to_owned() };
    let mut series = Series::numbered(number, &[10, 20]);
    series.labels.push(label("zone", &"z".repeat(number as usize % 300)));
    series.samples.push(Sample { bits: 0x7ff0_0000_0000_0002, time: 30 });
    series.samples.push(Sample { bits: 0xfff8_dead_beef_0001, time: 40 });
    series.exemplars = vec![Exemplar { labels: vec![label("trace_id", "abc")], value: 1.5, time: 10 }];
    series.histograms = vec![Histogram { count: 3, sum: 4.5, schema: -4, time: 20 }];
    series
}

#[tokio::test]
async fn series_arrive_at_their_members_as_they_were_put_in() {
    let mut ways = Vec::new();
    each_way(&Rig::new(PART), &[], |way| ways.push(way));
    for way in ways {
        let members = Member::some(4);
        let members: Vec<_> = members.iter().collect();
        let mut rig = Rig::new(PART);
        let of_rig = settings(&rig, &members, way.ring.replication);
        let way = ThanosReceiveSettings { hashrings: of_rig.hashrings, handoff: of_rig.handoff, ..way };
        let tenants = [None, Some("team-a")];
        for tenant in tenants {
            rig.put_series(tenant, (0..200).map(rich).collect()).await;
        }
        rig.drain(&way).await;
        let page = rig.page();
        assert_eq!((page.delivered, page.dropped), (rig.items, vec![]), "{way:?}");
        let rings = rings(&way);
        let mut wanted = Vec::new();
        for tenant in tenants {
            let tenant = tenant.unwrap_or(TENANT);
            for series in (0..200).map(rich) {
                for (replica, owner) in (1..).zip(owners(&rings, tenant, &series)) {
                    wanted.push((owner, tenant.to_owned(), replica, series.encode_to_vec()));
                }
            }
        }
        let mut taken = Vec::new();
        for member in &members {
            let report = rig.report(member);
            assert_eq!((report.failures, report.handed_off_requests, report.is_behind), (0, 0, false));
            assert_eq!(member.tuples() > 0, way.layout == ThanosLayout::TenantTuples);
            let address = member.address();
            taken.extend(
                member.taken().into_iter().map(|one| (address.clone(), one.tenant, one.replica, one.raw)),
            );
        }
        wanted.sort();
        taken.sort();
        assert!(wanted == taken, "{way:?}: {} series rather than {}", taken.len(), wanted.len());
    }
}

/// Series of remote write 2.0 arrive as those of 1.0.
#[tokio::test]
async fn remote_write_2_arrives() {
    let members = Member::some(3);
    let members: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &members, 3);
    let series: Vec<_> = (1..400).map(|number| Series::numbered(number, &[10, 20])).collect();
    let raw = RequestV2::of(&series).encode_to_vec();
    rig.append(None, Protocol::RemoteWrite2, &raw, 2 * series.len() as u64).await;
    rig.drain(&settings).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    let mut wanted: Vec<_> = series.iter().map(Message::encode_to_vec).collect();
    wanted.sort();
    for member in members {
        let mut taken: Vec<_> = member.taken().into_iter().map(|one| one.raw).collect();
        taken.sort();
        assert!(taken == wanted);
    }
}

/// Metadata has no place in a request to an ingestor.
#[tokio::test]
async fn metadata_is_counted() {
    let members = Member::some(1);
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&members[0]], 1);
    let metadata = vec![Metadata { family: "m".to_owned() }; 3];
    let raw = RequestV1 { series: vec![Series::numbered(1, &[10])], metadata }.encode_to_vec();
    rig.append(None, Protocol::RemoteWrite1, &raw, 4).await;
    rig.drain(&settings).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (1, vec![(Dropped::Untranslatable, 3)]));
}
