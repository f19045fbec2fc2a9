//! Tokens by which an agent takes the place of the one that has its id.

use crate::api_key::KeyHash;
use ring::pbkdf2;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// People choose such tokens, so one hash does not keep them; this many take a worker some milliseconds, which only holders of an
/// enrolment token can have it spend.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).unwrap();
const SALT_BYTES: usize = 16;

/// A token as the state keeps it: what PBKDF2 makes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ReplaceToken {
    salt: [u8; SALT_BYTES],
    iterations: NonZeroU32,
    hash: KeyHash,
}

impl ReplaceToken {
    /// Of the token of an enrolment.
    pub(crate) fn of(token: &str) -> ReplaceToken {
        let salt = rand::random();
        ReplaceToken { salt, iterations: ITERATIONS, hash: derived(token, &salt, ITERATIONS) }
    }

    /// Whether it is this one.
    pub(crate) fn is(&self, token: &str) -> bool {
        self.hash.is(&derived(token, &self.salt, self.iterations))
    }
}

fn derived(token: &str, salt: &[u8], iterations: NonZeroU32) -> KeyHash {
    KeyHash::derived(|hash| {
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, token.as_bytes(), hash);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{decode, encode};

    /// Only the same token is it, also behind a restart; two records of one token are not the same.
    #[test]
    fn a_token_is_known_again() {
        let (one, other) = (ReplaceToken::of("hunter2"), ReplaceToken::of("hunter2"));
        assert_ne!(encode(&one), encode(&other));
        let read: ReplaceToken = decode(&encode(&one)).unwrap();
        assert!(read.is("hunter2") && !read.is("hunter3") && !read.is(""));
        assert!(!String::from_utf8_lossy(&encode(&one)).contains("hunter2"));
    }
}
