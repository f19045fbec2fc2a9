//! API keys issued by a part of the gateway, such as those of a fleet's agents: they are in no file.

use super::authorization::{MAX_CREDENTIAL_BYTES, PresentedCredentials, presented};
use super::failures::FailureLimiter;
use super::{Identity, UNKNOWN, verdict};
use crate::rejection::Rejection;
use std::net::IpAddr;
use std::sync::Arc;

/// Verifies the API keys that it has issued. Asked on each request, before its body is read: it does not wait.
pub trait ApiKeyIssuer: Send + Sync + 'static {
    /// Verifies a key. Takes equally long for all keys of an id, right or wrong.
    fn verify(&self, id: &[u8], key: &[u8]) -> IssuedKey;
}

/// An issuer's verdict on an API key.
#[derive(Debug, Clone)]
pub enum IssuedKey {
    /// Its ids do not look like this one: somebody else knows.
    Foreign,
    /// It is wrong, or has been revoked.
    Invalid,
    /// It belongs to this caller.
    Valid(Identity),
}

/// An issuer, and who has presented invalid keys.
pub(super) struct IssuedKeys {
    issuer: Arc<dyn ApiKeyIssuer>,
    failures: FailureLimiter,
}

impl IssuedKeys {
    pub(super) fn new(issuer: Arc<dyn ApiKeyIssuer>) -> IssuedKeys {
        IssuedKeys { issuer, failures: FailureLimiter::new() }
    }

    /// Decides on a request that presents an issued key; `None` for all others.
    pub(super) fn check(
        &self,
        authorization: Option<&[u8]>,
        peer: IpAddr,
    ) -> Option<Result<Identity, Rejection>> {
        let mut scratch = [0; MAX_CREDENTIAL_BYTES];
        let PresentedCredentials::ApiKey(id, key) = presented(authorization?, &mut scratch)? else {
            return None;
        };
        match self.issuer.verify(id, key) {
            IssuedKey::Foreign => None,
            IssuedKey::Invalid => Some(Err(verdict(&self.failures, peer, UNKNOWN))),
            IssuedKey::Valid(caller) => Some(Ok(caller)),
        }
    }
}
