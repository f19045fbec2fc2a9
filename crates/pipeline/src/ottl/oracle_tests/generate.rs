//! Generates statements and conditions from the grammar, the tables of paths, enums and functions; and breaks some of them.

use crate::functions;
use crate::ottl::enums;
use crate::ottl::field::Context;
use crate::ottl::paths::{self, Keys};
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::ottl::token::tokens;

/// A text for one signal.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) signal: Signal,
    pub(super) condition: bool,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Logs,
    Traces,
    Metrics,
}

impl Signal {
    pub(super) const ALL: [Signal; 3] = [Signal::Logs, Signal::Traces, Signal::Metrics];

    pub(super) fn name(self) -> &'static str {
        match self {
            Signal::Logs => "logs",
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
        }
    }

    pub(super) fn contexts(self) -> &'static [Context] {
        match self {
            Signal::Logs => &[Context::Resource, Context::Scope, Context::Log],
            Signal::Traces => &[Context::Resource, Context::Scope, Context::Span, Context::SpanEvent],
            Signal::Metrics => &[Context::Resource, Context::Scope, Context::Metric, Context::DataPoint],
        }
    }
}

/// A generator; the same seed gives the same cases.
pub(super) struct Generator {
    state: u64,
    signal: Signal,
    editors: Vec<&'static Signature>,
    converters: Vec<&'static Signature>,
}

