//! Certificates, keys and authorities in files: whether they can be read and belong together, until when they are valid, and
//! which names they are for.

use super::clocks::shown;
use crate::finding::{Finding, Severity};
use crate::subject::Certificate;
use crate::system;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tidegate_tls::Validity;

const DAY: u64 = 86_400;
/// Certificates that end so soon are told: the second is worth a reminder only.
const SOON: u64 = 7 * DAY;
const LATER: u64 = 30 * DAY;
/// The most certificates of a file.
const MOST: usize = 1024;

pub(crate) fn check(certificates: &[Certificate], now: SystemTime) -> Vec<Finding> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    certificates.iter().flat_map(|certificate| look(certificate, now)).collect()
}

fn look(certificate: &Certificate, now: u64) -> Vec<Finding> {
    let Certificate { setting, file, key, shown_at } = certificate;
    let chain = match chain(file) {
        Ok(chain) => chain,
        Err(error) => {
            let what = format!("`{setting}`: {} holds no certificates that can be used", file.display());
            return vec![
                Finding::broken(what, error)
                    .remedy("give a file in PEM format that the gateway's user may read"),
            ];
        }
    };
    let mut findings = Vec::new();
    // Of authorities each counts; of a chain, the first to end.
    let all = chain.iter().filter_map(|der| tidegate_tls::validity(der));
    let ends = all.enumerate();
    findings.extend(match key {
        Some(_) => ends
            .min_by_key(|(_, validity)| validity.not_after)
            .map(|(place, validity)| valid(setting, file, (place, validity), now)),
        None => authorities(setting, file, ends.collect(), now),
    });
    if let Some(key) = key {
        findings.extend(matching(setting, &chain, key));
    }
    if let (Some(address), Some(leaf)) = (shown_at, chain.first()) {
        findings.extend(names(setting, file, leaf, *address));
    }
    if findings.iter().all(|finding| finding.severity == Severity::Fine) {
        findings.truncate(1);
    }
    findings
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    system::bytes(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).take(MOST).collect();
    let found = found.map_err(|error| format!("{}: {error}", file.display()))?;
    if found.is_empty() {
        return Err(format!("there is none in {}", file.display()));
    }
    match found.iter().all(|der| tidegate_tls::validity(der).is_some()) {
        true => Ok(found),
        false => Err(format!("{} has something else in the place of a certificate", file.display())),
    }
}

/// Judges the certificate at this place of a chain, the first of it to end.
fn valid(setting: &str, file: &Path, (place, validity): (usize, Validity), now: u64) -> Finding {
    let Validity { not_before, not_after } = validity;
    let which = if place == 0 { String::new() } else { format!(", number {} of its chain", place + 1) };
    let evidence =
        format!("{}{which}: valid from {} to {}", file.display(), date(not_before), date(not_after));
    let remedy = "have a new one issued and put in its place: the gateway reads it by itself";
    let ends_in = |seconds: u64| match seconds / DAY {
        0 => format!("in {} hours", seconds / 3600),
        days => format!("in {days} days"),
    };
    if now < not_before {
        let remedy = "look at the clock of this machine; or wait, or have another one issued";
        return Finding::broken(format!("`{setting}`: the certificate is not valid yet"), evidence)
            .remedy(remedy);
    }
    match not_after.saturating_sub(now) {
        0 => Finding::broken(format!("`{setting}`: the certificate has expired"), evidence).remedy(remedy),
        left if left <= SOON => {
            Finding::at_risk(format!("`{setting}`: the certificate expires {}", ends_in(left)), evidence)
                .remedy(remedy)
        }
        left if left <= LATER => {
            Finding::note(format!("`{setting}`: the certificate expires {}", ends_in(left)), evidence)
                .remedy(remedy)
        }
        _ => Finding::fine(
            format!("`{setting}`: the certificate is valid until {}", date(not_after)),
            evidence,
        ),
    }
}

/// Judges a file of authorities: one that has expired does no harm while there are others.
fn authorities(setting: &str, file: &Path, all: Vec<(usize, Validity)>, now: u64) -> Option<Finding> {
    let last = all.iter().max_by_key(|(_, validity)| validity.not_after)?;
    let expired = all.iter().filter(|(_, validity)| validity.not_after <= now).count();
    if expired > 0 && expired < all.len() {
        let what = format!("`{setting}`: {expired} of {} authorities have expired", all.len());
        return Some(
            Finding::note(what, file.display().to_string()).remedy("remove them when no peer needs them"),
        );
    }
    Some(valid(setting, file, *last, now))
}

fn matching(setting: &str, chain: &[CertificateDer<'static>], key: &Path) -> Option<Finding> {
    let wrong = |what: String, error: String, remedy: &str| Some(Finding::broken(what, error).remedy(remedy));
    let private = read(key).and_then(|bytes| {
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| format!("{}: {error}", key.display()))
    });
    let private = match private {
        Ok(private) => private,
        Err(error) => {
            let what = format!("`{setting}`: {} holds no private key that can be used", key.display());
            return wrong(
                what,
                error,
                "give a key in PEM format, not encrypted, that the gateway's user may read",
            );
        }
    };
    let provider = rustls::crypto::ring::default_provider();
    match CertifiedKey::from_der(chain.to_vec(), private, &provider) {
        Ok(_) => None,
        Err(rustls::Error::InconsistentKeys(error)) => {
            let what = format!("`{setting}`: the key in {} is not that of the certificate", key.display());
            wrong(
                what,
                format!("their public keys differ ({error:?})"),
                "give the key with which the certificate was requested, and the certificate first in its file",
            )
        }
        Err(error) => {
            let what = format!("`{setting}`: the key in {} cannot be used", key.display());
            wrong(
                what,
                error.to_string(),
                "use a key of ECDSA P-256 or P-384, Ed25519, or RSA from 2048 bits on",
            )
        }
    }
}

/// Whether clients that connect to the listener's address accept the certificate.
fn names(setting: &str, file: &Path, leaf: &CertificateDer<'static>, address: SocketAddr) -> Option<Finding> {
    let parsed = ParsedCertificate::try_from(leaf).ok()?;
    let covers = |name: &ServerName<'_>| verify_server_name(&parsed, name).is_ok();
    // Any name will do to learn which it has.
    let other = ServerName::try_from("name.invalid").ok()?;
    let presented = match verify_server_name(&parsed, &other) {
        Err(rustls::Error::InvalidCertificate(rustls::CertificateError::NotValidForNameContext {
            presented,
            ..
        })) => presented,
        _ => return None,
    };
    if presented.is_empty() {
        let what = format!("`{setting}`: the certificate is for no name at all");
        let remedy = "have one issued with the names that clients connect to (subject alternative names): none looks at the common name";
        return Some(
            Finding::at_risk(what, format!("{} has no subject alternative names", file.display()))
                .remedy(remedy),
        );
    }
    let ip = address.ip();
    if ip.is_unspecified()
        || covers(&ServerName::from(ip))
        || ip.is_loopback() && ServerName::try_from("localhost").is_ok_and(|name| covers(&name))
    {
        return None;
    }
    let what = format!("`{setting}`: the certificate is not for the address {ip}, where it is shown");
    let evidence = format!("{} is for {}", file.display(), presented.join(", "));
    Some(
        Finding::note(what, evidence)
            .remedy("have clients connect to one of its names, or have one issued for the address too"),
    )
}

fn date(seconds: u64) -> String {
    shown(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
