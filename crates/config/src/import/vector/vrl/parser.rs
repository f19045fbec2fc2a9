//! Reads VRL. A statement that it does not understand is one of its own, and the next line goes on.

use std::ops::Range;

use super::syntax::{Branches, Call, Expression, Piece, Segment, Statement, StatementKind, Target};
use super::token::{Placed, Token, tokens};

/// The deepest nesting of expressions and blocks.
const DEEPEST: usize = 24;
/// The most statements that are looked at; what is behind them is one that is not understood.
pub(in crate::import::vector) const MOST_STATEMENTS: usize = 1000;

/// The statements of a program.
pub(in crate::import::vector) fn parse(text: &str) -> Vec<Statement> {
    let mut parser = Parser { tokens: tokens(text), next: 0, depth: 0, statements: 0 };
    let mut statements = Vec::new();
    while parser.skip_ends() {
        if statements.len() >= MOST_STATEMENTS {
            let start = parser.place().start;
            statements.push(Statement { kind: StatementKind::Unknown, at: start..text.len() });
            break;
        }
        statements.push(parser.recovering_statement());
    }
    statements
}

/// The most branches with a condition of one `if`: each looks at the conditions of those before it.
const MOST_BRANCHES: usize = 50;

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
    /// Those inside of blocks.
    statements: usize,
}

