#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::testing::Value;

const NONCES: Nonces = Nonces { nonce: [7; NONCE], salt: [9; NONCE] };

fn authentication(users: &[(&str, &str)]) -> Authentication {
    let users = users.iter().map(|(name, password)| ((*name).to_owned(), (*password).to_owned())).collect();
    Authentication { shared_key: "secret".into(), users, hostname: "gate".into() }
}

/// As the specification says, written apart from the code.
fn sha512(text: &[u8]) -> String {
    let digest = ring::digest::digest(&SHA512, text);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ping(key: &str, user: &str, password: &str) -> Vec<u8> {
    let key = sha512(&[b"salt", &b"client"[..], &NONCES.nonce, key.as_bytes()].concat());
    let password = match user {
        "" => String::new(),
        _ => sha512(&[&NONCES.salt, user.as_bytes(), password.as_bytes()].concat()),
    };
    let members = ["PING", "client", "salt", &key, user, &password].map(Value::text);
    Value::Array(members.to_vec()).encoded()
}

fn outcome(users: &[(&str, &str)], ping: &[u8]) -> (Vec<u8>, Result<(), HandshakeError>) {
    Handshake::new(&authentication(users), NONCES).pong(ping)
}

#[test]
fn the_key_and_the_password_decide() {
    let users = [("anna", "one"), ("ben", "two")];
    for (users, key, user, password, expected) in [
        (&[][..], "secret", "", "", Ok(())),
        (&[], "other", "", "", Err(HandshakeError::SharedKey)),
        (&users, "secret", "ben", "two", Ok(())),
        (&users, "secret", "ben", "one", Err(HandshakeError::Password)),
        (&users, "secret", "carl", "two", Err(HandshakeError::Password)),
        (&users, "secret", "", "", Err(HandshakeError::Password)),
        (&users, "other", "ben", "two", Err(HandshakeError::SharedKey)),
    ] {
        let (pong, result) = outcome(users, &ping(key, user, password));
        assert_eq!(result, expected, "{key} {user}");
        let mut pong = Cursor::new(&pong);
        assert_eq!(pong.token(), Ok(Token::Array(5)));
        assert_eq!(pong.text(), Ok(&b"PONG"[..]));
        assert_eq!(pong.token(), Ok(Token::Bool(expected.is_ok())));
        let reason = expected.err().map_or(String::new(), |error| error.to_string());
        assert_eq!(pong.text(), Ok(reason.as_bytes()));
        let digest = sha512(&[b"salt", &b"gate"[..], &NONCES.nonce, b"secret"].concat());
        // A client that may not send learns nothing of the key.
        let (name, digest) = if expected.is_ok() { ("gate", digest) } else { ("", String::new()) };
        assert_eq!((pong.text(), pong.text()), (Ok(name.as_bytes()), Ok(digest.as_bytes())));
        assert!(pong.rest().is_empty());
    }
}

#[test]
fn helo_asks_for_a_password_only_where_there_are_users() {
    for users in [&[][..], &[("anna", "one")]] {
        let helo = Handshake::new(&authentication(users), NONCES).helo();
        let salt = if users.is_empty() { vec![] } else { NONCES.salt.to_vec() };
        let options = Value::map([
            ("nonce", Value::Bytes(NONCES.nonce.to_vec())),
            ("auth", Value::Bytes(salt)),
            ("keepalive", Value::Bool(true)),
        ]);
        let mut cursor = Cursor::new(&helo);
        assert_eq!((cursor.token(), cursor.text()), (Ok(Token::Array(2)), Ok(&b"HELO"[..])));
        let Value::Map(expected) = options else { unreachable!() };
        assert_eq!(cursor.token(), Ok(Token::Map(3)));
        for (key, value) in &expected {
            let Value::Text(key) = key else { unreachable!() };
            assert_eq!(cursor.text(), Ok(&key[..]));
            assert_eq!(cursor.value().map(|bytes| bytes.to_vec()), Ok(value.encoded()));
        }
        assert!(cursor.rest().is_empty());
    }
}

#[test]
fn anything_else_is_no_ping() {
    for bytes in [&[][..], &[0xc0], &[0x96], &Value::Array(vec![Value::text("PING")]).encoded()] {
        assert_eq!(outcome(&[], bytes).1, Err(HandshakeError::NoPing));
    }
}

#[test]
fn an_acknowledgement_is_a_map_with_the_chunk() {
    let mut out = Vec::new();
    put_ack(&mut out, b"abc=");
    let mut cursor = Cursor::new(&out);
    assert_eq!(
        (cursor.token(), cursor.text(), cursor.text()),
        (Ok(Token::Map(1)), Ok(&b"ack"[..]), Ok(&b"abc="[..]))
    );
    assert!(cursor.rest().is_empty());
}
