//! Secrets: how they are kept, compared, and made.
//!
//! A token that was drawn by chance has 256 bits that nobody guesses, so one SHA-256 keeps it as well as a slow
//! hash would, and costs a few hundred nanoseconds. A password does not: its hash is PBKDF2, salted and slow.
//! Only one password is right, so once that was seen it is known again by a keyed hash of a microsecond, before anything
//! else. Whatever is not known has its slow hash computed [elsewhere](super::slow_hashes), and the request waits for that.

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use subtle::ConstantTimeEq as _;
use tidegate_limit::Network;

/// Rounds for a new password: 20 to 40 ms.
const ROUNDS: u32 = 100_000;
/// The most rounds that a file may ask for: other passwords wait meanwhile.
const ROUNDS_ALLOWED: std::ops::RangeInclusive<u32> = 1_000..=200_000;
const SALT: usize = 16;
pub(super) const LEN: usize = 32;
/// Addresses that are remembered of those that a password has come from.
const ADDRESSES: usize = 4;

/// How a secret is kept.
pub(super) enum StoredSecret {
    /// The SHA-256 of a token.
    Digest([u8; LEN]),
    /// The PBKDF2 of a password.
    Password(Arc<Password>),
}

/// A password, and what was learnt of it.
pub(super) struct Password {
    salt: [u8; SALT],
    rounds: NonZeroU32,
    hash: [u8; LEN],
    /// The keyed hash of the right one.
    seen: OnceLock<[u8; LEN]>,
    /// Marks of the addresses from which the right one came last.
    addresses: [AtomicU64; ADDRESSES],
    next_address: AtomicUsize,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Right,
    Wrong,
    /// The slow hash could not be computed now.
    Unsaid,
}

/// A key for hashes of what is presented. It lives as long as the process.
pub(super) struct ProcessKey(hmac::Key);

/// A secret cannot be made or checked.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The system has no random numbers.
    #[error("generating a secret: the system provides no random numbers")]
    Random,
    /// It cannot be sent.
    #[error("this cannot be a password: it is empty, longer than 512 bytes, or has control characters")]
    Password,
}

/// A secret that was made, and what the file says of it.
pub struct NewSecret {
    /// The secret, for its owner.
    pub secret: String,
    /// Its line for the credentials file.
    pub kept: String,
}

/// Makes a secret by chance, or keeps a given password.
///
/// # Errors
/// When there are no random numbers, or the password cannot be one.
pub fn make(password: Option<String>) -> Result<NewSecret, SecretError> {
    let random = SystemRandom::new();
    let Some(password) = password else {
        let mut bytes = [0; LEN];
        random.fill(&mut bytes).map_err(|_| SecretError::Random)?;
        // The prefix lets people and scanners recognise what it is.
        let secret = format!("tgt_{}", hex(&bytes));
        let kept = format!("sha256:{}", hex(&digest(secret.as_bytes())));
        return Ok(NewSecret { secret, kept });
    };
    if password.is_empty() || password.len() > 512 || password.chars().any(char::is_control) {
        return Err(SecretError::Password);
    }
    let mut salt = [0; SALT];
    random.fill(&mut salt).map_err(|_| SecretError::Random)?;
    let mut hash = [0; LEN];
    let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut hash);
    let kept = format!("pbkdf2-sha256:{ROUNDS}:{}:{}", hex(&salt), hex(&hash));
    Ok(NewSecret { secret: password, kept })
}

impl ProcessKey {
    pub(super) fn new() -> Result<ProcessKey, SecretError> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(ProcessKey(key.map_err(|_| SecretError::Random)?))
    }

    /// Of a password.
    pub(super) fn of(&self, password: &[u8]) -> [u8; LEN] {
        first(hmac::sign(&self.0, password).as_ref())
    }

    /// Of a name and a password.
    pub(super) fn of_both(&self, name: &[u8], password: &[u8]) -> [u8; LEN] {
        let mut context = hmac::Context::with_key(&self.0);
        // A name has no colon, so what is before it is one.
        [name, b":", password].iter().for_each(|part| context.update(part));
        first(context.sign().as_ref())
    }
}

