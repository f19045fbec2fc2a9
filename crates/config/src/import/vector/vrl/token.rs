//! The words of VRL.

use std::ops::Range;

use super::syntax::Segment;

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// `.a."b c"[0]`; without segments it is the event.
    Path(Vec<Segment>),
    Word(String),
    /// A string without its quotes. A template may name variables.
    Text {
        text: String,
        is_template: bool,
    },
    Regex(String),
    Number(String),
    /// `${NAME}`, which Vector replaces before it reads the program.
    Reference(String),
    Symbol(&'static str),
    Newline,
    /// Nothing that is known here.
    Unknown,
}

/// A word with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) at: Range<usize>,
    /// Whether nothing stands between it and the word before.
    pub(super) is_adjacent: bool,
}

const SYMBOLS: [&str; 31] = [
    "??=", "|=", "??", "==", "!=", ">=", "<=", "&&", "||", "->", "=", "<", ">", "!", "+", "-", "*", "/", "|",
    ",", "(", ")", "{", "}", "[", "]", ":", ";", "%", "^", "\\",
];

/// The words of a program.
pub(super) fn tokens(text: &str) -> Vec<Placed> {
    let mut lexer = Lexer { text, at: 0 };
    let mut found: Vec<Placed> = Vec::new();
    loop {
        let before = lexer.at;
        lexer.skip_blanks();
        let start = lexer.at;
        let Some(token) = lexer.next() else { return found };
        found.push(Placed { token, at: start..lexer.at, is_adjacent: before == start && !found.is_empty() });
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Blanks, comments and escaped line ends.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            self.at += blank;
            let rest = self.rest();
            if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("\\\n") {
                self.at += 2;
            } else if blank == 0 {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<Token> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let first = chars.next()?;
        let second = chars.next();
        match first {
            '\n' => {
                self.at += 1;
                Some(Token::Newline)
            }
            '.' => Some(self.path()),
            '"' => Some(self.text()),
            'r' | 's' | 't' if second == Some('\'') => Some(self.raw(first)),
            '$' if second == Some('{') => Some(self.reference()),
            c if c.is_ascii_digit() => Some(self.number()),
            c if c.is_alphabetic() || c == '_' => Some(Token::Word(self.word())),
            _ => {
                let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
                self.at += symbol.map_or(first.len_utf8(), str::len);
                Some(symbol.map_or(Token::Unknown, Token::Symbol))
            }
        }
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '@';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default().to_owned()
    }

    fn path(&mut self) -> Token {
        let mut segments = Vec::new();
        loop {
            let rest = self.rest();
            if let Some(behind) = rest.strip_prefix('.') {
                if behind.starts_with('"') {
                    self.at += 1;
                    let Token::Text { text, .. } = self.text() else { return Token::Unknown };
                    segments.push(Segment::Field(text));
                } else if behind.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '@') {
                    self.at += 1;
                    segments.push(Segment::Field(self.word()));
                } else if segments.is_empty() {
                    // The event itself, or a list in it.
                    self.at += 1;
                    if !behind.starts_with('[') {
                        return Token::Path(segments);
                    }
                } else {
                    return Token::Path(segments);
                }
            } else if let Some((index, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                let Ok(number) = index.trim().parse() else { return Token::Path(segments) };
                self.at += index.len() + 2;
                segments.push(Segment::Index(number));
            } else {
                return Token::Path(segments);
            }
        }
    }

    /// A string with escapes, whose quote is next.
    fn text(&mut self) -> Token {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    let is_template = text.contains("{{");
                    return Token::Text { text, is_template };
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, '0')) => text.push('\0'),
                    // The end of a line and what indents the next.
                    Some((_, '\n')) => {}
                    Some((_, escaped @ ('"' | '\\' | '\''))) => text.push(escaped),
                    // Other escapes, such as those of characters by number and of templates, are not known here.
                    _ => break,
                },
                c => text.push(c),
            }
        }
        self.at = self.text.len();
        Token::Unknown
    }

    /// `r'…'`, `s'…'` or `t'…'`.
    fn raw(&mut self, kind: char) -> Token {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(2).peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' => {
                    self.at += at + 1;
                    return match kind {
                        'r' => Token::Regex(text),
                        's' => Token::Text { text, is_template: false },
                        _ => Token::Unknown,
                    };
                }
                '\\' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    text.push('\'');
                    chars.next();
                }
                '\\' => {
                    text.push('\\');
                    text.extend(chars.next().map(|(_, next)| next));
                }
                c => text.push(c),
            }
        }
        self.at = self.text.len();
        Token::Unknown
    }

    fn number(&mut self) -> Token {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
        let behind = rest.get(end..).unwrap_or_default();
        if let Some(decimals) = behind.strip_prefix('.')
            && decimals.starts_with(|c: char| c.is_ascii_digit())
        {
            end += 1 + decimals.find(|c: char| !c.is_ascii_digit()).unwrap_or(decimals.len());
        }
        self.at += end;
        Token::Number(rest.get(..end).unwrap_or_default().replace('_', ""))
    }

    fn reference(&mut self) -> Token {
        let rest = self.rest();
        match rest.find('}') {
            Some(end) => {
                self.at += end + 1;
                Token::Reference(rest.get(..=end).unwrap_or_default().to_owned())
            }
            None => {
                self.at = self.text.len();
                Token::Unknown
            }
        }
    }
}
