//! Glob patterns, as `github.com/gobwas/glob` without separators reads them, as regular expressions.
//!
//! `*` and `**` are any text, `?` is one character, `[abc]`, `[a-z]`, `[!abc]` are one of some, `{a,b}` is one of several patterns, and
//! `\` takes the meaning from the next character.

use std::iter::Peekable;
use std::str::Chars;

/// The regular expression of a glob pattern, which has to match all of a text.
///
/// # Errors
/// The error, as a sentence without a full stop.
pub(super) fn to_regex(glob: &str) -> Result<String, String> {
    let mut regex = String::new();
    let mut rest = glob.chars().peekable();
    let mut depth = 0;
    while let Some(next) = rest.next() {
        match next {
            '*' => {
                while rest.next_if_eq(&'*').is_some() {}
                regex.push_str("(?s:.*)");
            }
            '?' => regex.push_str("(?s:.)"),
            '[' => class(&mut rest, &mut regex)?,
            '{' => {
                depth += 1;
                regex.push_str("(?:");
            }
            ',' if depth > 0 => regex.push('|'),
            '}' if depth > 0 => {
                depth -= 1;
                regex.push(')');
            }
            '\\' => {
                if let Some(escaped) = rest.next() {
                    literal(escaped, &mut regex);
                }
            }
            other => literal(other, &mut regex),
        }
    }
    regex.extend(std::iter::repeat_n(')', depth));
    Ok(regex)
}

/// Reads what is in brackets, behind the first.
fn class(rest: &mut Peekable<Chars<'_>>, regex: &mut String) -> Result<(), String> {
    const OPEN: &str = "`[` without `]`";
    regex.push('[');
    if rest.next_if_eq(&'!').is_some() {
        regex.push('^');
    }
    let mut after = rest.clone();
    let first = after.next().ok_or(OPEN)?;
    if after.next() == Some('-') {
        let last = after.next().ok_or(OPEN)?;
        if after.next() != Some(']') {
            return Err("a range in `[…]` has two characters, as in `[a-z]`".into());
        }
        if last < first {
            return Err(format!("the range `{first}-{last}` is upside down"));
        }
        *rest = after;
        class_literal(first, regex);
        regex.push('-');
        class_literal(last, regex);
        regex.push(']');
        return Ok(());
    }
    let mut count = 0;
    loop {
        match rest.next().ok_or(OPEN)? {
            ']' => break,
            '\\' => class_literal(rest.next().ok_or(OPEN)?, regex),
            other => class_literal(other, regex),
        }
        count += 1;
    }
    if count == 0 {
        return Err("`[]` matches nothing".into());
    }
    regex.push(']');
    Ok(())
}

fn literal(character: char, regex: &mut String) {
    if r"\.+*?()|[]{}^$".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

fn class_literal(character: char, regex: &mut String) {
    if r"\[]^-".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

#[cfg(test)]
mod tests {
    use super::to_regex;
    use crate::regex::{Mode, Regexes};

    fn matches(glob: &str, text: &str) -> bool {
        let mut regexes = Regexes::default();
        let regex = regexes.compile_as(&to_regex(glob).unwrap(), Mode::Whole).unwrap();
        regex.is_match(&mut regexes.caches(), text.as_bytes())
    }

    #[test]
    fn globs_match_whole_texts() {
        for (glob, text, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("/user/*/list/*", "/user/12/list/a/b", true),
            ("*", "a\nb", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[xyz]", "y", true),
            ("[!xyz]", "a", true),
            ("{a,b*}.log", "bcd.log", true),
            ("{a,b*}.log", "c.log", false),
            ("a.b", "axb", false),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("a,b}", "a,b}", true),
            ("({a})", "(a)", true),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} {text}");
        }
    }

    #[test]
    fn malformed_globs_are_refused() {
        for glob in ["[", "[]", "[a", "[a-", "[a-b", "[z-a]", "[a-zA-Z]"] {
            assert!(to_regex(glob).is_err(), "{glob}");
        }
    }
}
