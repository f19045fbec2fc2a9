//! Why handshakes come to nothing: a small fixed set of reasons, each counted, and said now and then with what to do.

use crate::doorway::Failure;
use rustls::{CertificateError, Error};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two lines in the log about the same reason.
const SILENCE: Duration = Duration::from_secs(10);

/// Why a handshake came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The client speaks something else.
    NotTls,
    /// It shows no certificate where it must.
    NoCertificate,
    /// It shows one of an authority that is not trusted here.
    UnknownAuthority,
    /// It shows one that is not valid now, or not for this.
    BadCertificate,
    /// It and the gateway have no version or cipher in common.
    Incompatible,
    /// It broke a rule of the protocol.
    Protocol,
    /// It refused what it was shown.
    Alert,
    /// It took too long.
    Timeout,
    /// There were too many at a time, or no memory for one more.
    NoRoom,
    /// It went away.
    Closed,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 10;
    /// All of them.
    pub const ALL: [Reason; Reason::COUNT] = [
        Reason::NotTls,
        Reason::NoCertificate,
        Reason::UnknownAuthority,
        Reason::BadCertificate,
        Reason::Incompatible,
        Reason::Protocol,
        Reason::Alert,
        Reason::Timeout,
        Reason::NoRoom,
        Reason::Closed,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NotTls => "not_tls",
            Reason::NoCertificate => "no_certificate",
            Reason::UnknownAuthority => "unknown_authority",
            Reason::BadCertificate => "bad_certificate",
            Reason::Incompatible => "incompatible",
            Reason::Protocol => "protocol",
            Reason::Alert => "alert",
            Reason::Timeout => "timeout",
            Reason::NoRoom => "no_room",
            Reason::Closed => "closed",
        }
    }

    /// The remedy for the operator.
    pub const fn advice(self) -> &'static str {
        match self {
            Reason::NotTls => {
                "the client speaks no TLS, and this address nothing else: give the client an address with `https`"
            }
            Reason::NoCertificate => {
                "the client shows no certificate: give it one, or set `client_auth: optional`"
            }
            Reason::UnknownAuthority => {
                "the client's certificate is signed by an authority that `client_ca_file` does not have: add it \
                 there, or give the client a certificate of one that is there"
            }
            Reason::BadCertificate => {
                "the client's certificate has expired, is not valid yet, or is not for clients: give it another, and \
                 see that its clock and this one's are right"
            }
            Reason::Incompatible => {
                "the client has no version or cipher in common with TLS 1.2 and 1.3 as they are spoken here: update it"
            }
            Reason::Protocol => {
                "what the client sends breaks the rules of TLS: see what stands between it and here"
            }
            Reason::Alert => {
                "the client refuses what it is shown: give it the authority of `cert_file`, and let it connect by a \
                 name that the certificate is for"
            }
            Reason::Timeout => {
                "the client did not finish within `limits.header_timeout`: it may be far away, overloaded, or no \
                 client at all"
            }
            Reason::NoRoom => {
                "too many connect at once, or memory is short: let clients keep their connections, or raise `memory`"
            }
            Reason::Closed => {
                "the client went away in the middle; a probe of a load balancer does that: let it ask for `/health` at \
                 the admin address"
            }
        }
    }

    /// The reason of a failure.
    pub(crate) fn of(failure: &Failure) -> Reason {
        match failure {
            Failure::NotTls(_) => Reason::NotTls,
            Failure::Late => Reason::Timeout,
            Failure::Crowded => Reason::NoRoom,
            Failure::Lost(error) => Reason::of_error(error),
        }
    }

    fn of_error(error: &io::Error) -> Reason {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(Error::NoCertificatesPresented) => Reason::NoCertificate,
            // The signature is another's where an authority was made anew under the name of the old one.
            Some(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => Reason::UnknownAuthority,
            Some(Error::InvalidCertificate(_)) => Reason::BadCertificate,
            Some(Error::PeerIncompatible(_)) => Reason::Incompatible,
            Some(Error::AlertReceived(_)) => Reason::Alert,
            Some(_) => Reason::Protocol,
            None if error.kind() == io::ErrorKind::InvalidData => Reason::Protocol,
            None if error.kind() == io::ErrorKind::OutOfMemory => Reason::NoRoom,
            None => Reason::Closed,
        }
    }
}

/// How handshakes end, of all addresses together.
#[derive(Debug, Default)]
pub struct Tally {
    done: AtomicU64,
    failed: [AtomicU64; Reason::COUNT],
    /// Since when there is silence about each reason, and how many failed since.
    said: Mutex<[(Option<Instant>, u64); Reason::COUNT]>,
}

impl Tally {
    /// How many handshakes became connections.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// How many came to nothing for this reason.
    pub fn failed(&self, reason: Reason) -> u64 {
        self.failed.get(reason as usize).map_or(0, |count| count.load(Relaxed))
    }

    pub(crate) fn count<T>(&self, outcome: &Result<T, Failure>) {
        let count = match outcome {
            Ok(_) => Some(&self.done),
            Err(failure) => self.failed.get(Reason::of(failure) as usize),
        };
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
    }

    /// How many failures for this reason a line in the log should speak of, where it is time for one.
    pub(crate) fn note(&self, reason: Reason) -> Option<u64> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = said.get_mut(reason as usize)?;
        *count += 1;
        let now = Instant::now();
        if last.is_some_and(|last| now < last + SILENCE) {
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(count))
    }
}

#[cfg(test)]
mod tests {
    //! Promise: every failure has one reason, and a flood for one of them hides no other.

    use super::*;

    #[test]
    fn reasons_are_found_by_their_numbers_and_have_names_of_their_own() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
            assert!(Reason::ALL[..at].iter().all(|other| other.name() != reason.name()));
        }
    }

    #[test]
    fn an_error_of_the_protocol_tells_its_reason() {
        let table = [
            (Error::NoCertificatesPresented, Reason::NoCertificate),
            (CertificateError::UnknownIssuer.into(), Reason::UnknownAuthority),
            (CertificateError::BadSignature.into(), Reason::UnknownAuthority),
            (CertificateError::Expired.into(), Reason::BadCertificate),
            (Error::AlertReceived(rustls::AlertDescription::UnknownCA), Reason::Alert),
            (rustls::PeerIncompatible::NoCipherSuitesInCommon.into(), Reason::Incompatible),
            (rustls::InvalidMessage::InvalidCcs.into(), Reason::Protocol),
        ];
        for (error, reason) in table {
            let failure = Failure::Lost(io::Error::new(io::ErrorKind::InvalidData, error));
            assert_eq!(Reason::of(&failure), reason);
        }
        let of = |kind: io::ErrorKind| Reason::of(&Failure::Lost(kind.into()));
        assert_eq!(of(io::ErrorKind::UnexpectedEof), Reason::Closed);
        assert_eq!(of(io::ErrorKind::ConnectionReset), Reason::Closed);
        assert_eq!(of(io::ErrorKind::InvalidData), Reason::Protocol);
        assert_eq!(Reason::of(&Failure::Late), Reason::Timeout);
        assert_eq!(Reason::of(&Failure::Crowded), Reason::NoRoom);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_for_one_reason_is_one_line_and_hides_no_other() {
        let tally = Tally::default();
        assert_eq!(tally.note(Reason::Closed), Some(1));
        for _ in 0..1000 {
            assert_eq!(tally.note(Reason::Closed), None);
        }
        assert_eq!(tally.note(Reason::UnknownAuthority), Some(1));
        tokio::time::advance(SILENCE).await;
        assert_eq!(tally.note(Reason::Closed), Some(1001));
    }
}
