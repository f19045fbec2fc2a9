//! Why handshakes come to nothing: a small fixed set of reasons, each counted, and said now and then with what to do.

use crate::acceptor::AcceptError;
use rustls::{CertificateError, Error};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two lines in the log about the same reason.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why a handshake came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFailure {
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

impl HandshakeFailure {
    /// How many there are.
    pub const COUNT: usize = 10;
    /// All of them.
    pub const ALL: [HandshakeFailure; HandshakeFailure::COUNT] = [
        HandshakeFailure::NotTls,
        HandshakeFailure::NoCertificate,
        HandshakeFailure::UnknownAuthority,
        HandshakeFailure::BadCertificate,
        HandshakeFailure::Incompatible,
        HandshakeFailure::Protocol,
        HandshakeFailure::Alert,
        HandshakeFailure::Timeout,
        HandshakeFailure::NoRoom,
        HandshakeFailure::Closed,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            HandshakeFailure::NotTls => "not_tls",
            HandshakeFailure::NoCertificate => "no_certificate",
            HandshakeFailure::UnknownAuthority => "unknown_authority",
            HandshakeFailure::BadCertificate => "bad_certificate",
            HandshakeFailure::Incompatible => "incompatible",
            HandshakeFailure::Protocol => "protocol",
            HandshakeFailure::Alert => "alert",
            HandshakeFailure::Timeout => "timeout",
            HandshakeFailure::NoRoom => "no_room",
            HandshakeFailure::Closed => "closed",
        }
    }

    /// The remedy for the operator.
    pub const fn advice(self) -> &'static str {
        match self {
            HandshakeFailure::NotTls => {
                "the client speaks no TLS, and this address nothing else: give the client an address with `https`"
            }
            HandshakeFailure::NoCertificate => {
                "the client shows no certificate: give it one, or set `client_auth: optional`"
            }
            HandshakeFailure::UnknownAuthority => {
                "the client's certificate is signed by an authority that `client_ca_file` does not have: add it \
                 there, or give the client a certificate of one that is there"
            }
            HandshakeFailure::BadCertificate => {
                "the client's certificate has expired, is not valid yet, or is not for clients: give it another, and \
                 see that its clock and this one's are right"
            }
            HandshakeFailure::Incompatible => {
                "the client has no version or cipher in common with TLS 1.2 and 1.3 as they are spoken here: update it"
            }
            HandshakeFailure::Protocol => {
                "the client violates the TLS protocol: check the proxies between it and the gateway"
            }
            HandshakeFailure::Alert => {
                "the client rejects the server certificate: give it the authority of `cert_file`, and let it connect to a name in the certificate"
            }
            HandshakeFailure::Timeout => {
                "the client did not finish within `limits.header_timeout`: it may be far away, overloaded, or no \
                 client at all"
            }
            HandshakeFailure::NoRoom => {
                "too many connect at once, or memory is short: let clients keep their connections, or raise `memory`"
            }
            HandshakeFailure::Closed => {
                "the client went away in the middle; a probe of a load balancer does that: let it ask for `/health` at \
                 the admin address"
            }
        }
    }

    /// The reason of a failure.
    pub(crate) fn of(failure: &AcceptError) -> HandshakeFailure {
        match failure {
            AcceptError::NotTls(_) => HandshakeFailure::NotTls,
            AcceptError::Late => HandshakeFailure::Timeout,
            AcceptError::Crowded => HandshakeFailure::NoRoom,
            AcceptError::Lost(error) => HandshakeFailure::of_error(error),
        }
    }

    fn of_error(error: &io::Error) -> HandshakeFailure {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(Error::NoCertificatesPresented) => HandshakeFailure::NoCertificate,
            // The signature is another's where an authority was made anew under the name of the old one.
            Some(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => HandshakeFailure::UnknownAuthority,
            Some(Error::InvalidCertificate(_)) => HandshakeFailure::BadCertificate,
            Some(Error::PeerIncompatible(_)) => HandshakeFailure::Incompatible,
            Some(Error::AlertReceived(_)) => HandshakeFailure::Alert,
            Some(_) => HandshakeFailure::Protocol,
            None if error.kind() == io::ErrorKind::InvalidData => HandshakeFailure::Protocol,
            None if error.kind() == io::ErrorKind::OutOfMemory => HandshakeFailure::NoRoom,
            None => HandshakeFailure::Closed,
        }
    }
}

