//! Splits a text into tokens, as the lexer of `pkg/ottl` does.
//!
//! Names of functions are several tokens: `IsMatch` is `I`, `s`, `M`, `atch`. So is the Collector's lexer made, and so
//! `Is Match(…)` is a call there and here.

use super::unquote::unquote;
use std::ops::Range;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Its bytes in the text.
    pub(crate) range: Range<usize>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `0x` and hexadecimal digits.
    Bytes,
    Float,
    Int,
    /// In double quotes.
    Text,
    Nil,
    Not,
    Or,
    And,
    /// `==`, `!=`, `<`, `<=`, `>`, `>=`.
    Comparison,
    /// `=>`.
    Arrow,
    /// `+`, `-`.
    Sign,
    /// `*`, `/`.
    Product,
    Boolean,
    Equal,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Colon,
    Comma,
    Dot,
    /// A capital letter, then capitals, digits and `_`.
    Uppercase,
    /// A small letter, then small letters, digits and `_`.
    Lowercase,
    /// `_` alone.
    Underscore,
}

/// Why a text cannot be split into tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenError {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// The tokens of `text`.
///
/// # Errors
/// The first place that begins no token, or a string with an invalid escape.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, TokenError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let blank = count(rest, |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c));
        if blank > 0 {
            at += blank;
            continue;
        }
        let Some((kind, len)) = token(rest) else { return Err(unknown(text, at)) };
        let range = at..at + len;
        if kind == TokenKind::Text
            && let Err(error) = unquote(text.get(range.clone()).unwrap_or_default())
        {
            return Err(TokenError {
                range: at + error.start..at + error.end,
                message: "this escape sequence is not valid".to_owned(),
                help: Some(
                    "write `\\\\` for a backslash; a regular expression needs `\\\\d` for a digit".to_owned(),
                ),
            });
        }
        tokens.push(Token { kind, range });
        at += len;
    }
    Ok(tokens)
}

