//! `URL`: the parts of a URL, as Go's `net/url` finds them, by the names of the semantic conventions.

mod escape;

use super::{all, converter, required};
use crate::any_value::{write_element, write_named, write_pair};
use crate::machine::Machine;
use crate::memory::{Memory, Slice};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use escape::{Part, again, escape, unescape};
use std::net::Ipv6Addr;

pub(super) static CONVERTERS: &[&Signature] = &[&URL];

/// The parts of a URL; of a text that begins with `?`, its parameters, at most 512. Output: six times the text, and 200 bytes
/// for the names; of parameters, six times the text and 12 bytes for each.
static URL: Signature = converter("URL", &[required("uri", Type::Text)], Type::Map, |machine, arguments| {
    let [uri] = all::<1>(arguments)?;
    parts(machine, uri)
});

/// The most parameters of a query.
const PARAMETERS: usize = 512;

const BAD_HOST: Failure = Failure::Invalid("the host of the URL is none");
const BAD_PORT: Failure = Failure::Invalid("the port of the URL is no number");

fn parts(machine: &mut Machine<'_>, uri: &Argument) -> Result<Value, Failure> {
    let uri = machine.text(uri)?;
    let memory = &mut machine.memory;
    match memory.get(uri) {
        [] => Err(Failure::Invalid("the URL is empty")),
        [b'?', ..] => parameters(memory, uri.part(1, uri.len as usize)),
        _ => Url::parse(memory, uri)?.to_map(memory),
    }
}

/// A URL that was taken apart. Empty parts are missing ones.
struct Url {
    /// In lower-case letters.
    scheme: Slice,
    /// The part behind the scheme of a URL without a path.
    opaque: Slice,
    has_authority: bool,
    user: Option<User>,
    /// With the port, decoded.
    host: Slice,
    /// As it is given, and decoded.
    path: (Slice, Slice),
    has_query: bool,
    query: Slice,
    fragment: (Slice, Slice),
}

#[derive(Clone, Copy)]
struct User {
    name: Slice,
    password: Option<Slice>,
}

/// The parts before and behind the first `byte`.
fn cut(memory: &Memory<'_>, text: Slice, byte: u8) -> (Slice, Option<Slice>) {
    match memchr::memchr(byte, memory.get(text)) {
        Some(at) => (text.part(0, at), Some(text.part(at + 1, text.len as usize))),
        None => (text, None),
    }
}

