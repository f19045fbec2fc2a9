//! Promise: no name gets in that could be taken for something else further on, whoever says it.

use super::*;
use crate::caller::Headers;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_http1::Repeated;
use tidegate_limit::Moment;

/// `X-Scope-OrgID` with these values.
struct Said(Vec<&'static [u8]>);

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, Repeated> {
        match self.0.as_slice() {
            _ if !name.eq_ignore_ascii_case("x-scope-orgid") => Ok(None),
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Repeated),
        }
    }
}

fn name(
    tenancy: &Tenancy,
    said: Vec<&'static [u8]>,
    certificate: Option<&Certificate>,
) -> Result<String, Refusal> {
    let headers = Said(said);
    let caller = Caller {
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        certificate,
        headers: &headers,
        bytes: None,
        now: Moment::now(),
    };
    let granted = Granted::default();
    tenancy.name(&caller, &granted, None).map(str::to_owned).map_err(|refused| refused.reason)
}

fn by_header() -> Tenancy {
    Tenancy { header: Some("X-Scope-OrgID".into()), ..Tenancy::default() }
}

#[test]
fn names_that_mean_something_elsewhere_are_refused() {
    let long = [b'a'; MAX_TENANT_NAME + 1];
    let hostile: [&[u8]; 25] = [
        b"",
        b".",
        b"..",
        b"../x",
        b"a/b",
        b"/",
        b"a\\b",
        b".hidden",
        b" a",
        b"a ",
        b"a|b",
        b"a%2fb",
        b"a\0",
        b"a\nb",
        b"a\r\nX: y",
        b"a\tb",
        b"a\"b",
        b"{a}",
        b"$(a)",
        b"`a`",
        b"a;b",
        b"a,b",
        b"<a>",
        b"\xff",
        "a\u{202e}b".as_bytes(),
    ];
    for said in hostile {
        assert!(str::from_utf8(said).map_or(true, |said| valid(said).is_err()), "{said:?}");
        let said: &'static [u8] = Box::leak(said.to_vec().into_boxed_slice());
        assert_eq!(name(&by_header(), vec![said], None), Err(Refusal::Tenant), "{said:?}");
    }
    assert!(valid(str::from_utf8(&long).unwrap()).is_err());
    for good in ["a", "Acme Corp", "team-1_x.y", "a@b", "..a".trim_start_matches('.'), &"a".repeat(128)] {
        assert_eq!(valid(good).unwrap(), good);
    }
}

#[test]
fn a_name_is_required_unless_there_is_a_default() {
    assert_eq!(name(&by_header(), vec![b"a"], None), Ok("a".to_owned()));
    assert_eq!(name(&by_header(), vec![], None), Err(Refusal::Tenant));
    assert_eq!(name(&by_header(), vec![b"a", b"a"], None), Err(Refusal::Tenant), "twice is once too often");
    let with_default = Tenancy { default: Some("anybody".into()), ..by_header() };
    assert_eq!(name(&with_default, vec![], None), Ok("anybody".to_owned()));
    assert_eq!(name(&with_default, vec![b""], None), Err(Refusal::Tenant), "an empty name is a mistake");
    assert_eq!(name(&Tenancy { header: None, ..with_default }, vec![b"a"], None), Ok("anybody".to_owned()));
}

#[test]
fn a_certificate_decides_alone_and_must_have_its_field() {
    let certificate = Certificate {
        common_name: Some("host".into()),
        organizations: Box::new(["Acme".into(), "second".into()]),
        organizational_units: Box::new(["../up".into()]),
    };
    let of = |field| Tenancy { certificate: Some(field), default: Some("anybody".into()), ..by_header() };
    let found = |field, shown| name(&of(field), vec![b"a"], shown);
    assert_eq!(found(Field::CommonName, Some(&certificate)), Ok("host".to_owned()));
    assert_eq!(found(Field::Organization, Some(&certificate)), Ok("Acme".to_owned()));
    assert_eq!(found(Field::OrganizationalUnit, Some(&certificate)), Err(Refusal::Tenant), "checked alike");
    let empty = Certificate::default();
    assert_eq!(found(Field::CommonName, Some(&empty)), Err(Refusal::Tenant));
    assert_eq!(found(Field::CommonName, None), Err(Refusal::Tenant), "the header does not count");
}

#[test]
fn an_address_has_its_own_default_and_what_strangers_say_does_not_count() {
    let tenancy = Tenancy { default: Some("anybody".into()), ..by_header() };
    let headers = Said(vec![b"a"]);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = |headers| Caller { peer, certificate: None, headers, bytes: None, now: Moment::now() };
    let granted = Granted::default();
    assert_eq!(tenancy.name(&caller(&headers), &granted, Some("shop")).unwrap(), "a");
    let silent = Said(vec![]);
    assert_eq!(tenancy.name(&caller(&silent), &granted, Some("shop")).unwrap(), "shop");
    assert_eq!(tenancy.name(&caller(&silent), &granted, None).unwrap(), "anybody");
    assert_eq!(tenancy.of_strangers(Some("shop")).unwrap(), "shop");
    assert_eq!(tenancy.of_strangers(None).unwrap(), "anybody");
    assert_eq!(by_header().of_strangers(None).unwrap_err().reason, Refusal::Tenant);
    let by_certificate = Tenancy { certificate: Some(Field::CommonName), ..tenancy };
    assert_eq!(by_certificate.of_strangers(Some("shop")).unwrap_err().reason, Refusal::Tenant);
}