impl Password {
    /// One that nothing is the right one for, and that takes as long as others.
    pub(super) fn of_nobody(rounds: NonZeroU32) -> Password {
        Password::new([0; SALT], rounds, [0; LEN])
    }

    fn new(salt: [u8; SALT], rounds: NonZeroU32, hash: [u8; LEN]) -> Password {
        let (seen, addresses, next_address) = (OnceLock::new(), Default::default(), AtomicUsize::new(0));
        Password { salt, rounds, hash, seen, addresses, next_address }
    }

    pub(super) fn rounds(&self) -> NonZeroU32 {
        self.rounds
    }

    /// Computes the slow hash.
    pub(super) fn is_hash_of(&self, password: &[u8]) -> bool {
        let Password { salt, rounds, hash, .. } = self;
        pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, *rounds, salt, password, hash).is_ok()
    }

    /// Keeps the keyed hash of the right password.
    pub(super) fn remember(&self, keyed: [u8; LEN]) {
        let _ = self.seen.set(keyed);
    }

    /// Whether this is the keyed hash of the password that was right.
    pub(super) fn is_remembered(&self, keyed: &[u8; LEN]) -> bool {
        // Compared where there is none, too: so that it takes as long.
        let seen = self.seen.get();
        bool::from(seen.unwrap_or(&[0; LEN]).ct_eq(keyed)) && seen.is_some()
    }

    /// Remembers that the right password came from there.
    pub(super) fn has_come_from(&self, network: Network) {
        if !self.comes_from(network) {
            let next = self.next_address.fetch_add(1, Relaxed) % ADDRESSES;
            if let Some(place) = self.addresses.get(next) {
                place.store(mark(network), Relaxed);
            }
        }
    }

    /// Whether the right password came from there.
    pub(super) fn comes_from(&self, network: Network) -> bool {
        self.addresses.iter().any(|known| known.load(Relaxed) == mark(network))
    }
}

/// Zero is none.
fn mark(network: Network) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    network.hash(&mut hasher);
    hasher.finish() | 1
}

impl StoredSecret {
    /// Reads what a file says.
    pub(super) fn read(text: &str) -> Result<StoredSecret, &'static str> {
        if let Some(hex) = text.strip_prefix("sha256:") {
            let digest = unhex(hex).ok_or("`sha256:` is followed by 64 hexadecimal digits")?;
            return Ok(StoredSecret::Digest(digest));
        }
        let Some(rest) = text.strip_prefix("pbkdf2-sha256:") else {
            return Err(
                "a secret is written as `sha256:…` or `pbkdf2-sha256:…`, as `tidegate token` prints it",
            );
        };
        let form = "`pbkdf2-sha256:` is followed by rounds, salt (32 hexadecimal digits) and hash (64 of them), with `:` between them";
        let mut parts = rest.split(':');
        let (Some(rounds), Some(salt), Some(hash), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(form);
        };
        let rounds: u32 = rounds.parse().map_err(|_| form)?;
        let rounds = NonZeroU32::new(rounds)
            .filter(|rounds| ROUNDS_ALLOWED.contains(&rounds.get()))
            .ok_or("the rounds of `pbkdf2-sha256` are 1000 to 200000")?;
        let (salt, hash) = (unhex(salt).ok_or(form)?, unhex(hash).ok_or(form)?);
        Ok(StoredSecret::Password(Arc::new(Password::new(salt, rounds, hash))))
    }

    /// Takes over what `other` has learnt, where both are kept alike.
    pub(super) fn inherit(&mut self, other: &StoredSecret) {
        if let (StoredSecret::Password(own), StoredSecret::Password(other)) = (self, other)
            && (own.salt, own.rounds, own.hash) == (other.salt, other.rounds, other.hash)
        {
            *own = Arc::clone(other);
        }
    }
}

pub(super) fn digest(bytes: &[u8]) -> [u8; LEN] {
    first(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Both are of this length.
fn first(bytes: &[u8]) -> [u8; LEN] {
    bytes.first_chunk().copied().unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}
