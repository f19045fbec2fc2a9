//! Promises: data for one sink goes to that sink alone and is counted once; only an operator can address it where anybody has
//! to say who they are; a sink that does not run is named as such.

use super::source_pipeline::{drops, with_steps};
use super::*;
use crate::access::{Access, ApiKeyIssuer, Credentials, IssuedKey, make};
use crate::caller::{Caller, Headers};
use std::net::{IpAddr, Ipv4Addr};
use tidegate_http1::DuplicateHeader;
use tidegate_journal::Recipient;

/// Headers with their names in lower case.
struct Sent<'a>(Vec<(&'static str, &'a str)>);

impl Headers for Sent<'_> {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        let name = name.to_ascii_lowercase();
        Ok(self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes()))
    }
}

fn admit(rig: &Rig, headers: Vec<(&'static str, &str)>, journalled: bool) -> Result<Permit, Refusal> {
    admit_from(Ipv4Addr::LOCALHOST, rig, headers, journalled)
}

fn admit_from(
    peer: Ipv4Addr,
    rig: &Rig,
    headers: Vec<(&'static str, &str)>,
    journalled: bool,
) -> Result<Permit, Refusal> {
    let headers = Sent(headers);
    let caller = Caller {
        peer: IpAddr::V4(peer),
        certificate: None,
        headers: &headers,
        bytes: None,
        now: Moment::now(),
        guarded: true,
        journalled,
    };
    let mut open = rig.source.open();
    let admitted = rig.gate.admit(&caller, &mut open).map_err(|refused| refused.reason);
    open.refuse(admitted.as_ref().map_or_else(|reason| *reason, |_| Refusal::Malformed));
    admitted
}

#[tokio::test]
async fn data_for_one_sink_passes_no_pipeline_twice_and_reaches_no_other_sink() {
    // It would drop everything.
    let rig = with_steps(drops(r#"log.body == "again""#));
    let mut other = rig.journal.follow("other", StartAt::Oldest, WhenFull::Block).unwrap();
    let mut sink = rig.follow();
    let permit = admit(&rig, vec![("tidegate-sink", "sink")], true).unwrap();
    rig.send_logs_with(&permit, &["again"]).await.unwrap();
    let recipient = |event: Option<Event>| match event {
        Some(Event::Record(record)) => record.recipient,
        other => panic!("a record was expected, not {other:?}"),
    };
    assert_eq!(recipient(sink.next().await.unwrap()), Recipient::This);
    assert_eq!(recipient(other.next().await.unwrap()), Recipient::Another);
    assert_eq!(rig.assert_books().0, 1);
}

#[test]
fn what_cannot_be_addressed_is_refused() {
    let rig = rig(1 << 30);
    let sink = rig.follow();
    let asked = |name: &str, journalled| admit(&rig, vec![("tidegate-sink", name)], journalled).err();
    assert_eq!(asked("sink", true), None);
    assert_eq!(asked("gone", true), Some(Refusal::NotFound), "there is none");
    let with = |more| admit(&rig, vec![("tidegate-sink", "sink"), more], true).err();
    assert_eq!(with(("x-forwarded-for", "192.0.2.1")), Some(Refusal::Forbidden), "it is for another machine");
    assert_eq!(with(("tidegate-tenant", "shop")), Some(Refusal::Tenant), "the tenant would be lost");
    assert_eq!(with(("tidegate-tenant", "")), None);
    drop(sink);
    assert_eq!(asked("sink", true), Some(Refusal::Shutdown), "it may be back in a moment");
    let sink = rig.follow();
    assert_eq!(asked("sink", false), Some(Refusal::Headers), "what is forwarded has no sink");
    let afar = admit_from(Ipv4Addr::new(192, 0, 2, 1), &rig, vec![("tidegate-sink", "sink")], true);
    assert_eq!(afar.err(), Some(Refusal::Forbidden), "it would pass a pipeline by");
    drop(sink);
}

/// An issuer whose keys nobody has.
struct KeylessIssuer;

impl ApiKeyIssuer for KeylessIssuer {
    fn verify(&self, _: &[u8], _: &[u8]) -> IssuedKey {
        IssuedKey::Foreign
    }
}

/// As where a fleet's agents get keys: everybody else may send without.
#[test]
fn issued_keys_close_nothing() {
    let rules =
        GateRules { access: Access::open().with_issuer(Arc::new(KeylessIssuer)), ..GateRules::default() };
    let rig = rig_with(1 << 30, |_, _| rules);
    let _sink = rig.follow();
    let asked = |headers| admit(&rig, headers, true).err();
    assert_eq!(asked(vec![("tidegate-sink", "sink"), ("tidegate-tenant", "")]), None);
    assert_eq!(asked(vec![("tidegate-tenant", "")]), None);
    let with_key = vec![("tidegate-tenant", ""), ("authorization", "ApiKey d3Jvbmc6a2V5")];
    assert_eq!(asked(with_key), Some(Refusal::Forbidden), "a key that is shown is not passed over");
    let afar = admit_from(Ipv4Addr::new(192, 0, 2, 1), &rig, vec![("tidegate-sink", "sink")], true);
    assert_eq!(afar.err(), Some(Refusal::Forbidden));
}

#[test]
fn where_there_are_credentials_only_an_operator_addresses() {
    let [user, operator] = [make(None).unwrap(), make(None).unwrap()];
    let credentials = |kept: &str| {
        let parsed = Credentials::parse(format!("bearer somebody {kept}").as_bytes()).unwrap();
        Access::from_credentials(parsed).unwrap()
    };
    let rules = GateRules {
        access: credentials(&user.kept),
        operators: credentials(&operator.kept),
        ..GateRules::default()
    };
    let rig = rig_with(1 << 30, |_, _| rules);
    let _sink = rig.follow();
    let [user, operator] = [&user, &operator].map(|made| format!("Bearer {}", made.secret));
    let asked = |token: &str, tenant: Option<&str>| {
        let mut headers = vec![("tidegate-sink", "sink"), ("authorization", token)];
        headers.extend(tenant.map(|tenant| ("tidegate-tenant", tenant)));
        admit(&rig, headers, true).err()
    };
    assert_eq!(asked(&operator, Some("")), None);
    assert_eq!(asked(&user, Some("")), Some(Refusal::Unauthorized));
    assert_eq!(asked(&user, None), Some(Refusal::Headers), "whose it was is missing");
}