impl Url {
    fn parse(memory: &mut Memory<'_>, text: Slice) -> Result<Url, Failure> {
        let (text, fragment) = cut(memory, text, b'#');
        if memory.get(text).iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return Err(Failure::Invalid("the URL has a control character"));
        }
        let (scheme, rest) = split_scheme(memory, text)?;
        let scheme = lower(memory, scheme)?;
        let (mut rest, query) = cut(memory, rest, b'?');
        let mut url = Url {
            scheme,
            opaque: Slice::EMPTY,
            has_authority: false,
            user: None,
            host: Slice::EMPTY,
            path: (Slice::EMPTY, Slice::EMPTY),
            has_query: query.is_some(),
            query: query.unwrap_or(Slice::EMPTY),
            fragment: (Slice::EMPTY, Slice::EMPTY),
        };
        let bytes = memory.get(rest);
        if !bytes.starts_with(b"/") && scheme.len > 0 {
            url.opaque = rest;
        } else {
            let first = bytes.split(|byte| *byte == b'/').next().unwrap_or_default();
            if memchr::memchr(b':', first).is_some() {
                return Err(Failure::Invalid("the first segment of the path has a colon"));
            }
            let has_scheme = scheme.len > 0;
            if bytes.starts_with(b"//") && (has_scheme || !bytes.starts_with(b"///")) {
                let authority = rest.part(2, rest.len as usize);
                let end = memchr::memchr(b'/', memory.get(authority)).unwrap_or(authority.len as usize);
                rest = authority.part(end, authority.len as usize);
                url.has_authority = true;
                url.authority(memory, authority.part(0, end))?;
            }
            url.path = (rest, unescape(memory, rest, Part::Path)?);
        }
        if let Some(fragment) = fragment {
            url.fragment = (fragment, unescape(memory, fragment, Part::Fragment)?);
        }
        Ok(url)
    }

    /// `user:password@host:port`.
    fn authority(&mut self, memory: &mut Memory<'_>, authority: Slice) -> Result<(), Failure> {
        let end = authority.len as usize;
        let Some(at) = memchr::memrchr(b'@', memory.get(authority)) else {
            self.host = host(memory, self.is_http(memory), authority)?;
            return Ok(());
        };
        self.host = host(memory, self.is_http(memory), authority.part(at + 1, end))?;
        let user = authority.part(0, at);
        let is_user = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'.' | b'_' | b':' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')')
                || matches!(byte, b'*' | b'+' | b',' | b';' | b'=' | b'%' | b'@')
        };
        if !memory.get(user).iter().all(is_user) {
            return Err(Failure::Invalid("the user of the URL has a character that users do not have"));
        }
        let (name, password) = cut(memory, user, b':');
        let name = unescape(memory, name, Part::User)?;
        let password = password.map(|password| unescape(memory, password, Part::User)).transpose()?;
        self.user = Some(User { name, password });
        Ok(())
    }

    fn is_http(&self, memory: &Memory<'_>) -> bool {
        matches!(memory.get(self.scheme), b"http" | b"https")
    }

    fn to_map(&self, memory: &mut Memory<'_>) -> Result<Value, Failure> {
        let original = self.write(memory)?;
        let user = self.user.map(|user| write_user(memory, user)).transpose()?;
        let (domain, port) = split_port(memory, self.host);
        let port = match memory.get(port) {
            [] => None,
            port => Some(str::from_utf8(port).ok().and_then(|port| port.parse().ok()).ok_or(BAD_PORT)?),
        };
        let path = memory.get(self.path.1);
        let extension = memchr::memrchr(b'.', path).map(|at| self.path.1.part(at + 1, path.len()));
        let map = memory.build(|memory| {
            let mut put = |name: &[u8], text: Slice| write_named(name, Value::Text(text), memory);
            put(b"url.original", original)?;
            put(b"url.domain", domain)?;
            put(b"url.scheme", self.scheme)?;
            put(b"url.path", self.path.1)?;
            let mut put_some = |name, text: Option<Slice>| text.map_or(Ok(()), |text| put(name, text));
            put_some(b"url.user_info", user)?;
            put_some(b"url.username", self.user.map(|user| user.name).filter(|name| name.len > 0))?;
            put_some(b"url.password", self.user.and_then(|user| user.password))?;
            put_some(b"url.query", Some(self.query).filter(|query| query.len > 0))?;
            put_some(b"url.fragment", Some(self.fragment.1).filter(|fragment| fragment.len > 0))?;
            put_some(b"url.extension", extension.filter(|extension| extension.len > 0))?;
            port.map_or(Ok(()), |port| write_named(b"url.port", Value::Int(port), memory))
        })?;
        Ok(Value::Map(map))
    }

    /// The URL again, with its parts escaped as they have to be.
    fn write(&self, memory: &mut Memory<'_>) -> Result<Slice, Failure> {
        let user = self.user.map(|user| write_user(memory, user)).transpose()?;
        let host = escape(memory, self.host, Part::Host)?;
        let path = if memory.get(self.path.0) == b"%2A" {
            // Go escapes it elsewhere, but not where it is all of the path.
            self.path.1
        } else {
            again(memory, self.path.0, self.path.1, Part::Path)?
        };
        let fragment = again(memory, self.fragment.0, self.fragment.1, Part::Fragment)?;
        let is_rooted = memory.get(path).starts_with(b"/");
        memory.build(|memory| {
            let start = memory.mark();
            if self.scheme.len > 0 {
                memory.push_slice(self.scheme)?;
                memory.push(b":")?;
            }
            if self.opaque.len > 0 {
                memory.push_slice(self.opaque)?;
            } else {
                let has_host = self.host.len > 0 || self.user.is_some();
                let omits_host = !self.has_authority && is_rooted;
                let is_absolute = self.scheme.len > 0 && !omits_host && path.len > 0;
                if has_host || is_absolute {
                    memory.push(b"//")?;
                }
                if let Some(user) = user {
                    memory.push_slice(user)?;
                    memory.push(b"@")?;
                }
                memory.push_slice(host)?;
                if path.len > 0 && !is_rooted && self.host.len > 0 {
                    memory.push(b"/")?;
                }
                let first = memory.get(path).split(|byte| *byte == b'/').next().unwrap_or_default();
                if memory.since(start).len == 0 && memchr::memchr(b':', first).is_some() {
                    memory.push(b"./")?;
                }
                memory.push_slice(path)?;
            }
            if self.has_query {
                memory.push(b"?")?;
                memory.push_slice(self.query)?;
            }
            if self.fragment.1.len > 0 {
                memory.push(b"#")?;
                memory.push_slice(fragment)?;
            }
            Ok(())
        })
    }
}

/// The scheme before the first colon, and what is behind it.
fn split_scheme(memory: &Memory<'_>, text: Slice) -> Result<(Slice, Slice), Failure> {
    let bytes = memory.get(text);
    let is_first = |byte: &u8| byte.is_ascii_alphabetic();
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let end = bytes.iter().position(|byte| !is_scheme(byte)).unwrap_or(bytes.len());
    match (bytes.get(end), end) {
        (Some(b':'), 0) => Err(Failure::Invalid("the URL has nothing before its first colon")),
        (Some(b':'), _) if bytes.first().is_some_and(is_first) => {
            Ok((text.part(0, end), text.part(end + 1, bytes.len())))
        }
        _ => Ok((Slice::EMPTY, text)),
    }
}

fn lower(memory: &mut Memory<'_>, text: Slice) -> Result<Slice, Failure> {
    if !memory.get(text).iter().any(u8::is_ascii_uppercase) {
        return Ok(text);
    }
    let mark = memory.mark();
    memory.push_slice(text)?;
    memory.since_mut(mark).make_ascii_lowercase();
    Ok(memory.since(mark))
}

