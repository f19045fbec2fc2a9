//! Compiles the expressions of the cases: calls, literals, and paths of a log record.

use crate::functions;
use crate::memory::{Slice, Space};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Argument, Call, Expression, Key, Path};
use crate::ottl::signature::{Signature, Type};
use crate::regex::Regexes;
use crate::value::Value;

/// The expression of `text`, and its constants.
pub(in crate::functions) fn compile(
    text: &str,
    regexes: &mut Regexes,
) -> Result<(Expression, Vec<u8>), String> {
    let mut reader = Reader { rest: text, constants: Vec::new(), regexes };
    let expression = reader.expression()?;
    assert_eq!(reader.rest, "", "in {text}");
    Ok((expression, reader.constants))
}

struct Reader<'t> {
    rest: &'t str,
    constants: Vec<u8>,
    regexes: &'t mut Regexes,
}

impl<'t> Reader<'t> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self, part: impl Fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|character| !part(character)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        word
    }

    fn store(&mut self, bytes: &[u8]) -> Slice {
        let start = self.constants.len() as u32;
        self.constants.extend_from_slice(bytes);
        Slice { start, len: bytes.len() as u32, space: Space::Constants }
    }

    fn expression(&mut self) -> Result<Expression, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('"') {
            let text = self.string();
            return Ok(Expression::Literal(Value::Text(self.store(text.as_bytes()))));
        }
        if self.take("[") {
            return Ok(Expression::List(self.list()?.into()));
        }
        if self.take("{") {
            let mut pairs = Vec::new();
            while !self.take("}") {
                self.rest = self.rest.trim_start();
                let key = self.string();
                assert!(self.take(":"));
                pairs.push((self.store(key.as_bytes()), self.expression()?));
                self.take(",");
            }
            return Ok(Expression::Map(pairs.into()));
        }
        if self.take("0x") {
            let digits = self.word(|character| character.is_ascii_hexdigit());
            let bytes: Vec<_> = (0..digits.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
                .collect();
            return Ok(Expression::Literal(Value::Bytes(self.store(&bytes))));
        }
        if self.rest.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            let number = self.word(|character| matches!(character, '-' | '.' | '0'..='9'));
            return Ok(Expression::Literal(match number.parse() {
                Ok(int) => Value::Int(int),
                Err(_) => Value::Double(number.parse().unwrap()),
            }));
        }
        let name = self.word(|character| character.is_ascii_alphanumeric() || character == '_');
        Ok(match name {
            "nil" => Expression::Literal(Value::Nil),
            "true" => Expression::Literal(Value::Bool(true)),
            "false" => Expression::Literal(Value::Bool(false)),
            "attributes" => self.path(Field::Attributes)?,
            "body" => self.path(Field::Body)?,
            "time" => self.path(Field::Time)?,
            _ => Expression::Call(Box::new(self.call(name)?)),
        })
    }

    fn path(&mut self, field: Field) -> Result<Expression, String> {
        let mut keys = Vec::new();
        while self.take("[") {
            keys.push(match self.expression()? {
                Expression::Literal(Value::Text(name)) => Key::Name(name),
                Expression::Literal(Value::Int(at)) => Key::Index(at),
                dynamic => Key::Dynamic(Box::new(dynamic)),
            });
            assert!(self.take("]"));
        }
        Ok(Expression::Path(Path { context: Context::Log, field, keys: keys.into() }))
    }

    fn list(&mut self) -> Result<Vec<Expression>, String> {
        let mut elements = Vec::new();
        while !self.take("]") {
            elements.push(self.expression()?);
            self.take(",");
        }
        Ok(elements)
    }

    /// A string with the escapes of Go that the cases use.
    fn string(&mut self) -> String {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => match characters.next().map(|(_, escape)| escape) {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('u') => {
                        let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                        text.push(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap());
                    }
                    other => text.extend(other),
                },
                character => text.push(character),
            }
        }
        panic!("the string does not end: {}", self.rest);
    }

    fn call(&mut self, name: &str) -> Result<Call, String> {
        let function = functions::find(name).ok_or(format!("no such function: {name}"))?;
        let mut arguments: Vec<_> = function.parameters.iter().map(|_| Argument::Absent).collect();
        assert!(self.take("("), "{name} without arguments");
        let mut next = 0;
        while !self.take(")") {
            self.rest = self.rest.trim_start();
            let named = function.parameters.iter().position(|parameter| {
                self.rest.strip_prefix(parameter.name).is_some_and(|rest| rest.starts_with('='))
            });
            if let Some(named) = named {
                next = named;
                self.rest = &self.rest[function.parameters[named].name.len() + 1..];
            }
            let accepts = function.parameters.get(next).ok_or("too many arguments")?.accepts;
            arguments[next] = self.argument(function, next, accepts)?;
            next += 1;
            self.take(",");
        }
        let missing = |(argument, parameter): (&Argument, &crate::ottl::signature::Parameter)| {
            matches!(argument, Argument::Absent) && !parameter.optional
        };
        if arguments.iter().zip(function.parameters).any(missing) {
            return Err("missing argument".into());
        }
        (function.complete)(&mut arguments, &self.constants, self.regexes).map_err(|(_, message)| message)?;
        Ok(Call { function, arguments: arguments.into() })
    }

    fn argument(
        &mut self,
        function: &'static Signature,
        at: usize,
        accepts: Type,
    ) -> Result<Argument, String> {
        if accepts == Type::Function {
            let name = self.word(|character| character.is_ascii_alphanumeric());
            return functions::find(name).map(Argument::Function).ok_or(format!("no such function: {name}"));
        }
        let expression = self.expression()?;
        if let Expression::Literal(Value::Text(text)) = &expression {
            let literal = &self.constants[text.start as usize..(text.start + text.len) as usize];
            let literal = str::from_utf8(literal).unwrap();
            if let Some(prepared) = (function.prepare)(at, literal, self.regexes) {
                return Ok(Argument::Prepared(prepared?));
            }
        }
        Ok(match (accepts, expression) {
            (
                Type::Values | Type::Texts | Type::Elements | Type::TextElements | Type::LiteralTexts,
                Expression::List(elements),
            ) => Argument::Values(elements),
            (Type::Target | Type::MapTarget, Expression::Path(path)) => Argument::Target(path),
            (_, expression) => Argument::Value(expression),
        })
    }
}