const TEXTS: &[&str] = &[
    "a",
    "",
    "^a.*$",
    "(a|b)",
    "(",
    "[a",
    "(?P<x>\\\\d+)",
    "$1",
    "${1}",
    "%s",
    "%d-%s",
    "1h",
    "2.7",
    "27",
    "true",
    "-",
    "insert",
    "upsert",
    "key",
    "value",
    "upper",
    "snake",
    "asc",
    "desc",
    "10.0.0.0/8",
    "::1/300",
    "%Y-%m-%d",
    "utf-8",
    "base64",
    "\\n\\t\\\"",
    "\\u00e9",
    "é",
    "%{WORD:x}",
    "Europe/Berlin",
    "strict",
    "16",
];

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        // Functions of components are not in the oracle.
        let standard =
            |function: &&'static Signature| super::super::signature_tests::is_standard(function.name);
        let all = functions::all_functions().filter(standard);
        let (editors, converters) = all.partition(|function: &&Signature| function.returns == Type::Nothing);
        Generator { state: seed, signal: Signal::Logs, editors, converters }
    }

    pub(super) fn case(&mut self) -> Case {
        self.signal = self.one(&Signal::ALL);
        let condition = self.chance(3) || self.editors.is_empty();
        let mut text = if condition { self.condition(3) } else { self.statement() };
        while self.chance(3) {
            text = self.broken(&text);
        }
        Case { signal: self.signal, condition, text }
    }

    // Random choices: SplitMix64.

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `times`.
    fn chance(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    // The grammar.

    fn statement(&mut self) -> String {
        let editors = self.editors.clone();
        let editor = self.one(&editors);
        let call = self.call(editor, 3);
        if self.chance(2) { call } else { format!("{call} where {}", self.condition(2)) }
    }

    fn condition(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => self.converter(below),
            1 => self.one(&["true", "false"]).to_owned(),
            2..=4 => {
                let operator = self.one(&["==", "!=", "<", "<=", ">", ">="]);
                format!("{} {operator} {}", self.value(below), self.value(below))
            }
            5 => format!("not {}", self.condition(below)),
            6 => format!("({})", self.condition(below)),
            7 => format!("{} and {}", self.condition(below), self.condition(below)),
            _ => format!("{} or {}", self.condition(below), self.condition(below)),
        }
    }

    fn value(&mut self, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        match self.below(if depth == 0 { 9 } else { 15 }) {
            0 => "nil".to_owned(),
            1 => self.text(),
            2 => self.one(&["0", "1", "42", "010", "9223372036854775807", "08"]).to_owned(),
            3 => self.one(&["1.5", ".5", "2.", "1.5e3", "-1", "-2.5", "+3"]).to_owned(),
            4 => {
                self.one(&["true", "false", "0x00ff", "0x123456789012345678901234567890ab", "0x1"]).to_owned()
            }
            5 => self.enumeration(),
            6..=8 => self.path(below),
            9..=11 => self.converter(below),
            12 => {
                let operator = self.one(&["+", "-", "*", "/"]);
                let (left, right) = (self.operand(below), self.operand(below));
                if self.chance(3) {
                    format!("({left} {operator} {right})")
                } else {
                    format!("{left} {operator} {right}")
                }
            }
            13 => self.list(below),
            _ => {
                let comma = self.one(&[",", " ", ", "]);
                let entries: Vec<_> =
                    (0..self.below(3)).map(|_| format!("{}: {}", self.text(), self.value(below))).collect();
                format!("{{{}}}", entries.join(comma))
            }
        }
    }

    fn operand(&mut self, depth: usize) -> String {
        let sign = self.one(&["", "", "", "-", "+"]);
        let operand = match self.below(4) {
            0 => self.one(&["1", "2.5", "7"]).to_owned(),
            1 => self.path(depth),
            2 => self.converter(depth.saturating_sub(1)),
            _ => format!("({})", self.one(&["1", "2.5", "1 + 2"])),
        };
        format!("{sign}{operand}")
    }

    fn list(&mut self, depth: usize) -> String {
        let values: Vec<_> = (0..self.below(4)).map(|_| self.value(depth)).collect();
        format!("[{}]", values.join(", "))
    }

    fn text(&mut self) -> String {
        format!("\"{}\"", self.one(TEXTS))
    }

    fn enumeration(&mut self) -> String {
        let context = if self.chance(8) { self.one(&Context::ALL) } else { self.one(self.signal.contexts()) };
        let names: Vec<_> = enums::names(context).collect();
        if names.is_empty() || self.chance(10) {
            "SPAN_KIND_OTHER".to_owned()
        } else {
            self.one(&names).to_owned()
        }
    }

    fn path(&mut self, depth: usize) -> String {
        let context = match self.below(60) {
            0 => self.one(&Context::ALL),
            // The lowest, mostly: so that it is inferred.
            1..=40 => *self.signal.contexts().last().unwrap(),
            _ => self.one(self.signal.contexts()),
        };
        let known: Vec<_> = paths::of(context).collect();
        let known = self.one(&known);
        let mut path = match self.below(60) {
            0 => known.name.to_owned(),
            1 => format!("instrumentation_scope.{}", known.name),
            2 => format!("{}.{}.x", context.name(), known.name),
            3 => format!("{}.unknown", context.name()),
            4 => context.name().to_owned(),
            _ => format!("{}.{}", context.name(), known.name),
        };
        let keys = match known.keys {
            Keys::Never => usize::from(self.chance(40)),
            Keys::One => self.one(&[0, 1, 1, 1, 2]),
            Keys::Any => self.one(&[0, 1, 1, 1, 1, 2]),
        };
        for _ in 0..keys {
            path.push_str(&self.key(depth));
        }
        path
    }

    fn key(&mut self, depth: usize) -> String {
        match self.below(12) {
            0 => "[0]".to_owned(),
            1 => "[1 + 1]".to_owned(),
            2 => "[(1)]".to_owned(),
            3 if depth > 0 => format!("[{}]", self.path(0)),
            4 if depth > 0 => format!("[{}]", self.converter(0)),
            _ => format!("[{}]", self.text()),
        }
    }

    fn converter(&mut self, depth: usize) -> String {
        let converters = self.converters.clone();
        let Some(converter) = (!converters.is_empty()).then(|| self.one(&converters)) else {
            return self.path(0);
        };
        let mut call = self.call(converter, depth);
        if self.chance(8) {
            call.push_str(&self.key(depth));
        }
        call
    }

    fn call(&mut self, function: &Signature, depth: usize) -> String {
        let mut arguments = Vec::new();
        let mut named = false;
        for parameter in function.parameters {
            if parameter.optional && self.chance(2) {
                named = true;
                continue;
            }
            let value = self.argument(*parameter, depth);
            named |= self.chance(12);
            arguments.push(if named { format!("{}={value}", parameter.name) } else { value });
        }
        if self.chance(40) {
            arguments.pop();
        }
        if self.chance(60) {
            arguments.push(self.value(0));
        }
        let name =
            if self.chance(30) { function.name.replacen("s", "s ", 1) } else { function.name.to_owned() };
        format!("{name}({})", arguments.join(self.one(&[", ", ","])))
    }

    fn argument(&mut self, parameter: Parameter, depth: usize) -> String {
        if self.chance(12) {
            return self.value(depth);
        }
        let below = depth.saturating_sub(1);
        match parameter.accepts {
            Type::Target | Type::MapTarget => self.path(below),
            Type::Text if self.chance(3) => self.path(below),
            Type::Text | Type::LiteralText => self.text(),
            Type::Int | Type::LiteralInt => self.one(&["0", "1", "3", "10"]).to_owned(),
            Type::Double | Type::LiteralDouble => self.one(&["0.5", "1."]).to_owned(),
            Type::Bool | Type::LiteralBool => self.one(&["true", "false"]).to_owned(),
            Type::Time | Type::Duration | Type::Map | Type::List => self.path(below),
            Type::LiteralTexts | Type::Texts => {
                let texts: Vec<_> = (0..self.below(3)).map(|_| self.text()).collect();
                format!("[{}]", texts.join(", "))
            }
            Type::Values => self.list(below),
            Type::Function => {
                let converters = self.converters.clone();
                if converters.is_empty() {
                    "SHA256".to_owned()
                } else {
                    self.one(&converters).name.to_owned()
                }
            }
            _ => self.value(below),
        }
    }

    // Mutations.

    /// The text with a token too many, too few, or another.
    fn broken(&mut self, text: &str) -> String {
        const OTHERS: &[&str] = &[
            "(", ")", "[", "]", "{", "}", ",", ".", ":", "=", "==", "+", "-", "*", "not", "and", "or", "nil",
            "true", "where", "x", "log", "span", "X", "Foo", "1", "1.5", "0xff", "\"a\"", "_", "=>", "!=",
        ];
        let Ok(tokens) = tokens(text) else { return text.to_owned() };
        let mut words: Vec<&str> = tokens.iter().map(|token| &text[token.range.clone()]).collect();
        if words.is_empty() {
            return text.to_owned();
        }
        let at = self.below(words.len());
        match self.below(5) {
            0 => _ = words.remove(at),
            1 => words.insert(at, words[at]),
            2 => words.insert(at, self.one(OTHERS)),
            3 => words[at] = self.one(OTHERS),
            _ => {
                let last = words.len() - 1;
                words.swap(at, (at + 1).min(last));
            }
        }
        words.join(" ")
    }
}
