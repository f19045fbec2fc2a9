//! Authentication: bearer tokens, basic credentials and API keys from a file, and client certificates.
//!
//! The file holds hashes and no secrets. What a request presents is hashed once and compared in constant time,
//! without an allocation. A password that is not known yet needs a slow hash: [`Access::prepare`] has it computed
//! elsewhere, and is asked before [`Access::check`]. The file is read again when it changes, and one that cannot be read
//! leaves what was known before.
//!
//! Whoever fails is told so a few times, and then to come back later: [`FailureLimiter`] has the bound.

mod authorization;
mod credentials;
mod failures;
mod issued_keys;
mod rights;
mod secret;
mod slow_hashes;

pub use authorization::{MAX_CREDENTIAL_BYTES, PresentedCredentials, presented};
pub use credentials::{Credentials, CredentialsError, TenantRule};
pub use issued_keys::{ApiKeyIssuer, IssuedKey};
pub use rights::{BulkAction, BulkActions, BulkRights, Indices, LONGEST_INDEX};
pub use secret::{NewSecret, SecretError, make};
pub use tidegate_http1::{AdmissionFuture, Certificate};

use crate::rejection::Rejection;
use arc_swap::ArcSwapOption;
use credentials::{Credential, CredentialOptions, Secret};
use failures::FailureLimiter;
use issued_keys::IssuedKeys;
use secret::{Match, ProcessKey};
use slow_hashes::{HashJob, SlowHashes};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_ledger::Refusal;
use tidegate_limit::Network;
use tokio::time::{Instant, timeout};

/// The most memory of a credentials file, in bytes, with the next one beside it, and of checking passwords.
pub const BYTES: usize = credentials::BYTES + slow_hashes::BYTES;
/// How long a request waits for the hash of its password.
const HASH_TIMEOUT: Duration = Duration::from_secs(5);

/// A caller that was recognised, or that needs not be.
#[derive(Debug, Clone, Default)]
pub struct Identity(Option<Arc<Credential>>);

impl Identity {
    /// A caller whose key was [issued](ApiKeyIssuer), with the rights of a line of the file that has no options but the tenant.
    pub fn of_issued_key(name: &str, tenant: TenantRule) -> Identity {
        let may = CredentialOptions { tenant, ..CredentialOptions::default() };
        Identity(Some(Arc::new(Credential { name: name.into(), may })))
    }

    /// By what name the caller is known; nothing where everybody may send.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|entry| &*entry.name)
    }

    /// The tenant of the credentials; `None` where no credentials are needed.
    pub fn owner(&self) -> Option<&TenantRule> {
        self.0.as_ref().map(|entry| &entry.may.tenant)
    }

    /// The `_bulk` rights of the credentials: the actions, and the indices if they name any. `None` where no
    /// credentials are needed.
    pub(crate) fn bulk(&self) -> Option<(BulkActions, Option<&Indices>)> {
        self.0.as_ref().map(|entry| (entry.may.bulk, entry.may.indices.as_ref()))
    }

    /// Whether the caller is an operator, who resends dead letters.
    pub(crate) fn is_operator(&self) -> bool {
        self.0.as_ref().is_some_and(|entry| entry.may.operator)
    }

    /// The same caller, as an operator.
    pub(crate) fn as_operator(&self) -> Identity {
        let name = self.name().unwrap_or_default().into();
        let may =
            CredentialOptions { operator: true, tenant: TenantRule::Any, ..CredentialOptions::default() };
        Identity(Some(Arc::new(Credential { name, may })))
    }
}

/// Decides who may send. Clones decide alike.
#[derive(Clone, Default)]
pub struct Access {
    file: Option<Arc<AccessState>>,
    issued: Option<Arc<IssuedKeys>>,
}

struct AccessState {
    file: PathBuf,
    header: Option<Box<str>>,
    known: ArcSwapOption<Credentials>,
    /// The file as it was read last, and as it was seen last.
    seen: Mutex<(FileStamp, FileStamp)>,
    keyed: ProcessKey,
    slow: SlowHashes,
    failures: FailureLimiter,
}

impl Access {
    /// Everybody may send.
    pub fn open() -> Access {
        Access::default()
    }

    /// Only those may send whom `file` knows. `header` may carry a token besides `Authorization`.
    ///
    /// # Errors
    /// When the file cannot be read, or says what cannot be.
    pub fn from_file(file: &Path, header: Option<&str>) -> Result<Access, CredentialsError> {
        let stamp = FileStamp::of(file);
        let guard = AccessState::new(file.to_owned(), header, Credentials::read(file)?)?;
        *guard.seen.lock().unwrap_or_else(PoisonError::into_inner) = (stamp, stamp);
        Ok(Access { file: Some(Arc::new(guard)), issued: None })
    }

