//! The opening handshake (RFC 6455, section 4.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use tidegate_http1::Head;

/// The GUID that is appended to a key before it is hashed.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES: usize = 16;

/// Whether a request asks for a WebSocket. The rest of it is looked at by [`accept_key`].
pub(crate) fn is_upgrade(head: &Head<'_>) -> bool {
    has_token(head, "upgrade", b"websocket")
}

/// The value of `Sec-WebSocket-Accept` for a request.
///
/// # Errors
/// Why it is no handshake, as a sentence.
pub(crate) fn accept_key(head: &Head<'_>) -> Result<[u8; 28], &'static str> {
    if !has_token(head, "connection", b"upgrade") {
        return Err("`Upgrade: websocket` goes with `Connection: Upgrade`\n");
    }
    let key = head
        .sole_header("sec-websocket-key")
        .ok()
        .flatten()
        .ok_or("`Sec-WebSocket-Key` must be given once\n")?;
    if STANDARD.decode(key).ok().is_none_or(|key| key.len() != KEY_BYTES) {
        return Err("`Sec-WebSocket-Key` must be 16 bytes in base64\n");
    }
    Ok(accepted(key))
}

/// Whether a request has version 13, the only one.
pub(crate) fn is_known_version(head: &Head<'_>) -> bool {
    head.sole_header("sec-websocket-version").ok().flatten() == Some(b"13")
}

/// The answer that ends HTTP on a connection.
pub(crate) fn switching_protocols(accept: &[u8; 28]) -> Vec<u8> {
    let before = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ";
    [&before[..], accept, b"\r\n\r\n"].concat()
}

fn accepted(key: &[u8]) -> [u8; 28] {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key);
    context.update(GUID);
    let mut accept = [0; 28];
    // 20 bytes are 28 digits.
    let written = STANDARD.encode_slice(context.finish(), &mut accept);
    debug_assert_eq!(written, Ok(accept.len()));
    accept
}

fn has_token(head: &Head<'_>, name: &str, token: &[u8]) -> bool {
    head.values(name).any(|value| {
        value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6455, section 1.3.
    #[test]
    fn the_key_is_accepted_as_in_the_rfc() {
        assert_eq!(&accepted(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
