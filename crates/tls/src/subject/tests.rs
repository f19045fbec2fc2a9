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
    let nameless = certificate(&signed(&[])).unwrap();
    assert_eq!(Certificate { valid_until: None, ..nameless }, Certificate::default());
}

#[test]
fn the_end_is_read_as_it_was_signed() {
    let mut params = CertificateParams::default();
    let signed = |params: &CertificateParams| {
        not_after(params.self_signed(&KeyPair::generate().unwrap()).unwrap().der()).unwrap()
    };
    for (year, month, day, seconds) in [
        (1999, 12, 31, 946_598_400),
        (2024, 2, 29, 1_709_164_800),
        (2049, 1, 1, 2_493_072_000),
        (2051, 3, 1, 2_561_241_600),
    ] {
        params.not_after = rcgen::date_time_ymd(year, month, day);
        assert_eq!(signed(&params), seconds, "{year}-{month}-{day}");
    }
}

/// Whatever is no time is none: what has no time is taken to be over.
#[test]
fn hostile_ends_are_none() {
    let ends = |tag: u8, text: &[u8]| {
        let validity = [der(UTC_TIME, b"700101000000Z"), der(tag, text)].concat();
        let body = [
            der(INTEGER, &[1]),
            der(SEQUENCE, &[]),
            der(SEQUENCE, &[]),
            der(SEQUENCE, &validity),
            der(SEQUENCE, &[]),
        ];
        not_after(&der(SEQUENCE, &der(SEQUENCE, &body.concat())))
    };
    assert_eq!(ends(UTC_TIME, b"700101000001Z"), Some(1));
    assert_eq!(ends(GENERALIZED_TIME, b"19700102000000Z"), Some(86_400));
    assert_eq!(ends(UTC_TIME, b"691231235959Z"), Some(0), "before 1970");
    assert_eq!(ends(GENERALIZED_TIME, b"99991231235959Z"), Some(253_402_300_799));
    for text in [
        &b""[..],
        b"Z",
        b"700101000000",
        b"7001010000Z",
        b"700101000000+0000",
        b"701301000000Z",
        b"700100000000Z",
        b"70010a000000Z",
        b"-00101000000Z",
        b"700101240000Z",
        b"700101006000Z",
        b"700101000060Z",
        b"700101000000Z0",
    ] {
        assert_eq!(ends(UTC_TIME, text), None, "{}", String::from_utf8_lossy(text));
    }
    assert_eq!(ends(INTEGER, b"700101000001Z"), None);
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
    assert_eq!(certificate(&made(&der(SEQUENCE, &many))).unwrap().organizational_units.len(), MAX_NAMES);
}

#[test]
fn invalid_certificates_have_no_subject() {
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
            prop_assert!(read.organizations.len() <= MAX_NAMES && read.organizational_units.len() <= MAX_NAMES);
            prop_assert!(read.common_name.is_none_or(|name| (1..=MAX_NAME_LEN).contains(&name.len())));
        }
    }
}
