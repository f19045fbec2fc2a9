//! Character classes and escapes, as Go's `regexp/syntax` reads them.

use super::PatternError;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// Reads the class in brackets that `text` begins with. Returns it with its length.
pub(super) fn bracketed(text: &str, fold_case: bool) -> Result<(Hir, usize), PatternError> {
    let negated = text.as_bytes().get(1) == Some(&b'^');
    let mut at = if negated { 2 } else { 1 };
    let first = at;
    let mut class = ClassUnicode::empty();
    loop {
        let rest = text.get(at..).unwrap_or_default();
        // A bracket directly at the beginning is a literal.
        if rest.starts_with(']') && at > first {
            break;
        }
        if rest.is_empty() {
            return Err(error("missing closing bracket `]`", 0, text.len()));
        }
        if rest.starts_with("[:")
            && let Some(end) = rest.get(2..).and_then(|rest| rest.find(":]"))
        {
            let len = end + 4;
            let name = rest.get(2..end + 2).unwrap_or_default();
            let (negated, name) = match name.strip_prefix('^') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let Some(ranges) = posix(name) else {
                return Err(error(&format!("unknown character class `[:{name}:]`"), at, at + len));
            };
            class.union(&ascii(ranges, negated, fold_case));
            at += len;
            continue;
        }
        if let Some((inner, len)) = named(rest, fold_case).map_err(|error| error.shifted(at))? {
            class.union(&inner);
            at += len;
            continue;
        }
        let (low, len) = class_char(rest).map_err(|error| error.shifted(at))?;
        let mut end = at + len;
        let mut high = low;
        let behind = text.get(end..).unwrap_or_default();
        if let Some(behind) = behind.strip_prefix('-')
            && !behind.starts_with(']')
        {
            if behind.is_empty() {
                return Err(error("missing closing bracket `]`", 0, text.len()));
            }
            let (last, len) = class_char(behind).map_err(|error| error.shifted(end + 1))?;
            high = last;
            end += 1 + len;
        }
        if high < low {
            return Err(error("invalid range: its end is before its start", at, end));
        }
        if let Some(range) = range(low, high) {
            let mut part = ClassUnicode::new([range]);
            if fold_case {
                fold(&mut part);
            }
            class.union(&part);
        }
        at = end;
    }
    if negated {
        class.negate();
    }
    Ok((Hir::class(Class::Unicode(class)), at + 1))
}

/// Reads the class that a backslash begins: `\d`, `\pL`, … `None` when it is no class.
pub(super) fn escaped(text: &str, fold_case: bool) -> Result<Option<(Hir, usize)>, PatternError> {
    Ok(named(text, fold_case)?.map(|(class, len)| (Hir::class(Class::Unicode(class)), len)))
}

/// Reads the character that a backslash begins. Returns it with its length; it is `None` when no text has it.
pub(super) fn escaped_char(text: &str) -> Result<(Option<char>, usize), PatternError> {
    let (code, len) = escape(text)?;
    Ok((char::from_u32(code), len))
}

/// The class that matches `c` in any case.
pub(super) fn folded(c: char) -> Hir {
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
    fold(&mut class);
    Hir::class(Class::Unicode(class))
}

fn class_char(text: &str) -> Result<(u32, usize), PatternError> {
    match text.chars().next() {
        Some('\\') => escape(text),
        Some(c) => Ok((u32::from(c), c.len_utf8())),
        None => Err(error("missing closing bracket `]`", 0, 0)),
    }
}

/// The code of the character that a backslash begins, and the length of what says it.
fn escape(text: &str) -> Result<(u32, usize), PatternError> {
    let mut chars = text.char_indices().skip(1);
    let Some((_, c)) = chars.next() else {
        return Err(error("trailing backslash at the end of the pattern", 0, 1));
    };
    let end = 1 + c.len_utf8();
    let rest = text.get(end..).unwrap_or_default();
    let octal = |digit: &u8| (b'0'..=b'7').contains(digit);
    Ok(match c {
        '0'..='7' if c == '0' || rest.as_bytes().first().is_some_and(octal) => {
            let digits = 1 + rest.bytes().take(2).take_while(octal).count();
            let code = u32::from_str_radix(text.get(1..1 + digits).unwrap_or_default(), 8);
            (code.unwrap_or_default(), 1 + digits)
        }
        '1'..='9' => return Err(error("backreferences are not supported", 0, end)),
        'x' => match hexadecimal(rest) {
            Some((code, len)) => (code, end + len),
            None => return Err(error("invalid escape: write \\x7F or \\x{10FFFF}", 0, end)),
        },
        'a' => (7, end),
        'f' => (12, end),
        'n' => (10, end),
        'r' => (13, end),
        't' => (9, end),
        'v' => (11, end),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => (u32::from(c), end),
        _ => return Err(error(&format!("invalid escape sequence `\\{c}`"), 0, end)),
    })
}

