//! The request line once more, from the window in which the head came: it says what a body's actions may leave
//! out, and a ticket has no room for it.

use std::borrow::Cow;

/// A request's line, and for whom it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Behind the prefix.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) host: &'a str,
}

impl<'a> Request<'a> {
    /// Of a head that was let in, so its form is known to be right.
    pub(super) fn of(head: &'a [u8], prefix: u16) -> Request<'a> {
        let head = str::from_utf8(head).unwrap_or_default().trim_ascii_start();
        let mut lines = head.split('\n').map(str::trim_ascii);
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Request::default() };
        // An absolute target names the host first.
        let (authority, target) = match target.split_once("://") {
            Some((_, rest)) if !target.starts_with('/') => {
                rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()))
            }
            _ => ("", target),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |line: &'a str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then_some(value.trim_ascii())
        };
        let host = if authority.is_empty() { lines.find_map(header).unwrap_or_default() } else { authority };
        Request { method, path: path.get(usize::from(prefix)..).unwrap_or_default(), query, host }
    }

    /// The parts of the path.
    pub(super) fn parts(&self) -> impl DoubleEndedIterator<Item = &'a str> + Clone {
        self.path.split('/').filter(|part| !part.is_empty())
    }

    /// The value of a parameter, as people read it.
    pub(super) fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        parameter(self.query, name)
    }
}

/// The value of a parameter of a query, as people read it.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(known, _)| *known == name).map(|(_, value)| decoded(value, true)).next()
}

/// A text without percent escapes, and with spaces for `+` where it is of a query.
pub(super) fn decoded(text: &str, query: bool) -> Cow<'_, str> {
    if !(text.contains('%') || query && text.contains('+')) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = behind.first_chunk().filter(|_| *first == b'%').and_then(|[high, low]| {
            let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            Some(digit(high)? << 4 | digit(low)?)
        });
        let (byte, len) = match escaped {
            Some(byte) => (byte, 3),
            None if *first == b'+' && query => (b' ', 1),
            None => (*first, 1),
        };
        bytes.push(byte);
        rest = rest.get(len..).unwrap_or_default();
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Appends `text` as a JSON string.
pub(super) fn json(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_and_the_host_are_found_again() {
        let head = b"POST /es/logs-%7Bx%7D/_bulk?pipeline=a%20b HTTP/1.1\r\nA: b\r\nhOST: es:9200\r\n\r\n";
        let request = Request::of(head, 3);
        let wanted =
            Request { method: "POST", path: "/logs-%7Bx%7D/_bulk", query: "pipeline=a%20b", host: "es:9200" };
        assert_eq!(request, wanted);
        assert_eq!(request.parameter("pipeline").unwrap(), "a b");
        assert_eq!(decoded(request.parts().next().unwrap(), false), "logs-{x}");
        let absolute = Request::of(b"GET http://es:9200/_bulk HTTP/1.1\r\nHost: other\r\n\r\n", 0);
        assert_eq!((absolute.path, absolute.host), ("/_bulk", "es:9200"));
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(decoded("100%", false), "100%");
        assert_eq!(decoded("a%zz+b", true), "a%zz b");
        assert_eq!(decoded("a+b", false), "a+b");
    }
}