/// The token that `rest` begins with, by the order of the rules of `pkg/ottl`, and its length.
fn token(rest: &[u8]) -> Option<(TokenKind, usize)> {
    let first = *rest.first()?;
    match first {
        b'0'..=b'9' | b'.' => number(rest),
        b'"' => string(rest).map(|len| (TokenKind::Text, len)),
        b'=' if rest.starts_with(b"==") => Some((TokenKind::Comparison, 2)),
        b'=' if rest.starts_with(b"=>") => Some((TokenKind::Arrow, 2)),
        b'=' => Some((TokenKind::Equal, 1)),
        b'!' if rest.starts_with(b"!=") => Some((TokenKind::Comparison, 2)),
        b'>' | b'<' => Some((TokenKind::Comparison, if rest.get(1) == Some(&b'=') { 2 } else { 1 })),
        b'+' | b'-' => Some((TokenKind::Sign, 1)),
        b'*' | b'/' => Some((TokenKind::Product, 1)),
        b'(' => Some((TokenKind::LeftParen, 1)),
        b')' => Some((TokenKind::RightParen, 1)),
        b'{' => Some((TokenKind::LeftBrace, 1)),
        b'}' => Some((TokenKind::RightBrace, 1)),
        b'[' => Some((TokenKind::LeftBracket, 1)),
        b']' => Some((TokenKind::RightBracket, 1)),
        b':' => Some((TokenKind::Colon, 1)),
        b',' => Some((TokenKind::Comma, 1)),
        b'A'..=b'Z' => {
            let len = count(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            Some((TokenKind::Uppercase, len))
        }
        b'a'..=b'z' => Some(word(rest)),
        b'_' if !rest.get(1).copied().is_some_and(is_word) => Some((TokenKind::Underscore, 1)),
        _ => None,
    }
}

/// A keyword that no letter, digit or `_` follows, or a name.
fn word(rest: &[u8]) -> (TokenKind, usize) {
    let keywords: [(&[u8], TokenKind); 6] = [
        (b"nil", TokenKind::Nil),
        (b"not", TokenKind::Not),
        (b"or", TokenKind::Or),
        (b"and", TokenKind::And),
        (b"true", TokenKind::Boolean),
        (b"false", TokenKind::Boolean),
    ];
    for (keyword, kind) in keywords {
        if rest.starts_with(keyword) && !rest.get(keyword.len()).copied().is_some_and(is_word) {
            return (kind, keyword.len());
        }
    }
    (
        TokenKind::Lowercase,
        count(rest, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
    )
}

/// `0xHEX`, `1.5e3`, `1.`, `.5`, `1`; or the dot of a path.
fn number(rest: &[u8]) -> Option<(TokenKind, usize)> {
    if let Some(hexadecimal) = rest.strip_prefix(b"0x") {
        let digits = count(hexadecimal, |byte| byte.is_ascii_hexdigit());
        if digits > 0 {
            return Some((TokenKind::Bytes, 2 + digits));
        }
    }
    let digit = |byte: u8| byte.is_ascii_digit();
    let whole = count(rest, digit);
    if rest.get(whole) != Some(&b'.') {
        return Some((TokenKind::Int, whole));
    }
    let fraction = count(rest.get(whole + 1..).unwrap_or_default(), digit);
    if whole == 0 && fraction == 0 {
        return Some((TokenKind::Dot, 1));
    }
    let mut len = whole + 1 + fraction;
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        let digits = count(rest.get(len + 1 + sign..).unwrap_or_default(), digit);
        if digits > 0 {
            len += 1 + sign + digits;
        }
    }
    Some((TokenKind::Float, len))
}

/// The length of the string in double quotes; `None` when it is not closed. A backslash cannot escape a line end.
fn string(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match rest.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' if rest.get(at + 1) == Some(&b'\n') => return None,
            // A character of several bytes goes on with bytes that are neither a quote nor a backslash.
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn count(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(*byte)).unwrap_or(bytes.len())
}

fn unknown(text: &str, at: usize) -> TokenError {
    let found = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
    let range = at..at + found.len_utf8();
    let (message, help) = match found {
        '"' => ("this string is not closed".to_owned(), Some("close it with `\"`".to_owned())),
        '\'' | '`' => {
            (format!("unexpected {found:?}"), Some("write strings in double quotes: \"text\"".to_owned()))
        }
        '&' => (format!("unexpected {found:?}"), Some("write `and`".to_owned())),
        '|' => (format!("unexpected {found:?}"), Some("write `or`".to_owned())),
        '!' => (format!("unexpected {found:?}"), Some("write `not`, or `!=` to compare".to_owned())),
        '?' => {
            let help = "OTTL has no conditional expression: write two statements with `where`";
            (format!("unexpected {found:?}"), Some(help.to_owned()))
        }
        _ => (format!("unexpected {found:?}"), None),
    };
    TokenError { range, message, help }
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text).unwrap().iter().map(|token| token.kind).collect()
    }

    #[test]
    fn splits_as_the_collector_does() {
        for (text, expected) in [
            ("IsMatch(", vec![Uppercase, Lowercase, Uppercase, Lowercase, LeftParen]),
            ("0x 0x1F", vec![Int, Lowercase, Bytes]),
            ("1. .5 1.5e-3 1e5", vec![Float, Float, Float, Int, Lowercase]),
            ("1..2 a.b", vec![Float, Float, Lowercase, Dot, Lowercase]),
            (
                "nil nil_ nilX not or and true false",
                vec![Nil, Lowercase, Lowercase, Uppercase, Not, Or, And, Boolean, Boolean],
            ),
            ("= == => >= > !=", vec![Equal, Comparison, Arrow, Comparison, Comparison, Comparison]),
            ("\"a\\\"b\" _", vec![Text, Underscore]),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn says_which_bytes_are_no_token() {
        for (text, range) in [
            ("a ! b", 2..3),
            ("x \"abc", 2..3),
            ("é", 0..2),
            ("__", 0..1),
            ("\"a\\d\"", 2..4),
            ("\"\\\n\"", 0..1),
        ] {
            assert_eq!(tokens(text).unwrap_err().range, range, "{text}");
        }
    }
}
