//! Runs compiled statements over the current record.

use crate::memory::Memory;
use crate::ottl::program::{Argument, Expression};
use crate::value::{Failure, Value};

/// The state that statements read and change.
pub(crate) struct Machine<'a> {
    pub(crate) memory: Memory<'a>,
    /// Search state of regular expressions.
    pub(crate) regexes: &'a mut crate::regex::Caches,
    /// Nanoseconds since the Unix epoch: one reading for each run.
    pub(crate) now_ns: i64,
}

impl Machine<'_> {
    /// The value of an argument; `None` for one that is absent.
    pub(crate) fn argument(&mut self, argument: &Argument) -> Result<Option<Value>, Failure> {
        match argument {
            Argument::Value(expression) => self.value(expression).map(Some),
            _ => Ok(None),
        }
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, expression: &Expression) -> Result<Value, Failure> {
        match expression {
            Expression::Literal(value) => Ok(*value),
            Expression::Call(call) => (call.function.run)(self, &call.arguments),
            _ => Err(Failure::Invalid("not yet")),
        }
    }
}