/// Nothing, or a colon and digits.
fn is_port(text: &[u8]) -> bool {
    text.strip_prefix(b":").map_or(text.is_empty(), |port| port.iter().all(u8::is_ascii_digit))
}

/// A host with its port, decoded.
fn host(memory: &mut Memory<'_>, is_http: bool, host: Slice) -> Result<Slice, Failure> {
    let bytes = memory.get(host);
    match memchr::memrchr(b'[', bytes) {
        None => {
            let first = memchr::memchr(b':', bytes);
            let colon = if is_http { first } else { memchr::memrchr(b':', bytes) };
            match colon {
                Some(at) if !is_port(bytes.get(at..).unwrap_or_default()) => Err(BAD_PORT),
                _ => unescape(memory, host, Part::Host),
            }
        }
        Some(0) => address(memory, host),
        Some(_) => Err(BAD_HOST),
    }
}

/// `[address%25zone]:port`.
fn address(memory: &mut Memory<'_>, host: Slice) -> Result<Slice, Failure> {
    let end = host.len as usize;
    let close = memchr::memrchr(b']', memory.get(host)).ok_or(BAD_HOST)?;
    let (inside, port) = (host.part(1, close), host.part(close + 1, end));
    if !is_port(memory.get(port)) {
        return Err(BAD_PORT);
    }
    let zone = memchr::memmem::find(memory.get(inside), b"%25").unwrap_or(inside.len as usize);
    let address = unescape(memory, inside.part(0, zone), Part::Host)?;
    let zone = unescape(memory, inside.part(zone, inside.len as usize), Part::Zone)?;
    let is_address = |text: &[u8]| str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    // The zone begins with its percent sign.
    if !is_address(memory.get(address)) || zone.len == 1 {
        return Err(BAD_HOST);
    }
    memory.build(|memory| {
        memory.push(b"[")?;
        memory.push_slice(address)?;
        memory.push_slice(zone)?;
        memory.push(b"]")?;
        memory.push_slice(port)
    })
}

/// A host without brackets, and its port.
fn split_port(memory: &Memory<'_>, host: Slice) -> (Slice, Slice) {
    let bytes = memory.get(host);
    let colon = memchr::memrchr(b':', bytes).filter(|at| is_port(bytes.get(*at..).unwrap_or_default()));
    let end = colon.unwrap_or(bytes.len());
    let port = host.part(end + 1, bytes.len());
    match bytes.get(..end) {
        Some([b'[', .., b']']) => (host.part(1, end - 1), port),
        _ => (host.part(0, end), port),
    }
}

/// `user:password`, escaped.
fn write_user(memory: &mut Memory<'_>, user: User) -> Result<Slice, Failure> {
    let name = escape(memory, user.name, Part::User)?;
    let Some(password) = user.password else { return Ok(name) };
    let password = escape(memory, password, Part::User)?;
    memory.build(|memory| {
        memory.push_slice(name)?;
        memory.push(b":")?;
        memory.push_slice(password)
    })
}

/// The parameters of a query: a list of values for each name.
fn parameters(memory: &mut Memory<'_>, query: Slice) -> Result<Value, Failure> {
    const NOTHING: (Slice, Slice) = (Slice::EMPTY, Slice::EMPTY);
    let mut pairs = [NOTHING; PARAMETERS];
    let mut count = 0;
    let mut rest = Some(query).filter(|query| query.len > 0);
    while let Some(text) = rest {
        let (parameter, behind) = cut(memory, text, b'&');
        rest = behind;
        if parameter.len == 0 {
            continue;
        }
        if memchr::memchr(b';', memory.get(parameter)).is_some() {
            return Err(Failure::Invalid("the query has a semicolon"));
        }
        let (name, value) = cut(memory, parameter, b'=');
        let name = unescape(memory, name, Part::Query)?;
        let value = unescape(memory, value.unwrap_or(Slice::EMPTY), Part::Query)?;
        *pairs.get_mut(count).ok_or(Failure::TooLarge)? = (name, value);
        count += 1;
    }
    let pairs = pairs.get(..count).unwrap_or_default();
    if pairs.is_empty() {
        return Ok(Value::Map(Slice::EMPTY));
    }
    let start = memory.mark();
    for (at, (name, _)) in pairs.iter().enumerate() {
        let is_same = |memory: &Memory<'_>, other: &Slice| memory.get(*other) == memory.get(*name);
        if pairs.iter().take(at).any(|(other, _)| is_same(memory, other)) {
            continue;
        }
        // The list is built where its entry will stand, and moved by that.
        let mark = memory.mark();
        let list = memory.build(|memory| {
            pairs.iter().skip(at).try_for_each(|(other, value)| {
                if is_same(memory, other) { write_element(Value::Text(*value), memory) } else { Ok(()) }
            })
        })?;
        write_pair(1, *name, Value::List(list), memory)?;
        memory.remove(mark, 0..list.len as usize);
    }
    let all = memory.since(start);
    memory.build(|memory| write_named(b"query", Value::Map(all), memory)).map(Value::Map)
}
