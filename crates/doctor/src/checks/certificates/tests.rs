//! Certificates in which something really is wrong.

use super::*;
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::path::PathBuf;

struct Made {
    dir: tempfile::TempDir,
    /// The last second of the certificates.
    end: u64,
}

impl Made {
    fn new() -> Made {
        // 2030-01-31T00:00:00Z
        Made { dir: tempfile::tempdir().unwrap(), end: 1_896_048_000 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `NAME.pem` and `NAME.key`, valid in January 2030, for these names.
    fn make(&self, name: &str, names: &[&str]) {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(2030, 1, 1);
        params.not_after = rcgen::date_time_ymd(2030, 1, 31);
        let certificate = params.self_signed(&key).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn found(&self, name: &str, key: Option<&str>, shown_at: Option<&str>, now: u64) -> Vec<Finding> {
        let certificate = Certificate {
            setting: "listen.http".into(),
            file: self.path(&format!("{name}.pem")),
            key: key.map(|key| self.path(&format!("{key}.key"))),
            shown_at: shown_at.map(|address| address.parse().unwrap()),
        };
        check(&[certificate], SystemTime::UNIX_EPOCH + Duration::from_secs(now))
    }
}

#[test]
fn the_end_of_a_certificate_comes_nearer() {
    let made = Made::new();
    made.make("a", &["localhost"]);
    for (days, severity, words) in [
        (40, Severity::Broken, "not valid yet"),
        (29, Severity::Note, "expires in 29 days"),
        (3, Severity::AtRisk, "expires in 3 days"),
        (0, Severity::Broken, "has expired"),
    ] {
        let found = made.found("a", Some("a"), Some("127.0.0.1:4318"), made.end - days * DAY);
        assert_eq!(found[0].severity, severity, "{days} days before: {found:?}");
        assert!(found[0].what.contains(words), "{days} days before: {found:?}");
        let authorities = made.found("a", None, None, made.end - days * DAY);
        assert_eq!(authorities[0].severity, severity, "{authorities:?}");
    }
}

#[test]
fn a_key_of_another_certificate_is_broken() {
    let made = Made::new();
    made.make("a", &["localhost"]);
    made.make("b", &["localhost"]);
    let found = made.found("a", Some("b"), None, made.end - 20 * DAY);
    let wrong: Vec<_> = found.iter().filter(|finding| finding.severity == Severity::Broken).collect();
    assert_eq!(wrong.len(), 1, "{found:?}");
    assert!(wrong[0].what.contains("is not that of the certificate"), "{found:?}");
    let missing = made.found("a", Some("c"), None, made.end - 20 * DAY);
    assert!(missing.iter().any(|finding| finding.what.contains("no private key")), "{missing:?}");
}

#[test]
fn a_file_that_is_no_certificate_is_broken() {
    let made = Made::new();
    fs::write(made.path("text.pem"), "nothing").unwrap();
    let block = "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n";
    fs::write(made.path("block.pem"), block).unwrap();
    for name in ["text", "block", "missing"] {
        let found = made.found(name, None, None, 1);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Broken), "{name}: {found:?}");
    }
}

#[test]
fn names_are_compared_with_the_address() {
    let made = Made::new();
    made.make("named", &["gateway.example"]);
    made.make("address", &["192.0.2.7"]);
    made.make("none", &[]);
    // Valid for long enough not to be told of.
    let severities = |name: &str, address: &str| {
        let found = made.found(name, Some(name), Some(address), made.end - 10 * DAY);
        found
            .into_iter()
            .filter(|finding| !finding.what.contains("expires"))
            .map(|finding| finding.severity)
            .max()
    };
    assert_eq!(severities("address", "192.0.2.7:1"), None);
    assert_eq!(severities("named", "0.0.0.0:1"), None, "whatever it is that clients connect to");
    assert_eq!(severities("named", "192.0.2.7:1"), Some(Severity::Note));
    assert_eq!(severities("none", "0.0.0.0:1"), Some(Severity::AtRisk));
}