    /// Accepts the credentials in `known`, which never change: there is no file to read again.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn from_credentials(known: Credentials) -> Result<Access, SecretError> {
        let state = AccessState::new(PathBuf::new(), None, known)?;
        Ok(Access { file: Some(Arc::new(state)), issued: None })
    }

    /// Also accepts the keys of `issuer`. They are never looked up in the file, and a wrong one is refused where everybody may
    /// send, so a revoked key is of no use.
    #[must_use]
    pub fn with_issuer(self, issuer: Arc<dyn ApiKeyIssuer>) -> Access {
        Access { issued: Some(Arc::new(IssuedKeys::new(issuer))), ..self }
    }

    /// Whether everybody may send.
    pub fn is_open(&self) -> bool {
        self.file.is_none()
    }

    /// Whether [`check`](Self::check) looks at a request at all.
    pub(crate) fn has_credentials(&self) -> bool {
        self.file.is_some() || self.issued.is_some()
    }

    /// The header that may carry a token: what it says is for [`check`](Self::check) where there is no
    /// `Authorization`.
    pub fn header(&self) -> Option<&str> {
        self.file.as_ref().and_then(|guard| guard.header.as_deref())
    }

    /// The hash to wait for before [`check`](Self::check) can decide; `None` unless the request has a password that is
    /// not known yet. It takes as long for unknown names and wrong passwords.
    #[inline]
    pub fn prepare(&self, authorization: Option<&[u8]>, peer: IpAddr) -> Option<AdmissionFuture> {
        let guard = self.file.as_ref()?;
        let authorization = authorization.filter(|value| authorization::is_basic(value))?;
        guard.prepare(authorization, peer)
    }

    /// Authenticates a request by its `Authorization` header, its verified `certificate`, and its `peer` address.
    ///
    /// # Errors
    /// `unauthorized` for what is not known; `forbidden` for a certificate that is valid and may not send;
    /// `rate_limit` for who has failed too often.
    pub fn check(
        &self,
        authorization: Option<&[u8]>,
        certificate: Option<&Certificate>,
        peer: IpAddr,
    ) -> Result<Identity, Rejection> {
        if let Some(decided) = self.issued.as_ref().and_then(|issued| issued.check(authorization, peer)) {
            return decided;
        }
        let Some(guard) = &self.file else { return Ok(Identity(None)) };
        guard.check(authorization, certificate, peer)
    }

    /// Reads the file again.
    ///
    /// # Errors
    /// When that is not possible; what was known before is kept.
    pub fn reload(&self) -> Result<(), CredentialsError> {
        let Some(guard) = &self.file else { return Ok(()) };
        guard.reload(FileStamp::of(&guard.file))
    }

    /// To be called once a second: reads the file again once it has changed and then stayed as it is for a call.
    /// Says whether that was done.
    ///
    /// # Errors
    /// As those of [`reload`](Self::reload), once for each change of the file.
    pub fn reload_if_changed(&self) -> Result<bool, CredentialsError> {
        let Some(guard) = &self.file else { return Ok(false) };
        let now = FileStamp::of(&guard.file);
        let settled = {
            let mut seen = guard.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let settled = seen.1 == now;
            seen.1 = now;
            settled && seen.0 != now
        };
        if settled { guard.reload(now).map(|()| true) } else { Ok(false) }
    }
}

impl AccessState {
    fn new(file: PathBuf, header: Option<&str>, known: Credentials) -> Result<AccessState, SecretError> {
        Ok(AccessState {
            file,
            header: header.map(Into::into),
            known: ArcSwapOption::from_pointee(known),
            seen: Mutex::new((FileStamp(None), FileStamp(None))),
            keyed: ProcessKey::new()?,
            slow: SlowHashes::default(),
            failures: FailureLimiter::new(),
        })
    }

    fn check(
        &self,
        authorization: Option<&[u8]>,
        certificate: Option<&Certificate>,
        peer: IpAddr,
    ) -> Result<Identity, Rejection> {
        let known = self.known.load();
        let Some(known) = known.as_deref() else { return Err(UNKNOWN) };
        let Some(authorization) = authorization else {
            return match certificate {
                None => Err(self.failed(peer, MISSING)),
                Some(certificate) => match known.certificate(certificate) {
                    Some(entry) => Ok(Identity(Some(Arc::clone(entry)))),
                    None => Err(self.failed(peer, FORBIDDEN)),
                },
            };
        };
        let mut scratch = [0; authorization::MAX_CREDENTIAL_BYTES];
        let Some(presented) = presented(authorization, &mut scratch) else {
            return Err(self.failed(peer, UNREADABLE));
        };
        let (entry, outcome) = match presented {
            PresentedCredentials::Token(token) => known.token(token),
            PresentedCredentials::Basic(name, password) => {
                let (entry, secret) = known.basic(name, &self.keyed);
                let outcome = match secret.fast(password) {
                    Some(outcome) => outcome,
                    None => self.compare(name, password, &secret, peer),
                };
                (entry, outcome)
            }
            PresentedCredentials::ApiKey(id, key) => known.api_key(id, key),
        };
        match (entry, outcome) {
            (Some(entry), Match::Right) => Ok(Identity(Some(Arc::clone(entry)))),
            (_, Match::Unsaid) => Err(LATER.retry_after(1)),
            _ => Err(self.failed(peer, UNKNOWN)),
        }
    }