/// `7F` or `{10FFFF}`.
fn hexadecimal(text: &str) -> Option<(u32, usize)> {
    let (digits, len) = match text.strip_prefix('{') {
        Some(inner) => {
            let (digits, _) = inner.split_once('}')?;
            (digits, digits.len() + 2)
        }
        None => (text.get(..2)?, 2),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let code = if digits.is_empty() { 0 } else { u32::from_str_radix(digits, 16).ok()? };
    (code <= u32::from(char::MAX)).then_some((code, len))
}

/// The characters between two codes; surrogates are none.
fn range(low: u32, high: u32) -> Option<ClassUnicodeRange> {
    let low = char::from_u32(low).unwrap_or('\u{e000}');
    let high = char::from_u32(high).unwrap_or('\u{d7ff}');
    (low <= high).then(|| ClassUnicodeRange::new(low, high))
}

/// The class that `text` begins with, if that is `\d`, `\pL`, `\p{Greek}`, ….
fn named(text: &str, fold_case: bool) -> Result<Option<(ClassUnicode, usize)>, PatternError> {
    let Some(&letter) = text.strip_prefix('\\').and_then(|rest| rest.as_bytes().first()) else {
        return Ok(None);
    };
    let name = match letter.to_ascii_lowercase() {
        b'd' => "digit",
        b's' => "perl space",
        b'w' => "word",
        b'p' => return unicode(text, letter == b'P', fold_case).map(Some),
        _ => return Ok(None),
    };
    let ranges = posix(name).unwrap_or_default();
    Ok(Some((ascii(ranges, letter.is_ascii_uppercase(), fold_case), 2)))
}

/// `\pL`, `\p{Greek}`, `\p{^Greek}`: a general category or a script.
fn unicode(text: &str, negated: bool, fold_case: bool) -> Result<(ClassUnicode, usize), PatternError> {
    let rest = text.get(2..).unwrap_or_default();
    let (name, len) = match rest.strip_prefix('{') {
        Some(inner) => match inner.split_once('}') {
            Some((name, _)) => (name, name.len() + 4),
            None => return Err(error("missing closing brace `}` of the class", 0, text.len())),
        },
        None => {
            let end = rest.chars().next().map_or(0, char::len_utf8);
            (rest.get(..end).unwrap_or_default(), 2 + end)
        }
    };
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (!negated, name),
        None => (negated, name),
    };
    let Some(mut class) = property(name) else {
        return Err(error(&format!("unknown category or script `{name}`"), 0, len));
    };
    if fold_case {
        fold(&mut class);
    }
    if negated {
        class.negate();
    }
    Ok((class, len))
}

/// The characters of a general category or of a script.
fn property(name: &str) -> Option<ClassUnicode> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_- ".contains(&byte)) {
        return None;
    }
    let parse = |pattern: String| match regex_syntax::parse(&pattern).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    };
    parse(format!("\\p{{gc={name}}}")).or_else(|| parse(format!("\\p{{sc={name}}}")))
}

/// The class of these ASCII ranges. As in Go, letters of other alphabets that fold to ASCII belong to it without regard to case.
fn ascii(ranges: &[(u8, u8)], negated: bool, fold_case: bool) -> ClassUnicode {
    let ranges = ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(char::from(low), char::from(high)));
    let mut class = ClassUnicode::new(ranges);
    if fold_case {
        fold(&mut class);
    }
    if negated {
        class.negate();
    }
    class
}

fn fold(class: &mut ClassUnicode) {
    // Fails only without the tables of `unicode-case`, which are a feature that we have.
    let _ = class.try_case_fold_simple();
}

/// The ranges of an ASCII class.
fn posix(name: &str) -> Option<&'static [(u8, u8)]> {
    Some(match name {
        "alnum" => &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')],
        "alpha" => &[(b'A', b'Z'), (b'a', b'z')],
        "ascii" => &[(0, 0x7f)],
        "blank" => &[(b'\t', b'\t'), (b' ', b' ')],
        "cntrl" => &[(0, 0x1f), (0x7f, 0x7f)],
        "digit" => &[(b'0', b'9')],
        "graph" => &[(b'!', b'~')],
        "lower" => &[(b'a', b'z')],
        "print" => &[(b' ', b'~')],
        "punct" => &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')],
        "space" => &[(b'\t', b'\r'), (b' ', b' ')],
        // Without the vertical tab.
        "perl space" => &[(b'\t', b'\n'), (0x0c, b'\r'), (b' ', b' ')],
        "upper" => &[(b'A', b'Z')],
        "word" => &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')],
        "xdigit" => &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')],
        _ => return None,
    })
}

fn error(message: &str, start: usize, end: usize) -> PatternError {
    PatternError { message: message.into(), range: start..end }
}