/// Operators, from the loosest to the tightest. `&&` and `||` are of one level in VRL.
const LEVELS: [&[&str]; 6] =
    [&["??"], &["||", "&&"], &["==", "!="], &["<", ">", "<=", ">="], &["+", "-"], &["*", "/"]];

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|placed| &placed.token)
    }

    fn place(&self) -> Range<usize> {
        let last = || self.tokens.last().map_or(0, |placed| placed.at.end);
        self.tokens.get(self.next).map_or_else(|| last()..last(), |placed| placed.at.clone())
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn is_adjacent(&self) -> bool {
        self.tokens.get(self.next).is_some_and(|placed| placed.is_adjacent)
    }

    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn skip_newlines(&mut self) {
        while matches!(self.peek(), Some(Token::Newline)) {
            self.next += 1;
        }
    }

    /// Skips the ends of statements; false at the end of the program.
    fn skip_ends(&mut self) -> bool {
        while matches!(self.peek(), Some(Token::Newline | Token::Symbol(";"))) {
            self.next += 1;
        }
        self.peek().is_some()
    }

    /// A statement, or all up to the end of its line where it is not understood.
    fn recovering_statement(&mut self) -> Statement {
        let first = self.next;
        let start = self.place().start;
        let is_whole =
            |parser: &Parser| matches!(parser.peek(), None | Some(Token::Newline | Token::Symbol(";" | "}")));
        if let Some(kind) = self.statement()
            && is_whole(self)
            && self.next > first
        {
            return Statement { kind, at: start..self.end() };
        }
        self.next = first;
        self.depth = 0;
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token {
                Token::Symbol("(" | "[" | "{") => depth += 1,
                Token::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
                Token::Newline | Token::Symbol(";") if depth == 0 => break,
                _ => {}
            }
            self.next += 1;
        }
        Statement { kind: StatementKind::Unknown, at: start..self.end() }
    }

    /// The end of the last word that was read.
    fn end(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |placed| placed.at.end)
    }

    fn statement(&mut self) -> Option<StatementKind> {
        if self.is_word("if") {
            return self.nested(Self::branches).map(StatementKind::If);
        }
        if self.is_word("abort") {
            self.next += 1;
            if !matches!(self.peek(), None | Some(Token::Newline | Token::Symbol(_))) {
                self.expression()?;
            }
            return Some(StatementKind::Abort);
        }
        let start = self.next;
        if let Some(assignment) = self.assignment() {
            return Some(assignment);
        }
        self.next = start;
        self.expression().map(StatementKind::Expression)
    }

    fn assignment(&mut self) -> Option<StatementKind> {
        let mut targets = vec![self.target()?];
        if self.accept(",") {
            targets.push(self.target()?);
        }
        let operator = ["=", "|=", "??="].into_iter().find(|operator| self.is(operator))?;
        self.next += 1;
        self.skip_newlines();
        let value = self.expression()?;
        Some(StatementKind::Assignment { targets, operator, value })
    }

    fn target(&mut self) -> Option<Target> {
        let target = match self.peek()? {
            Token::Path(path) => Target::Path(path.clone()),
            Token::Word(word) if word == "_" => Target::Nothing,
            Token::Word(word) => {
                let word = word.clone();
                self.next += 1;
                return Some(Target::Variable(word, self.subpath()));
            }
            _ => return None,
        };
        self.next += 1;
        Some(target)
    }

    /// A path directly behind a value.
    fn subpath(&mut self) -> Vec<Segment> {
        match (self.is_adjacent(), self.peek()) {
            (true, Some(Token::Path(path))) => {
                let path = path.clone();
                self.next += 1;
                path
            }
            _ => Vec::new(),
        }
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEEPEST {
            return None;
        }
        self.depth += 1;
        let value = read(self);
        self.depth = self.depth.saturating_sub(1);
        value
    }

    /// An `if` with what belongs to it.
    fn branches(&mut self) -> Option<Branches> {
        let mut conditional = Vec::new();
        loop {
            self.next += 1;
            self.skip_newlines();
            let condition = self.expression()?;
            self.skip_newlines();
            conditional.push((condition, self.block()?));
            if conditional.len() > MOST_BRANCHES {
                return None;
            }
            let behind = self.next;
            self.skip_newlines();
            if !self.is_word("else") {
                self.next = behind;
                return Some(Branches { conditional, otherwise: None });
            }
            self.next += 1;
            self.skip_newlines();
            if !self.is_word("if") {
                let otherwise = Some(self.block()?);
                return Some(Branches { conditional, otherwise });
            }
        }
    }

    fn block(&mut self) -> Option<Vec<Statement>> {
        if !self.accept("{") {
            return None;
        }
        let mut statements = Vec::new();
        while self.skip_ends() && !self.is("}") {
            self.statements += 1;
            if self.statements > MOST_STATEMENTS {
                return None;
            }
            let start = self.place().start;
            let kind = self.statement()?;
            statements.push(Statement { kind, at: start..self.end() });
            if !matches!(self.peek(), Some(Token::Newline | Token::Symbol(";" | "}"))) {
                return None;
            }
        }
        self.accept("}").then_some(statements)
    }

    fn expression(&mut self) -> Option<Expression> {
        self.nested(|parser| parser.binary(0))
    }

    fn binary(&mut self, level: usize) -> Option<Expression> {
        let Some(operators) = LEVELS.get(level) else { return self.nested(Self::unary) };
        let mut left = self.binary(level + 1)?;
        let mut count = 0_usize;
        loop {
            let before = self.next;
            // A line may begin with one of these, as no statement does.
            if level < 2 {
                self.skip_newlines();
            }
            let Some(operator) = operators.iter().copied().find(|operator| self.is(operator)) else {
                self.next = before;
                return Some(left);
            };
            count += 1;
            // Each makes the tree deeper.
            if count > DEEPEST {
                return None;
            }
            self.next += 1;
            self.skip_newlines();
            let right = self.binary(level + 1)?;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn unary(&mut self) -> Option<Expression> {
        if self.accept("!") {
            return self.nested(Self::unary).map(|inner| Expression::Not(Box::new(inner)));
        }
        if self.accept("-") {
            return self.nested(Self::unary).map(|inner| Expression::Negative(Box::new(inner)));
        }
        self.primary()
    }

    fn primary(&mut self) -> Option<Expression> {
        let token = self.peek()?.clone();
        self.next += 1;
        match token {
            Token::Path(path) => Some(Expression::Path(path)),
            Token::Number(number) => Some(Expression::Number(number)),
            Token::Regex(regex) => Some(Expression::Regex(regex)),
            Token::Reference(reference) => Some(Expression::Reference(reference)),
            Token::Text { text, is_template: false } => Some(Expression::Text(vec![Piece::Text(text)])),
            Token::Text { text, is_template: true } => template(&text).map(Expression::Text),
            Token::Word(word) => self.word(word),
            Token::Symbol("(") => {
                self.skip_newlines();
                let inner = self.expression()?;
                self.skip_newlines();
                self.accept(")").then_some(inner)
            }
            Token::Symbol("[") => {
                let mut items = Vec::new();
                self.list("]", |parser| {
                    items.push(parser.expression()?);
                    Some(())
                })?;
                Some(Expression::List(items))
            }
            Token::Symbol("{") => {
                let mut members = Vec::new();
                self.list("}", |parser| {
                    let Some(Token::Text { text, is_template: false }) = parser.peek().cloned() else {
                        return None;
                    };
                    parser.next += 1;
                    if !parser.accept(":") {
                        return None;
                    }
                    parser.skip_newlines();
                    members.push((text, parser.expression()?));
                    Some(())
                })?;
                Some(Expression::Map(members))
            }
            Token::Symbol(_) | Token::Newline | Token::Unknown => None,
        }
    }

    fn word(&mut self, word: String) -> Option<Expression> {
        match word.as_str() {
            "true" | "false" => return Some(Expression::Boolean(word == "true")),
            "null" => return Some(Expression::Null),
            "if" => {
                // The word is read again as the beginning of a branch.
                self.next -= 1;
                return self.nested(Self::branches).map(|branches| Expression::If(Box::new(branches)));
            }
            _ => {}
        }
        let behind = self.next;
        let aborts = self.is_adjacent() && self.accept("!");
        if !(self.is_adjacent() && self.accept("(")) {
            self.next = behind;
            return Some(Expression::Variable(word, self.subpath()));
        }
        let mut arguments = Vec::new();
        self.list(")", |parser| {
            let start = parser.next;
            let name = match parser.peek().cloned() {
                Some(Token::Word(name)) => {
                    parser.next += 1;
                    parser.accept(":").then_some(name)
                }
                _ => None,
            };
            match name {
                Some(_) => parser.skip_newlines(),
                None => parser.next = start,
            }
            arguments.push((name, parser.expression()?));
            Some(())
        })?;
        Some(Expression::Call(Call { name: word, arguments, path: self.subpath(), aborts }))
    }

    /// Elements with commas between them, up to `end`.
    fn list(&mut self, end: &str, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            self.skip_newlines();
            if self.accept(end) {
                return Some(());
            }
            element(self)?;
            self.skip_newlines();
            if !self.accept(",") && !self.is(end) {
                return None;
            }
        }
    }
}

/// The pieces of a string with `{{ variables }}`.
fn template(text: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}")?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Variable(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Some(pieces)
}
