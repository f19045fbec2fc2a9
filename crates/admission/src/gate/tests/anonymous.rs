//! Promises: where anonymous clients are allowed, they belong to the default tenant; credentials that are sent have to be
//! right; and all other listeners are unaffected.

use super::*;
use crate::access::make;
use crate::caller::{Caller, Headers};
use std::net::{IpAddr, Ipv4Addr};
use tidegate_http1::DuplicateHeader;
use tidegate_limit::{LimiterSettings, Moment, Tenants};

/// `Authorization`, and `X-Scope-OrgID`.
struct Said(Option<String>, Option<&'static str>);

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        Ok(match name {
            "authorization" => self.0.as_deref().map(str::as_bytes),
            "X-Scope-OrgID" => self.1.map(str::as_bytes),
            _ => None,
        })
    }
}

#[test]
fn anonymous_clients_pass_if_configured_and_belong_to_the_default_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let (file, token) = (dir.path().join("credentials"), make(None).unwrap());
    std::fs::write(&file, format!("bearer agents {} tenant=*", token.kept)).unwrap();
    let rig = rig_with(1 << 30, |ledger, source| {
        let tenants = Tenants::new(4, Default::default(), ledger.clone());
        GateRules {
            access: Access::from_file(&file, None).unwrap(),
            tenancy: Some(Tenancy {
                header: Some("X-Scope-OrgID".into()),
                required: true,
                ..Tenancy::default()
            }),
            limits: Some(Arc::new(AdmissionTable::new(
                vec![(source.clone(), LimiterSettings::default())],
                Some(tenants),
            ))),
            ..GateRules::default()
        }
    });
    let ask = |gate: &Gate, openly: bool, said: &Said| {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let caller = Caller {
            peer,
            certificate: None,
            headers: said,
            bytes: None,
            now: Moment::now(),
            guarded: true,
            journalled: true,
        };
        let mut open = rig.source.open();
        let entered = match openly {
            true => gate.admit_anonymous(&caller, &mut open),
            false => gate.admit(&caller, &mut open).map(|passage| (passage, false)),
        };
        let entered = entered.map(|(_passage, stranger)| stranger).map_err(|refused| refused.reason);
        let tenant = open.tenant().map(|page| page.name().to_owned());
        open.refuse(Refusal::Malformed);
        (entered, tenant)
    };
    let here = rig.gate.with_default("pages");
    let right = || Some(format!("Bearer {}", token.secret));
    let wrong = || Some("Bearer guessed".to_owned());
    let tenant = |name: &str| Some(name.to_owned());
    assert_eq!(ask(&here, true, &Said(None, None)), (Ok(true), tenant("pages")));
    assert_eq!(ask(&here, true, &Said(None, Some("shop"))), (Ok(true), tenant("pages")), "nobody vouches");
    assert_eq!(ask(&rig.gate, true, &Said(None, Some("shop"))), (Err(Refusal::Tenant), None));
    assert_eq!(ask(&here, true, &Said(wrong(), None)).0, Err(Refusal::Unauthorized));
    assert_eq!(ask(&here, true, &Said(right(), Some("shop"))), (Ok(false), tenant("shop")));
    assert_eq!(ask(&here, false, &Said(None, None)).0, Err(Refusal::Unauthorized));
    assert_eq!(ask(&here, false, &Said(right(), None)), (Ok(false), tenant("pages")));
    rig.assert_books();
}
