//! The parts of an address of a page.

use crate::documents::fields::{FieldSet, FieldValue};
use tidegate_wire::intake::Text;

/// Puts the parts of an absolute address.
pub(super) fn put<'a>(fields: &mut FieldSet<'a>, text: Text<'a>) {
    fields.put(b"url.original", FieldValue::Escaped(text.raw()));
    let Some(all) = text.plain() else { return };
    let Some(colon) = all.iter().position(|byte| *byte == b':') else { return };
    let (scheme, rest) = all.split_at_checked(colon).unwrap_or_default();
    let Some(rest) = rest.strip_prefix(b"://") else { return };
    if !scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)) {
        return;
    }
    fields.put(b"url.full", FieldValue::Text(all));
    fields.text(b"url.scheme", scheme);
    let (rest, fragment) = cut(rest, b'#');
    let (rest, query) = cut(rest, b'?');
    let path = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(path).unwrap_or_default();
    let authority = authority.rsplit(|byte| *byte == b'@').next().unwrap_or_default();
    let (domain, port) = match authority.strip_prefix(b"[") {
        Some(six) => {
            let (domain, rest) = cut(six, b']');
            (domain, rest.strip_prefix(b":").unwrap_or_default())
        }
        None => cut(authority, b':'),
    };
    fields.text(b"url.domain", domain);
    if let Some(port @ 1..) = str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok()) {
        fields.put(b"url.port", FieldValue::Int(port.into()));
    }
    fields.text(b"url.query", query);
    for (name, text) in [(&b"url.path"[..], path), (b"url.fragment", fragment)] {
        if !text.is_empty() {
            fields.put(name, FieldValue::Percent(text));
        }
    }
}

/// The parts before and after the first `at`.
fn cut(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    let place = text.iter().position(|byte| *byte == at).unwrap_or(text.len());
    let (before, after) = text.split_at_checked(place).unwrap_or_default();
    (before, after.get(1..).unwrap_or_default())
}
