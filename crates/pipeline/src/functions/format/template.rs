//! Formats of `fmt.Sprintf`, compiled.

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(super) Box<[Piece]>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Box<str>),
    Verb(Verb),
}

/// A verb with its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verb {
    pub(super) letter: char,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
}

/// The most characters that a value is padded to, and digits that it is printed with.
const MAX_WIDTH: usize = 256;

impl Template {
    /// Reads a format.
    pub(crate) fn new(format: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = format;
        while let Some((before, behind)) = rest.split_once('%') {
            literal.push_str(before);
            if let Some(behind) = behind.strip_prefix('%') {
                literal.push('%');
                rest = behind;
                continue;
            }
            if behind.is_empty() {
                literal.push_str("%!(NOVERB)");
                rest = behind;
                break;
            }
            let (verb, behind) = verb(behind)?;
            rest = behind;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal).into()));
            }
            pieces.push(Piece::Verb(verb));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.into()));
        }
        Ok(Template(pieces.into()))
    }
}

/// Reads a verb, and returns what is behind it.
fn verb(text: &str) -> Result<(Verb, &str), String> {
    let mut verb = Verb::default();
    let mut rest = text;
    loop {
        let flag = match rest.as_bytes().first() {
            Some(b'+') => &mut verb.plus,
            Some(b'-') => &mut verb.minus,
            Some(b' ') => &mut verb.space,
            Some(b'0') => &mut verb.zero,
            _ => break,
        };
        *flag = true;
        rest = rest.get(1..).unwrap_or_default();
    }
    (verb.width, rest) = number(rest)?;
    if let Some(behind) = rest.strip_prefix('.') {
        let (precision, behind) = number(behind)?;
        verb.precision = Some(precision);
        rest = behind;
    }
    let Some(letter) = rest.chars().next() else { return Err("the format ends within a verb".into()) };
    verb.letter = letter;
    if !matches!(letter, 'v' | 's' | 'd' | 'f' | 'F' | 'e' | 'E' | 't' | 'x' | 'X' | 'q' | 'c') {
        return Err(format!("`%{letter}` is not supported: there are %v %s %d %f %e %t %x %q %c"));
    }
    if verb.precision.is_some() && !matches!(letter, 's' | 'f' | 'F' | 'e' | 'E') {
        return Err(format!("`%{letter}` has no precision here"));
    }
    if letter == 'v' && verb.plus {
        return Err("`%+v` is not supported".into());
    }
    Ok((verb, rest.get(letter.len_utf8()..).unwrap_or_default()))
}

fn number(text: &str) -> Result<(usize, &str), String> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(len);
    match digits.parse() {
        Ok(number) if number <= MAX_WIDTH => Ok((number, rest)),
        Ok(_) => Err(format!("a width or precision is at most {MAX_WIDTH}")),
        Err(_) if digits.is_empty() => Ok((0, rest)),
        Err(_) => Err(format!("a width or precision is at most {MAX_WIDTH}")),
    }
}
