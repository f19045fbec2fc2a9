//! Promise: a file of hashrings that changes is followed; one that cannot be used changes nothing and is reported.

use crate::member::{Member, Samples};
use crate::rig::{PART, Rig, TENANT, settings, until};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_sinks::{Hashrings, ThanosReceiveSettings};

/// Replaces the file of hashrings at once.
pub(crate) fn write(rig: &Rig, text: &str) -> PathBuf {
    let (path, new) = (rig.dir.path().join("rings.json"), rig.dir.path().join("rings.new"));
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path
}

pub(crate) fn ring_of(members: &[&Member]) -> String {
    let addresses: Vec<_> = members.iter().map(|member| format!("{:?}", member.address())).collect();
    format!(r#"[{{"hashring":"all","endpoints":[{}]}}]"#, addresses.join(","))
}

pub(crate) fn from_file(rig: &Rig, members: &[&Member], replication: usize) -> ThanosReceiveSettings {
    let hashrings = Hashrings::File(write(rig, &ring_of(members)));
    let patience = Duration::from_millis(100);
    ThanosReceiveSettings { hashrings, patience, ..settings(rig, members, replication) }
}

#[tokio::test]
async fn a_member_that_is_added_gets_its_series() {
    let members = Member::some(3);
    let [a, b, c] = &members[..] else { unreachable!() };
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &[a, b], 2);
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 1).await;
        rig.arrived(&settings, &[a, b]).await;
        let before = [a, b, c].map(Member::samples);
        write(rig, &ring_of(&[a, b, c]));
        until("the new ring is in use", || rig.health.members().len() == 3).await;
        rig.forget_put();
        rig.put(None, 1000..1100, 2).await;
        rig.settled().await;
        for (member, mut wanted) in [a, b, c].into_iter().zip(before) {
            wanted.extend(rig.expected(&settings, member));
            until("a member takes what the new ring gives it", || member.samples() == wanted).await;
        }
        assert!(!c.samples().is_empty());
    })
    .await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

/// Every look at a file that cannot be used is an error, so that the rates of errors and looks tell that it is broken.
#[tokio::test]
async fn looks_at_the_file_are_counted() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &[&member], 1);
    rig.run(&settings, async |rig| {
        let file = |rig: &Rig| rig.health.forwarding().and_then(|report| report.file).unwrap();
        let first = file(rig);
        assert!(first.is_in_use && first.errors == 0 && first.changes == 1);
        write(rig, "[{");
        until("the file is refused", || !file(rig).is_in_use).await;
        let refused = file(rig);
        assert_eq!((refused.hash, refused.changes), (first.hash, 1), "the old one stays in use");
        until("it is refused again", || file(rig).errors > refused.errors).await;
        write(rig, &ring_of(&[&member]).replace("all", "other"));
        until("the new file is in use", || file(rig).is_in_use).await;
        let last = file(rig);
        assert!(last.hash != first.hash && last.changes == 2 && last.refreshes > last.errors, "{last:?}");
        assert_eq!(rig.health.forwarding().unwrap().hashrings[0].name, "other");
    })
    .await;
}

/// What waits for a member that leaves goes to the members that own the series then.
#[tokio::test]
async fn the_backlog_of_a_member_that_leaves_goes_to_the_new_owners() {
    for replication in [1, 2] {
        let mut members = Member::some(3);
        let mut rig = Rig::new(PART);
        let settings = from_file(&rig, &members.iter().collect::<Vec<_>>(), replication);
        members[0].leave();
        let [gone, b, c] = &members[..] else { unreachable!() };
        rig.run(&settings, async |rig| {
            for time in 0..10 {
                rig.put(None, 0..100, time).await;
            }
            let first = rig.expected(&settings, gone);
            let first = first.keys().filter(|(_, replica, _)| *replica == 1).count() as u64;
            until("the others have theirs", || rig.page().queued == 10 * first).await;
            rig.arrived(&settings, &[b, c]).await;
            let before = rig.expected(&settings, gone);
            write(rig, &ring_of(&[b, c]));
            rig.settled().await;
            until("the member is gone", || rig.health.members().len() == 2).await;
            let mut taken = Samples::new();
            for (key, times) in b.samples().into_iter().chain(c.samples()) {
                taken.entry(key).or_default().extend(times);
            }
            for key in before.keys() {
                assert_eq!(taken[key], (0..10).collect::<Vec<_>>(), "{key:?}");
            }
            assert_eq!(taken.len(), 100 * replication);
            // The new rings name the same members as the owners of what was moved.
            for (key, _) in b.samples().into_iter().filter(|(key, _)| before.contains_key(key)) {
                assert!(rig.expected(&settings, b).contains_key(&key), "{key:?}");
            }
        })
        .await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
    }
}

