//! The header `Authorization`: what it presents, decoded into a buffer of the caller's.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The most bytes of credentials, encoded or not. Longer ones are nobody's.
pub const MAX_CREDENTIAL_BYTES: usize = 1 << 10;

/// Some clients pad and some do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The credentials in a request, unchecked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PresentedCredentials<'a> {
    /// `Bearer`, or without a scheme.
    Token(&'a [u8]),
    /// `Basic`: a user's name and a password (RFC 7617).
    Basic(&'a [u8], &'a [u8]),
    /// `ApiKey`: an id and a key, as the clients of Elasticsearch send it.
    ApiKey(&'a [u8], &'a [u8]),
}

/// Reads the value of an `Authorization` header; nothing when it cannot be read. Decodes into `scratch`.
pub fn presented<'a>(
    value: &'a [u8],
    scratch: &'a mut [u8; MAX_CREDENTIAL_BYTES],
) -> Option<PresentedCredentials<'a>> {
    let value = value.trim_ascii();
    if value.is_empty()
        || value.len() > MAX_CREDENTIAL_BYTES
        || !value.iter().all(|byte| matches!(byte, b' '..=b'~'))
    {
        return None;
    }
    let Some(blank) = value.iter().position(|byte| *byte == b' ') else {
        return (!is_scheme(value)).then_some(PresentedCredentials::Token(value));
    };
    let (scheme, rest) = value.split_at(blank);
    let rest = rest.trim_ascii_start();
    // No scheme has a second blank: `Digest` and its like have parameters.
    if rest.contains(&b' ') {
        return None;
    }
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(PresentedCredentials::Token(rest));
    }
    let pair: for<'p> fn(&'p [u8], &'p [u8]) -> PresentedCredentials<'p> =
        if scheme.eq_ignore_ascii_case(b"basic") {
            |name, password| PresentedCredentials::Basic(name, password)
        } else if scheme.eq_ignore_ascii_case(b"apikey") {
            |id, key| PresentedCredentials::ApiKey(id, key)
        } else {
            return None;
        };
    let len = BASE64.decode_slice(rest, scratch.as_mut_slice()).ok()?;
    let decoded = scratch.get(..len)?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(pair(decoded.get(..colon)?, decoded.get(colon + 1..)?))
}

/// Whether a value says that it has a name and a password.
pub(super) fn is_basic(value: &[u8]) -> bool {
    let scheme = value.trim_ascii_start().split(|byte| *byte == b' ').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"basic")
}

/// A scheme with nothing behind it is not a token.
fn is_scheme(value: &[u8]) -> bool {
    [b"bearer".as_slice(), b"basic", b"apikey"].iter().any(|scheme| value.eq_ignore_ascii_case(scheme))
}
