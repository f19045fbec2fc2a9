//! Promises: names come out as they were signed; whatever else the bytes are, nothing panics and nothing is invented.

use super::*;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

fn signed(names: &[(DnType, &str)]) -> Vec<u8> {
    let mut subject = DistinguishedName::new();
    for (kind, value) in names {
        subject.push(kind.clone(), DnValue::Utf8String((*value).to_owned()));
    }
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn names_are_read_as_they_were_signed() {
    let names = [
        (DnType::CountryName, "NL"),
        (DnType::OrganizationName, "Acme Widgets, Inc."),
        (DnType::OrganizationalUnitName, "probes"),
        (DnType::CommonName, "Łódź-7"),
    ];
    let read = certificate(&signed(&names)).unwrap();
    assert_eq!(read.common_name.as_deref(), Some("Łódź-7"));
    assert_eq!(*read.organizations, ["Acme Widgets, Inc.".into()]);
    assert_eq!(*read.organizational_units, ["probes".into()]);
    assert_eq!(certificate(&signed(&[])), Some(Certificate::default()));
}

/// A certificate with this subject, as far as it is looked at.
fn made(subject: &[u8]) -> Vec<u8> {
    let body =
        [der(INTEGER, &[1]), der(SEQUENCE, &[]), der(SEQUENCE, &[]), der(SEQUENCE, &[]), subject.to_vec()];
    der(SEQUENCE, &der(SEQUENCE, &body.concat()))
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap();
    let mut bytes = vec![tag];
    match len {
        0..=0x7f => bytes.push(len as u8),
        0x80..=0xff => bytes.extend([0x81, len as u8]),
        _ => bytes.extend([0x82, (len >> 8) as u8, len as u8]),
    }
    bytes.extend(content);
    bytes
}

fn attribute(oid: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
    der(SET, &der(SEQUENCE, &[der(OID, oid), der(tag, text)].concat()))
}

const CN: &[u8] = &[0x55, 4, 3];
const OU: &[u8] = &[0x55, 4, 11];

#[test]
fn hostile_names_are_left_out() {
    let common = |tag, text: &[u8]| {
        let subject = der(SEQUENCE, &attribute(CN, tag, text));
        certificate(&made(&subject)).unwrap().common_name
    };
    assert_eq!(common(PRINTABLE, b"probe 7").as_deref(), Some("probe 7"));
    assert_eq!(common(UTF8, &[b'x'; 150]).map(|name| name.len()), Some(150));
    let hostile: &[(u8, &[u8])] = &[
        (UTF8, b""),
        (UTF8, &[b'x'; 151]),
        (UTF8, b"admin\0.example"),
        (UTF8, b"a\nb"),
        (UTF8, "a\u{85}b".as_bytes()),
        (UTF8, b"\xff\xfe"),
        (UTF8, b"\xc0\x80"),
        (PRINTABLE, b"\xe9"),
        // BMPString, UniversalString, an octet string, a sequence.
        (0x1e, b"\0a\0d\0m"),
        (0x1c, b"\0\0\0a"),
        (0x04, b"admin"),
        (SEQUENCE, b"admin"),
    ];
    for (tag, text) in hostile {
        assert_eq!(common(*tag, text), None, "{tag:#x} {text:?}");
    }
    // Two common names: which one counts would be a matter of opinion.
    let two = [attribute(CN, UTF8, b"a"), attribute(CN, UTF8, b"b")].concat();
    assert_eq!(certificate(&made(&der(SEQUENCE, &two))).unwrap().common_name, None);
    let many: Vec<u8> = (0..100).flat_map(|unit| attribute(OU, UTF8, format!("{unit}").as_bytes())).collect();
    assert_eq!(certificate(&made(&der(SEQUENCE, &many))).unwrap().organizational_units.len(), MOST);
}

#[test]
fn what_is_no_certificate_is_none() {
    let good = made(&der(SEQUENCE, &attribute(CN, UTF8, b"a")));
    for end in 0..good.len() {
        assert_eq!(certificate(&good[..end]), None, "{end}");
    }
    // Lengths that are indefinite, longer than needed, or of more bytes than anything has.
    for length in [&[0x80][..], &[0x81, 5], &[0x82, 0, 5], &[0x83, 0, 0, 5], &[0xff]] {
        let bytes = [&[SEQUENCE], length, &good[2..]].concat();
        assert_eq!(certificate(&bytes), None, "{length:x?}");
    }
}

proptest! {
    /// No bytes make it panic, and names keep their bounds.
    #[test]
    fn any_bytes_are_read_within_bounds(
        at in 0..400_usize, flip in 1..=255_u8, tail in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = made(&der(SEQUENCE, &[attribute(CN, UTF8, b"a"), attribute(OU, UTF8, b"b")].concat()));
        let at = at % bytes.len();
        bytes[at] ^= flip;
        bytes.extend(tail);
        if let Some(read) = certificate(&bytes) {
            prop_assert!(read.organizations.len() <= MOST && read.organizational_units.len() <= MOST);
            prop_assert!(read.common_name.is_none_or(|name| (1..=LONGEST).contains(&name.len())));
        }
    }
}