/// A tenant that has no ring any more gets nothing, and that is counted.
#[tokio::test]
async fn a_backlog_without_a_ring_is_counted() {
    let mut members = Member::some(2);
    members[0].leave();
    let [gone, other] = &members[..] else { unreachable!() };
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &[gone], 1);
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 1).await;
        until("it is in the log", || rig.report(gone).handed_off_requests > 0).await;
        write(rig, &format!(r#"[{{"hashring":"b","tenants":["b"],"endpoints":["{}"]}}]"#, other.address()));
        rig.settled().await;
    })
    .await;
    let dropped = rig.page().dropped;
    assert_eq!(dropped, [(tidegate_ledger::Dropped::Rejected, 100)], "the tenant {TENANT} has no ring");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let members = Member::some(2);
    let members: Vec<_> = members.iter().collect();
    let mut rig = Rig::new(PART);
    let settings = from_file(&rig, &members, 1);
    // The rings that stay in use.
    let kept = ThanosReceiveSettings {
        hashrings: crate::rig::settings(&rig, &members, 1).hashrings,
        ..settings.clone()
    };
    let crowd: Vec<_> = (1..10).map(|port| format!("\"127.0.0.1:{port}\"")).collect();
    let crowd = format!(r#"[{{"endpoints":[{}]}}]"#, crowd.join(","));
    rig.run(&settings, async |rig| {
        for (time, (text, error)) in (1..).zip([("[{", "hashring file"), (&crowd, "max_members")]) {
            write(rig, text);
            let says = |rig: &Rig| rig.health.trouble().last_error.is_some_and(|said| said.contains(error));
            until("the file is reported", || says(rig)).await;
            rig.put(None, 0..50, time).await;
            rig.arrived(&kept, &members).await;
            // An answer that is late because the machine is busy is booked from the log.
            rig.settled().await;
        }
    })
    .await;
    assert_eq!(rig.page().delivered, rig.items);
}

/// Those that leave keep their logs until they are read, while those that come have theirs.
#[tokio::test]
async fn all_members_are_replaced_by_more_others() {
    let members = Member::some(7);
    let members: Vec<_> = members.iter().collect();
    let (old, new) = members.split_at(3);
    let mut rig = Rig::new(PART);
    let mut settings = ThanosReceiveSettings { max_members: 4, ..from_file(&rig, old, 1) };
    // As many as are planned for such a sink.
    settings.handoff.members = 2 * settings.max_members;
    rig.run(&settings, async |rig| {
        rig.put(None, 0..100, 1).await;
        rig.arrived(&settings, old).await;
        write(rig, &ring_of(new));
        let is_new =
            |rig: &Rig| rig.health.members().iter().all(|member| *member.address != old[0].address());
        until("the new ring is in use", || is_new(rig)).await;
        rig.put(None, 0..100, 2).await;
        rig.settled().await;
    })
    .await;
    assert!(new.iter().all(|member| !member.samples().is_empty()));
    assert_eq!((rig.page().delivered, rig.page().dropped), (rig.items, vec![]));
}

#[tokio::test]
async fn an_endpoint_without_a_port_is_refused() {
    let rig = Rig::new(PART);
    for address in [
        "ingestor",
        "http://ingestor:10901",
        "ingestor:0",
        "ingestor:99999",
        "dns+ingestor:1",
        "me@ingestor:1",
        ":1",
    ] {
        let text = format!(r#"[{{"endpoints":["{address}"]}}]"#);
        let hashrings = Hashrings::File(write(&rig, &text));
        let configs = tidegate_sinks::describe_hashrings(&hashrings).unwrap();
        let refused = tidegate_sinks::check_hashrings(&configs, &settings(&rig, &[], 1).ring, 8).unwrap_err();
        assert!(refused.to_string().contains(&format!("`{address}` is not the address")), "{refused}");
    }
}
