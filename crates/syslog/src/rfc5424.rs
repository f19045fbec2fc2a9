//! RFC 5424, behind the PRI.

use crate::message::{Message, token};
use tidegate_wire::time::parse_rfc3339;

const BOM: &[u8] = &[0xef, 0xbb, 0xbf];

/// Reads a message; `None` if it is none of this format.
pub(crate) fn parse(bytes: &[u8]) -> Option<Message<'_>> {
    let (version, rest) = token(bytes)?;
    let is_version = (1..=3).contains(&version.len()) && version.first().is_some_and(|digit| *digit != b'0');
    let version = std::str::from_utf8(version).ok().filter(|_| is_version)?.parse().ok()?;
    let (time, rest) = token(rest)?;
    let time_ns = match time {
        b"-" => None,
        time => Some(parse_rfc3339(time)?),
    };
    let (hostname, rest) = token(rest)?;
    let (app_name, rest) = token(rest)?;
    let (proc_id, rest) = token(rest)?;
    // Some senders end with the MSGID where there is nothing else.
    let (msg_id, rest) = token(rest).unwrap_or((rest, b"-"));
    let (structured_data, text) = structured_data(rest);
    let nil = |value: &'_ [u8]| value == b"-";
    let known = |value| if nil(value) { &[][..] } else { value };
    Some(Message {
        version: Some(version),
        time_ns,
        hostname: known(hostname),
        app_name: known(app_name),
        proc_id: known(proc_id),
        msg_id: known(msg_id),
        structured_data,
        text: text.strip_prefix(BOM).unwrap_or(text),
        ..Message::default()
    })
}

/// The elements, and the text. Where the elements are malformed, all is text.
fn structured_data(bytes: &[u8]) -> (&[u8], &[u8]) {
    let after = match bytes {
        [b'-', after @ ..] => after,
        [b'[', ..] => match elements_len(bytes).and_then(|len| bytes.get(len..)) {
            Some(after) => after,
            None => return (&[], bytes),
        },
        text => return (&[], text),
    };
    let elements = bytes.get(..bytes.len() - after.len()).filter(|elements| *elements != b"-");
    match after {
        [] => (elements.unwrap_or_default(), &[]),
        [b' ', text @ ..] => (elements.unwrap_or_default(), text),
        _ => (&[], bytes),
    }
}

fn elements_len(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while rest.first() == Some(&b'[') {
        let mut parameters = Parameters::of(rest)?;
        while parameters.next()?.is_some() {}
        rest = parameters.rest;
    }
    Some(bytes.len() - rest.len())
}

/// A parameter of structured data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parameter<'a> {
    /// The SD-ID of its element.
    pub(crate) id: &'a [u8],
    /// Its name; empty where the element has no parameters.
    pub(crate) name: &'a [u8],
    /// Its value, with the escapes.
    pub(crate) value: &'a [u8],
}

/// The parameters of one element.
struct Parameters<'a> {
    id: &'a [u8],
    rest: &'a [u8],
    is_first: bool,
    is_ended: bool,
}

/// All parameters of well-formed structured data.
pub(crate) fn parameters(bytes: &[u8]) -> impl Iterator<Item = Parameter<'_>> {
    let mut rest = bytes;
    let mut element: Option<Parameters<'_>> = None;
    std::iter::from_fn(move || {
        loop {
            let Some(current) = &mut element else {
                element = Some(Parameters::of(rest)?);
                continue;
            };
            match current.next()? {
                Some(parameter) => return Some(parameter),
                None => {
                    rest = current.rest;
                    element = None;
                }
            }
        }
    })
}

impl<'a> Parameters<'a> {
    /// Those of the element at the start; `None` if there is none.
    fn of(bytes: &'a [u8]) -> Option<Parameters<'a>> {
        let rest = bytes.strip_prefix(b"[")?;
        let end = rest.iter().position(|byte| matches!(byte, b' ' | b']'))?;
        let (id, rest) = rest.split_at_checked(end).filter(|(id, _)| is_name(id))?;
        Some(Parameters { id, rest, is_first: true, is_ended: false })
    }

    /// The next one; `None` when it is malformed, and `Some(None)` at the end of the element.
    fn next(&mut self) -> Option<Option<Parameter<'a>>> {
        if self.is_ended {
            return Some(None);
        }
        if let Some(rest) = self.rest.strip_prefix(b"]") {
            (self.rest, self.is_ended) = (rest, true);
            // An element without parameters says something too.
            let bare = Parameter { id: self.id, name: &[], value: &[] };
            return Some(self.is_first.then_some(bare));
        }
        self.is_first = false;
        let rest = self.rest.strip_prefix(b" ")?;
        let equals = memchr::memchr(b'=', rest)?;
        let (name, rest) = rest.split_at_checked(equals).filter(|(name, _)| is_name(name))?;
        let rest = rest.strip_prefix(b"=\"")?;
        let end = value_len(rest)?;
        self.rest = rest.get(end + 1..)?;
        Some(Some(Parameter { id: self.id, name, value: rest.get(..end)? }))
    }
}

/// The length of a value up to its quote.
fn value_len(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', bytes.get(from..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at);
        }
        // Whatever is behind a backslash ends nothing.
        from = at + 2;
    }
}

/// A value without its escapes, in pieces.
pub(crate) fn unescaped(value: &[u8], mut put: impl FnMut(&[u8])) {
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let escapes = rest.get(at + 1).is_some_and(|byte| matches!(byte, b'"' | b'\\' | b']'));
        // A backslash before anything else stands for itself.
        put(rest.get(..if escapes { at } else { at + 1 }).unwrap_or_default());
        rest = rest.get(at + 1..).unwrap_or_default();
        if escapes {
            put(rest.get(..1).unwrap_or_default());
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    put(rest);
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"'))
}
