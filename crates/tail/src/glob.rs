//! Patterns of paths: `*`, `?`, `[a-z]`, `[!a-z]` and `{a,b}` within a component, `**` for any number of directories.
//!
//! `*` matches names that begin with a dot too. A pattern is absolute.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component as PathComponent, Path, PathBuf};

/// Most patterns that the braces of one may stand for.
const MAX_ALTERNATIVES: usize = 64;

/// A pattern of absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    components: Box<[Component]>,
}

/// A part of a pattern between two slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Component {
    Literal(Box<[u8]>),
    Pattern(Box<[Token]>),
    /// `**`: any number of directories.
    AnyDepth,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    AnyCharacter,
    AnyText,
    Class { negated: bool, ranges: Box<[(u8, u8)]> },
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    /// It does not begin with a slash.
    #[error("the path must be absolute: begin it with `/`")]
    Relative,
    /// A component is `.` or `..`, or nothing is left of it.
    #[error("the path must name files, without `.` and `..`")]
    NoFile,
    /// A bracket or a brace without its end.
    #[error("`[` and `{{` need their closing `]` and `}}`; write `[[]` for a plain `[`")]
    Unclosed,
    /// Too many alternatives.
    #[error("the braces stand for more than 64 paths: write several patterns")]
    TooManyAlternatives,
    /// `**` together with other characters.
    #[error("`**` stands for whole directories: write `/**/`")]
    AnyDepthInName,
}

impl Glob {
    /// The patterns that `text` stands for: one for each combination of its braces.
    ///
    /// # Errors
    /// When it is no pattern.
    pub fn parse(text: &str) -> Result<Vec<Glob>, InvalidGlob> {
        let mut texts = Vec::new();
        expand(text, &mut texts)?;
        texts.iter().map(|text| Glob::parse_one(text)).collect()
    }

    fn parse_one(text: &str) -> Result<Glob, InvalidGlob> {
        let rest = text.strip_prefix('/').ok_or(InvalidGlob::Relative)?;
        let mut components = Vec::new();
        for part in rest.split('/').filter(|part| !part.is_empty()) {
            components.push(match part {
                "." | ".." => return Err(InvalidGlob::NoFile),
                "**" => Component::AnyDepth,
                _ => component(part)?,
            });
        }
        if matches!(components.last(), None | Some(Component::AnyDepth)) {
            return Err(InvalidGlob::NoFile);
        }
        Ok(Glob { text: text.into(), components: components.into() })
    }

    /// The pattern as written, one alternative for each brace.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches `path`.
    pub fn matches(&self, path: &Path) -> bool {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                PathComponent::RootDir => {}
                PathComponent::Normal(name) => names.push(name.as_bytes()),
                _ => return false,
            }
        }
        matches_all(&self.components, &names)
    }

    /// The directory in which looking for files begins, and the component to be matched there.
    pub(crate) fn base(&self) -> (PathBuf, usize) {
        let mut base = PathBuf::from("/");
        let mut at = 0;
        let names = self.components.len().saturating_sub(1);
        for component in self.components.iter().take(names) {
            let Component::Literal(name) = component else { break };
            base.push(std::ffi::OsStr::from_bytes(name));
            at += 1;
        }
        (base, at)
    }

    /// Compares the entry `name` of a directory with the component `at`.
    pub(crate) fn entry(&self, at: usize, name: &[u8]) -> Entry {
        let last = self.components.len().saturating_sub(1);
        let one = |at: usize| match self.components.get(at) {
            Some(component) if component.matches(name) => {
                if at == last {
                    (true, None)
                } else {
                    (false, Some(at + 1))
                }
            }
            _ => (false, None),
        };
        match self.components.get(at) {
            Some(Component::AnyDepth) => {
                let (file, further) = one(at + 1);
                Entry { file, directories: [Some(at), further] }
            }
            _ => {
                let (file, further) = one(at);
                Entry { file, directories: [further, None] }
            }
        }
    }

    /// Whether the component `at` stands for any number of directories.
    pub(crate) fn any_depth(&self, at: usize) -> bool {
        matches!(self.components.get(at), Some(Component::AnyDepth))
    }
}

/// The relation of a directory's entry to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The pattern matches a file of this name.
    pub(crate) file: bool,
    /// The components to be matched in it, if it is a directory.
    pub(crate) directories: [Option<usize>; 2],
}

impl Component {
    fn matches(&self, name: &[u8]) -> bool {
        match self {
            Component::Literal(literal) => **literal == *name,
            Component::Pattern(tokens) => matches_name(tokens, name),
            Component::AnyDepth => true,
        }
    }
}

fn matches_all(components: &[Component], names: &[&[u8]]) -> bool {
    match (components.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((Component::AnyDepth, rest)), _) => {
            matches_all(rest, names)
                || names.split_first().is_some_and(|(_, names)| matches_all(components, names))
        }
        (Some((component, rest)), Some((name, names))) => component.matches(name) && matches_all(rest, names),
        _ => false,
    }
}

/// Matches greedily, and goes back to the last `*` only: so the time is at most tokens × bytes.
fn matches_name(tokens: &[Token], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let rest = name.get(from..).unwrap_or_default();
        let step = match tokens.get(at) {
            Some(Token::AnyText) => {
                star = Some((at + 1, from));
                at += 1;
                continue;
            }
            Some(token) => token.matched(rest),
            None if rest.is_empty() => return true,
            None => None,
        };
        if let Some(bytes) = step {
            at += 1;
            from += bytes;
        } else if let Some((after, begun)) = star.filter(|(_, begun)| *begun < name.len()) {
            star = Some((after, begun + 1));
            (at, from) = (after, begun + 1);
        } else {
            return false;
        }
    }
}

