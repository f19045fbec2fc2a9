//! `ParseCEF`: the Common Event Format of ArcSight.

use super::{Texts, all, close_all, converter, open_entry, required};
use crate::functions::encoded::MAP;
use crate::memory::Room;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// The header and the extensions of an event, wherever it begins in the text. Output: the text, 200 bytes for the names of the
/// header, and 28 bytes for each extension.
pub(super) static PARSE_CEF: Signature =
    converter("ParseCEF", &[required("target", Type::Text)], Type::Map, |machine, arguments| {
        let [target] = all::<1>(arguments)?;
        let target = machine.text(target)?;
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        event(contents.get(target), &mut room)?;
        Ok(Value::Map(machine.memory.since(mark)))
    });

/// The fields of the header behind the version.
const HEADER: [&[u8]; 6] = [
    b"cef.device_vendor",
    b"cef.device_product",
    b"cef.device_version",
    b"cef.device_event_class_id",
    b"cef.name",
    b"cef.severity",
];

fn event(text: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
    let start = memchr::memmem::find(text, b"CEF:").ok_or(Failure::Invalid("`CEF:` is not in the text"))?;
    let mut rest = text.get(start + 4..);
    let version = field(&mut rest).unwrap_or_default();
    if version.is_empty() {
        return Err(Failure::Invalid("the CEF message has no version"));
    }
    let mut texts = Texts::new(room);
    texts.put(b"cef.version", version)?;
    for name in HEADER {
        let value = field(&mut rest).ok_or(Failure::Invalid("the CEF header has fewer than 7 fields"))?;
        unescaped(value, |next| matches!(next, b'|' | b'\\').then_some(next), &mut texts)?;
        texts.entry(name)?;
    }
    texts.end()?;
    let entry = open_entry(room, b"cef.extensions", MAP)?;
    extensions(rest.unwrap_or_default(), room)?;
    close_all(room, entry)
}

/// The next field of the header, up to a bar without a backslash before it.
fn field<'t>(rest: &mut Option<&'t [u8]>) -> Option<&'t [u8]> {
    let text = (*rest)?;
    let mut at = 0;
    loop {
        match text.get(at..).unwrap_or_default() {
            [b'\\', b'|' | b'\\', ..] => at += 2,
            [] | [b'|', ..] => break,
            _ => at += 1,
        }
    }
    *rest = text.get(at + 1..);
    text.get(..at)
}

/// Appends `text` with what `meaning` returns for characters behind a backslash.
fn unescaped(
    text: &[u8],
    meaning: impl Fn(u8) -> Option<u8>,
    texts: &mut Texts<'_, '_>,
) -> Result<(), Failure> {
    let mut rest = text;
    loop {
        let end = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        let (plain, behind) = rest.split_at(end);
        texts.text(plain)?;
        rest = match behind {
            [] => return Ok(()),
            [_, next, behind @ ..] if let Some(byte) = meaning(*next) => {
                texts.text(&[byte])?;
                behind
            }
            [backslash, behind @ ..] => {
                texts.text(&[*backslash])?;
                behind
            }
        };
    }
}

/// Appends the extensions: `key=value`, where a value goes on to the next key.
fn extensions(text: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
    let mut texts = Texts::new(room);
    let mut current: Option<(&[u8], usize)> = None;
    let mut at = 0;
    while at < text.len() {
        let begins = at == 0 || text.get(at - 1) == Some(&b' ');
        let Some(len) = begins.then(|| key_len(text.get(at..).unwrap_or_default())).flatten() else {
            at =
                memchr::memchr(b' ', text.get(at..).unwrap_or_default()).map_or(text.len(), |to| at + to + 1);
            continue;
        };
        if let Some((key, start)) = current {
            extension(key, text.get(start..at).unwrap_or_default(), &mut texts)?;
        }
        current = Some((text.get(at..at + len).unwrap_or_default(), at + len + 1));
        at += len + 1;
    }
    if let Some((key, start)) = current {
        extension(key, text.get(start..).unwrap_or_default(), &mut texts)?;
    }
    texts.end()
}

/// The length of the key at the start of `text`; `None` where there is none.
fn key_len(text: &[u8]) -> Option<usize> {
    let len = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
    (len > 0 && text.get(len) == Some(&b'=')).then_some(len)
}

fn extension(key: &[u8], value: &[u8], texts: &mut Texts<'_, '_>) -> Result<(), Failure> {
    let end = value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    let meaning = |next| match next {
        b'\\' | b'=' => Some(next),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        _ => None,
    };
    unescaped(value.get(..end).unwrap_or_default(), meaning, texts)?;
    texts.entry(key)
}
