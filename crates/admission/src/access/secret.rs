//! Secrets: how they are kept, compared, and made.
//!
//! A token that was drawn by chance has 256 bits that nobody guesses, so one SHA-256 keeps it as well as a slow
//! hash would, and costs a few hundred nanoseconds. A password does not: its hash is PBKDF2, salted and slow.
//! Only one password is right, so once that was seen, every other is told from it by a keyed hash of a
//! microsecond: the slow one is computed for each name until it succeeds, and no oftener than [`PER_SECOND`] in all.

use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

/// Rounds for a new password: 20 to 40 ms.
const ROUNDS: u32 = 100_000;
/// What a file may ask for: a worker stands still meanwhile.
const ROUNDS_ALLOWED: std::ops::RangeInclusive<u32> = 1_000..=200_000;
/// Slow hashes in a second, by all workers together.
pub(super) const PER_SECOND: u32 = 4;
const SALT: usize = 16;
const LEN: usize = 32;

/// How a secret is kept.
pub(super) enum Kept {
    /// The SHA-256 of a token.
    Digest([u8; LEN]),
    /// The PBKDF2 of a password.
    Password { salt: [u8; SALT], rounds: NonZeroU32, hash: [u8; LEN], seen: OnceLock<[u8; LEN]> },
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Right,
    Wrong,
    /// The slow hash could not be computed now.
    Unsaid,
}

/// Checks passwords. Its key lives as long as the process.
pub(super) struct Verifier {
    key: hmac::Key,
    /// When the next slow hash may be computed.
    next: Mutex<Option<Instant>>,
}

/// A secret cannot be made or checked.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The system has no random numbers.
    #[error("drawing a secret: the system gives no random numbers")]
    Random,
    /// It cannot be sent.
    #[error("this cannot be a password: it is empty, longer than 512 bytes, or has control characters")]
    Password,
}

/// A secret that was made, and what the file says of it.
pub struct Made {
    /// What its owner presents.
    pub secret: String,
    /// What is kept of it.
    pub kept: String,
}

/// Makes a secret by chance, or keeps a given password.
///
/// # Errors
/// When there are no random numbers, or the password cannot be one.
pub fn make(password: Option<String>) -> Result<Made, SecretError> {
    let random = SystemRandom::new();
    let Some(password) = password else {
        let mut bytes = [0; LEN];
        random.fill(&mut bytes).map_err(|_| SecretError::Random)?;
        // The prefix lets people and scanners recognise what it is.
        let secret = format!("tgt_{}", hex(&bytes));
        let kept = format!("sha256:{}", hex(&digest(secret.as_bytes())));
        return Ok(Made { secret, kept });
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
    Ok(Made { secret: password, kept })
}

impl Verifier {
    pub(super) fn new() -> Result<Verifier, SecretError> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(Verifier { key: key.map_err(|_| SecretError::Random)?, next: Mutex::new(None) })
    }

    /// Whether one more slow hash may be computed now.
    fn may_compute(&self) -> bool {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_some_and(|next| next > now) {
            return false;
        }
        *next = Some(now + Duration::from_secs(1) / PER_SECOND);
        true
    }
}

impl Kept {
    /// Reads what a file says.
    pub(super) fn read(text: &str) -> Result<Kept, &'static str> {
        if let Some(hex) = text.strip_prefix("sha256:") {
            let digest = unhex(hex).ok_or("`sha256:` is followed by 64 hexadecimal digits")?;
            return Ok(Kept::Digest(digest));
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
        Ok(Kept::Password { salt, rounds, hash, seen: OnceLock::new() })
    }

    /// Whether both were made of the same secret in the same way.
    pub(super) fn is_same(&self, other: &Kept) -> bool {
        match (self, other) {
            (Kept::Digest(a), Kept::Digest(b)) => a == b,
            (
                Kept::Password { salt: a, rounds: b, hash: c, .. },
                Kept::Password { salt: x, rounds: y, hash: z, .. },
            ) => (a, b, c) == (x, y, z),
            _ => false,
        }
    }

    /// Takes over what `other` has learnt; both are kept alike.
    pub(super) fn inherit(&self, other: &Kept) {
        if let (Kept::Password { seen, .. }, Kept::Password { seen: before, .. }) = (self, other)
            && let Some(before) = before.get()
        {
            let _ = seen.set(*before);
        }
    }

    /// Compares. A slow hash is computed only where `slow` allows it.
    pub(super) fn compare(&self, secret: &[u8], verifier: &Verifier, slow: impl Fn() -> bool) -> Outcome {
        match self {
            Kept::Digest(kept) => said(digest(secret).ct_eq(kept).into()),
            Kept::Password { salt, rounds, hash, seen } => {
                // Before anything is compared: whoever has failed too often learns nothing.
                if !slow() {
                    return Outcome::Unsaid;
                }
                let keyed = keyed(&verifier.key, secret);
                if let Some(seen) = seen.get() {
                    return said(keyed.ct_eq(seen).into());
                }
                if !verifier.may_compute() {
                    return Outcome::Unsaid;
                }
                let right = pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, *rounds, salt, secret, hash).is_ok();
                if right {
                    let _ = seen.set(keyed);
                }
                said(right)
            }
        }
    }
}

const fn said(right: bool) -> Outcome {
    if right { Outcome::Right } else { Outcome::Wrong }
}

pub(super) fn digest(bytes: &[u8]) -> [u8; LEN] {
    first(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn keyed(key: &hmac::Key, bytes: &[u8]) -> [u8; LEN] {
    first(hmac::sign(key, bytes).as_ref())
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
