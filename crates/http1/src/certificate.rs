//! The peer's identity, as known to the transport.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The names in a client's certificate that the listener's authority has signed, and how long it is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// `CN`
    pub common_name: Option<Box<str>>,
    /// `O`
    pub organizations: Box<[Box<str>]>,
    /// `OU`
    pub organizational_units: Box<[Box<str>]>,
    /// The last second in which it is valid, with those that it was verified with, since 1970; nothing where it has
    /// no end.
    pub valid_until: Option<u64>,
}

impl Certificate {
    /// Whether it has expired since it was shown. A connection outlives a handshake, and so may not outlive this.
    pub fn has_expired(&self) -> bool {
        self.time_left() == Some(Duration::ZERO)
    }

    /// How long it is valid from now on; nothing where it has no end.
    pub fn time_left(&self) -> Option<Duration> {
        // The second itself is valid (RFC 5280, section 4.1.2.5).
        let end = Duration::from_secs(self.valid_until?.saturating_add(1));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(end.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_expires_after_its_last_second() {
        let until = |valid_until| Certificate { valid_until, ..Certificate::default() };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(until(Some(now - 1)).has_expired() && until(Some(0)).has_expired());
        assert!(!until(Some(now + 3600)).has_expired() && !until(None).has_expired());
        assert!(!until(Some(u64::MAX)).has_expired());
        let left = until(Some(now + 3600)).time_left().unwrap();
        assert!(left <= Duration::from_secs(3601) && left > Duration::from_secs(3000));
    }
}