impl Token {
    /// How many bytes of the beginning of `rest` it stands for.
    fn matched(&self, rest: &[u8]) -> Option<usize> {
        let first = *rest.first()?;
        match self {
            Token::Byte(byte) => (*byte == first).then_some(1),
            Token::AnyCharacter => Some(
                1 + rest.iter().skip(1).take_while(|byte| first >= 0xC0 && **byte & 0xC0 == 0x80).count(),
            ),
            Token::Class { negated, ranges } => {
                let within = ranges.iter().any(|(low, high)| (*low..=*high).contains(&first));
                (within != *negated).then_some(1)
            }
            Token::AnyText => Some(0),
        }
    }
}

fn component(part: &str) -> Result<Component, InvalidGlob> {
    let mut tokens = Vec::new();
    let mut bytes = part.as_bytes();
    while let Some((&byte, rest)) = bytes.split_first() {
        bytes = rest;
        tokens.push(match byte {
            b'*' if rest.first() == Some(&b'*') => return Err(InvalidGlob::AnyDepthInName),
            b'*' => Token::AnyText,
            b'?' => Token::AnyCharacter,
            b'[' => {
                let (class, rest) = class(rest).ok_or(InvalidGlob::Unclosed)?;
                bytes = rest;
                class
            }
            byte => Token::Byte(byte),
        });
    }
    let literal: Option<Box<[u8]>> =
        tokens.iter().map(|token| if let Token::Byte(byte) = token { Some(*byte) } else { None }).collect();
    Ok(match literal {
        Some(literal) => Component::Literal(literal),
        None => Component::Pattern(tokens.into()),
    })
}

/// The class behind a `[`, and the bytes behind its `]`.
fn class(bytes: &[u8]) -> Option<(Token, &[u8])> {
    let (negated, bytes) = match bytes.split_first()? {
        (b'!' | b'^', rest) => (true, rest),
        _ => (false, bytes),
    };
    // The first may be `]` itself.
    let end = 1 + memchr::memchr(b']', bytes.get(1..)?)?;
    let (mut inside, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    let mut ranges = Vec::new();
    while let Some((&low, after)) = inside.split_first() {
        let (high, after) = match after {
            [b'-', high, after @ ..] => (*high, after),
            _ => (low, after),
        };
        ranges.push((low, high));
        inside = after;
    }
    Some((Token::Class { negated, ranges: ranges.into() }, rest))
}

/// Writes the alternatives of `text` to `texts`.
fn expand(text: &str, texts: &mut Vec<String>) -> Result<(), InvalidGlob> {
    let Some((before, rest)) = text.split_once('{') else {
        if texts.len() >= MAX_ALTERNATIVES {
            return Err(InvalidGlob::TooManyAlternatives);
        }
        texts.push(text.to_owned());
        return Ok(());
    };
    let (inside, after) = rest.split_once('}').ok_or(InvalidGlob::Unclosed)?;
    if inside.contains('{') {
        return Err(InvalidGlob::Unclosed);
    }
    inside.split(',').try_for_each(|inside| expand(&format!("{before}{inside}{after}"), texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::parse(pattern).unwrap().iter().any(|glob| glob.matches(Path::new(path)))
    }

    #[test]
    fn matches_as_shells_do() {
        for (pattern, path, expected) in [
            ("/var/log/*.log", "/var/log/a.log", true),
            ("/var/log/*.log", "/var/log/a.log.1", false),
            ("/var/log/*.log", "/var/log/b/a.log", false),
            ("/var/log/**/*.log", "/var/log/a.log", true),
            ("/var/log/**/*.log", "/var/log/b/c/a.log", true),
            ("/var/log/**/*.log", "/var/lib/a.log", false),
            ("/var/log/*a*b*c", "/var/log/xxaxxbxxc", true),
            ("/var/log/*a*b*c", "/var/log/xxaxxcxxb", false),
            ("/a/?.log", "/a/é.log", true),
            ("/a/??.log", "/a/b.log", false),
            ("/a/[0-9]*", "/a/7x", true),
            ("/a/[!0-9]*", "/a/7x", false),
            ("/a/[]x]", "/a/]", true),
            ("/a/{b,c}.{d,e}", "/a/c.d", true),
            ("/a/{b,c}.{d,e}", "/a/c.f", false),
            ("/a/*", "/a/.hidden", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} and {path}");
        }
    }

    #[test]
    fn refuses_what_names_no_files() {
        for (pattern, reason) in [
            ("a.log", InvalidGlob::Relative),
            ("/", InvalidGlob::NoFile),
            ("/a/**", InvalidGlob::NoFile),
            ("/a/../b", InvalidGlob::NoFile),
            ("/a/[b", InvalidGlob::Unclosed),
            ("/a/{b", InvalidGlob::Unclosed),
            ("/a/b**", InvalidGlob::AnyDepthInName),
            ("/{a,b,c,d,e}{a,b,c,d,e}{a,b,c,d,e}", InvalidGlob::TooManyAlternatives),
        ] {
            assert_eq!(Glob::parse(pattern), Err(reason), "{pattern}");
        }
    }

    /// Walking the directories finds the files that the pattern matches.
    #[test]
    fn entries_lead_to_the_files() {
        let glob = Glob::parse("/var/log/pods/*/**/x.log").unwrap().remove(0);
        assert_eq!(glob.base(), (PathBuf::from("/var/log/pods"), 3));
        assert_eq!(glob.entry(3, b"pod"), Entry { file: false, directories: [Some(4), None] });
        assert_eq!(glob.entry(4, b"dir"), Entry { file: false, directories: [Some(4), None] });
        assert_eq!(glob.entry(4, b"x.log"), Entry { file: true, directories: [Some(4), None] });
    }
}
