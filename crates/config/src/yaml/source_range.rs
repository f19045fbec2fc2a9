//! Finds where a part of a value stands in the file.
//!
//! A value differs from its source by quotes, escapes, folded lines, and by what was substituted. The two are walked side by
//! side; where they differ by anything else the part has no place of its own.

use std::ops::Range;

/// The bytes of `source`, a scalar as it is written, from which the bytes `range` of its `value` came. `None` where that
/// cannot be told.
pub(crate) fn source_range(source: &str, value: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let (style, begin) = Style::of(source)?;
    let mut walk = Walk { style, source, value, at: begin, passed: 0 };
    let start = walk.to(range.start)?;
    let end = walk.to(range.end.max(range.start))?;
    Some(start..end)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
}

impl Style {
    /// The style, and where the text begins.
    fn of(source: &str) -> Option<(Style, usize)> {
        match source.chars().next() {
            Some('\'') => Some((Style::Single, 1)),
            Some('"') => Some((Style::Double, 1)),
            Some('|' | '>') => {
                let newline = source.find('\n')?;
                let indentation = source.get(newline + 1..)?.find(|c: char| c != ' ')?;
                Some((Style::Plain, newline + 1 + indentation))
            }
            _ => Some((Style::Plain, 0)),
        }
    }
}

struct Walk<'a> {
    style: Style,
    source: &'a str,
    value: &'a str,
    /// The position in the source.
    at: usize,
    /// The position in the value.
    passed: usize,
}

impl Walk<'_> {
    /// Walks to this position of the value, and returns the one of the source.
    fn to(&mut self, position: usize) -> Option<usize> {
        while self.passed < position {
            self.step()?;
        }
        Some(self.at)
    }

    fn step(&mut self) -> Option<()> {
        let (source, value) = (self.source.get(self.at..)?, self.value.get(self.passed..)?);
        let blank = source.len() - source.trim_start_matches([' ', '\t', '\r', '\n']).len();
        if source.get(..blank)?.contains('\n') {
            let rest = value.trim_start_matches([' ', '\n']);
            self.at += blank;
            self.passed += value.len() - rest.len();
            return (rest.len() < value.len()).then_some(());
        }
        let c = value.chars().next()?;
        let len = match (self.style, c) {
            (_, '$') if source.starts_with("$$") => 2,
            (Style::Single, '\'') if source.starts_with("''") => 2,
            (Style::Double, _) if source.starts_with('\\') => escaped(source, c)?,
            _ if source.starts_with(c) => c.len_utf8(),
            _ => return None,
        };
        self.at += len;
        self.passed += c.len_utf8();
        Some(())
    }
}

/// The length of the escape at the beginning of `source`, if it stands for `c`.
fn escaped(source: &str, c: char) -> Option<usize> {
    let kind = source.chars().nth(1)?;
    let digits = match kind {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if digits > 0 {
        let code = u32::from_str_radix(source.get(2..2 + digits)?, 16).ok()?;
        return (char::from_u32(code) == Some(c)).then_some(2 + digits);
    }
    let meant = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'e' => '\u{1b}',
        other => other,
    };
    (meant == c).then_some(1 + kind.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_part_in_every_style() {
        for (source, value, part, expected) in [
            ("set(a, b)", "set(a, b)", "a,", Some("a,")),
            ("'it''s b'", "it's b", "b", Some("b")),
            (r#""a\"\u00e9 b""#, "a\"é b", "b", Some("b")),
            ("set(a,\n      b)", "set(a, b)", "b)", Some("b)")),
            ("|\n    set(a)\n      where b\n", "set(a)\n  where b\n", "where", Some("where")),
            (">-\n    set(a)\n    where b\n", "set(a) where b", "where", Some("where")),
            ("f(\"$$1\", b)", "f(\"$1\", b)", "b", Some("b")),
            ("${X}, b", "set(a), b", "b", None),
            ("é b", "é b", "b", Some("b")),
        ] {
            let start = value.find(part).unwrap();
            let found = source_range(source, value, &(start..start + part.len()));
            assert_eq!(found.map(|range| &source[range]), expected, "{source}");
        }
        assert_eq!(source_range("abc", "abc", &(3..3)), Some(3..3));
        assert_eq!(source_range("abc", "abc", &(3..9)), None);
    }
}
