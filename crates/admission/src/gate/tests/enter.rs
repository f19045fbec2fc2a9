//! Promises: who may not send is told so first, then whose it is, then whether anything can be taken, then how much;
//! a refusal at any of these leaves nothing held; and the tenant goes on with its data.

use super::*;
use crate::caller::{Caller, Headers};
use crate::permit::Permit;
use crate::tenancy::Tenancy;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_http1::DuplicateHeader;
use tidegate_limit::{LimiterSettings, PerSecond, Tenants};

struct Said(Option<&'static [u8]>);

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        Ok(self.0.filter(|_| name.eq_ignore_ascii_case("x-scope-orgid")))
    }
}

/// A gate with these limits of its one route, and with four tenants or none.
pub(super) fn limited(limits: LimiterSettings, with_tenants: bool) -> Rig {
    rig_with(1 << 30, |ledger, source| {
        let tenants = with_tenants.then(|| Tenants::new(4, Default::default(), ledger.clone()));
        let tenancy = with_tenants.then(|| Tenancy {
            header: Some("X-Scope-OrgID".into()),
            required: true,
            ..Tenancy::default()
        });
        let table = AdmissionTable::new(vec![(source.clone(), limits)], tenants);
        GateRules { tenancy, limits: Some(Arc::new(table)), ..GateRules::default() }
    })
}

impl Rig {
    pub(super) fn enter(
        &self,
        tenant: Option<&'static str>,
        bytes: Option<u64>,
    ) -> Result<(Permit, OpenRequest), Rejection> {
        let headers = Said(tenant.map(str::as_bytes));
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let caller = Caller {
            peer,
            certificate: None,
            headers: &headers,
            bytes,
            now: Moment::now(),
            guarded: true,
            journalled: true,
        };
        let mut open = self.source.open();
        match self.gate.admit(&caller, &mut open) {
            Ok(passage) => Ok((passage, open)),
            Err(refused) => {
                open.refuse(refused.reason);
                Err(refused)
            }
        }
    }

    pub(super) fn accounts(&self) -> Vec<(String, u64, u64)> {
        let table = self.gate.rules().limits.clone().unwrap();
        let accounts = table.tenants().unwrap().accounts();
        let shown = accounts.map(|account| {
            let page = account.page();
            assert_eq!(page.book().difference(), 0);
            (page.title().to_owned(), page.book().accepted, account.held())
        });
        shown.collect()
    }
}

#[test]
fn without_limits_a_request_holds_no_permit() {
    let rig = limited(LimiterSettings::default(), false);
    let (passage, _open) = rig.enter(None, Some(1 << 40)).unwrap();
    assert!(passage.claims().is_none());
    assert!(rig.gate.grow(&passage, usize::MAX).is_ok());
}

#[test]
fn a_limit_is_answered_with_a_time_at_which_it_is_none() {
    let requests = Some(PerSecond { rate: 1, burst: 30 });
    let rig = limited(LimiterSettings { requests, ..LimiterSettings::default() }, false);
    for _ in 0..30 {
        let (_passage, open) = rig.enter(None, None).unwrap();
        open.refuse(Refusal::Malformed);
    }
    for _ in 0..10 {
        let refused = rig.enter(None, None).err().unwrap();
        assert_eq!(refused.reason, Refusal::RateLimited);
        assert!((1..=2).contains(&refused.retry_after.unwrap()));
    }
    // When the gateway stops, that is said, and no token is asked for.
    rig.gate.stop();
    assert_eq!(rig.enter(None, None).err().unwrap().reason, Refusal::Shutdown);
}

#[test]
fn refused_and_dropped_requests_hold_nothing() {
    let limits =
        LimiterSettings { concurrency: Some(2), in_flight: Some(1000), ..LimiterSettings::default() };
    let rig = limited(limits, true);
    let (passage, open) = rig.enter(Some("a"), Some(600)).unwrap();
    let beside = rig.enter(Some("a"), Some(100)).unwrap();
    assert_eq!(rig.enter(Some("b"), None).err().unwrap().reason, Refusal::Concurrency);
    assert_eq!(rig.enter(None, None).err().unwrap().reason, Refusal::Tenant, "asked before the limits");
    assert_eq!(rig.enter(Some("../b"), None).err().unwrap().reason, Refusal::Tenant);
    let refused = rig.gate.grow(&passage, 2000).err().unwrap();
    assert_eq!(refused.reason, Refusal::Concurrency, "only what is alone may be larger");
    drop((passage, open, beside));
    let (passage, open) = rig.enter(Some("b"), None).unwrap();
    rig.gate.grow(&passage, 1000).unwrap();
    drop((passage, open));
    assert!(rig.accounts().iter().all(|(_, accepted, held)| (*accepted, *held) == (0, 0)));
    let (accepted, refused) = rig.assert_books();
    assert_eq!((accepted, refused.len()), (0, 3), "{refused:?}");
}

