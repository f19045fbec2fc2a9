//! The request line once more, from the window in which the head came: it says what a body's actions may leave
//! out, and a ticket has no room for it.

use std::borrow::Cow;
use tidegate_wire::percent;

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
        // Line by line: the value of a header may be in any encoding.
        let text = |line: &'a [u8]| str::from_utf8(line).unwrap_or_default().trim_ascii();
        let mut lines = head.split(|byte| *byte == b'\n').map(text).skip_while(|line| line.is_empty());
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

/// A text without percent escapes, and with spaces for `+` where it is of a query. Escapes that are none stay.
pub(super) fn decoded(text: &str, query: bool) -> Cow<'_, str> {
    if query && text.contains('+') {
        let text = text.replace('+', " ");
        return Cow::Owned(percent::decode(text.as_bytes()).decode_utf8_lossy().into_owned());
    }
    percent::decode(text.as_bytes()).decode_utf8_lossy()
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
        let odd =
            Request::of(b"\r\nPOST /_bulk?pipeline=p HTTP/1.1\r\nX-App: caf\xe9\r\nHost: es\r\n\r\n", 0);
        assert_eq!((odd.path, odd.query, odd.host), ("/_bulk", "pipeline=p", "es"));
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