    fn prepare(&self, authorization: &[u8], peer: IpAddr) -> Option<AdmissionFuture> {
        let known = self.known.load();
        let mut scratch = [0; authorization::MAX_CREDENTIAL_BYTES];
        let Some(PresentedCredentials::Basic(name, presented)) = presented(authorization, &mut scratch)
        else {
            return None;
        };
        let (_, Secret::Password(password)) = known.as_deref()?.basic(name, &self.keyed) else { return None };
        let (key, keyed) = (self.keyed.of_both(name, presented), self.keyed.of(presented));
        let is_known = password.is_remembered(&keyed) || self.slow.recent(&key).is_some();
        if is_known || self.failures.is_over(peer, Instant::now()) {
            return None;
        }
        let (password, network) = (Arc::clone(password), Network::of(peer));
        let waiter = self.slow.ask(HashJob { key, network, password, presented: presented.into(), keyed })?;
        Some(Box::pin(async move { _ = timeout(HASH_TIMEOUT, waiter.wait()).await }))
    }

    /// Compares with what is known by now.
    fn compare(&self, name: &[u8], presented: &[u8], secret: &Secret<'_>, peer: IpAddr) -> Match {
        let Secret::Password(password) = secret else { return Match::Wrong };
        let (keyed, network) = (self.keyed.of(presented), Network::of(peer));
        let is_right = password.is_remembered(&keyed);
        // Whoever has failed too often learns nothing, or a flood would try passwords as fast as they can be sent. But
        // behind the same address there may be others, a proxy's: those who were there before are let in.
        if self.failures.is_over(peer, Instant::now()) {
            return if is_right && password.comes_from(network) { Match::Right } else { Match::Unsaid };
        }
        if is_right {
            password.has_come_from(network);
            return Match::Right;
        }
        self.slow.recent(&self.keyed.of_both(name, presented)).unwrap_or(Match::Unsaid)
    }

    fn failed(&self, peer: IpAddr, refused: Rejection) -> Rejection {
        verdict(&self.failures, peer, refused)
    }

    fn reload(&self, stamp: FileStamp) -> Result<(), CredentialsError> {
        // Even when it cannot be read: it is not read again before it changes.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).0 = stamp;
        let mut new = Credentials::read(&self.file)?;
        if let Some(old) = &*self.known.load() {
            new.inherit(old);
        }
        self.known.store(Some(Arc::new(new)));
        self.slow.forget();
        Ok(())
    }
}

/// Counts a failure, and logs it now and then. Whoever has failed too often is told to come back later instead.
fn verdict(failures: &FailureLimiter, peer: IpAddr, refused: Rejection) -> Rejection {
    let verdict = failures.note(peer, Instant::now());
    if let Some(count) = verdict.say {
        tracing::warn!(
            %peer,
            failures = count,
            reason = refused.reason.name(),
            "requests without valid credentials are refused"
        );
    }
    match verdict.wait {
        None => refused,
        Some(wait) => TOO_OFTEN.retry_after(seconds(wait)),
    }
}

fn seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

/// Identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp(Option<(u64, u64, Option<SystemTime>)>);

impl FileStamp {
    fn of(file: &Path) -> FileStamp {
        let known = std::fs::metadata(file).ok();
        FileStamp(known.map(|known| (known.ino(), known.len(), known.modified().ok())))
    }
}

const MISSING: Rejection = Rejection::new(
    Refusal::Unauthorized,
    "credentials are needed here: send the header `Authorization: Bearer` with a token that the gateway knows\n",
);
const UNKNOWN: Rejection = Rejection::new(
    Refusal::Unauthorized,
    "these credentials are not known here, or have been withdrawn; ask whoever runs the gateway for others\n",
);
const UNREADABLE: Rejection = Rejection::new(
    Refusal::Unauthorized,
    "the credentials cannot be read; send `Authorization: Bearer TOKEN`, or `Basic` or `ApiKey` with base64\n",
);
const FORBIDDEN: Rejection = Rejection::new(
    Refusal::Forbidden,
    "the client's certificate is valid, but its names are not among those that may send here\n",
);
const LATER: Rejection =
    Rejection::new(Refusal::RateLimited, "too many passwords are being checked; retry later\n");
const TOO_OFTEN: Rejection = Rejection::new(
    Refusal::RateLimited,
    "too many requests from this address had no valid credentials; correct them, and come back later\n",
);

/// The `WWW-Authenticate` header of a 401.
pub const CHALLENGE: &str = "Bearer realm=\"tidegate\", Basic realm=\"tidegate\", ApiKey";

#[cfg(test)]
mod tests;
