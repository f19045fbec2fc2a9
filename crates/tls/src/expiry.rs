//! Tickets that end with the certificates of the session: resuming must not let in who a full handshake would not.
//!
//! A resumed session has the client's certificates out of its ticket, and nobody looks at them again. Whether their
//! authority is trusted and what they are for was checked with the configuration that made the ticket, and a ticket is
//! only ever taken by that one: a new configuration has a new key. What changes with time alone is whether they have
//! expired. So the moment until which they are valid goes into the ticket, under its seal, and a ticket whose
//! certificates have expired is not taken: the client does a full handshake, with the certificate that it has then.
//!
//! `rustls` neither tells a ticketer which session it makes a ticket for, nor a verifier which session it verifies for.
//! All of them are called by the thread that the session is being worked on by, within that call. So the session
//! [lends](during) that thread what is known of its certificates for as long.

use crate::subject;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ProducesTickets;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::cell::Cell;
use std::sync::Arc;

/// The last second, since 1970, in which the certificates of a session are valid. The greatest number where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValidUntil(u64);

thread_local! {
    /// That of the session that is being worked on.
    static SESSION: Cell<ValidUntil> = const { Cell::new(ValidUntil::NEVER) };
}

/// Works on a session with `work`. What is known of its certificates is there meanwhile, and kept behind it.
pub(crate) fn during<T>(known: &mut ValidUntil, work: impl FnOnce() -> T) -> T {
    SESSION.set(*known);
    let done = work();
    *known = SESSION.replace(ValidUntil::NEVER);
    done
}

impl ValidUntil {
    pub(crate) const NEVER: ValidUntil = ValidUntil(u64::MAX);

    /// That of certificates which are verified at `now`: the first of them to expire. One that has expired already was
    /// not needed.
    fn of(leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: UnixTime) -> ValidUntil {
        // A verified certificate can be parsed. If not, treat it as expiring now.
        let leaf = subject::not_after(leaf).unwrap_or(0);
        let others = others.iter().filter_map(|other| subject::not_after(other));
        ValidUntil(others.filter(|end| *end >= now.as_secs()).fold(leaf, u64::min))
    }

    /// The second, where it has an end.
    pub(crate) fn second(self) -> Option<u64> {
        (self != ValidUntil::NEVER).then_some(self.0)
    }
}

/// Notes how long the certificates are valid that it verifies.
#[derive(Debug)]
pub(crate) struct ExpiryRecordingVerifier(pub(crate) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for ExpiryRecordingVerifier {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.0.verify_client_cert(leaf, others, now)?;
        SESSION.set(ValidUntil::of(leaf, others, now));
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Tickets with an end.
#[derive(Debug)]
pub(crate) struct ExpiringTickets {
    pub(crate) sealed: Arc<dyn ProducesTickets>,
    pub(crate) clock: Arc<dyn TimeProvider>,
}

impl ProducesTickets for ExpiringTickets {
    fn enabled(&self) -> bool {
        self.sealed.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.sealed.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let ValidUntil(second) = SESSION.get();
        self.sealed.encrypt(&[&second.to_be_bytes()[..], plain].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let mut plain = self.sealed.decrypt(cipher)?;
        let second = u64::from_be_bytes(*plain.first_chunk()?);
        if self.clock.current_time()?.as_secs() > second {
            return None;
        }
        SESSION.set(ValidUntil(second));
        plain.drain(..size_of::<u64>());
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    //! Promise: a ticket ends with the certificates that it stands for, and belongs to one session.

    use super::*;
    use std::time::Duration;

    #[derive(Debug)]
    struct At(u64);

    impl TimeProvider for At {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    fn tickets(sealed: &Arc<dyn ProducesTickets>, now: u64) -> ExpiringTickets {
        ExpiringTickets { sealed: Arc::clone(sealed), clock: Arc::new(At(now)) }
    }

    #[test]
    fn a_ticket_is_taken_until_its_certificates_expire() {
        let sealed = rustls::crypto::ring::Ticketer::new().unwrap();
        let mut session = ValidUntil(1000);
        let ticket = during(&mut session, || tickets(&sealed, 1).encrypt(b"state").unwrap());
        let mut resumed = ValidUntil::NEVER;
        let taken = during(&mut resumed, || tickets(&sealed, 1000).decrypt(&ticket));
        assert_eq!((taken.as_deref(), resumed), (Some(&b"state"[..]), ValidUntil(1000)));
        let mut refused = ValidUntil::NEVER;
        assert_eq!(during(&mut refused, || tickets(&sealed, 1001).decrypt(&ticket)), None);
        assert_eq!(refused, ValidUntil::NEVER);
    }

    #[test]
    fn expiry_of_one_session_does_not_reach_another() {
        let sealed = rustls::crypto::ring::Ticketer::new().unwrap();
        during(&mut ValidUntil(1000), || ());
        let ticket = during(&mut { ValidUntil::NEVER }, || tickets(&sealed, 1).encrypt(b"state").unwrap());
        let taken = during(&mut { ValidUntil::NEVER }, || tickets(&sealed, u64::MAX).decrypt(&ticket));
        assert!(taken.is_some(), "without a certificate a ticket has no end of its own");
    }
}