/// How handshakes end, of all addresses together.
#[derive(Debug, Default)]
pub struct HandshakeCounters {
    done: AtomicU64,
    failed: [AtomicU64; HandshakeFailure::COUNT],
    /// Since when there is silence about each reason, and how many failed since.
    said: Mutex<[(Option<Instant>, u64); HandshakeFailure::COUNT]>,
}

impl HandshakeCounters {
    /// How many handshakes became connections.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// How many came to nothing for this reason.
    pub fn failed(&self, reason: HandshakeFailure) -> u64 {
        self.failed.get(reason as usize).map_or(0, |count| count.load(Relaxed))
    }

    pub(crate) fn count<T>(&self, outcome: &Result<T, AcceptError>) {
        let count = match outcome {
            Ok(_) => Some(&self.done),
            Err(failure) => self.failed.get(HandshakeFailure::of(failure) as usize),
        };
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
    }

    /// How many failures for this reason a line in the log should speak of, where it is time for one.
    pub(crate) fn note(&self, reason: HandshakeFailure) -> Option<u64> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = said.get_mut(reason as usize)?;
        *count += 1;
        let now = Instant::now();
        if last.is_some_and(|last| now < last + LOG_INTERVAL) {
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
        for (at, reason) in HandshakeFailure::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
            assert!(HandshakeFailure::ALL[..at].iter().all(|other| other.name() != reason.name()));
        }
    }

    #[test]
    fn an_error_of_the_protocol_tells_its_reason() {
        let table = [
            (Error::NoCertificatesPresented, HandshakeFailure::NoCertificate),
            (CertificateError::UnknownIssuer.into(), HandshakeFailure::UnknownAuthority),
            (CertificateError::BadSignature.into(), HandshakeFailure::UnknownAuthority),
            (CertificateError::Expired.into(), HandshakeFailure::BadCertificate),
            (Error::AlertReceived(rustls::AlertDescription::UnknownCA), HandshakeFailure::Alert),
            (rustls::PeerIncompatible::NoCipherSuitesInCommon.into(), HandshakeFailure::Incompatible),
            (rustls::InvalidMessage::InvalidCcs.into(), HandshakeFailure::Protocol),
        ];
        for (error, reason) in table {
            let failure = AcceptError::Lost(io::Error::new(io::ErrorKind::InvalidData, error));
            assert_eq!(HandshakeFailure::of(&failure), reason);
        }
        let of = |kind: io::ErrorKind| HandshakeFailure::of(&AcceptError::Lost(kind.into()));
        assert_eq!(of(io::ErrorKind::UnexpectedEof), HandshakeFailure::Closed);
        assert_eq!(of(io::ErrorKind::ConnectionReset), HandshakeFailure::Closed);
        assert_eq!(of(io::ErrorKind::InvalidData), HandshakeFailure::Protocol);
        assert_eq!(HandshakeFailure::of(&AcceptError::Late), HandshakeFailure::Timeout);
        assert_eq!(HandshakeFailure::of(&AcceptError::Crowded), HandshakeFailure::NoRoom);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_for_one_reason_is_one_line_and_hides_no_other() {
        let tally = HandshakeCounters::default();
        assert_eq!(tally.note(HandshakeFailure::Closed), Some(1));
        for _ in 0..1000 {
            assert_eq!(tally.note(HandshakeFailure::Closed), None);
        }
        assert_eq!(tally.note(HandshakeFailure::UnknownAuthority), Some(1));
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(tally.note(HandshakeFailure::Closed), Some(1001));
    }
}
