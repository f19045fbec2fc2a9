//! JSON of anybody's making, written with every key once in its object: Elasticsearch refuses a document in which one
//! comes twice, however deep and whether it is indexed or not.
//!
//! An object without duplicate keys is copied unchanged after one pass. Of duplicate keys the last counts, as in
//! almost every JSON parser.

use crate::json;
use tidegate_wire::intake::{Array, MAX_DEPTH, Object, Text, Value};
use tidegate_wire::output::{Full, Output};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Members at a time, those of the objects around them included, of objects that have a key twice. More are left out.
const MAX_MEMBERS: usize = 1024;
/// How deep objects are looked through that have a key twice: each level is read again for those in it. What is
/// deeper becomes a text of JSON.
const MAX_SEARCH_DEPTH: usize = 8;
/// How often an object is read again for a key that it may have already.
const MAX_REREADS: u32 = 64;

/// The members of objects that are being written: each by its name's hash and its place.
#[derive(Debug)]
pub(super) struct MemberNames(Vec<(u64, u32)>);

impl MemberNames {
    pub(super) const BYTES: usize = MAX_MEMBERS * size_of::<(u64, u32)>();

    /// Without room, until there is need.
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Writes `raw`, an object or a list of a checked body. How many members are left out.
    pub(super) fn write(&mut self, raw: &[u8], out: &mut impl Output) -> Result<u64, Full> {
        self.0.clear();
        self.value(Value::of(raw), MAX_SEARCH_DEPTH, out)
    }

    /// Writes an object whose own names must be no paths of fields: what is reserved in them becomes `_`.
    pub(super) fn write_renamed(&mut self, object: Object<'_>, out: &mut impl Output) -> Result<u64, Full> {
        self.0.clear();
        if object.members().any(|(name, _)| is_renamed(name)) {
            self.members(object, true, |names, value, out| names.value(value, MAX_SEARCH_DEPTH - 1, out), out)
        } else {
            self.value(Value::Object(object), MAX_SEARCH_DEPTH, out)
        }
    }

    /// The same of objects within an object, of whose members numbers are written and nothing else.
    pub(super) fn write_numbers(&mut self, object: Object<'_>, out: &mut impl Output) -> Result<u64, Full> {
        self.0.clear();
        let number = |_: &mut Self, value: Value<'_>, out: &mut _| match value {
            Value::Number(number) => Output::put(out, number.raw()).map(|()| 0),
            _ => Output::put(out, b"null").map(|()| 1),
        };
        let inner = |names: &mut Self, value: Value<'_>, out: &mut _| match value {
            Value::Object(object) => names.members(object, true, number, out),
            _ => Output::put(out, b"null").map(|()| 1),
        };
        self.members(object, true, inner, out)
    }

    fn value(&mut self, value: Value<'_>, depth: usize, out: &mut impl Output) -> Result<u64, Full> {
        let raw = match value {
            Value::Null => b"null",
            Value::Bool(true) => b"true",
            Value::Bool(false) => &b"false"[..],
            Value::Number(number) => number.raw(),
            Value::Text(text) => {
                out.put(b"\"")?;
                out.put(text.raw())?;
                b"\""
            }
            Value::Array(array) => array.raw(),
            Value::Object(object) => object.raw(),
        };
        match value {
            Value::Array(_) | Value::Object(_) if !may_repeat(raw) => {}
            Value::Array(_) | Value::Object(_) if depth == 0 => {
                json::string(raw, out)?;
                return Ok(1);
            }
            Value::Array(array) => return self.list(array, depth - 1, out),
            Value::Object(object) => return self.object(object, depth - 1, out),
            _ => {}
        }
        out.put(raw)?;
        Ok(0)
    }

    fn list(&mut self, array: Array<'_>, depth: usize, out: &mut impl Output) -> Result<u64, Full> {
        let mut lost = 0;
        out.put(b"[")?;
        for (place, value) in array.values().enumerate() {
            if place > 0 {
                out.put(b",")?;
            }
            lost += self.value(value, depth, out)?;
        }
        out.put(b"]")?;
        Ok(lost)
    }

    fn object(&mut self, object: Object<'_>, depth: usize, out: &mut impl Output) -> Result<u64, Full> {
        self.members(object, false, |names, value, out| names.value(value, depth, out), out)
    }

    /// Writes the last member of each name, by `write`.
    fn members<O: Output>(
        &mut self,
        object: Object<'_>,
        renamed: bool,
        write: impl Fn(&mut Self, Value<'_>, &mut O) -> Result<u64, Full>,
        out: &mut O,
    ) -> Result<u64, Full> {
        let from = self.0.len();
        let mut lost = self.last_of_each(object, renamed, from);
        let mut next = from;
        out.put(b"{")?;
        for (place, (name, value)) in object.members().enumerate() {
            if self.0.get(next).is_none_or(|(_, kept)| *kept as usize != place) {
                continue;
            }
            if next > from {
                out.put(b",")?;
            }
            next += 1;
            out.put(b"\"")?;
            if renamed && is_renamed(name) {
                for byte in Unescaped::new(name.raw(), name.plain().is_none()) {
                    json::escaped(&[if is_reserved(byte) { b'_' } else { byte }], out)?;
                }
            } else {
                out.put(name.raw())?;
            }
            out.put(b"\":")?;
            lost += write(self, value, out)?;
        }
        self.0.truncate(from);
        out.put(b"}")?;
        Ok(lost)
    }

    /// Puts the places of an object's members on the stack, in their order, the last of each name. How many are not
    /// among them.
    fn last_of_each(&mut self, object: Object<'_>, renamed: bool, from: usize) -> u64 {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(MAX_MEMBERS);
        }
        let mut count = 0u64;
        for (name, _) in object.members() {
            if let Ok(place) = u32::try_from(count)
                && self.0.len() < MAX_MEMBERS
            {
                self.0.push((if renamed { renamed_hash(name) } else { hash(name) }, place));
            }
            count += 1;
        }
        let Some(all) = self.0.get_mut(from..) else { return count };
        // The last of its name comes first, and stays.
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        let mut kept = 0usize;
        for at in 0..all.len() {
            let before = kept.checked_sub(1).and_then(|last| all.get(last)).map(|last| last.0);
            let Some(&one) = all.get(at) else { break };
            if before == Some(one.0) {
                continue;
            }
            if let Some(place) = all.get_mut(kept) {
                *place = one;
                kept += 1;
            }
        }
        self.0.truncate(from + kept);
        if let Some(kept) = self.0.get_mut(from..) {
            kept.sort_unstable_by_key(|one| one.1);
        }
        count.saturating_sub(kept as u64)
    }
}

