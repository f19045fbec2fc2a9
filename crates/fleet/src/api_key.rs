//! API keys of agents and tokens of enrolment: an id, and a secret that is kept as its hash.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Write as _;
use subtle::ConstantTimeEq as _;

/// Bytes of a secret: nobody guesses 128 bits, so one SHA-256 keeps it as well as a slow hash would.
const SECRET_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// The SHA-256 of a secret, or a hash as long.
#[derive(Clone, Copy)]
pub struct KeyHash([u8; HASH_BYTES]);

/// A new secret: its text is for its owner alone.
pub struct NewSecret(String);

impl KeyHash {
    /// Of the secret that a request presents.
    pub fn of(secret: &[u8]) -> KeyHash {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(digest::digest(&digest::SHA256, secret).as_ref());
        KeyHash(hash)
    }

    /// The one that `derive` fills in, which starts as zeros.
    pub(crate) fn derived(derive: impl FnOnce(&mut [u8])) -> KeyHash {
        let mut hash = [0; HASH_BYTES];
        derive(&mut hash);
        KeyHash(hash)
    }

    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is the hash of the same secret; takes as long whatever the answer.
    pub fn is(&self, other: &KeyHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl NewSecret {
    /// Made by chance.
    pub fn random() -> NewSecret {
        NewSecret(URL_SAFE_NO_PAD.encode(rand::random::<[u8; SECRET_BYTES]>()))
    }

    /// Its hash, which is what is kept.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// The text that clients present behind `ApiKey`.
    pub fn token(&self, id: &str) -> String {
        STANDARD.encode(format!("{id}:{}", self.0))
    }
}

/// A new id of a token.
pub fn random_id() -> String {
    loop {
        let id = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 15]>());
        // A command line takes a hyphen for an option.
        if !id.starts_with('-') {
            return id;
        }
    }
}

impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * HASH_BYTES);
        for byte in self.0 {
            // A string takes everything.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut hash = [0; HASH_BYTES];
        let digits = text.as_bytes().chunks(2);
        let bytes = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
        if text.len() != 2 * HASH_BYTES {
            return Err(serde::de::Error::custom("a hash has 64 hexadecimal digits"));
        }
        for (place, byte) in hash.iter_mut().zip(bytes) {
            *place = byte.ok_or_else(|| serde::de::Error::custom("a hash has hexadecimal digits"))?;
        }
        Ok(KeyHash(hash))
    }
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are arguments of commands.
    #[test]
    fn no_id_looks_like_an_option() {
        assert!((0..10_000).map(|_| random_id()).all(|id| id.len() == 20 && !id.starts_with('-')));
    }
}
