//! The request target: which path, which query, and for whom (RFC 9112, section 3.2).

/// A request target, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestTarget<'a> {
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    /// Only in an absolute target.
    pub(super) authority: Option<&'a str>,
}

/// Takes apart the target of any method but CONNECT. `None` when it has no known form, or holds a
/// character that RFC 3986 does not allow there.
pub(super) fn target<'a>(method: &str, raw: &'a str) -> Option<RequestTarget<'a>> {
    if raw == "*" {
        return (method == "OPTIONS").then_some(RequestTarget { path: raw, query: None, authority: None });
    }
    if raw.starts_with('/') {
        return path_and_query(raw, None);
    }
    let rest = after_scheme(raw)?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.is_empty() || !is_authority(authority) {
        return None;
    }
    path_and_query(rest, Some(authority))
}

/// Whether `text` can be the host, with or without a port, that a request is addressed to. Percent escapes
/// are allowed there by the letter, and not taken here: no name needs one.
pub(super) fn is_authority(text: &str) -> bool {
    let (valid, port) = if let Some(literal) = text.strip_prefix('[') {
        let Some((address, port)) = literal.split_once(']') else { return false };
        (address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)), port)
    } else {
        let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
        (name.bytes().all(|byte| is_unreserved(byte) || is_delimiter(byte)), port)
    };
    valid && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

fn is_port(text: &str) -> bool {
    text.is_empty() || (text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok())
}

fn path_and_query<'a>(text: &'a str, authority: Option<&'a str>) -> Option<RequestTarget<'a>> {
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let valid = is_valid(path, b"/:@") && query.is_none_or(|query| is_valid(query, EXTRA_QUERY_BYTES));
    let path = if path.is_empty() { "/" } else { path };
    valid.then_some(RequestTarget { path, query, authority })
}

/// Additional characters allowed in a query. The RFC does not allow square brackets, but Prometheus clients have
/// always sent `match[]=`.
const EXTRA_QUERY_BYTES: &[u8] = b"/?:@[]";

fn after_scheme(raw: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let (front, rest) = raw.split_at_checked(scheme.len())?;
        front.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// Whether `text` holds only unreserved characters, delimiters, `more`, and whole percent escapes.
fn is_valid(text: &str, more: &[u8]) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'%' => {
                let mut hex = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                hex() && hex()
            }
            _ => is_unreserved(byte) || is_delimiter(byte) || more.contains(&byte),
        };
        if !good {
            return false;
        }
    }
    true
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_delimiter(byte: u8) -> bool {
    b"!$&'()*+,;=".contains(&byte)
}
