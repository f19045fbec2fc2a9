//! Routes and authenticates requests by their heads.

use crate::control::Opamp;
use crate::websocket::{accept_key, is_known_version, is_upgrade};
use tidegate_admission::access::{MAX_CREDENTIAL_BYTES, PresentedCredentials, presented};
use tidegate_http1::{Head, Reply};

/// A request that was let in.
#[derive(Debug)]
pub struct Ticket(pub(super) Transport);

/// How an agent sends.
#[derive(Debug)]
pub(super) enum Transport {
    Http {
        is_compressed: bool,
    },
    /// With the value of `Sec-WebSocket-Accept`.
    WebSocket([u8; 28]),
}

/// Decides on a request by its head.
pub(super) fn route(opamp: &Opamp, head: &Head<'_>) -> Result<Ticket, Reply> {
    if head.path() != "/v1/opamp" {
        return Err(Reply::new(404).text("OpAMP is at /v1/opamp\n"));
    }
    if opamp.settings().needs_token && !has_token(opamp, head) {
        return Err(Reply::new(401).headers(&[("WWW-Authenticate", "Bearer")]).text(
            "a token is missing, unknown or revoked; `tidegate fleet collector token create` makes one\n",
        ));
    }
    // Other upgrades are passed over, as RFC 9110, section 7.8, has it.
    if head.method() == "GET" && is_upgrade(head) {
        let accept = accept_key(head).map_err(|error| Reply::new(400).text(error))?;
        if !is_known_version(head) {
            return Err(Reply::new(426)
                .headers(&[("Sec-WebSocket-Version", "13")])
                .text("the version of WebSocket is 13\n"));
        }
        return Ok(Ticket(Transport::WebSocket(accept)));
    }
    if head.method() != "POST" {
        return Err(Reply::new(405)
            .headers(&[("Allow", "POST")])
            .text("an agent opens a WebSocket here, or sends messages by POST\n"));
    }
    let content_type = head.sole_header("content-type").ok().flatten().unwrap_or_default();
    let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !media_type.eq_ignore_ascii_case(b"application/x-protobuf") {
        return Err(Reply::new(415).text("a message has the content type application/x-protobuf\n"));
    }
    match head.sole_header("content-encoding") {
        Ok(None | Some(b"identity" | b"")) => Ok(Ticket(Transport::Http { is_compressed: false })),
        Ok(Some(coding)) if is_gzip(coding) => Ok(Ticket(Transport::Http { is_compressed: true })),
        _ => Err(Reply::new(415).text("a message is compressed with gzip, or not at all\n")),
    }
}

fn is_gzip(coding: &[u8]) -> bool {
    coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
}

/// Whether a request presents a token: as `ApiKey`, or the same text as `Bearer`.
fn has_token(opamp: &Opamp, head: &Head<'_>) -> bool {
    let Ok(Some(value)) = head.sole_header("authorization") else { return false };
    // `Bearer` with the text of an API key is read as one.
    let scheme = value.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    let rewritten = scheme.map(|_| [b"ApiKey ", value.get(7..).unwrap_or_default()].concat());
    let mut scratch = [0; MAX_CREDENTIAL_BYTES];
    match presented(rewritten.as_deref().unwrap_or(value), &mut scratch) {
        Some(PresentedCredentials::ApiKey(id, secret)) => {
            str::from_utf8(id).is_ok_and(|id| opamp.is_token(id, secret))
        }
        _ => false,
    }
}
