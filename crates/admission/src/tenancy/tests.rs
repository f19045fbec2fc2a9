//! Promise: no name gets in that could be taken for something else further on, whoever says it.

use super::*;
use crate::caller::Headers;
use std::net::{IpAddr, Ipv4Addr};
use tidegate_http1::DuplicateHeader;
use tidegate_limit::Moment;

/// `X-Scope-OrgID` with these values.
struct Said(Vec<&'static [u8]>);

impl Headers for Said {
    fn sole(&self, name: &str) -> Result<Option<&[u8]>, DuplicateHeader> {
        match self.0.as_slice() {
            _ if !name.eq_ignore_ascii_case("x-scope-orgid") => Ok(None),
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(DuplicateHeader),
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
        guarded: true,
        journalled: true,
    };
    let granted = Identity::default();
    let name = tenancy.of(&caller, TenantClaim::Identified(&granted), None);
    name.map(|name| name.unwrap_or_default().to_owned()).map_err(|refused| refused.reason)
}

fn by_header() -> Tenancy {
    Tenancy { header: Some("X-Scope-OrgID".into()), required: true, ..Tenancy::default() }
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
        assert!(str::from_utf8(said).map_or(true, |said| validate_name(said).is_err()), "{said:?}");
        let said: &'static [u8] = Box::leak(said.to_vec().into_boxed_slice());
        assert_eq!(name(&by_header(), vec![said], None), Err(Refusal::Tenant), "{said:?}");
    }
    assert!(validate_name(str::from_utf8(&long).unwrap()).is_err());
    for good in ["a", "Acme Corp", "team-1_x.y", "a@b", "..a".trim_start_matches('.'), &"a".repeat(128)] {
        assert_eq!(validate_name(good).unwrap(), good);
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
        valid_until: None,
    };
    let of = |field| Tenancy { certificate: Some(field), default: Some("anybody".into()), ..by_header() };
    let found = |field, shown| name(&of(field), vec![b"a"], shown);
    assert_eq!(found(SubjectField::CommonName, Some(&certificate)), Ok("host".to_owned()));
    assert_eq!(found(SubjectField::Organization, Some(&certificate)), Ok("Acme".to_owned()));
    assert_eq!(
        found(SubjectField::OrganizationalUnit, Some(&certificate)),
        Err(Refusal::Tenant),
        "checked alike"
    );
    let empty = Certificate::default();
    assert_eq!(found(SubjectField::CommonName, Some(&empty)), Err(Refusal::Tenant));
    assert_eq!(found(SubjectField::CommonName, None), Err(Refusal::Tenant), "the header does not count");
}

#[test]
fn a_listener_has_its_own_default_and_untrusted_headers_do_not_count() {
    let tenancy = Tenancy { default: Some("anybody".into()), ..by_header() };
    let headers = Said(vec![b"a"]);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let caller = |headers| Caller {
        peer,
        certificate: None,
        headers,
        bytes: None,
        now: Moment::now(),
        guarded: true,
        journalled: true,
    };
    let granted = Identity::default();
    let of = |headers, sender, default| {
        let name = tenancy.of(&caller(headers), sender, default);
        name.map(|name| name.unwrap().to_owned()).unwrap()
    };
    let silent = Said(vec![]);
    assert_eq!(of(&headers, TenantClaim::Identified(&granted), Some("shop")), "a");
    assert_eq!(of(&silent, TenantClaim::Identified(&granted), Some("shop")), "shop");
    assert_eq!(of(&silent, TenantClaim::Identified(&granted), None), "anybody");
    assert_eq!(of(&headers, TenantClaim::Anonymous, Some("shop")), "shop");
    assert_eq!(of(&headers, TenantClaim::Anonymous, None), "anybody");
    let refused =
        |tenancy: Tenancy| tenancy.of(&caller(&headers), TenantClaim::Anonymous, None).unwrap_err().reason;
    assert_eq!(refused(by_header()), Refusal::Tenant);
    assert_eq!(
        refused(Tenancy { certificate: Some(SubjectField::CommonName), ..tenancy.clone() }),
        Refusal::Tenant
    );
}

/// The callers of credentials with these options.
fn granted(option: &str) -> Identity {
    let dir = tempfile::tempdir().unwrap();
    let (file, made) = (dir.path().join("credentials"), crate::access::make(None).unwrap());
    std::fs::write(&file, format!("bearer a {} {option}\n", made.kept)).unwrap();
    let access = crate::access::Access::from_file(&file, None).unwrap();
    let authorization = format!("Bearer {}", made.secret);
    access.check(Some(authorization.as_bytes()), None, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap()
}

/// A credential speaks for its tenant, or for the default one, whatever the header says; a proxy's for whom it says.
#[test]
fn a_credential_binds_its_tenant_always() {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let certificate = Certificate { common_name: Some("lab".into()), ..Certificate::default() };
    let of = |tenancy: &Tenancy, option: &str, said: Vec<&'static [u8]>| {
        let (headers, granted) = (Said(said), granted(option));
        let certificate = Some(&certificate);
        let caller = Caller {
            peer,
            certificate,
            headers: &headers,
            bytes: None,
            now: Moment::now(),
            guarded: true,
            journalled: true,
        };
        let name = tenancy.of(&caller, TenantClaim::Identified(&granted), None);
        name.map(|name| name.map(str::to_owned)).map_err(|refused| refused.reason)
    };
    let is = |name: &str| Ok(Some(name.to_owned()));
    let open = Tenancy::default();
    let with_header = by_header();
    let with_default = Tenancy { default: Some("anybody".into()), ..by_header() };
    for tenancy in [&open, &with_header, &with_default] {
        assert_eq!(of(tenancy, "tenant=shop", vec![]), is("shop"));
    }
    for tenancy in [&with_header, &with_default] {
        assert_eq!(of(tenancy, "tenant=shop", vec![b"shop"]), is("shop"));
        assert_eq!(of(tenancy, "tenant=shop", vec![b"lab"]), Err(Refusal::Forbidden));
        assert_eq!(of(tenancy, "tenant=shop", vec![b"anybody"]), Err(Refusal::Forbidden));
        assert_eq!(of(tenancy, "", vec![b"lab"]), Err(Refusal::Forbidden));
        assert_eq!(of(tenancy, "tenant=*", vec![b"lab"]), is("lab"));
        assert_eq!(of(tenancy, "tenant=*", vec![b"*"]), is("*"), "a name like others");
        assert_eq!(of(tenancy, "tenant=*", vec![b"../lab"]), Err(Refusal::Tenant));
    }
    // Without a header's name nothing is read of it.
    assert_eq!(of(&open, "tenant=shop", vec![b"lab"]), is("shop"));
    assert_eq!(of(&open, "", vec![b"lab"]), Ok(None), "nobody asked for a tenant");
    assert_eq!(of(&with_default, "", vec![]), is("anybody"));
    assert_eq!(of(&with_default, "", vec![b"anybody"]), is("anybody"));
    assert_eq!(of(&with_default, "tenant=*", vec![]), is("anybody"));
    assert_eq!(of(&with_header, "", vec![]), Err(Refusal::Tenant));
    assert_eq!(of(&with_header, "tenant=*", vec![]), Err(Refusal::Tenant));
    let by_field = Tenancy { certificate: Some(SubjectField::CommonName), ..by_header() };
    assert_eq!(of(&by_field, "", vec![]), is("lab"));
    assert_eq!(of(&by_field, "tenant=lab", vec![]), is("lab"));
    assert_eq!(of(&by_field, "tenant=shop", vec![]), Err(Refusal::Forbidden));
}
