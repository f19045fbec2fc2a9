//! Where a request came from, as headers say that proxies add.

use std::net::{IpAddr, SocketAddr};

/// An address and a port; no port where it is 0.
pub type Address = (IpAddr, u16);

/// How a header's value says where the client is.
pub type ReadAddress = fn(&[u8]) -> Option<Address>;

/// The headers that say where the client is, in the order in which they are believed, and how each is read.
pub const HEADERS: [(&str, ReadAddress); 3] =
    [("forwarded", first_forwarded), ("x-real-ip", parse), ("x-forwarded-for", first_of_list)];

/// Reads an address, with a port or without. An IPv4 address that is mapped into IPv6 is the IPv4 address.
#[must_use]
pub fn parse(text: &[u8]) -> Option<Address> {
    let text = str::from_utf8(text).ok()?;
    if text.starts_with('[') || text.contains('.') && text.contains(':') && !text.contains("::") {
        let address: SocketAddr = text.parse().ok()?;
        return Some((address.ip().to_canonical(), address.port()));
    }
    let address: IpAddr = text.parse().ok()?;
    Some((address.to_canonical(), 0))
}

/// The first of a list, which is the farthest.
fn first_of_list(text: &[u8]) -> Option<Address> {
    parse(text.split(|byte| *byte == b',').next()?.trim_ascii())
}

/// The client, from the first part of a `Forwarded` header (RFC 7239).
fn first_forwarded(text: &[u8]) -> Option<Address> {
    let first = text.split(|byte| *byte == b',').next()?;
    let mut found = None;
    for pair in first.split(|byte| *byte == b';') {
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let (key, value) = pair.split_at_checked(equals)?;
        let value = value.get(1..)?.trim_ascii();
        if key.trim_ascii().eq_ignore_ascii_case(b"for") {
            let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            found = Some(inside.unwrap_or(value));
        }
    }
    parse(found?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_where_the_client_is() {
        let read =
            |header: usize, value: &str| HEADERS.get(header).and_then(|(_, read)| read(value.as_bytes()));
        let v4 = |last: u8| IpAddr::from([192, 0, 2, last]);
        assert_eq!(read(2, "192.0.2.1, 10.0.0.1"), Some((v4(1), 0)));
        assert_eq!(read(1, "192.0.2.2:81"), Some((v4(2), 81)));
        assert_eq!(read(0, "by=x; For=\"192.0.2.3:82\";proto=http, for=192.0.2.9"), Some((v4(3), 82)));
        assert_eq!(read(1, "::ffff:192.0.2.4"), Some((v4(4), 0)));
        assert_eq!(read(0, "for=\"[::ffff:192.0.2.5]:80\""), Some((v4(5), 80)));
        let v6 = "2001:db8::1".parse().unwrap();
        assert_eq!(read(0, "for=\"[2001:db8::1]:80\""), Some((v6, 80)));
        assert_eq!(read(1, "2001:db8::1"), Some((v6, 0)));
        for none in ["", "somebody", "=;for=", "for=unknown", ",", "1.2.3.4:x", "[::1"] {
            assert_eq!((0..3).find_map(|header| read(header, none)), None, "{none}");
        }
    }
}