/// The characters that a leaf field's name must not have.
fn is_reserved(byte: u8) -> bool {
    matches!(byte, b'.' | b'*' | b'"')
}

/// Whether a name must be written otherwise.
fn is_renamed(name: Text<'_>) -> bool {
    Unescaped::new(name.raw(), name.plain().is_none()).any(is_reserved)
}

/// The hash of a name as it is written then.
fn renamed_hash(name: Text<'_>) -> u64 {
    let mut hash = Xxh3::new();
    for byte in Unescaped::new(name.raw(), name.plain().is_none()) {
        hash.update(&[if is_reserved(byte) { b'_' } else { byte }]);
    }
    hash.digest()
}

fn hash(name: Text<'_>) -> u64 {
    match name.plain() {
        Some(plain) => xxh3_64(plain),
        None => {
            let mut hash = Xxh3::new();
            name.pieces(|piece| hash.update(piece));
            hash.digest()
        }
    }
}

/// Whether a key comes twice in an object of `raw`, or may: one look at each byte says so. Where a filter of 256 bits
/// knows a key already, the object is read again, some times; beyond that it is taken for one that has a key twice.
fn may_repeat(raw: &[u8]) -> bool {
    let mut seen = [[0u64; 4]; MAX_DEPTH + 1];
    let mut starts = [0usize; MAX_DEPTH + 1];
    let (mut depth, mut at, mut doubts) = (0usize, 0usize, 0);
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match byte {
            b'{' => {
                depth += 1;
                match (seen.get_mut(depth), starts.get_mut(depth)) {
                    (Some(seen), Some(start)) => (*seen, *start) = ([0; 4], at),
                    _ => return true,
                }
            }
            b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let (before, rest) = raw.split_at_checked(at).unwrap_or((raw, &[]));
                let Some(text) = string(rest) else { return true };
                at += text.len() + 1;
                if !is_key(raw, at) {
                    continue;
                }
                let (Some(seen), Some(start)) = (seen.get_mut(depth), starts.get(depth)) else { return true };
                let [place, bit, ..] = xxh3_64(text).to_le_bytes();
                let (word, bit) = (seen.get_mut(usize::from(place % 4)), 1u64 << (bit % 64));
                let Some(word) = word else { return true };
                if *word & bit != 0 {
                    doubts += 1;
                    if doubts > MAX_REREADS || has_key(before.get(*start..).unwrap_or_default(), text) {
                        return true;
                    }
                }
                *word |= bit;
                if text.contains(&b'\\') {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether `key` is one of the keys in `members`, the beginning of an object's inside.
fn has_key(members: &[u8], key: &[u8]) -> bool {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(&byte) = members.get(at) {
        at += 1;
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(text) = members.get(at..).and_then(string) else { return false };
                at += text.len() + 1;
                if depth == 0 && text == key && is_key(members, at) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether the string that ends before `at` is a key.
fn is_key(raw: &[u8], at: usize) -> bool {
    raw.get(at..).unwrap_or_default().trim_ascii_start().first() == Some(&b':')
}

/// The part before a string's closing quote.
fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return text.get(..at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The bytes of a string of JSON without its escapes. Half of a surrogate pair becomes U+FFFD.
pub(super) struct Unescaped<'a> {
    rest: &'a [u8],
    has_escapes: bool,
    /// The rest of a character written as an escape.
    character: [u8; 4],
    left: std::ops::Range<usize>,
}

impl<'a> Unescaped<'a> {
    pub(super) fn new(raw: &'a [u8], has_escapes: bool) -> Self {
        Self { rest: raw, has_escapes, character: [0; 4], left: 0..0 }
    }

    /// The unit that four digits say, which are taken.
    fn unit(&mut self) -> u32 {
        let (digits, rest) = self.rest.split_at_checked(4).unwrap_or((self.rest, &[]));
        self.rest = rest;
        digits.iter().fold(0, |unit, digit| unit << 4 | char::from(*digit).to_digit(16).unwrap_or(0))
    }
}

impl Iterator for Unescaped<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if let Some(at) = self.left.next() {
            return self.character.get(at).copied();
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte != b'\\' || !self.has_escapes {
            return Some(byte);
        }
        let (&escape, rest) = self.rest.split_first()?;
        self.rest = rest;
        let character = match escape {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit();
                let mut code = unit;
                if (0xd800..0xdc00).contains(&unit)
                    && let Some(low) = self.rest.strip_prefix(b"\\u")
                {
                    let before = std::mem::replace(&mut self.rest, low);
                    let low = self.unit();
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    } else {
                        self.rest = before;
                    }
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => char::from(other),
        };
        self.left = 0..character.encode_utf8(&mut self.character).len();
        self.next()
    }
}