/// One that floods is refused for its part of the memory, and one that does not passes.
#[test]
fn a_flood_leaves_room_for_the_others() {
    let rig = limited(LimiterSettings::default(), true);
    let free = rig.arena.free(Share::Ingest);
    let mut held = Vec::new();
    let refused = loop {
        match rig.enter(Some("flood"), Some(64 << 10)) {
            Ok(entered) => held.push((entered, rig.arena.try_charge(Share::Ingest, 64 << 10).unwrap())),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.reason, Refusal::Share);
    assert!(refused.retry_after.is_some());
    let left = rig.arena.free(Share::Ingest);
    assert!(left > free / 6 && left < free / 3, "{left} of {free}");
    for _ in 0..10 {
        assert!(rig.enter(Some("trickle"), Some(64 << 10)).is_ok());
    }
    held.clear();
    assert!(rig.enter(Some("flood"), Some(64 << 10)).is_ok());
}

#[tokio::test]
async fn the_tenant_goes_on_with_its_data_also_where_its_entry_is_shared() {
    let rig = limited(LimiterSettings::default(), true);
    let mut follower = rig.follow();
    for name in ["t1", "t2", "t3", "t4", "t5", "t6"] {
        let (_passage, open) = rig.enter(Some(name), Some(100)).unwrap();
        rig.append_as(open, 100).await.unwrap();
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("a record is missing") };
        assert_eq!(record.meta.tenant.as_str(), name);
        follower.commit(record.sequence);
    }
    let accounts = rig.accounts();
    let accepted: Vec<_> = accounts.iter().map(|(name, accepted, _)| (name.as_str(), *accepted)).collect();
    assert_eq!(accepted, [("other", 2), ("t1", 1), ("t2", 1), ("t3", 1), ("t4", 1)]);
}

/// A request beyond the limit of a single one is too large at any time, and is counted as that.
#[tokio::test]
async fn a_request_with_more_than_one_may_have_is_too_large() {
    for limits in [
        LimiterSettings { request_items: Some(2), ..LimiterSettings::default() },
        LimiterSettings { request_bytes: Some(0), ..LimiterSettings::default() },
    ] {
        for with_tenants in [false, true] {
            let rig = limited(limits, with_tenants);
            let (passage, open) = rig.enter(with_tenants.then_some("acme"), Some(10)).unwrap();
            let refused = rig.append_as(open, 10).await.unwrap_err();
            assert_eq!((refused.reason, refused.retry_after), (Refusal::TooLarge, None));
            drop(passage);
            let (accepted, why) = rig.assert_books();
            assert_eq!((accepted, why.contains(&(Refusal::TooLarge, 1))), (0, true), "{why:?}");
        }
    }
    let rig = limited(
        LimiterSettings { request_items: Some(3), request_bytes: Some(1), ..LimiterSettings::default() },
        true,
    );
    let (_passage, open) = rig.enter(Some("acme"), Some(10)).unwrap();
    rig.append_as(open, 10).await.unwrap();
}

/// A certificate that expires while its connection is open lets in nothing more, whatever else is asked or not.
#[test]
fn requests_after_the_certificate_expired_are_refused() {
    let rig = limited(LimiterSettings::default(), false);
    let ask = |valid_until| {
        let certificate = crate::access::Certificate { valid_until, ..Default::default() };
        let caller = Caller {
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            certificate: Some(&certificate),
            headers: &Said(None),
            bytes: None,
            now: Moment::now(),
            guarded: true,
            journalled: true,
        };
        let mut open = rig.source.open();
        let entered = rig.gate.admit(&caller, &mut open).map(drop).map_err(|refused| refused.reason);
        let openly = rig.gate.admit_anonymous(&caller, &mut open).map(drop).map_err(|refused| refused.reason);
        open.refuse(Refusal::Malformed);
        assert_eq!(entered, openly);
        entered
    };
    assert_eq!(ask(None), Ok(()));
    assert_eq!(ask(Some(u64::MAX)), Ok(()));
    assert_eq!(ask(Some(1_000_000_000)), Err(Refusal::Unauthorized));
}
