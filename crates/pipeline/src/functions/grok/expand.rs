//! Expands patterns into one regular expression.

use crate::machine::arguments::go_double;
use crate::memory::Slice;
use crate::value::Value;

/// Names and expressions, sorted by name, behind the lines of the licence.
const PATTERNS: &str = include_str!("patterns.txt");

/// The longest expansion, in bytes.
const MAX_LEN: usize = 128 << 10;
/// How deep patterns may be in patterns.
const MAX_DEPTH: usize = 64;

/// The type of a part, as in `%{NUMBER:bytes:int}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Text,
    Int,
    Double,
    Bool,
}

impl Hint {
    fn of(name: &str) -> Option<Hint> {
        Some(match name {
            "string" => Hint::Text,
            "int" | "long" => Hint::Int,
            "float" | "double" => Hint::Double,
            "bool" | "boolean" => Hint::Bool,
            _ => return None,
        })
    }

    /// The value of `text`, which is at `slice`; nothing for what is not of the type.
    pub(super) fn convert(self, text: &[u8], slice: Slice) -> Option<Value> {
        let text = str::from_utf8(text).ok()?;
        Some(match self {
            Hint::Text => Value::Text(slice),
            Hint::Int => Value::Int(text.parse().ok()?),
            Hint::Double => Value::Double(go_double(text)?),
            Hint::Bool => Value::Bool(match text {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
                "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
                _ => return None,
            }),
        })
    }
}

/// A regular expression, and the types of its groups.
pub(super) struct Expanded {
    pub(super) pattern: String,
    pub(super) hints: Vec<(String, Hint)>,
}

/// Expands `%{NAME}`, `%{NAME:key}` and `%{NAME:key:type}`. Groups without a name do not capture.
pub(super) fn expand(
    pattern: &str,
    named_only: bool,
    definitions: &[(&str, &str)],
) -> Result<Expanded, String> {
    let mut expanded = Expanded { pattern: pattern.to_owned(), hints: Vec::new() };
    for _ in 0..MAX_DEPTH {
        let mut next = String::new();
        let mut rest = expanded.pattern.as_str();
        let mut is_whole = true;
        while let Some((before, behind)) = rest.split_once("%{") {
            next.push_str(before);
            let Some((reference, behind)) = reference(behind) else {
                next.push_str("%{");
                rest = behind;
                continue;
            };
            is_whole = false;
            rest = behind;
            let found = definitions.iter().rev().find(|(name, _)| *name == reference.name);
            let found = found.map(|(_, pattern)| *pattern).or_else(|| known(reference.name));
            let found = found.ok_or_else(|| format!("unknown pattern `{}`", reference.name))?;
            let key = reference.key.unwrap_or(reference.name).replace('.', "___");
            if let Some(hint) = reference.hint {
                let types = "there are int, long, float, double, bool, boolean and string";
                let hint = Hint::of(hint).ok_or_else(|| format!("unknown type `{hint}`: {types}"))?;
                expanded.hints.push((key.clone(), hint));
            }
            if named_only && reference.key.is_none() {
                next.push_str("(?:");
            } else {
                next.push_str("(?P<");
                next.push_str(&key);
                next.push('>');
            }
            next.push_str(found);
            next.push(')');
            if next.len() > MAX_LEN {
                return Err(format!("the pattern expands to more than {} KiB", MAX_LEN >> 10));
            }
        }
        next.push_str(rest);
        if is_whole {
            expanded.pattern = without_groups(&next);
            return Ok(expanded);
        }
        expanded.pattern = next;
    }
    Err("the pattern contains itself".into())
}

/// The expression of a pattern that is known to all.
fn known(name: &str) -> Option<&'static str> {
    let mut lines =
        PATTERNS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == name).map(|(_, pattern)| pattern)
}

/// The text between `%{` and `}`.
struct Reference<'t> {
    name: &'t str,
    key: Option<&'t str>,
    hint: Option<&'t str>,
}

/// Reads a reference; nothing for what has not its form.
fn reference(text: &str) -> Option<(Reference<'_>, &str)> {
    let (inside, rest) = text.split_once('}')?;
    let mut parts = inside.split(':');
    let is_word = |part: &&str, more: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || more.contains(letter))
    };
    let name = parts.next().filter(|part| is_word(part, ""))?;
    let key = parts.next();
    let hint = parts.next();
    let is_right = key.is_none_or(|key| is_word(&key, "+.")) && hint.is_none_or(|hint| is_word(&hint, ""));
    (is_right && parts.next().is_none()).then_some((Reference { name, key, hint }, rest))
}

/// The same expression, in which groups without a name do not capture.
fn without_groups(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        out.push(letter);
        match letter {
            '\\' => out.extend(letters.next()),
            '[' if !in_class => {
                in_class = true;
                // A bracket that comes first is one of the class.
                if let Some(negation) = letters.next_if_eq(&'^') {
                    out.push(negation);
                }
                if let Some(bracket) = letters.next_if_eq(&']') {
                    out.push(bracket);
                }
            }
            // A class within the class, like `[:alpha:]`.
            '[' if letters.peek() == Some(&':') => {
                for inner in letters.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            ']' => in_class = false,
            '(' if !in_class && letters.peek() != Some(&'?') => out.push_str("?:"),
            _ => {}
        }
    }
    out
}
