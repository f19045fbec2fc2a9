//! Values: literals, paths, calls, lists, maps, arithmetic.

use super::super::program::Operator;
use super::super::syntax::{
    ArgumentTree, CallTree, FieldTree, KeyTree, Name, PathTree, ValueKind, ValueTree,
};
use super::super::token::TokenKind;
use super::super::unquote::unquote;
use super::{DEEPEST, Parsed, Parser};

impl Parser<'_> {
    pub(crate) fn value(&mut self) -> Parsed<ValueTree> {
        let start = self.at;
        let kind = match self.kind() {
            Some(TokenKind::Nil) => self.single(ValueKind::Nil),
            Some(TokenKind::Text) => {
                let text = self.text_token();
                self.single(ValueKind::Text(text))
            }
            Some(TokenKind::Bytes) => {
                let bytes = self.bytes()?;
                self.single(ValueKind::Bytes(bytes))
            }
            Some(TokenKind::Boolean) => {
                let value = self.slice(self.at) == "true";
                self.single(ValueKind::Bool(value))
            }
            Some(TokenKind::LeftBrace) => self.deeper(Self::map)?,
            Some(TokenKind::LeftBracket) => self.deeper(Self::list)?,
            Some(TokenKind::Uppercase) if !self.converter_here() => {
                // A capital name with small letters is no enum.
                if self.is(self.at + 1, TokenKind::Lowercase) {
                    let end = self.name_end(TokenKind::Uppercase).unwrap_or(self.at);
                    self.at = end;
                    return Err(self.expect("`(`"));
                }
                let name = self.slice(self.at).to_owned();
                self.single(ValueKind::Enum(name))
            }
            _ => return self.math(),
        };
        Ok(ValueTree { kind, range: self.since(start) })
    }

    /// The value of one token, which is taken.
    fn single(&mut self, kind: ValueKind) -> ValueKind {
        self.at += 1;
        kind
    }

    fn text_token(&self) -> String {
        // The lexer has checked the escapes.
        unquote(self.slice(self.at)).unwrap_or_default()
    }

    fn bytes(&mut self) -> Parsed<Vec<u8>> {
        let digits = self.slice(self.at).strip_prefix("0x").unwrap_or_default();
        let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
            [high, low] => {
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                Some(digit(*high)? << 4 | digit(*low)?)
            }
            _ => None,
        });
        pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| {
            let message = "bytes have an even number of hexadecimal digits".to_owned();
            self.fatal(self.range(self.at), message, None)
        })
    }

    fn list(&mut self) -> Parsed<ValueKind> {
        self.at += 1;
        let mut values = Vec::new();
        if self.take(TokenKind::RightBracket) {
            return Ok(ValueKind::List(values));
        }
        loop {
            values.push(self.value()?);
            if !self.take(TokenKind::Comma) {
                self.note("`,`");
                self.need(TokenKind::RightBracket, "`]`")?;
                return Ok(ValueKind::List(values));
            }
        }
    }

    /// The commas between the entries of a map may be missing.
    fn map(&mut self) -> Parsed<ValueKind> {
        self.at += 1;
        let mut entries = Vec::new();
        while self.kind() == Some(TokenKind::Text) {
            let key = Name { text: self.text_token(), range: self.range(self.at) };
            self.at += 1;
            self.need(TokenKind::Colon, "`:`")?;
            entries.push((key, self.value()?));
            self.take(TokenKind::Comma);
        }
        self.note("a string as key");
        self.need(TokenKind::RightBrace, "`}`")?;
        Ok(ValueKind::Map(entries))
    }

    // Arithmetic.

    fn math(&mut self) -> Parsed<ValueTree> {
        let start = self.at;
        let first = self.product()?;
        let mut rest = Vec::new();
        while self.kind() == Some(TokenKind::Sign) {
            let operator = if self.slice(self.at) == "-" { Operator::Subtract } else { Operator::Add };
            self.at += 1;
            rest.push((operator, self.product()?));
            self.bounded(rest.len())?;
        }
        Ok(self.chain(start, first, rest))
    }

    fn product(&mut self) -> Parsed<ValueTree> {
        let start = self.at;
        let first = self.factor()?;
        let mut rest = Vec::new();
        while self.kind() == Some(TokenKind::Product) {
            let operator = if self.slice(self.at) == "/" { Operator::Divide } else { Operator::Multiply };
            self.at += 1;
            rest.push((operator, self.factor()?));
            self.bounded(rest.len())?;
        }
        Ok(self.chain(start, first, rest))
    }

    fn chain(&self, start: usize, first: ValueTree, rest: Vec<(Operator, ValueTree)>) -> ValueTree {
        if rest.is_empty() {
            return first;
        }
        ValueTree { kind: ValueKind::Math(Box::new(first), rest), range: self.since(start) }
    }

    /// The program nests the operations of a chain.
    fn bounded(&mut self, operators: usize) -> Parsed<()> {
        if operators <= DEEPEST {
            return Ok(());
        }
        let message = format!("this expression has more than {DEEPEST} operators");
        Err(self.fatal(self.range(self.at.saturating_sub(1)), message, None))
    }

    fn factor(&mut self) -> Parsed<ValueTree> {
        let start = self.at;
        let sign = self.kind() == Some(TokenKind::Sign);
        let negative = sign && self.slice(self.at) == "-";
        self.at += usize::from(sign);
        let value = match self.kind() {
            Some(TokenKind::LeftParen) => {
                if let Some(range) = self.lambda_here() {
                    return Err(self.lambda(range));
                }
                self.at += 1;
                let inner = self.deeper(Self::math)?;
                self.need(TokenKind::RightParen, "`)`")?;
                ValueTree { kind: ValueKind::Group(Box::new(inner)), range: self.since(start) }
            }
            _ => self.leaf()?,
        };
        let kind = match (sign, negative) {
            (true, true) => ValueKind::Negative(Box::new(value)),
            (true, false) => ValueKind::Group(Box::new(value)),
            _ => return Ok(value),
        };
        Ok(ValueTree { kind, range: self.since(start) })
    }

    /// A call, a number or a path.
    fn leaf(&mut self) -> Parsed<ValueTree> {
        let start = self.at;
        let kind = match self.kind() {
            Some(TokenKind::Float) => {
                let value = self.slice(self.at).parse::<f64>().ok().filter(|value| value.is_finite());
                let value = value.ok_or(()).or_else(|()| self.number_out_of_range())?;
                self.single(ValueKind::Double(value))
            }
            Some(TokenKind::Int) => {
                let value =
                    integer(self.slice(self.at)).ok_or(()).or_else(|()| self.number_out_of_range())?;
                self.single(ValueKind::Int(value))
            }
            Some(TokenKind::Uppercase) if self.converter_here() => {
                let end = self.name_end(TokenKind::Uppercase).unwrap_or(self.at);
                let name = self.name(start, end);
                ValueKind::Call(self.call(name)?)
            }
            Some(TokenKind::Lowercase) => match self.name_end(TokenKind::Lowercase) {
                Some(end) if self.is(end, TokenKind::LeftParen) => return Err(self.editor_as_converter(end)),
                _ => ValueKind::Path(self.path()?),
            },
            _ => return Err(self.expect("a value")),
        };
        Ok(ValueTree { kind, range: self.since(start) })
    }

    fn number_out_of_range<T>(&mut self) -> Parsed<T> {
        let octal = self.slice(self.at).starts_with('0') && self.kind() == Some(TokenKind::Int);
        let help = octal.then(|| "a leading 0 means base 8, as in Go".to_owned());
        let message = format!("`{}` is not a number of 64 bits", self.slice(self.at));
        Err(self.fatal(self.range(self.at), message, help))
    }

    /// Whether a converter's name and `(` are next.
    fn converter_here(&self) -> bool {
        self.name_end(TokenKind::Uppercase).is_some_and(|end| self.is(end, TokenKind::LeftParen))
    }

    /// The bytes of a lambda's parameters and arrow, if a lambda begins here.
    fn lambda_here(&self) -> Option<std::ops::Range<usize>> {
        let mut at = self.at + 1;
        while self.is(at, TokenKind::Lowercase)
            || self.is(at, TokenKind::Underscore)
            || self.is(at, TokenKind::Comma)
        {
            at += 1;
        }
        let arrow = self.is(at, TokenKind::RightParen) && self.is(at + 1, TokenKind::Arrow);
        arrow.then(|| self.range(self.at).start..self.range(at + 1).end)
    }

    // Calls and paths.

    /// The arguments and keys of a call; the name is taken, and `(` is next.
    pub(super) fn call(&mut self, name: Name) -> Parsed<CallTree> {
        let arguments = self.deeper(Self::arguments)?;
        let keys = self.keys()?;
        let end = self.at.checked_sub(1).map_or(name.range.end, |last| self.range(last).end);
        let range = name.range.start..end;
        Ok(CallTree { name, arguments, keys, range })
    }

    fn arguments(&mut self) -> Parsed<Vec<ArgumentTree>> {
        self.at += 1;
        let mut arguments = Vec::new();
        if self.take(TokenKind::RightParen) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument()?);
            if !self.take(TokenKind::Comma) {
                self.note("`,`");
                self.need(TokenKind::RightParen, "`)`")?;
                return Ok(arguments);
            }
        }
    }

    fn argument(&mut self) -> Parsed<ArgumentTree> {
        let start = self.at;
        let name = match self.name_end(TokenKind::Lowercase) {
            Some(end) if self.is(end, TokenKind::Equal) => {
                let name = self.name(start, end);
                self.at += 1;
                Some(name)
            }
            _ => None,
        };
        // A function's name that is not capitals alone.
        if let Some(end) = self.name_end(TokenKind::Uppercase)
            && self.is(self.at + 1, TokenKind::Lowercase)
            && !self.is(end, TokenKind::LeftParen)
        {
            let function = self.name(self.at, end);
            let value = ValueTree { kind: ValueKind::Function(function.text), range: function.range };
            return Ok(ArgumentTree { name, value });
        }
        Ok(ArgumentTree { name, value: self.value()? })
    }

    fn path(&mut self) -> Parsed<PathTree> {
        let start = self.at;
        let mut fields = Vec::new();
        loop {
            if self.kind() != Some(TokenKind::Lowercase) {
                return Err(self.expect("a field"));
            }
            let name = self.name(self.at, self.at + 1);
            fields.push(FieldTree { name, keys: self.keys()? });
            if !self.take(TokenKind::Dot) {
                self.note("`.`");
                return Ok(PathTree { fields, range: self.since(start) });
            }
        }
    }

    fn keys(&mut self) -> Parsed<Vec<KeyTree>> {
        let mut keys = Vec::new();
        while self.take(TokenKind::LeftBracket) {
            keys.push(self.deeper(Self::key)?);
            self.need(TokenKind::RightBracket, "`]`")?;
        }
        Ok(keys)
    }

    fn key(&mut self) -> Parsed<KeyTree> {
        let range = self.range(self.at);
        match self.kind() {
            Some(TokenKind::Text) => {
                let text = self.text_token();
                self.at += 1;
                Ok(KeyTree::Name(Name { text, range }))
            }
            // A number is a key of its own, not the first of a sum.
            Some(TokenKind::Int) => match self.leaf()?.kind {
                ValueKind::Int(index) => Ok(KeyTree::Index(index, range)),
                _ => Err(self.expect("a key")),
            },
            _ => Ok(KeyTree::Dynamic(self.math()?)),
        }
    }
}

/// As Go's `strconv.ParseInt` with base 0: a leading 0 means base 8.
fn integer(digits: &str) -> Option<i64> {
    match digits.strip_prefix('0') {
        None | Some("") => digits.parse().ok(),
        Some(octal) => i64::from_str_radix(octal, 8).ok(),
    }
}
