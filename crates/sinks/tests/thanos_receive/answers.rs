//! Promise: an answer that says no for ever is final and counted; everything else is sent again.

use crate::member::{Member, Reply};
use crate::rig::{PART, Rig, SECOND, settings};
use tidegate_ledger::Dropped;
use tidegate_sinks::ThanosReceiveSettings;

#[tokio::test]
async fn conflicts_are_final_and_counted() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&member], 1);
    member.script([Reply::Grpc(6, "add 3 samples: out of order sample; add 1 samples: out of bounds")]);
    rig.put(None, 0..10, 1).await;
    rig.drain(&settings).await;
    let page = rig.page();
    assert_eq!((page.delivered, page.dropped), (6, vec![(Dropped::Rejected, 4)]));
    let report = rig.report(&member);
    assert_eq!((report.conflicts, report.delivered), ([0, 3, 1, 0], 6));
    assert_eq!(member.requests(), 1);
}

#[tokio::test]
async fn an_invalid_request_is_final_and_counted() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&member], 1);
    member.script([Reply::Grpc(3, "bad replica")]);
    rig.put(None, 0..10, 1).await;
    rig.drain(&settings).await;
    let page = rig.page();
    assert_eq!((page.delivered, page.dropped), (0, vec![(Dropped::Rejected, 10)]));
    let report = rig.report(&member);
    assert_eq!((report.rejected, member.requests()), (10, 1));
    assert!(report.last_error.unwrap().contains("bad replica"));
}

/// As in Thanos, a request with a conflict is neither a success nor an error.
#[tokio::test]
async fn forwarding_is_counted_as_thanos_counts_it() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = settings(&rig, &[&member], 1);
    member.script([Reply::Grpc(14, "not ready"), Reply::Grpc(6, "add 1 samples: out of order sample")]);
    rig.run(&settings, async |rig| {
        for time in [1, 2] {
            rig.put(None, 0..10, time).await;
            rig.settled().await;
        }
        let report = rig.health.forwarding().unwrap();
        assert_eq!((report.succeeded, report.failed, report.replication), (1, 1, 1));
        assert_eq!(report.hashrings[0].endpoints, 1);
        assert_eq!(report.file, None);
        let delays = rig.report(&member).delays;
        assert_eq!(delays.counts.iter().sum::<u64>(), 2, "what was on disk first has none");
    })
    .await;
    assert!(!rig.health.has_forwarding(), "a sink that does not run has no hashrings");
}

/// What a member refuses that is not the first to have an item does not count in the books.
#[tokio::test]
async fn each_item_is_counted_once() {
    let members = Member::some(3);
    let mut rig = Rig::new(PART);
    let all: Vec<_> = members.iter().collect();
    let settings = settings(&rig, &all, 3);
    members[0].always(Reply::Grpc(3, "no"));
    rig.put(None, 0..100, 1).await;
    rig.drain(&settings).await;
    let first = rig.expected(&settings, &members[0]).keys().filter(|(_, replica, _)| *replica == 1).count();
    let page = rig.page();
    assert_eq!((page.delivered, page.dropped), (100 - first as u64, vec![(Dropped::Rejected, first as u64)]));
    assert_eq!(rig.report(&members[0]).rejected, 100);
}

#[tokio::test]
async fn anything_else_is_sent_again() {
    let replies = [
        Reply::Grpc(14, "not ready"),
        Reply::Grpc(13, "internal"),
        Reply::Grpc(4, "too late"),
        Reply::Grpc(8, "exhausted"),
        Reply::Reset,
    ];
    for reply in replies {
        let member = Member::new();
        let mut rig = Rig::new(PART);
        let settings = settings(&rig, &[&member], 1);
        member.script([reply.clone(), reply]);
        rig.put(None, 0..10, 1).await;
        rig.run(&settings, async |rig| rig.settled().await).await;
        assert_eq!((rig.page().delivered, rig.page().dropped), (10, vec![]));
        rig.arrived(&settings, &[&member]).await;
        assert_eq!(member.requests(), 3);
    }
}

/// A request without an answer is given up after the timeout.
#[tokio::test]
async fn no_answer_is_sent_again() {
    let member = Member::new();
    let mut rig = Rig::new(PART);
    let settings = ThanosReceiveSettings { timeout: SECOND, ..settings(&rig, &[&member], 1) };
    member.script([Reply::Stall]);
    rig.put(None, 0..10, 1).await;
    rig.run(&settings, async |rig| rig.settled().await).await;
    assert_eq!((rig.page().delivered, rig.page().dropped), (10, vec![]));
    rig.arrived(&settings, &[&member]).await;
    assert_eq!((member.stalled(), member.requests()), (1, 2));
}
