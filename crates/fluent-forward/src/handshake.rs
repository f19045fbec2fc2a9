//! The handshake: who has the shared key, and the password of a user, may send.
//!
//! The server sends `["HELO", {nonce, auth, keepalive}]`, the client
//! `["PING", hostname, salt, digest of the key, user, digest of the password]`, the server
//! `["PONG", ok, reason, hostname, digest of the key]`. Digests are SHA-512 in hexadecimal digits.

use crate::msgpack::{Cursor, MsgpackError, Token};
use ring::digest::{Context, SHA512};

/// The longest `PING`, in bytes.
pub(crate) const MAX_PING: usize = 4096;
/// The length of the server's random values, in bytes.
const NONCE: usize = 16;

/// The clients that may send.
#[derive(Clone)]
pub struct Authentication {
    /// The key that server and clients have.
    pub shared_key: String,
    /// Users with their passwords; none, where the key suffices.
    pub users: Vec<(String, String)>,
    /// The server's name. Clients with the same name are refused by the protocol, so that a server does not send to itself.
    pub hostname: String,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authentication").field("hostname", &self.hostname).finish_non_exhaustive()
    }
}

/// The random values of one handshake.
#[derive(Debug, Clone, Copy)]
pub struct Nonces {
    /// For the digests of the key.
    pub nonce: [u8; NONCE],
    /// For the digest of the password.
    pub salt: [u8; NONCE],
}

impl Nonces {
    /// New ones.
    #[must_use]
    pub fn random() -> Nonces {
        Nonces { nonce: rand::random(), salt: rand::random() }
    }
}

/// One handshake.
pub struct Handshake<'a> {
    authentication: &'a Authentication,
    nonces: Nonces,
}

/// Why a client may not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// It sent something else than a `PING`.
    #[error("the client sent no PING")]
    NoPing,
    /// It has another key.
    #[error("shared_key mismatch")]
    SharedKey,
    /// It has another password, or there is no such user.
    #[error("username/password mismatch")]
    Password,
}

impl From<MsgpackError> for HandshakeError {
    fn from(_: MsgpackError) -> HandshakeError {
        HandshakeError::NoPing
    }
}

impl<'a> Handshake<'a> {
    /// A handshake with these random values.
    #[must_use]
    pub fn new(authentication: &'a Authentication, nonces: Nonces) -> Handshake<'a> {
        Handshake { authentication, nonces }
    }

    /// The server's first message.
    #[must_use]
    pub fn helo(&self) -> Vec<u8> {
        let mut out = vec![0x92];
        put_text(&mut out, b"HELO");
        out.push(0x83);
        put_text(&mut out, b"nonce");
        put_bytes(&mut out, &self.nonces.nonce);
        put_text(&mut out, b"auth");
        // An empty one says that no password is needed.
        let salt = if self.authentication.users.is_empty() { &[][..] } else { &self.nonces.salt };
        put_bytes(&mut out, salt);
        put_text(&mut out, b"keepalive");
        out.push(0xc3);
        out
    }

    /// Checks the client's `PING`: the server's answer, and whether the client may send.
    pub fn pong(&self, ping: &[u8]) -> (Vec<u8>, Result<(), HandshakeError>) {
        let salt = self.check(ping);
        let outcome = salt.map(|_| ());
        let mut out = vec![0x95];
        put_text(&mut out, b"PONG");
        out.push(if outcome.is_ok() { 0xc3 } else { 0xc2 });
        put_text(&mut out, outcome.err().map_or(String::new(), |error| error.to_string()).as_bytes());
        let Authentication { hostname, shared_key, .. } = self.authentication;
        match salt {
            Ok(salt) => {
                put_text(&mut out, hostname.as_bytes());
                let parts = [salt, hostname.as_bytes(), &self.nonces.nonce, shared_key.as_bytes()];
                put_text(&mut out, digest(parts).as_bytes());
            }
            Err(_) => {
                put_text(&mut out, b"");
                put_text(&mut out, b"");
            }
        }
        (out, outcome)
    }

    /// The salt of a client that may send.
    fn check<'p>(&self, ping: &'p [u8]) -> Result<&'p [u8], HandshakeError> {
        let mut cursor = Cursor::new(ping);
        if cursor.token()? != Token::Array(6) || cursor.text()? != b"PING" {
            return Err(HandshakeError::NoPing);
        }
        let hostname = cursor.text()?;
        let salt = cursor.text()?;
        let key_digest = cursor.text()?;
        let user = cursor.text()?;
        let password_digest = cursor.text()?;
        let Authentication { shared_key, users, .. } = self.authentication;
        let expected = digest([salt, hostname, &self.nonces.nonce, shared_key.as_bytes()]);
        if !is_equal(expected.as_bytes(), key_digest) {
            return Err(HandshakeError::SharedKey);
        }
        let is_known = |(name, password): &(String, String)| {
            let expected = digest([&self.nonces.salt, name.as_bytes(), password.as_bytes(), b""]);
            // Both are compared for every user: the time says nothing of who there is.
            is_equal(name.as_bytes(), user) & is_equal(expected.as_bytes(), password_digest)
        };
        let is_allowed = users.iter().fold(users.is_empty(), |found, user| found | is_known(user));
        if is_allowed { Ok(salt) } else { Err(HandshakeError::Password) }
    }
}

/// SHA-512 of the parts, in hexadecimal digits.
fn digest(parts: [&[u8]; 4]) -> String {
    let mut context = Context::new(&SHA512);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two values are equal, in a time that depends on their lengths only.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |differences, (one, other)| differences | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// A string of fewer than 256 bytes; longer ones are cut.
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = text.get(..255).unwrap_or(text);
    out.extend_from_slice(&[0xd9, u8::try_from(text.len()).unwrap_or(u8::MAX)]);
    out.extend_from_slice(text);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&[0xc4, u8::try_from(bytes.len()).unwrap_or(u8::MAX)]);
    out.extend_from_slice(bytes);
}

/// The acknowledgement of the message that the client named `chunk`: `{"ack": chunk}`.
pub(crate) fn put_ack(out: &mut Vec<u8>, chunk: &[u8]) {
    out.push(0x81);
    out.extend_from_slice(b"\xa3ack");
    let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
    out.push(0xda);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(chunk);
}

#[cfg(test)]
mod tests;
